"""Edge against the exact engine on the same random documents: filters, Boolean queries, deletes, ties, real sizes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cognicraft.engines.edge import EdgeEngine
from cognicraft.engines.memory import MemoryEngine
from cognicraft.records import (
    AllOf,
    BooleanQuery,
    EncodedDocument,
    Filter,
    NoneOf,
    Phrase,
    Range,
    Scalar,
    Term,
)
from cognicraft.testing.engine import (
    assert_ranking,
    assert_same,
    assert_same_search,
    boolean_queries,
    documents,
    empty,
    filters,
)
from cognicraft.testing.engine_samples import ARMS, sample_document, words_query, words_vector

EVERYTHING = 10_000


@pytest.fixture(scope="module")
def edge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EdgeEngine]:
    engine = EdgeEngine.create(tmp_path_factory.mktemp("edge") / "workspace", dense=ARMS, token_codes=True)
    yield engine
    engine.close()


def both(edge: EdgeEngine, held: list[EncodedDocument]) -> MemoryEngine:
    """Put the documents in both; the exact one."""
    empty(edge)
    edge.replace(held)
    oracle = MemoryEngine(dense=ARMS)
    oracle.replace(held)
    return oracle


@settings(max_examples=25, deadline=None)
@given(
    held=st.lists(documents, max_size=6),
    wheres=st.lists(filters, min_size=1, max_size=6),
    boolean=boolean_queries,
    limit=st.integers(0, 10),
)
def test_any_filter_lets_through_the_same(
    edge: EdgeEngine, held: list[EncodedDocument], wheres: list[Filter], boolean: BooleanQuery, limit: int
) -> None:
    oracle = both(edge, held)
    for where in wheres:
        assert_same_search(edge, oracle, text="red fox", boolean=boolean, where=where, limit=limit)


numbers: st.SearchStrategy[Scalar] = st.one_of(
    st.integers(), st.floats(), st.sampled_from([2**53, 2**53 + 1, 2**63, 2**64, -(2**70), 10**400, float("inf")])
)


@settings(max_examples=25, deadline=None)
@given(values=st.lists(numbers, min_size=1, max_size=6), bound=st.integers() | st.floats())
def test_any_number_compares_the_same(edge: EdgeEngine, values: list[Scalar], bound: float) -> None:
    oracle = both(edge, [sample_document(str(i), ["a"], metadata={"n": value}) for i, value in enumerate(values)])
    for where in (Range("n", gte=bound), Range("n", lt=bound), Range("n")):
        assert_same_search(edge, oracle, text="a", boolean=AllOf(()), where=where, limit=10)


words = st.text(
    st.characters(codec="utf-8", exclude_categories=("Zs", "Zl", "Zp", "Cc")), min_size=1, max_size=8
).filter(lambda word: not any(map(str.isspace, word)))


@settings(max_examples=25, deadline=None)
@given(texts=st.lists(st.lists(words, min_size=1, max_size=6), min_size=1, max_size=4), data=st.data())
def test_any_word_is_found_exactly_as_it_is_written(
    edge: EdgeEngine, texts: list[list[str]], data: st.DataObject
) -> None:
    oracle = both(edge, [sample_document(str(i), [" ".join(text)]) for i, text in enumerate(texts)])
    text = data.draw(st.sampled_from(texts))
    word = data.draw(st.sampled_from(text))
    start = data.draw(st.integers(0, len(text)))
    for query in (
        Term((word,)),
        Term((word.upper(), word.lower())),
        Term((word[:1],)),
        Phrase(tuple(text[start : start + 3])),
        NoneOf(Term((word,))),
    ):
        found = edge.search_boolean(query, rank_by=words_query(word), limit=10)
        every = oracle.search_boolean(query, rank_by=words_query(word), limit=10)
        assert_ranking(found, every=every, limit=10)


def test_hundreds_of_documents_with_deletes_agree(edge: EdgeEngine) -> None:
    random = np.random.default_rng(3)
    vocabulary = [f"w{i}" for i in range(300)]
    weights = 1 / np.arange(1, 301)
    weights /= weights.sum()

    def document(number: int, revision: str) -> EncodedDocument:
        texts = [" ".join(random.choice(vocabulary, 12, p=weights)) for _ in range(1 + number % 3)]
        return sample_document(
            str(number), texts, revision=revision, metadata={"number": number, "group": f"g{number % 7}"}
        )

    oracle = both(edge, [document(number, "1") for number in range(400)])
    gone = [document(number, "1").record.id for number in range(0, 400, 3)]
    assert edge.delete(gone) == oracle.delete(gone)
    new = [document(number, "2") for number in range(0, 400, 5)]
    edge.replace(new)
    oracle.replace(new)
    assert_same(edge, oracle, texts=("w0 w1 w1 w50", "w299"), limit=50)
    for text in ("w3 w3 w7 w120", "w1"):
        for where in (None, Range("number", gte=100, lt=300)):
            for boolean in (Term(("w2",)), AllOf((Term(("w1",)), NoneOf(Phrase(("w0", "w1")))))):
                assert_same_search(edge, oracle, text=text, boolean=boolean, where=where, limit=50)


@pytest.mark.slow
def test_the_graph_keeps_the_recall_and_what_is_live(tmp_path: Path) -> None:
    random = np.random.default_rng(4)
    words = [f"w{i}" for i in range(2000)]
    edge = EdgeEngine.create(tmp_path / "workspace", dense=ARMS, token_codes=True)
    edge._tail_wanted = 1000  # the threshold that a workspace reaches at 10,000 chunks
    oracle = MemoryEngine(dense=ARMS)
    for number in range(0, 60, 20):
        batch = [
            sample_document(str(number + i), [" ".join(random.choice(words, 5)) for _ in range(20)]) for i in range(20)
        ]
        edge.replace(batch)
        oracle.replace(batch)
    gone = [record.id for record in oracle.documents()][:10]
    edge.delete(gone)
    oracle.delete(gone)
    assert edge.info().detail.get("graph_error", "") == ""
    assert edge._stamp["shard"] != "shard", "the graph was not built"
    assert_same(edge, oracle, texts=("w1 w2",), limit=10)
    recalls = []
    for i in range(30):
        vector = words_vector(f"w{i} w{i + 1} w{i + 2}")
        every = oracle.search_dense("first", vector, limit=20)
        found = edge.search_dense("first", vector, limit=20)
        recalls.append(np.mean([one.score >= every[-1].score - 1e-4 for one in found]))
    assert np.mean(recalls) >= 0.95
    edge.close()
    edge = EdgeEngine.open(tmp_path / "workspace")
    assert_same(edge, oracle, texts=("w1 w2",), limit=10)
    edge.close()
