"""Read CSV and TSV.

Takes a path; returns one document with one table, each row a self-describing line. The delimiter is the one of
`, ; TAB |` by which most of the first rows have the same number of cells, at least two; `csv.Sniffer` is not used,
because it guesses letters as delimiters in tables of words. The first row is the head unless it looks like data
(`tables.guess_head`). Cost: linear in the cells. What can go wrong: what `text.decode_file` says.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator
from io import StringIO
from itertools import chain, islice
from pathlib import PurePath

from cognicraft.errors import CorruptFile
from cognicraft.ingest.assemble import Assembly
from cognicraft.ingest.clean import one_line
from cognicraft.ingest.readoptions import ReadOptions
from cognicraft.ingest.sourcename import source_of
from cognicraft.ingest.tables import guess_head, line_of
from cognicraft.ingest.text import decode_file
from cognicraft.records import Document

_SAMPLE_ROWS = 50
_MAX_CELL_CHARACTERS = 10_000_000


def read_csv(path: str, *, options: ReadOptions) -> Iterator[Document]:
    """The one document of a table of text."""
    source = source_of(path)
    decoded = decode_file(path, options)
    is_tabs = PurePath(path).suffix.lower() == ".tsv"
    csv.field_size_limit(_MAX_CELL_CHARACTERS)
    assembly = Assembly(source, max_characters=options.max_characters)
    assembly.warnings += decoded.warnings
    delimiter = "\t" if is_tabs else find_delimiter(decoded.text)
    try:
        rows = (row for row in csv.reader(StringIO(decoded.text, newline=""), delimiter=delimiter) if any(row))
        first = list(islice(rows, _SAMPLE_ROWS))
        heads = guess_head(first, usual=True)
        names = [one_line(cell) for cell in first[0]] if heads else []
        lines = [line for row in chain(first[heads:], rows) if (line := line_of(names, row))]
    except csv.Error as error:
        raise CorruptFile(
            f"{source} is not a table that can be read: {error}.", remedy="Check its quotes, or save it as text."
        ) from error
    if not lines and first:  # a head and nothing below it
        lines = [line_of([], first[0])]
    assembly.add("table", "\n".join(lines))
    yield assembly.document(source, media_type="text/tab-separated-values" if is_tabs else "text/csv")


def find_delimiter(text: str) -> str:
    """The delimiter of a table, "," where none fits."""
    best, best_score = ",", 0.0
    for delimiter in (",", ";", "\t", "|"):
        try:
            sample = csv.reader(StringIO(text[:200_000], newline=""), delimiter=delimiter)
            widths = Counter(len(row) for row in islice(sample, _SAMPLE_ROWS) if row)
        except csv.Error:
            continue
        wide = {width: count for width, count in widths.items() if width > 1}
        if not wide:
            continue
        width, count = max(wide.items(), key=lambda item: (item[1], item[0]))
        score = count / widths.total() + 0.001 * min(width, 50)
        if score > best_score:
            best, best_score = delimiter, score
    return best
