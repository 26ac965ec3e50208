"""Tables as text: each row one line that tells its label and, for each value, its column head.

Takes: the lines of one page. Returns: tables with the lines they replace, in order.
Method: `pdf_rows` finds bodies and columns, `pdf_heads` the heads; here labels of several lines are joined and section
labels ("Net sales:") are set before the labels of their rows, as indents show them. Cost: see benchmarks/reading.py.
What can go wrong: what is not understood stays what it was. A table without heads gives `label | value | value`; a line
that fits no column stays a plain line; no number is dropped, moved to another row or given a head by guess.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import median

from cognicraft.ingest.pdf_heads import Heads, heads_above
from cognicraft.ingest.pdf_rows import Column, Row, Run, rows_of, runs_of
from cognicraft.ingest.pdf_source import Line, Rule

TIGHT = 0.9
"""Lines of one label stand nearer than this share of the distance between rows."""
DEEPEST_SECTION = 3


@dataclass(frozen=True, slots=True)
class Table:
    """Replaces lines `start`..`end` (exclusive) of its page."""

    start: int
    end: int
    text: str


def find_tables(lines: Sequence[Line], *, rules: Callable[[], Sequence[Rule]] = tuple) -> list[Table]:
    """The tables among the lines of a page, in order, none overlapping another.

    rules: the lines drawn on the page; asked for once at most, where heads stand over several columns.
    """
    rules = cache(rules)
    rows = rows_of(lines)
    position = {id(row): number for number, row in enumerate(rows)}
    tables: list[Table] = []
    bound = 0
    before: tuple[Run, Heads] | None = None
    for run in runs_of(rows):
        first, last = position[id(run.rows[0])], position[id(run.rows[-1])]
        last = _with_label_tail(rows, run, last)
        heads = heads_above(rows, run, first, bound=bound, rules=rules)
        if not heads.found and before is not None and first == bound:
            heads.columns = _inherited(run.columns, *before)
        data = sum(row.data for row in run.rows)
        if data < 2 and not heads.found:
            continue
        parts = rows[heads.first : last + 1]
        text = _render(run, heads)
        if _visible(parts) - Counter(text):
            text = "\n".join(row.text for row in parts)  # not understood after all: nothing may be lost
        tables.append(Table(parts[0].first, parts[-1].last + 1, text))
        bound = last + 1
        before = (run, heads)
    return tables


def _visible(rows: Sequence[Row]) -> Counter[str]:
    """The characters that the text of a table must hold; signs that close up to their number count, spaces do not."""
    return Counter("".join("".join(row.text.split()) for row in rows))


def _with_label_tail(rows: Sequence[Row], run: Run, last: int) -> int:
    """Take in the second line of the last row's label."""
    pitch = _pitch(run.rows)
    while last + 1 < len(rows) and _continues_label(rows[last], rows[last + 1], pitch):
        last += 1
        run.rows.append(rows[last])
    return last


def _inherited(columns: Sequence[Column], run: Run, heads: Heads) -> list[str]:
    """Heads of the body right above, where each column stands under exactly one of its columns."""
    found: list[str] = []
    for column in columns:
        over = [number for number, other in enumerate(run.columns) if other.overlaps(column.outer_left, column.right)]
        found.append(heads.columns[over[0]] if len(over) == 1 else "")
    return found if all(found) and len(set(found)) == len(found) else [""] * len(columns)


def _pitch(rows: Sequence[Row]) -> float:
    steps = [
        before.bottom - row.bottom
        for before, row in itertools.pairwise(rows)
        if before.data and row.data and before.bottom > row.bottom
    ]
    return median(steps) if steps else 1.2 * rows[0].height


def _continues_label(row: Row, following: Row, pitch: float) -> bool:
    """Whether a row of words is the next line of the label of the row above it."""
    if following.values or len(following.cells) != 1 or following.text.endswith(":"):
        return False
    tight = 0 < row.bottom - following.bottom <= TIGHT * pitch
    return tight and following.text[:1].islower() and bool(row.label)


def _render(run: Run, heads: Heads) -> str:
    rows = heads.sections + run.rows
    pitch = _pitch(run.rows)
    out = [" ".join(heads.caption)] if heads.caption else []
    sections = _Sections(out)
    pending: Row | None = None
    words = ""
    for number, row in enumerate(rows):
        if not row.data:
            if pending is None and number and rows[number - 1].data and _continues_label(rows[number - 1], row, pitch):
                out[-1] = _with_more_label(out[-1], row.text)
                continue
            words = f"{words} {row.text}".strip()
            pending = pending or row
            if number + 1 < len(rows) and _is_label_of(row, rows[number + 1], pitch):
                continue
            sections.open(words, pending.left)
            pending, words = None, ""
            continue
        label = f"{words} {row.label}".strip()
        left = pending.left if pending else row.label_left
        pending, words = None, ""
        path = sections.path(label, left) if label else ""
        out.append(_line(path, row, run.columns, heads.columns))
    if words:
        out.append(words)
    sections.flush()
    return "\n".join(out)


class _Sections:
    """Section labels above the present row, outermost first, as their indents nest them."""

    def __init__(self, out: list[str]) -> None:
        self._out = out
        self._open: list[_Section] = []

    def open(self, text: str, left: float) -> None:
        """A row of words only."""
        self._close(lambda section: section.left >= left - 1)
        while len(self._open) >= DEEPEST_SECTION:
            self._pop()
        self._open.append(_Section(text, left))

    def path(self, label: str, left: float) -> str:
        """The label of a data row behind the sections that hold for it.

        A section holds for rows indented deeper, but not deeper than its items; for rows at its own indent too if it
        ends with a colon and none was deeper; and for none after its total.
        """
        self._close(
            lambda section: (
                section.left > left + 1
                or (abs(section.left - left) <= 1 and (section.deeper or not section.text.endswith(":")))
            )
        )
        total = label.lower().startswith("total")
        holding = list(self._open)
        if holding:
            inner = holding[-1]
            inner.deeper = inner.deeper or inner.left < left - 1
            inner.items_left = left if inner.items_left is None else inner.items_left
            if not total and left > inner.items_left + 5:
                holding.pop()  # indented beyond the items: a result that need not belong to them
        for section in holding:
            section.used = True
        if holding and total:
            self._pop()
        return ": ".join([*(section.text.rstrip(": ") for section in holding), label])

    def flush(self) -> None:
        """Write down the sections that no row has taken up."""
        self._close(lambda section: True)

    def _close(self, closes: Callable[[_Section], bool]) -> None:
        while self._open and closes(self._open[-1]):
            self._pop()

    def _pop(self) -> None:
        section = self._open.pop()
        if not section.used:
            self._out.append(section.text)


@dataclass(slots=True)
class _Section:
    text: str
    left: float
    used: bool = False
    deeper: bool = False
    items_left: float | None = None


def _is_label_of(row: Row, following: Row, pitch: float) -> bool:
    """Whether a row of words is the first line of the next row's label rather than a section label."""
    if row.text.endswith(":"):
        return False
    down = row.bottom - following.bottom
    if not following.label:
        return down <= TIGHT * pitch
    if not 0 < down <= 1.3 * pitch or following.label_left < row.left - 1:
        return False
    return down <= TIGHT * pitch or following.label[:1].islower()


def _with_more_label(line: str, more: str) -> str:
    """Set the rest of a label behind its first line."""
    cut = line.find(" | ")
    return f"{line[:cut]} {more}{line[cut:]}" if cut >= 0 else f"{line} {more}"


def _line(label: str, row: Row, columns: Sequence[Column], heads: Sequence[str]) -> str:
    parts = [label] if label else []
    for cell in row.values:
        number = next(
            (index for index, column in enumerate(columns) if column.overlaps(cell.core_left, cell.right)), None
        )
        head = heads[number] if number is not None else ""
        parts.append(f"{head}: {cell.text}" if head else cell.text)
    return " | ".join(parts)
