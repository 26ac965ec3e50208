"""Put a document together from blocks, so that the invariants of `records.Document` hold by construction.

Takes blocks in reading order; returns a `Document` whose blocks do not overlap and have only white space between
them. Cost: linear in the text. What can go wrong: nothing but white space was added (`EmptyFile`), or more
characters than one document may have (`FileTooLarge`, raised as soon as the limit is passed).
"""

from __future__ import annotations

from cognicraft.errors import EmptyFile, FileTooLarge
from cognicraft.ingest.clean import clean, one_line
from cognicraft.records import Block, BlockKind, Document, Metadata, Page


class Assembly:
    """Collects blocks; `document` closes it. `name` is what messages call the file."""

    def __init__(self, name: str, *, max_characters: int) -> None:
        self._name = name
        self._max_characters = max_characters
        self._parts: list[str] = []
        self._blocks: list[Block] = []
        self._page_starts: list[int] = []
        self.length = 0
        self.warnings: list[str] = []

    def __len__(self) -> int:
        return len(self._blocks)

    def add(self, kind: BlockKind, text: str, *, level: int = 0, separator: str = "\n\n") -> int:
        """Append a block and return where its text starts; blank text adds nothing.

        `separator` is the white space that goes before it. Blank lines around the text are dropped, and, but for
        code, blanks too.
        """
        text = clean(text)
        text = _without_blank_lines(text) if kind == "code" else text.strip()
        if not text:
            return self.length
        start = self.append(text, separator=separator)
        self._blocks.append(Block(kind, start, start + len(text), level))
        return start

    def append(self, text: str, *, separator: str = "\n\n") -> int:
        """Append clean text without a block; `mark` its blocks afterwards. Returns where it starts."""
        if self._parts:
            self._parts.append(separator)
            self.length += len(separator)
        start = self.length
        self._parts.append(text)
        self.length += len(text)
        if self.length > self._max_characters:
            raise too_many_characters(self._name, self._max_characters)
        return start

    def mark(self, kind: BlockKind, start: int, end: int, *, level: int = 0) -> None:
        """Say that the appended span is a block."""
        self._blocks.append(Block(kind, start, end, level))

    def start_page(self) -> None:
        """The next block begins a new page (a slide, a sheet)."""
        self._page_starts.append(self.length)

    def document(
        self,
        source: str,
        *,
        title: str = "",
        media_type: str = "text/plain",
        pointer: str = "",
        pointers: tuple[tuple[int, int, str], ...] = (),
        metadata: Metadata | None = None,
        language: str = "",
    ) -> Document:
        """Close and return the document.

        Raises: EmptyFile where no block was added.
        """
        if not self._blocks:
            raise no_text(self._name)
        return Document(
            source=source,
            text="".join(self._parts),
            pages=self._pages(),
            blocks=tuple(self._blocks),
            title=one_line(title),
            media_type=media_type,
            pointer=pointer,
            pointers=pointers,
            metadata=metadata or {},
            warnings=tuple(self.warnings),
            language=language,
        )

    def _pages(self) -> tuple[Page, ...]:
        if not self._page_starts:
            return ()
        starts = [0, *self._page_starts[1:]]
        ends = [*starts[1:], self.length]
        return tuple(Page(number, *span) for number, span in enumerate(zip(starts, ends, strict=True), 1))


def no_text(name: str) -> EmptyFile:
    return EmptyFile(f"{name} holds no text.", remedy="Check that it was saved, or leave it out.")


def too_many_characters(name: str, limit: int) -> FileTooLarge:
    return FileTooLarge(
        f"{name} has more than {limit:,} characters of text.",
        remedy="Split it into smaller files, or raise max_characters.",
    )


def _without_blank_lines(text: str) -> str:
    lines = text.rstrip().split("\n")
    first = next((index for index, line in enumerate(lines) if line.strip()), len(lines))
    return "\n".join(lines[first:])
