"""Contextual chunks to what the engine stores: vectors, BM25 weights, terms, token codes.

Takes: documents with their contextual chunks, the dense encoders, the lexical encoder. Returns: encoded documents in
the same order. Method: all chunks of the batch go through each dense encoder together, so that it can sort them by
length. Cost: nearly all of ingest's time is spent here. What can go wrong: a text longer than an encoder's window is
cut there; `cut_texts` counts those, and the document record says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from cognicraft.protocols import Embedder
from cognicraft.records import (
    ByteArray,
    ContextualChunk,
    DocumentRecord,
    EncodedChunk,
    EncodedDocument,
    FloatArray,
    SparseVector,
    chunk_id,
)

LexicalDocument = Callable[[str, str], tuple[SparseVector, tuple[str, ...]]]
"""(text, language) -> BM25 document weights and the analysed terms in order."""


@dataclass(frozen=True, slots=True)
class DocumentToEncode:
    """A document record and its chunks, before encoding. A failed record has none."""

    record: DocumentRecord
    chunks: tuple[ContextualChunk, ...] = ()


def encode(
    documents: Sequence[DocumentToEncode],
    *,
    embedders: Mapping[str, Embedder],
    lexical: LexicalDocument,
    token_codes: bool,
) -> list[EncodedDocument]:
    """Encode a batch. `token_codes` keeps the late-interaction codes of every encoder."""
    texts = [contextual.dense_text for document in documents for contextual in document.chunks]
    vectors: list[dict[str, FloatArray]] = [{} for _ in texts]
    codes: list[dict[str, ByteArray]] = [{} for _ in texts]
    for name, embedder in embedders.items():
        for position, encoding in enumerate(embedder.encode_documents(texts, token_codes=token_codes)):
            vectors[position][name] = encoding.vector
            if encoding.token_codes is not None:
                codes[position][name] = encoding.token_codes

    encoded: list[EncodedDocument] = []
    position = 0
    for document in documents:
        record = document.record
        chunks: list[EncodedChunk] = []
        for contextual in document.chunks:
            weights, terms = lexical(contextual.lexical_text, record.language)
            chunks.append(
                EncodedChunk(
                    id=chunk_id(record.id, record.revision, contextual.chunk),
                    chunk=contextual,
                    dense=vectors[position],
                    lexical=weights,
                    terms=terms,
                    token_codes=codes[position],
                )
            )
            position += 1
        encoded.append(EncodedDocument(record=replace(record, chunk_count=len(chunks)), chunks=tuple(chunks)))
    return encoded


def cut_texts(chunks: Sequence[ContextualChunk], *, embedder: Embedder) -> int:
    """How many chunks, with their context, hold more tokens than the encoder reads.

    A chunk's own tokens are those that the splitter counted with the first encoder: for another one an estimate.
    """
    context_tokens = {text: len(embedder.token_offsets(text)) for text in {c.dense_context for c in chunks} if text}
    return sum(
        contextual.chunk.tokens + context_tokens.get(contextual.dense_context, 0) > embedder.max_text_tokens
        for contextual in chunks
    )
