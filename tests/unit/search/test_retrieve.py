"""The arms side by side over the exact engine, and the composed ranking."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from cognicraft.engines.memory import MemoryEngine
from cognicraft.errors import FilterError, UsageError
from cognicraft.models.minilm import MiniLM
from cognicraft.records import Chunk, ContextualChunk, DocumentRecord, EncodedChunk, EncodedDocument, Equals, digest
from cognicraft.search.fuse import minmax
from cognicraft.search.lexical import LexicalEncoder
from cognicraft.search.rerank import LateInteraction
from cognicraft.search.retrieve import ArmResults, rank, retrieve

TEXTS = {
    "bm25": "BM25 scores a document by the terms that it shares with the query, discounted by length.",
    "cats": "Cats sleep for most of the day and hunt at dusk.",
    "dogs": "Dogs were the first animal that people tamed.",
    "paris": "Paris is the capital of France and its largest city.",
    "rome": "Rome, the capital of Italy, lies on the Tiber.",
    "fusion": "Reciprocal rank fusion adds the reciprocal ranks of several result lists.",
}
ID = {name: digest(name) for name in TEXTS}
LEXICAL = LexicalEncoder()


@pytest.fixture(scope="module")
def minilm() -> MiniLM:
    return MiniLM(threads=1)


def filled(minilm: MiniLM, *, token_codes: bool, language: str = "en") -> MemoryEngine:
    engine = MemoryEngine(dense={"minilm": minilm.dimensions})
    encodings = minilm.encode_documents(list(TEXTS.values()), token_codes=token_codes)
    documents = []
    for (name, text), encoding in zip(TEXTS.items(), encodings, strict=True):
        vector, terms = LEXICAL.document(text, language=language)
        chunk = EncodedChunk(
            id=ID[name],
            chunk=ContextualChunk(Chunk(text=text, start=0, end=len(text))),
            dense={"minilm": encoding.vector},
            lexical=vector,
            terms=terms,
            token_codes={} if encoding.token_codes is None else {"minilm": encoding.token_codes},
        )
        record = DocumentRecord(
            id=digest("document", name),
            source=f"{name}.txt",
            revision="1",
            language=language,
            metadata={"about": name[:1]},
        )
        documents.append(EncodedDocument(record, (chunk,)))
    engine.replace(documents)
    return engine


@pytest.fixture(scope="module")
def engine(minilm: MiniLM) -> Iterator[MemoryEngine]:
    engine = filled(minilm, token_codes=True)
    yield engine
    engine.close()


class InLanguages:
    """The real encoder, stating other languages."""

    def __init__(self, minilm: MiniLM, languages: frozenset[str] | None) -> None:
        self._minilm = minilm
        self.languages = languages

    def __getattr__(self, name: str) -> object:
        return getattr(self._minilm, name)


def asked(
    question: str,
    engine: MemoryEngine,
    minilm: object,
    *,
    arms: tuple[str, ...] = ("minilm", "lexical"),
    **more: object,
) -> ArmResults:
    embedders = {"minilm": minilm}
    return retrieve(question, engine=engine, arms=arms, embedders=embedders, lexical=LEXICAL, **more)  # type: ignore[arg-type]


def test_every_arm_gives_its_own_list_and_its_time(engine: MemoryEngine, minilm: MiniLM) -> None:
    found = asked("capital of France", engine, minilm, arms=("minilm", "lexical", "boolean"))
    assert list(found.rankings) == ["minilm", "lexical", "boolean"]
    assert all(ranking[0].chunk_id == ID["paris"] for ranking in found.rankings.values())
    assert len(found.rankings["minilm"]) == len(TEXTS)
    assert [hit.chunk_id for hit in found.rankings["boolean"]] == [ID["paris"]]
    assert {"encode.minilm", "search.minilm", "search.lexical", "search.boolean"} <= set(found.timings_ms)
    assert found.warnings == ()


def test_the_default_ranking_finds_it_and_tells_its_way(engine: MemoryEngine, minilm: MiniLM) -> None:
    found = asked("Which city is the capital of France?", engine, minilm)
    result = rank(found, engine=engine, rerank=LateInteraction())
    best = result.ranking[0]
    assert best.chunk_id == ID["paris"]
    assert {name: place.rank for name, place in result.places[ID["paris"]].items()} == {
        "minilm": 1,
        "lexical": 1,
        "late-interaction": 1,
    }
    assert "lexical" not in result.places[ID["cats"]]  # shares no word, so it has no rank there
    assert result.reranked == len(TEXTS)
    assert result.warnings == ()


def test_scores_in_places_are_those_of_the_arm(engine: MemoryEngine, minilm: MiniLM) -> None:
    found = asked("capital of France", engine, minilm)
    result = rank(found, fusion=minmax)
    for name, ranking in found.rankings.items():
        for position, hit in enumerate(ranking, start=1):
            place = result.places[hit.chunk_id][name]
            assert (place.rank, place.score) == (position, hit.score)


def test_a_limit_cuts_the_ranking_and_its_places(engine: MemoryEngine, minilm: MiniLM) -> None:
    result = rank(asked("capital", engine, minilm), engine=engine, rerank=LateInteraction(), limit=2)
    assert [hit.chunk_id for hit in result.ranking] == list(result.places)
    assert len(result.ranking) == 2


def test_depth_bounds_each_arm(engine: MemoryEngine, minilm: MiniLM) -> None:
    found = asked("capital of the city", engine, minilm, depth=1)
    assert {arm: len(ranking) for arm, ranking in found.rankings.items()} == {"minilm": 1, "lexical": 1}


def test_a_filter_reaches_every_arm(engine: MemoryEngine, minilm: MiniLM) -> None:
    found = asked("capital", engine, minilm, arms=("minilm", "lexical", "boolean"), where=Equals("about", "r"))
    assert {hit.chunk_id for ranking in found.rankings.values() for hit in ranking} == {ID["rome"]}


def test_a_question_of_stop_words_says_that_the_lexical_arm_had_nothing(engine: MemoryEngine, minilm: MiniLM) -> None:
    found = asked("what is it?", engine, minilm)
    assert found.rankings["lexical"] == ()
    assert any("lexical arm was left out" in warning for warning in found.warnings)
    assert len(rank(found, engine=engine, rerank=LateInteraction()).ranking) == len(TEXTS)


def test_a_workspace_without_token_vectors_says_so(minilm: MiniLM) -> None:
    bare = filled(minilm, token_codes=False)
    result = rank(asked("capital of France", bare, minilm), engine=bare, rerank=LateInteraction())
    assert result.ranking[0].chunk_id == ID["paris"]
    assert result.reranked == 0
    assert any("keeps no token vectors" in warning for warning in result.warnings)
    bare.close()


def test_a_spent_budget_is_told(engine: MemoryEngine, minilm: MiniLM) -> None:
    result = rank(
        asked("capital", engine, minilm), engine=engine, rerank=LateInteraction(budget_ms=1e-6, first_batch=2)
    )
    assert result.reranked == 2
    assert any("reached 2 of 6" in warning for warning in result.warnings)


def test_an_empty_workspace_gives_nothing(minilm: MiniLM) -> None:
    empty = MemoryEngine(dense={"minilm": minilm.dimensions})
    result = rank(asked("anything", empty, minilm), engine=empty, rerank=LateInteraction())
    assert result.ranking == ()
    empty.close()


def test_a_foreign_question_drops_the_lexical_arm_where_the_encoder_knows_its_language(
    engine: MemoryEngine, minilm: MiniLM
) -> None:
    both = InLanguages(minilm, frozenset({"en", "es"}))
    found = asked("la capital de Francia", engine, both, language_of=lambda _: "es")
    assert list(found.rankings) == ["minilm"]
    assert "'es'" in found.warnings[0]
    assert "'en'" in found.warnings[0]


def test_shared_words_are_kept_where_the_encoder_does_not_know_the_language(
    engine: MemoryEngine, minilm: MiniLM
) -> None:
    found = asked("la capital de Francia", engine, minilm, language_of=lambda _: "es")
    assert "lexical" in found.rankings
    assert found.unknown_language == {"minilm"}
    assert "no encoder of this workspace knows" in found.warnings[0]
    sharp = rank(found, engine=engine, rerank=LateInteraction()).places
    plain = rank(replace(found, unknown_language=frozenset()), engine=engine, rerank=LateInteraction()).places
    assert sharp[ID["paris"]]["late-interaction"].score < plain[ID["paris"]]["late-interaction"].score


def test_an_english_question_taken_for_another_language_is_outvoted_for_the_encoder_too(
    engine: MemoryEngine, minilm: MiniLM
) -> None:
    found = asked("what is the capital of France", engine, minilm, language_of=lambda _: "fr")
    assert found.unknown_language == frozenset()
    assert found.warnings == ()


@pytest.mark.parametrize("said", ["en", ""])
def test_the_lexical_arm_stays_where_languages_agree_or_are_unknown(
    engine: MemoryEngine, minilm: MiniLM, said: str
) -> None:
    everything = InLanguages(minilm, None)
    assert "lexical" in asked("the capital of France", engine, everything, language_of=lambda _: said).rankings


def test_a_wrong_guess_at_the_language_is_outvoted_by_the_questions_own_words(
    engine: MemoryEngine, minilm: MiniLM
) -> None:
    everything = InLanguages(minilm, None)
    found = asked("what is the capital of France", engine, everything, language_of=lambda _: "de")
    assert "lexical" in found.rankings
    assert found.warnings == ()


def test_passages_of_unknown_language_drop_nothing(minilm: MiniLM) -> None:
    unknown = filled(minilm, token_codes=True, language="")
    everything = InLanguages(minilm, None)
    assert "lexical" in asked("la capital de Francia", unknown, everything, language_of=lambda _: "es").rankings
    unknown.close()


def test_an_encoder_that_does_not_know_the_language_is_left_out_where_another_does(minilm: MiniLM) -> None:
    engine = MemoryEngine(dense={"english": minilm.dimensions, "many": minilm.dimensions})
    text = "Paris is the capital of France."
    [encoding] = minilm.encode_documents([text], token_codes=True)
    vector, terms = LEXICAL.document(text, language="en")
    assert encoding.token_codes is not None
    chunk = EncodedChunk(
        id=ID["paris"],
        chunk=ContextualChunk(Chunk(text=text, start=0, end=len(text))),
        dense={"english": encoding.vector, "many": encoding.vector},
        lexical=vector,
        terms=terms,
        token_codes={"english": encoding.token_codes, "many": encoding.token_codes},
    )
    engine.replace([EncodedDocument(DocumentRecord(id=digest("d"), source="d", revision="1", language="en"), (chunk,))])
    found = retrieve(
        "la capital de Francia",
        engine=engine,
        arms=["english", "many", "lexical"],
        embedders={"english": minilm, "many": InLanguages(minilm, None)},  # type: ignore[dict-item]
        lexical=LEXICAL,
        language_of=lambda _: "es",
    )
    assert list(found.rankings) == list(found.encodings) == ["many"]
    assert len(found.warnings) == 2
    engine.close()


def test_two_encoders_share_the_weight_of_one(engine: MemoryEngine, minilm: MiniLM) -> None:
    found = asked("capital of France", engine, minilm)
    twice = ArmResults(
        {"one": found.rankings["minilm"], "two": found.rankings["minilm"], "lexical": found.rankings["lexical"]},
        {"one": found.encodings["minilm"], "two": found.encodings["minilm"]},
    )
    one, two = rank(found).ranking, rank(twice).ranking
    assert [hit.chunk_id for hit in one] == [hit.chunk_id for hit in two]
    assert [hit.score for hit in one] == pytest.approx([hit.score for hit in two])


@pytest.mark.parametrize(
    ("arms", "depth", "reason"),
    [(("minilm", "sparse"), 100, "no arm 'sparse'"), ((), 100, "No arm"), (("lexical",), 0, "depth is 0")],
)
def test_what_cannot_be_meant_is_refused(
    engine: MemoryEngine, minilm: MiniLM, arms: tuple[str, ...], depth: int, reason: str
) -> None:
    with pytest.raises(UsageError, match=reason):
        asked("capital", engine, minilm, arms=arms, depth=depth)


def test_a_rule_that_does_not_parse_is_refused(engine: MemoryEngine, minilm: MiniLM) -> None:
    with pytest.raises(FilterError, match="character"):
        asked("(capital", engine, minilm, arms=("boolean",))


def test_an_engine_error_comes_through_the_threads(minilm: MiniLM) -> None:
    closed = filled(minilm, token_codes=False)
    closed.close()
    with pytest.raises(Exception, match="closed"):
        asked("capital", closed, minilm)


def test_the_reranked_score_is_between_nought_and_one(engine: MemoryEngine, minilm: MiniLM) -> None:
    result = rank(asked("capital of France", engine, minilm), engine=engine, rerank=LateInteraction())
    scores = np.array([places["late-interaction"].score for places in result.places.values()])
    assert ((scores >= 0) & (scores <= 1)).all()
