"""Documents cut into chunks, and evidence made of texts, for the tests of grounded answers."""

from __future__ import annotations

from collections.abc import Sequence

from cognicraft.answer.ground import Evidence, pack
from cognicraft.records import Chunk, ContextualChunk, StoredChunk, digest


def words(text: str) -> int:
    return len(text.split())


def stored(
    text: str,
    *,
    source: str = "docs/report.txt",
    start: int = 0,
    page: int = 0,
    page_end: int = 0,
    headings: Sequence[str] = (),
    title: str = "",
    pointer: str = "",
) -> StoredChunk:
    chunk = Chunk(text, start, start + len(text), page, page_end or page, tuple(headings))
    document_id = digest(source, pointer)
    identifier = digest(document_id, text, str(start))
    return StoredChunk(identifier, document_id, source, title, ContextualChunk(chunk), pointer=pointer)


def cut_up(text: str, spans: Sequence[tuple[int, int]], *, source: str = "docs/report.txt") -> list[StoredChunk]:
    return [stored(text[start:end], source=source, start=start) for start, end in spans]


def evidence_of(*texts: str, max_tokens: int = 16_000) -> Evidence:
    """One passage for each text, each of a document of its own."""
    chunks = [stored(text, source=f"docs/{number}.txt") for number, text in enumerate(texts, start=1)]
    return pack(chunks, max_tokens=max_tokens, count_tokens=words)
