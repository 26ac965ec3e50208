"""Read plain text, source code and logs.

Takes a path; returns one document. Prose becomes paragraphs, cut at blank lines; source code becomes code blocks,
cut where a blank line is followed by a line that is not indented, which is where top-level definitions begin in
every language that people indent. Cost: decoding, then one pass over the lines.
What can go wrong: `EmptyFile`, `BinaryFile`, `FileTooLarge`, and what `decode` says of the encoding.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePath

from cognicraft.errors import FileTooLarge
from cognicraft.ingest.assemble import no_text, too_many_characters
from cognicraft.ingest.clean import clean
from cognicraft.ingest.decode import Decoded, decode
from cognicraft.ingest.load import load
from cognicraft.ingest.readoptions import ReadOptions
from cognicraft.ingest.sourcename import source_of
from cognicraft.records import Block, Document

_PARAGRAPH = re.compile(r"\S[^\n]*(?:\n[^\S\n]*\S[^\n]*)*")
_CLOSES = (")", "]", "}", "end", "else", "catch", "finally", "elif", "except")

CODE = {
    ".c": "text/x-c", ".h": "text/x-c", ".cc": "text/x-c++", ".cpp": "text/x-c++", ".hpp": "text/x-c++",
    ".cs": "text/x-csharp", ".css": "text/css", ".go": "text/x-go", ".java": "text/x-java", ".js": "text/javascript",
    ".jsx": "text/javascript", ".kt": "text/x-kotlin", ".lua": "text/x-lua", ".php": "text/x-php", ".pl": "text/x-perl",
    ".proto": "text/x-protobuf", ".ps1": "text/x-powershell", ".py": "text/x-python", ".r": "text/x-r",
    ".rb": "text/x-ruby", ".rs": "text/x-rust",
    ".scala": "text/x-scala", ".sh": "text/x-shellscript", ".sql": "application/sql", ".swift": "text/x-swift",
    ".toml": "application/toml", ".ts": "text/typescript", ".tsx": "text/typescript", ".yaml": "application/yaml",
    ".yml": "application/yaml", ".ini": "text/plain", ".cfg": "text/plain", ".conf": "text/plain",
}  # fmt: skip
"""Extensions of files that are read as code, with their media types."""


def read_text(path: str, *, options: ReadOptions) -> Iterator[Document]:
    """The one document of a text file."""
    decoded = decode_file(path, options)
    text = decoded.text.rstrip()
    if not text:
        raise no_text(source_of(path))
    suffix = PurePath(path).suffix.lower()
    is_code = suffix in CODE
    yield Document(
        source=source_of(path),
        text=text,
        blocks=tuple(code_blocks(text) if is_code else paragraphs(text)),
        media_type=CODE.get(suffix, "text/plain"),
        warnings=decoded.warnings,
    )


def decode_file(path: str, options: ReadOptions, *, declared: str = "") -> Decoded:
    """The clean text of a file within the limits, as every reader of text formats starts.

    Raises: Unreadable, EmptyFile, FileTooLarge, BinaryFile, CorruptFile.
    """
    name = source_of(path)
    decoded = decode(load(path, max_bytes=options.max_bytes), name=name, encoding=options.encoding, declared=declared)
    check_length(decoded.text, name, options)
    return Decoded(clean(decoded.text), decoded.encoding, decoded.warnings)


def check_length(text: str, name: str, options: ReadOptions) -> None:
    """Raises: FileTooLarge."""
    if len(text) > options.max_characters:
        error: FileTooLarge = too_many_characters(name, options.max_characters)
        raise error


def paragraphs(text: str, *, offset: int = 0) -> Iterator[Block]:
    """Paragraph blocks of clean text: runs of lines that are not blank, without the white space around them."""
    for match in _PARAGRAPH.finditer(text):
        start, end = match.span()
        yield Block("paragraph", offset + start, offset + end - (end - start - len(match[0].rstrip())))


def code_blocks(text: str) -> Iterator[Block]:
    """Code blocks of clean text, each with the indentation of its first line."""
    start = end = position = 0
    blank_before = False
    for line in text.split("\n"):
        stripped = line.strip()
        if stripped:
            top_level = not line[0].isspace() and not stripped.startswith(_CLOSES)
            if end > start and blank_before and top_level:
                yield Block("code", start, end)
                start = position
            elif end <= start:
                start = position
            end = position + len(line.rstrip())
        blank_before = not stripped
        position += len(line) + 1
    if end > start:
        yield Block("code", start, end)
