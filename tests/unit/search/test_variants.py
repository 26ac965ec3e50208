"""Several queries side by side and their fusion: nothing lost, every hit knows its way, failures end all."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cognicraft.engines.memory import MemoryEngine
from cognicraft.errors import EngineError, UsageError
from cognicraft.models.minilm import MiniLM
from cognicraft.records import (
    Chunk,
    ContextualChunk,
    DocumentRecord,
    EncodedChunk,
    EncodedDocument,
    PlannedQuery,
    Ranking,
    digest,
)
from cognicraft.search.fuse import ranked, rrf
from cognicraft.search.lexical import LexicalEncoder
from cognicraft.search.retrieve import Retrieved, rank, retrieve
from cognicraft.search.variants import FoundBy, FromVariants, arms_for, embedders_for, retrieve_variants, searchable


@dataclass(frozen=True)
class Given:
    """What a search gave, made up."""

    ranking: Ranking
    timings_ms: Mapping[str, float] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


scores = st.dictionaries(st.sampled_from("abcdefghij"), st.floats(-1e6, 1e6), max_size=8)
rankings = st.lists(scores.map(ranked), min_size=1, max_size=8)


def fused(lists: list[Ranking], **more: object) -> FromVariants[Given]:
    queries = [PlannedQuery(str(place), "variation" if place else "original") for place in range(len(lists))]
    return retrieve_variants(queries, retrieve=lambda query: Given(lists[int(query.text)]), **more)  # type: ignore[arg-type]


@settings(max_examples=60)
@given(lists=rankings)
def test_every_hit_of_every_query_comes_back_once(lists: list[Ranking]) -> None:
    found = fused(lists)
    assert sorted(hit.chunk_id for hit in found.ranking) == sorted({hit.chunk_id for one in lists for hit in one})
    assert list(found.ranking) == sorted(found.ranking, key=lambda hit: (-hit.score, hit.chunk_id))


@settings(max_examples=60)
@given(lists=rankings)
def test_every_hit_knows_the_queries_that_found_it(lists: list[Ranking]) -> None:
    found = fused(lists)
    told = {(chunk, by.query, by.rank, by.score) for chunk, ways in found.found_by.items() for by in ways}
    assert told == {
        (hit.chunk_id, query, place, hit.score)
        for query, one in enumerate(lists)
        for place, hit in enumerate(one, start=1)
    }
    assert all(ways for ways in found.found_by.values())


@settings(max_examples=60)
@given(only=scores.map(ranked))
def test_one_query_keeps_its_ranking_and_scores(only: Ranking) -> None:
    assert fused([only]).ranking == only


@settings(max_examples=60)
@given(lists=rankings, order=st.randoms(use_true_random=False))
def test_with_equal_weights_the_order_of_the_queries_does_not_matter(lists: list[Ranking], order: object) -> None:
    shuffled = list(lists)
    order.shuffle(shuffled)  # type: ignore[attr-defined]
    assert fused(shuffled, weights={}).ranking == fused(lists, weights={}).ranking


@settings(max_examples=60)
@given(lists=rankings)
def test_with_equal_weights_it_is_plain_reciprocal_rank_fusion(lists: list[Ranking]) -> None:
    plain = rrf({str(place): one for place, one in enumerate(lists)})
    assert fused(lists, fuse=rrf, weights={}).ranking == (plain if len(lists) > 1 else lists[0])


def test_wordings_that_miss_the_point_do_not_outvote_the_question() -> None:
    point = ranked({f"right {number}": -float(number) for number in range(10)})
    beside = ranked({f"wrong {number}": -float(number) for number in range(10)})
    found = fused([point, *[beside] * 5])
    assert [hit.chunk_id for hit in found.ranking[:4]] == ["right 0", "right 1", "right 2", "wrong 0"]
    equal = fused([point, *[beside] * 5], weights={})
    assert [hit.chunk_id for hit in equal.ranking[:2]] == ["wrong 0", "wrong 1"]
    assert [hit.chunk_id for hit in fused([point, beside]).ranking[:3]] == ["right 0", "right 1", "right 2"]


def test_weights_can_be_set_by_kind_of_query() -> None:
    lists = [ranked({"mine": 2.0, "theirs": 1.0}), ranked({"theirs": 2.0}), ranked({"theirs": 2.0})]
    assert fused(lists, weights={}).ranking[0].chunk_id == "theirs"
    heavy = fused(lists, weights={"original": 200.0})
    assert heavy.ranking[0].chunk_id == "mine"
    assert {hit.chunk_id for hit in heavy.ranking} == {"mine", "theirs"}


def test_searches_run_side_by_side_but_no_more_than_allowed() -> None:
    together = threading.Barrier(3, timeout=10)
    running, most, lock = 0, 0, threading.Lock()

    def search(query: PlannedQuery) -> Given:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        together.wait()  # passes only if three are in here at once
        with lock:
            running -= 1
        return Given(())

    retrieve_variants([PlannedQuery(str(number)) for number in range(9)], retrieve=search, workers=3)
    assert most == 3


def test_a_failure_ends_all_and_leaves_no_search_running() -> None:
    begun: list[str] = []
    ended: list[str] = []
    failed = threading.Event()

    def search(query: PlannedQuery) -> Given:
        begun.append(query.text)
        if query.text == "1":
            failed.set()
            raise EngineError("The engine is gone.")
        failed.wait(10)
        threading.Event().wait(0.2)
        ended.append(query.text)
        return Given(())

    with pytest.raises(EngineError, match="The engine is gone"):
        retrieve_variants([PlannedQuery(str(number)) for number in range(50)], retrieve=search, workers=2)
    assert set(begun) - {"1"} == set(ended)
    assert len(begun) < 10


def test_of_several_failures_the_first_query_in_order_is_told() -> None:
    both = threading.Barrier(2, timeout=10)

    def search(query: PlannedQuery) -> Given:
        both.wait()
        raise EngineError(f"Failed on {query.text}.")

    with pytest.raises(EngineError, match="Failed on first"):
        retrieve_variants([PlannedQuery("first"), PlannedQuery("second")], retrieve=search, workers=2)


def test_a_warning_is_told_once_and_says_which_wording_it_is_about() -> None:
    given = {
        "question": Given((), {"encode": 1.0, "search": 5.0}, ("All cut.",)),
        "other " * 20: Given((), {"encode": 3.0}, ("All cut.", "No word.")),
        "third": Given((), {"encode": 2.0}, ("No word.",)),
    }
    queries = [PlannedQuery(text) for text in given]
    found = retrieve_variants(queries, retrieve=lambda query: given[query.text])
    shown = ("other " * 20)[:57] + "..."
    assert found.warnings == ("All cut.", f'In the search for "{shown}": No word.')
    assert found.timings_ms["encode"] == 3.0
    assert found.timings_ms["search"] == 5.0
    assert {"variants", "fuse.variants"} <= set(found.timings_ms)


@pytest.mark.parametrize(
    ("queries", "more", "said"),
    [
        ([], {}, "nothing to search"),
        ([PlannedQuery("q")], {"workers": 0}, "0 searches at a time"),
        ([PlannedQuery("q"), PlannedQuery("r")], {"weights": {"original": -1.0}}, "The weight of query 1 is -1"),
    ],
)
def test_what_cannot_be_meant_is_refused(queries: list[PlannedQuery], more: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        retrieve_variants(queries, retrieve=lambda query: Given(ranked({"a": 1.0})), **more)  # type: ignore[arg-type]


# ── composed with the real steps ──────────────────────────────────────────────────────────────────────────────

TEXTS = {
    "paris": "Paris is the capital of France and its largest city.",
    "rome": "Rome, the capital of Italy, lies on the Tiber.",
    "cats": "Cats sleep for most of the day and hunt at dusk.",
    "fusion": "Reciprocal rank fusion adds the reciprocal ranks of several result lists.",
}
ID = {name: digest(name) for name in TEXTS}
LEXICAL = LexicalEncoder()
ARMS = ["minilm", "lexical"]


@pytest.fixture(scope="module")
def minilm() -> MiniLM:
    return MiniLM(threads=1)


@pytest.fixture(scope="module")
def engine(minilm: MiniLM) -> Iterator[MemoryEngine]:
    engine = MemoryEngine(dense={"minilm": minilm.dimensions})
    for (name, text), encoding in zip(TEXTS.items(), minilm.encode_documents(list(TEXTS.values())), strict=True):
        vector, terms = LEXICAL.document(text, language="en")
        chunk = EncodedChunk(
            id=ID[name],
            chunk=ContextualChunk(Chunk(text=text, start=0, end=len(text))),
            dense={"minilm": encoding.vector},
            lexical=vector,
            terms=terms,
        )
        record = DocumentRecord(id=digest("document", name), source=f"{name}.txt", revision="1", language="en")
        engine.replace([EncodedDocument(record, (chunk,))])
    yield engine
    engine.close()


@pytest.fixture
def search(engine: MemoryEngine, minilm: MiniLM) -> Callable[[PlannedQuery], Retrieved]:
    def one(query: PlannedQuery) -> Retrieved:
        arms = arms_for(query, ARMS, dense={"minilm"})
        embedders = embedders_for(query, {"minilm": minilm})
        found = retrieve(query.text, engine=engine, arms=arms, embedders=embedders, lexical=LEXICAL)
        return rank(found, engine=engine)

    return one


def test_what_only_a_variation_finds_is_in_the_result(search: Callable[[PlannedQuery], Retrieved]) -> None:
    queries = [PlannedQuery("Where do cats sleep?"), PlannedQuery("capital on the Tiber", "variation")]
    found = retrieve_variants(queries, retrieve=search)
    assert {hit.chunk_id for hit in found.ranking} == set(ID.values())
    ways = {by.query: by.rank for by in found.found_by[ID["rome"]]}
    assert ways[1] == 1
    assert {hit.chunk_id for hit in found.ranking[:2]} == {ID["cats"], ID["rome"]}
    # The way through the arms stays with each query.
    assert set(found.each[1].places[ID["rome"]]) == {"minilm", "lexical"}


def test_an_invented_passage_is_searched_by_meaning_alone(search: Callable[[PlannedQuery], Retrieved]) -> None:
    passage = PlannedQuery("The seat of the French government stands in Paris.", "hyde")
    found = retrieve_variants([PlannedQuery("French seat of government"), passage], retrieve=search)
    assert set(found.each[1].places[ID["paris"]]) == {"minilm"}
    assert found.found_by[ID["paris"]] == (
        FoundBy(0, 1, found.each[0].ranking[0].score),
        FoundBy(1, 1, found.each[1].ranking[0].score),
    )


def test_each_query_has_the_arms_that_fit_it() -> None:
    arms = [*ARMS, "boolean"]
    assert arms_for(PlannedQuery("x"), arms, dense={"minilm"}) == arms
    assert arms_for(PlannedQuery("x", "part"), arms, dense={"minilm"}) == ARMS
    assert arms_for(PlannedQuery("x", "hyde"), arms, dense={"minilm"}) == ["minilm"]


def test_a_query_that_no_chosen_arm_can_search_for_is_left_out_and_told() -> None:
    queries = (PlannedQuery("x"), PlannedQuery("y", "variation"), PlannedQuery("z", "hyde"))
    assert searchable(queries, ARMS, dense={"minilm"}) == (queries, ())
    assert searchable(queries, ["boolean"], dense={"minilm"}) == (
        queries[:1],
        ("2 further queries of the plan were left out: boolean cannot search for them.",),
    )


def test_an_invented_passage_is_encoded_as_the_documents_are() -> None:
    class Prefixed:
        name = "prefixed"

        def encode_query(self, text: str) -> str:
            return f"query: {text}"

        def encode_documents(self, texts: list[str], *, token_codes: bool = False) -> list[str]:
            return [f"passage: {text}, {token_codes=}" for text in texts]

    embedders: Any = {"prefixed": Prefixed()}
    as_passage: Any = embedders_for(PlannedQuery("x", "hyde"), embedders)["prefixed"]
    assert as_passage.encode_query("x") == "passage: x, token_codes=True"
    assert as_passage.name == "prefixed"
    assert embedders_for(PlannedQuery("x", "part"), embedders) is embedders


def test_many_searches_at_once_give_what_one_at_a_time_gives(search: Callable[[PlannedQuery], Retrieved]) -> None:
    queries = [PlannedQuery(text, "variation") for text in TEXTS.values()]
    run = partial(retrieve_variants, queries, retrieve=search)
    assert run(workers=4).ranking == run(workers=1).ranking
