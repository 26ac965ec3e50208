"""Read a file: find out what it is and call the one reader for it.

Takes a path; returns its documents, one for most files, many for JSONL and arrays. Method: the first bytes decide
where they are sure (a PDF is a PDF whatever it is called), the extension where they are not; a reader is imported
only when a file needs it. Cost: the first 8 kB once more than the reader needs.
What can go wrong: every `ReadError`; a file whose content contradicts its name is `BinaryFile` (named as text, but
binary) or `CorruptFile` (named as a format that it is not), and the message says what it looks like.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path, PurePath
from types import MappingProxyType

from cognicraft.errors import CorruptFile, UnsupportedFile
from cognicraft.ingest.decode import binary, looks_binary
from cognicraft.ingest.load import cannot_open, check_file
from cognicraft.ingest.readoptions import ReadOptions, parse_options
from cognicraft.ingest.sniff import HEAD_BYTES, Sniffed, sniff
from cognicraft.ingest.sourcename import source_of
from cognicraft.ingest.text import CODE
from cognicraft.records import Document

_WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
_SHEET = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
_SLIDES = "application/vnd.openxmlformats-officedocument.presentationml.presentation"

SUPPORTED: Mapping[str, str] = MappingProxyType(
    {
        ".pdf": "application/pdf",
        ".json": "application/json",
        ".jsonl": "application/jsonl",
        ".ndjson": "application/jsonl",
        ".md": "text/markdown",
        ".markdown": "text/markdown",
        ".html": "text/html",
        ".htm": "text/html",
        ".xhtml": "text/html",
        ".docx": _WORD,
        ".xlsx": _SHEET,
        ".pptx": _SLIDES,
        ".csv": "text/csv",
        ".tsv": "text/tab-separated-values",
        ".txt": "text/plain",
        ".text": "text/plain",
        ".log": "text/plain",
        ".rst": "text/x-rst",
        ".adoc": "text/asciidoc",
        ".org": "text/org",
        ".tex": "text/x-tex",
        **CODE,
    }
)
"""Extension, in small letters and with its dot -> media type of its documents."""

TEXT_NAMES = frozenset(
    {"readme", "license", "licence", "notice", "copying", "authors", "changelog", "makefile", "dockerfile"}
)
"""Names without an extension that are text by custom, in small letters."""

_READERS = {
    "application/json": "json_files:read_json",
    "application/jsonl": "json_files:read_json_lines",
    "text/markdown": "markdown:read_markdown",
    "text/html": "html:read_html",
    "text/csv": "csv_files:read_csv",
    "text/tab-separated-values": "csv_files:read_csv",
    _WORD: "docx:read_docx",
    _SHEET: "xlsx:read_xlsx",
    _SLIDES: "pptx:read_pptx",
}
_OFFICE = frozenset({_WORD, _SHEET, _SLIDES})

_OwnReader = Callable[..., Iterator[Document]]


def media_type_of(path: str) -> str:
    """The media type that the name promises, "" for an extension that is not supported."""
    name = PurePath(path)
    if not name.suffix:
        return "text/plain" if name.name.lower() in TEXT_NAMES else ""
    return SUPPORTED.get(name.suffix.lower(), "")


def read_file(path: str, options: Mapping[str, object] | None = None) -> Iterator[Document]:
    """The documents in the file at `path`, with `source_of(path)` as their source.

    options: see `readoptions.ReadOptions`; keys that are not there go to the PDF reader.
    Raises: a ReadError that names the file, the reason and the remedy; UsageError for a bad option. Both may come
        after some documents of a file that holds many.
    """
    mapping = options or {}
    own = parse_options(mapping)
    source = source_of(path)
    check_file(path, max_bytes=own.max_bytes)
    try:
        with Path(path).open("rb") as stream:
            head = stream.read(HEAD_BYTES)
    except OSError as error:
        raise cannot_open(path, error) from error
    promised = media_type_of(path)
    if not promised and PurePath(path).suffix:
        raise unsupported(path)
    found = sniff(head)
    if found.kind == "pdf":
        yield from _read_pdf(path, mapping, source, promised)
        return
    media_type = _settle(promised, found, head, source, own)
    module, _, function = _READERS.get(media_type, "text:read_text").partition(":")
    reader: _OwnReader = getattr(importlib.import_module(f"cognicraft.ingest.{module}"), function)
    yield from reader(path, options=own)


def unsupported(path: str) -> UnsupportedFile:
    """The error for a file with an extension that no reader takes."""
    suffix = PurePath(path).suffix
    what = f"files named *{source_of(suffix)}" if suffix else "files without an extension that are not text"
    return UnsupportedFile(
        f"{source_of(path)} cannot be read: there is no reader for {what}.",
        remedy="Save it as PDF, DOCX, HTML, Markdown, JSON, CSV or text.",
    )


def _settle(promised: str, found: Sniffed, head: bytes, source: str, options: ReadOptions) -> str:
    """Which reader gets a file that is not a PDF: by what it promises, unless its bytes say otherwise."""
    if promised == "application/pdf":
        if found.kind or not looks_binary(head):
            raise _contradiction(source, "a PDF", found.name or "text")
        return promised
    if promised in _OFFICE:
        if found.kind not in ("zip", "ole"):
            raise _contradiction(source, "an Office file", found.name or ("damaged" if looks_binary(head) else "text"))
        return promised
    if found.kind and found.is_binary:
        raise binary(source, f"it is {found.name}")
    if not options.encoding and looks_binary(head):
        raise binary(source, "its bytes are not those of text")
    if promised == "text/plain" and found.kind == "html":
        return "text/html"
    return promised or ("text/html" if found.kind == "html" else "text/plain")


def _contradiction(source: str, promised: str, looks_like: str) -> CorruptFile:
    return CorruptFile(
        f"{source} is named as {promised}, but it looks like {looks_like}.",
        remedy="Give it the extension that fits, or fetch it again.",
    )


def _read_pdf(path: str, options: Mapping[str, object], source: str, promised: str) -> Iterator[Document]:
    from cognicraft.ingest.pdf import read_pdf

    for document in read_pdf(path, options=options):
        warnings = document.warnings
        if promised != "application/pdf":
            warnings = (*warnings, "The file is a PDF, whatever its name says, and was read as one.")
        yield replace(document, source=source, warnings=warnings)
