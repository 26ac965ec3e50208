"""BM25 against bm25s (Lù, 2024), an implementation that shares no line with ours, over the same terms."""

from __future__ import annotations

import numpy as np
import pytest

from cognicraft.engines.memory import MemoryEngine
from cognicraft.records import (
    Chunk,
    ContextualChunk,
    DocumentRecord,
    EncodedChunk,
    EncodedDocument,
    SparseVector,
    digest,
)
from cognicraft.search.lexical import LexicalEncoder

bm25s = pytest.importorskip("bm25s", reason="bm25s is a development dependency: pip install bm25s")

WORDS = ["wolf", "moon", "river", "stone", "cloud", "ember", "frost", "lantern", "harbour", "violin", "copper"]
K1, B = 1.2, 0.75


def corpus(seed: int = 7) -> list[str]:
    random = np.random.default_rng(seed)
    weights = 1 / np.arange(1, len(WORDS) + 1)
    weights /= weights.sum()
    return [" ".join(random.choice(WORDS, size=int(random.integers(3, 40)), p=weights)) for _ in range(60)]


def ident(number: int) -> str:
    return digest(str(number))


def engine_of(texts: list[str], encoder: LexicalEncoder) -> MemoryEngine:
    engine = MemoryEngine(dense={"none": 2})
    documents = []
    for number, text in enumerate(texts):
        vector, terms = encoder.document(text, language="en")
        chunk = EncodedChunk(
            id=ident(number),
            chunk=ContextualChunk(Chunk(text=text, start=0, end=len(text))),
            dense={"none": np.array([1.0, 0.0], dtype=np.float32)},
            lexical=vector,
            terms=terms,
        )
        record = DocumentRecord(id=digest("document", str(number)), source=f"{number}.txt", revision="1", language="en")
        documents.append(EncodedDocument(record, (chunk,)))
    engine.replace(documents)
    return engine


def without_pairs(query: SparseVector) -> SparseVector:
    """bm25s knows single terms only; those count 1 or more in a question, a pair counts less."""
    single = query.values >= 1
    return SparseVector(query.indices[single], query.values[single])


@pytest.mark.parametrize("question", ["wolf", "violin copper", "moon moon copper", "wolf moon river stone cloud"])
def test_scores_agree_with_bm25s(question: str) -> None:
    texts = corpus()
    encoder = LexicalEncoder()
    terms = [encoder.terms(text, language="en") for text in texts]
    average = float(np.mean([len(one) for one in terms]))
    encoder = LexicalEncoder(k1=K1, b=B, average_length=average)
    reference = bm25s.BM25(method="lucene", k1=K1, b=B)
    reference.index(terms, show_progress=False)
    # Lucene's form leaves out the factor (k1 + 1), which changes no order.
    expected = reference.get_scores(encoder.terms(question, language="en")) * (K1 + 1)

    engine = engine_of(texts, encoder)
    query = without_pairs(encoder.query(question, languages=["en"]))
    found = {hit.chunk_id: hit.score for hit in engine.search_lexical(query, limit=1000)}
    scores = [found.get(ident(number), 0.0) for number in range(len(texts))]
    assert scores == pytest.approx(expected.tolist(), rel=1e-4, abs=1e-6)


def test_a_score_worked_by_hand() -> None:
    """Three texts of 2, 2 and 4 terms, average length 2; "wolf" is in two of them.

    idf = ln(1 + (3 - 2 + .5) / (2 + .5)) = ln 1.6 = .470004. In the first: tf 1, length 2: 1·2.2 / (1 + 1.2) = 1.
    In the third: tf 2, length 4: 2·2.2 / (2 + 1.2·(.25 + .75·2)) = 4.4 / 4.1 = 1.073171.
    """
    encoder = LexicalEncoder(k1=1.2, b=0.75, average_length=2)
    engine = engine_of(["wolf moon", "river stone", "wolf wolf moon cloud"], encoder)
    found = {hit.chunk_id: hit.score for hit in engine.search_lexical(encoder.query("wolf", languages=["en"]), limit=9)}
    assert found == pytest.approx({ident(0): 0.470004, ident(2): 0.504395}, abs=1e-5)


def test_a_pair_in_order_ranks_above_the_same_words_apart() -> None:
    encoder = LexicalEncoder()
    texts = ["river moon cloud stone wolf", "river cloud stone wolf moon"]
    engine = engine_of(texts, encoder)
    found = engine.search_lexical(encoder.query("wolf moon", languages=["en"]), limit=9)
    assert [hit.chunk_id for hit in found] == [ident(1), ident(0)]
    assert found[0].score > found[1].score
