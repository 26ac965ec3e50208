"""Read a PDF: text in reading order with pages, headings and table rows.

Takes: a path, and options `max_file_mb`, `max_pages`, `max_characters` (0 or absent: no limit).
Returns: one `Document` whose pages tile the text. Method: see docs/decisions/0004-reading-pdf.md; pdfium gives lines
in content-stream order, running heads and feet are dropped, tables become self-describing rows, other lines become
headings, list items and paragraphs. Cost: see benchmarks/reading.py, on the order of 10 ms a page.
What can go wrong: files that ask for a password, are damaged, hold no text or too much; a process may also be ended by
a hostile file or run out of time, which the reader pool sees to.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path, PurePath

from cognicraft.errors import CorruptFile, EmptyFile, FileTooLarge, NoTextLayer
from cognicraft.ingest.load import cannot_open, check_file
from cognicraft.ingest.pdf_blocks import page_blocks
from cognicraft.ingest.pdf_document import assemble
from cognicraft.ingest.pdf_furniture import drop_furniture
from cognicraft.ingest.pdf_headings import Headings, document_title
from cognicraft.ingest.pdf_source import PdfFile, SourcePage, open_pdf
from cognicraft.ingest.pdf_words import Vocabulary
from cognicraft.ingest.sourcename import source_of
from cognicraft.records import Document

MEDIA_TYPE = "application/pdf"
_PICTURE_TEXT = 20
"""Fewer visible characters than this, per page, are a stamp on a scan rather than text."""


def read_pdf(path: str, *, options: Mapping[str, object]) -> Iterator[Document]:
    """Yield the one document of the file; pages that could not be read are named in its warnings.

    Raises: EncryptedFile, CorruptFile, EmptyFile, NoTextLayer, FileTooLarge, Unreadable.
    """
    name = source_of(path)
    _check(path, name, options)
    with open_pdf(path) as file:
        pages = _read_pages(file, name, options)
        properties = {key: file.property(key) for key in ("Title", "Author", "Subject", "Keywords")}
        kept = drop_furniture([page.lines for page in pages])
        headings = Headings(kept, file.outline())
        occurs = Vocabulary(kept).occurs
        blocks = [
            page_blocks(lines, index, headings=headings, occurs=occurs, rules=partial(file.rules, index))
            for index, lines in enumerate(kept)
        ]
    levels = headings.levels(blocks)
    title = document_title(properties["Title"], blocks, file_name=PurePath(path).name)
    text, spans, places = assemble(blocks, levels=levels, occurs=occurs)
    # "(anonymous)": what a program writes where nobody told it.
    told = {key.lower(): value for key, value in properties.items() if value and not value.startswith("(")}
    metadata = {key: value for key, value in told.items() if key != "title"}
    yield Document(
        source=name,
        text=text,
        pages=spans,
        blocks=places,
        title=title,
        media_type=MEDIA_TYPE,
        metadata=metadata,
        warnings=_warnings(pages),
    )


def _limit(options: Mapping[str, object], key: str) -> float:
    value = options.get(key)
    return float(value) if isinstance(value, int | float) and value > 0 else math.inf


def _check(path: str, name: str, options: Mapping[str, object]) -> None:
    max_file_mb = _limit(options, "max_file_mb")
    check_file(path, max_bytes=sys.maxsize if math.isinf(max_file_mb) else int(max_file_mb * 1_000_000))
    try:
        with Path(path).open("rb") as stream:
            head = stream.read(1024)
    except OSError as error:
        raise cannot_open(path, error) from error
    if b"%PDF-" not in head:
        raise CorruptFile(
            f"{name} is not a PDF: it begins with {head[:8]!r}.", remedy="Give it the extension that fits its content."
        )


def _read_pages(file: PdfFile, name: str, options: Mapping[str, object]) -> list[SourcePage]:
    max_pages, max_characters = _limit(options, "max_pages"), _limit(options, "max_characters")
    if file.page_count <= 0:
        raise EmptyFile(f"{name} has no pages.", remedy="Open it in its own program and save it again.")
    if file.page_count > max_pages:
        raise FileTooLarge(
            f"{name} has {file.page_count} pages, over the limit of {max_pages:g}.",
            remedy="Raise the limit on pages, or split it.",
        )
    pages: list[SourcePage] = []
    characters = 0
    for index in range(file.page_count):
        page = file.page(index)
        pages.append(page)
        characters += _visible(page)
        if characters > max_characters:
            raise FileTooLarge(
                f"{name} holds more than {max_characters:g} characters of text, which is the limit.",
                remedy="Raise the limit on characters, or split it.",
            )
    if all(page.damaged for page in pages):
        raise CorruptFile(
            f"{name} is damaged: none of its {len(pages)} pages can be opened.",
            remedy="Fetch it again, or open it in its own program and save it again.",
        )
    if not any(page.objects for page in pages):
        raise EmptyFile(f"{name} has {len(pages)} blank pages and no text.", remedy="Leave it out.")
    if not any(_has_text(page) for page in pages):
        raise NoTextLayer(
            f"{name} has {len(pages)} pages but no text: they are pictures, as from a scanner.",
            remedy="Run text recognition over it, for example with `ocrmypdf`, and ingest the result.",
        )
    return pages


def _visible(page: SourcePage) -> int:
    return sum([len(line.text) for line in page.lines])


def _has_text(page: SourcePage) -> bool:
    visible = _visible(page)
    # A short text is a text; a few characters beside a picture are a stamp on it.
    return visible >= _PICTURE_TEXT or (visible > 0 and not page.pictured)


def _warnings(pages: list[SourcePage]) -> tuple[str, ...]:
    damaged = [number for number, page in enumerate(pages, 1) if page.damaged]
    pictures = [
        number for number, page in enumerate(pages, 1) if page.objects and not page.damaged and not _has_text(page)
    ]
    found: list[str] = []
    if damaged:
        found.append(f"Could not be opened and left out: {_page_list(damaged)}.")
    if pictures:
        found.append(
            f"No text but pictures: {_page_list(pictures)}. Text recognition, for example with `ocrmypdf`, would make "
            "them readable."
        )
    return tuple(found)


def _page_list(numbers: list[int]) -> str:
    """As in "pages 2, 5-9": runs are shortened."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1][1:] = [number]
        else:
            runs.append([number])
    return ("pages " if len(numbers) > 1 else "page ") + ", ".join(
        "-".join(str(number) for number in run) for run in runs
    )
