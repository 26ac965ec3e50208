"""Read XLSX.

Takes a path; returns one document: each sheet that has text is a page, its name a heading, its rows self-describing
lines, with values as they were last calculated. Hidden sheets are left out, with a warning. Method: openpyxl (extra
`office`), in its streaming mode. Cost: linear in the cells.
What can go wrong: what `ooxml.check_archive` says; `MissingExtra`; `EmptyFile`.
"""

from __future__ import annotations

import datetime
import warnings
from collections.abc import Iterator
from typing import Any

from cognicraft.errors import MissingExtra
from cognicraft.ingest.assemble import Assembly
from cognicraft.ingest.ooxml import check_archive, parsing
from cognicraft.ingest.readoptions import ReadOptions
from cognicraft.ingest.sourcename import source_of
from cognicraft.ingest.tables import guess_head, linearize
from cognicraft.records import Document

_KIND = "an XLSX workbook"
_MEDIA_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
_MAX_COLUMNS = 1_000


def read_xlsx(path: str, *, options: ReadOptions) -> Iterator[Document]:
    """The one document of a workbook."""
    check_archive(path, options=options, part="[Content_Types].xml", kind=_KIND)
    source = source_of(path)
    try:
        import openpyxl  # type: ignore[import-untyped, unused-ignore]
    except ModuleNotFoundError as error:
        if error.name != "openpyxl":
            raise
        raise MissingExtra("Reading XLSX files", extra="office") from error
    with parsing(source, _KIND), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about styles and extensions, which are no text
        workbook = openpyxl.load_workbook(path, read_only=True, data_only=True)
        assembly = Assembly(source, max_characters=options.max_characters)
        for sheet in workbook.worksheets:
            if sheet.sheet_state != "visible":
                assembly.warnings.append(f"The sheet {sheet.title} is hidden and was left out.")
                continue
            lines = _lines(sheet)
            if lines:
                assembly.start_page()
                assembly.add("heading", sheet.title, level=1)
                assembly.add("table", "\n".join(lines))
        title = workbook.properties.title or ""
        workbook.close()
    yield assembly.document(source, title=title, media_type=_MEDIA_TYPE)


def _lines(sheet: Any) -> list[str]:
    # A sheet may declare a million empty rows of 16,384 columns; without that, only cells that are there are read.
    sheet.reset_dimensions()
    rows = [cells for row in sheet.iter_rows(values_only=True) if row and any(cells := _texts(row[:_MAX_COLUMNS]))]
    if not rows:
        return []
    # Sheets often begin some columns in; the label is the first column that has anything.
    first = min(next(index for index, cell in enumerate(row) if cell) for row in rows)
    rows = [row[first:] for row in rows]
    heads = guess_head([_without_tail(row) for row in rows[:50]], usual=True)
    return linearize(rows[0] if heads else [], rows[heads:])


def _texts(row: tuple[Any, ...]) -> list[str]:
    return [_text(value) for value in row]


def _without_tail(row: list[str]) -> list[str]:
    last = max((index for index, cell in enumerate(row) if cell), default=-1)
    return row[: last + 1]


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime.datetime):
        return value.date().isoformat() if value.time() == datetime.time() else value.isoformat(" ", "minutes")
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, float):
        return f"{value:.15g}"
    return str(value).strip()
