"""How well a score tells supported claims from unsupported ones.

Takes: rows `{id, context or evidence, claim, label 1 = supported, group?}`, one JSON object a line, and a score for
each. Returns: AUROC, balanced accuracy and F1 of the unsupported class, each with a 95 % interval.
Method: AUROC by ranks, ties count half (Hanley and McNeil, Radiology 143, 1982); intervals by the percentile bootstrap
over groups (Efron, 1979): rows of one context are drawn together, since they are right or wrong together; rows of one
    `group` where the file has at least 20 of them.
Cost: 1,000 draws of the rows; about a second for thousands of rows.
What can go wrong: a set with one class has no AUROC (None). A broken line is a UsageError with its number.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cognicraft.errors import UsageError
from cognicraft.records import EvidenceText

_SHAPE = 'Each line is {"id", "context" or "evidence", "claim", "label": 1 supported or 0 not, "group"?}.'
_DRAWS = 1_000
_FEWEST_GROUPS = 20

Labels = npt.NDArray[np.bool_]
Scores = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class GroundingRow:
    """A claim with its evidence. label: whether the evidence supports it. group: named by the file, else ""."""

    id: str
    evidence: tuple[EvidenceText, ...]
    claim: str
    label: bool
    group: str = ""

    @property
    def context(self) -> str:
        """What rows that share their evidence have in common."""
        return "\n".join(one.text for one in self.evidence)


@dataclass(frozen=True, slots=True)
class Measured:
    """A figure with its 95 % interval. None where it is not defined."""

    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class GroundingFigures:
    """Larger is better. threshold: from here on a score counts as supported."""

    rows: int
    supported: int
    auroc: Measured
    balanced_accuracy: Measured
    f1_unsupported: Measured
    threshold: float


def read_rows(path: Path) -> Iterator[GroundingRow]:
    """The rows of a JSONL file, in order; blank lines are left out.

    `evidence` is a text or a list of texts, numbered from 1. Raises: UsageError for a file or line that cannot be read.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot be read: {error}", remedy=_SHAPE) from error
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield _row(line, path=path, number=number)


def _row(line: str, *, path: Path, number: int) -> GroundingRow:
    def refuse(reason: str) -> UsageError:
        return UsageError(f"{path}, line {number}: {reason}", remedy=_SHAPE)

    try:
        entry: Any = json.loads(line)
    except ValueError as error:
        raise refuse(f"no JSON: {error}") from error
    if not isinstance(entry, dict):
        raise refuse("no JSON object")
    claim, label = entry.get("claim"), entry.get("label")
    given = entry["evidence"] if entry.get("evidence") is not None else entry.get("context")
    texts = [given] if isinstance(given, str) else given
    if not isinstance(claim, str) or not claim.strip():
        raise refuse("`claim` is no text")
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise refuse("neither `context` nor `evidence` is a text or a list of texts")
    if label not in (0, 1):
        raise refuse(f"`label` is {label!r}, not 1 (supported) or 0 (not)")
    evidence = tuple(EvidenceText(place, text) for place, text in enumerate(texts, start=1))
    group = entry.get("group")
    return GroundingRow(str(entry.get("id", number)), evidence, claim, bool(label), "" if group is None else str(group))


def auroc(labels: Sequence[bool] | Labels, scores: Sequence[float] | Scores) -> float | None:
    """Probability that a supported claim scores above an unsupported one; a tie counts half. None with one class."""
    return _auroc(np.asarray(labels, dtype=bool), np.asarray(scores, dtype=np.float64))


def _auroc(labels: Labels, scores: Scores) -> float | None:
    positive, negative = int(labels.sum()), int((~labels).sum())
    if not positive or not negative:
        return None
    _, places, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2.0)[places]
    return float((ranks[labels].sum() - positive * (positive + 1) / 2.0) / (positive * negative))


def balanced_accuracy(labels: Sequence[bool] | Labels, supported: Sequence[bool] | Labels) -> float | None:
    """Mean of the shares of both classes that are told right. None with one class."""
    truth, said = np.asarray(labels, dtype=bool), np.asarray(supported, dtype=bool)
    if truth.all() or not truth.any():
        return None
    return float((said[truth].mean() + (~said[~truth]).mean()) / 2.0)


def f1_unsupported(labels: Sequence[bool] | Labels, supported: Sequence[bool] | Labels) -> float | None:
    """2 x right / (said + true), of the unsupported class. None where there is none, and none is said."""
    truth, said = ~np.asarray(labels, dtype=bool), ~np.asarray(supported, dtype=bool)
    total = int(truth.sum()) + int(said.sum())
    return 2.0 * int((truth & said).sum()) / total if total else None


def figures(
    rows: Sequence[GroundingRow], scores: Sequence[float], *, threshold: float, draws: int = _DRAWS, seed: int = 0
) -> GroundingFigures:
    """The figures of these scores, with intervals by the bootstrap over contexts.

    threshold: scores from here on count as supported. Raises: ValueError where the lengths differ or a score is none.
    """
    labels = np.array([row.label for row in rows], dtype=bool)
    given = np.asarray(scores, dtype=np.float64)
    if len(given) != len(labels) or not np.isfinite(given).all():
        raise ValueError("one finite score for each row is needed")
    named = len({row.group for row in rows}) >= _FEWEST_GROUPS
    members: dict[str, list[int]] = {}
    for index, row in enumerate(rows):
        members.setdefault(row.group if named else row.context, []).append(index)
    groups = [np.array(one, dtype=np.intp) for one in members.values()]
    random = np.random.default_rng(seed)
    drawn: list[list[float | None]] = [[], [], []]
    for _ in range(draws if groups else 0):
        chosen = np.concatenate([groups[place] for place in random.integers(0, len(groups), len(groups))])
        for values, value in zip(drawn, _all_three(labels[chosen], given[chosen], threshold), strict=True):
            values.append(value)
    whole = _all_three(labels, given, threshold)
    found = [_measured(value, values) for value, values in zip(whole, drawn, strict=True)]
    return GroundingFigures(len(labels), int(labels.sum()), found[0], found[1], found[2], threshold)


def _all_three(labels: Labels, scores: Scores, threshold: float) -> tuple[float | None, float | None, float | None]:
    supported = scores >= threshold
    return _auroc(labels, scores), balanced_accuracy(labels, supported), f1_unsupported(labels, supported)


def _measured(value: float | None, drawn: Sequence[float | None]) -> Measured:
    known = [one for one in drawn if one is not None]
    if value is None or not known:
        return Measured(value, None, None)
    low, high = np.quantile(known, [0.025, 0.975])
    return Measured(value, float(low), float(high))
