"""How far an answer can be relied on: a figure that can be worked out by hand, and a calibrated probability.

Takes: the verdicts of an answer's claims. Returns: `confidence`, 0..1, and `probability`, 0..1; None where there is
    nothing to say it of. Larger is better.
Method: confidence is (supported + 0.5 partial) / total - 0.1 unsupported + 0.1 if none is unsupported, clamped.
    Contradicted claims count as unsupported; unverified ones in the total and nowhere else; the 0.1 is given only where
    something is (partly) supported. The probability is a logistic model (Platt) over the confidence, the least and the
    mean score of the claims, with the figures of `confidence_weights.json`, found by `scripts/train_confidence.py`.
Cost: none worth counting.
What can go wrong: the figures are those of the data they were found on, which the file names; the probability that
    all is supported by the passages is not that it is true.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from cognicraft.records import Verdict, VerdictKind

UNSUPPORTED_PENALTY = 0.1
NONE_UNSUPPORTED_BONUS = 0.1
PARTIAL_WORTH = 0.5
FAILING: frozenset[VerdictKind] = frozenset({"UNSUPPORTED", "CONTRADICTED"})


@dataclass(frozen=True, slots=True)
class Weights:
    """Of the logistic model. None of the three is below 0: a better check never makes an answer less probable."""

    confidence: float
    least_score: float
    mean_score: float
    bias: float


def confidence(verdicts: Sequence[Verdict]) -> float | None:
    """0..1, larger is better; None without claims: an answer that states nothing was not shown to be right."""
    if not verdicts:
        return None
    kinds = [verdict.kind for verdict in verdicts]
    supported = kinds.count("SUPPORTED")
    partial = kinds.count("PARTIALLY_SUPPORTED")
    unsupported = sum(kind in FAILING for kind in kinds)
    value = (supported + PARTIAL_WORTH * partial) / len(kinds) - UNSUPPORTED_PENALTY * unsupported
    if not unsupported and (supported or partial):
        value += NONE_UNSUPPORTED_BONUS
    # Rounded, so that 0.7 is at a threshold of 0.7 and not a hair below it.
    return round(min(1.0, max(0.0, value)), 9)


def probability(verdicts: Sequence[Verdict], *, weights: Weights | None = None) -> float | None:
    """0..1: how probably all that the answer states is supported. None without claims, or where none was checked.

    weights: in place of those shipped.
    """
    described = features(verdicts)
    if described is None or all(verdict.kind == "UNVERIFIED" for verdict in verdicts):
        return None
    used = weights or shipped_weights()
    sum_ = used.bias
    for weight, value in zip((used.confidence, used.least_score, used.mean_score), described, strict=True):
        sum_ += weight * value
    return 1 / (1 + math.exp(-max(-700.0, min(700.0, sum_))))


def features(verdicts: Sequence[Verdict]) -> tuple[float, float, float] | None:
    """Confidence, least and mean score of the claims, each 0..1; a claim that was not checked scores 0."""
    value = confidence(verdicts)
    if value is None:
        return None
    scores = [0.0 if verdict.kind == "UNVERIFIED" else verdict.score for verdict in verdicts]
    return value, min(scores), sum(scores) / len(scores)


@cache
def shipped_weights() -> Weights:
    stored = json.loads((Path(__file__).parent / "confidence_weights.json").read_text(encoding="utf-8"))
    return Weights(**{name: float(value) for name, value in stored["weights"].items()})
