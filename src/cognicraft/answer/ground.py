"""What a model is given to answer from: numbered passages within a budget, and what was left out.

Takes: chunks, a budget in tokens, a way to count them. Returns: `Evidence`. Method: chunks with equal words count
once, the others kept as further places; then best first until the budget is full, headers included; at most one is
cut, at the end of a sentence; those of one document that touch or overlap become one passage (`passages.py`).
`whole_document` takes a document from its beginning, in passages short enough to cite. Cost: one count of the passage
that each chunk joins, a few ms for 20 chunks.
What can go wrong: only a gap of at most two characters between ranked chunks is known to be white space (chunks hold
all the rest), so others stay apart; the gap is given back as line breaks, as wherever a document's text is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from cognicraft.answer.fence import mark_for
from cognicraft.answer.passages import EvidencePassage, Piece, joined, passage_of
from cognicraft.ingest.sentences import sentences
from cognicraft.records import StoredChunk

CITABLE_TOKENS = 300
"""About how long a passage of a whole document is."""

CountTokens = Callable[[str], int]


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a model is given. Passages are numbered from 1, best first (of a whole document: in text order).

    mark: what the borders of passages carry; it occurs in none of them. tokens: of all passages with their headers, at
    most `max_tokens`. left_out: ids of chunks of which nothing is given. notes: what was joined, dropped, cut.
    """

    passages: tuple[EvidencePassage, ...]
    mark: str
    tokens: int
    max_tokens: int
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def passage(self, number: int) -> EvidencePassage | None:
        return self.passages[number - 1] if 1 <= number <= len(self.passages) else None


def pack(
    stored: Sequence[StoredChunk],
    *,
    max_tokens: int,
    count_tokens: CountTokens,
    scores: Mapping[str, float] | None = None,
) -> Evidence:
    """Passages from ranked chunks, best first. scores: by chunk id, larger is better, kept for who shows them."""
    chunks = list({chunk.id: chunk for chunk in stored}.values())
    candidates = _distinct(chunks, scores or {})
    mark = _mark(chunks)
    count = cache(count_tokens)

    def fits(pieces: Sequence[Piece]) -> bool:
        return sum(count(passage.shown(mark)) for passage in _numbered(pieces)) <= max_tokens

    chosen: list[Piece] = []
    left_out: list[Piece] = []
    for candidate in candidates:
        if chosen and chosen[-1].cut:
            left_out.append(candidate)
        elif fits([*chosen, candidate]):
            chosen.append(candidate)
        # A first passage longer than the budget may be cut within a sentence: part of it is better than nothing.
        elif shorter := _cut(candidate, lambda piece: fits([*chosen, piece]), anywhere=not chosen):
            chosen.append(shorter)
        else:
            left_out.append(candidate)
    passages = _numbered(chosen)
    return Evidence(
        passages=passages,
        mark=mark,
        tokens=sum(count(passage.shown(mark)) for passage in passages),
        max_tokens=max_tokens,
        left_out=tuple(chunk.id for piece in left_out for chunk in (piece.stored, *piece.also)),
        notes=_notes(len(chunks), chosen, passages, left_out, max_tokens),
    )


def whole_document(chunks: Sequence[StoredChunk], *, max_tokens: int, count_tokens: CountTokens) -> Evidence:
    """A document's text from its beginning, as far as the budget goes, in passages of about `CITABLE_TOKENS` tokens.

    chunks: all of the document's, in any order.
    """
    ordered = sorted({chunk.id: chunk for chunk in chunks}.values(), key=lambda one: one.chunk.chunk.start)
    mark = _mark(ordered)
    count = cache(count_tokens)
    passages: list[EvidencePassage] = []
    spent = 0
    cut = False
    for run in _citable(ordered, count):
        number = len(passages) + 1

        def fits(pieces: Sequence[Piece], *, number: int = number, room: int = max_tokens - spent) -> bool:
            return count(passage_of(pieces, number).shown(mark)) <= room

        given = _beginning(run, fits, anywhere=not passages)
        cut = given != run
        if given:
            passages.append(passage_of(given, number))
            spent += count(passages[-1].shown(mark))
        if cut:
            break
    kept = {identifier for passage in passages for identifier in passage.place.chunk_ids}
    return Evidence(
        passages=tuple(passages),
        mark=mark,
        tokens=spent,
        max_tokens=max_tokens,
        left_out=tuple(chunk.id for chunk in ordered if chunk.id not in kept),
        notes=(_not_to_its_end(ordered, passages, max_tokens),) if cut else (),
    )


# ── ranked chunks ─────────────────────────────────────────────────────────────────────────────────────────────


def _distinct(chunks: Sequence[StoredChunk], scores: Mapping[str, float]) -> list[Piece]:
    """One piece for each text, at the best rank of it, with the chunks elsewhere that say the same.

    It stands for the document that comes first in the ranking, so that what is side by side there can be joined.
    """
    first_seen: dict[str, int] = {}
    groups: dict[str, list[StoredChunk]] = {}
    for rank, chunk in enumerate(chunks):
        first_seen.setdefault(chunk.document_id, rank)
        groups.setdefault(" ".join(chunk.chunk.chunk.text.split()).casefold(), []).append(chunk)
    pieces = []
    ranks = {chunk.id: rank for rank, chunk in enumerate(chunks)}
    for group in groups.values():
        chosen = min(group, key=lambda one: (first_seen[one.document_id], ranks[one.id]))
        pieces.append(
            Piece(
                stored=chosen,
                start=chosen.chunk.chunk.start,
                end=chosen.chunk.chunk.end,
                rank=ranks[group[0].id],
                score=scores.get(group[0].id, 0.0),
                also=tuple(one for one in group if one is not chosen),
            )
        )
    return sorted(pieces, key=lambda piece: piece.rank)


def _numbered(pieces: Sequence[Piece]) -> tuple[EvidencePassage, ...]:
    return tuple(passage_of(run, number) for number, run in enumerate(joined(pieces), start=1))


def _mark(chunks: Sequence[StoredChunk]) -> str:
    seen = [text for one in chunks for text in (one.chunk.chunk.text, one.title, *one.chunk.chunk.heading_path)]
    return mark_for([*seen, *(one.source + one.pointer for one in chunks)])


def _cut(piece: Piece, fits: Callable[[Piece], bool], *, anywhere: bool = False) -> Piece | None:
    """As many of its first sentences as fit; `anywhere`: if not even one does, of its words."""
    ends = [piece.start + end for _, end in sentences(piece.text)]
    shorter = _longest(piece, ends, fits)
    if shorter is None and anywhere:
        words = [piece.start + at for at in range(1, len(piece.text)) if piece.text[at].isspace()]
        shorter = _longest(piece, words, fits) or _longest(piece, range(piece.start + 1, piece.end), fits)
    return shorter


def _longest(piece: Piece, ends: Sequence[int], fits: Callable[[Piece], bool]) -> Piece | None:
    """Up to the last end that fits, by halving; nothing if none does."""
    ends = [end for end in ends if piece.start < end < piece.end and piece.text[: end - piece.start].strip()]
    low, high = 0, len(ends)
    while low < high:
        middle = (low + high + 1) // 2
        if fits(replace(piece, end=ends[middle - 1], cut=True)):
            low = middle
        else:
            high = middle - 1
    return replace(piece, end=ends[low - 1], cut=True) if low else None


def _notes(
    total: int, chosen: Sequence[Piece], passages: Sequence[EvidencePassage], left_out: Sequence[Piece], max_tokens: int
) -> tuple[str, ...]:
    notes = []
    repeats = sum(len(piece.also) for piece in [*chosen, *left_out])
    if repeats:
        notes.append(
            f"{repeats} of {total} passages repeat{'s' if repeats == 1 else ''} the words of another: named as a "
            "further source, not given twice."
        )
    together = [len(passage.place.chunk_ids) for passage in passages if len(passage.place.chunk_ids) > 1]
    if together:
        notes.append(f"{sum(together)} of {total} passages stand side by side and were joined into {len(together)}.")
    if any(piece.cut for piece in chosen):
        notes.append(f"1 of {total} passages was cut: the evidence is limited to {max_tokens:,} tokens.")
    if left_out:
        were = "was" if len(left_out) == 1 else "were"
        notes.append(
            f"{len(left_out)} of {total} passages {were} left out: the evidence is limited to {max_tokens:,} tokens."
        )
    return tuple(notes)


# ── a whole document ──────────────────────────────────────────────────────────────────────────────────────────


def _citable(ordered: Sequence[StoredChunk], count: CountTokens) -> Iterator[list[Piece]]:
    """Pieces in text order, nothing twice, in runs of about `CITABLE_TOKENS` tokens."""
    run: list[Piece] = []
    tokens = 0
    for piece in _once(ordered):
        for part in _parts(piece, count):
            own = count(part.text)
            if run and tokens + own > CITABLE_TOKENS:
                yield run
                run, tokens = [], 0
            run.append(part)
            tokens += own
    if run:
        yield run


def _once(ordered: Sequence[StoredChunk]) -> Iterator[Piece]:
    """Each chunk without what the ones before it hold already."""
    done = 0
    for rank, stored in enumerate(ordered):
        chunk = stored.chunk.chunk
        start = max(chunk.start, done)
        rest = chunk.text[start - chunk.start :]
        start += len(rest) - len(rest.lstrip())
        if start < chunk.end:
            yield Piece(stored, start, chunk.end, rank=rank)
            done = chunk.end


def _parts(piece: Piece, count: CountTokens) -> Iterator[Piece]:
    """A piece, cut at ends of sentences where it is too long to be cited as one."""
    if count(piece.text) <= CITABLE_TOKENS:
        yield piece
        return
    start = end = piece.start
    for _, sentence_end in sentences(piece.text):
        next_end = piece.start + sentence_end
        if end > start and count(piece.text[start - piece.start : next_end - piece.start]) > CITABLE_TOKENS:
            yield replace(piece, start=start, end=end)
            start = end + _white(piece.text[end - piece.start :])
        end = next_end
    if piece.end > start:
        yield replace(piece, start=start)


def _white(text: str) -> int:
    return len(text) - len(text.lstrip())


def _beginning(run: list[Piece], fits: Callable[[Sequence[Piece]], bool], *, anywhere: bool) -> list[Piece]:
    """As much of a run as fits, the last piece cut at the end of a sentence."""
    if fits(run):
        return run
    whole = next((count for count in range(len(run) - 1, 0, -1) if fits(run[:count])), 0)
    last = _cut(run[whole], lambda piece: fits([*run[:whole], piece]), anywhere=anywhere and not whole)
    return [*run[:whole], *([last] if last else [])]


def _not_to_its_end(ordered: Sequence[StoredChunk], passages: Sequence[EvidencePassage], max_tokens: int) -> str:
    start = ordered[0].chunk.chunk.start
    length = max(one.chunk.chunk.end for one in ordered) - start
    left = length - (passages[-1].place.end - start if passages else 0)
    share = min(max(round(100 * left / max(length, 1)), 1), 100)
    page = passages[-1].place.page_end if passages else 0
    after = f", after page {page}," if page else ""
    name = ordered[0].source.replace("\\", "/").rsplit("/", 1)[-1]
    return (
        f"{name} was not read to its end: the last {share} %{after} were left out, because the evidence is limited to "
        f"{max_tokens:,} tokens."
    )
