"""A search led to the documents that the question names, without leaving out the others.

Takes: the hints of `understand.py`, and the searches of the arms. Returns: rankings that hold what each arm gave before
    and the best passages of the hinted documents besides; the fit of each of these; and an order that prefers them.
Method: each arm is asked once more under a filter on the hinted documents, for at most `_DEPTH` passages; these have
    the arm's own scores, so that the lists can be merged. In the final order a passage gains the square of its
    document's fit times `STRENGTH` standard deviations of the fused scores: a tilt, not a filter, and next to nothing
    where the fit is weak (docs/decisions/0013-routing.md).
Cost: one to three more searches per arm, where something is hinted; none else.
What can go wrong: a document that is wrongly taken to be named pushes others down. The first of the others keep a
    fifth of the places all the same.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from cognicraft.records import And, DocumentHint, Filter, In, Ranking, Scored

STRENGTH = 3.0
"""Standard deviations of the fused scores that a document with a fit of 1 gains."""

SURELY_NAMED = 0.7
"""Fit above which a document is taken to be meant: by a word and a period, or the newest of those with the word."""

_DEPTH = 100
_LEAST_FIT = 0.2
_MOST_DOCUMENTS = 24
_MOST_ROUTES = 3
_KEPT_SHARE = 5

Search = Callable[[Filter | None], Ranking]


@dataclass(frozen=True, slots=True)
class Route:
    """Documents to be searched once more, all of the same fit."""

    document_ids: tuple[str, ...]
    fit: float


def routes(hints: Sequence[DocumentHint]) -> tuple[Route, ...]:
    """The hinted documents by fit, best first: at most three groups, the last of which takes the rest."""
    kept = [hint for hint in hints if hint.fit >= _LEAST_FIT][:_MOST_DOCUMENTS]
    fits = list(dict.fromkeys(hint.fit for hint in kept))
    found = []
    for position, fit in enumerate(fits[:_MOST_ROUTES]):
        others = fits[position:] if position == _MOST_ROUTES - 1 else [fit]
        own = [hint for hint in kept if hint.fit in others]
        found.append(Route(tuple(hint.document_id for hint in own), sum(hint.fit for hint in own) / len(own)))
    return tuple(found)


def search_routed(
    search: Search, where: Filter | None, *, led: Iterable[Route], depth: int
) -> tuple[Ranking, dict[str, float]]:
    """What the arm finds anywhere and in the hinted documents, in one list; and the fit of each passage of the latter.

    search: the arm, given a filter. depth: passages asked of the hinted documents, at most 100.
    """
    found = search(where)
    fits: dict[str, float] = {}
    scores = {hit.chunk_id: hit.score for hit in found}
    for route in led:
        inside = In("document_id", route.document_ids)
        for hit in search(inside if where is None else And((where, inside)))[: min(depth, _DEPTH)]:
            scores.setdefault(hit.chunk_id, hit.score)
            fits[hit.chunk_id] = route.fit
    return (_ordered(scores) if fits else found), fits


def prefer(ranking: Ranking, fits: Mapping[str, float], *, strength: float = STRENGTH) -> Ranking:
    """The ranking with each passage raised by the square of its fit, counted in standard deviations of the scores."""
    if not fits or len(ranking) < 2:
        return ranking
    spread = statistics.pstdev(hit.score for hit in ranking)
    return _ordered({hit.chunk_id: hit.score + strength * spread * fits.get(hit.chunk_id, 0.0) ** 2 for hit in ranking})


def keep_unrouted(routed: Ranking, before: Ranking, *, limit: int | None) -> Ranking:
    """The first `limit` of `routed`; of these a fifth is left to the first of `before`, as the arms alone ranked them.

    They come last where they would not be there otherwise.
    """
    if limit is None or len(routed) <= limit:
        return routed
    owed = {hit.chunk_id for hit in before[: limit // _KEPT_SHARE]}
    missing = [hit for hit in routed[limit:] if hit.chunk_id in owed]
    if not missing:
        return routed[:limit]
    dropped = {hit.chunk_id for hit in [one for one in routed[:limit] if one.chunk_id not in owed][-len(missing) :]}
    return (*(hit for hit in routed[:limit] if hit.chunk_id not in dropped), *missing)


def _ordered(scores: Mapping[str, float]) -> Ranking:
    hits = sorted(scores.items(), key=lambda item: (-item[1], item[0]))
    return tuple(Scored(chunk_id, score) for chunk_id, score in hits)
