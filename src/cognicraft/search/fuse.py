"""Rankings of several arms to one ranking: pure functions, by name.

Takes: `Mapping[arm, Ranking]` and the weight of each arm (an arm not named weighs 1).
Returns: one `Ranking` over the union; ties by chunk id.
Method: stated with its source in each docstring.
Cost: linear in the hits.
What can go wrong: raw scores of two arms are never added, a rank is never made up for a hit that an arm did not give.
    A score that is not a number is refused. A list of one, or of equal scores, says nothing about order: each function
    states what it makes of that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Protocol

from cognicraft.errors import UsageError
from cognicraft.records import Ranking, Scored

Rankings = Mapping[str, Ranking]
Weights = Mapping[str, float]


class Fusion(Protocol):
    """What every function here can be called as."""

    def __call__(self, rankings: Rankings, *, weights: Weights | None = None) -> Ranking: ...


def minmax(rankings: Rankings, *, weights: Weights | None = None) -> Ranking:
    """Weighted mean of (s - min) / (max - min) over each list; a hit absent from a list scores 0 there. In [0, 1].

    A list of one hit or of equal scores gives 1 to each of its hits. Source: Lee, "Analyses of multiple evidence
    combination", SIGIR 1997; Bruch, Gai, Ingber, "An analysis of fusion functions for hybrid retrieval", TOIS 2023.
    Raises: UsageError for a score that is not finite or a weight that is negative.
    """

    def normalise(scores: list[float]) -> tuple[list[float], float]:
        low, high = min(scores), max(scores)
        return ([(s - low) / (high - low) for s in scores] if high > low else [1.0] * len(scores)), 0.0

    return _weighted(rankings, weights, normalise, mean=True)


def zscore(rankings: Rankings, *, weights: Weights | None = None) -> Ranking:
    """Weighted sum of (s - mean) / standard deviation over each list; a hit absent from a list scores its minimum.

    The deviation is that of the list itself (divided by n). A list of one hit or of equal scores gives 0 to its hits
    and -1 to those absent: found is better than not found. Source: Montague and Aslam, "Relevance score normalization
    for metasearch", CIKM 2001 (zero mean, unit variance).
    Raises: UsageError for a score that is not finite or a weight that is negative.
    """

    def normalise(scores: list[float]) -> tuple[list[float], float]:
        mean = math.fsum(scores) / len(scores)
        deviation = math.sqrt(math.fsum((s - mean) ** 2 for s in scores) / len(scores))
        if deviation <= 1e-12 * max(1.0, abs(mean)):
            return [0.0] * len(scores), -1.0
        values = [(s - mean) / deviation for s in scores]
        return values, min(values)

    return _weighted(rankings, weights, normalise)


def rrf(rankings: Rankings, *, weights: Weights | None = None, k: float = 60.0, first_rank: int = 1) -> Ranking:
    """Sum of weight / (k + rank) over the lists that hold the hit; ranks count from `first_rank`.

    Only ranks count, so the length and the scores of a list do not matter. Source: Cormack, Clarke, Büttcher,
    "Reciprocal rank fusion outperforms Condorcet and individual rank learning methods", SIGIR 2009 (k = 60, from 1).
    Raises: UsageError for k + first_rank not above 0, a score that is not finite, or a weight that is negative.
    """
    if not k + first_rank > 0:
        raise UsageError(f"RRF needs k + first_rank above 0, not {k} + {first_rank}.", remedy="k is 60 as a rule.")
    terms: dict[str, list[float]] = {}
    for weight, ranking in _checked(rankings, weights):
        for position, hit in enumerate(ranking):
            terms.setdefault(hit.chunk_id, []).append(weight / (k + first_rank + position))
    return ranked({chunk_id: math.fsum(found) for chunk_id, found in terms.items()})


def dbsf(rankings: Rankings, *, weights: Weights | None = None) -> Ranking:
    """Weighted sum of (s - low) / (high - low) with low, high = mean ∓ 3 sample standard deviations; absent scores 0.

    A list of one hit or of equal scores gives 0.5 to each of its hits. Source: Mazzeschi, "Distribution-based score
    fusion", 2023, as in Qdrant (deviation divided by n - 1, values not clipped).
    Raises: UsageError for a score that is not finite or a weight that is negative.
    """

    def normalise(scores: list[float]) -> tuple[list[float], float]:
        count = len(scores)
        mean = math.fsum(scores) / count
        spread = math.sqrt(math.fsum((s - mean) ** 2 for s in scores) / (count - 1)) if count > 1 else 0.0
        if spread <= 1e-12 * max(1.0, abs(mean)):
            return [0.5] * count, 0.0
        return [(s - mean + 3 * spread) / (6 * spread) for s in scores], 0.0

    return _weighted(rankings, weights, normalise)


FUSIONS: Mapping[str, Fusion] = {"zscore": zscore, "minmax": minmax, "rrf": rrf, "dbsf": dbsf}
"""By the name that settings use."""


def ranked(scores: Mapping[str, float], *, limit: int | None = None) -> Ranking:
    """Scores as a `Ranking`: best first, ties by chunk id."""
    hits = sorted(scores.items(), key=lambda item: (-item[1], item[0]))
    return tuple(Scored(chunk_id, score) for chunk_id, score in hits[:limit])


def _weighted(
    rankings: Rankings,
    weights: Weights | None,
    normalise: Callable[[list[float]], tuple[list[float], float]],
    *,
    mean: bool = False,
) -> Ranking:
    lists = _checked(rankings, weights)
    union = {hit.chunk_id for _, ranking in lists for hit in ranking}
    terms: dict[str, list[float]] = {chunk_id: [] for chunk_id in union}
    weight_sum = math.fsum(weight for weight, _ in lists) or 1.0
    for weight, ranking in lists:
        values, absent = normalise([hit.score for hit in ranking])
        here = dict(zip((hit.chunk_id for hit in ranking), values, strict=True))
        for chunk_id, found in terms.items():
            found.append(weight * here.get(chunk_id, absent))
    # fsum: the total must not depend on the order in which the arms are given.
    divisor = weight_sum if mean else 1.0
    return ranked({chunk_id: math.fsum(found) / divisor for chunk_id, found in terms.items()})


def _checked(rankings: Rankings, weights: Weights | None) -> list[tuple[float, Ranking]]:
    """(weight, ranking) of each list that holds something."""
    checked: list[tuple[float, Ranking]] = []
    for arm, ranking in rankings.items():
        weight = 1.0 if weights is None else float(weights.get(arm, 1.0))
        if not (math.isfinite(weight) and weight >= 0):
            raise UsageError(f"The weight of {arm} is {weight}.", remedy="A weight is 0 or more.")
        for hit in ranking:
            if not math.isfinite(hit.score):
                raise UsageError(
                    f"The arm {arm} gave {hit.chunk_id} the score {hit.score}, which is not a number to rank by.",
                    remedy="This is a fault of that arm: leave it out and report it.",
                )
        if ranking:
            checked.append((weight, ranking))
    return checked
