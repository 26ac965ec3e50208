"""Small documents whose scores differ by their words, for the engine suite: no model, no file, the same every time."""

from __future__ import annotations

import hashlib
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from cognicraft.records import (
    ByteArray,
    Chunk,
    ContextualChunk,
    DocumentRecord,
    EncodedChunk,
    EncodedDocument,
    FloatArray,
    Metadata,
    SparseVector,
    chunk_id,
    digest,
)

ARMS: Mapping[str, int] = {"first": 16, "second": 8}
"""The arms, name -> dimensions, of an engine that takes the suite."""


def document_id(name: str) -> str:
    """The id of the sample document of that name."""
    return digest(f"samples/{name}.txt", "")


def sample_document(
    name: str,
    texts: Sequence[str],
    *,
    revision: str = "1",
    language: str = "en",
    metadata: Metadata | None = None,
    token_codes: bool = True,
    status: str = "ready",
) -> EncodedDocument:
    """A document of these chunk texts, one page each. `status="failed"` takes no texts."""
    identifier = document_id(name)
    chunks = []
    seen: Counter[str] = Counter()
    start = 0
    for number, text in enumerate(texts):
        chunk = Chunk(
            text=text,
            start=start,
            end=start + len(text),
            page=number + 1,
            page_end=number + 1,
            heading_path=("Samples", name),
            tokens=len(text.split()),
            occurrence=seen[text],
        )
        seen[text] += 1
        start = chunk.end + 1
        chunks.append(_encoded(chunk_id(identifier, revision, chunk), chunk, name, token_codes))
    record = DocumentRecord(
        id=identifier,
        source=f"samples/{name}.txt",
        revision=revision,
        status="failed" if status == "failed" else "ready",
        title=name.title(),
        language=language,
        characters=max(start - 1, 0),
        chunk_count=len(chunks),
        file_hash=digest(revision, *texts),
        ingested_at="2026-11-21T00:00:00Z",
        metadata=metadata or {},
        error_code="corrupt" if status == "failed" else "",
        error="It is damaged." if status == "failed" else "",
    )
    return EncodedDocument(record=record, chunks=tuple(chunks))


def words_vector(text: str, *, arm: str = "first") -> FloatArray:
    """A unit vector that texts share as far as they share words."""
    size = ARMS[arm]
    total = np.full(size, 0.01)
    for word in text.split():
        seed = hashlib.blake2b(f"{arm} {word}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
        total += np.random.default_rng(int.from_bytes(seed, "little")).standard_normal(size)
    return np.asarray(total / np.linalg.norm(total), dtype=np.float32)


def words_query(text: str) -> SparseVector:
    """Term indices and how often each stands in the text."""
    counts = Counter(_term_index(word) for word in text.split())
    indices = np.array(sorted(counts), dtype=np.uint32)
    return SparseVector(indices=indices, values=np.array([counts[int(i)] for i in indices], dtype=np.float32))


def _encoded(identifier: str, chunk: Chunk, name: str, token_codes: bool) -> EncodedChunk:
    counted = words_query(chunk.text)
    return EncodedChunk(
        id=identifier,
        chunk=ContextualChunk(chunk, lexical_context=name),
        dense={arm: words_vector(chunk.text, arm=arm) for arm in ARMS},
        lexical=SparseVector(counted.indices, (counted.values / (counted.values + 1.2)).astype(np.float32)),
        terms=tuple(chunk.text.split()),
        token_codes={arm: _codes(chunk.text, size) for arm, size in ARMS.items()} if token_codes else {},
    )


def _codes(text: str, size: int) -> ByteArray:
    words = text.split()
    rows = [zlib.crc32(word.encode("utf-8", "surrogatepass")) for word in words]
    return np.array([[row & 255, row >> 8 & 255][: size // 8] for row in rows], dtype=np.uint8).reshape(-1, size // 8)


def _term_index(word: str) -> int:
    return zlib.crc32(word.encode("utf-8", "surrogatepass"))
