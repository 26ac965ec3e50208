"""Drop what a printer puts on every page: running headers, footers, page numbers.

Takes: the lines of all pages. Returns: the same without furniture.
Method: only the first and last lines of a page, by height, are looked at. A line is furniture where the same text
stands there on most pages, but for a number that goes up with the pages; or where it is, begins or ends with such a
number on most pages, whatever the rest of it; or where one text stands at one height on five pages in a row (titles
of parts). Cost: linear in pages. What can go wrong: in a document of one or two pages nothing
repeats enough to be sure, so only page numbers that count up are dropped there.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from cognicraft.ingest.pdf_source import Line

EDGE_LINES = 3
SHARE_OF_PAGES = 0.4
FEWEST_PAGES = 3
PAGES_IN_A_ROW = 5
LONGEST_FURNITURE = 160

_DIGITS = re.compile(r"\d+")
_WHOLE_NUMBER = re.compile(r"\d{1,5}")
_PAGE_NUMBER_ALONE = re.compile(r"(?:page|p\.|seite|página|-|–|—|\||/|of|von|de|sur|\d+|\s)+", re.IGNORECASE)

_Spot = tuple[int, int]
"""Page index and line index."""


def drop_furniture(pages: Sequence[Sequence[Line]]) -> list[tuple[Line, ...]]:
    """The pages' lines without headers, footers and page numbers, otherwise in their order."""
    edges = [list(_edge_lines(lines)) for lines in pages]
    dropped = _repeated(pages, edges) | _running(pages, edges) | _numbered(pages, edges)
    return [
        tuple(line for index, line in enumerate(lines) if (page, index) not in dropped)
        for page, lines in enumerate(pages)
    ]


def _edge_lines(lines: Sequence[Line]) -> Iterator[tuple[int, str]]:
    """Line indices among the top and bottom rows of a page, each with "top" or "bottom"."""
    by_height = sorted(range(len(lines)), key=lambda index: -lines[index].top)
    rows: list[list[int]] = []
    for index in by_height:
        if rows and lines[rows[-1][0]].bottom < (lines[index].top + lines[index].bottom) / 2:
            rows[-1].append(index)
        else:
            rows.append([index])
    reach = min(EDGE_LINES, len(rows))
    for number, row in enumerate(rows):
        for index in row:
            if len(lines[index].text) <= LONGEST_FURNITURE:
                if number < reach:
                    yield index, "top"
                if number >= len(rows) - reach:
                    yield index, "bottom"


def _repeated(pages: Sequence[Sequence[Line]], edges: Sequence[list[tuple[int, str]]]) -> set[_Spot]:
    """Lines whose text stands at the same edge of most pages, but for a number that goes up with the pages."""
    counts: Counter[_Key] = Counter()
    for page, (lines, found) in enumerate(zip(pages, edges, strict=True)):
        counts.update({key for index, edge in found for key in _keys(lines[index].text, edge, page)})
    written = sum(1 for lines in pages if lines)
    enough = max(FEWEST_PAGES, SHARE_OF_PAGES * written)
    return {
        (page, index)
        for page, (lines, found) in enumerate(zip(pages, edges, strict=True))
        for index, edge in found
        if any(counts[key] >= enough for key in _keys(lines[index].text, edge, page))
    }


def _running(pages: Sequence[Sequence[Line]], edges: Sequence[list[tuple[int, str]]]) -> set[_Spot]:
    """Titles of a part: one text at one height on many pages in a row."""
    dropped: set[_Spot] = set()
    runs: dict[tuple[str, str, int], list[_Spot]] = {}
    for page, (lines, found) in enumerate(zip(pages, edges, strict=True)):
        here = {(edge, lines[index].text.lower(), round(lines[index].top)): (page, index) for index, edge in found}
        runs = {place: [*runs.get(place, []), spot] for place, spot in here.items()}
        for spots in runs.values():
            if len(spots) >= PAGES_IN_A_ROW:
                dropped.update(spots)
    return {spot for spot in dropped if _DIGITS.sub("", pages[spot[0]][spot[1]].text).strip()}


_Key = tuple[str, str, int | None]
"""Edge, text, and the difference of its page number to the count of pages where that is masked in the text."""


def _keys(text: str, edge: str, page: int) -> Iterator[_Key]:
    plain = text.lower()
    if not _DIGITS.sub("", plain).strip():
        return  # a number alone is for `_numbered` to judge
    yield edge, plain, None
    for number in set(_DIGITS.findall(plain)):
        if len(number) <= 5:
            # Other numbers are not masked: "Total 1,204" on every page is no footer.
            yield edge, re.sub(rf"(?<!\d){number}(?!\d)", "#", plain), int(number) - page


def _numbered(pages: Sequence[Sequence[Line]], edges: Sequence[list[tuple[int, str]]]) -> set[_Spot]:
    """The outermost lines that carry the page number, where the numbers go up with the pages."""
    found: dict[tuple[str, int], list[_Spot]] = {}
    for page, (lines, places) in enumerate(zip(pages, edges, strict=True)):
        for edge in ("top", "bottom"):
            at_edge = [index for index, where in places if where == edge]
            if not at_edge:
                continue
            pick = max if edge == "top" else min
            outermost = pick(at_edge, key=lambda index: lines[index].top)
            for index in at_edge:
                if abs(lines[index].top - lines[outermost].top) <= lines[index].height:
                    for number in _page_numbers(lines[index].text):
                        found.setdefault((edge, number - page), []).append((page, index))
    written = sum(1 for lines in pages if lines)
    dropped: set[_Spot] = set()
    for spots in found.values():
        alone = [spot for spot in spots if _PAGE_NUMBER_ALONE.fullmatch(pages[spot[0]][spot[1]].text)]
        if written >= FEWEST_PAGES and len({page for page, _ in spots}) >= max(FEWEST_PAGES, 0.6 * written):
            dropped.update(spots)
        elif written == 2 and len({page for page, _ in alone}) == 2:
            dropped.update(alone)
    return dropped


def _page_numbers(text: str) -> set[int]:
    """Whole numbers that a line begins or ends with, and all in a line that holds nothing else."""
    parts = text.split()
    candidates = parts if _PAGE_NUMBER_ALONE.fullmatch(text) else [parts[0], parts[-1]]
    return {int(part) for part in (item.strip("-–—|[]()") for item in candidates) if _WHOLE_NUMBER.fullmatch(part)}
