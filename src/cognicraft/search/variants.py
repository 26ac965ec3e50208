"""Several queries for one question: searched side by side, their rankings fused.

Takes: the planned queries, and a function that searches for one of them. Returns: one ranking over all that was found,
    and for every hit which queries found it, at which rank and with which score.
Method: reciprocal rank fusion (`search.fuse.rrf`) of the final rankings: the scores of two queries do not compare.
    k is 10 and the question weighs one more than all other queries together: at k = 60 and equal weights one wording
    that misses the point takes half of the right hits away (docs/decisions/0014-query-planning.md).
Cost: one search a query, `workers` at a time.
What can go wrong: a search that fails ends all: those not begun are dropped, those running are waited for (an engine
    must not be closed under them), and the error of the first query in order is raised.

A `hyde` query is an invented passage. `arms_for` lets it into the dense arms only: their encoder sees what it is about,
while the lexical arm would find its invented names and figures word for word. `embedders_for` has it encoded as the
documents were, because it is compared with them as one of their kind.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import partial
from typing import Generic, Protocol, TypeVar, cast

from cognicraft.errors import UsageError
from cognicraft.protocols import Embedder
from cognicraft.records import Encoding, PlannedQuery, QueryKind, Ranking
from cognicraft.search.fuse import Fusion, rrf
from cognicraft.search.retrieve import BOOLEAN

RRF_10 = partial(rrf, k=10.0)
_SHOWN_CHARACTERS = 60


class Searched(Protocol):
    """What a search for one query gives; `search.retrieve.Retrieved` is one."""

    @property
    def ranking(self) -> Ranking: ...
    @property
    def timings_ms(self) -> Mapping[str, float]: ...
    @property
    def warnings(self) -> tuple[str, ...]: ...


One = TypeVar("One", bound=Searched)


@dataclass(frozen=True, slots=True)
class FoundBy:
    """That a query found a hit: its place in the list of queries (from 0), rank (from 1) and score in its ranking."""

    query: int
    rank: int
    score: float


@dataclass(frozen=True, slots=True)
class FromVariants(Generic[One]):
    """The fused ranking with the way of every hit in it.

    queries: those that were searched with, the question first; each: what each of them gave, in the same order.
    found_by: chunk id -> the queries that found it, in their order.
    timings_ms: each step's time in the slowest query, `variants` all searches together, `fuse.variants` the fusion.
    """

    ranking: Ranking
    queries: tuple[PlannedQuery, ...]
    each: tuple[One, ...]
    found_by: Mapping[str, tuple[FoundBy, ...]]
    timings_ms: Mapping[str, float] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


def retrieve_variants(
    queries: Sequence[PlannedQuery],
    *,
    retrieve: Callable[[PlannedQuery], One],
    fuse: Fusion = RRF_10,
    weights: Mapping[QueryKind, float] | None = None,
    workers: int | None = None,
) -> FromVariants[One]:
    """Search for every query and fuse what they found; no hit is lost.

    weights: by kind of query, 1 for a kind that is not in it; left out, the question weighs one more than all
    the others together.
    workers: searches at a time; left out, one a core, 4 at most. One query keeps its own ranking and scores.
    Raises: UsageError for no query, no worker or a weight below 0; what `retrieve` raises.
    """
    if not queries:
        raise UsageError("There is nothing to search for.", remedy="Give at least the question itself.")
    workers = min(4, _cores()) if workers is None else workers
    if workers < 1:
        raise UsageError(f"{workers} searches at a time find nothing.", remedy="Let at least 1 run at a time.")
    started = time.perf_counter()
    each = _side_by_side(queries, retrieve, workers)
    searched = time.perf_counter()
    if len(queries) == 1:
        ranking = each[0].ranking
    else:
        given = {"original": float(len(queries))} if weights is None else weights
        names = [f"query {place}" for place in range(1, len(queries) + 1)]
        own = {name: given.get(query.kind, 1.0) for name, query in zip(names, queries, strict=True)}
        ranking = fuse({name: one.ranking for name, one in zip(names, each, strict=True)}, weights=own)
    found_by: dict[str, list[FoundBy]] = {hit.chunk_id: [] for hit in ranking}
    for place, one in enumerate(each):
        for rank, hit in enumerate(one.ranking, start=1):
            found_by[hit.chunk_id].append(FoundBy(place, rank, hit.score))
    timings: dict[str, float] = {}
    for one in each:
        for step, milliseconds in one.timings_ms.items():
            timings[step] = max(milliseconds, timings.get(step, 0.0))
    if len(queries) > 1:
        timings["variants"] = (searched - started) * 1000.0
        timings["fuse.variants"] = (time.perf_counter() - searched) * 1000.0
    return FromVariants(
        ranking=ranking,
        queries=tuple(queries),
        each=tuple(each),
        found_by={chunk_id: tuple(found) for chunk_id, found in found_by.items()},
        timings_ms=timings,
        warnings=_warnings(queries, each),
    )


def arms_for(query: PlannedQuery, arms: Sequence[str], *, dense: Collection[str]) -> list[str]:
    """The arms that a query is searched in: an invented passage in the dense ones, a Boolean rule only as it was given.

    Empty where none of the chosen arms fits: `searchable` leaves such a query out.
    """
    if query.kind == "original":
        return list(arms)
    return [arm for arm in arms if arm in dense or (query.kind != "hyde" and arm != BOOLEAN)]


def searchable(
    queries: Sequence[PlannedQuery], arms: Sequence[str], *, dense: Collection[str]
) -> tuple[tuple[PlannedQuery, ...], tuple[str, ...]]:
    """The queries that the chosen arms can search for, and a sentence on those left out."""
    kept = tuple(query for query in queries if arms_for(query, arms, dense=dense))
    left = len(queries) - len(kept)
    listed = ", ".join(arms)
    return kept, (
        f"{left} further queries of the plan were left out: {listed} cannot search for them.",
    ) if left else ()


def embedders_for(query: PlannedQuery, embedders: Mapping[str, Embedder]) -> Mapping[str, Embedder]:
    """The encoders as a query needs them: an invented passage is encoded as a document, with the prefix of one."""
    if query.kind != "hyde":
        return embedders
    return {name: cast(Embedder, _AsPassage(embedder)) for name, embedder in embedders.items()}


class _AsPassage:
    """An encoder that takes what it is asked for a passage."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    def __getattr__(self, name: str) -> object:
        return getattr(self._embedder, name)

    def encode_query(self, text: str) -> Encoding:
        return self._embedder.encode_documents([text], token_codes=True)[0]


def _side_by_side(queries: Sequence[PlannedQuery], retrieve: Callable[[PlannedQuery], One], workers: int) -> list[One]:
    if len(queries) == 1 or workers == 1:
        return [retrieve(query) for query in queries]
    with ThreadPoolExecutor(max_workers=min(workers, len(queries)), thread_name_prefix="variant") as pool:
        running: list[Future[One]] = []
        try:
            running += [pool.submit(retrieve, query) for query in queries]
            wait(running, return_when=FIRST_EXCEPTION)
        finally:
            # After a failure, or Ctrl-C in this thread: what has not begun never does.
            for future in running:
                future.cancel()
    for future in running:
        if not future.cancelled():
            future.result()
    return [future.result() for future in running]


def _cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _warnings(queries: Sequence[PlannedQuery], each: Sequence[Searched]) -> tuple[str, ...]:
    """Each once: those of the question as they are, those that only another query had with its text."""
    told = dict.fromkeys(each[0].warnings)
    own: list[str] = []
    for query, one in zip(queries[1:], each[1:], strict=True):
        for warning in one.warnings:
            if warning not in told:
                told[warning] = None
                text = " ".join(query.text.split())
                shown = text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 3] + "..."
                own.append(f'In the search for "{shown}": {warning}')
    return (*each[0].warnings, *own)
