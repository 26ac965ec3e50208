"""Passages to candidate sentences: what an answer may be made of.

Takes: the texts of the passages, their positions in the documents and their headings.
Returns: `Candidate`s in the order of the passages and of the text. Each is a sentence or a table row, word
for word. Method: `ingest.sentences` cuts; list marks are left off the front; headings, ornaments and bare
    labels are no sentences; equal texts become one candidate with several places; of two overlapping spans of
    one document (chunks may overlap) the longer stays.
Cost: linear in the text.
What can go wrong: a passage cut in the middle of a sentence gives half a sentence; it is kept, because
    nothing more is there to quote.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from cognicraft.ingest.sentences import sentences
from cognicraft.records import StoredChunk

CELL = " | "
_LIST_MARK = re.compile(r"(?:[-*+•‣▪●○◦·–—>]\s+)+")
_HEADING_MARK = re.compile(r"#{1,6}\s")
_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a candidate stands: in which passage, from where to where in the passage's own text."""

    passage: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Candidate:
    """A sentence or a table row, and every place where these words stand, that of the best passage first.

    order: its number among the sentences of its (first) passage, from 0.
    """

    text: str
    places: tuple[Place, ...]
    order: int

    @property
    def is_row(self) -> bool:
        return CELL in self.text


def candidates(passages: Sequence[StoredChunk]) -> list[Candidate]:
    """The candidate sentences of the passages, best passage first. No passages, no candidates."""
    found: dict[str, Candidate] = {}
    taken: dict[str, list[tuple[int, int, str]]] = {}
    for index, stored in enumerate(passages):
        chunk = stored.chunk.chunk
        headings = {" ".join(heading.split()).casefold() for heading in (*chunk.heading_path, stored.title)}
        for order, (start, end) in enumerate(sentences(chunk.text)):
            mark = _LIST_MARK.match(chunk.text, start, end)
            if mark:
                start = mark.end()
            text = chunk.text[start:end]
            if not _says_something(text, headings):
                continue
            spans = taken.setdefault(stored.document_id, [])
            first, last = chunk.start + start, chunk.start + end
            overlapping = [span for span in spans if span[0] < last and first < span[1]]
            if any(span[1] - span[0] >= last - first for span in overlapping):
                continue
            for span in overlapping:
                spans.remove(span)
                _withdraw(found, span[2], passages, stored.document_id, span[:2])
            spans.append((first, last, text))
            key = " ".join(text.split())
            place = Place(index, start, end)
            known = found.get(key)
            if known is None:
                found[key] = Candidate(text, (place,), order)
            else:
                found[key] = Candidate(known.text, (*known.places, place), known.order)
    return list(found.values())


def _says_something(text: str, headings: set[str]) -> bool:
    if _HEADING_MARK.match(text) or not _WORD.search(text):
        return False
    return " ".join(text.split()).casefold() not in headings


def _withdraw(
    found: dict[str, Candidate],
    text: str,
    passages: Sequence[StoredChunk],
    document_id: str,
    span: tuple[int, int],
) -> None:
    """Take one place away again; with its last place the candidate goes too."""
    key = " ".join(text.split())
    candidate = found.get(key)
    if candidate is None:
        return
    kept = tuple(
        place
        for place in candidate.places
        if passages[place.passage].document_id != document_id
        or passages[place.passage].chunk.chunk.start + place.start != span[0]
    )
    if kept:
        found[key] = Candidate(candidate.text, kept, candidate.order)
    else:
        del found[key]
