"""What every `Engine` must do, as tests: subclass `EngineConformance`, say how yours is made, run pytest.

    class TestMine(EngineConformance):
        @pytest.fixture
        def engine(self, tmp_path):
            engine = MyEngine(tmp_path, dense=ARMS)      # empty, with the arms ARMS, keeping token codes
            yield engine
            engine.close()

        def reopen(self, engine):                        # only where it keeps anything beyond `close`
            engine.close()
            return MyEngine.open(...)

`engine_machine(make, reopen)` gives a hypothesis state machine that does anything in any order and compares with the
exact engine after each step. The rule for ties: a ranking is best first, equal scores by id ascending; which of the
chunks with the score of the last place are in a list that is full is free, except for `exact` engines: smallest ids.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace as altered
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from cognicraft.engines.memory import MemoryEngine
from cognicraft.errors import EngineError
from cognicraft.protocols import Engine
from cognicraft.records import (
    AllOf,
    And,
    AnyOf,
    BooleanQuery,
    EncodedDocument,
    Equals,
    Exists,
    Filter,
    In,
    NoneOf,
    Not,
    Or,
    Page,
    Phrase,
    Range,
    Ranking,
    SparseVector,
    Term,
)
from cognicraft.testing.engine_samples import ARMS, document_id, sample_document, words_query, words_vector

RELATIVE = 1e-4
ABSOLUTE = 1e-5
EVERYTHING = 10_000


# ── compare ───────────────────────────────────────────────────────────────────────────────────────────────────


def assert_ranking(found: Ranking, *, every: Ranking, limit: int, exact_ties: bool = False) -> None:
    """`found` is the best `limit` of `every`: length, order, scores, ties.

    `every` holds all that can be found, from the exact engine. Scores may differ by 1e-4 relative, and scores that
    near to each other may stand in either order.
    """
    scores = {one.chunk_id: one.score for one in every}
    assert len(found) == min(limit, len(every))
    assert len({one.chunk_id for one in found}) == len(found), "an id stands twice"
    assert list(found) == sorted(found, key=lambda one: (-one.score, one.chunk_id)), "not best first, ties by id"
    for place, one in enumerate(found):
        assert one.chunk_id in scores, "found what cannot be found"
        assert one.score == pytest.approx(scores[one.chunk_id], rel=RELATIVE, abs=ABSOLUTE)
        assert one.score == pytest.approx(every[place].score, rel=RELATIVE, abs=ABSOLUTE), f"wrong at {place}"
    if exact_ties:
        assert [one.chunk_id for one in found] == [one.chunk_id for one in every[:limit]]


def assert_same(
    engine: Engine, oracle: Engine, *, texts: tuple[str, ...] = ("red fox", "blue"), limit: int = 7
) -> None:
    """Every look into the engine gives what the exact engine gives."""
    records = list(oracle.documents())
    assert list(engine.documents()) == records
    ids = []
    for record in records:
        chunks = oracle.document_chunks(record.id)
        assert engine.document(record.id) == record
        assert engine.document_chunks(record.id) == chunks
        ids += [one.id for one in chunks]
    assert engine.chunks(ids) == oracle.chunks(ids)
    for arm in ARMS:
        _assert_codes(engine.token_codes(arm, ids), oracle.token_codes(arm, ids))
    assert engine.languages() == oracle.languages()
    assert (engine.info().documents, engine.info().chunks) == (len(records), len(ids))
    for text in texts:
        query = words_query(text)
        for count in (limit, EVERYTHING):
            assert_ranking(
                engine.search_lexical(query, limit=count),
                every=oracle.search_lexical(query, limit=EVERYTHING),
                limit=count,
            )
            for arm in ARMS:
                vector = words_vector(text, arm=arm)
                assert_ranking(
                    engine.search_dense(arm, vector, limit=count),
                    every=oracle.search_dense(arm, vector, limit=EVERYTHING),
                    limit=count,
                )


def _assert_codes(found: list[Any], expected: list[Any]) -> None:
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            assert one.dtype == np.uint8
            assert one.shape == other.shape
            assert np.array_equal(one, other)


def _ids(ranking: Ranking) -> list[str]:
    return [one.chunk_id for one in ranking]


NO_QUERY = SparseVector(np.empty(0, np.uint32), np.empty(0, np.float32))


# ── the suite ─────────────────────────────────────────────────────────────────────────────────────────────────


class EngineConformance:
    """Subclass it and give the fixture `engine`: empty, with the arms of `ARMS`, keeping token codes."""

    @pytest.fixture
    def engine(self) -> Iterator[Engine]:
        raise NotImplementedError("give a fixture `engine`")

    def reopen(self, engine: Engine) -> Engine | None:
        """Close it and open what it left; None where nothing is left after `close`."""
        return None

    @pytest.fixture
    def oracle(self) -> Engine:
        return MemoryEngine(dense=ARMS)

    @pytest.fixture
    def animals(self) -> list[EncodedDocument]:
        return [
            sample_document(
                "fox",
                ["the red fox runs", "the fox sleeps in the red den", "nothing here"],
                metadata={"year": 2020, "tags": ("wild", "red"), "price": 1.5, "checked": True},
            ),
            sample_document(
                "bear", ["the brown bear sleeps", "a bear and a fox"], metadata={"year": 2021, "tags": "wild"}
            ),
            sample_document(
                "wal", ["der blaue Wal schwimmt"], language="de", metadata={"year": "2020", "checked": False}
            ),
            sample_document("empty", [], language=""),
            sample_document("broken", [], status="failed", language=""),
        ]

    # empty

    def test_an_empty_engine_finds_nothing(self, engine: Engine) -> None:
        assert engine.search_dense("first", words_vector("fox"), limit=5) == ()
        assert engine.search_lexical(words_query("fox"), limit=5) == ()
        assert engine.search_boolean(NoneOf(Term(("fox",))), rank_by=NO_QUERY, limit=5) == ()
        assert list(engine.documents()) == []
        assert engine.languages() == {}
        info = engine.info()
        assert (info.documents, info.chunks) == (0, 0)
        assert set(info.dense_arms) == set(ARMS)

    def test_nothing_put_in_or_deleted_is_no_error(self, engine: Engine) -> None:
        engine.replace([])
        assert engine.delete([]) == 0
        assert engine.chunks([]) == []
        assert engine.token_codes("first", []) == []

    # what was put in comes back

    def test_everything_put_in_comes_back(self, engine: Engine, oracle: Engine, animals: list[EncodedDocument]) -> None:
        engine.replace(animals)
        oracle.replace(animals)
        assert_same(engine, oracle, texts=("the red fox", "bear", "Wal schwimmt", "unknown"))

    def test_a_record_comes_back_field_by_field(self, engine: Engine) -> None:
        document = sample_document("all fields", ["one chunk"])
        record = altered(
            document.record,
            media_type="application/pdf",
            pointer="/rows/3",
            pages=(Page(1, 0, 4), Page(2, 4, 9)),
            file_size=12,
            file_mtime_ns=1_700_000_000_123_456_789,
            metadata={
                "int": 1,
                "float": 1.0,
                "big": 2**70,
                "yes": True,
                "text": "ä\u0000\ud800",
                "many": ("a", 2, False),
            },
            warnings=("page 2 is empty",),
        )
        engine.replace([EncodedDocument(record, document.chunks)])
        found = engine.document(record.id)
        assert found == record
        assert found is not None
        assert {key: type(value) for key, value in found.metadata.items()} == {
            key: type(value) for key, value in record.metadata.items()
        }
        (stored,) = engine.document_chunks(record.id)
        assert stored.chunk == document.chunks[0].chunk
        assert (stored.source, stored.title, stored.pointer) == (record.source, record.title, record.pointer)

    def test_a_failed_record_is_listed_and_has_no_chunks(self, engine: Engine, animals: list[EncodedDocument]) -> None:
        engine.replace(animals)
        record = engine.document(document_id("broken"))
        assert record is not None
        assert (record.status, record.error_code) == ("failed", "corrupt")
        assert engine.document_chunks(record.id) == []
        assert record in list(engine.documents())

    def test_documents_come_by_source_pointer_and_id(self, engine: Engine) -> None:
        documents = [
            altered(one, record=altered(one.record, source=source, pointer=pointer))
            for one, source, pointer in [
                (sample_document("1", ["x"]), "b", ""),
                (sample_document("2", ["x"]), "a", "/2"),
                (sample_document("3", ["x"]), "a", "/1"),
                (sample_document("4", ["x"]), "a", "/1"),
            ]
        ]
        engine.replace(documents)
        keys = [(one.source, one.pointer, one.id) for one in engine.documents()]
        assert keys == sorted(keys)
        assert len(keys) == 4

    def test_equal_texts_in_two_documents_stay_two(self, engine: Engine) -> None:
        engine.replace([sample_document("one", ["same words", "same words"]), sample_document("two", ["same words"])])
        found = engine.chunks(_ids(engine.search_lexical(words_query("same"), limit=10)))
        assert sorted(one.source for one in found) == ["samples/one.txt", "samples/one.txt", "samples/two.txt"]

    def test_text_that_is_hard_to_store_comes_back(self, engine: Engine) -> None:
        texts = ["nul \x00 and \ud800 surrogate", "line\nfeed\ttab", "漢字 عربى 🦊", "x" * 20_000]
        engine.replace([sample_document("hard", texts)])
        assert [one.chunk.chunk.text for one in engine.document_chunks(document_id("hard"))] == texts
        for text in texts[:3]:
            term = text.split()[0]
            ids = _ids(engine.search_boolean(Term((term,)), rank_by=NO_QUERY, limit=5))
            assert [one.chunk.chunk.text for one in engine.chunks(ids)] == [text]

    # limits, ids, arms

    def test_limits_from_nothing_to_more_than_there_is(self, engine: Engine, animals: list[EncodedDocument]) -> None:
        engine.replace(animals)
        query, vector = words_query("the fox"), words_vector("the fox")
        for limit in (0, 1, 2, 3, 1000):
            assert len(engine.search_lexical(query, limit=limit)) == min(limit, 4)
            assert len(engine.search_dense("first", vector, limit=limit)) == min(limit, 6)
            assert len(engine.search_boolean(Term(("fox",)), rank_by=query, limit=limit)) == min(limit, 3)

    def test_unknown_ids_are_absent(self, engine: Engine, animals: list[EncodedDocument]) -> None:
        engine.replace(animals)
        known = _ids(engine.search_lexical(words_query("fox"), limit=2))
        for unknown in ("0" * 32, "not an id", "", document_id("fox")):
            assert [one.id for one in engine.chunks([known[1], unknown, known[0]])] == [known[1], known[0]]
            codes = engine.token_codes("first", [unknown, known[0]])
            assert codes[0] is None
            assert codes[1] is not None
        for unknown in ("0" * 32, "not an id", "", known[0]):
            assert engine.document(unknown) is None
            assert engine.document_chunks(unknown) == []
            assert engine.delete([unknown]) == 0
        assert engine.info().documents == len(animals)

    def test_chunks_come_in_the_order_of_the_ids(self, engine: Engine, animals: list[EncodedDocument]) -> None:
        engine.replace(animals)
        ids = [chunk.id for document in animals for chunk in document.chunks]
        for order in (ids, ids[::-1], [ids[0], ids[2], ids[0]]):
            assert [one.id for one in engine.chunks(order)] == order

    def test_an_unknown_arm_is_an_error(self, engine: Engine, animals: list[EncodedDocument]) -> None:
        engine.replace(animals)
        with pytest.raises(EngineError, match="third"):
            engine.search_dense("third", words_vector("fox"), limit=3)
        with pytest.raises(EngineError):
            engine.search_dense("first", words_vector("fox", arm="second"), limit=3)

    def test_a_refused_batch_leaves_no_trace(self, engine: Engine, animals: list[EncodedDocument]) -> None:
        bad = animals[1].chunks[0]
        wrong = altered(bad, dense={"first": bad.dense["first"]})
        with pytest.raises(EngineError):
            engine.replace([animals[0], altered(animals[1], chunks=(wrong,))])
        assert list(engine.documents()) == []
        assert engine.search_lexical(words_query("fox"), limit=3) == ()

    def test_chunks_without_token_codes_give_none(self, engine: Engine) -> None:
        document = sample_document("plain", ["a b"], token_codes=False)
        engine.replace([document])
        assert engine.token_codes("first", [document.chunks[0].id]) == [None]

    # ranking

    def test_a_query_term_counts_as_often_as_it_stands(self, engine: Engine, animals: list[EncodedDocument]) -> None:
        engine.replace(animals)
        once = {one.chunk_id: one.score for one in engine.search_lexical(words_query("fox"), limit=10)}
        thrice = {one.chunk_id: one.score for one in engine.search_lexical(words_query("fox fox fox"), limit=10)}
        assert once.keys() == thrice.keys()
        for chunk, score in once.items():
            assert thrice[chunk] == pytest.approx(3 * score, rel=RELATIVE)

    def test_lexical_scores_are_the_formula(self, engine: Engine, animals: list[EncodedDocument]) -> None:
        engine.replace(animals)
        live, holding = 6, 3
        idf = np.log(1 + (live - holding + 0.5) / (holding + 0.5))
        for one in engine.search_lexical(words_query("fox"), limit=10):
            assert one.score == pytest.approx(idf * 1 / 2.2, rel=RELATIVE)

    def test_idf_counts_only_what_is_live(self, engine: Engine) -> None:
        engine.replace([sample_document(str(i), ["rare common" if i % 3 else "common"]) for i in range(30)])
        engine.delete([document_id(str(i)) for i in range(0, 20)])
        engine.replace([sample_document(str(i), ["other words"], revision="2") for i in range(20, 24)])
        texts = [one.chunk.chunk.text for i in range(30) for one in engine.document_chunks(document_id(str(i)))]
        live, holding = len(texts), sum("rare" in text.split() for text in texts)
        assert (live, holding) == (10, 4)
        idf = np.log(1 + (live - holding + 0.5) / (holding + 0.5))
        found = engine.search_lexical(words_query("rare"), limit=20)
        assert [one.score for one in found] == pytest.approx([idf / 2.2] * holding, rel=RELATIVE)

    def test_dense_scores_are_cosines_whatever_the_length_of_the_query(
        self, engine: Engine, animals: list[EncodedDocument]
    ) -> None:
        engine.replace(animals)
        vector = words_vector("the red fox runs")
        (best,) = engine.search_dense("first", vector * 7, limit=1)
        assert engine.chunks([best.chunk_id])[0].chunk.chunk.text == "the red fox runs"
        assert best.score == pytest.approx(1.0, abs=1e-3)

    def test_ties_come_by_id(self, engine: Engine) -> None:
        engine.replace([sample_document(str(i), ["same words", "other"]) for i in range(20)])
        for found in (
            engine.search_lexical(words_query("same"), limit=12),
            engine.search_dense("first", words_vector("same words"), limit=12),
            engine.search_boolean(Term(("same",)), rank_by=NO_QUERY, limit=12),
        ):
            assert len(found) == 12
            assert len({one.score for one in found}) == 1
            assert _ids(found) == sorted(_ids(found))

    def test_an_exact_engine_takes_the_smallest_ids_of_a_tie(self, engine: Engine) -> None:
        engine.replace([sample_document(str(i), ["same words"]) for i in range(20)])
        every = _ids(engine.search_dense("first", words_vector("same words"), limit=20))
        some = _ids(engine.search_dense("first", words_vector("same words"), limit=5))
        assert set(some) <= set(every)
        if engine.exact:
            assert some == sorted(every)[:5]

    def test_recall_against_every_vector(self, engine: Engine) -> None:
        words = [f"w{i}" for i in range(60)]
        random = np.random.default_rng(7)
        texts = [" ".join(random.choice(words, 6)) for _ in range(400)]
        engine.replace([sample_document(str(i), texts[i * 20 : i * 20 + 20]) for i in range(20)])
        matrix = np.array([words_vector(text) for text in texts])
        floor = 1.0 if engine.exact else 0.95
        recalls = []
        for text in texts[:20]:
            query = words_vector(text + " w1")
            cut = np.sort(matrix @ query)[-20]
            found = engine.search_dense("first", query, limit=20)
            recalls.append(np.mean([one.score >= cut - 1e-4 for one in found]))
        assert np.mean(recalls) >= floor

    # Boolean queries and filters

    @pytest.mark.parametrize(
        ("query", "expected"),
        [
            (Term(("fox",)), {"the red fox runs", "the fox sleeps in the red den", "a bear and a fox"}),
            (Term(("fo",)), set()),
            (Term(("Fox",)), set()),
            (Term(("wolf", "brown")), {"the brown bear sleeps"}),
            (Term(()), set()),
            (Phrase(("red", "fox")), {"the red fox runs"}),
            (Phrase(("fox", "red")), set()),
            (Phrase(("fox",)), {"the red fox runs", "the fox sleeps in the red den", "a bear and a fox"}),
            (Phrase(("a", "bear", "and", "a", "fox")), {"a bear and a fox"}),
            (Phrase(("a", "a")), set()),
            (Phrase(()), set()),
            (AllOf((Term(("fox",)), Term(("sleeps",)))), {"the fox sleeps in the red den"}),
            (AllOf((Term(("fox",)), NoneOf(Term(("the",))))), {"a bear and a fox"}),
            (AnyOf((Term(("Wal",)), Phrase(("brown", "bear")))), {"der blaue Wal schwimmt", "the brown bear sleeps"}),
            (AnyOf(()), set()),
            (
                NoneOf(AnyOf((Term(("fox",)), Term(("bear",))))),
                {"nothing here", "der blaue Wal schwimmt"},
            ),
        ],
        ids=repr,
    )
    def test_a_boolean_query_finds_what_satisfies_it(
        self, engine: Engine, animals: list[EncodedDocument], query: BooleanQuery, expected: set[str]
    ) -> None:
        engine.replace(animals)
        found = engine.search_boolean(query, rank_by=words_query("red"), limit=100)
        assert {one.chunk.chunk.text for one in engine.chunks(_ids(found))} == expected

    def test_a_boolean_search_ranks_by_the_terms_then_by_id(
        self, engine: Engine, animals: list[EncodedDocument]
    ) -> None:
        engine.replace(animals)
        every = engine.search_boolean(AllOf(()), rank_by=words_query("red"), limit=100)
        lexical = engine.search_lexical(words_query("red"), limit=100)
        assert len(every) == 6
        assert every[: len(lexical)] == lexical
        rest = every[len(lexical) :]
        assert {one.score for one in rest} == {0.0}
        assert _ids(rest) == sorted(_ids(rest))
        assert engine.search_boolean(AllOf(()), rank_by=words_query("red"), limit=3) == every[:3]
        assert _ids(engine.search_boolean(AllOf(()), rank_by=NO_QUERY, limit=100)) == sorted(_ids(every))

    @pytest.mark.parametrize(
        ("where", "names"),
        [
            (Equals("year", 2020), {"fox"}),
            (Equals("year", 2020.0), {"fox"}),
            (Equals("year", "2020"), {"wal"}),
            (Equals("year", True), set()),
            (Equals("checked", True), {"fox"}),
            (Equals("checked", 1), set()),
            (Equals("tags", "wild"), {"fox", "bear"}),
            (Equals("price", 1.5), {"fox"}),
            (Equals("nothing", 1), set()),
            (Equals("language", "de"), {"wal"}),
            (Equals("file", "bear.txt"), {"bear"}),
            (Equals("source", "samples/bear.txt"), {"bear"}),
            (Equals("title", "Bear"), {"bear"}),
            (Equals("media_type", "text/plain"), {"fox", "bear", "wal"}),
            (Equals("document_id", document_id("wal")), {"wal"}),
            (In("year", (2021, "2020")), {"bear", "wal"}),
            (In("year", ()), set()),
            (Range("year", gte=2020), {"fox", "bear"}),
            (Range("year", gt=2020, lte=2021), {"bear"}),
            (Range("price", lt=1.5), set()),
            (Range("year", gte=0, gt=2020), {"bear"}),
            (Range("year", gte=2020, gt=2020), {"bear"}),
            (Range("year", lte=2020, lt=3000), {"fox"}),
            (Range("year", lte=2021, lt=2021), {"fox"}),
            (Range("year", gte=2020, lte=2020), {"fox"}),
            (Range("year", gte=2021, lte=2020), set()),
            (Range("year", gt=2020, lte=2020), set()),
            (Range("page", gt=0.5, lte=0, lt=3), set()),
            (Range("price"), {"fox"}),
            (Range("tags"), set()),
            (Range("checked"), set()),
            (Exists("price"), {"fox"}),
            (Exists("nothing"), set()),
            (Not(Exists("price")), {"bear", "wal"}),
            (Not(Equals("year", 2020)), {"bear", "wal"}),
            (And((Equals("tags", "wild"), Not(Equals("tags", "red")))), {"bear"}),
            (And(()), {"fox", "bear", "wal"}),
            (Or((Equals("language", "de"), Range("price", gte=1))), {"fox", "wal"}),
            (Or(()), set()),
            (Not(Or(())), {"fox", "bear", "wal"}),
        ],
        ids=repr,
    )
    def test_a_filter_lets_through_what_it_says(
        self, engine: Engine, animals: list[EncodedDocument], where: Filter, names: set[str]
    ) -> None:
        engine.replace(animals)
        expected = {chunk.id for one in animals for chunk in one.chunks if one.record.id in map(document_id, names)}
        assert set(_ids(engine.search_dense("first", words_vector("fox"), limit=100, where=where))) == expected
        assert set(_ids(engine.search_boolean(AllOf(()), rank_by=NO_QUERY, limit=100, where=where))) == expected
        lexical = engine.search_lexical(words_query("the bear Wal"), limit=100, where=where)
        assert set(_ids(lexical)) <= expected

    def test_a_filter_on_pages_holds_for_every_page_of_a_chunk(self, engine: Engine) -> None:
        document = sample_document("pages", ["one", "two"])
        wide, plain = document.chunks
        span = altered(wide.chunk.chunk, page=3, page_end=5)
        none = altered(plain.chunk.chunk, page=0, page_end=0)
        chunks = (
            altered(wide, chunk=altered(wide.chunk, chunk=span)),
            altered(plain, chunk=altered(plain.chunk, chunk=none)),
        )
        engine.replace([altered(document, chunks=chunks)])

        def found(where: Filter) -> set[str]:
            return set(_ids(engine.search_boolean(AllOf(()), rank_by=NO_QUERY, limit=9, where=where)))

        assert found(Equals("page", 4)) == {wide.id}
        assert found(Range("page", gte=5)) == {wide.id}
        assert found(Equals("page", 6)) == set()
        assert found(Equals("page", 0)) == set()
        assert found(Not(Exists("page"))) == {plain.id}

    def test_a_filter_does_not_change_the_scores(self, engine: Engine, animals: list[EncodedDocument]) -> None:
        engine.replace(animals)
        every = {one.chunk_id: one.score for one in engine.search_lexical(words_query("fox"), limit=10)}
        some = engine.search_lexical(words_query("fox"), limit=10, where=Equals("year", 2021))
        assert len(some) == 1
        assert some[0].score == pytest.approx(every[some[0].chunk_id], rel=RELATIVE)

    # replace and delete

    def test_a_new_revision_leaves_nothing_of_the_old_one(
        self, engine: Engine, oracle: Engine, animals: list[EncodedDocument]
    ) -> None:
        engine.replace(animals)
        old = [chunk.id for chunk in animals[0].chunks]
        new = sample_document("fox", ["the grey fox"], revision="2", language="fr", metadata={"year": 1999})
        engine.replace([new])
        oracle.replace([new, *animals[1:]])
        assert_same(engine, oracle, texts=("red fox", "runs", "grey"))
        assert engine.chunks(old) == []
        assert engine.token_codes("first", old) == [None] * len(old)

    def test_the_same_revision_again_changes_nothing(
        self, engine: Engine, oracle: Engine, animals: list[EncodedDocument]
    ) -> None:
        oracle.replace(animals)
        for _ in range(3):
            engine.replace(animals)
        assert_same(engine, oracle)

    def test_the_same_revision_with_fewer_chunks_loses_the_others(
        self, engine: Engine, oracle: Engine, animals: list[EncodedDocument]
    ) -> None:
        engine.replace(animals)
        fewer = altered(animals[0], chunks=animals[0].chunks[1:])
        engine.replace([fewer])
        oracle.replace([fewer, *animals[1:]])
        assert_same(engine, oracle, texts=("runs", "fox"))

    def test_a_document_that_fails_later_loses_its_chunks(self, engine: Engine, animals: list[EncodedDocument]) -> None:
        engine.replace(animals)
        engine.replace([sample_document("fox", [], status="failed", revision="2")])
        record = engine.document(document_id("fox"))
        assert record is not None
        assert record.status == "failed"
        assert engine.document_chunks(record.id) == []
        assert len(engine.search_lexical(words_query("fox"), limit=10)) == 1

    def test_of_a_document_given_twice_the_last_one_stays(self, engine: Engine) -> None:
        engine.replace(
            [sample_document("twice", ["first words"]), sample_document("twice", ["last words"], revision="2")]
        )
        assert [one.chunk.chunk.text for one in engine.document_chunks(document_id("twice"))] == ["last words"]
        assert engine.info().documents == 1

    def test_deleting_forgets_everything(self, engine: Engine, oracle: Engine, animals: list[EncodedDocument]) -> None:
        engine.replace(animals)
        gone = [chunk.id for chunk in animals[0].chunks]
        assert engine.delete([document_id("fox"), document_id("fox"), document_id("broken"), "0" * 32]) == 2
        oracle.replace([one for one in animals if one.record.id not in (document_id("fox"), document_id("broken"))])
        assert_same(engine, oracle, texts=("red fox", "runs"))
        assert engine.document(document_id("fox")) is None
        assert engine.chunks(gone) == []
        assert engine.token_codes("first", gone) == [None] * 3
        assert engine.search_boolean(Term(("runs",)), rank_by=words_query("runs"), limit=5) == ()
        assert engine.search_dense("first", words_vector("fox"), limit=50, where=Equals("year", 2020)) == ()
        assert engine.delete([document_id("fox")]) == 0

    def test_what_was_deleted_can_come_again(self, engine: Engine, animals: list[EncodedDocument]) -> None:
        engine.replace(animals)
        engine.delete([document_id("fox")])
        engine.replace([animals[0]])
        assert [one.id for one in engine.document_chunks(document_id("fox"))] == [one.id for one in animals[0].chunks]

    def test_a_search_sees_one_whole_revision(self, engine: Engine) -> None:
        def revision(number: int) -> EncodedDocument:
            texts = [f"word turn{number} part{part}" for part in range(3 + number % 3)]
            return sample_document("turning", texts, revision=str(number))

        revisions = [revision(number) for number in range(25)]
        whole = [frozenset(chunk.id for chunk in one.chunks) for one in revisions]
        engine.replace([sample_document("other", ["word here"]), revisions[0]])
        (other,) = (one.id for one in engine.document_chunks(document_id("other")))
        stop = threading.Event()
        seen: list[tuple[str, frozenset[str]]] = []
        errors: list[BaseException] = []

        def search() -> None:
            try:
                while not stop.is_set():
                    for kind, ranking in (
                        ("lexical", engine.search_lexical(words_query("word"), limit=50)),
                        ("dense", engine.search_dense("first", words_vector("word"), limit=50)),
                        ("boolean", engine.search_boolean(Term(("word",)), rank_by=NO_QUERY, limit=50)),
                    ):
                        seen.append((kind, frozenset(_ids(ranking)) - {other}))
                    listed = engine.document_chunks(document_id("turning"))
                    seen.append(("listed", frozenset(one.id for one in listed)))
            except BaseException as error:
                errors.append(error)

        thread = threading.Thread(target=search)
        thread.start()
        try:
            for one in revisions[1:]:
                engine.replace([one])
        finally:
            stop.set()
            thread.join()
        assert not errors
        assert len(seen) >= 4
        torn = [(kind, len(ids)) for kind, ids in seen if ids not in whole]
        assert torn == []

    # close

    def test_after_close_every_call_is_an_error(self, engine: Engine, animals: list[EncodedDocument]) -> None:
        engine.replace(animals)
        engine.close()
        engine.close()
        calls: list[Callable[[], object]] = [
            lambda: engine.replace(animals),
            lambda: engine.delete([document_id("fox")]),
            lambda: engine.document(document_id("fox")),
            lambda: list(engine.documents()),
            lambda: engine.document_chunks(document_id("fox")),
            lambda: engine.search_dense("first", words_vector("fox"), limit=1),
            lambda: engine.search_lexical(words_query("fox"), limit=1),
            lambda: engine.search_boolean(Term(("fox",)), rank_by=NO_QUERY, limit=1),
            lambda: engine.chunks(["0" * 32]),
            lambda: engine.token_codes("first", ["0" * 32]),
            lambda: engine.languages(),
            lambda: engine.info(),
        ]
        for call in calls:
            with pytest.raises(EngineError, match="closed"):
                call()

    def test_all_is_there_after_reopening(self, engine: Engine, oracle: Engine, animals: list[EncodedDocument]) -> None:
        engine.replace(animals)
        engine.replace([sample_document("bear", ["a new bear"], revision="2")])
        engine.delete([document_id("wal")])
        again = self.reopen(engine)
        if again is None:
            return
        oracle.replace([animals[0], sample_document("bear", ["a new bear"], revision="2"), *animals[3:]])
        with contextlib.closing(again):
            assert_same(again, oracle, texts=("the red fox", "bear", "Wal"))


# ── any order ─────────────────────────────────────────────────────────────────────────────────────────────────

WORDS = ("red", "blue", "fox", "bear", "runs")
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join)
scalars = st.one_of(
    st.booleans(), st.integers(-2, 3), st.sampled_from((0.5, 1.0, -0.0, 1e300)), st.sampled_from(("", "a", "1", "True"))
)
metadata = st.dictionaries(
    st.sampled_from(("k", "m.n", 'q"[0]', "title")),
    st.one_of(scalars, st.lists(scalars, max_size=3).map(tuple)),
    max_size=3,
)
documents = st.builds(
    sample_document,
    st.sampled_from(("a", "b", "c", "d")),
    st.lists(texts, max_size=4),
    revision=st.sampled_from(("1", "2")),
    language=st.sampled_from(("en", "de", "")),
    metadata=metadata,
)
bounds = st.none() | st.integers(-3, 4) | st.sampled_from((0.5, 1.0, float("inf"), -float("inf"), float("nan")))
fields = st.sampled_from(("k", "m.n", 'q"[0]', "title", "language", "page", "file", "nothing"))
leaves = st.one_of(
    st.builds(Equals, fields, scalars),
    st.builds(In, fields, st.lists(scalars, max_size=3).map(tuple)),
    st.builds(Range, fields, bounds, bounds, bounds, bounds),
    st.builds(Exists, fields),
)
filters: st.SearchStrategy[Filter] = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(And, st.lists(inner, max_size=3).map(tuple)),
        st.builds(Or, st.lists(inner, max_size=3).map(tuple)),
        st.builds(Not, inner),
    ),
    max_leaves=5,
)
boolean_queries: st.SearchStrategy[BooleanQuery] = st.recursive(
    st.one_of(
        st.builds(Term, st.lists(st.sampled_from(WORDS), max_size=2).map(tuple)),
        st.builds(Phrase, st.lists(st.sampled_from(WORDS), max_size=3).map(tuple)),
    ),
    lambda inner: st.one_of(
        st.builds(AllOf, st.lists(inner, max_size=3).map(tuple)),
        st.builds(AnyOf, st.lists(inner, max_size=3).map(tuple)),
        st.builds(NoneOf, inner),
    ),
    max_leaves=5,
)


def assert_same_search(
    engine: Engine, oracle: Engine, *, text: str, boolean: BooleanQuery, where: Filter | None, limit: int
) -> None:
    """One question in every way, against the exact engine."""
    query = words_query(text)
    assert_ranking(
        engine.search_lexical(query, limit=limit, where=where),
        every=oracle.search_lexical(query, limit=EVERYTHING, where=where),
        limit=limit,
    )
    assert_ranking(
        engine.search_boolean(boolean, rank_by=query, limit=limit, where=where),
        every=oracle.search_boolean(boolean, rank_by=query, limit=EVERYTHING, where=where),
        limit=limit,
    )
    for arm in ARMS:
        vector = words_vector(text, arm=arm)
        assert_ranking(
            engine.search_dense(arm, vector, limit=limit, where=where),
            every=oracle.search_dense(arm, vector, limit=EVERYTHING, where=where),
            limit=limit,
        )


def empty(engine: Engine) -> None:
    """Delete every document."""
    engine.delete([record.id for record in engine.documents()])


def engine_machine(
    make: Callable[[], Engine],
    reopen: Callable[[Engine], Engine] | None = None,
    finish: Callable[[Engine], None] = lambda engine: engine.close(),
) -> type[RuleBasedStateMachine]:
    """A state machine over add, replace, delete, reopen and search; after each step it holds the live set.

    `make` gives an empty engine with the arms `ARMS`; `reopen` closes it and opens what it left; `finish` takes it
    back at the end.
    """

    class EngineMachine(RuleBasedStateMachine):
        @initialize()
        def start(self) -> None:
            self.engine = make()
            self.oracle: Engine = MemoryEngine(dense=ARMS)

        @rule(batch=st.lists(documents, min_size=1, max_size=3))
        def put(self, batch: list[EncodedDocument]) -> None:
            self.engine.replace(batch)
            self.oracle.replace(batch)

        @rule(names=st.lists(st.sampled_from(("a", "b", "c", "d", "unknown")), max_size=3))
        def remove(self, names: list[str]) -> None:
            ids = [document_id(name) for name in names]
            assert self.engine.delete(ids) == self.oracle.delete(ids)

        @rule(text=texts, boolean=boolean_queries, where=st.none() | filters, limit=st.integers(0, 12))
        def search(self, text: str, boolean: BooleanQuery, where: Filter | None, limit: int) -> None:
            assert_same_search(self.engine, self.oracle, text=text, boolean=boolean, where=where, limit=limit)

        if reopen is not None:

            @rule()
            def open_again(self) -> None:
                self.engine = reopen(self.engine)

        @invariant()
        def holds_the_live_set(self) -> None:
            if hasattr(self, "engine"):
                assert_same(self.engine, self.oracle)

        def teardown(self) -> None:
            if hasattr(self, "engine"):
                finish(self.engine)

    return EngineMachine
