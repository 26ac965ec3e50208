"""One question over one workspace, from the search to the answer.

Takes: an open workspace, a question, the settings of this call, the models. Returns: events, the `Answer` last.
Method: search (`searching.py`); then a model writes from the evidence alone (`answer/ground.py`, `prompting.py`,
`generate.py`) and is checked (`verifying.py`), or without one the sentences that answer are quoted word for word
(`answer/extract.py`). A document that is asked for as a whole is given whole, as far as the budget goes.
What can go wrong: a model that cannot be reached, breaks off, refuses or says nothing is replaced by quotes, and the
answer says so; a wrong key, an unknown model or a spent budget is an error, because no question would fare better.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from cognicraft.config import Settings
from cognicraft.encoders import SHIPPED, embedder_named, keeps_token_codes
from cognicraft.errors import ContextOverflow, ModelRefused, ModelReplyInvalid, ModelUnavailable
from cognicraft.presenting import answer, document_answer, understood, written
from cognicraft.protocols import LanguageModel
from cognicraft.records import Filter, Page, StoredChunk, Usage, Verdict
from cognicraft.results import Answer, AnswerEvent, AskEvent, StepEvent, TokenEvent
from cognicraft.roles import Roles
from cognicraft.search.route import SURELY_NAMED
from cognicraft.searching import Found, Opened, find
from cognicraft.verifying import checked_claims, cited_passages, corrected, rounds, verifier_of

if TYPE_CHECKING:
    from cognicraft.answer.extract import Extraction
    from cognicraft.answer.generate import GeneratedAnswer
    from cognicraft.answer.ground import Evidence
    from cognicraft.answer.passages import EvidencePassage
    from cognicraft.answer.prompting import Template
    from cognicraft.models.meter import Meter
    from cognicraft.search.lexical import LexicalEncoder

History = Sequence[tuple[str, str]]
"""(question, answer), oldest first."""

_PROMPT_TOKENS = 900
"""Room for the instructions of a template and the question, in tokens."""
_LEAST_EVIDENCE_TOKENS = 200
_MORE = 5
"""Hits taken for each search of a correction."""
_MOST_SHORT = 6
"""Statements that a model is told of when it writes again."""


def ask(
    opened: Opened,
    question: str,
    settings: Settings,
    *,
    where: str | Filter | None,
    roles: Roles,
    history: History = (),
) -> Iterator[AskEvent]:
    """Events while an answer is made; the last one is the answer. Closing the iterator stops the model.

    Raises: as `find`; ModelAuthentication, ModelNotFound, BudgetSpent, MissingExtra of the model that answers.
    """
    started = time.perf_counter()
    meter = roles.meter()
    model = roles.model("answer", meter=meter)
    own = settings.answer
    template = None
    if model is not None:
        from cognicraft.answer.prompting import load_template

        template = load_template(own.prompt)  # a template that cannot be used is said before anything is paid for
    yield StepEvent(step="search")
    # Of quotes twice as many: where one document is surely named, its passages are all alike to the arms.
    limit = max(own.limit, own.top_k) if model is not None else 2 * own.passages
    found = find(opened, question, settings.search, where=where, limit=limit, roles=roles, meter=meter)
    fallen_back: tuple[str, ...] = ()
    if model is not None and template is not None:
        yield StepEvent(step="write")
        try:
            yield from _written(
                opened,
                question,
                settings,
                found,
                model,
                template=template,
                where=where,
                history=history,
                roles=roles,
                meter=meter,
                started=started,
            )
            return
        except (ModelUnavailable, ModelReplyInvalid, ModelRefused, ContextOverflow) as error:
            fallen_back = (f"Quoted instead of written: {error.message}",)
    whole = _whole_document(opened, found)
    if whole:
        result = _shown_whole(opened, question, settings, found, whole, started=started, usage=meter.usage)
    else:
        result = quoted(opened, question, settings, found, started=started, usage=meter.usage)
    yield AnswerEvent(answer=result.model_copy(update={"warnings": [*fallen_back, *result.warnings]}))


def _written(
    opened: Opened,
    question: str,
    settings: Settings,
    found: Found,
    model: LanguageModel,
    *,
    template: Template,
    where: str | Filter | None,
    history: History,
    roles: Roles,
    meter: Meter,
    started: float,
) -> Iterator[AskEvent]:
    """The answer in a model's words, from the evidence alone, checked against it. Raises: ModelError."""
    from cognicraft.answer.cited_sentences import cited_sentences
    from cognicraft.answer.confidence import probability
    from cognicraft.answer.generate import generate
    from cognicraft.answer.prompting import messages

    own = settings.answer
    said_before = sum(_tokens(opened, question) + _tokens(opened, answered) for question, answered in history)
    room = model.context_tokens - settings.model.max_output_tokens - _PROMPT_TOKENS - said_before
    budget = max(_LEAST_EVIDENCE_TOKENS, min(own.max_tokens, room))
    notes: list[str] = [*template.notes]
    first_ms = 0.0
    while True:
        grounding = time.perf_counter()
        evidence = _evidence(opened, found, top_k=own.top_k, max_tokens=budget)
        asked = messages(
            question,
            evidence=evidence,
            template=template,
            persona=own.persona,
            style=own.style or (found.plan.answer_style if found.plan else ""),
            language=own.language,
            history=history,
        )
        writing = time.perf_counter()
        shown = False
        made: GeneratedAnswer | None = None
        try:
            for piece in generate(asked, evidence=evidence, model=model, max_tokens=settings.model.max_output_tokens):
                if isinstance(piece, str):
                    first_ms = first_ms or (time.perf_counter() - writing) * 1000
                    shown = True
                    yield TokenEvent(text=piece)
                else:
                    made = piece
        except ContextOverflow:
            # How a provider counts tokens is not known here: half of the evidence is better than none.
            if shown or budget // 2 < _LEAST_EVIDENCE_TOKENS:
                raise
            budget //= 2
            notes.append(f"{model.name} reads less than was given: the evidence was cut to {budget:,} tokens.")
            continue
        break
    assert made is not None
    if made.outcome == "empty":
        raise ModelReplyInvalid(f"{model.name} gave an empty reply.")
    timings = {
        **found.retrieved.timings_ms,
        "ground": (writing - grounding) * 1000,
        "first token": first_ms,
        "write": (time.perf_counter() - writing) * 1000,
    }
    text, sentences, passages = made.text, made.sentences, evidence.passages
    checked: dict[str, Any] = {}
    if own.verify and made.answered:
        yield StepEvent(step="verify")
        checking = time.perf_counter()
        author = _Author(opened, question, settings, found, model, roles, meter, where, history, template)
        kept = corrected(
            question,
            text,
            passages,
            verifier=verifier_of(own, roles=roles, meter=meter),
            settings=own,
            key_terms=found.understanding.key_terms,
            retrieve_more=author.find_more,
            regenerate=author.write_again,
        )
        timings["verify"] = (time.perf_counter() - checking) * 1000
        notes += kept.notes
        if kept.text != text:
            text, passages = kept.text, kept.evidence
            sentences = cited_sentences(text, known={passage.number for passage in passages})
        sources = cited_passages(kept.evidence, _pages(opened, [one.place.document_id for one in kept.evidence]))
        likely = probability(kept.verdicts)
        checked = {
            "confidence": kept.confidence,
            "probability": None if likely is None else round(likely, 4),
            "claims": checked_claims(kept.verdicts, sources),
            "corrections": rounds(kept.corrections),
        }
    made_answer = written(
        question,
        text,
        sentences,
        passages,
        model=made.model,
        pages=_pages(opened, [passage.place.document_id for passage in passages]),
        warnings=[*found.retrieved.warnings, *notes, *evidence.notes, *made.notes],
        timings_ms=rounded(timings, started),
        config={
            **settings.search.model_dump(mode="json"),
            **own.model_dump(mode="json", exclude={"max_sentences", "threshold", "passages"}),
            "workspace": opened.name,
            "encoders": list(opened.manifest.encoder_names),
            "temperature": settings.model.temperature,
            "evidence_tokens": evidence.tokens,
            "evidence_passages": len(evidence.passages),
        },
        meaning=understood(found.understanding, found.plan),
        usage=meter.usage,
    )
    yield AnswerEvent(answer=made_answer.model_copy(update=checked))


@dataclass(frozen=True, slots=True)
class _Author:
    """Searches and writes again for a correction, as the first answer was."""

    opened: Opened
    question: str
    settings: Settings
    found: Found
    model: LanguageModel
    roles: Roles
    meter: Meter
    where: str | Filter | None
    history: History
    template: Template

    def find_more(self, queries: Sequence[str]) -> list[EvidencePassage]:
        """Passages that the first of these texts find, best first; numbers do not count."""
        from cognicraft.answer.ground import pack

        plain = self.settings.search.model_copy(update={"plan": False, "hyde": False, "rerank": "late-interaction"})
        chunk_ids: dict[str, None] = {}
        for query in queries:
            found = find(self.opened, query, plain, where=self.where, limit=_MORE, roles=self.roles, meter=self.meter)
            chunk_ids.update(dict.fromkeys(hit.chunk_id for hit in found.retrieved.ranking))
        stored = self.opened.engine.chunks(list(chunk_ids))
        count = partial(_tokens, self.opened)
        return list(pack(stored, max_tokens=self.settings.answer.max_tokens, count_tokens=count).passages)

    def write_again(self, passages: Sequence[EvidencePassage], short: Sequence[Verdict]) -> str:
        """The answer from all of the evidence, told which statements fell short; "" if the documents do not tell."""
        from cognicraft.answer.fence import mark_for
        from cognicraft.answer.generate import GeneratedAnswer, generate
        from cognicraft.answer.ground import Evidence
        from cognicraft.answer.prompting import DEFAULT_STYLE, messages

        own = self.settings.answer
        mark = mark_for([*(one.text for one in passages), *(one.title for one in passages)])
        tokens = sum(_tokens(self.opened, one.shown(mark)) for one in passages)
        evidence = Evidence(tuple(passages), mark, tokens, own.max_tokens)
        listed = " ".join(f'"{one.claim.text}"' for one in short[:_MOST_SHORT])
        asked = messages(
            self.question,
            evidence=evidence,
            template=self.template,
            persona=own.persona,
            style=f"{own.style or DEFAULT_STYLE} A check did not find these statements in the passages; leave out or "
            f"correct what they do not say: {listed}",
            language=own.language,
            history=self.history,
        )
        made = None
        for piece in generate(
            asked, evidence=evidence, model=self.model, max_tokens=self.settings.model.max_output_tokens
        ):
            made = piece if isinstance(piece, GeneratedAnswer) else made
        return made.text if made is not None else ""


def _evidence(opened: Opened, found: Found, *, top_k: int, max_tokens: int) -> Evidence:
    from cognicraft.answer.ground import pack, whole_document

    count = partial(_tokens, opened)
    whole = _whole_document(opened, found)
    if whole:
        return whole_document(whole, max_tokens=max_tokens, count_tokens=count)
    ranking = found.retrieved.ranking[:top_k]
    stored = opened.engine.chunks([hit.chunk_id for hit in ranking])
    scores = {hit.chunk_id: hit.score for hit in ranking}
    return pack(stored, max_tokens=max_tokens, count_tokens=count, scores=scores)


def _whole_document(opened: Opened, found: Found) -> list[StoredChunk]:
    """The chunks of the document that is asked for as a whole; none where passages are wanted."""
    identifier = found.understanding.whole_document
    if not identifier and found.plan is not None and found.plan.strategy == "full_document":
        hints = found.understanding.hints
        identifier = hints[0].document_id if hints else ""
    return opened.engine.document_chunks(identifier) if identifier else []


def _shown_whole(
    opened: Opened,
    question: str,
    settings: Settings,
    found: Found,
    chunks: Sequence[StoredChunk],
    *,
    started: float,
    usage: Usage,
) -> Answer:
    """The document that was asked for, word for word, as far as the budget goes."""
    from cognicraft.answer.ground import whole_document

    evidence = whole_document(chunks, max_tokens=settings.answer.max_tokens, count_tokens=partial(_tokens, opened))
    return document_answer(
        question,
        evidence,
        pages=_pages(opened, [chunks[0].document_id]),
        warnings=[*found.retrieved.warnings, *evidence.notes],
        timings_ms=rounded(found.retrieved.timings_ms, started),
        config={"workspace": opened.name, "max_tokens": settings.answer.max_tokens},
        meaning=understood(found.understanding, found.plan),
        usage=usage,
    )


def _tokens(opened: Opened, text: str) -> int:
    """About as many as a language model counts: those of the first encoder."""
    return len(next(iter(opened.embedders.values())).token_offsets(text))


def _pages(opened: Opened, document_ids: Sequence[str]) -> dict[str, tuple[Page, ...]]:
    records = (opened.engine.document(identifier) for identifier in dict.fromkeys(document_ids))
    return {record.id: record.pages for record in records if record is not None}


def quoted(opened: Opened, question: str, settings: Settings, found: Found, *, started: float, usage: Usage) -> Answer:
    """The answer in the words of the documents. started: `time.perf_counter()` when the question came."""
    from cognicraft.answer.extract import Passage, extract
    from cognicraft.answer.features import NOT_NAMED, Named
    from cognicraft.answer.scoring import DEFAULT_THRESHOLD

    engine, embedders, retrieved = opened.engine, opened.embedders, found.retrieved
    threshold = settings.answer.threshold
    threshold = DEFAULT_THRESHOLD if threshold is None else threshold
    sure = any(hint.fit > SURELY_NAMED for hint in found.understanding.hints)
    passages = settings.answer.passages * (2 if sure else 1)
    ranking = retrieved.ranking[:passages]
    scores = {hit.chunk_id: hit.score for hit in ranking}
    stored = engine.chunks(list(scores))
    # Sentences are compared token by token: by the first encoder that has token vectors, else by the shipped one.
    coding = [name for name in embedders if keeps_token_codes(name)]
    arm = next((name for name in coding if name in found.arms.encodings), next(iter(coding), SHIPPED))
    embedder = embedders[arm] if arm in embedders else embedder_named(arm)
    encoding = found.arms.encodings.get(arm) or embedder.encode_query(question)
    codes = engine.token_codes(arm, [chunk.id for chunk in stored]) if arm in embedders else [None] * len(stored)
    extracting = time.perf_counter()
    languages = engine.languages()
    named = {hint.document_id: Named(hint.fit, hint.words) for hint in found.understanding.hints}
    extraction = extract(
        question,
        [
            Passage(
                stored=chunk,
                score=scores[chunk.id],
                arm_scores={name: place.score for name, place in retrieved.places[chunk.id].items()},
                token_codes=code,
                named=named.get(chunk.document_id, NOT_NAMED),
            )
            for chunk, code in zip(stored, codes, strict=True)
        ],
        embedder=embedder,
        question_encoding=encoding,
        lexical_terms=partial(_terms, opened.lexical, language=max(languages, key=languages.__getitem__, default="")),
        max_sentences=settings.answer.max_sentences,
        threshold=threshold,
        max_passages=passages,
    )
    if sure:
        extraction = _of_the_named(extraction, [named.get(chunk.document_id, NOT_NAMED).fit for chunk in stored])
    timings = {**retrieved.timings_ms, "extract": (time.perf_counter() - extracting) * 1000}
    return answer(
        question,
        extraction,
        stored,
        scores,
        pages=_pages(opened, [chunk.document_id for chunk in stored]),
        warnings=list(retrieved.warnings),
        timings_ms=rounded(timings, started),
        config={
            **settings.search.model_dump(mode="json"),
            "limit": settings.answer.passages,
            "workspace": opened.name,
            "encoders": list(opened.manifest.encoder_names),
            "max_sentences": settings.answer.max_sentences,
            "threshold": threshold,
            "confidence": round(extraction.confidence, 4),
        },
        meaning=understood(found.understanding, found.plan),
        usage=usage,
    )


def _of_the_named(extraction: Extraction, fits: Sequence[float]) -> Extraction:
    """Without the sentences of other documents, where the question surely names some. fits: by passage."""
    named = tuple(one for one in extraction.sentences if fits[one.passage_index] > SURELY_NAMED)
    return replace(extraction, sentences=named) if named else extraction


def rounded(steps: Mapping[str, float], started: float) -> dict[str, float]:
    """Milliseconds by step, and in all since `started`."""
    own = {name: round(milliseconds, 3) for name, milliseconds in steps.items()}
    return {**own, "total": round((time.perf_counter() - started) * 1000, 3)}


def _terms(lexical: LexicalEncoder, text: str, *, language: str) -> list[str]:
    return lexical.terms(text, language=language)
