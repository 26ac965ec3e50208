"""The shipped encoder, the real word analysis, and passages made from texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from cognicraft.answer.extract import Extraction, Passage, extract
from cognicraft.models.minilm import MiniLM
from cognicraft.records import Chunk, ContextualChunk, StoredChunk, digest
from cognicraft.search.lexical import LexicalEncoder

Ask = Callable[..., Extraction]


@pytest.fixture(scope="session")
def embedder() -> MiniLM:
    return MiniLM(threads=1)


@pytest.fixture(scope="session")
def terms() -> Callable[[str], list[str]]:
    lexical = LexicalEncoder()
    return lambda text: lexical.terms(text, language="en")


@pytest.fixture(scope="session")
def passage(embedder: MiniLM) -> Callable[..., Passage]:
    """A passage from a text; it starts at `start` of the document `source`, one of its own unless named."""

    def make(
        text: str,
        *,
        source: str = "",
        start: int = 0,
        title: str = "",
        headings: Sequence[str] = (),
        context: str = "",
        codes: bool = True,
    ) -> Passage:
        chunk = ContextualChunk(Chunk(text, start, start + len(text), heading_path=tuple(headings)), context)
        source = source or digest(text)
        stored = StoredChunk(digest(source, text, str(start)), digest(source), source, title, chunk)
        encoded = embedder.encode_documents([chunk.dense_text], token_codes=True)[0]
        return Passage(stored, 1.0, {}, encoded.token_codes if codes else None)

    return make


@pytest.fixture(scope="session")
def ask(embedder: MiniLM, terms: Callable[[str], list[str]]) -> Ask:
    def run(question: str, passages: Sequence[Passage], **options: object) -> Extraction:
        return extract(
            question,
            passages,
            embedder=embedder,
            question_encoding=embedder.encode_query(question),
            lexical_terms=terms,
            **options,  # type: ignore[arg-type]
        )

    return run
