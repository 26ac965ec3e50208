"""From spans of a document to its chunks: pages, heading path, tokens, occurrence.

Takes a document and half-open spans in text order; returns chunks. Both splitters end here, so that what a
chunk knows of itself never depends on how it was cut. Cost: linear in blocks, pages and chunks, plus one
pass of the encoder's tokenizer over the text, in pieces of about 50,000 characters so that memory stays
flat on long documents. What can go wrong: a token cut in two counts as one; a word that the encoder gives
up on (over 64 characters in one token, a base64 blob) is counted as if it were cut every 64 characters, as
it is when it has to be cut.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable

from cognicraft.protocols import TokenOffsets
from cognicraft.records import Chunk, Document

_PIECE_CHARACTERS = 50_000
_LONGEST_TOKEN = 64


class TokenPositions:
    """Where the encoder's tokens begin in one text, for counting and for cutting. One tokenizer pass to make."""

    def __init__(self, text: str, *, offsets: TokenOffsets) -> None:
        self._starts: list[int] = []
        for piece_start, piece_end in _pieces(text):
            done = piece_start
            for token_start, token_end in offsets(text[piece_start:piece_end]):
                first, last = piece_start + token_start, piece_start + token_end
                self._add_unseen(text, done, first)
                if last - first > _LONGEST_TOKEN:
                    self._add_long(text, first, last, offsets=offsets)
                else:
                    self._starts.append(first)
                done = max(done, last)
            self._add_unseen(text, done, piece_end)
        # Byte-level tokenizers give one character several tokens; the order of starts must hold for bisection.
        self._starts.sort()

    def before(self, position: int) -> int:
        """Tokens that begin before `position`."""
        return bisect_left(self._starts, position)

    def count(self, start: int, end: int) -> int:
        """Tokens that begin in `text[start:end]`."""
        return bisect_left(self._starts, end) - bisect_left(self._starts, start)

    def after(self, start: int, end: int, tokens: int) -> int:
        """The furthest position up to `end` so that `text[start:position]` holds at most `tokens`, yet some character.

        More only where one character has more tokens than that.
        """
        index = bisect_left(self._starts, start) + tokens
        position = self._starts[index] if index < len(self._starts) else end
        if position <= start:
            following = bisect_right(self._starts, start)
            position = self._starts[following] if following < len(self._starts) else end
        return min(position, end)

    def _add_unseen(self, text: str, start: int, end: int) -> None:
        """Long runs that the tokenizer drops (control characters) still take room: one token per 64 characters."""
        if end - start > _LONGEST_TOKEN and not text[start:end].isspace():
            self._starts.extend(range(start, end, _LONGEST_TOKEN))

    def _add_long(self, text: str, start: int, end: int, *, offsets: TokenOffsets) -> None:
        for first in range(start, end, _LONGEST_TOKEN):
            tokens = offsets(text[first : min(first + _LONGEST_TOKEN, end)])
            self._starts.extend(first + token_start for token_start, _ in tokens or [(0, 0)])


def chunks_from_spans(document: Document, spans: Iterable[tuple[int, int]], *, tokens: TokenPositions) -> list[Chunk]:
    """One chunk per span, stripped of white space at both ends; blank spans give none. Spans in order of start."""
    text = document.text
    page_starts = [page.start for page in document.pages]
    headings = [block for block in document.blocks if block.kind == "heading"]
    path: list[tuple[int, str]] = []
    next_heading = 0
    occurrences: Counter[str] = Counter()
    chunks: list[Chunk] = []
    for span_start, span_end in spans:
        start, end = stripped(text, span_start, span_end)
        if start == end:
            continue
        while next_heading < len(headings) and headings[next_heading].start <= start:
            heading = headings[next_heading]
            while path and path[-1][0] >= heading.level:
                path.pop()
            path.append((heading.level, text[heading.start : heading.end].strip()))
            next_heading += 1
        piece = text[start:end]
        page = page_end = 0
        if page_starts:
            page = document.pages[max(bisect_right(page_starts, start) - 1, 0)].number
            page_end = document.pages[max(bisect_right(page_starts, end - 1) - 1, 0)].number
        chunks.append(
            Chunk(
                text=piece,
                start=start,
                end=end,
                page=page,
                page_end=page_end,
                heading_path=tuple(title for _, title in path),
                tokens=tokens.count(start, end),
                occurrence=occurrences[piece],
            )
        )
        occurrences[piece] += 1
    return chunks


def stripped(text: str, start: int, end: int) -> tuple[int, int]:
    """The span without white space at its ends; (start, start) if nothing is left."""
    piece = text[start:end]
    bare = piece.strip()
    if not bare:
        return start, start
    first = start + len(piece) - len(piece.lstrip())
    return first, first + len(bare)


def _pieces(text: str) -> Iterable[tuple[int, int]]:
    """Spans that tile the text, cut at a line end or a space where there is one."""
    start = 0
    while start < len(text):
        end = min(start + _PIECE_CHARACTERS, len(text))
        if end < len(text):
            for white in ("\n", " "):
                cut = text.rfind(white, start + _PIECE_CHARACTERS // 2, end)
                if cut >= 0:
                    end = cut
                    break
        yield start, end
        start = end
