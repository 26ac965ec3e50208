"""Worked examples: every number here can be checked with a pencil."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cognicraft.evaluate.metrics import (
    SUMMARY_NAMES,
    average_precision,
    measure,
    ndcg,
    precision,
    recall,
    reciprocal_rank,
    success,
    summarize,
)

RANKING = ["a", "b", "c", "d", "e"]
RELEVANCE = {"b": 2, "d": 1, "z": 1, "a": 0, "c": -1}


def test_ndcg_takes_linear_gains_discounted_by_the_logarithm_of_the_rank() -> None:
    gained = 2 / math.log2(3) + 1 / math.log2(5)
    ideal = 2 / math.log2(2) + 1 / math.log2(3) + 1 / math.log2(4)
    assert ndcg(RANKING, RELEVANCE, k=10) == pytest.approx(gained / ideal)


def test_ndcg_at_k_compares_with_the_best_first_k_only() -> None:
    assert ndcg(RANKING, RELEVANCE, k=2) == pytest.approx((2 / math.log2(3)) / (2 + 1 / math.log2(3)))
    assert ndcg(["b"], RELEVANCE, k=1) == 1.0


def test_ndcg_of_the_example_of_jarvelin_and_kekalainen_style_graded_list() -> None:
    # Grades 3 2 3 0 1 2 with discount 1 / log2(rank + 1): 6.861 over 7.141.
    grades = [3, 2, 3, 0, 1, 2]
    relevance = {str(place): grade for place, grade in enumerate(grades)}
    assert ndcg([str(place) for place in range(6)], relevance, k=6) == pytest.approx(0.9608, abs=1e-4)


def test_recall_counts_relevant_documents_that_were_never_found() -> None:
    assert recall(RANKING, RELEVANCE, k=1) == 0.0
    assert recall(RANKING, RELEVANCE, k=2) == pytest.approx(1 / 3)
    assert recall(RANKING, RELEVANCE, k=100) == pytest.approx(2 / 3)


def test_precision_divides_by_k_even_where_the_ranking_is_shorter() -> None:
    assert precision(RANKING, RELEVANCE, k=4) == 0.5
    assert precision(RANKING, RELEVANCE, k=10) == 0.2


def test_reciprocal_rank_counts_from_one_and_stops_at_k() -> None:
    assert reciprocal_rank(RANKING, RELEVANCE, k=10) == 0.5
    assert reciprocal_rank(RANKING, RELEVANCE, k=1) == 0.0
    assert reciprocal_rank(RANKING, {"e": 1}) == 0.2


def test_average_precision_divides_by_all_relevant_documents() -> None:
    assert average_precision(RANKING, RELEVANCE) == pytest.approx((1 / 2 + 2 / 4) / 3)
    assert average_precision(RANKING, RELEVANCE, k=2) == pytest.approx((1 / 2) / 3)


def test_success_is_all_or_nothing() -> None:
    assert success(RANKING, RELEVANCE, k=1) == 0.0
    assert success(RANKING, RELEVANCE, k=2) == 1.0


def test_nothing_relevant_and_nothing_found_score_nothing() -> None:
    assert set(measure(RANKING, {}).values()) == {0.0}
    assert set(measure(RANKING, {"a": 0}).values()) == {0.0}
    assert set(measure([], RELEVANCE).values()) == {0.0}


@pytest.mark.parametrize("metric", [ndcg, recall, precision, success, reciprocal_rank, average_precision])
def test_a_document_given_twice_and_k_below_one_are_refused(metric: object) -> None:
    assert callable(metric)
    with pytest.raises(ValueError, match="'b' twice"):
        metric(["a", "b", "b"], RELEVANCE, k=5)
    with pytest.raises(ValueError, match="k is 0"):
        metric(["a"], RELEVANCE, k=0)


def test_the_summary_is_the_mean_over_queries_under_the_agreed_names() -> None:
    per_query = {"one": measure(["a"], {"a": 1}), "two": measure(["b", "a"], {"a": 1})}
    summary = summarize(per_query)
    assert tuple(summary) == SUMMARY_NAMES
    assert summary["success@1"] == 0.5
    assert summary["mrr@10"] == summary["map"] == 0.75
    assert summary["ndcg@10"] == pytest.approx((1 + 1 / math.log2(3)) / 2)


def test_the_summary_of_no_queries_is_zero_under_the_same_names() -> None:
    assert summarize({}) == dict.fromkeys(SUMMARY_NAMES, 0.0)


_IDS = st.sampled_from("abcdefghijkl")


@given(
    ranking=st.lists(_IDS, unique=True),
    relevance=st.dictionaries(_IDS, st.integers(-1, 3)),
    k=st.integers(1, 15),
)
def test_every_metric_stays_between_nothing_and_all_and_recall_never_falls(
    ranking: list[str], relevance: dict[str, int], k: int
) -> None:
    for metric in (ndcg, recall, precision, success, reciprocal_rank, average_precision):
        assert 0.0 <= metric(ranking, relevance, k=k) <= 1.0 + 1e-12
    assert recall(ranking, relevance, k=k) <= recall(ranking, relevance, k=k + 1)
    relevant_first = sorted(relevance, key=lambda document: -relevance[document])
    if any(grade > 0 for grade in relevance.values()):
        assert ndcg(relevant_first, relevance, k=k) == pytest.approx(1.0)
        assert average_precision(relevant_first, relevance) == pytest.approx(1.0)
