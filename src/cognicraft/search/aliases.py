"""What else the documents call what their files are named after: `AAPL` in a file name is "Apple" in the text.

Takes: for each document the words of its names and a few early passages. Returns: for a word of the text the words of
    names that it stands for, each with a strength from 0 to 1.
Method: documents that share a word of their file or folder names are a group. A capitalised word of titles, headings
    and early passages belongs to the group if nearly all of its documents have it early and often, and the others
    hardly at all.
Cost: linear in the passages given; a few documents of each group are enough.
What can go wrong: a group of one document teaches only what stands in its title or headings; a supplier that every
    report of one company names early, and no other report, counts as that company's word, if weakly.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cognicraft.protocols import Engine
from cognicraft.records import And, Chunk, DocumentRecord, Equals, Range
from cognicraft.search.labels import Terms, path_names
from cognicraft.search.periods import periods, without

SAMPLED_DOCUMENTS = 400
"""Documents whose early passages are read at most, to learn what the files are named after."""

_SAMPLED_OF_A_GROUP = 4

_CAPITALISED = re.compile(r"(?<!\w)[^\W\d_a-z]\w+(?:[.&-]\w+)*")
# Not the end of an address: www.acme.com.
_PLAIN = re.compile(r"(?<![\w.@/])[^\W\d_A-Z][^\W_]+(?![.@/]\w)")
_IN_GROUP = 0.75
_ELSEWHERE = 0.1
_WORDS_OF_A_GROUP = 4
_GROUPS_OF_A_WORD = 4
_STRENGTH = 1.4
_WEAKEST = 0.3
_EARLY_PAGES = 2
_EARLY = 12
_ANYWHERE = 24
_FEW = 40
_HEADED = 0.6


Aliases = Mapping[str, Sequence[tuple[str, float]]]
"""Word of the text -> the words of names that it stands for, each with a strength from 0 to 1."""


@dataclass(frozen=True, slots=True)
class Sketch:
    """The capitalised words of a document's beginning: term -> how prominent, in [0, 1].

    That is the share of the early passages that hold it, and `_HEADED` besides where a heading or the title does.
    headed: those of them that stand in its title or in headings. plain: terms written in lower case there, which are
    no names however often a heading has them with a capital.
    """

    words: Mapping[str, float]
    headed: frozenset[str]
    plain: frozenset[str] = frozenset()


def sketch(title: str, chunks: Sequence[Chunk], *, terms: Terms) -> Sketch:
    """The beginning of a document in its capitalised words. chunks: a dozen early ones, then any others."""
    early = chunks[:_EARLY]
    held: Counter[str] = Counter()
    headed = _words(_CAPITALISED, [title], terms)
    for chunk in early:
        held.update(_words(_CAPITALISED, [chunk.text], terms))
        headed |= _words(_CAPITALISED, chunk.heading_path, terms)
    count = max(1, len(early))
    words = {word: min(1.0, held[word] / count + _HEADED * (word in headed)) for word in held.keys() | headed}
    return Sketch(words, frozenset(headed), frozenset(_words(_PLAIN, [chunk.text for chunk in chunks], terms)))


def sample(documents: Sequence[DocumentRecord]) -> list[DocumentRecord]:
    """A few documents of every group of similar file names, the largest groups first, at most `SAMPLED_DOCUMENTS`."""
    groups: dict[str, list[DocumentRecord]] = defaultdict(list)
    for record in documents:
        stem, _ = path_names(record.source)
        name = without(stem, periods(stem))
        groups[" ".join(re.findall(r"[^\W\d_]{2,}", name.casefold()))].append(record)
    chosen: list[DocumentRecord] = []
    ordered = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    for nth in range(_SAMPLED_OF_A_GROUP):
        chosen += [group[nth] for _, group in ordered if len(group) > nth]
        if len(chosen) >= SAMPLED_DOCUMENTS:
            break
    return chosen[:SAMPLED_DOCUMENTS]


def early_chunks(engine: Engine, record: DocumentRecord, *, arm: str, dimensions: int) -> list[Chunk]:
    """A dozen early passages of a document and some more from anywhere, without reading all of a long one.

    Asks the engine for the passages nearest to no direction in particular, under a filter: some ms.
    Raises: EngineError.
    """
    if record.chunk_count <= _FEW:
        return [stored.chunk.chunk for stored in engine.document_chunks(record.id)]
    nowhere = np.full(dimensions, dimensions**-0.5, dtype=np.float32)
    own = Equals("document_id", record.id)
    first = And((own, Range("page", lte=_EARLY_PAGES)))
    early = engine.search_dense(arm, nowhere, limit=_EARLY, where=first) if record.pages else ()
    more = engine.search_dense(arm, nowhere, limit=_ANYWHERE, where=own)
    ids = list(dict.fromkeys(hit.chunk_id for hit in (*early, *more)))
    return [stored.chunk.chunk for stored in engine.chunks(ids)]


def _words(pattern: re.Pattern[str], texts: Iterable[str], terms: Terms) -> set[str]:
    surfaces = {surface for text in texts for surface in pattern.findall(text)}
    return {term for surface in surfaces for term in terms(surface) if not any(map(str.isdigit, term))}


def learn_aliases(
    groups: Mapping[str, Sequence[str]], sketches: Mapping[str, Sketch]
) -> dict[str, tuple[tuple[str, float], ...]]:
    """Word of the text -> (word of the names that it stands for, strength).

    groups: word of file or folder names -> ids of its documents; those without a sketch are passed over.
    """
    whole: Counter[str] = Counter()
    for one in sketches.values():
        whole.update(one.words)  # adds the numbers up
    plain = frozenset[str]().union(*(one.plain for one in sketches.values()))
    found: dict[str, list[tuple[str, float]]] = defaultdict(list)
    for code, documents in groups.items():
        own = [sketches[document] for document in documents if document in sketches]
        others = len(sketches) - len(own)
        if not own or not others:
            continue
        strengths: dict[str, float] = {}
        for word in frozenset[str]().union(*(one.words for one in own)) - plain:
            here = sum(word in one.words for one in own)
            prominence = sum(one.words.get(word, 0.0) for one in own) / len(own)
            elsewhere = max(0.0, whole[word] - prominence * len(own)) / others
            if word == code or here < _IN_GROUP * len(own) or elsewhere > _ELSEWHERE * prominence:
                continue
            if len(own) > 1 or word in own[0].headed:
                strengths[word] = min(1.0, _STRENGTH * prominence) * (1.0 - elsewhere / prominence)
        best = sorted(strengths.items(), key=lambda item: (-item[1], item[0]))[:_WORDS_OF_A_GROUP]
        for word, strength in best:
            if strength >= _WEAKEST:
                found[word].append((code, strength))
    # A word that several groups claim tells them apart the less: Inc., Corporation.
    return {
        word: tuple((code, round(strength / len(codes), 3)) for code, strength in codes)
        for word, codes in found.items()
        if len(codes) <= _GROUPS_OF_A_WORD
    }
