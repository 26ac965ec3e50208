"""A table row to the part of it that answers: its label, the cells asked for, and their unit.

Takes: a row as every reader writes it, `label | column head: value | column head: value`, and the question's
terms.
Returns: the spans of the pieces to show, each a piece of the row word for word, in the order of the row.
Method: a cell is kept if its column head shares the most of the question, counted in terms, with years and
    months for two (they say which column) and a quarter asked for read as "three months". Where no head
    shares anything, all cells stay.
Cost: linear in the row.
What can go wrong: heads that differ only in words which the question does not use stay together: the reader
    of the answer sees both columns rather than the wrong one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from cognicraft.answer.candidates import CELL

Span = tuple[int, int]

_YEAR = re.compile(r"(?:19|20)\d\d")
_QUARTER = re.compile(r"\b(?:Q[1-4]|[1-4]Q|quarter(?:ly)?)\b|\bQ[1-4](?=\s?(?:19|20)?\d\d)", re.IGNORECASE)
_THREE_MONTHS = re.compile(r"\b(?:three|3)[ -]months\b|\b13[ -]weeks\b|\bthirteen weeks\b|\bquarter", re.IGNORECASE)
_UNIT = re.compile(
    r"\((?:[^()\n|]{0,40} )?in (?:thousands|millions|billions)[^()\n|]{0,120}\)"
    r"|\b(?:dollars?|amounts?|figures?)(?: are)?(?: stated| expressed| shown)? in (?:thousands|millions|billions)\b",
    re.IGNORECASE,
)
_FIGURE = re.compile(r"\d")


def cells(row: str) -> list[Span]:
    """Spans of the cells of a row, label first, white space left off."""
    return list(_cells(row))


def _cells(row: str) -> Iterator[Span]:
    start = 0
    while True:
        end = row.find(CELL, start)
        stop = len(row) if end < 0 else end
        first = start + len(row[start:stop]) - len(row[start:stop].lstrip())
        last = first + len(row[start:stop].strip())
        if last > first:
            yield first, last
        if end < 0:
            return
        start = end + len(CELL)


def column_head(cell: str) -> str:
    """What stands before the value in a cell; "" for a cell without a head."""
    head, colon, value = cell.rpartition(": ")
    return head if colon and value.strip() else ""


def chosen_cells(row: str, *, question: str, lexical_terms: Callable[[str], list[str]]) -> list[Span]:
    """The label and the cells whose column head fits the question best; the whole row where none does.

    Spans are positions in `row`. A row without column heads is given whole.
    """
    spans = cells(row)
    if len(spans) < 3:
        return spans
    label = frozenset(lexical_terms(row[slice(*spans[0])]))
    asked = frozenset(lexical_terms(question)) - label
    quarter = bool(_QUARTER.search(question))
    fits: list[float] = []
    for start, end in spans[1:]:
        head = column_head(row[start:end])
        shared = asked.intersection(lexical_terms(head))
        fit = float(len(shared)) + sum(1.0 for term in shared if _YEAR.fullmatch(term))
        if head and quarter and _THREE_MONTHS.search(head):
            fit += 0.5
        fits.append(fit)
    best = max(fits)
    if best <= 0:
        return spans
    return [spans[0], *(span for span, fit in zip(spans[1:], fits, strict=True) if fit == best)]


def unit(text: str, *, row_start: int, row_end: int) -> Span | None:
    """The nearest remark before the row that says what its figures count in, as a span of `text`; None
    without one.

    Looks for "(in millions)" and its like. None as well where the row says it itself, or holds no figure.
    """
    row = text[row_start:row_end]
    if not _FIGURE.search(row) or _UNIT.search(row):
        return None
    found = None
    for match in _UNIT.finditer(text, 0, row_start):
        found = match.span()
    return found
