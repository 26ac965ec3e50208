"""Fusion: what holds for every function, and the awkward lists."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cognicraft.errors import UsageError
from cognicraft.records import Ranking, Scored
from cognicraft.search.fuse import FUSIONS, dbsf, minmax, ranked, rrf, zscore

ALL = pytest.mark.parametrize("name", sorted(FUSIONS))


def ranking(**scores: float) -> Ranking:
    return ranked(scores)


def values(fused: Ranking) -> dict[str, float]:
    return {hit.chunk_id: hit.score for hit in fused}


scores = st.dictionaries(st.sampled_from("abcdefghij"), st.floats(-1e6, 1e6), max_size=8)
lists = st.dictionaries(st.sampled_from(["dense", "lexical", "third"]), scores.map(ranked), max_size=3)


@ALL
@settings(max_examples=40)
@given(lists=lists)
def test_the_union_comes_back_once_each_best_first_ties_by_id(name: str, lists: dict[str, Ranking]) -> None:
    fused = FUSIONS[name](lists)
    assert sorted(hit.chunk_id for hit in fused) == sorted({hit.chunk_id for one in lists.values() for hit in one})
    assert list(fused) == sorted(fused, key=lambda hit: (-hit.score, hit.chunk_id))
    assert all(math.isfinite(hit.score) for hit in fused)


@ALL
@settings(max_examples=40)
@given(lists=lists)
def test_the_order_of_the_arms_does_not_matter(name: str, lists: dict[str, Ranking]) -> None:
    shuffled = list(lists.items())
    random.Random(1).shuffle(shuffled)
    assert FUSIONS[name](dict(shuffled)) == FUSIONS[name](lists)


@pytest.mark.parametrize("name", ["minmax", "zscore", "dbsf"])
def test_scale_and_offset_of_an_arm_do_not_matter(name: str) -> None:
    lexical = ranking(a=3.0, b=2.0, c=0.5)
    stretched = ranking(a=3.0 * 40 - 7, b=2.0 * 40 - 7, c=0.5 * 40 - 7)
    dense = ranking(b=0.9, d=0.4)
    one, other = (FUSIONS[name]({"dense": dense, "lexical": x}) for x in (lexical, stretched))
    assert values(one) == pytest.approx(values(other))


@ALL
def test_one_arm_keeps_its_order(name: str) -> None:
    assert [hit.chunk_id for hit in FUSIONS[name]({"dense": ranking(a=1, b=3, c=2)})] == ["b", "c", "a"]


@ALL
def test_better_in_both_arms_is_better_fused(name: str) -> None:
    fused = FUSIONS[name]({"dense": ranking(a=0.9, b=0.8, c=0.1), "lexical": ranking(a=9, b=8, c=1)})
    assert [hit.chunk_id for hit in fused] == ["a", "b", "c"]


@ALL
def test_no_lists_and_empty_lists_give_nothing(name: str) -> None:
    assert FUSIONS[name]({}) == ()
    assert FUSIONS[name]({"dense": (), "lexical": ()}) == ()


@ALL
def test_an_empty_list_changes_nothing(name: str) -> None:
    only = {"dense": ranking(a=1.0, b=0.5)}
    assert FUSIONS[name]({**only, "lexical": ()}) == FUSIONS[name](only)


@ALL
def test_weight_zero_takes_the_order_from_the_other_arm(name: str) -> None:
    fused = FUSIONS[name](
        {"dense": ranking(a=1.0, b=0.5, c=0.2), "lexical": ranking(c=9.0, b=5.0, a=1.0)}, weights={"lexical": 0}
    )
    assert [hit.chunk_id for hit in fused] == ["a", "b", "c"]


@ALL
@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf])
def test_a_score_that_is_no_number_is_refused_by_name(name: str, score: float) -> None:
    with pytest.raises(UsageError, match=r"lexical.*b"):
        FUSIONS[name]({"lexical": (Scored("a", 1.0), Scored("b", score))})


@ALL
@pytest.mark.parametrize("weight", [-1.0, math.nan, math.inf])
def test_a_weight_below_zero_or_without_end_is_refused(name: str, weight: float) -> None:
    with pytest.raises(UsageError, match="weight of dense"):
        FUSIONS[name]({"dense": ranking(a=1.0)}, weights={"dense": weight})


def test_a_list_of_one_or_of_equal_scores() -> None:
    for alone in (ranking(a=7.0), ranking(a=7.0, b=7.0)):
        assert set(values(minmax({"x": alone})).values()) == {1.0}
        assert set(values(zscore({"x": alone})).values()) == {0.0}
        assert set(values(dbsf({"x": alone})).values()) == {0.5}


def test_found_alone_beats_not_found_in_every_way() -> None:
    """A list of one hit has no spread, and must still lift its hit above one that it does not hold."""
    dense = ranking(a=0.5, b=0.5, c=0.5)
    for fusion in FUSIONS.values():
        assert fusion({"dense": dense, "lexical": ranking(c=3.0)})[0].chunk_id == "c"


def test_rrf_refuses_a_divisor_of_zero() -> None:
    with pytest.raises(UsageError, match="above 0"):
        rrf({"dense": ranking(a=1.0)}, k=0, first_rank=0)


def test_ranked_cuts_after_breaking_ties() -> None:
    assert [hit.chunk_id for hit in ranked({"b": 1, "a": 1, "c": 2}, limit=2)] == ["c", "a"]
