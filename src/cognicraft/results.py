"""What a person gets back: the same typed records in Python, `--json` and every other surface.

Positions count characters in the document's text, half-open; pages count from 1 as a reader program shows them,
null where the format has none; scores are larger-is-better and comparable only within one result.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class Result(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ModelUsage(Result):
    """Calls of language models."""

    calls: int = Field(description="Replies that were paid for.")
    cached_calls: int = Field(description="Replies taken from the cache.")
    input_tokens: int
    output_tokens: int
    cost_usd: float | None = Field(description="Null where the price of a model is not known.")


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


class NamedDocument(Result):
    """A document that the question seems to name."""

    document_id: str
    file: str
    fit: float = Field(description="How surely it is named, 0..1.")
    words: list[str] = Field(description="The words of the question, or taught by the documents, that name it.")


class Understood(Result):
    """What a question was taken to mean."""

    query: str = Field(description="The question as it was searched.")
    key_terms: list[str]
    language: str
    documents: list[NamedDocument] = Field(description="Documents that it names, best first; these were preferred.")
    whole_document: str | None = Field(description="Id of the document that is asked for as a whole.")
    intent: str = Field(description="From a plan by a model; '' without one.")
    strategy: str
    queries: list[str] = Field(description="Every text that was searched with, the question first.")
    notes: list[str]


class SearchResult(Result):
    """What `search` gives."""

    query: str
    hits: list[SearchHit]
    understood: Understood
    usage: ModelUsage = Field(description="What calls of a language model took.")
    warnings: list[str] = Field(description="What was left out or went without, in sentences.")
    timings_ms: dict[str, float] = Field(description="Milliseconds by step.")


class Sentence(Result):
    """A sentence of the answer with its citations."""

    text: str
    start: int = Field(description="Start of the sentence in `answer`.")
    end: int
    citations: list[int] = Field(description="Numbers of the sources that say it; empty where it cites none.")
    unknown_citations: list[int] = Field(
        default=[], description="Numbers that a model cited although no such source was given."
    )


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
    also: list[str] = Field(default=[], description="Other files that hold the same text.")


class CheckedClaim(Result):
    """A statement of an answer with what the evidence says to it."""

    text: str
    start: int = Field(description="Start of the claim in the answer.")
    end: int
    verdict: Literal["SUPPORTED", "PARTIALLY_SUPPORTED", "UNSUPPORTED", "CONTRADICTED", "UNVERIFIED"] = Field(
        description="UNVERIFIED: the check could not run; it never counts as support."
    )
    score: float = Field(description="How probably the evidence supports it, 0..1.")
    reason: str
    n: int | None = Field(description="Number of the source that decided; null for none.")
    file: str | None
    page: int | None
    quote: str = Field(description="The words that decided.")
    quote_start: int
    quote_end: int


class CorrectionRound(Result):
    """What one round of correction asked, found and changed."""

    round: int
    action: Literal["checked again", "written again", "struck", "failed"]
    queries: list[str]
    found: list[int] = Field(description="Numbers of the passages that were new.")
    before: float | None = Field(description="Confidence before the round.")
    after: float | None
    changed: list[str]
    kept: Literal["earlier", "new"]
    reason: str
    error: str


class Verification(Result):
    """What `verify` gives."""

    text: str
    confidence: float | None = Field(
        description="(supported + .5 partial) / total - .1 unsupported + .1 if none is, 0..1; null without claims."
    )
    probability: float | None = Field(
        description="How probably all that it states is supported; calibrated on public data, less so on other texts."
    )
    claims: list[CheckedClaim]
    verifier: str
    usage: ModelUsage
    warnings: list[str]


class Answer(Result):
    """What `ask` gives. Where nothing answers, `answered` is false and `answer` says so."""

    question: str
    answered: bool
    answer: str
    sentences: list[Sentence]
    sources: list[Source] = Field(description="Cited sources; where nothing answers, the nearest passages.")
    model: str = Field(description="Language model that wrote it; '' where sentences are quoted word for word.")
    confidence: float | None = Field(
        default=None, description="Of the check, as in `Verification`; null where nothing was checked, as with quotes."
    )
    probability: float | None = None
    claims: list[CheckedClaim] = []
    corrections: list[CorrectionRound] = []
    understood: Understood
    usage: ModelUsage
    warnings: list[str]
    timings_ms: dict[str, float]
    config: dict[str, Any] = Field(description="Settings that this answer was made with.")


class StepEvent(Result):
    """While an answer is made: a step begins."""

    kind: Literal["step"] = "step"
    step: str


class TokenEvent(Result):
    """While an answer is written: the next piece of its text."""

    kind: Literal["token"] = "token"
    text: str


class AnswerEvent(Result):
    """The answer, whole. Where a model broke off, it replaces the pieces that came before."""

    kind: Literal["answer"] = "answer"
    answer: Answer


AskEvent = StepEvent | TokenEvent | AnswerEvent


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


class ReindexReport(Result):
    """What one run of `reindex` did."""

    workspace: str
    encoders_before: list[str]
    encoders: list[str]
    switched: bool = Field(description="False where the workspace had these encoders already: nothing was done.")
    documents: int = Field(description="Documents in the workspace.")
    failed: int = Field(description="Files on the quarantine list, which came along.")
    chunks: int = Field(description="Chunks in the workspace.")
    kept: int = Field(description="Documents and failed files that an earlier run, cut off, had done.")
    encoded_chunks: int = Field(description="Chunks encoded by this run.")
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


class ListedModel(Result):
    """A language model of the catalog."""

    name: str = Field(description="As it is given to `--model`.")
    size: str = Field(description="small, medium, large or flagship; several where one model serves for several.")
    context_tokens: int
    input_usd: float | None = Field(description="US dollars per million tokens read; null where not known.")
    output_usd: float | None
    key: str = Field(description="Variable that holds the provider's key, and whether it is set.")


class ModelListing(Result):
    """What `models` shows."""

    models: list[ListedModel]
    roles: dict[str, str] = Field(description="Work -> model that does it; '' for none.")
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


class Figure(Result):
    """A measured figure with its 95 % interval; null where it is not defined."""

    value: float | None
    low: float | None
    high: float | None


class GroundingEvaluation(Result):
    """What `evaluate grounding` measured: how well the check tells supported claims from others."""

    rows: int
    supported: int
    auroc: Figure
    balanced_accuracy: Figure = Field(description="At the threshold that answers are checked with.")
    f1_unsupported: Figure
    threshold: float
    verdicts: dict[str, int]
    verifier: str
    timings_ms: dict[str, float]


class RiskPoint(Result):
    """A point of the risk-coverage curve: so many answered, so many of these wrong."""

    coverage: float = Field(description="Share of all questions that is answered.")
    risk: float = Field(description="Share of these that is wrong: no answer exists, or it is from another document.")
    threshold: float = Field(description="Least confidence that is answered (answer.threshold).")


class AbstentionEvaluation(Result):
    """What `evaluate abstention` measured: whether the product declines where the documents do not tell."""

    dataset: str
    answerable: int
    unanswerable: int
    auroc: float | None = Field(description="Confidence of answerable against unanswerable questions.")
    refusal_precision: float | None = Field(description="Of the questions refused, how many have no answer.")
    refusal_recall: float | None = Field(description="Of the questions without an answer, how many were refused.")
    right_document: float | None = Field(description="Of the answerable ones, how many were answered from a right one.")
    curve: list[RiskPoint]
    at_most_wrong: dict[str, RiskPoint | None] = Field(
        description="'0.05': the point of most coverage at which at most 5 % are wrong; null where there is none."
    )
    config: dict[str, Any]
    warnings: list[str]
    timings_ms: dict[str, float]


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
