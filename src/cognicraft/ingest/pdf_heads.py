"""Find the column heads above a table body, and the units line.

Takes: rows above the body, nearest last, and the columns. Returns: a head per column, section labels, caption.
Method: going up from the body, rows whose cells stand over the columns are heads; `pdf_spans`
gives each to its columns. Words left of them on the same line are a period that holds for all heads, or part of the
caption; rows of words under the heads are section labels. Cost: small beside the body.
What can go wrong: a head that fits no columns; it is then kept in the caption and given to none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from cognicraft.ingest.pdf_cells import Cell
from cognicraft.ingest.pdf_rows import Column, Row, Run
from cognicraft.ingest.pdf_source import Rule
from cognicraft.ingest.pdf_spans import HeadBlock, assign, merged

HEAD_GAP = 2.5
"""White space between heads and body, in line heights."""
BETWEEN_HEADS = 1.3
LARGER = 1.15
"""What is set larger than the heads below it is a title."""
HEAD_ROWS = 40
LONGEST_HEAD = 90
"""In characters."""
LONGEST_SECTION = 8
"""In words, for a section label that is longer than all labels under it."""
_UNITS = re.compile(
    r"(?:\([^()]*(?:\([^()]*\)[^()]*)*\)[\s:]*)+"  # all of it in brackets
    r"|(?:(?:all )?(?:amounts?|dollars|figures|expressed|shares|usd|eur)\b.{0,30})?\bin (?:\S+ )?"
    r"(?:millions?|thousands?|billions?)\b.{0,60}"
    r"|unaudited",
    re.IGNORECASE,
)
_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sept?|oct|nov|dec)[a-z]*\.?"
_PERIOD_OPEN = re.compile(rf"(?:\b{_MONTH}\s+\d{{1,2}},|\b(?:ended|ending|as of|at))$", re.IGNORECASE)
_DATE_START = re.compile(rf"(?:(?:19|20)\d\d\b|{_MONTH}\s+\d)", re.IGNORECASE)


@dataclass(slots=True)
class Heads:
    """What stands above a body. `first` is the index of the first row that belongs to the table."""

    columns: list[str]
    caption: list[str] = field(default_factory=list)
    sections: list[Row] = field(default_factory=list)
    first: int = 0

    @property
    def found(self) -> bool:
        return any(self.columns)


def heads_above(
    rows: Sequence[Row], run: Run, body: int, *, bound: int, rules: Callable[[], Sequence[Rule]] = tuple
) -> Heads:
    """Heads of the run that begins at row `body`, looking up no further than row `bound`."""
    parts = _without_loose_ends(_gather(rows, run, body, bound), run)
    columns = run.columns
    heads = Heads([""] * len(columns), first=min((part.index for part in parts), default=body))
    parts.reverse()
    heads.sections = [part.row for part in parts if part.role == "section"]
    heads.caption = [part.row.text for part in parts if part.role == "caption"]
    blocks = merged(_blocks([part for part in parts if part.over]))
    for block in [block for block in blocks if len(columns) > 1 and _UNITS.fullmatch(block.text)]:
        if not any(_beside(block, other) for other in blocks if other is not block):
            heads.caption.append(block.text)
            blocks.remove(block)
    stubs = [part.stub for part in parts if part.stub]
    unplaced = assign(blocks, columns, heads.columns, rules=rules)
    # "Three Months Ended June 30," beside "2022 | 2021" is the first part of each head.
    dated = any(_DATE_START.match(head) for head in heads.columns)
    periods = [stub for stub in stubs if dated and _PERIOD_OPEN.search(stub) and not _UNITS.fullmatch(stub)]
    if periods:
        heads.columns = [" ".join([*periods, head]) if _DATE_START.match(head) else head for head in heads.columns]
    heads.caption += [stub for stub in stubs if stub not in periods] + unplaced
    return heads


@dataclass(slots=True)
class _Part:
    """A row above a body: `over` are its cells over the columns, `stub` is what stands left of them."""

    index: int
    row: Row
    role: Literal["head", "caption", "section", "stub"]
    over: list[Cell] = field(default_factory=list)
    stub: str = ""


def _gather(rows: Sequence[Row], run: Run, body: int, bound: int) -> list[_Part]:
    """The rows above a body that belong to it, nearest first, without a gap."""
    zone_left = min(column.outer_left for column in run.columns)
    zone_right = max(column.right for column in run.columns)
    labels_right = max((cell.right for row in run.rows for cell in row.label_cells), default=zone_left)
    table_left = min(row.left for row in run.rows)
    height = rows[body].height
    base = highest = rows[body].top
    parts: list[_Part] = []
    for index in range(body - 1, max(bound, body - HEAD_ROWS) - 1, -1):
        row = rows[index]
        heads = [part for part in parts if part.role == "head"]
        apart = (row.bottom - highest) / max(height, row.height)
        if row.bottom < base - 0.6 * height or apart > HEAD_GAP or row.data or len(row.cells) > len(run.columns) + 3:
            break
        over = [
            cell for cell in row.cells if cell.right > zone_left - height and cell.center > zone_left - 1.5 * height
        ]
        beside = row.cells[: len(row.cells) - len(over)]
        level = any(_level_with(row, part.row) for part in heads)
        if not level and _is_caption(row, run.columns, table_left):
            part = _Part(index, row, "caption")
        elif run.numbers_first or (heads and (apart > BETWEEN_HEADS or _ends_above(heads, row, parts))):
            break
        elif not over and heads:
            if not level:
                break
            part = _Part(index, row, "stub", stub=row.text)
        elif len(row.cells) == 1 and row.text.endswith(":") and heads:
            break
        elif not over or (len(row.cells) == 1 and row.text.endswith(":") and row.left < zone_left):
            wide = row.right > zone_left + height and not row.text.endswith(":")
            long = len(row.text.split()) > LONGEST_SECTION and row.right > labels_right + height
            if len(row.cells) > 1 or wide or long or _sentence(row, base):
                break
            part = _Part(index, row, "section")
            base = max(base, row.top)
        elif _head_like(over, min(zone_left, labels_right), zone_right, height) and all(
            cell.right <= zone_left for cell in beside
        ):
            part = _Part(index, row, "head", over, " ".join(cell.text for cell in beside))
        else:
            break
        parts.append(part)
        highest = max(highest, row.top)
    return parts


def _ends_above(heads: Sequence[_Part], row: Row, parts: Sequence[_Part]) -> bool:
    """Whether the heads are complete below this row: it is a title, or a units line stands in between."""
    title = row.height > LARGER * max(part.row.height for part in heads)
    return title or any(part.role == "caption" for part in parts[parts.index(heads[0]) :])


def _without_loose_ends(parts: list[_Part], run: Run) -> list[_Part]:
    """Cut off, at the top, what only looked as if it belonged to the table."""
    heads = [part for part in parts if part.role == "head"]
    captions = [number for number, part in enumerate(parts) if part.role == "caption"]
    alone = sum(len(part.over) for part in heads) == 1 and len(run.columns) > 1
    if alone and captions and parts.index(heads[0]) > captions[0]:
        # One text over the units line: a title, not a head.
        parts, heads = parts[: parts.index(heads[0])], []
    if heads or captions:
        return parts
    # Words above a body without heads: section labels say so by their colon.
    kept = 0
    for number, part in enumerate(parts, 1):
        if part.row.text.endswith(":"):
            kept = number
    return parts[:kept]


def _is_caption(row: Row, columns: Sequence[Column], table_left: float) -> bool:
    """A units line: alone in its row, and centred over the table, at its left side or wider than a column."""
    if len(row.cells) != 1 or not _UNITS.fullmatch(row.text):
        return False
    cell = row.cells[0]
    zone_left, zone_right = columns[0].outer_left, columns[-1].right
    over = [column for column in columns if column.overlaps(cell.left, cell.right)]
    centered = abs(cell.center - (table_left + zone_right) / 2) <= 10
    return centered or not over or len(over) > 1 or cell.left < zone_left - 6 * row.height


def _sentence(row: Row, base: float) -> bool:
    """Whether words above a body end a text rather than begin a label ("issued by the U.S.")."""
    return row.text.endswith((".", ";")) and row.bottom - base > -0.05 * row.height


def _head_like(cells: Sequence[Cell], zone_left: float, zone_right: float, height: float) -> bool:
    inside = all(cell.left >= zone_left - 2 * height and cell.right <= zone_right + 3 * height for cell in cells)
    prose = len(cells) == 1 and cells[0].text[:1].islower() and cells[0].text.endswith(".")
    return inside and not prose and not any(len(cell.text) > LONGEST_HEAD for cell in cells)


def _level_with(row: Row, other: Row) -> bool:
    return min(row.top, other.top) - max(row.bottom, other.bottom) > 0.3 * min(row.height, other.height)


def _beside(block: HeadBlock, other: HeadBlock) -> bool:
    return min(block.top, other.top) - max(block.bottom, other.bottom) > 0.3 * block.line


def _blocks(parts: Sequence[_Part]) -> list[HeadBlock]:
    """Head cells, with the lines of one cell joined where they follow each other in the content."""
    blocks: list[HeadBlock] = []
    before: HeadBlock | None = None
    for part in parts:
        index, cells, row = part.index, part.over, part.row
        if len(cells) == 1 and before is not None:
            cell = cells[0]
            lines_down = (before.bottom - row.bottom) / row.height
            aligned = (
                abs(before.center - cell.center) <= 3
                or abs(before.left - cell.left) <= 1.5
                or abs(before.right - cell.right) <= 1.5
            )
            if 0.3 < lines_down <= 1.45 and aligned:
                before.text = f"{before.text} {cell.text}"
                before.left, before.right = min(before.left, cell.left), max(before.right, cell.right)
                before.bottom = row.bottom
                continue
        for cell in cells:
            blocks.append(HeadBlock(cell.text, cell.left, cell.right, row.top, row.bottom, row.height, index))
        before = blocks[-1] if len(cells) == 1 else None
    return blocks
