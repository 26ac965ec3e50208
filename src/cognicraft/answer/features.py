"""How well each candidate sentence fits a question, as a few numbers.

Takes: the question (text, encoding, spans of its tokens), the candidates, the token codes of each candidate's
    own tokens, and the word analysis of the lexical arm.
Returns: a matrix, one row a candidate, columns as in `NAMES`; larger is likelier to answer, and no number
    changes its meaning with the number of candidates or with how the passages were scored.
Method: one-bit late interaction between the question's tokens and the sentence's (Khattab and Zaharia,
    "ColBERT", SIGIR 2020; the cosine of two tokens from the Hamming distance of their signs: Charikar, STOC
    2002), each token of the question weighted by how rare its word is among the candidates; the same over the
    sentence and the one before it, so that "He died in 1905" profits from the name before; shares of the
    question's words; whether the sentence holds what is asked for (`answer_type.py`), says what a thing is
    (`definition.py`), only leads on to it, or is a table row whose label the question names; whether it
    stands in the document (`Named`, given) and under the heading that the question names, and in how
    many documents the same words stand.
Cost: popcounts over the stored token codes, a few ms for ten passages; nothing is encoded here.
What can go wrong: a candidate without token codes gets 0 for late interaction and is ranked by its words
alone.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

import numpy as np

from cognicraft.answer.answer_type import asked_for, holds
from cognicraft.answer.candidates import CELL, Candidate
from cognicraft.answer.definition import defines, thing_asked
from cognicraft.records import ByteArray, Encoding, FloatArray, StoredChunk

LexicalTerms = Callable[[str], list[str]]
Span = tuple[int, int]

# Scripts without spaces are looked up two characters at a time, as the lexical arm does.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3"
_WORD = re.compile(rf"[{_UNSPACED}]{{1,2}}|[^\W{_UNSPACED}]+")
NAMES = (
    "late_interaction",
    "late_interaction_with_sentence_before",
    "similarity",
    "coverage",
    "coverage_in_context",
    "passage",
    "holds_number",
    "holds_date",
    "holds_name",
    "leads_on",
    "row_label",
    "document",
    "heading",
    "defines",
    "repeated",
    "passage_late_interaction",
)
"""Columns of `features`.

late_interaction: mean over the question's words, weighted by rarity, of the best cosine in the sentence, in [-1, 1].
late_interaction_with_sentence_before: the same over the sentence and the one before it in its passage.
similarity: of the question's vector and the mean of the sentence's token codes, both of length 1; in [-1, 1].
coverage: share of the question's words, weighted by rarity, that stand in the sentence or the
    name of its document; in [0, 1].
coverage_in_context: the same with the sentence before, the headings and the title.
passage: 1 / rank of the best passage that holds it; in (0, 1].
holds_number, holds_date, holds_name: 1 where the question asks for one and the sentence holds one, else 0.
leads_on: -1 for a sentence that only leads to an answer: it ends in a colon, sends the reader elsewhere ("See
    Note 4"), or brings a list; -2 for a question; else 0.
row_label: for a table row with figures, the share of its label's words that the question names, squared; else 0.
document: how surely the question names its document; in [0, 1], given (`Named`).
heading: share of the words of the heading above its passage that the question names, squared; in [0, 1].
defines: for a question that asks what a thing is, how plainly the sentence says it; in [0, 1] (`definition.py`).
repeated: minus the share of the documents found, without its own, that hold the same words; in [-1, 0].
passage_late_interaction: mean over the question's tokens of the best cosine in the passage; in [-1, 1].
"""

_LEADS_ON = (":", "\uff1a")
_SECTION_NUMBER = re.compile(r"\s*(?:\d{1,3}(?:\.\d{1,3})*\.?|#{1,6})\s+")
QUESTION_MARKS = ("?", "\uff1f", "\u061f")


@dataclass(frozen=True, slots=True)
class Named:
    """How surely a question names a document, in [0, 1], and the words of the question that name it."""

    fit: float = 0.0
    words: tuple[str, ...] = ()


NOT_NAMED = Named()
_ELSEWHERE = re.compile(
    r"\(?(?:see|refer)(?:[_ -]also)?"
    r"(?::| to\b| (?:also )?(?:item|note|part|section|chapter|page|table|figure|appendix|“|\"))"
    r"|for (?:a |an |more |further |additional )?(?:[\w-]+ )?(?:information|discussion|description|details?)\b.{0,200}?"
    r"\b(?:see|refer to)\b",
    re.IGNORECASE,
)


def features(
    question: str,
    *,
    encoding: Encoding,
    token_spans: Sequence[Span],
    candidates: Sequence[Candidate],
    codes: Sequence[ByteArray],
    passages: Sequence[StoredChunk],
    named: Sequence[Named] = (),
    lexical_terms: LexicalTerms,
) -> FloatArray:
    """(candidates, len(NAMES)) float32.

    encoding: of the question, with token codes; token_spans: character spans of these tokens in the question.
    codes: per candidate, the codes of its own tokens, (tokens, bytes), no rows where there are none.
    passages: where the candidates stand; of these the names and headings count. named: how far the question names the
    document of each passage, in their order; left out, it names none.
    """
    columns = np.zeros((len(candidates), len(NAMES)), dtype=np.float32)
    if not candidates:
        return columns
    of = dict(zip(NAMES, columns.T, strict=True))  # views: what is written here is written there
    words = [frozenset(lexical_terms(candidate.text)) for candidate in candidates]
    named = named or [NOT_NAMED] * len(passages)
    asked = _asked(question, words, lexical_terms)
    names = [
        frozenset(lexical_terms(" ".join((_document_name(one), *by.words))))
        for one, by in zip(passages, named, strict=True)
    ]
    before = _sentence_before(candidates)
    question_codes = encoding.token_codes
    if question_codes is not None and len(question_codes):
        nearest = _nearest(question_codes, codes)
        count = len(question_codes)
        weights = _token_weights(token_spans[:count], count, asked)
        of["late_interaction"][:] = nearest @ weights
        with_before = np.maximum(nearest, np.where(before[:, None] >= 0, nearest[before], -1.0))
        of["late_interaction_with_sentence_before"][:] = with_before @ weights
        of["passage_late_interaction"][:] = _by_passage(candidates, nearest)
        of["similarity"][:] = _similarity(encoding.vector, codes)
    kind = asked_for(question)
    contexts = ["\n".join((one.title, *one.chunk.chunk.heading_path)) for one in passages]
    heads = [frozenset(lexical_terms(context)) for context in contexts]
    thing = thing_asked(question)
    thing_terms = frozenset(lexical_terms(thing)) if thing else frozenset()
    said = frozenset(term for word in asked for term in word.terms)
    headings = [_named_heading(one, said, lexical_terms) for one in passages]
    documents = len({one.document_id for one in passages})
    seen: set[int] = set()
    for row, candidate in enumerate(candidates):
        first = candidate.places[0].passage
        context = words[row] | heads[first] | (words[before[row]] if before[row] >= 0 else frozenset())
        of["coverage"][row] = _share(asked, words[row] | names[first])
        of["coverage_in_context"][row] = _share(asked, context)
        of["passage"][row] = 1.0 / (1 + first)
        of["row_label"][row] = _row_label(candidate, said, lexical_terms)
        of["heading"][row] = headings[first]
        of["leads_on"][row] = -_leads_on(candidate)
        of["document"][row] = max(named[place.passage].fit for place in candidate.places)
        if documents > 1:
            holding = len({passages[place.passage].document_id for place in candidate.places})
            of["repeated"][row] = -(holding - 1) / (documents - 1)
        if thing_terms:
            of["defines"][row] = defines(
                candidate.text,
                thing=thing_terms,
                names=(passages[first].title, *passages[first].chunk.chunk.heading_path[-1:]),
                opens=first not in seen and _opens(passages[first]),
                lexical_terms=lexical_terms,
            )
        seen.add(first)
        if kind is not None:
            of[f"holds_{kind}"][row] = holds(candidate.text, kind, question=question)
    return columns


def _document_name(stored: StoredChunk) -> str:
    """Title and file name as words."""
    stem = PurePosixPath(stored.source.replace("\\", "/").partition("#")[0]).stem
    return f"{stored.title} {stem.replace('_', ' ').replace('-', ' ')}"


def _leads_on(candidate: Candidate) -> float:
    if candidate.text.endswith(QUESTION_MARKS):
        return 2.0
    if candidate.text.endswith(_LEADS_ON) or _ELSEWHERE.match(candidate.text):
        return 1.0
    return 1.0 if candidate.brings_list else 0.0


def _opens(stored: StoredChunk) -> bool:
    """Whether a passage begins where its document or its last heading does."""
    chunk = stored.chunk.chunk
    heading = chunk.heading_path[-1] if chunk.heading_path else stored.title
    return chunk.start == 0 or chunk.text.lstrip("# \n").startswith(heading)


@dataclass(frozen=True, slots=True)
class _Word:
    """A word of the question: its span, its terms (an identifier has several), and how rare it is, never 0."""

    start: int
    end: int
    terms: frozenset[str]
    rarity: float


def _asked(question: str, words: Sequence[frozenset[str]], lexical_terms: LexicalTerms) -> list[_Word]:
    """The words of the question that are no stop words, each with its idf among the candidates.

    idf = ln(1 + (N - n + .5) / (n + .5)), N candidates of which n hold one of the word's terms.
    """
    analysed = ((match, frozenset(lexical_terms(match[0]))) for match in _WORD.finditer(question))
    count = len(words)
    asked = []
    for match, terms in analysed:
        if terms:
            held = sum(not terms.isdisjoint(one) for one in words)
            rarity = math.log1p((count - held + 0.5) / (held + 0.5))
            asked.append(_Word(match.start(), match.end(), terms, rarity))
    return asked


def _share(asked: Sequence[_Word], words: frozenset[str]) -> float:
    """Share of the question's words that stand in a text, each word once, weighted by rarity; 0 without words."""
    weights = {word.terms: word.rarity for word in asked}
    total = math.fsum(weights.values())
    return (
        math.fsum(weight for terms, weight in weights.items() if not terms.isdisjoint(words)) / total if total else 0.0
    )


def _row_label(candidate: Candidate, named: frozenset[str], lexical_terms: LexicalTerms) -> float:
    """Squared, so that `Services` and `Net sales: Services` stand well apart from a row that is named in half.

    0 where the part of the label that tells the row from its group is not named at all.
    """
    label, _, values = candidate.text.partition(CELL)
    terms = frozenset(lexical_terms(label))
    if not terms or not any(character.isdigit() for character in values):
        return 0.0
    own = frozenset(lexical_terms(label.rpartition(": ")[2]))
    if own and own.isdisjoint(named):
        return 0.0
    return (len(terms & named) / len(terms)) ** 2


def _named_heading(stored: StoredChunk, named: frozenset[str], lexical_terms: LexicalTerms) -> float:
    path = stored.chunk.chunk.heading_path
    terms = frozenset(lexical_terms(_SECTION_NUMBER.sub("", path[-1], count=1))) if path else frozenset()
    return (len(terms & named) / len(terms)) ** 2 if terms else 0.0


def _sentence_before(candidates: Sequence[Candidate]) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    """Row of the sentence before each candidate in its passage, -1 for the first."""
    rows = {(one.places[0].passage, one.order): row for row, one in enumerate(candidates)}
    return np.array([rows.get((one.places[0].passage, one.order - 1), -1) for one in candidates], dtype=np.intp)


def _token_weights(token_spans: Sequence[Span], count: int, asked: Sequence[_Word]) -> FloatArray:
    """(count,) summing to 1: a word's rarity, divided among its tokens; all equal where there is no word."""
    weights = np.zeros(count, dtype=np.float32)
    first = 0
    for word in asked:
        while first < len(token_spans) and token_spans[first][1] <= word.start:
            first += 1
        last = first
        while last < len(token_spans) and token_spans[last][0] < word.end:
            last += 1
        if last > first:
            weights[first:last] = word.rarity / (last - first)
    total = float(weights.sum())
    return weights / total if total > 0 else np.full(count, 1.0 / count, dtype=np.float32)


def _nearest(question_codes: ByteArray, codes: Sequence[ByteArray]) -> FloatArray:
    """(candidates, question tokens): the best cosine of each question token in each candidate, else 0."""
    nearest = np.zeros((len(codes), len(question_codes)), dtype=np.float32)
    present = [row for row, code in enumerate(codes) if len(code)]
    if not present:
        return nearest
    width = question_codes.shape[1]
    lengths = np.array([len(codes[row]) for row in present])
    starts = np.concatenate(([0], np.cumsum(lengths)[:-1]))
    columns = np.ascontiguousarray(_words64(np.concatenate([codes[row] for row in present])).T)
    distance = np.empty(columns.shape[1], dtype=np.uint16)
    for token, code in enumerate(_words64(question_codes)):
        distance.fill(0)
        for column, word in zip(columns, code, strict=True):
            distance += np.bitwise_count(column ^ word)
        fewest = np.minimum.reduceat(distance, starts)
        nearest[present, token] = np.cos(fewest * np.float32(np.pi / (8 * width)))
    return nearest


def _words64(codes: ByteArray) -> np.ndarray[tuple[int, int], np.dtype[np.uint64]]:
    """Rows of bytes as rows of 64-bit words, padded with zeros, which differ nowhere."""
    padding = -codes.shape[1] % 8
    padded = np.pad(codes, ((0, 0), (0, padding))) if padding else codes
    return np.ascontiguousarray(padded).view(np.uint64)


def _by_passage(candidates: Sequence[Candidate], nearest: FloatArray) -> FloatArray:
    """Late interaction with all the candidates of a candidate's first passage together."""
    passages = np.array([candidate.places[0].passage for candidate in candidates])
    best = {passage: nearest[passages == passage].max(axis=0).mean() for passage in set(passages.tolist())}
    return np.array([best[passage] for passage in passages.tolist()], dtype=np.float32)


def _similarity(vector: FloatArray, codes: Sequence[ByteArray]) -> FloatArray:
    """Cosine of the question's vector with the mean of a candidate's token signs, 0 without codes."""
    similarity = np.zeros(len(codes), dtype=np.float32)
    for row, code in enumerate(codes):
        if not len(code):
            continue
        # Sum of signs = 2 x ones - tokens; the scale goes out with the norm.
        signs = 2.0 * np.unpackbits(code, axis=1, count=len(vector)).sum(axis=0) - len(code)
        norm = float(np.linalg.norm(signs))
        similarity[row] = float(signs @ vector) / norm if norm > 0 else 0.0
    return similarity
