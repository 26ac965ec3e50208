"""Rows of a table as lines that can be understood one by one.

Takes the column heads and the rows as texts; returns one line per row, `label | column head: value | …`: wherever a
splitter cuts, a number keeps its row label and its column head. The label is the first cell; one that is itself a
number gets its column head too. Empty cells are left out. Without heads the cells are joined with ` | `.
Cost: linear in the cells. It cannot fail: short and long rows are taken as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from cognicraft.ingest.clean import one_line

SEPARATOR = " | "
_NUMBER = re.compile(r"^[\s(+\-−–~≈<>≤≥$€£¥]*\d[\d\s.,:%/)\-–]*\S{0,3}$")


def linearize(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """One line per row that has any text; `head` may be empty or shorter than the rows."""
    heads = [one_line(cell) for cell in head]
    lines = (line_of(heads, row) for row in rows)
    return [line for line in lines if line]


def line_of(heads: Sequence[str], row: Sequence[str]) -> str:
    """One row; `heads` are clean. Empty where the row has no text."""
    cells = [one_line(cell) for cell in row]
    pieces = []
    for column, cell in enumerate(cells):
        if not cell:
            continue
        name = heads[column] if column < len(heads) else ""
        is_label = column == 0 and not is_number(cell)
        pieces.append(cell if is_label or not name or name == cell else f"{name.rstrip(':')}: {cell}")
    return SEPARATOR.join(pieces)


def is_number(cell: str) -> bool:
    """Whether the cell is a figure with at most a sign, a unit and separators around it."""
    return bool(_NUMBER.match(cell))


def guess_head(rows: Sequence[Sequence[str]], *, usual: bool = False) -> int:
    """How many of the first rows are column heads, where nothing marks them: 0 or 1.

    The first row is a head if every cell after the first is filled, differs from the others and is no number, while
    some column below holds mostly numbers. Two columns are often a list of names and values without any head; there,
    all below must be numbers.
    usual: in files of this kind a head is the rule (CSV, sheets); then a first row of short words that are nowhere
        repeated is one too.
    """
    if len(rows) < 2:
        return 0
    first = [one_line(cell) for cell in rows[0]]
    named = [cell for cell in first[1:] if cell]
    if len(named) != len(first) - 1 or len(set(named)) != len(named) or any(is_number(cell) for cell in first if cell):
        return 0
    below = [[one_line(cell) for cell in row] for row in rows[1:51]]
    for column in range(len(first)):
        cells = [row[column] for row in below if column < len(row) and row[column]]
        needed = len(cells) / 2 if usual or len(first) > 2 else len(cells) - 0.5
        if cells and sum(map(is_number, cells)) > needed:
            return 1
    if not usual:
        return 0
    seen = {cell for row in below for cell in row if cell}
    return int(not seen.intersection(first) and all(len(cell) <= 60 for cell in first))
