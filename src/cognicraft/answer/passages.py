"""From pieces of chunks to the passages that a model is given and a person is shown.

Takes: pieces (a chunk, or a part of one, with its rank). Returns: passages whose text stands in the document at their
span, white space between chunks given back as line breaks. Method: pieces of one document in text order, joined where
they touch, overlap in the same words, or leave only white space between them. Cost: linear.
What can go wrong: chunks of two revisions of a document disagree where they overlap; they stay apart then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from cognicraft.answer.fence import fenced
from cognicraft.records import StoredChunk

KNOWN_WHITE_GAP = 2
"""Characters between two chunks that hold no other chunk: none is that short in practice."""

_SHOWN_PLACES = 3


@dataclass(frozen=True, slots=True)
class Place:
    """Where a text stands. `page`..`page_end` inclusive, 0 where the format has no pages."""

    document_id: str
    source: str
    pointer: str
    start: int
    end: int
    page: int
    page_end: int
    chunk_ids: tuple[str, ...]

    @property
    def file(self) -> str:
        """As a person names it: `huts.json#/1` for one document of many in a file."""
        return f"{self.source}#{self.pointer}" if self.pointer else self.source

    @property
    def pages(self) -> str:
        if not self.page:
            return ""
        return f"{self.page}" if self.page_end <= self.page else f"{self.page}-{self.page_end}"

    @property
    def short_file(self) -> str:
        """The last two parts of the path: enough to know it by, and no more of somebody's folders than that."""
        return "/".join(self.file.replace("\\", "/").rsplit("/", 2)[-2:])


@dataclass(frozen=True, slots=True)
class EvidencePassage:
    """A passage with the number that it is cited by.

    text: word for word as in the document at `place`. also: other places of chunks with equal words. cut: it goes on
    in the document. score: of its best chunk, larger is better.
    """

    number: int
    place: Place
    text: str
    title: str = ""
    heading_path: tuple[str, ...] = ()
    also: tuple[Place, ...] = ()
    score: float = 0.0
    cut: bool = False

    def shown(self, mark: str) -> str:
        """As it stands in a prompt."""
        title = "" if self.title in ("", *self.heading_path) else self.title
        others = [f"{place.short_file}{f' page {place.pages}' if place.pages else ''}" for place in self.also]
        if len(others) > _SHOWN_PLACES:
            others[_SHOWN_PLACES:] = [f"and {len(others) - _SHOWN_PLACES} more"]
        return fenced(
            self.number,
            self.text,
            mark=mark,
            attributes=(
                ("file", self.place.short_file),
                ("page", self.place.pages),
                ("title", title),
                ("heading", " > ".join(self.heading_path)),
                ("also", "; ".join(others)),
            ),
        )


@dataclass(frozen=True)
class Piece:
    """A chunk or a part of it, at `start`..`end` of the document. also: chunks elsewhere with equal words."""

    stored: StoredChunk
    start: int
    end: int
    rank: int = 0
    score: float = 0.0
    also: tuple[StoredChunk, ...] = ()
    cut: bool = False

    @cached_property
    def text(self) -> str:
        chunk = self.stored.chunk.chunk
        return chunk.text[self.start - chunk.start : self.end - chunk.start]


def joined(pieces: Sequence[Piece], *, white_gap: int | None = KNOWN_WHITE_GAP) -> list[list[Piece]]:
    """Runs of pieces that make one passage each, best rank first, each in text order.

    white_gap: characters between pieces that are known to be white space; None: all are (no chunk is missing).
    """
    runs: list[list[Piece]] = []
    text, end, open_end = "", 0, False
    for piece in sorted(pieces, key=lambda one: (one.stored.document_id, one.start, one.end)):
        run = runs[-1] if runs else None
        same = run is not None and run[0].stored.document_id == piece.stored.document_id
        gap = piece.start - end
        if run is not None and same and gap > 0:
            # What follows a cut is not white space: it is what was cut off.
            fits = not open_end and (white_gap is None or gap <= white_gap)
        elif run is not None and same:
            shared = text[piece.start - run[0].start :]
            fits = shared.startswith(piece.text) or piece.text.startswith(shared)
        else:
            fits = False
        if run is None or not fits:
            runs.append([piece])
            text, end, open_end = piece.text, piece.end, piece.cut
            continue
        run.append(piece)
        if piece.end > end or (piece.end == end and not piece.cut):
            text += "\n" * max(gap, 0) + piece.text[max(-gap, 0) :]
            end, open_end = piece.end, piece.cut
    return sorted(runs, key=lambda run: min(piece.rank for piece in run))


def passage_of(run: Sequence[Piece], number: int) -> EvidencePassage:
    """One passage from pieces in text order that touch or overlap."""
    text, end = "", run[0].start
    for piece in run:
        if piece.end > end:
            gap = piece.start - end
            text += "\n" * max(gap, 0) + piece.text[max(-gap, 0) :]
            end = piece.end
    best = min(run, key=lambda piece: piece.rank)
    return EvidencePassage(
        number=number,
        place=_place([piece.stored for piece in run], run[0].start, end),
        text=text,
        title=best.stored.title,
        heading_path=run[0].stored.chunk.chunk.heading_path,
        also=_places([chunk for piece in run for chunk in piece.also]),
        score=best.score,
        cut=all(piece.cut for piece in run if piece.end == end),
    )


def _place(chunks: Sequence[StoredChunk], start: int, end: int) -> Place:
    first = chunks[0]
    pages = [page for one in chunks for page in (one.chunk.chunk.page, one.chunk.chunk.page_end) if page]
    return Place(
        document_id=first.document_id,
        source=first.source,
        pointer=first.pointer,
        start=start,
        end=end,
        page=min(pages, default=0),
        page_end=max(pages, default=0),
        chunk_ids=tuple(dict.fromkeys(one.id for one in chunks)),
    )


def _places(chunks: Sequence[StoredChunk]) -> tuple[Place, ...]:
    """Of the further chunks, those of one document side by side as one place, in the order in which they came."""
    pieces = [
        Piece(chunk, chunk.chunk.chunk.start, chunk.chunk.chunk.end, rank=rank) for rank, chunk in enumerate(chunks)
    ]
    runs = joined(pieces)
    return tuple(_place([piece.stored for piece in run], run[0].start, max(p.end for p in run)) for run in runs)
