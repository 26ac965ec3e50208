"""Passages to candidate sentences: what an answer may be made of.

Takes: the texts of the passages, their positions in the documents and their headings.
Returns: `Candidate`s in the order of the passages and of the text. Each is a sentence or a table row, word
    for word. Method: `ingest.sentences` cuts; list marks are left off the front; a sentence that ends in a
    colon takes along what it introduces (a sentence, the lines of a block, the items of a list) up to a
    bounded length; headings, lines of a table of contents, ornaments and bare labels are no sentences; equal
    texts become one candidate with several places; of two overlapping spans of one document (chunks may
    overlap) the longer stays.
Cost: linear in the text.
What can go wrong: a passage cut in the middle of a sentence gives half a sentence; it is kept, because
    nothing more is there to quote.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from cognicraft.ingest.sentences import sentences
from cognicraft.records import StoredChunk

CELL = " | "
_LIST_MARK = re.compile(r"(?:[-*+•‣▪●○◦·–—>]\s+)+")
_LIST_ITEM = re.compile(r"(?:[-*•‣▪●○◦·–—]|\(?(?:\d{1,3}|[A-Za-z]|[ivxIVX]{1,5})[.)])[ \t]+\S")
_COLON = (":", "\uff1a")
_STOPS = (*".!?;,…", "。", "！", "？", "।", "؟")
_INTRODUCED_CHARACTERS = 500
_INTRODUCED_LINES = 4
_INTRODUCED_ITEMS = 10
_LEADERS = re.compile(r"(?:[.·…_]\s?){5,}")
_NUMBERED_HEADING = re.compile(
    r"(?:\d{1,2}(?:\.\d{1,2})+\.?|(?:Chapter|Section|Part|Appendix) \w{1,4}[.:]?)\s+[^\W\d_a-z]"
)
_HEADING_CHARACTERS = 90
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
    brings_list: it introduces a list and has the items with it.
    """

    text: str
    places: tuple[Place, ...]
    order: int
    brings_list: bool = False

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
        cut = sentences(chunk.text)
        for order, (start, end) in enumerate(cut):
            mark = _LIST_MARK.match(chunk.text, start, end)
            if mark:
                start = mark.end()
            if _LEADERS.search(chunk.text, start, end + 10) or not _says_something(chunk.text[start:end], headings):
                continue
            introduced, brings_list = _introduced(chunk.text, cut, order)
            text = chunk.text[start:introduced]
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
            place = Place(index, start, introduced)
            known = found.get(key)
            if known is None:
                found[key] = Candidate(text, (place,), order, brings_list)
            else:
                found[key] = replace(known, places=(*known.places, place))
    return list(found.values())


def _says_something(text: str, headings: set[str]) -> bool:
    if _HEADING_MARK.match(text) or not _WORD.search(text):
        return False
    plain = " ".join(text.split())
    if plain.casefold() in headings or plain.isdecimal():  # a heading, a page number
        return False
    if plain.endswith(_STOPS) or CELL in text or ":" in text or len(plain) > _HEADING_CHARACTERS:
        return True
    if _NUMBERED_HEADING.match(plain):
        return False
    # A running head: title and heading side by side.
    words = {word for word in _WORD.findall(plain.casefold()) if not word.isdigit()}
    return not words or not words <= {word for heading in headings for word in _WORD.findall(heading)}


def _introduced(text: str, cut: Sequence[tuple[int, int]], order: int) -> tuple[int, bool]:
    """Where what a sentence introduces ends (the sentence's own end if nothing), and whether that is a list."""
    start, end = cut[order]
    if not text[start:end].endswith(_COLON) or CELL in text[start:end]:
        return end, False
    if any(CELL in text[first:last] for first, last in cut[order + 1 : order + 1 + _INTRODUCED_LINES]):
        # What it introduces is a table, whose head may stand between them.
        return end, False
    is_list = False
    for count, (first, last) in enumerate(cut[order + 1 :]):
        line = text[first:last]
        item = _LIST_ITEM.match(line) is not None
        if count == 0:
            is_list = item
        done = count >= _INTRODUCED_ITEMS or not item if is_list else count >= _INTRODUCED_LINES or item
        # One word is a cell of a table's head rather than anything introduced.
        done = done or len(_WORD.findall(line)) < 2
        if done or _HEADING_MARK.match(line) or last - start > _INTRODUCED_CHARACTERS:
            break
        gap = text[end:first]
        if count and not is_list and (gap.count("\n") != 1 or line.endswith(_COLON)):
            # After the first sentence only the further lines of the same block.
            break
        end = last
    return end, is_list and end > cut[order][1]


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
        found[key] = replace(candidate, places=kept)
    else:
        del found[key]
