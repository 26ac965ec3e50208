"""A DOCX table as self-describing lines.

Takes a `w:tbl` element; returns one line per row, by `tables`. Head rows are those that Word repeats on each page
(`tblHeader`); where none is marked, the first row if it looks like one. Merged cells: down, the text is repeated, as
a label; across, it stands in the first column of a body row and over all columns of a head. A table inside a cell is
read as text of the cell. Cost: linear in the cells.
"""

from __future__ import annotations

from typing import Any

from cognicraft.ingest.clean import one_line
from cognicraft.ingest.docxtext import W, paragraph_text
from cognicraft.ingest.tables import guess_head, linearize

_MAX_COLUMNS = 1_000


def docx_table_lines(table: Any) -> list[str]:
    """One line per row that has text."""
    grid: list[list[str]] = []
    spans: list[list[tuple[int, int]]] = []  # of each row: the first column and the width of its merged cells
    marked = 0
    above: list[str] = []
    for row in _children(table, "tr"):
        cells, wide = _row(row, above)
        above = cells
        if not any(cells):
            continue
        if marked == len(grid) and row.find(f"{W}trPr/{W}tblHeader") is not None:
            marked += 1
        grid.append(cells)
        spans.append(wide)
    heads = marked or guess_head(grid)
    for cells, wide in zip(grid[:heads], spans[:heads], strict=True):
        for first, width in wide:
            cells[first : first + width] = [cells[first]] * width
    return linearize(_joined(grid[:heads]), grid[heads:])


def _row(row: Any, above: list[str]) -> tuple[list[str], list[tuple[int, int]]]:
    cells: list[str] = []
    wide: list[tuple[int, int]] = []
    for cell in _children(row, "tc"):
        properties = cell.find(W + "tcPr")
        width = min(_width(properties), _MAX_COLUMNS - len(cells))
        if width < 1:
            break
        merge = properties.find(W + "vMerge") if properties is not None else None
        if merge is not None and merge.get(W + "val") != "restart":
            text = above[len(cells)] if len(cells) < len(above) else ""
        else:
            text = one_line(" ".join(paragraph_text(paragraph) for paragraph in cell.iter(W + "p")))
        if width > 1:
            wide.append((len(cells), width))
        cells += [text] + [""] * (width - 1)
    return cells, wide


def _width(properties: Any) -> int:
    span = properties.find(W + "gridSpan") if properties is not None else None
    value = span.get(W + "val") if span is not None else "1"
    return int(value) if value and value.isdecimal() and len(value) < 6 else 1


def _children(parent: Any, name: str) -> list[Any]:
    """Rows of a table or cells of a row, also those in content controls."""
    found = []
    stack = list(reversed(parent))
    while stack:
        element = stack.pop()
        if element.tag == W + name:
            found.append(element)
        elif element.tag in (W + "sdt", W + "sdtContent", W + "ins", W + "customXml"):
            stack.extend(reversed(element))
    return found


def _joined(rows: list[list[str]]) -> list[str]:
    width = max(map(len, rows), default=0)
    columns = ([row[column] for row in rows if column < len(row) and row[column]] for column in range(width))
    return [" ".join(dict.fromkeys(column)) for column in columns]
