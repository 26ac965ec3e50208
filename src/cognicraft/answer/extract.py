"""The sentences that answer a question, word for word, without a language model; or that nothing answers.

Takes: a question and its encoding, the passages that retrieval put first, the encoder, the word analysis of
    the lexical arm. No settings, no engine.
Returns: an `Extraction`: at most `max_sentences` sentences or table rows with the places where they stand,
    whether the passages answer at all, and how sure that is.
Method: every sentence of the passages is a candidate (`candidates.py`), is described by a few numbers
    (`features.py`) and scored by fixed weights (`scoring.py`). The best one comes first; what follows it is
    put in the order of the text. Rows are cut to the cells asked for (`rows.py`).
Cost: a few ms for ten passages whose token codes were kept at ingest; without them their sentences are
    encoded, at most `_ENCODED_SENTENCES` of them.
What can go wrong: an answer that needs two sentences to be put together is quoted, not drawn; a question
    whose words all stand in a passage that does not answer it is taken for answered (see the decision record
    for how often).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from cognicraft.answer.candidates import Candidate, candidates
from cognicraft.answer.features import NOT_NAMED, QUESTION_MARKS, LexicalTerms, Named, features
from cognicraft.answer.rows import cells, chosen_cells, column_head, unit
from cognicraft.answer.scoring import (
    CALIBRATIONS,
    DEFAULT_THRESHOLD,
    MINILM,
    Calibration,
    confidence,
    sentence_scores,
)
from cognicraft.protocols import Embedder
from cognicraft.records import ByteArray, Encoding, FloatArray, StoredChunk

MAX_PASSAGES = 10
"""Passages that are read unless told otherwise."""

_ENCODED_SENTENCES = 40
_NEAR_DUPLICATE = 0.85
_FAR_BEHIND = 6.0
_FIGURE = re.compile(r"\d[\d.,]*")

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk that retrieval found.

    score: of the final ranking; arm_scores: by arm; both larger-is-better, kept for the caller. The order of
        the passages is what counts here.
    token_codes: of the tokens of `stored.chunk.dense_text`, as kept at ingest; None where none were kept.
    named: how surely the question names its document, as routing found.
    """

    stored: StoredChunk
    score: float
    arm_scores: Mapping[str, float] = field(default_factory=dict)
    token_codes: ByteArray | None = None
    named: Named = NOT_NAMED


@dataclass(frozen=True, slots=True)
class ExtractedSentence:
    """A sentence, or the part of a table row that answers.

    text: the pieces put together: one piece for a sentence; for a row its cells joined by " | ", and after a
        blank the remark on the unit. Every piece stands in the document word for word, at its span in
        `pieces`.
    start, end: span in the document of the sentence or of the whole row.
    passage_index: where it stands, in the sequence of passages; `citations`: all passages where the same
        words stand, the best first (it is `passage_index`); `spans`: its span in the document of each of
        these.
    score: comparable within one extraction only.
    """

    text: str
    passage_index: int
    start: int
    end: int
    score: float
    citations: tuple[int, ...]
    spans: tuple[Span, ...]
    pieces: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Extraction:
    """The answer in the words of the documents.

    sentences: the best first. Where `answered` is false they are empty.
    confidence: from 0 to 1; answered where it reaches `threshold`.
    reason: why nothing answers, in a sentence; "" where something does.
    """

    sentences: tuple[ExtractedSentence, ...]
    answered: bool
    confidence: float
    threshold: float
    reason: str = ""


def extract(
    question: str,
    passages: Sequence[Passage],
    *,
    embedder: Embedder,
    question_encoding: Encoding,
    lexical_terms: LexicalTerms,
    max_sentences: int = 3,
    threshold: float = DEFAULT_THRESHOLD,
    calibration: Calibration | None = None,
    max_passages: int = MAX_PASSAGES,
) -> Extraction:
    """Quote what answers the question.

    passages: best first; the first `max_passages` are read. question_encoding: by the same `embedder`, with
    token codes. lexical_terms: text -> its analysed terms, stop words left out.
    threshold: least confidence that counts as an answer; 0 answers whenever there is a sentence, 1
    practically never.
    calibration: how the encoder's cosines become a confidence; None: by the name of the encoder.
    Raises: ValueError for max_sentences below 1 or a threshold outside 0..1.
    """
    if max_sentences < 1:
        raise ValueError(f"max_sentences is {max_sentences}; an answer has at least 1 sentence.")
    if not 0.0 <= threshold <= 1.0:
        raise ValueError(f"The threshold is {threshold}; a confidence lies between 0 and 1.")

    def declined(reason: str, sure: float = 0.0) -> Extraction:
        return Extraction((), False, sure, threshold, reason)

    if not question.strip():
        return declined("The question is empty.")
    if not lexical_terms(question):
        return declined("The question has no word that could be looked for.")
    passages = passages[:max_passages]
    if not passages:
        return declined("No passage was found.")
    stored = [passage.stored for passage in passages]
    found = candidates(stored)
    if not found:
        return declined("The passages found hold no sentence.")

    columns = describe(
        question,
        passages,
        found,
        embedder=embedder,
        question_encoding=question_encoding,
        lexical_terms=lexical_terms,
    )
    scores = sentence_scores(columns)
    calibration = calibration or CALIBRATIONS.get(embedder.name, MINILM)
    sure = confidence(columns, scores, calibration=calibration)
    if sure < threshold:
        return declined("No passage is close enough to the question.", sure)
    chosen = _chosen(question, found, scores, max_sentences, lexical_terms)
    sentences = tuple(
        _presented(found[row], float(scores[row]), stored, question, lexical_terms)
        for row in _readable(chosen, found, stored)
    )
    return Extraction(sentences, True, sure, threshold)


def describe(
    question: str,
    passages: Sequence[Passage],
    found: Sequence[Candidate],
    *,
    embedder: Embedder,
    question_encoding: Encoding,
    lexical_terms: LexicalTerms,
) -> FloatArray:
    """The features of the candidates found in these passages, (candidates, len(features.NAMES)) float32."""
    return features(
        question,
        encoding=question_encoding,
        token_spans=embedder.token_offsets(question),
        candidates=found,
        codes=_codes(found, passages, embedder),
        passages=[one.stored for one in passages],
        named=[one.named for one in passages],
        lexical_terms=lexical_terms,
    )


def _codes(found: Sequence[Candidate], passages: Sequence[Passage], embedder: Embedder) -> list[ByteArray]:
    """Token codes of each candidate: its part of the passage's, else its own, else none."""
    none = np.zeros((0, embedder.dimensions // 8), dtype=np.uint8)
    tokens: dict[int, tuple[FloatArray, ByteArray]] = {}
    codes: list[ByteArray] = []
    missing: list[int] = []
    for row, candidate in enumerate(found):
        place = candidate.places[0]
        kept = passages[place.passage].token_codes
        if kept is None or not len(kept):
            missing.append(row)
            codes.append(none)
            continue
        if place.passage not in tokens:
            chunk = passages[place.passage].stored.chunk
            before = len(chunk.dense_text) - len(chunk.chunk.text)
            offsets = np.array(embedder.token_offsets(chunk.dense_text)[: len(kept)]).reshape(-1, 2) - before
            tokens[place.passage] = (offsets, kept)
        offsets, kept = tokens[place.passage]
        first = int(np.searchsorted(offsets[:, 1], place.start, side="right"))
        last = int(np.searchsorted(offsets[:, 0], place.end, side="left"))
        codes.append(kept[first:last])
        if last <= first:
            missing.append(row)
    missing = missing[:_ENCODED_SENTENCES]
    texts = [found[row].text for row in missing]
    encodings = embedder.encode_documents(texts, token_codes=True) if texts else []
    for row, encoding in zip(missing, encodings, strict=True):
        codes[row] = none if encoding.token_codes is None else encoding.token_codes
    return codes


def _chosen(
    question: str, found: Sequence[Candidate], scores: FloatArray, max_sentences: int, lexical_terms: LexicalTerms
) -> list[int]:
    """Rows of the best candidates, best first, without near-duplicates and without those far behind."""
    asked = frozenset(lexical_terms(question))
    chosen: list[int] = []
    said: list[tuple[frozenset[str], frozenset[str]]] = []
    order = np.argsort(-scores, kind="stable").tolist()
    order = [row for row in order if _tells(found[row], asked, lexical_terms)] or order[:1]
    for row in order:
        if len(chosen) == max_sentences or scores[row] < scores[order[0]] - _FAR_BEHIND:
            break
        text = found[row].text
        if any(_overlapping(found[row], found[other]) for other in chosen):
            continue
        words, figures = frozenset(lexical_terms(text)), frozenset(_FIGURE.findall(text))
        if any(figures == others and _overlap(words, other) >= _NEAR_DUPLICATE for other, others in said):
            continue
        chosen.append(row)
        said.append((words, figures))
    return chosen


def _tells(candidate: Candidate, asked: frozenset[str], lexical_terms: LexicalTerms) -> bool:
    """Whether it can be an answer: no question, nor a row without a figure that shares only its column heads."""
    if candidate.text.endswith(QUESTION_MARKS):
        return False
    if not candidate.is_row or _FIGURE.search(candidate.text):
        return True
    texts = [candidate.text[start:end] for start, end in cells(candidate.text)]
    values = [text.removeprefix(column_head(text)) for text in texts[1:]]
    return not asked.isdisjoint(lexical_terms(" ".join([*texts[:1], *values])))


def _overlapping(one: Candidate, other: Candidate) -> bool:
    """Whether one holds words of the other, as a sentence holds those that it introduces."""
    first, second = one.places[0], other.places[0]
    return first.passage == second.passage and first.start < second.end and second.start < first.end


def _overlap(one: frozenset[str], other: frozenset[str]) -> float:
    """Shared words over all words (Jaccard)."""
    union = len(one | other)
    return len(one & other) / union if union else 1.0


def _readable(chosen: Sequence[int], found: Sequence[Candidate], stored: Sequence[StoredChunk]) -> list[int]:
    """The best first; then the others of its document in the order of the text; then the rest by document."""
    if not chosen:
        return []
    documents = list(dict.fromkeys(stored[found[row].places[0].passage].document_id for row in chosen))

    def position(row: int) -> tuple[int, int]:
        place = found[row].places[0]
        chunk = stored[place.passage]
        return documents.index(chunk.document_id), chunk.chunk.chunk.start + place.start

    return [chosen[0], *sorted(chosen[1:], key=position)]


def _presented(
    candidate: Candidate,
    score: float,
    stored: Sequence[StoredChunk],
    question: str,
    lexical_terms: Callable[[str], list[str]],
) -> ExtractedSentence:
    place = candidate.places[0]
    chunk = stored[place.passage].chunk.chunk
    text, pieces = candidate.text, [(place.start, place.end)]
    if candidate.is_row:
        shown = chosen_cells(candidate.text, question=question, lexical_terms=lexical_terms)
        text = " | ".join(candidate.text[start:end] for start, end in shown)
        pieces = [(place.start + start, place.start + end) for start, end in shown]
        remark = unit(chunk.text, row_start=place.start, row_end=place.end)
        if remark is not None:
            text = f"{text} {chunk.text[slice(*remark)]}"
            pieces.append(remark)
    spans = []
    citations = []
    for other in candidate.places:
        if other.passage not in citations:
            start = stored[other.passage].chunk.chunk.start
            citations.append(other.passage)
            spans.append((start + other.start, start + other.end))
    return ExtractedSentence(
        text=text,
        passage_index=place.passage,
        start=chunk.start + place.start,
        end=chunk.start + place.end,
        score=score,
        citations=tuple(citations),
        spans=tuple(spans),
        pieces=tuple((chunk.start + start, chunk.start + end) for start, end in pieces),
    )
