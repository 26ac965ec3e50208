"""One-bit MaxSim and its time budget."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cognicraft.records import ByteArray
from cognicraft.search.rerank import LateInteraction, maxsim


def codes(*, tokens: int, width: int = 48, seed: int = 0) -> ByteArray:
    return np.random.default_rng(seed).integers(0, 256, (tokens, width), dtype=np.uint8)


def plain(query: ByteArray, document: ByteArray, sharpness: float) -> float:
    """The definition, bit by bit."""
    bits = [np.unpackbits(side, axis=1).astype(int) for side in (query, document)]
    best = []
    for token in bits[0]:
        hamming = min(int((token != other).sum()) for other in bits[1])
        best.append(max(0.0, float(np.cos(np.pi * hamming / token.size))) ** sharpness)
    return float(np.mean(best))


@given(
    st.integers(1, 6), st.lists(st.integers(1, 9), min_size=1, max_size=5), st.sampled_from([1, 6, 8, 48, 50]),
    st.sampled_from([1.0, 6.0]),
)  # fmt: skip
def test_it_is_the_definition(query: int, lengths: list[int], width: int, sharpness: float) -> None:
    asked = codes(tokens=query, width=width, seed=99)
    documents = [codes(tokens=length, width=width, seed=n) for n, length in enumerate(lengths)]
    found = maxsim(asked, documents, sharpness=sharpness)
    expected = [plain(asked, document, sharpness) for document in documents]
    assert found == pytest.approx(expected, abs=1e-5)


def test_a_document_that_holds_the_question_scores_one() -> None:
    asked = codes(tokens=5)
    document = np.concatenate((codes(tokens=20, seed=3), asked))
    assert maxsim(asked, [document])[0] == pytest.approx(1.0)


def test_more_tokens_never_score_less() -> None:
    asked, short = codes(tokens=5), codes(tokens=10, seed=1)
    longer = np.concatenate((short, codes(tokens=10, seed=2)))
    low, high = maxsim(asked, [short, longer])
    assert high >= low


def test_what_is_not_there_has_no_score() -> None:
    asked, empty = codes(tokens=3), codes(tokens=0)
    found = maxsim(asked, [None, codes(tokens=4, seed=1), empty])
    assert np.isnan(found).tolist() == [True, False, True]
    assert np.isnan(maxsim(empty, [asked])).all()
    assert len(maxsim(asked, [])) == 0


def test_codes_of_another_width_are_refused() -> None:
    with pytest.raises(ValueError, match="different widths"):
        maxsim(codes(tokens=2, width=48), [codes(tokens=2, width=32)])


class Clock:
    """Moves on by a millisecond a candidate that was fetched."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s

    def fetch(self, ids: Sequence[str]) -> list[ByteArray | None]:
        self.now_s += 0.001 * len(ids)
        return [codes(tokens=4, seed=int(i)) for i in ids]


def test_the_budget_bounds_the_depth_and_the_rest_is_counted() -> None:
    clock = Clock()
    rerank = LateInteraction(budget_ms=50, depth=200, first_batch=10, clock=clock)
    result = rerank([str(n) for n in range(200)], query_codes=codes(tokens=3, seed=500), codes_of=clock.fetch)
    assert len(result.ranking) == 50
    assert result.out_of_time == 150
    assert result.asked == 200
    assert result.elapsed_ms == pytest.approx(50)
    assert {hit.chunk_id for hit in result.ranking} == {str(n) for n in range(50)}  # the best candidates come first


def test_the_first_batch_is_done_whatever_the_budget() -> None:
    clock = Clock()
    result = LateInteraction(budget_ms=0.001, first_batch=8, clock=clock)(
        [str(n) for n in range(20)], query_codes=codes(tokens=3), codes_of=clock.fetch
    )
    assert len(result.ranking) == 8


def test_within_the_budget_every_candidate_is_scored_best_first() -> None:
    documents = {str(n): codes(tokens=5, seed=n) for n in range(100)}
    asked = documents["42"][:3]
    result = LateInteraction(budget_ms=60_000)(
        list(documents), query_codes=asked, codes_of=lambda ids: [documents[i] for i in ids]
    )
    assert result.ranking[0].chunk_id == "42"
    assert len(result.ranking) == 100
    assert result.out_of_time == result.without_codes == 0


def test_candidates_without_codes_are_counted() -> None:
    result = LateInteraction()(["1", "2"], query_codes=codes(tokens=2), codes_of=lambda ids: [None for _ in ids])
    assert result.ranking == ()
    assert result.without_codes == 2


@pytest.mark.parametrize("arguments", [{"budget_ms": 0}, {"first_batch": 0}, {"budget_ms": float("nan")}])
def test_a_budget_that_allows_nothing_is_refused(arguments: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="above 0"):
        LateInteraction(**arguments)  # type: ignore[arg-type]


def test_only_the_first_candidates_up_to_the_depth_are_scored() -> None:
    fetched: list[str] = []

    def codes_of(ids: Sequence[str]) -> list[ByteArray | None]:
        fetched.extend(ids)
        return [codes(tokens=3) for _ in ids]

    names = [f"{number:02}" for number in range(20)]
    result = LateInteraction(depth=7)(names, query_codes=codes(tokens=2), codes_of=codes_of)
    assert fetched == names[:7]
    assert {hit.chunk_id for hit in result.ranking} == set(names[:7])
    assert result.asked == 7
    assert result.out_of_time == 0
