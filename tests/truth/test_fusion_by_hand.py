"""Fusions worked out on paper from their formulas; every figure below was computed by hand, not by the code."""

from __future__ import annotations

import pytest

from cognicraft.records import Ranking
from cognicraft.search.fuse import dbsf, minmax, ranked, rrf, zscore

# Dense finds a, b, c; lexical finds c, a, d.
DENSE = ranked({"a": 0.9, "b": 0.5, "c": 0.1})
LEXICAL = ranked({"c": 12.0, "a": 8.0, "d": 4.0})
LISTS = {"dense": DENSE, "lexical": LEXICAL}


def order(fused: Ranking) -> str:
    return "".join(hit.chunk_id for hit in fused)


def values(fused: Ranking) -> dict[str, float]:
    return {hit.chunk_id: hit.score for hit in fused}


def test_rrf_with_k_60_and_ranks_from_1() -> None:
    # a: 1/61 + 1/62, c: 1/63 + 1/61, b: 1/62, d: 1/63
    assert values(rrf(LISTS)) == pytest.approx(
        {"a": 0.0325225, "c": 0.0322664, "b": 0.0161290, "d": 0.0158730}, abs=1e-7
    )
    assert order(rrf(LISTS)) == "acbd"


def test_rrf_with_ranks_from_0_and_weights() -> None:
    # a: 1/60 + 2/61, c: 1/62 + 2/60, b: 1/61, d: 2/62
    found = rrf(LISTS, weights={"lexical": 2}, first_rank=0)
    assert values(found) == pytest.approx({"c": 0.0494624, "a": 0.0494536, "d": 0.0322581, "b": 0.0163934}, abs=1e-7)
    assert order(found) == "cadb"


def test_rrf_does_not_make_up_a_rank_for_what_a_list_lacks() -> None:
    assert values(rrf({"dense": DENSE, "lexical": ()}))["b"] == pytest.approx(1 / 62)


def test_minmax_half_and_half() -> None:
    # dense: a 1, b .5, c 0 · lexical: c 1, a .5, d 0 · mean of both, 0 where absent
    assert values(minmax(LISTS)) == pytest.approx({"a": 0.75, "c": 0.5, "b": 0.25, "d": 0.0})


def test_minmax_weighted() -> None:
    # (1·dense + 3·lexical) / 4
    found = minmax(LISTS, weights={"dense": 1, "lexical": 3})
    assert values(found) == pytest.approx({"a": 0.625, "c": 0.75, "b": 0.125, "d": 0.0})


def test_zscore() -> None:
    # Both lists are equally spaced: mean in the middle, deviation = spacing · sqrt(2/3), so z = ±1.2247449, 0.
    # Absent counts as the list's minimum, -1.2247449.
    z = 1.2247449
    assert values(zscore(LISTS)) == pytest.approx({"a": z, "c": 0.0, "b": -z, "d": -2 * z}, abs=1e-6)


def test_dbsf() -> None:
    # Sample deviation = spacing, limits = mean ∓ 3 spacings: one above the mean is 4/6, the mean 3/6, one below 2/6.
    assert values(dbsf(LISTS)) == pytest.approx({"a": 4 / 6 + 3 / 6, "c": 2 / 6 + 4 / 6, "b": 3 / 6, "d": 2 / 6})
