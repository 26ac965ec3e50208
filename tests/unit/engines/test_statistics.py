from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cognicraft.engines import statistics
from cognicraft.engines.statistics import Statistics
from cognicraft.records import SparseVector

chunks = st.lists(st.lists(st.integers(0, 2**32 - 1) | st.integers(0, 9), max_size=6, unique=True), max_size=12)


@given(added=chunks, data=st.data(), merge_at=st.sampled_from([0, 3, 50_000]))
def test_frequencies_are_those_of_what_is_left(added: list[list[int]], data: st.DataObject, merge_at: int) -> None:
    removed = data.draw(st.lists(st.sampled_from(added), unique_by=id)) if added else []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(statistics, "_MERGE_AT", merge_at)
        counts = Statistics()
        for chunk in added:
            counts.count_terms([chunk], sign=1)
        counts.count_terms(removed, sign=-1)
    expected = Counter(term for chunk in added for term in chunk)
    expected.subtract(term for chunk in removed for term in chunk)
    asked = np.array(sorted({*expected, 5, 77}), dtype=np.uint32)
    assert counts.document_frequencies(asked).tolist() == [expected[int(term)] for term in asked]


def test_a_query_is_weighted_by_the_formula() -> None:
    counts = Statistics()
    counts.chunks = 10
    counts.count_terms([[1, 2], [1], [1]], sign=1)
    query = SparseVector(np.array([1, 2, 3], np.uint32), np.array([2, 1, 5], np.float32))
    weighted = counts.weighted(query)
    assert weighted.indices.tolist() == [1, 2], "a term that no chunk has is left out"
    expected = [2 * np.log(1 + 7.5 / 3.5), np.log(1 + 9.5 / 1.5)]
    assert weighted.values.tolist() == pytest.approx(expected, rel=1e-6)


def test_saved_counts_come_back(tmp_path: Path) -> None:
    counts = Statistics()
    counts.documents, counts.chunks = 2, 3
    counts.count_languages("de", 3)
    counts.code_bytes[4] = 99
    counts.count_terms([[1, 2**32 - 1], [1]], sign=1)
    counts.save(tmp_path / "statistics.npz")
    again = Statistics.load(tmp_path / "statistics.npz")
    assert again is not None
    assert (again.documents, again.chunks, again.languages, again.code_bytes) == (2, 3, {"de": 3}, {4: 99})
    assert again.document_frequencies(np.array([1, 2, 2**32 - 1], np.uint32)).tolist() == [2, 0, 1]


@pytest.mark.parametrize("content", [None, b"", b"PK\x03\x04 cut", b"not a zip"])
def test_counts_that_cannot_be_read_are_none(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "statistics.npz"
    if content is not None:
        path.write_bytes(content)
    assert Statistics.load(path) is None
