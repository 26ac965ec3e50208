"""Turn the lines of a page into blocks: tables, headings, list items, paragraphs.

Takes: the lines of one page, in order. Returns: `TextBlock`s in the same order.
Method: tables are taken out first; of the rest, a line opens a new block where the gap above it, its height, weight or
mark says so, or where the line before it ended a sentence short of the margin. Line breaks inside a block become
spaces. Cost: linear in lines. What can go wrong: paragraphs that are told apart by nothing but a first-line indent.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from cognicraft.ingest.pdf_source import Line, Rule
from cognicraft.ingest.pdf_tables import find_tables
from cognicraft.ingest.pdf_words import join_lines, mend
from cognicraft.records import BlockKind

WIDEST_GAP = 0.6
"""Between two lines of one paragraph, in line heights; lines are mostly set .1 to .4 apart."""
SAME_HEIGHT = 0.12
CELL_GAP = 1.5
"""White space that parts cells rather than words, in line heights."""

_BULLET = re.compile(r"[•▪◦‣■●○–—*·-]$|(?:\(?(?:[a-z]|[ivx]{1,4}|\d{1,2})[.)])$", re.IGNORECASE)
_SENTENCE_END = (".", "!", "?", ":", "。", "！", "？", "”", '."', ".)")


class HeadingStyles(Protocol):
    """What `pdf_headings.Headings` answers."""

    def style(self, line: Line) -> tuple[int, bool] | None: ...
    def outline_level(self, page: int, text: str) -> int: ...


@dataclass(frozen=True, slots=True)
class TextBlock:
    """A block of one page. `open_end`: the text may go on with the next page's first block."""

    kind: BlockKind
    text: str
    level: int = 0
    style: tuple[int, bool] | None = None
    open_end: bool = False


def page_blocks(
    lines: Sequence[Line],
    page: int,
    *,
    headings: HeadingStyles,
    occurs: Callable[[str], bool],
    rules: Callable[[], Sequence[Rule]] = tuple,
) -> list[TextBlock]:
    """The blocks of page `page` (counted from 0); every word of the lines is in one of them.

    rules: the lines drawn on the page, asked for only where a table needs them.
    """
    blocks: list[TextBlock] = []
    done = 0
    for table in find_tables(lines, rules=rules):
        blocks.extend(_text_blocks(lines[done : table.start], page, headings, occurs))
        blocks.append(TextBlock("table", mend(table.text, occurs=occurs)))
        done = table.end
    blocks.extend(_text_blocks(lines[done:], page, headings, occurs))
    return blocks


def _text_blocks(
    lines: Sequence[Line], page: int, headings: HeadingStyles, occurs: Callable[[str], bool]
) -> Iterator[TextBlock]:
    for group, style in _groups(lines, page, headings):
        text = group[0].text
        for line in group[1:]:
            text = join_lines(text, line.text, occurs=occurs)
        level = headings.outline_level(page, text)
        if (style is not None or level) and len(group) <= 3:
            yield TextBlock("heading", text, level, style or (0, False))
        elif _marked(group[0]):
            yield TextBlock("list", text, open_end=True)
        else:
            yield TextBlock("paragraph", text, open_end=not text.endswith(_SENTENCE_END))


def _groups(
    lines: Sequence[Line], page: int, headings: HeadingStyles
) -> Iterator[tuple[list[Line], tuple[int, bool] | None]]:
    """Lines that belong together, with the heading style they share."""
    group: list[Line] = []
    style: tuple[int, bool] | None = None
    margin = 0.0
    for line in lines:
        own = headings.style(line)
        alone = headings.outline_level(page, line.text) > 0
        if group and not alone and own == style and _continues(group, line, margin, heading=own is not None):
            group.append(line)
            margin = max(margin, line.right)
            continue
        if group:
            yield group, style
        group, style, margin = [line], own, line.right
        if alone:
            yield group, style
            group = []
    if group:
        yield group, style


def _continues(group: Sequence[Line], line: Line, margin: float, *, heading: bool) -> bool:
    before = group[-1]
    height = max(before.height, line.height, 1e-6)
    if abs(before.height - line.height) > SAME_HEIGHT * height:
        return False
    if max(before.gap, line.gap) > CELL_GAP * height:
        return False  # a row of a table of words
    same_row = abs(before.bottom - line.bottom) < 0.5 * height
    if same_row:
        # The next cell of a row that is no table, or the rest of a line.
        return line.left - before.right < CELL_GAP * height and not heading
    if before.text.endswith("\ufffe"):
        return True
    above = before.bottom - line.top
    if above < -height:
        # Further up: the next column. A sentence may run on.
        return not heading and not before.text.endswith(_SENTENCE_END) and line.text[:1].islower()
    if above > WIDEST_GAP * height:
        return False
    if _marked(line):
        return False
    if heading:
        center = (before.left + before.right - line.left - line.right) / 2
        return abs(before.left - line.left) <= height or abs(center) <= height
    hanging = _marked(group[0])
    if not hanging and line.left > before.left + height and len(group) > 1 and before.text.endswith(_SENTENCE_END):
        return False  # first-line indent
    if line.right < before.left or line.left > before.right:
        return False
    short = before.right < margin - 0.25 * max(margin - before.left, 1.0)
    return not (short and before.text.endswith(_SENTENCE_END))


def _marked(line: Line) -> bool:
    """Whether the line begins with a list mark and goes on."""
    return len(line.words) > 1 and _BULLET.match(line.words[0].text) is not None
