"""Gather lines into rows and rows into runs that share columns: the bodies of tables.

Takes: the lines of one page, in content order. Returns: runs of rows with the columns that their values stand in.
Method: cells on one base line are a row; a row whose values stand to the right of words is a data row; consecutive data
rows are one run as long as each of their values overlaps one column of the run or opens a new one. Rows of words only
stay in a run while they keep clear of the columns. Cost: linear in words.
What can go wrong: a page that is written column by column has no rows here, and keeps its plain lines.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

from cognicraft.ingest.pdf_cells import Cell, split_cells
from cognicraft.ingest.pdf_source import Line

LABELS_IN_A_ROW = 4
"""Rows of words that may stand between two data rows."""
WIDEST_ROW_GAP = 3.0
"""In line heights."""


@dataclass(slots=True)
class Row:
    """Cells on one base line. `first` and `last` are line indices, `last` inclusive."""

    cells: list[Cell]
    top: float
    bottom: float
    first: int
    last: int
    label: str = ""
    label_left: float = 0.0
    values: list[Cell] = field(default_factory=list)

    @property
    def height(self) -> float:
        return max(self.top - self.bottom, 1.0)

    @property
    def left(self) -> float:
        return min(cell.left for cell in self.cells)

    @property
    def right(self) -> float:
        return max(cell.right for cell in self.cells)

    @property
    def text(self) -> str:
        return " ".join(cell.text for cell in self.cells)

    @property
    def label_cells(self) -> list[Cell]:
        return self.cells[: len(self.cells) - len(self.values)]

    @property
    def years(self) -> bool:
        """Whether what stands in the columns are years, and words beside them: a row of column heads."""
        marks = [cell for cell in self.values if cell.value]
        if not marks or not all(cell.year for cell in marks):
            return False
        return not self.label or len(marks) > 1 or self.label.endswith(",")

    @property
    def data(self) -> bool:
        """Whether numbers stand in the columns, or dashes and nothing else."""
        if not self.values or self.years:
            return False
        return any(cell.digits for cell in self.values) or all(cell.value for cell in self.values)

    @property
    def numbers_first(self) -> bool:
        """A number with words behind it: the number is what the row begins with, as in a list of exhibits."""
        return not self.label and bool(self.values) and not self.values[-1].value


@dataclass(slots=True)
class Column:
    """The place of a column: `left`..`right` of its values, `outer_left` with their currency signs."""

    left: float
    right: float
    outer_left: float

    def overlaps(self, left: float, right: float) -> bool:
        return left < self.right and right > self.left

    def take(self, cell: Cell) -> None:
        self.left = min(self.left, cell.core_left)
        self.outer_left = min(self.outer_left, cell.left)
        self.right = max(self.right, cell.right)


@dataclass(slots=True)
class Run:
    """Rows from the first to the last data row of one table body, and their columns from left to right."""

    rows: list[Row]
    columns: list[Column]

    @property
    def numbers_first(self) -> bool:
        data = [row for row in self.rows if row.data]
        return 2 * sum(row.numbers_first for row in data) >= len(data)


def rows_of(lines: Sequence[Line]) -> list[Row]:
    """All lines as rows, in content order."""
    rows: list[Row] = []
    for index, line in enumerate(lines):
        cells = split_cells(line)
        if not cells:
            cells = [Cell(line.text, line.left, line.right, False, line.left)]
        row = rows[-1] if rows else None
        if row is not None and _same_base(row, line) and (line.left >= row.right - 1 or line.right <= row.left + 1):
            row.cells = sorted(row.cells + cells, key=lambda cell: cell.left)
            row.last = index
        else:
            rows.append(Row(cells, line.top, line.bottom, index, index))
    for row in rows:
        _label(row)
    return _with_labels_beside(rows)


def runs_of(rows: Sequence[Row]) -> list[Run]:
    """The table bodies among the rows, in order; a run has two data rows, or one with two values."""
    runs: list[Run] = []
    current: list[Row] = []
    columns: list[Column] = []

    def close() -> None:
        while current and not current[-1].data:
            current.pop()
        data = [row for row in current if row.data]
        few = len(data) < 3 and not all(cell.value for row in data for cell in row.values)
        if not few and (len(data) >= 2 or (data and sum(cell.digits for cell in data[0].values) >= 2)):
            runs.append(Run(list(current), sorted(columns, key=lambda column: column.left)))
        current.clear()
        columns.clear()

    waiting = 0
    for row in rows:
        if current and not _below(current[-1], row):
            close()
        if row.data:
            placed = _place(row, columns, opens=bool(row.label) or not current)
            if not placed and current:
                close()
                placed = _place(row, columns, opens=bool(row.label))
            if placed:
                current.append(row)
                waiting = 0
        elif current:
            waiting += 1
            clear = row.right <= min(column.outer_left for column in columns) + row.height
            named = len(row.cells) == 1 and row.text.endswith(":")
            if row.values or waiting > LABELS_IN_A_ROW or not (clear or named):
                close()
            else:
                current.append(row)
    close()
    return runs


def _same_base(row: Row, line: Line) -> bool:
    return abs(row.bottom - line.bottom) < 0.35 * max(row.height, line.height)


def _below(before: Row, row: Row) -> bool:
    """Whether a row stands under the one before, near enough to belong to it."""
    height = max(before.height, row.height)
    return row.top <= before.top + 0.3 * height and before.bottom - row.top <= WIDEST_ROW_GAP * height


def _label(row: Row) -> None:
    """Leading words are the label, and a leading year where other values follow."""
    count = next((number for number, cell in enumerate(row.cells) if cell.value), len(row.cells))
    rest = row.cells[1:]
    if count == 0 and row.cells[0].year and rest and not all(cell.year for cell in rest):
        count = 1
    row.values = row.cells[count:]
    row.label = " ".join(cell.text for cell in row.cells[:count])
    row.label_left = row.cells[0].left


def _with_labels_beside(rows: list[Row]) -> list[Row]:
    """Join values with a label of several lines that they stand beside, rather than under."""
    joined: list[Row] = []
    for row in rows:
        if not row.label and row.data:
            start = len(joined)
            while start > 0 and len(joined) - start < 3 and not joined[start - 1].values:
                before = joined[start - 1]
                overlap = min(before.top, row.top) - max(before.bottom, row.bottom)
                if overlap < 0.3 * row.height or before.right > row.left:
                    if start < len(joined):
                        break
                    if before.bottom < row.bottom - 2 * row.height or before.right > row.left:
                        break
                start -= 1
            beside = joined[start:]
            while beside and min(beside[0].top, row.top) - max(beside[0].bottom, row.bottom) < 0.3 * row.height:
                beside = beside[1:]
            if beside:
                del joined[len(joined) - len(beside) :]
                row = Row(
                    [cell for part in beside for cell in part.cells] + row.cells,
                    max(beside[0].top, row.top),
                    min(beside[-1].bottom, row.bottom),
                    beside[0].first,
                    row.last,
                    " ".join(part.label for part in beside),
                    beside[0].label_left,
                    row.values,
                )
        joined.append(row)
    return joined


def _place(row: Row, columns: list[Column], *, opens: bool) -> bool:
    """Put the values of a row into columns, new ones if allowed; False, and no change, where they do not fit."""
    if not columns and len(row.values) == 1 and not row.label:
        return False
    if columns and not row.label and len(row.values) > 1:
        beside = min(column.outer_left for column in columns) - row.height
        if row.values[0].right <= beside and any(cell.value for cell in row.values[1:]):
            # A label may begin with a number, or its last line be one.
            row.label, row.values = row.values[0].text, row.values[1:]
            opens = True
    trial = [Column(column.left, column.right, column.outer_left) for column in columns]
    taken: list[Column] = []
    for cell in row.values:
        if columns and not cell.value and cell.left < columns[0].outer_left - 4 * row.height:
            return False  # words that begin beside the columns
        over = [column for column in trial if column.overlaps(cell.core_left, cell.right)]
        if len(over) > 1 or (over and any(over[0] is column for column in taken)):
            return False
        if over:
            over[0].take(cell)
            taken.append(over[0])
        elif opens:
            trial.append(Column(cell.core_left, cell.right, cell.left))
            taken.append(trial[-1])
        else:
            return False
    trial.sort(key=lambda column: column.left)
    if any(after.left < before.right for before, after in itertools.pairwise(trial)):
        return False
    columns[:] = trial
    return True
