"""Our metrics give what trec_eval gives, through ir-measures, on random judgements and rankings."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cognicraft.evaluate import metrics

ir_measures = pytest.importorskip("ir_measures", reason="the package ir-measures is not installed")

_DOCUMENTS = [f"d{number}" for number in range(30)]
_Metric = Callable[[list[str], dict[str, int]], float]

_PAIRS: dict[str, _Metric] = {
    "nDCG@10": lambda ranking, relevance: metrics.ndcg(ranking, relevance, k=10),
    "nDCG@3": lambda ranking, relevance: metrics.ndcg(ranking, relevance, k=3),
    "R@5": lambda ranking, relevance: metrics.recall(ranking, relevance, k=5),
    "R@20": lambda ranking, relevance: metrics.recall(ranking, relevance, k=20),
    "P@5": lambda ranking, relevance: metrics.precision(ranking, relevance, k=5),
    "P@20": lambda ranking, relevance: metrics.precision(ranking, relevance, k=20),
    "Success@1": lambda ranking, relevance: metrics.success(ranking, relevance, k=1),
    "Success@5": lambda ranking, relevance: metrics.success(ranking, relevance, k=5),
    "RR@10": lambda ranking, relevance: metrics.reciprocal_rank(ranking, relevance, k=10),
    "RR": lambda ranking, relevance: metrics.reciprocal_rank(ranking, relevance),
    "AP": lambda ranking, relevance: metrics.average_precision(ranking, relevance),
    "AP@10": lambda ranking, relevance: metrics.average_precision(ranking, relevance, k=10),
}


@settings(max_examples=60, deadline=None)
@given(
    ranking=st.lists(st.sampled_from(_DOCUMENTS), unique=True, min_size=1),
    relevance=st.dictionaries(st.sampled_from(_DOCUMENTS), st.integers(0, 3), min_size=1),
)
def test_every_metric_equals_trec_eval(ranking: list[str], relevance: dict[str, int]) -> None:
    measures = {name: ir_measures.parse_measure(name) for name in _PAIRS}
    run = {"q": {document: float(len(ranking) - place) for place, document in enumerate(ranking)}}
    theirs = ir_measures.calc_aggregate(list(measures.values()), {"q": relevance}, run)
    for name, ours in _PAIRS.items():
        assert ours(ranking, relevance) == pytest.approx(theirs[measures[name]], abs=1e-9), name


@settings(max_examples=20, deadline=None)
@given(
    data=st.lists(
        st.tuples(
            st.lists(st.sampled_from(_DOCUMENTS), unique=True, min_size=1),
            st.dictionaries(st.sampled_from(_DOCUMENTS), st.integers(0, 3), min_size=1),
        ),
        min_size=1,
        max_size=6,
    )
)
def test_the_summary_equals_the_mean_that_trec_eval_reports(
    data: list[tuple[list[str], dict[str, int]]],
) -> None:
    names = {"ndcg@10": "nDCG@10", "recall@100": "R@100", "mrr@10": "RR@10", "map": "AP"}
    measures = {ours: ir_measures.parse_measure(theirs) for ours, theirs in names.items()}
    qrels = {str(number): relevance for number, (_, relevance) in enumerate(data)}
    run = {
        str(number): {document: float(len(ranking) - place) for place, document in enumerate(ranking)}
        for number, (ranking, _) in enumerate(data)
    }
    theirs = ir_measures.calc_aggregate(list(measures.values()), qrels, run)
    summary = metrics.summarize(
        {str(number): metrics.measure(ranking, relevance) for number, (ranking, relevance) in enumerate(data)}
    )
    for name, parsed in measures.items():
        assert summary[name] == pytest.approx(theirs[parsed], abs=1e-9), name
