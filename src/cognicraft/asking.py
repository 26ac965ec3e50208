"""One question over one workspace, from the search to the answer.

Takes: an open workspace, a question, the settings of this call. Returns: an `Answer`.
Method: search (`searching.py`), then the sentences that answer, word for word (`answer/extract.py`).
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from cognicraft.config import Settings
from cognicraft.presenting import answer
from cognicraft.records import Filter
from cognicraft.results import Answer
from cognicraft.searching import Found, Opened, find

if TYPE_CHECKING:
    from cognicraft.search.lexical import LexicalEncoder


def ask(opened: Opened, question: str, settings: Settings, *, where: str | Filter | None) -> Answer:
    """The sentences of the documents that answer, word for word; or that they do not tell."""
    started = time.perf_counter()
    found = find(opened, question, settings.search, where=where, limit=settings.answer.passages)
    return quoted(opened, question, settings, found, started=started)


def quoted(opened: Opened, question: str, settings: Settings, found: Found, *, started: float) -> Answer:
    """The answer in the words of the documents. started: `time.perf_counter()` when the question came."""
    from cognicraft.answer.extract import Passage, extract
    from cognicraft.answer.scoring import DEFAULT_THRESHOLD

    engine, embedders, retrieved = opened.engine, opened.embedders, found.retrieved
    threshold = settings.answer.threshold
    threshold = DEFAULT_THRESHOLD if threshold is None else threshold
    ranking = retrieved.ranking[: settings.answer.passages]
    scores = {hit.chunk_id: hit.score for hit in ranking}
    stored = engine.chunks(list(scores))
    arm = next((name for name in embedders if name in found.arms.encodings), next(iter(embedders)))
    encoding = found.arms.encodings.get(arm) or embedders[arm].encode_query(question)
    codes = engine.token_codes(arm, [chunk.id for chunk in stored])
    extracting = time.perf_counter()
    languages = engine.languages()
    extraction = extract(
        question,
        [
            Passage(
                stored=chunk,
                score=scores[chunk.id],
                arm_scores={name: place.score for name, place in retrieved.places[chunk.id].items()},
                token_codes=code,
            )
            for chunk, code in zip(stored, codes, strict=True)
        ],
        embedder=embedders[arm],
        question_encoding=encoding,
        lexical_terms=partial(_terms, opened.lexical, language=max(languages, key=languages.__getitem__, default="")),
        max_sentences=settings.answer.max_sentences,
        threshold=threshold,
    )
    timings = {**retrieved.timings_ms, "extract": (time.perf_counter() - extracting) * 1000}
    records = (engine.document(identifier) for identifier in {chunk.document_id for chunk in stored})
    return answer(
        question,
        extraction,
        stored,
        scores,
        pages={record.id: record.pages for record in records if record is not None},
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
            "model": "none (extractive)",
        },
    )


def rounded(steps: Mapping[str, float], started: float) -> dict[str, float]:
    """Milliseconds by step, and in all since `started`."""
    own = {name: round(milliseconds, 3) for name, milliseconds in steps.items()}
    return {**own, "total": round((time.perf_counter() - started) * 1000, 3)}


def _terms(lexical: LexicalEncoder, text: str, *, language: str) -> list[str]:
    return lexical.terms(text, language=language)
