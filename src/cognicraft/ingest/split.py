"""The splitter of the product: structure first, then sentences, then words, then tokens.

Takes a document; returns chunks of at most `max_tokens` encoder tokens, each beginning with up to
`overlap_tokens` of the one before, in whole sentences and never across a heading. Method, our own: blocks
(heading, paragraph, list, table, code) are taken apart into the smallest pieces worth keeping whole (a
sentence, a table row, a line of code), and the cuts between pieces are chosen all at once, by the least sum
of how empty the chunks are and how much each cut breaks, as Knuth and Plass choose line breaks. So a
heading stays with what follows, a table is cut between its rows, and no tail of three words is left over.
Cost: one tokenizer pass and time linear in the text. What can go wrong: a document whose reader found no
structure is cut at blank lines and sentences only.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from cognicraft.errors import UsageError
from cognicraft.ingest.sentences import sentences
from cognicraft.ingest.spans import TokenPositions, chunks_from_spans, stripped
from cognicraft.protocols import TokenOffsets
from cognicraft.records import Block, BlockKind, Chunk, Document

Span = tuple[int, int]

# What a chunk costs that is full, and what a cut before a piece adds, in units of an empty chunk.
_CHUNK_COST = 0.2
_CUT_AFTER_HEADING = 3.0
_CUT_INSIDE_SENTENCE = 1.0
_CUT_INSIDE_TABLE = 0.6
_CUT_AFTER_INTRODUCTION = 0.6  # between a table, a list or code and the line above that says what it is
_CUT_AFTER_TABLE = -0.3
_CUT_AT_SENTENCE = 0.3
_CUT_AT_LINE = 0.2
_CUT_AT_BLOCK = -0.3
_CUT_AT_BLANK_LINE = 0.0
_CUT_AT_SECTION = -0.5
_CUT_AT_TOP_SECTION = -1.0  # outweighs two chunks a third full against one of two thirds

_TABLE_CELL = " | "
_BLANK_LINES = re.compile(r"\n[^\S\n]*\n")
_LINE = re.compile(r"[^\n]*\S[^\n]*")


@dataclass(frozen=True, slots=True)
class _Piece:
    """The smallest thing kept whole, what a cut before it costs, and whether overlap may reach back over that cut."""

    start: int
    end: int
    cut: float
    new_section: bool = False


class StructureSplitter:
    """Sizes in tokens of the workspace's first encoder. Why 160 without overlap: docs/decisions/0006-splitting.md.

    Raises: UsageError for sizes that cannot be meant.
    """

    def __init__(self, *, max_tokens: int = 160, overlap_tokens: int = 0) -> None:
        if max_tokens < 1:
            raise UsageError(
                f"A chunk of at most {max_tokens} tokens cannot hold text.",
                remedy="Give max_tokens a value of 1 or more; 254 is what the shipped encoder reads.",
            )
        if not 0 <= overlap_tokens <= max_tokens // 2:
            raise UsageError(
                f"An overlap of {overlap_tokens} tokens does not fit chunks of {max_tokens}.",
                remedy="Give overlap_tokens a value from 0 to half of max_tokens.",
            )
        self.max_tokens = max_tokens
        self.overlap_tokens = overlap_tokens

    def __call__(self, document: Document, *, offsets: TokenOffsets) -> list[Chunk]:
        if not document.text.strip():
            return []
        tokens = TokenPositions(document.text, offsets=offsets)
        pieces = list(self._pieces(document, tokens))
        return chunks_from_spans(document, self._packed(pieces, tokens), tokens=tokens)

    def _pieces(self, document: Document, tokens: TokenPositions) -> Iterator[_Piece]:
        """Every non-white character in exactly one piece, none over the budget."""
        text = document.text
        top = _top_level(document)
        before: Block | None = None
        for block in _blocks(document):
            new_section = block.kind == "heading" and (before is None or before.kind != "heading")
            cut = _cut_between(text, before, block, top)
            for start, end, inside in self._merged(_parts(text, block), tokens):
                first = True
                for part_start, part_end in self._fitting(text, start, end, tokens):
                    yield _Piece(part_start, part_end, cut if first else _CUT_INSIDE_SENTENCE, new_section)
                    first, new_section = False, False
                cut = inside
            before = block

    def _merged(
        self, parts: Iterable[tuple[int, int, float]], tokens: TokenPositions
    ) -> Iterator[tuple[int, int, float]]:
        """Parts with the cost of a cut after each; very small ones joined, so that packing stays linear."""
        smallest = self.max_tokens // 16
        held: tuple[int, int, float] | None = None
        for start, end, cut in parts:
            if held is not None and tokens.count(held[0], end) <= smallest:
                held = held[0], end, cut
                continue
            if held is not None:
                yield held
            held = start, end, cut
        if held is not None:
            yield held

    def _fitting(self, text: str, start: int, end: int, tokens: TokenPositions) -> Iterator[Span]:
        """The span itself if it fits, else cut at words, and at tokens where one word is too long."""
        # Less than the budget, so that an overlap and the end of the sentence before can share a chunk with it.
        budget = self.max_tokens - self.overlap_tokens
        while tokens.count(start, end) > budget:
            limit = tokens.after(start, end, budget)
            if limit == end:
                break
            cut = limit
            while cut > start and not text[cut].isspace() and not text[cut - 1].isspace():
                cut -= 1
            first, last = stripped(text, start, cut if cut > start else limit)
            if first < last:
                yield first, last
            start = cut if cut > start else limit
        first, last = stripped(text, start, end)
        if first < last:
            yield first, last

    def _packed(self, pieces: list[_Piece], tokens: TokenPositions) -> list[Span]:
        """Spans of chunks: the cuts with the least total cost, found from left to right."""
        first_token = [tokens.before(piece.start) for piece in pieces]
        end_token = [tokens.before(piece.end) for piece in pieces]
        reach = self._reach(pieces, first_token)
        room = self.max_tokens - self.overlap_tokens
        # best[j]: least cost of chunking pieces[:j]; origin[j]: where its last chunk begins.
        best = [0.0]
        origin = [0]
        for j, end in enumerate(end_token):
            least, choice = float("inf"), j
            for i in range(j, -1, -1):
                if end - first_token[reach[i]] > self.max_tokens and i < j:
                    break
                empty = max(1.0 - (end - first_token[i]) / room, 0.0)
                cost = best[i] + pieces[i].cut + _CHUNK_COST + empty * empty
                if cost < least:
                    least, choice = cost, i
            best.append(least)
            origin.append(choice)
        spans: list[Span] = []
        j = len(pieces)
        while j > 0:
            i = origin[j]
            # Overlap never takes up the whole of the chunk before, however short that one is.
            back = min(max(reach[i], origin[i] + 1), i)
            spans.append((pieces[back].start, pieces[j - 1].end))
            j = i
        return spans[::-1]

    def _reach(self, pieces: list[_Piece], first_token: list[int]) -> list[int]:
        """For each piece as the first of a chunk: the earlier piece at which its overlap begins, or itself."""
        reach = list(range(len(pieces)))
        if not self.overlap_tokens:
            return reach
        for index in range(1, len(pieces)):
            first = index
            while (
                first > 0
                and not pieces[first].new_section
                and pieces[first].cut != _CUT_AFTER_HEADING
                and first_token[index] - first_token[first - 1] <= self.overlap_tokens
            ):
                first -= 1
            reach[index] = first
        return reach


def _cut_between(text: str, before: Block | None, block: Block, top: int) -> float:
    """What a cut between two blocks costs; `top` is the level of headings that make sections."""
    if before is None:
        return 0.0
    if before.kind == "heading":
        return _CUT_AFTER_HEADING
    if block.kind == "heading":
        return _CUT_AT_TOP_SECTION if block.level <= top else _CUT_AT_SECTION
    if before.kind == "table":
        return _CUT_AFTER_TABLE
    if block.kind == "table" or text[before.end - 1] == ":":
        return _CUT_AFTER_INTRODUCTION
    return _CUT_AT_BLOCK


def _top_level(document: Document) -> int:
    """The outermost level with more than one heading: a single title over all makes no sections."""
    levels = Counter(block.level for block in document.blocks if block.kind == "heading")
    return min((level for level, count in levels.items() if count > 1), default=min(levels, default=0))


def _blocks(document: Document) -> Iterator[Block]:
    """The reader's blocks in order, with anything that they leave out as paragraphs, or tables where all is rows."""
    text = document.text
    done = 0
    for block in document.blocks:
        start, end = stripped(text, max(block.start, done), min(block.end, len(text)))
        if start >= end:
            continue
        yield from _paragraphs(text, done, start)
        kind = _kind(text, start, end) if block.kind == "paragraph" else block.kind
        yield Block(kind=kind, start=start, end=end, level=block.level)
        done = end
    yield from _paragraphs(text, done, len(text))


def _paragraphs(text: str, start: int, end: int) -> Iterator[Block]:
    while start < end:
        blank = _BLANK_LINES.search(text, start, end)
        stop = blank.end() if blank else end
        first, last = stripped(text, start, stop)
        if first < last:
            yield Block(kind=_kind(text, first, last), start=first, end=last)
        start = stop


def _kind(text: str, start: int, end: int) -> BlockKind:
    """Of a paragraph: a table where every line is a row, however plain the file it came from."""
    return "table" if text.count(_TABLE_CELL, start, end) > text.count("\n", start, end) > 0 else "paragraph"


def _parts(text: str, block: Block) -> Iterator[tuple[int, int, float]]:
    """What a block is made of: start, end, and what a cut after it costs."""
    spans = _spans(text, block.kind, block.start, block.end)
    for index, (start, end) in enumerate(spans):
        following = spans[index + 1][0] if index + 1 < len(spans) else block.end
        lines = text.count("\n", end, following)
        if block.kind == "table":
            cut = _CUT_INSIDE_TABLE
        elif lines > 1:
            cut = _CUT_AT_BLANK_LINE
        elif lines == 1:
            cut = _CUT_AT_LINE
        else:
            cut = _CUT_AT_SENTENCE
        yield start, end, cut


def _spans(text: str, kind: BlockKind, start: int, end: int) -> list[Span]:
    if kind == "heading":
        return [(start, end)]
    if kind in ("table", "code"):
        return [stripped(text, match.start(), match.end()) for match in _LINE.finditer(text, start, end)]
    return sentences(text, start=start, end=end)
