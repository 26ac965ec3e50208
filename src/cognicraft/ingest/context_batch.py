"""A document with its chunks, made ready for encoding: contexts put before the chunks, what does not fit counted.

Takes: a record, the document and its chunks, a language model's sentences where there are any, the way to
contextualize, the encoders. Returns: what `encode` takes, the record's warnings completed, and counts for the run.
Cost: the encoders' tokenizers over the contexts. What can go wrong: a chunk longer than an encoder reads is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from cognicraft.ingest.encode import DocumentToEncode, cut_texts
from cognicraft.protocols import Embedder
from cognicraft.records import Chunk, ContextualChunk, Document, DocumentRecord

if TYPE_CHECKING:
    from cognicraft.ingest.context_llm import PlacedDocument


class Contextualize(Protocol):
    """`ingest.contextualize` with its modes settled."""

    def __call__(
        self,
        document: Document,
        chunks: Sequence[Chunk],
        *,
        sentences: Sequence[str] | None = None,
        fits: Callable[[Chunk, str], bool] | None = None,
    ) -> list[ContextualChunk]: ...


@dataclass(frozen=True, slots=True)
class ReadyDocument:
    """cut: chunks longer than an encoder reads, by its name. shortened: contexts that were given fewer sentences."""

    document: DocumentToEncode
    cut: Mapping[str, int] = field(default_factory=dict)
    shortened: int = 0


def ready_to_encode(
    record: DocumentRecord,
    document: Document,
    chunks: Sequence[Chunk],
    *,
    placed: PlacedDocument | None,
    contextualize: Contextualize,
    embedders: Mapping[str, Embedder],
) -> ReadyDocument:
    """Raises: UsageError where contexts by a language model are wanted and `placed` is None."""
    tight: set[int] = set()

    def fits(chunk: Chunk, context: str) -> bool:
        """Whether every encoder reads the chunk to its end with that context before it."""
        read = all(
            chunk.tokens + len(embedder.token_offsets(context)) <= embedder.max_text_tokens
            for embedder in embedders.values()
        )
        if not read:
            tight.add(chunk.start)
        return read

    sentences = placed.sentences if placed else None
    contextual = tuple(contextualize(document, chunks, sentences=sentences, fits=fits))
    warnings = [*record.warnings, *(placed.warnings if placed else ())]
    cut = {name: cut_texts(contextual, embedder=embedder) for name, embedder in embedders.items()}
    warnings += [
        f"{count} chunks are longer than the {embedders[name].max_text_tokens} tokens that {name} reads; "
        "their ends are found by words only."
        for name, count in cut.items()
        if count
    ]
    return ReadyDocument(
        DocumentToEncode(replace(record, warnings=tuple(warnings)), contextual), cut=cut, shortened=len(tight)
    )
