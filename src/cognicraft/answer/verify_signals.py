"""How far evidence bears a statement out, as a few numbers that say the same whatever the length of the statement.

Takes: an analysed claim, the analysed sentences of the passages, and, if there is an encoder, the codes of their
tokens. Returns: `Signals`: a row of numbers (`NAMES`), the window of one to three sentences that decides, and the
conflicts found in it. Method: coverage of stems, pairs and rare words; longest run of words in common; quantities,
names, negation, opposites and the order of words around a pivot, compared in the window (`verify_conflicts.py`);
late interaction (Khattab and Zaharia, "ColBERT", SIGIR 2020) between the claim's tokens and the sentences that share
most with it, from one bit a dimension (Charikar, STOC 2002).
Cost: set operations for each sentence and claim; a product of two small matrices for each claim.
What can go wrong: what is said in other words entirely is seen by the encoder alone, and only in the sentences that
the shared words point at.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from cognicraft.answer.verify_conflicts import Conflict, conflicts
from cognicraft.answer.verify_numbers import Quantity, missing, quantities
from cognicraft.answer.verify_words import Stem, Token, is_personal, tokens
from cognicraft.ingest.sentences import sentences
from cognicraft.records import ByteArray, Encoding, FloatArray

NAMES = (
    "coverage",
    "rare_coverage",
    "pair_coverage",
    "window_coverage",
    "window_rare_coverage",
    "window_pair_coverage",
    "longest_run",
    "in_order",
    "triples",
    "uncovered",
    "quantities_missing",
    "names_missing",
    "names_elsewhere",
    "quantities_elsewhere",
    "negation",
    "opposite",
    "swap",
    "personal",
    "late_interaction",
    "late_interaction_weakest",
    "late_interaction_window",
)
"""Columns. All are 0 to 1 but `late_interaction*`, which are cosines, and `uncovered`, a logarithm.

coverage: share of the claim's content words that the evidence has; rare_coverage: weighted by how few of its sentences
have them; pair_coverage: of neighbouring content words; window_*: in the best one to three sentences together.
longest_run: longest run of words, function words too, that stands in a sentence, as a share of the claim's words;
in_order: longest common subsequence with the best sentence; triples: share of runs of three words found.
uncovered: ln(1 + content words that the evidence lacks).
*_missing: share of the claim's quantities (names) that the evidence lacks; *_elsewhere: that only the window lacks.
negation, opposite, swap: how surely the window says the contrary.
personal: share of words that speak of who speaks or listens, where no sentence of the window does.
late_interaction: mean over the content words of the best cosine in the sentences read; _weakest: of the weakest third;
_window: in the best single window.
"""
ENCODED = NAMES[-3:]
"""Columns that need an encoder."""

MOST_SENTENCES = 3
READ_SENTENCES = 5
_LONGEST_SENTENCE = 600


@dataclass(frozen=True, slots=True)
class Piece:
    """A sentence of a passage: `passage text[start:end]`, analysed. order: its number in the passage."""

    passage: int
    order: int
    start: int
    end: int
    text: str
    tokens: tuple[Token, ...]
    keys: frozenset[str]
    pairs: frozenset[tuple[str, str]]
    quantities: tuple[Quantity, ...]


@dataclass(frozen=True, slots=True)
class Statement:
    """A claim, analysed. keys: its content words in order, each once."""

    text: str
    tokens: tuple[Token, ...]
    keys: tuple[str, ...]
    pairs: frozenset[tuple[str, str]]
    names: tuple[Token, ...]
    quantities: tuple[Quantity, ...]


@dataclass(frozen=True, slots=True)
class Signals:
    """values: one for each of `NAMES`. window: the deciding sentences, in text order, of one passage; may be empty.

    lacking: words and figures of the claim, as it writes them, that the evidence lacks.
    """

    values: FloatArray
    window: tuple[Piece, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    lacking: tuple[str, ...] = ()


@dataclass(slots=True)
class Choice:
    """The sentences of some passages and, for one statement, those worth reading closely."""

    pieces: Sequence[Piece]
    window: tuple[Piece, ...] = ()
    read: tuple[Piece, ...] = ()
    idf: dict[str, float] = field(default_factory=dict)


def pieces(number: int, text: str, *, stem: Stem) -> list[Piece]:
    """The sentences of a passage; a very long one in several."""
    found: list[Piece] = []
    for start, end in (part for span in _sentences(text) for part in _parts(text, *span)):
        words = tokens(text[start:end], stem=stem)
        content = [token.key for token in words if token.content]
        found.append(
            Piece(
                passage=number,
                order=len(found),
                start=start,
                end=end,
                text=text[start:end],
                tokens=words,
                keys=frozenset(content),
                pairs=frozenset(pairwise(content)),
                quantities=quantities(text[start:end], both_readings=True),
            )
        )
    return found


def _sentences(text: str) -> list[tuple[int, int]]:
    """Sentences; one that ends between two figures (`2. 4 miles`) goes on."""
    found: list[tuple[int, int]] = []
    for start, end in sentences(text):
        if found and text[start].isdigit() and re.search(r"\d\. ?\Z", text[found[-1][0] : start]):
            found[-1] = (found[-1][0], end)
        else:
            found.append((start, end))
    return found


def _parts(text: str, start: int, end: int) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    while end - start > _LONGEST_SENTENCE:
        cut = max(text.rfind(mark, start + _LONGEST_SENTENCE // 2, start + _LONGEST_SENTENCE) for mark in (" ", "\n"))
        cut = start + _LONGEST_SENTENCE if cut < 0 else cut
        found.append((start, cut))
        start = cut
    return [*found, (start, end)]


def statement(text: str, *, stem: Stem) -> Statement:
    words = tokens(text, stem=stem)
    content = [token.key for token in words if token.content]
    return Statement(
        text=text,
        tokens=words,
        keys=tuple(dict.fromkeys(content)),
        pairs=frozenset(pairwise(content)),
        names=tuple(token for token in words if token.name),
        quantities=quantities(text),
    )


def choose(claim: Statement, evidence: Sequence[Piece]) -> Choice:
    """The window that shares most with the claim, and the sentences to encode."""
    choice = Choice(evidence)
    if not evidence:
        return choice
    wanted = frozenset(claim.keys)
    shared = [piece.keys & wanted for piece in evidence]
    count = len(evidence)
    held: dict[str, int] = {}
    for keys in shared:
        for key in keys:
            held[key] = held.get(key, 0) + 1
    choice.idf = {key: math.log1p((count + 1.0) / (held.get(key, 0) + 0.5)) for key in claim.keys}
    total = math.fsum(choice.idf.values()) or 1.0
    pairs = len(claim.pairs) or 1

    def worth(group: Sequence[int]) -> float:
        keys = frozenset().union(*(shared[index] for index in group))
        found = frozenset().union(*(evidence[index].pairs & claim.pairs for index in group))
        cover = math.fsum(choice.idf[key] for key in sorted(keys)) / total
        return cover + 0.5 * len(found) / pairs - 0.08 * (len(group) - 1)

    single = [worth((index,)) for index in range(count)]
    best = max(range(count), key=lambda index: (single[index], -index))
    best_group: tuple[int, ...] = (best,)
    best_worth = single[best]
    for first in range(count):
        for length in range(2, MOST_SENTENCES + 1):
            group = tuple(range(first, min(first + length, count)))
            if len(group) < length or evidence[group[0]].passage != evidence[group[-1]].passage:
                break
            if sum(single[index] for index in group) + 1e-9 < best_worth:
                continue
            value = worth(group)
            if value > best_worth + 1e-9:
                best_group, best_worth = group, value
    choice.window = tuple(evidence[index] for index in best_group)
    order = sorted(range(count), key=lambda index: (-single[index], index))[:READ_SENTENCES]
    choice.read = tuple(evidence[index] for index in sorted({*order, *best_group}))
    return choice


def signals(
    claim: Statement,
    choice: Choice,
    *,
    claim_encoding: Encoding | None = None,
    content_rows: Sequence[int] = (),
    encodings: Mapping[str, Encoding] | None = None,
    stem: Stem,
) -> Signals:
    """content_rows: rows of the claim's token codes that belong to content words; encodings: sentence -> encoding."""
    values = dict.fromkeys(NAMES, 0.0)
    evidence = choice.pieces
    if not evidence or not claim.tokens:
        return Signals(np.array([values[name] for name in NAMES], dtype=np.float32))
    everything = _keys(claim, evidence)
    in_window = _keys(claim, choice.window)
    values["coverage"], values["rare_coverage"] = _shares(claim, everything, choice.idf)
    values["window_coverage"], values["window_rare_coverage"] = _shares(claim, in_window, choice.idf)
    if claim.pairs:
        all_pairs = frozenset().union(*(piece.pairs for piece in evidence))
        window_pairs = frozenset().union(*(piece.pairs for piece in choice.window))
        values["pair_coverage"] = len(claim.pairs & all_pairs) / len(claim.pairs)
        values["window_pair_coverage"] = len(claim.pairs & window_pairs) / len(claim.pairs)
    else:
        values["pair_coverage"] = values["coverage"]
        values["window_pair_coverage"] = values["window_coverage"]
    said = [token.key for token in claim.tokens]
    values["triples"], values["longest_run"], values["in_order"] = _runs(said, choice)
    lacking = [key for key in claim.keys if key not in everything]
    values["uncovered"] = math.log1p(len(lacking))
    _quantities_and_names(claim, choice, everything, in_window, values)
    spoken = {token.key for piece in choice.window for token in piece.tokens if is_personal(token)}
    personal = [token for token in claim.tokens if is_personal(token) and token.key not in spoken]
    values["personal"] = len(personal) / len(claim.tokens)
    found = conflicts(claim, choice.window, stem=stem)
    for conflict in found:
        if conflict.kind in values:
            values[conflict.kind] = max(values[conflict.kind], conflict.strength)
    if claim_encoding is not None and encodings is not None:
        _late_interaction(claim_encoding, content_rows, choice, encodings, values)
    named = {token.key: token.text for token in reversed(claim.tokens) if token.content}
    return Signals(
        np.array([values[name] for name in NAMES], dtype=np.float32),
        choice.window,
        tuple(found),
        tuple(named[key] for key in lacking),
    )


def _keys(claim: Statement, evidence: Sequence[Piece]) -> frozenset[str]:
    """Content words of the evidence, and those of the claim's quantities that it bears out: 27 km, 27 kilometres."""
    keys = set().union(*(piece.keys for piece in evidence))
    there = [one for piece in evidence for one in piece.quantities]
    for one in claim.quantities:
        if not missing([one], there):
            keys.update(token.key for token in claim.tokens if one.start < token.end and token.start < one.end)
    return frozenset(keys)


def _shares(claim: Statement, keys: frozenset[str], idf: Mapping[str, float]) -> tuple[float, float]:
    if not claim.keys:
        return 0.0, 0.0
    total = math.fsum(idf.values()) or 1.0
    present = [key for key in claim.keys if key in keys]
    return len(present) / len(claim.keys), math.fsum(idf[key] for key in present) / total


def _runs(said: Sequence[str], choice: Choice) -> tuple[float, float, float]:
    """Share of triples of words found, longest run, longest common subsequence with the window."""
    triples = set(zip(said, said[1:], said[2:], strict=False))
    found: set[tuple[str, str, str]] = set()
    longest = 0
    for piece in choice.pieces:
        words = [token.key for token in piece.tokens]
        if triples:
            found |= triples.intersection(zip(words, words[1:], words[2:], strict=False))
    for piece in choice.read:
        longest = max(longest, _longest_run(said, [token.key for token in piece.tokens]))
    window = [token.key for piece in choice.window for token in piece.tokens]
    subsequence = _subsequence(said, window)
    share = len(found) / len(triples) if triples else longest / len(said)
    return share, longest / len(said), subsequence / len(said)


def _longest_run(first: Sequence[str], second: Sequence[str]) -> int:
    best = 0
    places: dict[str, list[int]] = {}
    for index, word in enumerate(second):
        places.setdefault(word, []).append(index)
    ending: dict[int, int] = {}
    for word in first:
        ending = {index: ending.get(index - 1, 0) + 1 for index in places.get(word, ())}
        best = max(best, *ending.values()) if ending else best
    return best


def _subsequence(first: Sequence[str], second: Sequence[str]) -> int:
    """Length of the longest common subsequence, by bits (Hyyrö, 2004)."""
    masks: dict[str, int] = {}
    for index, word in enumerate(first):
        masks[word] = masks.get(word, 0) | (1 << index)
    full = (1 << len(first)) - 1
    row = full
    for word in second:
        met = row & masks.get(word, 0)
        row = ((row + met) | (row - met)) & full
    return len(first) - row.bit_count()


def _quantities_and_names(
    claim: Statement,
    choice: Choice,
    everything: frozenset[str],
    in_window: frozenset[str],
    values: dict[str, float],
) -> None:
    if claim.quantities:
        absent = missing(claim.quantities, [one for piece in choice.pieces for one in piece.quantities])
        window_absent = missing(claim.quantities, [one for piece in choice.window for one in piece.quantities])
        values["quantities_missing"] = len(absent) / len(claim.quantities)
        values["quantities_elsewhere"] = (len(window_absent) - len(absent)) / len(claim.quantities)
    names = {token.key for token in claim.names}
    if names:
        values["names_missing"] = len(names - everything) / len(names)
        values["names_elsewhere"] = len(names & everything - in_window) / len(names)


def _late_interaction(
    claim: Encoding,
    content_rows: Sequence[int],
    choice: Choice,
    encodings: Mapping[str, Encoding],
    values: dict[str, float],
) -> None:
    codes = claim.token_codes
    if codes is None or not len(codes):
        return
    rows = [row for row in content_rows if row < len(codes)] or list(range(len(codes)))
    wanted = _signs(codes[rows])
    nearest: dict[int, FloatArray] = {}
    for index, piece in enumerate(choice.read):
        encoding = encodings.get(piece.text)
        if encoding is None or encoding.token_codes is None or not len(encoding.token_codes):
            continue
        cosine = wanted @ _signs(encoding.token_codes).T / wanted.shape[1]
        # The angle between two vectors is pi times the share of signs that differ.
        nearest[index] = np.cos(np.pi * (1.0 - cosine.max(axis=1)) / 2.0)
    if not nearest:
        return
    best = np.max(list(nearest.values()), axis=0)
    weakest = np.sort(best)[: max(len(best) // 3, 1)]
    windows = [
        np.max([nearest[index] for index in nearest if choice.read[index] in choice.window], axis=0).mean()
        if any(choice.read[index] in choice.window for index in nearest)
        else 0.0,
        *(one.mean() for one in nearest.values()),
    ]
    values["late_interaction"] = float(best.mean())
    values["late_interaction_weakest"] = float(weakest.mean())
    values["late_interaction_window"] = float(max(windows))


def _signs(codes: ByteArray) -> FloatArray:
    """(tokens, dimensions) of -1 and 1."""
    signs: FloatArray = np.unpackbits(codes, axis=1).astype(np.float32) * np.float32(2.0) - np.float32(1.0)
    return signs
