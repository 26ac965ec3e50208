"""What a person gets back: the same typed records in Python, `--json` and every other surface.

Positions count characters in the document's text, half-open; pages count from 1 as a reader program shows them,
null where the format has none; scores are larger-is-better and comparable only within one result.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class Result(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ArmScore(Result):
    """Where one arm put a hit."""

    rank: int = Field(description="Rank in the arm's own list, from 1.")
    score: float = Field(description="The arm's own score; larger is better; not comparable between arms.")


class SearchHit(Result):
    """One chunk found, with the way it came."""

    rank: int = Field(description="Rank in the result, from 1.")
    chunk_id: str
    document_id: str
    file: str = Field(description="Path or URI that the document was read from.")
    page: int | None = Field(description="First page of the chunk, from 1; null where the format has no pages.")
    heading: str = Field(description="Headings above the chunk, outermost first, joined by ' > '.")
    text: str = Field(description="The chunk, word for word.")
    start: int
    end: int
    score: float = Field(description="Score that decided the rank.")
    arms: dict[str, ArmScore] = Field(description="Rank and score in each arm that found it, reranker included.")


class SearchResult(Result):
    """What `search` gives."""

    query: str
    hits: list[SearchHit]
    warnings: list[str] = Field(description="What was left out or went without, in sentences.")
    timings_ms: dict[str, float] = Field(description="Milliseconds by step.")


class Sentence(Result):
    """A sentence of the answer with its citations."""

    text: str
    start: int = Field(description="Start of the sentence in `answer`.")
    end: int
    citations: list[int] = Field(description="Numbers of the sources that say it.")


class Source(Result):
    """A cited source: the quote stands at `start`..`end` of the document's text."""

    n: int
    document_id: str
    file: str
    page: int | None
    page_end: int | None
    heading: str
    quote: str
    start: int
    end: int
    score: float


class Answer(Result):
    """What `ask` gives. Where nothing answers, `answered` is false and `answer` says so."""

    question: str
    answered: bool
    answer: str
    sentences: list[Sentence]
    sources: list[Source] = Field(description="Cited sources; where nothing answers, the nearest passages.")
    warnings: list[str]
    timings_ms: dict[str, float]
    config: dict[str, Any] = Field(description="Settings that this answer was made with.")


class DocumentInfo(Result):
    """One document or one failed file of a workspace."""

    id: str
    file: str
    status: Literal["ready", "failed"]
    title: str
    media_type: str
    language: str
    pages: int
    characters: int
    chunks: int
    pointer: str = Field(description="JSON pointer inside the file, '' for the whole file.")
    ingested_at: str = Field(description="UTC time, ISO 8601.")
    metadata: dict[str, Any]
    warnings: list[str]
    error_code: str
    error: str


class DocumentText(Result):
    """A document with its text as it was read."""

    document: DocumentInfo
    text: str


class FailedFile(Result):
    """A file on the quarantine list."""

    file: str
    code: str
    error: str


class IngestReport(Result):
    """What one run of `ingest` did."""

    workspace: str
    files: int = Field(description="Files looked at.")
    added: int
    changed: int
    unchanged: int
    vanished: list[str] = Field(description="Files known to the workspace that are no longer there.")
    pruned: int = Field(description="Documents removed because their file vanished.")
    skipped: dict[str, int] = Field(description="Files passed over: reason to count.")
    failed: list[FailedFile]
    documents: int = Field(description="Documents written.")
    chunks: int = Field(description="Chunks written.")
    warnings: list[str]
    timings_ms: dict[str, float]


class WorkspaceInfo(Result):
    """A workspace as `workspaces list` shows it."""

    name: str
    path: str
    engine: str
    encoders: list[str]
    documents: int | None = Field(description="Null while another process holds it.")
    chunks: int | None
    disk_bytes: int
    note: str


class Check(Result):
    """One line of `doctor`."""

    name: str
    ok: bool
    detail: str
    remedy: str


class DoctorReport(Result):
    """What `doctor` found."""

    version: str
    checks: list[Check]

    @property
    def ok(self) -> bool:
        return all(check.ok for check in self.checks)


class RetrievalEvaluation(Result):
    """What `evaluate retrieval` measured; `metrics` is the product's way as configured."""

    dataset: str
    split: str
    documents: int
    chunks: int
    queries: int
    config: dict[str, Any]
    metrics: dict[str, float]
    arms: dict[str, dict[str, float]]
    per_query: dict[str, float] = Field(description="Query id -> nDCG@10.")
    warnings: list[str]
    timings_ms: dict[str, float]
