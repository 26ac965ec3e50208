"""A search led to the documents that a question names, over the exact engine and the shipped encoder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cognicraft.engines.memory import MemoryEngine
from cognicraft.models.minilm import MiniLM
from cognicraft.records import (
    Chunk,
    ContextualChunk,
    DocumentHint,
    DocumentRecord,
    EncodedChunk,
    EncodedDocument,
    Equals,
    Scored,
    digest,
)
from cognicraft.search.aliases import early_chunks
from cognicraft.search.lexical import LexicalEncoder
from cognicraft.search.names import Names
from cognicraft.search.rerank import LateInteraction
from cognicraft.search.retrieve import BOOLEAN, LEXICAL, Retrieved, rank, retrieve
from cognicraft.search.route import Route, keep_unrouted, prefer, routes, search_routed
from cognicraft.search.understand import understand

LEXICAL_ENCODER = LexicalEncoder()
COMPANIES = {"AXQ": "Alderon", "BTR": "Brightwater", "CNV": "Convallia", "DMS": "Dorsimer"}
QUARTERS = ("2021Q1", "2021Q2", "2021Q3", "2022Q1")
SENTENCES = (
    "{company} Corporation. Quarterly report.",
    "{company} makes pumps, valves and filters for waterworks.",
    "The Company's capital expenditure was {figure} million in the quarter.",
    "Gross margin of the Company was {margin} percent of net sales.",
    "The Company is party to legal proceedings that are not material.",
)


def encoded(source: str, texts: list[str], minilm: MiniLM) -> EncodedDocument:
    chunks, start = [], 0
    for text, encoding in zip(texts, minilm.encode_documents(texts, token_codes=True), strict=True):
        vector, terms = LEXICAL_ENCODER.document(text, language="en")
        assert encoding.token_codes is not None
        chunks.append(
            EncodedChunk(
                id=digest(source, text),
                chunk=ContextualChunk(Chunk(text, start, start + len(text), page=1, page_end=1)),
                dense={"minilm": encoding.vector},
                lexical=vector,
                terms=terms,
                token_codes={"minilm": encoding.token_codes},
            )
        )
        start += len(text) + 1
    record = DocumentRecord(digest(source), source, "1", language="en", chunk_count=len(chunks))
    return EncodedDocument(record, tuple(chunks))


@pytest.fixture(scope="module")
def minilm() -> MiniLM:
    return MiniLM(threads=1)


@pytest.fixture(scope="module")
def engine(minilm: MiniLM) -> Iterator[MemoryEngine]:
    """Sixteen reports that differ in a figure; what tells them apart is the name of the file."""
    engine = MemoryEngine(dense={"minilm": minilm.dimensions})
    documents = []
    for number, (code, company) in enumerate(COMPANIES.items()):
        for place, quarter in enumerate(QUARTERS):
            figure, margin = 100 + 10 * number + place, 30 + 4 * number + place
            texts = [sentence.format(company=company, figure=figure, margin=margin) for sentence in SENTENCES]
            documents.append(encoded(f"filings/{code}_{quarter}_10Q.pdf", texts, minilm))
    documents.append(encoded("weather.txt", ["It rained for most of the second quarter of 2021."], minilm))
    engine.replace(documents)
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def names(engine: MemoryEngine, minilm: MiniLM) -> Names:
    return Names.learn(
        engine.documents(),
        terms=lambda text: LEXICAL_ENCODER.terms(text, language="en"),
        first_chunks_of=lambda record: early_chunks(engine, record, arm="minilm", dimensions=minilm.dimensions),
    )


def search(
    question: str,
    engine: MemoryEngine,
    minilm: MiniLM,
    *,
    led: tuple[Route, ...] = (),
    limit: int | None = 10,
    depth: int = 20,
) -> Retrieved:
    found = retrieve(
        question,
        engine=engine,
        arms=["minilm", LEXICAL],
        embedders={"minilm": minilm},
        lexical=LEXICAL_ENCODER,
        depth=depth,
        routes=led,
    )
    return rank(found, engine=engine, rerank=LateInteraction(budget_ms=1e6), limit=limit)


def sources(found: Retrieved, engine: MemoryEngine) -> list[str]:
    return [stored.source for stored in engine.chunks([hit.chunk_id for hit in found.ranking])]


def test_the_report_of_the_company_and_quarter_asked_for_comes_first(
    engine: MemoryEngine, minilm: MiniLM, names: Names
) -> None:
    reports = without = 0
    for code, company in COMPANIES.items():
        for quarter in QUARTERS:
            question = f"What was {company}'s capital expenditure in Q{quarter[-1]} {quarter[:4]}?"
            wanted = f"filings/{code}_{quarter}_10Q.pdf"
            led = routes(understand(question, names=names).hints)
            found = search(question, engine, minilm, led=led, limit=3)
            assert sources(found, engine)[0] == wanted
            passages = engine.chunks([hit.chunk_id for hit in found.ranking])
            assert any(one.source == wanted and "capital expenditure" in one.chunk.chunk.text for one in passages)
            reports += 1
            without += sources(search(question, engine, minilm), engine)[0] == wanted
    assert without < reports / 2  # the texts alone do not tell the reports apart


def test_a_routed_search_holds_all_that_the_unrouted_one_holds(
    engine: MemoryEngine, minilm: MiniLM, names: Names
) -> None:
    question = "How did Alderon do in the second quarter of 2021?"
    led = routes(understand(question, names=names).hints)
    assert led
    before = {hit.chunk_id for hit in search(question, engine, minilm, limit=None, depth=5).ranking}
    after = {hit.chunk_id for hit in search(question, engine, minilm, led=led, limit=None, depth=5).ranking}
    assert before < after


def test_the_first_hits_that_nothing_routed_stay_among_those_shown(engine: MemoryEngine, minilm: MiniLM) -> None:
    question = "How much did it rain in the second quarter of 2021?"
    wrongly = (Route((digest("filings/AXQ_2021Q2_10Q.pdf"), digest("filings/BTR_2021Q2_10Q.pdf")), 1.0),)
    assert sources(search(question, engine, minilm, limit=5), engine)[0] == "weather.txt"
    assert "weather.txt" in sources(search(question, engine, minilm, led=wrongly, limit=5), engine)


def test_without_a_hint_the_ranking_is_the_same_to_the_last_digit(engine: MemoryEngine, minilm: MiniLM) -> None:
    question = "Which legal proceedings are material?"
    assert search(question, engine, minilm, led=()).ranking == search(question, engine, minilm).ranking


def test_a_filter_holds_for_the_documents_named_too(engine: MemoryEngine, minilm: MiniLM) -> None:
    found = retrieve(
        "Alderon capital expenditure",
        engine=engine,
        arms=["minilm", LEXICAL],
        embedders={"minilm": minilm},
        lexical=LEXICAL_ENCODER,
        where=Equals("file", "weather.txt"),
        routes=(Route((digest("filings/AXQ_2021Q2_10Q.pdf"),), 1.0),),
    )
    ids = [hit.chunk_id for ranking in found.rankings.values() for hit in ranking]
    assert {stored.source for stored in engine.chunks(ids)} == {"weather.txt"}


def test_a_rule_is_searched_in_the_documents_named_as_well(engine: MemoryEngine, minilm: MiniLM) -> None:
    document = digest("filings/AXQ_2021Q2_10Q.pdf")
    found = retrieve(
        "margin",
        engine=engine,
        arms=[BOOLEAN],
        embedders={"minilm": minilm},
        lexical=LEXICAL_ENCODER,
        depth=2,
        routes=(Route((document,), 0.5),),
    )
    ((routed, weight),) = found.fits.items()
    assert weight == 0.5
    (stored,) = engine.chunks([routed])
    assert (stored.document_id, "margin" in stored.chunk.chunk.text) == (document, True)


def hint(name: str, fit: float) -> DocumentHint:
    return DocumentHint(name, f"{name}.pdf", fit)


def test_hints_of_one_fit_are_one_route_and_weak_ones_are_none() -> None:
    led = routes([hint("a", 1.0), hint("b", 0.7), hint("c", 0.7), hint("d", 0.4), hint("e", 0.3), hint("f", 0.1)])
    assert [route.document_ids for route in led] == [("a",), ("b", "c"), ("d", "e")]
    assert [route.fit for route in led] == [1.0, 0.7, pytest.approx(0.35)]
    assert routes([]) == ()


def test_each_arm_is_asked_once_more_for_each_route() -> None:
    asked = []

    def arm(where: object) -> tuple[Scored, ...]:
        asked.append(where)
        return (Scored("x", 2.0),) if len(asked) == 1 else (Scored("y", 3.0 - len(asked)),)

    ranking, fits = search_routed(arm, None, led=[Route(("a",), 1.0)], depth=10)
    assert len(asked) == 2
    assert ranking == (Scored("x", 2.0), Scored("y", 1.0))
    assert fits == {"y": 1.0}


def test_a_weak_fit_hardly_moves_a_passage() -> None:
    ranking = tuple(Scored(f"c{n:02}", 10.0 - n) for n in range(10))
    assert prefer(ranking, {"c05": 1.0})[0].chunk_id == "c05"
    assert [hit.chunk_id for hit in prefer(ranking, {"c05": 0.2})].index("c05") == 5
    assert prefer(ranking, {}) is ranking


def test_a_fifth_of_the_places_is_left_to_what_the_arms_put_first() -> None:
    before = tuple(Scored(f"b{n}", 10.0 - n) for n in range(10))
    routed = (*(Scored(f"r{n}", 20.0 - n) for n in range(10)), *before)
    kept = [hit.chunk_id for hit in keep_unrouted(routed, before, limit=10)]
    assert kept == [*(f"r{n}" for n in range(8)), "b0", "b1"]
    assert keep_unrouted(routed, before, limit=None) == routed
    assert [hit.chunk_id for hit in keep_unrouted(routed, before, limit=3)] == ["r0", "r1", "r2"]
