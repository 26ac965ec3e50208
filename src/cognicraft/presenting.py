"""Records of the steps to records for people: numbered sources, page numbers, file names. No decision is taken here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cognicraft.records import DocumentRecord, Page, Plan, StoredChunk, Understanding, Usage
from cognicraft.results import (
    Answer,
    ArmScore,
    DocumentInfo,
    ModelUsage,
    NamedDocument,
    SearchHit,
    Sentence,
    Source,
    Understood,
)

if TYPE_CHECKING:
    from cognicraft.answer.cited_sentences import CitedSentence
    from cognicraft.answer.extract import Extraction
    from cognicraft.answer.ground import Evidence
    from cognicraft.answer.passages import EvidencePassage
    from cognicraft.search.retrieve import Place

NOT_TOLD = "The documents do not tell."


def file_of(item: StoredChunk | DocumentRecord) -> str:
    """The file as a person names it; one document of many in it by its pointer: `huts.json#/1`."""
    return f"{item.source}#{item.pointer}" if item.pointer else item.source


def model_usage(usage: Usage) -> ModelUsage:
    return ModelUsage(
        calls=usage.calls,
        cached_calls=usage.cached_calls,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cost_usd=None if usage.cost_usd is None else round(usage.cost_usd, 6),
    )


def understood(understanding: Understanding, plan: Plan | None) -> Understood:
    """What a question was taken to mean, by rule and by a model."""
    return Understood(
        query=understanding.query,
        key_terms=list(understanding.key_terms),
        language=understanding.language,
        documents=[
            NamedDocument(document_id=one.document_id, file=one.source, fit=round(one.fit, 3), words=list(one.words))
            for one in understanding.hints
        ],
        whole_document=understanding.whole_document or None,
        intent=plan.intent if plan else "",
        strategy=plan.strategy if plan else "chunks",
        queries=[query.text for query in plan.queries] if plan else [understanding.query],
        notes=[*understanding.notes, *(plan.notes if plan else ())],
    )


def search_hit(rank: int, stored: StoredChunk, score: float, arms: Mapping[str, Place]) -> SearchHit:
    """A chunk found; `arms`: the name a person knows an arm by -> its place there."""
    chunk = stored.chunk.chunk
    return SearchHit(
        rank=rank,
        chunk_id=stored.id,
        document_id=stored.document_id,
        file=file_of(stored),
        page=chunk.page or None,
        heading=" > ".join(chunk.heading_path),
        text=chunk.text,
        start=chunk.start,
        end=chunk.end,
        score=score,
        arms={name: ArmScore(rank=place.rank, score=place.score) for name, place in arms.items()},
    )


def answer(
    question: str,
    extraction: Extraction,
    stored: Sequence[StoredChunk],
    scores: Mapping[str, float],
    *,
    pages: Mapping[str, Sequence[Page]],
    warnings: list[str],
    timings_ms: dict[str, float],
    config: dict[str, Any],
    meaning: Understood,
    usage: Usage,
) -> Answer:
    """The extraction as an answer with numbered sources.

    stored: the passages that the extraction speaks of, in its order; scores: by chunk id; pages: by document id.
    """

    def source(n: int, chunk: StoredChunk, start: int, end: int) -> Source:
        own = chunk.chunk.chunk
        spanned = [p.number for p in pages.get(chunk.document_id, ()) if p.start < end and start < p.end]
        return Source(
            n=n,
            document_id=chunk.document_id,
            file=file_of(chunk),
            page=spanned[0] if spanned else None,
            page_end=spanned[-1] if spanned else None,
            heading=" > ".join(own.heading_path),
            quote=own.text[start - own.start : end - own.start],
            start=start,
            end=end,
            score=scores[chunk.id],
        )

    if not extraction.answered:
        nearest = [
            source(n, chunk, chunk.chunk.chunk.start, chunk.chunk.chunk.end)
            for n, chunk in enumerate(stored[:3], start=1)
        ]
        return Answer(
            question=question,
            answered=False,
            answer=NOT_TOLD,
            sentences=[],
            sources=nearest,
            warnings=[*warnings, *([extraction.reason] if extraction.reason else [])],
            model="",
            understood=meaning,
            usage=model_usage(usage),
            timings_ms=timings_ms,
            config=config,
        )
    sources: list[Source] = []
    sentences: list[Sentence] = []
    text = ""
    for extracted in extraction.sentences:
        numbers = []
        for passage, (start, end) in zip(extracted.citations, extracted.spans, strict=True):
            numbers.append(len(sources) + 1)
            sources.append(source(len(sources) + 1, stored[passage], start, end))
        if text:
            text += "\n" if " | " in extracted.text or " | " in sentences[-1].text else " "
        sentences.append(
            Sentence(
                text=extracted.text,
                start=len(text),
                end=len(text) + len(extracted.text),
                citations=numbers,
            )
        )
        text += extracted.text + " " + "".join(f"[{n}]" for n in numbers)
    return Answer(
        question=question,
        answered=True,
        answer=text,
        sentences=sentences,
        sources=sources,
        warnings=warnings,
        model="",
        understood=meaning,
        usage=model_usage(usage),
        timings_ms=timings_ms,
        config=config,
    )


def written(
    question: str,
    text: str,
    sentences: Sequence[CitedSentence],
    passages: Sequence[EvidencePassage],
    *,
    model: str,
    pages: Mapping[str, Sequence[Page]],
    warnings: list[str],
    timings_ms: dict[str, float],
    config: dict[str, Any],
    meaning: Understood,
    usage: Usage,
) -> Answer:
    """A model's answer with the passages it cites as sources, under the numbers that it was given them by.

    text: "" where the documents do not tell. The quote of a source is the sentences of the passage that share most
    with what cites it.
    """
    from cognicraft.answer.quoting import quote_span

    by_number = {passage.number: passage for passage in passages}
    sources = []
    for number in sorted({number for sentence in sentences for number in sentence.citations}):
        passage = by_number[number]
        claims = [sentence.claim for sentence in sentences if number in sentence.citations]
        sources.append(_passage_source(passage, quote_span(" ".join(claims), passage.text), pages))
    if not text:
        sources = [_passage_source(one, (0, len(one.text)), pages) for one in passages[:3]]
    return Answer(
        question=question,
        answered=bool(text),
        answer=text or NOT_TOLD,
        sentences=[
            Sentence(
                text=sentence.text,
                start=sentence.start,
                end=sentence.end,
                citations=list(sentence.citations),
                unknown_citations=list(sentence.unknown),
            )
            for sentence in sentences
        ],
        sources=sources,
        model=model,
        understood=meaning,
        usage=model_usage(usage),
        warnings=list(dict.fromkeys(warnings)),
        timings_ms=timings_ms,
        config=config,
    )


def document_answer(
    question: str,
    evidence: Evidence,
    *,
    pages: Mapping[str, Sequence[Page]],
    warnings: list[str],
    timings_ms: dict[str, float],
    config: dict[str, Any],
    meaning: Understood,
    usage: Usage,
) -> Answer:
    """A whole document as the answer: its passages one after the other, each a sentence of its own source."""
    text = ""
    sentences = []
    for passage in evidence.passages:
        text += "\n\n" if text else ""
        sentences.append(
            Sentence(text=passage.text, start=len(text), end=len(text) + len(passage.text), citations=[passage.number])
        )
        text += passage.text
    return Answer(
        question=question,
        answered=True,
        answer=text,
        sentences=sentences,
        sources=[_passage_source(one, (0, len(one.text)), pages) for one in evidence.passages],
        model="",
        understood=meaning,
        usage=model_usage(usage),
        warnings=warnings,
        timings_ms=timings_ms,
        config=config,
    )


def _passage_source(passage: EvidencePassage, span: tuple[int, int], pages: Mapping[str, Sequence[Page]]) -> Source:
    start, end = passage.place.start + span[0], passage.place.start + span[1]
    spanned = [p.number for p in pages.get(passage.place.document_id, ()) if p.start < end and start < p.end]
    return Source(
        n=passage.number,
        document_id=passage.place.document_id,
        file=passage.place.file,
        page=spanned[0] if spanned else None,
        page_end=spanned[-1] if spanned else None,
        heading=" > ".join(passage.heading_path),
        quote=passage.text[span[0] : span[1]],
        start=start,
        end=end,
        score=passage.score,
        also=[place.file for place in passage.also],
    )


def document_info(record: DocumentRecord) -> DocumentInfo:
    return DocumentInfo(
        id=record.id,
        file=file_of(record),
        status=record.status,
        title=record.title,
        media_type=record.media_type,
        language=record.language,
        pages=len(record.pages),
        characters=record.characters,
        chunks=record.chunk_count,
        pointer=record.pointer,
        ingested_at=record.ingested_at,
        metadata=dict(record.metadata),
        warnings=list(record.warnings),
        error_code=record.error_code,
        error=record.error,
    )


def text_of(chunks: Sequence[StoredChunk], characters: int) -> str:
    """The document's text from its chunks; what lies between them is white space, given back as line breaks."""
    text = ""
    for stored in chunks:
        chunk = stored.chunk.chunk
        text += "\n" * max(0, chunk.start - len(text))
        text += chunk.text[max(0, len(text) - chunk.start) :]
    return text + "\n" * max(0, characters - len(text))
