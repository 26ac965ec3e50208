"""Find headings and their levels, and the title of a document.

Takes: lines of all pages and the outline (bookmarks). Returns: for a line, the style that makes it a heading, or none;
for all heading blocks, levels. Method: a line is a heading where a bookmark of its page has its text, or where it is
short and set larger or bolder than the body, whose height and weight most characters have. Levels follow the bookmarks
where there are any, else the order of styles by height, then weight. Cost: linear in lines.
What can go wrong: a file that sets its headings like its body and has no bookmarks shows no headings.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from cognicraft.ingest.pdf_blocks import TextBlock
from cognicraft.ingest.pdf_source import Line, OutlineEntry

LARGER = 1.15
BOLDER = 1.25
LONGEST_HEADING = 150
DEEPEST_LEVEL = 6

_LETTER = re.compile(r"[^\W\d_]")
_NOT_WORDS = re.compile(r"\W+")
_PLAIN_TITLE = re.compile(r"[^\W\d_]{2}")
_FILE_TITLE = re.compile(
    r"\.(?:pdf|docx?|xlsx?|pptx?|html?|txt|indd|tex|dvi)$|^(?:microsoft word|untitled|document\d*)\b|^\(.*\)$", re.I
)


class Style(NamedTuple):
    """How a heading is set: height in half points, then weight."""

    height: int
    bold: bool


class Headings:
    """Knows the body of one document and hence what stands out from it."""

    def __init__(self, pages: Sequence[Sequence[Line]], outline: Sequence[OutlineEntry]) -> None:
        heights: Counter[int] = Counter()
        weights: Counter[int] = Counter()
        for lines in pages:
            for line in lines:
                size = len(line.text)
                heights[_half_points(line)] += size
                weights[line.weight] += size
        self._body_height = heights.most_common(1)[0][0] if heights else 0
        self._body_weight = weights.most_common(1)[0][0] if weights else 0
        self._outline: dict[tuple[int, str], int] = {}
        for entry in outline:
            self._outline.setdefault((entry.page, _key(entry.title)), entry.level)

    def style(self, line: Line) -> Style | None:
        """The style of a line that may be a heading, None for one that looks like the body."""
        text = line.text
        if len(text) > LONGEST_HEADING:
            return None
        height = _half_points(line)
        bold = self._body_weight > 0 and line.weight >= BOLDER * self._body_weight
        larger = height >= LARGER * self._body_height
        smaller = height < 0.85 * self._body_height
        if not larger and (not bold or smaller):
            return None
        if line.gap > 3 * line.height or len(_LETTER.findall(text)) < 2:
            return None
        if text[-1] in ",;" or (text[-1] == "." and len(text) > 80):
            return None
        return Style(height, bold)

    def outline_level(self, page: int, text: str) -> int:
        """The level of the bookmark of that page with that text; 0 where there is none."""
        if not self._outline:
            return 0
        return self._outline.get((page, _key(text)), 0)

    def levels(self, pages: Sequence[Sequence[TextBlock]]) -> Mapping[tuple[int, bool], int]:
        """Levels of the styles that are in use as headings, 1 = top."""
        used: dict[tuple[int, bool], Counter[int]] = {}
        for blocks in pages:
            for block in blocks:
                if block.kind == "heading" and block.style is not None:
                    used.setdefault(block.style, Counter())[block.level] += 1
        marked = {style: counts for style, counts in used.items() if any(level for level in counts)}
        levels: dict[tuple[int, bool], int] = {}
        known = 0
        for style in sorted(used, reverse=True):
            if style in marked:
                level = Counter({level: n for level, n in marked[style].items() if level}).most_common(1)[0][0]
            else:
                level = known + 1
            known = max(known, level)
            levels[style] = min(level, DEEPEST_LEVEL)
        return levels


def document_title(property_title: str, pages: Sequence[Sequence[TextBlock]], *, file_name: str) -> str:
    """The title from the file's properties where it is one, else the largest heading at the start, else ""."""
    given = " ".join(property_title.split())
    sensible = _PLAIN_TITLE.search(given) and len(given) <= 200 and not _FILE_TITLE.search(given) and given != file_name
    if sensible:
        return given
    first = [block for blocks in pages[:2] for block in blocks if block.kind == "heading" and block.style is not None]
    if not first:
        return ""
    largest = max(block.style for block in first if block.style is not None)
    return next(block.text for block in first if block.style == largest)


def _half_points(line: Line) -> int:
    return round(line.height * 2)


def _key(text: str) -> str:
    return _NOT_WORDS.sub("", text).lower()
