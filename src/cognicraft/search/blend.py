"""A reranker's scores to a ranking: the first hits in a new order, every other hit after them as it was.

Takes: a `Ranking`, the text to read of each candidate, a `Reranker`. Returns: `Blended`: the new `Ranking`, the
    reranker's own list, and in sentences what was not judged.
Method: the first `candidates` hits are read. With a `share` (a language model's grades) the new score is
    (1 - share) x original + share x grade, both in 0..1: the original by min-max over the candidates, the grade divided
    by `full_marks`. Without one (cross-encoders, rerank services) the reranker's score alone decides. A candidate
    without a score keeps its place, the rank that it had, and the others are ordered around it.
Cost: the reranker's. With `budget_ms` it reads in slices, best hits first, and the measured rate decides how many fit.
What can go wrong: the reranker fails, in whole or for some passages: the old order stays there, and a note says so.
    A hit is never lost.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from cognicraft.errors import ModelError, UsageError
from cognicraft.protocols import Reranker
from cognicraft.records import Ranking, Scored
from cognicraft.search.fuse import ranked

LLM_SHARE = 0.7
"""What a language model's grade counts beside the score that a hit had."""
_FIRST_SLICE = 4


@dataclass(frozen=True, slots=True)
class Judgement:
    """Scores as a `Reranker` gives them, and what there is to say about them, in sentences."""

    scores: tuple[float | None, ...]
    notes: tuple[str, ...] = ()


@runtime_checkable
class Judge(Protocol):
    """A `Reranker` that can also say what went wrong on the way; `blend` asks it in this way."""

    def judge(self, question: str, passages: Sequence[str]) -> Judgement: ...


@dataclass(frozen=True, slots=True)
class Blended:
    """The new ranking and how it came about.

    judged: the reranker's own list (its scores, best first): one more list for the places of a hit. asked: candidates
    that there were; judged and asked differ where some got no score.
    """

    ranking: Ranking
    judged: Ranking
    asked: int
    notes: tuple[str, ...] = ()
    elapsed_ms: float = 0.0


def blend(
    ranking: Ranking,
    texts: Mapping[str, str],
    *,
    question: str,
    reranker: Reranker,
    candidates: int = 20,
    share: float | None = None,
    full_marks: float = 10.0,
    budget_ms: float | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> Blended:
    """Let `reranker` judge the first `candidates` hits.

    texts: chunk id -> what to read of it; a candidate without a text is not judged. share: 0..1, what the judgement
    counts (`LLM_SHARE` for a language model); None where it alone decides. full_marks: the judgement that counts as 1.
    budget_ms: for rerankers that run here; after the first slice it reads no more than fits.

    A failing reranker is a note, not an error: the ranking stays as it was.
    Raises: UsageError for `candidates` below 1, a share outside 0..1, or `full_marks` or `budget_ms` not above 0.
    """
    if candidates < 1 or not full_marks > 0 or (share is not None and not 0 <= share <= 1):
        raise UsageError(
            f"candidates is {candidates}, share {share}, full_marks {full_marks}.",
            remedy="At least 1 candidate is read; a share is between 0 and 1; full marks are above 0.",
        )
    if budget_ms is not None and not budget_ms > 0:
        raise UsageError(f"The time for reranking is {budget_ms} ms.", remedy="Give milliseconds above 0.")
    if not ranking:
        return Blended((), (), 0)
    started = clock()
    head = ranking[:candidates]
    readable = [hit.chunk_id for hit in head if hit.chunk_id in texts]
    notes: list[str] = []
    scores: dict[str, float] = {}
    if len(readable) < len(head):
        notes.append(f"{reranker.name} was not asked about {_passages(len(head) - len(readable))} without a text.")
    try:
        done = _judged(readable, texts, question, reranker, scores, notes, budget_ms, clock)
    except ModelError as error:
        notes.append(f"The hits kept their order, for {reranker.name} failed. {error}")
        return Blended(ranking, (), len(head), tuple(notes), _since(started, clock))
    if done < len(readable):
        notes.append(f"{reranker.name} read {done} of {len(readable)} candidates in its {budget_ms:g} ms.")
    if len(scores) < done:
        notes.append(f"{reranker.name} gave {_passages(done - len(scores))} of {done} no score: they kept their place.")
    if not scores:
        return Blended(ranking, (), len(head), tuple(notes), _since(started, clock))
    judged = ranked(scores)
    new = _shared(head, scores, share, full_marks) if share is not None else scores
    ordered = _around_the_unjudged(head, new)
    return Blended(
        _settled(ordered, ranking[len(head) :], new), judged, len(head), tuple(notes), _since(started, clock)
    )


def _judged(
    ids: Sequence[str],
    texts: Mapping[str, str],
    question: str,
    reranker: Reranker,
    scores: dict[str, float],
    notes: list[str],
    budget_ms: float | None,
    clock: Callable[[], float],
) -> int:
    """Fills `scores` in the order of `ids`; how many were asked about."""
    started = clock()
    done = 0
    size = len(ids) if budget_ms is None else _FIRST_SLICE
    while done < len(ids) and size > 0:
        part = ids[done : done + size]
        passages = [texts[chunk_id] for chunk_id in part]
        if isinstance(reranker, Judge):
            judgement = reranker.judge(question, passages)
            notes.extend(note for note in judgement.notes if note not in notes)
            values: Sequence[float | None] = judgement.scores
        else:
            values = reranker.scores(question, passages)
        scores.update(
            (chunk_id, float(value))
            for chunk_id, value in zip(part, values, strict=True)
            if value is not None and math.isfinite(value)
        )
        done += len(part)
        if budget_ms is not None:
            elapsed_ms = _since(started, clock)
            size = int((budget_ms - elapsed_ms) * done / elapsed_ms) if elapsed_ms > 0 else len(ids)
    return done


def _shared(head: Ranking, scores: Mapping[str, float], share: float, full_marks: float) -> dict[str, float]:
    """(1 - share) x original + share x judgement of those that were judged; equal originals count as 1 each."""
    low, high = min(hit.score for hit in head), max(hit.score for hit in head)
    spread = high - low
    return {
        hit.chunk_id: (1 - share) * ((hit.score - low) / spread if spread > 0 else 1.0)
        + share * min(1.0, max(0.0, scores[hit.chunk_id] / full_marks))
        for hit in head
        if hit.chunk_id in scores
    }


def _around_the_unjudged(head: Ranking, new: Mapping[str, float]) -> list[str]:
    """The judged ones by their new score (ties by chunk id) on the ranks that the others leave free."""
    best = iter(ranked(new))
    return [next(best).chunk_id if hit.chunk_id in new else hit.chunk_id for hit in head]


def _settled(ordered: Sequence[str], rest: Ranking, new: Mapping[str, float]) -> Ranking:
    """Scores that fall along the order, as a `Ranking` promises.

    A judged hit has its new score; one that was not has that of the judged hit before it (behind none: of the next).
    The rest is moved down as a whole until it begins below. Where equal scores would turn the order round (ties go by
    chunk id), the later one gets the next smaller number.
    """
    score = max(new.values())
    hits: list[Scored] = []
    for chunk_id in ordered:
        score = new.get(chunk_id, score)
        hits.append(_below(hits, chunk_id, score))
    if rest:
        lowest = hits[-1].score
        for hit in rest:
            hits.append(_below(hits, hit.chunk_id, lowest - _step(lowest) - (rest[0].score - hit.score)))
    return tuple(hits)


def _below(hits: Sequence[Scored], chunk_id: str, score: float) -> Scored:
    if hits:
        last = hits[-1]
        if score > last.score or (score == last.score and chunk_id < last.chunk_id):
            score = math.nextafter(last.score, -math.inf)
    return Scored(chunk_id, score)


def _step(score: float) -> float:
    return 1e-6 * max(1.0, abs(score))


def _passages(count: int) -> str:
    return f"{count} passage{'' if count == 1 else 's'}"


def _since(started: float, clock: Callable[[], float]) -> float:
    return (clock() - started) * 1000.0
