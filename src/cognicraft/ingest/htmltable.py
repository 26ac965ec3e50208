"""An HTML table as self-describing lines.

Takes a `<table>` node; returns its caption and one line per row, by `tables`. Cells that span rows or columns are
laid out on the grid as HTML prescribes; several head rows are joined downwards, so that `2022` under `Net sales` is
`Net sales 2022`. Spans are bounded: a cell may claim 1,000 columns and 65,534 rows, and a page of such cells would not
fit into memory. Cost: linear in the cells of the grid. It cannot fail.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from selectolax.lexbor import LexborNode

from cognicraft.ingest.clean import one_line, raised
from cognicraft.ingest.tables import guess_head, linearize

_MAX_COLUMNS = 1_000
_MAX_CELLS = 2_000_000
_ROW_GROUPS = frozenset({"thead", "tbody", "tfoot"})
_SKIPPED = frozenset({"script", "style", "template", "noscript", "svg"})
_BREAKS = frozenset({"br", "p", "div", "li", "ul", "ol", "tr", "dt", "dd", "h1", "h2", "h3", "h4", "h5", "h6"})
_HIDDEN = re.compile(r"display\s*:\s*none", re.IGNORECASE)

_BEFORE = frozenset({"$", "€", "£", "¥", "(", "$(", "US$"})
_AFTER = frozenset({")", "%", ")%", "%)"})

_Row = tuple[str, list[LexborNode]]


def is_layout(table: LexborNode) -> bool:
    """Whether a table only places things on the page: told so, holding other tables or headings, or of one column."""
    if (table.attributes.get("role") or "") in ("presentation", "none"):
        return True
    # A selector may match the node that it starts from.
    if any(node.mem_id != table.mem_id for node in table.css("table, h1, h2, h3, pre")):
        return True
    return all(len(cells) < 2 for _, cells in _rows(table))


def table_lines(table: LexborNode) -> tuple[str, list[str]]:
    """The caption, "" where there is none, and the lines of the rows."""
    caption = next((cell_text(child) for child in table.iter() if child.tag == "caption"), "")
    grid, heads = _grid(table)
    if not heads and not any(cell.tag == "th" for _, cells in _rows(table) for cell in cells):
        heads = guess_head(grid)
    head = _joined_heads(grid[:heads])
    return caption, linearize(head, grid[heads:])


def cell_text(cell: LexborNode) -> str:
    """The text of a cell on one line, without what is hidden."""
    parts: list[str] = []
    stack = [(cell, False)]
    while stack:
        node, is_raised = stack.pop()
        tag = node.tag or ""
        if tag == "-text":
            text = node.text(deep=False)
            parts.append(raised(text) if is_raised else text)
        elif not tag.startswith("-") and tag not in _SKIPPED and not _is_hidden(node):
            if tag in _BREAKS:
                parts.append(" ")
            children = [(child, is_raised or tag == "sup") for child in node.iter(include_text=True)]
            stack.extend(reversed(children))
    return one_line("".join(parts))


def _is_hidden(node: LexborNode) -> bool:
    style = node.attributes.get("style")
    return bool(style and _HIDDEN.search(style))


def _rows(table: LexborNode) -> Iterator[_Row]:
    """The rows in the order in which they are shown: what group each is in, and its cells."""
    groups: list[tuple[str, LexborNode]] = []
    for child in table.iter():
        if child.tag == "tr":
            groups.append(("tbody", child))
        elif child.tag in _ROW_GROUPS:
            groups.extend((child.tag or "", row) for row in child.iter() if row.tag == "tr")
    order = {"thead": 0, "tbody": 1, "tfoot": 2}
    for group, row in sorted(groups, key=lambda item: order[item[0]]):
        yield group, [cell for cell in row.iter() if cell.tag in ("td", "th")]


def _grid(table: LexborNode) -> tuple[list[list[str]], int]:
    """The cells on a grid, and how many of the first rows are heads.

    A body cell that spans columns stands in its first one only, else its figure would be told of each of them; one
    that spans rows stands in each of them, since it labels them; a head stands over every column that it spans.
    """
    grid: list[list[str]] = []
    heads = 0
    reaching_down: dict[int, tuple[int, str]] = {}  # column -> (rows left, text)
    cells_left = _MAX_CELLS
    for group, cells in _rows(table):
        is_head = heads == len(grid) and (
            group == "thead" or (len(cells) > 1 and all(cell.tag == "th" for cell in cells))
        )
        row: list[str] = []
        queue = iter(cells)
        for cell in queue:
            _fill_from_above(row, reaching_down)
            text = cell_text(cell)
            columns = min(_span(cell, "colspan"), _MAX_COLUMNS - len(row))
            rows = _span(cell, "rowspan")
            cells_left -= max(columns, 1)
            if columns < 1 or cells_left < 0:
                break
            for offset in range(columns):
                shown = text if offset == 0 or is_head else ""
                if rows > 1:
                    reaching_down[len(row)] = (rows - 1, shown)
                row.append(shown)
        _fill_from_above(row, reaching_down)
        if any(row):
            grid.append(row if is_head else _joined_signs(row))
            heads += is_head
    return grid, heads


def _fill_from_above(row: list[str], reaching_down: dict[int, tuple[int, str]]) -> None:
    while len(row) in reaching_down:
        left, text = reaching_down.pop(len(row))
        if left > 1:
            reaching_down[len(row)] = (left - 1, text)
        row.append(text)


def _joined_signs(row: list[str]) -> list[str]:
    """Financial pages give `$` and `)` cells of their own; they belong to the number beside them."""
    joined = list(row)
    for column, cell in enumerate(row):
        if cell in _BEFORE and column + 1 < len(row) and row[column + 1]:
            joined[column], joined[column + 1] = "", cell + joined[column + 1]
        elif cell in _AFTER:
            before = next((index for index in range(column - 1, 0, -1) if joined[index]), 0)
            if before:
                joined[column], joined[before] = "", joined[before] + cell
    return joined


def _span(cell: LexborNode, name: str) -> int:
    value = (cell.attributes.get(name) or "1").strip()
    return max(1, min(int(value), 65_534)) if value.isdecimal() and len(value) < 7 else 1


def _joined_heads(rows: list[list[str]]) -> list[str]:
    """One head per column: the heads above it from top to bottom, none twice."""
    width = max(map(len, rows), default=0)
    heads = []
    for column in range(width):
        above = [row[column] for row in rows if column < len(row) and row[column]]
        heads.append(" ".join(dict.fromkeys(above)))
    return heads
