"""Every seam on one screen. An implementation passes the suite of the same name in `cognicraft.testing`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol, TypeVar

from pydantic import BaseModel

from cognicraft.records import (
    BooleanQuery,
    ByteArray,
    Chunk,
    Claim,
    Completion,
    Document,
    DocumentRecord,
    EncodedDocument,
    Encoding,
    EngineInfo,
    EvidenceText,
    Filter,
    FloatArray,
    Message,
    Ranking,
    SparseVector,
    StoredChunk,
    Usage,
    Verdict,
)

Schema = TypeVar("Schema", bound=BaseModel)

TokenOffsets = Callable[[str], list[tuple[int, int]]]
"""Character spans of the encoder's tokens in a text, in order, without special tokens and without truncation."""


class Reader(Protocol):
    """Turns one file into documents. Called inside a worker process with a memory limit and a deadline."""

    def __call__(self, path: str, *, options: Mapping[str, object]) -> Iterator[Document]:
        """Raises: a `ReadError` that names the file, the reason and the remedy."""
        ...


class Splitter(Protocol):
    """Cuts a document into chunks that cover every non-white character of it, spans exact, in text order."""

    def __call__(self, document: Document, *, offsets: TokenOffsets) -> list[Chunk]:
        """An empty or blank document gives no chunk. Never raises on text that a reader can give."""
        ...


class Embedder(Protocol):
    """A dense encoder. Thread-safe. The same text gives the same vector whatever else is in the batch."""

    @property
    def name(self) -> str: ...
    @property
    def dimensions(self) -> int: ...
    @property
    def max_tokens(self) -> int:
        """Tokens that the model reads at once, special ones and prefix included."""
        ...

    @property
    def max_text_tokens(self) -> int:
        """Tokens used of a document text; the rest is cut, and a caller can see it by `token_offsets`."""
        ...

    @property
    def languages(self) -> frozenset[str] | None:
        """ISO 639-1 codes it knows; None where that is not stated."""
        ...

    @property
    def fingerprint(self) -> str:
        """Changes whenever the vectors may change; a workspace refuses an encoder with another one."""
        ...

    def token_offsets(self, text: str) -> list[tuple[int, int]]: ...

    def encode_documents(self, texts: Sequence[str], *, token_codes: bool = False) -> list[Encoding]:
        """One encoding per text, in order; no texts, no encodings. An empty text has a valid unit vector."""
        ...

    def encode_query(self, text: str) -> Encoding:
        """With token codes, always."""
        ...

    def close(self) -> None: ...


class Engine(Protocol):
    """Chunks, vectors, document records and status of one workspace: the only store. Thread-safe.

    Scores are larger-is-better and only comparable within one list. Rankings follow the rule of `Ranking`: best first,
    ties by chunk id, at most `limit`. An unknown id is absent from what is returned, never an error. After `close`
    every call raises `EngineError`. `exact` engines return exactly the best; others reach recall .95 of it.
    """

    @property
    def name(self) -> str: ...
    @property
    def exact(self) -> bool: ...

    def replace(self, documents: Sequence[EncodedDocument]) -> None:
        """Put these documents in place of any older revision, each atomically as seen by search and by a crash.

        Returns once they are durable: after that no kill loses them. A document given twice: the last one stays.
        """
        ...

    def delete(self, document_ids: Sequence[str]) -> int:
        """Remove documents and all that belongs to them, durably; how many there were."""
        ...

    def document(self, document_id: str) -> DocumentRecord | None: ...

    def documents(self) -> Iterator[DocumentRecord]:
        """All records, failed ones too, ordered by source, then pointer, then id."""
        ...

    def document_chunks(self, document_id: str) -> list[StoredChunk]:
        """In text order; empty for an unknown one."""
        ...

    def search_dense(self, arm: str, vector: FloatArray, *, limit: int, where: Filter | None = None) -> Ranking:
        """By cosine similarity to the vectors of that encoder. Raises EngineError for an arm it does not hold."""
        ...

    def search_lexical(self, query: SparseVector, *, limit: int, where: Filter | None = None) -> Ranking:
        """By the sum over shared terms of query count x idf x document weight, idf = ln(1 + (N - n + .5)/(n + .5)).

        N and n count live chunks. Only chunks that share a term.
        """
        ...

    def search_boolean(
        self, query: BooleanQuery, *, rank_by: SparseVector, limit: int, where: Filter | None = None
    ) -> Ranking:
        """The chunks that satisfy the query, ranked by `search_lexical` with `rank_by` (0 where none is shared)."""
        ...

    def chunks(self, ids: Sequence[str]) -> list[StoredChunk]:
        """In the order of `ids`."""
        ...

    def token_codes(self, arm: str, ids: Sequence[str]) -> list[ByteArray | None]:
        """One entry per id, in order; None where nothing is stored."""
        ...

    def languages(self) -> dict[str, int]:
        """Language code -> number of chunks."""
        ...

    def info(self) -> EngineInfo: ...

    def close(self) -> None:
        """Idempotent; nothing that `replace` returned for is lost without it."""
        ...


class Reranker(Protocol):
    """Reads question and passage together. Thread-safe."""

    @property
    def name(self) -> str: ...

    def scores(self, question: str, passages: Sequence[str]) -> list[float | None]:
        """One score per passage, in order, larger is better; None for a passage that got none (time, a bad reply).

        No passages, no scores. Raises: ModelError where the model failed altogether.
        """
        ...

    def close(self) -> None: ...


class CompletionStream(Protocol):
    """Pieces of a reply as they come. Closing it, or dropping it half read, cancels the call at the provider."""

    def __iter__(self) -> Iterator[str]:
        """Raises: ModelError where the reply breaks off; what was given before stays given."""
        ...

    def close(self) -> None: ...

    @property
    def completion(self) -> Completion:
        """The whole reply with its usage, once the iteration has ended (before that: what came so far)."""
        ...


class LanguageModel(Protocol):
    """A chat model. Thread-safe; calls from many threads run side by side up to its own limit.

    Every call may raise: ModelUnavailable (stopped, 5xx after retries), ModelRateLimited, ModelTimeout,
    ModelAuthentication (no key, wrong key), ModelNotFound, ModelRefused, ContextOverflow, BudgetSpent.
    `timeout_s` and `max_tokens` left out are the model's own. Temperature belongs to the model, 0 unless set.
    """

    @property
    def name(self) -> str:
        """`provider:model`."""
        ...

    @property
    def context_tokens(self) -> int:
        """Tokens of prompt and reply together that it is taken to read."""
        ...

    def complete(
        self, messages: Sequence[Message], *, max_tokens: int | None = None, timeout_s: float | None = None
    ) -> Completion: ...

    def stream(
        self, messages: Sequence[Message], *, max_tokens: int | None = None, timeout_s: float | None = None
    ) -> CompletionStream: ...

    def structured(
        self,
        messages: Sequence[Message],
        schema: type[Schema],
        *,
        max_tokens: int | None = None,
        timeout_s: float | None = None,
    ) -> tuple[Schema, Usage]:
        """A reply that fits the schema; a bad one is asked again with what was wrong.

        Raises also: ModelReplyInvalid where no reply fitted.
        """
        ...

    def close(self) -> None: ...


class Verifier(Protocol):
    """Holds claims against evidence. Thread-safe."""

    @property
    def name(self) -> str: ...

    def verify(self, claims: Sequence[Claim], evidence: Sequence[EvidenceText]) -> list[Verdict]:
        """One verdict per claim, in order. Fails closed: what cannot be checked is UNVERIFIED, with the reason."""
        ...
