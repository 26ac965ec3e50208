"""The recursive character splitter of the systems that came before, by name, for comparison and for who wants
it.

Takes a document; returns chunks of at most `max_characters`, each beginning with up to `overlap_characters`
of the one before. Method: cut at the first separator that occurs, cut what is still too long at the next
one, then join neighbours up to the size, as `RecursiveCharacterTextSplitter` of LangChain does. Two things
differ on purpose: a separator stays at the end of what it closes (there it opens the next piece, so that
chunks begin with ". "), and spans are exact. Cost: linear in the text for each separator. What can go
wrong: it knows nothing of structure, a chunk may hold more tokens than the encoder reads (`Chunk.tokens`
says how many), and a table loses its head.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence

from cognicraft.errors import UsageError
from cognicraft.ingest.spans import TokenPositions, chunks_from_spans, stripped
from cognicraft.protocols import TokenOffsets
from cognicraft.records import Chunk, Document

Span = tuple[int, int]


class RecursiveSplitter:
    """Sizes in characters. "" as a separator cuts anywhere; without it a piece may stay longer than the limit.

    Raises: UsageError for sizes that cannot be meant.
    """

    def __init__(
        self,
        *,
        max_characters: int = 1500,
        overlap_characters: int = 200,
        separators: Sequence[str] = ("\n\n", "\n", ". ", " ", ""),
    ) -> None:
        if max_characters < 1:
            raise UsageError(
                f"A chunk of at most {max_characters} characters cannot hold text.",
                remedy="Give max_characters a value of 1 or more; 1500 is usual.",
            )
        if not 0 <= overlap_characters < max_characters:
            raise UsageError(
                f"An overlap of {overlap_characters} characters does not fit chunks of {max_characters}.",
                remedy="Give overlap_characters a value from 0 to less than max_characters.",
            )
        self.max_characters = max_characters
        self.overlap_characters = overlap_characters
        self.separators = tuple(separators)

    def __call__(self, document: Document, *, offsets: TokenOffsets) -> list[Chunk]:
        text = document.text
        if not text.strip():
            return []
        spans = _distinct(text, self._cut(text, 0, len(text), self.separators))
        return chunks_from_spans(document, spans, tokens=TokenPositions(text, offsets=offsets))

    def _cut(self, text: str, start: int, end: int, separators: tuple[str, ...]) -> Iterator[Span]:
        """Spans of at most the size where the separators allow it, joined from the pieces between separators."""
        separator, finer = _first_that_occurs(text, start, end, separators)
        fitting: list[Span] = []
        for piece in _pieces(text, start, end, separator):
            if piece[1] - piece[0] <= self.max_characters:
                fitting.append(piece)
                continue
            yield from self._joined(fitting)
            fitting = []
            if finer:
                yield from self._cut(text, *piece, finer)
            else:
                yield piece
        yield from self._joined(fitting)

    def _joined(self, pieces: Sequence[Span]) -> Iterator[Span]:
        """Neighbouring pieces joined up to the size; each span takes up the last pieces of the one before."""
        window: deque[Span] = deque()
        for piece in pieces:
            if window and piece[1] - window[0][0] > self.max_characters:
                yield window[0][0], window[-1][1]
                end = window[-1][1]
                while window and (
                    end - window[0][0] > self.overlap_characters or piece[1] - window[0][0] > self.max_characters
                ):
                    window.popleft()
            window.append(piece)
        if window:
            yield window[0][0], window[-1][1]


def _distinct(text: str, spans: Iterable[Span]) -> Iterator[Span]:
    """Without white space at the ends, and without those that are then no more than a part of a neighbour."""
    held: Span | None = None
    for span in spans:
        start, end = stripped(text, *span)
        if start == end or (held is not None and end <= held[1]):
            continue
        if held is not None and start > held[0]:
            yield held
        held = start, end
    if held is not None:
        yield held


def _first_that_occurs(text: str, start: int, end: int, separators: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """That separator and those after it. None that occurs: one no text holds, so that the whole stays one piece."""
    for index, separator in enumerate(separators):
        if separator == "" or text.find(separator, start, end) >= 0:
            return separator, separators[index + 1 :]
    return text[start:end] + "\0", ()


def _pieces(text: str, start: int, end: int, separator: str) -> Iterator[Span]:
    """The text between separators, each piece with the separator that closes it."""
    if separator == "":
        yield from ((position, position + 1) for position in range(start, end))
        return
    while start < end:
        cut = text.find(separator, start, end)
        after = end if cut < 0 else cut + len(separator)
        yield start, after
        start = after
