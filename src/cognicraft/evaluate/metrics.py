"""Retrieval metrics: how good one ranking is, and the means over a set of queries.

Takes: `ranking`, document ids best first, each at most once, and `relevance`, document id -> judged grade
    (an id that is not in it counts as not relevant; a grade of 0 or less does too).
Returns: a number from 0 to 1, larger is better.
Source: the definitions of trec_eval, so that figures can be put beside published ones. nDCG takes *linear*
    gains (a grade of 2 is worth twice a grade of 1, as trec_eval and BEIR count, not 2^grade - 1) and the
    discount 1 / log2(rank + 1), ranks from 1: Järvelin and Kekäläinen, "Cumulated gain-based evaluation of IR
    techniques", ACM TOIS 20(4), 2002.
Cost: linear in the ranking, and in sorting the grades.
What can go wrong: an id given twice would be counted twice, so it is refused (ValueError), as is k < 1. A
    query without any relevant document scores 0 everywhere, as in trec_eval. A ranking shorter than k is
    scored as it stands: the missing places are not relevant.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

SUMMARY_NAMES = (
    "ndcg@10",
    "recall@5",
    "recall@10",
    "recall@20",
    "recall@100",
    "mrr@10",
    "map",
    "success@1",
    "success@5",
    "success@10",
)
"""What `measure` and `summarize` give, in this order."""


def ndcg(ranking: Sequence[str], relevance: Mapping[str, int], *, k: int) -> float:
    """Discounted gain of the first k over that of the best possible first k. Linear gains.

    The best possible order is over all judged documents, found or not. 0 where nothing is relevant.
    Raises: ValueError for an id given twice or k < 1.
    """
    _check(ranking, k)
    ideal = sorted((grade for grade in relevance.values() if grade > 0), reverse=True)[:k]
    if not ideal:
        return 0.0
    gained = _discounted([max(relevance.get(document, 0), 0) for document in ranking[:k]])
    return gained / _discounted(ideal)


def recall(ranking: Sequence[str], relevance: Mapping[str, int], *, k: int) -> float:
    """Share of the relevant documents that stand in the first k; 0 where nothing is relevant.

    Raises: ValueError for an id given twice or k < 1.
    """
    _check(ranking, k)
    relevant = _relevant(relevance)
    return len(relevant.intersection(ranking[:k])) / len(relevant) if relevant else 0.0


def precision(ranking: Sequence[str], relevance: Mapping[str, int], *, k: int) -> float:
    """Relevant documents in the first k, over k, also where the ranking is shorter than k.

    Raises: ValueError for an id given twice or k < 1.
    """
    _check(ranking, k)
    return len(_relevant(relevance).intersection(ranking[:k])) / k


def success(ranking: Sequence[str], relevance: Mapping[str, int], *, k: int) -> float:
    """1 where a relevant document stands in the first k, else 0.

    Raises: ValueError for an id given twice or k < 1.
    """
    _check(ranking, k)
    return float(not _relevant(relevance).isdisjoint(ranking[:k]))


def reciprocal_rank(ranking: Sequence[str], relevance: Mapping[str, int], *, k: int | None = None) -> float:
    """1 / rank of the first relevant document, 0 where the first k (None: the whole ranking) hold none.

    Raises: ValueError for an id given twice or k < 1.
    """
    _check(ranking, k)
    relevant = _relevant(relevance)
    for rank, document in enumerate(ranking[:k], start=1):
        if document in relevant:
            return 1 / rank
    return 0.0


def average_precision(ranking: Sequence[str], relevance: Mapping[str, int], *, k: int | None = None) -> float:
    """Mean, over all relevant documents, of the precision at the rank of each; one not found counts 0.

    Over the first k only, if k is given; the divisor stays the number of relevant documents, as in trec_eval.
    Raises: ValueError for an id given twice or k < 1.
    """
    _check(ranking, k)
    relevant = _relevant(relevance)
    found, total = 0, 0.0
    for rank, document in enumerate(ranking[:k], start=1):
        if document in relevant:
            found += 1
            total += found / rank
    return total / len(relevant) if relevant else 0.0


def measure(ranking: Sequence[str], relevance: Mapping[str, int]) -> dict[str, float]:
    """All of `SUMMARY_NAMES` for one query. `map` is average precision over the whole ranking that is given.

    Raises: ValueError for an id given twice.
    """
    return {
        "ndcg@10": ndcg(ranking, relevance, k=10),
        "recall@5": recall(ranking, relevance, k=5),
        "recall@10": recall(ranking, relevance, k=10),
        "recall@20": recall(ranking, relevance, k=20),
        "recall@100": recall(ranking, relevance, k=100),
        "mrr@10": reciprocal_rank(ranking, relevance, k=10),
        "map": average_precision(ranking, relevance),
        "success@1": success(ranking, relevance, k=1),
        "success@5": success(ranking, relevance, k=5),
        "success@10": success(ranking, relevance, k=10),
    }


def summarize(per_query: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Means over the queries of what `measure` gave for each; all 0 where there are no queries.

    `per_query`: query id -> the dict of `measure`. Every query weighs the same.
    Raises: KeyError where a query lacks one of `SUMMARY_NAMES`.
    """
    count = len(per_query)
    if not count:
        return dict.fromkeys(SUMMARY_NAMES, 0.0)
    return {name: math.fsum(values[name] for values in per_query.values()) / count for name in SUMMARY_NAMES}


def _relevant(relevance: Mapping[str, int]) -> frozenset[str]:
    return frozenset(document for document, grade in relevance.items() if grade > 0)


def _discounted(gains: Sequence[int]) -> float:
    return math.fsum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, start=1))


def _check(ranking: Sequence[str], k: int | None) -> None:
    if k is not None and k < 1:
        raise ValueError(f"k is {k}; it counts places in a ranking and is at least 1.")
    if len(set(ranking)) != len(ranking):
        twice = next(document for place, document in enumerate(ranking) if document in ranking[:place])
        raise ValueError(f"The ranking holds {twice!r} twice; keep each document's best place only.")
