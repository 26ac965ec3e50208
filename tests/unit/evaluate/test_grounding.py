"""Figures of grounding: worked by hand, and rows that are refused with their place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cognicraft.errors import UsageError
from cognicraft.evaluate.grounding import (
    GroundingRow,
    auroc,
    balanced_accuracy,
    f1_unsupported,
    figures,
    read_rows,
)
from cognicraft.records import EvidenceText


def write(folder: Path, *rows: object) -> Path:
    path = folder / "rows.jsonl"
    path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows), encoding="utf-8")
    return path


def row(number: int, label: bool, context: str) -> GroundingRow:
    return GroundingRow(str(number), (EvidenceText(1, context),), "claim", label)


def test_auroc_counts_a_tie_half() -> None:
    assert auroc([True, False], [0.9, 0.1]) == 1.0
    assert auroc([True, False], [0.1, 0.9]) == 0.0
    assert auroc([True, False], [0.5, 0.5]) == 0.5
    assert auroc([True, True, False, False], [0.9, 0.4, 0.4, 0.1]) == pytest.approx(3.5 / 4)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5)), min_size=1, max_size=40))
def test_auroc_is_the_share_of_pairs_in_order(pairs: list[tuple[bool, int]]) -> None:
    supported = [score for label, score in pairs if label]
    other = [score for label, score in pairs if not label]
    found = auroc([label for label, _ in pairs], [float(score) for _, score in pairs])
    if not supported or not other:
        assert found is None
    else:
        wins = sum((one > two) + 0.5 * (one == two) for one in supported for two in other)
        assert found == pytest.approx(wins / (len(supported) * len(other)))


def test_balanced_accuracy_and_f1_by_hand() -> None:
    labels = [True, True, True, False]
    said = [True, True, False, False]
    assert balanced_accuracy(labels, said) == pytest.approx((2 / 3 + 1) / 2)
    assert f1_unsupported(labels, said) == pytest.approx(2 * 1 / (2 + 1))
    assert balanced_accuracy([True], [True]) is None
    assert f1_unsupported([True], [True]) is None


def test_intervals_hold_the_figure_and_draw_contexts_together() -> None:
    rows = [row(at, at % 3 > 0, f"context {at // 6}") for at in range(60)]
    scores = [0.2 + 0.6 * (at % 3 > 0) - 0.7 * (at % 7 == 0) for at in range(60)]
    found = figures(rows, scores, threshold=0.5, draws=200)
    assert found.rows == 60
    for one in (found.auroc, found.balanced_accuracy, found.f1_unsupported):
        assert one.value is not None
        assert one.low is not None
        assert one.high is not None
        assert one.low <= one.value <= one.high
        assert one.high - one.low > 0.01
    alone = figures([row(at, at % 3 > 0, "the same") for at in range(60)], scores, threshold=0.5, draws=50)
    assert alone.auroc.low == alone.auroc.high == alone.auroc.value


def test_a_score_that_is_no_number_is_refused() -> None:
    with pytest.raises(ValueError, match="finite"):
        figures([row(1, True, "a")], [float("nan")], threshold=0.5)


def test_rows_are_read_with_context_or_evidence(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        {"id": 7, "context": "A.", "claim": "B.", "label": 1, "group": "g"},
        "",
        {"evidence": ["A.", "C."], "claim": "B.", "label": 0},
    )
    first, second = read_rows(path)
    assert (first.id, first.label, first.group, first.context) == ("7", True, "g", "A.")
    assert [(one.number, one.text) for one in second.evidence] == [(1, "A."), (2, "C.")]
    assert second.id == "3"
    assert not second.label


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ("{", "no JSON"),
        ("[1]", "no JSON object"),
        ({"context": "A.", "label": 1}, "`claim`"),
        ({"claim": "A.", "label": 1}, "`context`"),
        ({"claim": "A.", "context": "A.", "label": "yes"}, "`label`"),
        ({"claim": "A.", "context": "A."}, "`label`"),
        ({"claim": "A.", "evidence": [1], "label": 1}, "`evidence`"),
    ],
)
def test_a_row_that_cannot_be_read_is_named_with_its_line(tmp_path: Path, bad: object, reason: str) -> None:
    path = write(tmp_path, {"context": "A.", "claim": "B.", "label": 1}, bad)
    with pytest.raises(UsageError, match=f"line 2: .*{reason}"):
        list(read_rows(path))


def test_a_file_that_is_absent_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"nothing\.jsonl"):
        list(read_rows(tmp_path / "nothing.jsonl"))
