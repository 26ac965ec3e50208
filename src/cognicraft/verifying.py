"""Checking an answer's claims against its evidence, and correcting what did not stand: the steps put together.

Takes: an answer by a model with the passages that it was written from; or any text with any files. Returns: verdicts
for people (`CheckedClaim`), confidence and probability, and what each round of correction changed.
Method: `answer/claims.py` cuts the text into claims, `answer/verify.py` (and with `answer.judge` a model,
`answer/judge.py`) holds each against the evidence, `answer/correct.py` searches and writes again below the threshold.
What can go wrong: whatever fails gives UNVERIFIED, never support (`fail_closed`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from cognicraft.config import AnswerSettings
from cognicraft.encoders import SHIPPED, embedder_named
from cognicraft.errors import UsageError
from cognicraft.presenting import model_usage
from cognicraft.protocols import Verifier
from cognicraft.records import Document, EvidenceText, Page, Verdict
from cognicraft.results import CheckedClaim, CorrectionRound, Verification
from cognicraft.roles import Roles

if TYPE_CHECKING:
    from cognicraft.answer.passages import EvidencePassage
    from cognicraft.answer.standing import Corrected, Correction
    from cognicraft.models.meter import Meter

CHECK_TIMEOUT_S = 60.0
"""Longest wait for one check, in seconds; what is not checked by then is UNVERIFIED."""


@dataclass(frozen=True, slots=True)
class Cited:
    """A text that claims are held against, as a source: `text` stands at `start` of the document."""

    number: int
    text: str
    document_id: str
    file: str
    start: int
    pages: Sequence[Page] = ()


def verifier_of(settings: AnswerSettings, *, roles: Roles, meter: Meter) -> Verifier:
    """What checks claims: signals alone, or these with a model. Raises: MissingExtra, ModelAuthentication."""
    if settings.judge == "signals":
        return _offline()
    from cognicraft.answer.judge import ModelVerifier
    from cognicraft.answer.judge_combined import Combined

    model = roles.model("check", meter=meter)
    return _offline() if model is None else Combined(_offline(), ModelVerifier(model))


@lru_cache(maxsize=1)
def _offline() -> Verifier:
    from cognicraft.answer.verify import OfflineVerifier

    return OfflineVerifier(embedder_named(SHIPPED))


def verdicts_of(verifier: Verifier, text: str, evidence: Sequence[EvidenceText]) -> list[Verdict]:
    """One verdict for each claim of the text, spans in it; UNVERIFIED where the check could not run."""
    from cognicraft.answer.claims import claims
    from cognicraft.answer.judge_combined import fail_closed

    found = claims(text, known={one.number for one in evidence})
    return fail_closed(verifier, found, evidence, timeout_s=CHECK_TIMEOUT_S)


def corrected(
    question: str,
    text: str,
    evidence: Sequence[EvidencePassage],
    *,
    verifier: Verifier,
    settings: AnswerSettings,
    key_terms: Sequence[str],
    retrieve_more: Callable[[Sequence[str]], Sequence[EvidencePassage]],
    regenerate: Callable[[Sequence[EvidencePassage], Sequence[Verdict]], str],
) -> Corrected[EvidencePassage]:
    """The answer that stands the check best. Raises: Cancelled."""
    from cognicraft.answer.correct import correct

    def verify(text: str, passages: Sequence[EvidencePassage]) -> Sequence[Verdict]:
        return verdicts_of(verifier, text, [EvidenceText(one.number, one.text) for one in passages])

    return correct(
        question,
        text,
        evidence=evidence,
        verify=verify,
        retrieve_more=retrieve_more,
        regenerate=regenerate,
        key_terms=key_terms,
        threshold=settings.confidence_threshold,
        max_rounds=settings.max_corrections,
        strict=settings.strict,
    )


def checked_claims(verdicts: Sequence[Verdict], sources: Sequence[Cited]) -> list[CheckedClaim]:
    """Verdicts as people see them, each with the file, page and words that decided."""
    by_number = {source.number: source for source in sources}
    checked = []
    for verdict in verdicts:
        source = by_number.get(verdict.passage)
        start = end = 0
        pages: list[int] = []
        if source is not None:
            start, end = source.start + verdict.quote_start, source.start + verdict.quote_end
            pages = [page.number for page in source.pages if page.start < end and start < page.end]
        checked.append(
            CheckedClaim(
                text=verdict.claim.text,
                start=verdict.claim.start,
                end=verdict.claim.end,
                verdict=verdict.kind,
                score=round(verdict.score, 4),
                reason=verdict.reason,
                n=source.number if source is not None else None,
                file=source.file if source is not None else None,
                page=pages[0] if pages else None,
                quote=source.text[verdict.quote_start : verdict.quote_end] if source is not None else "",
                quote_start=start,
                quote_end=end,
            )
        )
    return checked


def rounds(corrections: Sequence[Correction]) -> list[CorrectionRound]:
    return [
        CorrectionRound(
            round=one.round,
            action=one.action,
            queries=list(one.queries),
            found=list(one.found),
            before=one.before,
            after=one.after,
            changed=list(one.changed),
            kept=one.kept,
            reason=one.reason,
            error=one.error,
        )
        for one in corrections
    ]


def verify_text(
    text: str, documents: Sequence[Document], *, verifier: Verifier, meter: Meter, warnings: Sequence[str]
) -> Verification:
    """Hold any text against any documents; `[n]` in the text cites the n-th of them. Raises: UsageError."""
    from cognicraft.answer.confidence import confidence, probability

    if not text.strip():
        raise UsageError("There is nothing to verify: the text is empty.", remedy="Give a text with statements.")
    if not documents:
        raise UsageError("There is nothing to verify against.", remedy="Give at least one file with --evidence.")
    sources = [
        Cited(number, one.text, one.id, f"{one.source}#{one.pointer}" if one.pointer else one.source, 0, one.pages)
        for number, one in enumerate(documents, start=1)
    ]
    verdicts = verdicts_of(verifier, text, [EvidenceText(one.number, one.text) for one in sources])
    likely = probability(verdicts)
    return Verification(
        text=text,
        confidence=confidence(verdicts),
        probability=None if likely is None else round(likely, 4),
        claims=checked_claims(verdicts, sources),
        verifier=verifier.name,
        usage=model_usage(meter.usage),
        warnings=list(warnings),
    )


def cited_passages(passages: Sequence[EvidencePassage], pages: Mapping[str, Sequence[Page]]) -> list[Cited]:
    return [
        Cited(
            one.number, one.text, one.place.document_id, one.place.file, one.place.start,
            pages.get(one.place.document_id, ()),
        )
        for one in passages
    ]  # fmt: skip
