"""Read JSON and JSON Lines.

Takes a path; returns one document for an object, or one for each element of an array of objects or each line of a
JSONL file, told apart by its JSON pointer (`/3`; for JSONL the line, counted from 0 in pointers and from 1 in
messages). The text is laid out by `jsonlayout`. JSONL is read line by line: a broken line costs that line, and the
last document of the file carries a warning that names it. Method: the parser of the standard library.
Cost: linear, most of it in the layout; an array is held whole, a JSONL file one line at a time.
What can go wrong: `CorruptFile` with line and column, `EmptyFile` where there is no text in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from cognicraft.errors import CorruptFile, EmptyFile
from cognicraft.ingest.assemble import no_text
from cognicraft.ingest.clean import clean
from cognicraft.ingest.decode import Decoded, decode
from cognicraft.ingest.jsonlayout import JsonLayout
from cognicraft.ingest.jsontree import JsonParser, JsonProblem, pointer_step
from cognicraft.ingest.load import cannot_open, check_file, load
from cognicraft.ingest.readoptions import ReadOptions
from cognicraft.ingest.sourcename import source_of
from cognicraft.records import Document

JSON_TYPE, LINES_TYPE = "application/json", "application/jsonl"
_MAX_NAMED = 20


def read_json(path: str, *, options: ReadOptions) -> Iterator[Document]:
    """The documents of a .json file; one that holds JSON Lines is read as such."""
    source = source_of(path)
    decoded = decode(load(path, max_bytes=options.max_bytes), name=source, encoding=options.encoding)
    if not decoded.text.strip():
        raise no_text(source)
    parser = JsonParser()
    try:
        value = parser.parse(decoded.text.strip("\ufeff"))
    except JsonProblem as problem:
        if problem.reason == "extra data" and _begins_with_json_line(decoded.text):
            lines = enumerate(decoded.text.split("\n"))
            yield from _lines(lines, source, options, first_warnings=decoded.warnings)
            return
        raise _corrupt(source, problem, decoded.text) from problem
    yield from _whole(value, parser, decoded, source, options)


def read_json_lines(path: str, *, options: ReadOptions) -> Iterator[Document]:
    """The documents of a .jsonl or .ndjson file; one that holds one JSON value over many lines is read as .json."""
    source = source_of(path)
    check_file(path, max_bytes=options.max_bytes)
    try:
        with Path(path).open("rb") as stream:
            head = stream.read(4096)
            stream.seek(0)
            wide = b"\x00" in head or head.startswith((b"\xff\xfe", b"\xfe\xff"))
            if not wide and not options.encoding and _begins_with_json_line(_first_line(head)):
                yield from _lines(enumerate(stream), source, options)
                return
    except OSError as error:
        raise cannot_open(path, error) from error
    decoded = decode(load(path, max_bytes=options.max_bytes), name=source, encoding=options.encoding)
    if not decoded.text.strip():
        raise no_text(source)
    parser = JsonParser()
    try:
        value = parser.parse(decoded.text)
    except JsonProblem:
        yield from _lines(enumerate(decoded.text.split("\n")), source, options, first_warnings=decoded.warnings)
        return
    yield from _whole(value, parser, decoded, source, options)


def _whole(value: Any, parser: JsonParser, decoded: Decoded, source: str, options: ReadOptions) -> Iterator[Document]:
    layout = JsonLayout(source, options=options, media_type=JSON_TYPE)
    notes = _Notes(decoded.warnings)
    notes.repeated(parser)
    if isinstance(value, list) and any(isinstance(item, dict) for item in value):
        items: Iterable[tuple[str, Any]] = ((pointer_step(index), item) for index, item in enumerate(value))
        yield from _held_back(_documents(items, layout, source, notes, "element {}"), notes, source)
        return
    try:
        document = layout.document(value)
    except JsonProblem as problem:
        raise _corrupt(source, problem, "") from problem
    yield notes.attach(document)


def _lines(
    lines: Iterable[tuple[int, str | bytes]],
    source: str,
    options: ReadOptions,
    *,
    first_warnings: tuple[str, ...] = (),
) -> Iterator[Document]:
    layout = JsonLayout(source, options=options, media_type=LINES_TYPE)
    notes = _Notes(first_warnings)
    parser = JsonParser()

    def values() -> Iterator[tuple[str, Any]]:
        for index, line in lines:
            if not line.strip():
                continue
            try:
                text = line.decode("utf-8") if isinstance(line, bytes) else line
                yield pointer_step(index), parser.parse(text.lstrip("\ufeff").rstrip("\r\n"))
            except UnicodeDecodeError as error:
                notes.broken(f"line {index + 1}: not valid UTF-8 at byte {error.start + 1}")
            except JsonProblem as problem:
                column = f" at column {problem.column}" if problem.column else ""
                notes.broken(f"line {index + 1}: {problem.reason}{column}")

    yield from _held_back(_documents(values(), layout, source, notes, "line {}", first=1), notes, source)
    notes.repeated(parser)


def _documents(
    items: Iterable[tuple[str, Any]], layout: JsonLayout, source: str, notes: _Notes, called: str, *, first: int = 0
) -> Iterator[Document]:
    for pointer, item in items:
        try:
            yield layout.document(item, pointer=pointer)
        except EmptyFile:
            notes.blank(called.format(int(pointer[1:]) + first))
        except JsonProblem as problem:
            notes.broken(f"{called.format(int(pointer[1:]) + first)}: {problem.reason}")


def _held_back(documents: Iterator[Document], notes: _Notes, source: str) -> Iterator[Document]:
    """Hold one document back, so that the last one can carry what was found on the way."""
    previous: Document | None = None
    for document in documents:
        if previous is not None:
            yield previous
        previous = document
    if previous is not None:
        yield notes.attach(previous)
    elif notes.broken_parts:
        raise CorruptFile(
            f"{source} has no line or element that can be read: {notes.broken_parts[0]}.",
            remedy="Check that it is JSON, in UTF-8.",
        )
    else:
        raise no_text(source)


class _Notes:
    """What went wrong with single parts of a file."""

    def __init__(self, warnings: tuple[str, ...]) -> None:
        self.warnings = list(warnings)
        self.broken_parts: list[str] = []
        self._broken = self._blank = 0
        self._blank_parts: list[str] = []

    def broken(self, what: str) -> None:
        self._broken += 1
        if len(self.broken_parts) < _MAX_NAMED:
            self.broken_parts.append(what)

    def blank(self, what: str) -> None:
        self._blank += 1
        if len(self._blank_parts) < _MAX_NAMED:
            self._blank_parts.append(what)

    def repeated(self, parser: JsonParser) -> None:
        if parser.repeated:
            names = ", ".join(sorted(parser.repeated)[:_MAX_NAMED])
            self.warnings.append(f"A key occurs twice in one object, and the last value counts: {clean(names)}.")

    def attach(self, document: Document) -> Document:
        warnings = [*document.warnings, *self.warnings]
        if self._broken:
            more = f"; and {self._broken - len(self.broken_parts)} more" if self._broken > _MAX_NAMED else ""
            warnings.append(f"{self._broken} left out as broken: {'; '.join(self.broken_parts)}{more}.")
        if self._blank:
            more = f", and {self._blank - len(self._blank_parts)} more" if self._blank > _MAX_NAMED else ""
            warnings.append(f"{self._blank} left out, without text: {', '.join(self._blank_parts)}{more}.")
        return replace(document, warnings=tuple(warnings)) if warnings else document


def _begins_with_json_line(text: str) -> bool:
    """Whether the first line that is not blank is a JSON value of its own; one too long to see counts as one."""
    line = next((line for line in text.lstrip("\ufeff").split("\n") if line.strip()), "")
    try:
        value = JsonParser().parse(line)
    except JsonProblem:
        return False
    return isinstance(value, dict | list)


def _first_line(head: bytes) -> str:
    line = head.lstrip(b"\xef\xbb\xbf \t\r\n").split(b"\n", 1)
    if len(line) == 1 and len(head) == 4096 and head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"{":
        return "{}"  # a first line longer than the sample: records of such a size are on one line each
    return line[0].decode("utf-8", "replace")


def _corrupt(source: str, problem: JsonProblem, text: str) -> CorruptFile:
    start = text.lstrip()[:64].lower()
    hint = " It looks like HTML." if start.startswith(("<!doctype", "<html", "<head", "<body")) else ""
    where = f" at line {problem.line}, column {problem.column}" if problem.line else ""
    return CorruptFile(
        f"{source} is not valid JSON{where}: {problem.reason}.{hint}",
        remedy="Correct it there, or write it again with the program it comes from.",
    )
