"""How well a confidence tells questions that documents answer from those they do not.

Takes: for each question its confidence, whether it was answered, whether the documents answer it, and whether the
answer was right. Returns: AUROC, precision and recall of refusing, and the risk-coverage curve.
Method: AUROC by ranks, ties count half; refusing is the positive class. The curve (El-Yaniv and Wiener, JMLR 11, 2010)
answers the most confident share of all questions and counts what of it is wrong: an answer to a question that has none
is wrong, and so is one from the wrong document. Cost: none. What can go wrong: one class alone has no AUROC.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cognicraft.evaluate.grounding import auroc

_POINTS = 20


@dataclass(frozen=True, slots=True)
class Asked:
    """One question. right: the answer comes from a document that is judged to answer it."""

    id: str
    confidence: float
    answered: bool
    answerable: bool
    right: bool


@dataclass(frozen=True, slots=True)
class Risk:
    """coverage: share of all questions answered; risk: share of these that is wrong; threshold: least confidence."""

    coverage: float
    risk: float
    threshold: float


@dataclass(frozen=True, slots=True)
class AbstentionFigures:
    """refusal_precision: share of the refused that have no answer; refusal_recall: share of those that was refused."""

    auroc: float | None
    refusal_precision: float | None
    refusal_recall: float | None
    curve: tuple[Risk, ...]


def abstention_figures(asked: Sequence[Asked]) -> AbstentionFigures:
    """Larger is better, but for risk."""
    refused = [one for one in asked if not one.answered]
    without = [one for one in asked if not one.answerable]
    hits = sum(not one.answerable for one in refused)
    return AbstentionFigures(
        auroc=auroc([one.answerable for one in asked], [one.confidence for one in asked]) if asked else None,
        refusal_precision=hits / len(refused) if refused else None,
        refusal_recall=hits / len(without) if without else None,
        curve=risk_coverage(asked),
    )


def risk_coverage(asked: Sequence[Asked], *, points: int = _POINTS) -> tuple[Risk, ...]:
    """At even steps of coverage, up to all; questions of equal confidence are answered together."""
    ranked = sorted(asked, key=lambda one: -one.confidence)
    if not ranked:
        return ()
    curve: list[Risk] = []
    wrong = 0
    for count, one in enumerate(ranked, start=1):
        wrong += not one.right
        together = count < len(ranked) and ranked[count].confidence == one.confidence
        if not together and count * points >= (len(curve) + 1) * len(ranked):
            curve.append(Risk(count / len(ranked), wrong / count, one.confidence))
    return tuple(curve)


def threshold_for(curve: Sequence[Risk], *, most_wrong: float) -> Risk | None:
    """The point of most coverage at which no more than that share (0..1) is wrong; None where there is none."""
    fitting = [point for point in curve if point.risk <= most_wrong]
    return max(fitting, key=lambda point: point.coverage, default=None)
