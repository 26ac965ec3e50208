"""What flows between the steps, in the order in which it flows.

    file ─read─▶ Document ─split─▶ Chunk ─contextualize─▶ ContextualChunk ─encode─▶ EncodedDocument ─▶ Engine
    question ─understand─▶ Understanding ─plan─▶ Plan ─retrieve─▶ Ranking per arm ─fuse─▶ Ranking ─rerank─▶ Ranking
    Ranking ─▶ StoredChunk ─extract─▶ quoted sentences        or ─ground─▶ Message ─language model─▶ Completion

These are inert: frozen, no behaviour beyond what follows from their own fields. Character positions count Python
characters in `Document.text`; spans are half-open; pages count from 1; scores are larger-is-better. What a person
gets back (`Answer`, `SearchResult`, …) is in `results.py`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float32]
ByteArray = npt.NDArray[np.uint8]
IndexArray = npt.NDArray[np.uint32]

Scalar = str | int | float | bool
MetadataValue = Scalar | tuple[Scalar, ...]
Metadata = Mapping[str, MetadataValue]

BlockKind = Literal["heading", "paragraph", "list", "table", "code"]


def digest(*parts: str, size: int = 16) -> str:
    """Hex digest of the parts, each length-prefixed so that ("ab", "c") and ("a", "bc") differ."""
    hasher = hashlib.blake2b(digest_size=size)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        hasher.update(len(data).to_bytes(8, "little"))
        hasher.update(data)
    return hasher.hexdigest()


# ── read ──────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Page:
    """One page as a reader program numbers it; pages tile the text: each starts where the one before ends."""

    number: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of structure. Blocks are in text order, do not overlap, and only white space lies between them.

    A table's rows are lines, each self-describing (`label | column head: value | …`), so that a number never
    leaves its row label and its column head. `level` is the depth of a heading (1 = top), 0 otherwise.
    """

    kind: BlockKind
    start: int
    end: int
    level: int = 0


@dataclass(frozen=True, slots=True)
class Document:
    """One readable text with its structure. A JSONL file or a JSON array gives many, told apart by `pointer`.

    `source` is the path as a POSIX string (or another URI); `pointer` is the JSON pointer inside it, "" for the whole;
    `pointers` are (start, end, pointer) of the fields that make up the text, for JSON.
    `content_hash` covers text and metadata; the same file read twice gives the same hash.
    """

    source: str
    text: str
    pages: tuple[Page, ...] = ()
    blocks: tuple[Block, ...] = ()
    title: str = ""
    media_type: str = "text/plain"
    pointer: str = ""
    pointers: tuple[tuple[int, int, str], ...] = ()
    metadata: Metadata = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    language: str = ""

    @property
    def id(self) -> str:
        """Stable over new versions: from where the document is, not from what it says."""
        return digest(self.source, self.pointer)

    @property
    def content_hash(self) -> str:
        meta = "\x1f".join(f"{key}={self.metadata[key]!r}" for key in sorted(self.metadata))
        return digest(self.text, self.title, meta)

    def heading_path(self, position: int) -> tuple[str, ...]:
        """Headings above `position`, outermost first; a heading is part of its own path."""
        path: list[tuple[int, str]] = []
        for block in self.blocks:
            if block.start > position:
                break
            if block.kind == "heading":
                while path and path[-1][0] >= block.level:
                    path.pop()
                path.append((block.level, self.text[block.start : block.end].strip()))
        return tuple(title for _, title in path)


# ── split, contextualize ──────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Chunk:
    """A span of a document: `document.text[start:end] == text`. `page`..`page_end` inclusive, 0 where there are none.

    `heading_path` is the path at the chunk's first character. `occurrence` counts equal texts in one document from 0.
    """

    text: str
    start: int
    end: int
    page: int = 0
    page_end: int = 0
    heading_path: tuple[str, ...] = ()
    tokens: int = 0
    occurrence: int = 0


@dataclass(frozen=True, slots=True)
class ContextualChunk:
    """A chunk and what stands before it when it is encoded; kept apart for the two arms, never part of a quote."""

    chunk: Chunk
    dense_context: str = ""
    lexical_context: str = ""

    @property
    def dense_text(self) -> str:
        return f"{self.dense_context}\n{self.chunk.text}" if self.dense_context else self.chunk.text

    @property
    def lexical_text(self) -> str:
        return f"{self.lexical_context}\n{self.chunk.text}" if self.lexical_context else self.chunk.text


# ── encode ────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Encoding:
    """A text as a dense encoder sees it.

    vector: (dimensions,) float32, L2 norm 1.
    token_codes: (tokens, dimensions // 8) uint8, the packed sign bits of each token vector less the model's mean
        token vector; None where they were not asked for.
    """

    vector: FloatArray
    token_codes: ByteArray | None = None


@dataclass(frozen=True, slots=True)
class SparseVector:
    """Term indices (uint32, strictly increasing) and their weights (float32), of one length. May be empty."""

    indices: IndexArray
    values: FloatArray


@dataclass(frozen=True, slots=True)
class EncodedChunk:
    """A chunk ready for the engine: one dense vector per encoder name, BM25 document weights, Boolean terms.

    `terms` is the analysed token sequence of the lexical text, in order (for phrases), from `search.lexical`.
    """

    id: str
    chunk: ContextualChunk
    dense: Mapping[str, FloatArray]
    lexical: SparseVector
    terms: tuple[str, ...]
    token_codes: Mapping[str, ByteArray] = field(default_factory=dict)


DocumentStatus = Literal["ready", "failed"]


@dataclass(frozen=True, slots=True)
class DocumentRecord:
    """What the engine knows of a document besides its chunks. `metadata` is filterable on every chunk.

    `file_hash`, `file_size` and `file_mtime_ns` are of the file it came from: they decide whether it is read again.
    A `failed` record has no chunks and says why in `error_code` and `error` (the quarantine list).
    """

    id: str
    source: str
    revision: str
    status: DocumentStatus = "ready"
    title: str = ""
    media_type: str = "text/plain"
    pointer: str = ""
    language: str = ""
    pages: tuple[Page, ...] = ()
    characters: int = 0
    chunk_count: int = 0
    file_hash: str = ""
    file_size: int = 0
    file_mtime_ns: int = 0
    ingested_at: str = ""
    metadata: Metadata = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    error_code: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True)
class EncodedDocument:
    """A document record with all of its chunks, to be replaced as one. No chunks for a failed record."""

    record: DocumentRecord
    chunks: tuple[EncodedChunk, ...] = ()


def chunk_id(document_id: str, revision: str, chunk: Chunk) -> str:
    """From document, revision and content, never from position: an old tail cannot survive under a new id."""
    return digest(document_id, revision, chunk.text, str(chunk.occurrence))


# ── retrieve, fuse, rerank ────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Scored:
    """A chunk id with its score in one list, larger is better."""

    chunk_id: str
    score: float


Ranking = tuple[Scored, ...]
"""Best first; ties by chunk id ascending; no id twice."""


@dataclass(frozen=True, slots=True)
class StoredChunk:
    """A chunk as the engine gives it back, enough to cite it without another look-up."""

    id: str
    document_id: str
    source: str
    title: str
    chunk: ContextualChunk
    language: str = ""
    pointer: str = ""
    metadata: Metadata = field(default_factory=dict)


# ── understand, plan ──────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class DocumentHint:
    """A document that the question seems to name. fit: 0..1, how surely; words: what of the question named it."""

    document_id: str
    source: str
    fit: float
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Understanding:
    """What a question was taken to mean, without a model.

    query: the question as it is searched. key_terms: its telling words, in order. hints: documents that it names,
    best first. whole_document: id of the document that is asked for as a whole ("open the annual report"), "" for
    none. notes: for the person, in sentences.
    """

    query: str
    key_terms: tuple[str, ...] = ()
    language: str = ""
    hints: tuple[DocumentHint, ...] = ()
    whole_document: str = ""
    notes: tuple[str, ...] = ()


QueryKind = Literal["original", "variation", "part", "hyde"]


@dataclass(frozen=True, slots=True)
class PlannedQuery:
    """One text to search with. `hyde` is a passage such as might answer, not a question."""

    text: str
    kind: QueryKind = "original"


@dataclass(frozen=True, slots=True)
class Plan:
    """How a question is to be answered, from a model. The first query is the question itself.

    file_hints: names or patterns of files it should stand in. notes: what a step went without, in sentences.
    """

    queries: tuple[PlannedQuery, ...]
    intent: str = ""
    complexity: Literal["simple", "moderate", "complex"] = "simple"
    strategy: Literal["full_document", "chunks", "hybrid"] = "chunks"
    file_hints: tuple[str, ...] = ()
    answer_style: str = ""
    notes: tuple[str, ...] = ()


# ── language models ───────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Message:
    """One turn. `stable` marks the end of a prefix that many calls share: where the provider can, it is cached."""

    role: Literal["system", "user", "assistant"]
    text: str
    stable: bool = False


@dataclass(frozen=True, slots=True)
class Usage:
    """What calls took. cost_usd is None where the price is not known; cached_calls cost nothing."""

    calls: int = 0
    cached_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = 0.0

    def __add__(self, other: Usage) -> Usage:
        unknown = self.cost_usd is None or other.cost_usd is None
        return Usage(
            calls=self.calls + other.calls,
            cached_calls=self.cached_calls + other.cached_calls,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cost_usd=None if unknown else (self.cost_usd or 0.0) + (other.cost_usd or 0.0),
        )


@dataclass(frozen=True, slots=True)
class Completion:
    """A reply. finish: `stop` whole, `length` cut at the token limit. model: the name that answered."""

    text: str
    usage: Usage
    model: str
    finish: Literal["stop", "length"] = "stop"


# ── verify ────────────────────────────────────────────────────────────────────────────────────────────────────

VerdictKind = Literal["SUPPORTED", "PARTIALLY_SUPPORTED", "UNSUPPORTED", "CONTRADICTED", "UNVERIFIED"]


@dataclass(frozen=True, slots=True)
class Claim:
    """One statement of an answer: `answer[start:end]` is where it stands, `text` what it says on its own.

    cited: numbers of the passages that it cites, in order; empty for none.
    """

    text: str
    start: int
    end: int
    cited: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class EvidenceText:
    """A passage that claims are held against, whole, with the number that it is cited by."""

    number: int
    text: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the evidence says to a claim.

    UNVERIFIED: the check could not run; it never counts as support. score: 0..1, how probably the claim is supported.
    passage: number of the passage that decided, 0 for none; quote_start, quote_end: span in that passage's text.
    reason: one sentence for a person.
    """

    claim: Claim
    kind: VerdictKind
    score: float = 0.0
    passage: int = 0
    quote_start: int = 0
    quote_end: int = 0
    reason: str = ""


# ── filters ───────────────────────────────────────────────────────────────────────────────────────────────────
# Fields are the metadata keys of the document and the built-in `document_id`, `source`, `file` (its last part),
# `title`, `language`, `media_type`, `page`. A condition on a tuple-valued field holds if any element satisfies it.
# Equality never mixes kinds: 1 is not "1", True is not 1; a range compares numbers only.


@dataclass(frozen=True, slots=True)
class Equals:
    field: str
    value: Scalar


@dataclass(frozen=True, slots=True)
class In:
    field: str
    values: tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class Range:
    """Bounds that are None are open. Numbers only."""

    field: str
    gte: float | None = None
    gt: float | None = None
    lte: float | None = None
    lt: float | None = None


@dataclass(frozen=True, slots=True)
class Exists:
    field: str


@dataclass(frozen=True, slots=True)
class And:
    parts: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class Or:
    parts: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class Not:
    part: Filter


Filter = Equals | In | Range | Exists | And | Or | Not


# ── Boolean queries, over analysed terms ──────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Term:
    """Any of these analysed forms (a word has one per language of the workspace)."""

    forms: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Phrase:
    """The terms next to each other in this order."""

    terms: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AllOf:
    parts: tuple[BooleanQuery, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    parts: tuple[BooleanQuery, ...]


@dataclass(frozen=True, slots=True)
class NoneOf:
    part: BooleanQuery


BooleanQuery = Term | Phrase | AllOf | AnyOf | NoneOf


@dataclass(frozen=True, slots=True)
class EngineInfo:
    """What an engine says of itself: its name, version on disk, counts, bytes, and the arms it holds."""

    name: str
    format_version: int
    documents: int
    chunks: int
    disk_bytes: int
    dense_arms: tuple[str, ...]
    detail: Mapping[str, Any] = field(default_factory=dict)
