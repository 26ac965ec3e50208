"""Question to ranked chunks: the arms side by side, then the composed default ranking.

Takes: a question, an engine, the encoders, the names of the arms. No settings: plain arguments.
Returns: `retrieve` one `Ranking` per arm with timings and warnings; `rank` the fused and reranked `Retrieved`.
Method: each arm asks the engine for its own best `depth`. `rank` joins the z-scores of the arms and of one-bit late
    interaction over the union (docs/decisions/0007-default-ranking.md). Where documents are hinted at, each arm looks
    into these besides, and what stands in them is preferred (`route.py`).
Cost: one encoding of the question per dense encoder; the arms run in threads; only the engine's search depends on the
    size of the corpus.
What can go wrong: an arm that has nothing to search with (a question of stop words) is left out; so are one whose
    encoder runs elsewhere and cannot be reached (an error where there is no other arm), a dense arm
    whose encoder does not know the question's language where another does, and the lexical arm where question and
    passages are in different languages. Each is named in `warnings`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial

from cognicraft.errors import ModelUnavailable, UsageError
from cognicraft.protocols import Embedder, Engine
from cognicraft.records import BooleanQuery, Encoding, Filter, Ranking, SparseVector
from cognicraft.search.boolean import parse
from cognicraft.search.fuse import Fusion, zscore
from cognicraft.search.lexical import LexicalEncoder
from cognicraft.search.rerank import LateInteraction
from cognicraft.search.route import STRENGTH, Route, keep_unrouted, prefer, search_routed

LEXICAL = "lexical"
BOOLEAN = "boolean"
LATE_INTERACTION = "late-interaction"
_LANGUAGE_SAMPLE = 10
# Where the encoder does not know the question's language, only names and numbers that are found again can be trusted.
_SHARP = 6.0


@dataclass(frozen=True, slots=True)
class ArmResults:
    """One ranking per arm that ran, the encodings of the question, milliseconds by step, and what was left out.

    unknown_language: dense arms whose encoder does not know the question's language. fits: chunk id -> how surely the
    question names its document, for those that routes led to.
    """

    rankings: Mapping[str, Ranking]
    encodings: Mapping[str, Encoding] = field(default_factory=dict)
    timings_ms: Mapping[str, float] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    unknown_language: frozenset[str] = frozenset()
    fits: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Place:
    """Rank (from 1) and score of a chunk in one list."""

    rank: int
    score: float


@dataclass(frozen=True, slots=True)
class Retrieved:
    """The final ranking with the way of every chunk in it.

    places: chunk id -> list (an arm, or `late-interaction`) -> place; a list that does not hold the chunk is absent.
    reranked: how many candidates got a score from the reranker.
    """

    ranking: Ranking
    places: Mapping[str, Mapping[str, Place]]
    reranked: int = 0
    timings_ms: Mapping[str, float] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


def retrieve(
    question: str,
    *,
    engine: Engine,
    arms: Sequence[str],
    embedders: Mapping[str, Embedder],
    lexical: LexicalEncoder,
    depth: int = 100,
    where: Filter | None = None,
    language_of: Callable[[str], str] | None = None,
    routes: Sequence[Route] = (),
) -> ArmResults:
    """Run the arms: dense encoders by their name, `lexical`, `boolean`.

    routes: documents that each arm looks into besides.
    language_of: ISO 639-1 code of a text, "" where it cannot tell; without it no arm is dropped for its language.
    Raises: UsageError for an unknown arm or a depth below 1, FilterError where a Boolean query does not parse.
    """
    if depth < 1:
        raise UsageError(f"The depth is {depth}.", remedy="Each arm gives at least 1 hit.")
    if not arms:
        raise UsageError("No arm is chosen.", remedy="Choose a dense encoder, lexical, or both.")
    for arm in arms:
        if arm not in embedders and arm not in (LEXICAL, BOOLEAN):
            known = ", ".join([*embedders, LEXICAL, BOOLEAN])
            raise UsageError(f"There is no arm {arm!r}.", remedy=f"There are: {known}.")
    languages = frozenset(engine.languages())
    timings: dict[str, float] = {}
    encodings: dict[str, Encoding] = {}
    warnings: list[str] = []
    fits: dict[str, float] = {}
    silent: dict[str, ModelUnavailable] = {}

    def led(search: Callable[[Filter | None], Ranking]) -> Ranking:
        ranking, found = search_routed(search, where, led=routes, depth=depth)
        fits.update(found)
        return ranking

    def dense(arm: str) -> Ranking:
        with _timed(timings, f"encode.{arm}"):
            try:
                encodings[arm] = embedders[arm].encode_query(question)
            except ModelUnavailable as error:  # an encoder that runs elsewhere
                silent[arm] = error
                return ()
        with _timed(timings, f"search.{arm}"):
            vector = encodings[arm].vector
            return led(lambda within: engine.search_dense(arm, vector, limit=depth, where=within))

    def by_terms() -> Ranking:
        with _timed(timings, f"encode.{LEXICAL}"):
            query = lexical.query(question, languages=languages)
        if not len(query.indices):
            warnings.append("The lexical arm was left out: the question has no word to search for.")
            return ()
        with _timed(timings, f"search.{LEXICAL}"):
            return led(lambda within: engine.search_lexical(query, limit=depth, where=within))

    def by_rule(query: BooleanQuery, rank_by: SparseVector) -> Ranking:
        with _timed(timings, f"search.{BOOLEAN}"):
            return led(lambda within: engine.search_boolean(query, rank_by=rank_by, limit=depth, where=within))

    jobs: dict[str, Callable[[], Ranking]] = {}
    for arm in dict.fromkeys(arms):
        if arm == LEXICAL:
            jobs[arm] = by_terms
        elif arm == BOOLEAN:
            with _timed(timings, f"encode.{BOOLEAN}"):
                rule, rank_by = parse(question, encoder=lexical, languages=languages)
            jobs[arm] = partial(by_rule, rule, rank_by)
        else:
            jobs[arm] = partial(dense, arm)
    if len(jobs) == 1:
        rankings = {arm: job() for arm, job in jobs.items()}
    else:
        with ThreadPoolExecutor(max_workers=len(jobs), thread_name_prefix="arm") as pool:
            running = {arm: pool.submit(job) for arm, job in jobs.items()}
            rankings = {arm: future.result() for arm, future in running.items()}

    for arm, error in silent.items():
        if not rankings.keys() - silent.keys():
            raise error
        warnings.append(f"The arm {arm} was left out: {error.message}")
    rankings = {arm: ranking for arm, ranking in rankings.items() if arm not in silent}

    unknown: frozenset[str] = frozenset()
    if language_of is not None:
        with _timed(timings, "language"):
            asked = language_of(question)
            dense_arms = [arm for arm in rankings if arm in embedders]
            unknown = frozenset(
                arm for arm in dense_arms if not _knows(embedders[arm], asked, question=question, lexical=lexical)
            )
            if unknown and unknown == frozenset(dense_arms):
                warnings.append(
                    f"The question seems to be in {asked!r}, which no encoder of this workspace knows: "
                    "passages are found by shared names and words."
                )
            else:
                reasons = {
                    arm: f"The arm {arm} was left out: its encoder does not know the question's language, {asked!r}."
                    for arm in sorted(unknown)
                }
                if LEXICAL in rankings and languages - {asked}:
                    reasons |= _foreign_words(question, asked, engine, rankings, set(dense_arms) - unknown, lexical)
                for arm, reason in reasons.items():
                    del rankings[arm]
                    encodings.pop(arm, None)
                    warnings.append(reason)
                unknown = frozenset()
    return ArmResults(rankings, encodings, timings, tuple(warnings), unknown, fits)


def rank(
    found: ArmResults,
    *,
    engine: Engine | None = None,
    fusion: Fusion = zscore,
    weights: Mapping[str, float] | None = None,
    rerank: LateInteraction | None = None,
    limit: int | None = None,
    strength: float = STRENGTH,
) -> Retrieved:
    """Fuse the arms; with `rerank`, score the union by late interaction and fuse that as one more list.

    engine: where the token codes are; needed with `rerank` only. A workspace that kept none is told in `warnings`.
    strength: how far passages of hinted documents are preferred (`route.prefer`).
    """
    timings = dict(found.timings_ms)
    warnings = list(found.warnings)
    lists: dict[str, Ranking] = dict(found.rankings)
    own = _shared_weights(found, weights or {})
    with _timed(timings, "fuse"):
        # One list needs no fusion: its own scores say more than what they become.
        fused = next(iter(lists.values())) if len(lists) == 1 else fusion(lists, weights=own)
    reranked = 0
    if rerank is not None and engine is not None and fused and found.encodings:
        candidates = prefer(fused, found.fits, strength=strength)
        with _timed(timings, "rerank"):
            scores, reranked, missed = _late_interaction(found, engine, rerank, [hit.chunk_id for hit in candidates])
        warnings += missed
        if scores:
            lists.update(scores)
            fused = fusion(lists, weights=own)
    kept = keep_unrouted(prefer(fused, found.fits, strength=strength), fused, limit=limit)
    wanted = {hit.chunk_id for hit in kept}
    places: dict[str, dict[str, Place]] = {hit.chunk_id: {} for hit in kept}
    for name, ranking in lists.items():
        for position, hit in enumerate(ranking, start=1):
            if hit.chunk_id in wanted:
                places[hit.chunk_id][name] = Place(position, hit.score)
    return Retrieved(kept, places, reranked, timings, tuple(warnings))


def _shared_weights(found: ArmResults, weights: Mapping[str, float]) -> dict[str, float]:
    """Several encoders share the weight of one, in their arms and in late interaction: they see much the same."""
    share = 1.0 / max(1, len(found.encodings))
    own = dict(weights)
    for arm in found.encodings:
        own[arm] = weights.get(arm, 1.0) * share
        own[f"{LATE_INTERACTION}.{arm}"] = weights.get(LATE_INTERACTION, 1.0) * share
    return own


def _late_interaction(
    found: ArmResults, engine: Engine, rerank: LateInteraction, candidates: Sequence[str]
) -> tuple[dict[str, Ranking], int, list[str]]:
    """A ranking per encoder with token codes, how many candidates were scored, and what was not."""
    lists: dict[str, Ranking] = {}
    warnings: list[str] = []
    reranked = 0
    for arm, encoding in found.encodings.items():
        if encoding.token_codes is None:
            continue
        result = rerank(
            candidates,
            query_codes=encoding.token_codes,
            codes_of=partial(engine.token_codes, arm),
            sharpness=_SHARP if arm in found.unknown_language else 1.0,
        )
        if result.ranking:
            lists[LATE_INTERACTION if len(found.encodings) == 1 else f"{LATE_INTERACTION}.{arm}"] = result.ranking
            reranked = max(reranked, len(result.ranking))
        if result.out_of_time:
            warnings.append(
                f"Late interaction reached {result.asked - result.out_of_time} of {result.asked} candidates "
                f"in its {rerank.budget_ms:g} ms."
            )
    if not lists:
        warnings.append("Late interaction was left out: this workspace keeps no token vectors.")
    return lists, reranked, warnings


def _foreign_words(
    question: str,
    asked: str,
    engine: Engine,
    rankings: Mapping[str, Ranking],
    knowing: Collection[str],
    lexical: LexicalEncoder,
) -> dict[str, str]:
    """Why the lexical arm is noise, by its name; empty where it is not, or where nothing tells.

    It is where the nearest passages of the encoders that know the question's language are all in other languages.
    """
    nearest = list(dict.fromkeys(hit.chunk_id for arm in knowing for hit in rankings[arm][:_LANGUAGE_SAMPLE]))
    spoken = {chunk.language for chunk in engine.chunks(nearest)} if asked and nearest else set()
    if not spoken or spoken & {asked, ""} or lexical.reads_as(question, languages=spoken, rather_than=asked):
        return {}
    listed = ", ".join(repr(code) for code in sorted(spoken))
    return {
        LEXICAL: f"The lexical arm was left out: the question is in {asked!r} and the nearest passages are in {listed}."
    }


def _knows(embedder: Embedder, asked: str, *, question: str, lexical: LexicalEncoder) -> bool:
    """Whether an encoder knows the question's language; a guess that the question's own words outvote counts as yes."""
    known = embedder.languages
    return (
        not asked or known is None or asked in known or lexical.reads_as(question, languages=known, rather_than=asked)
    )


class _timed:
    """Adds the milliseconds of a block to a table."""

    def __init__(self, table: dict[str, float], name: str) -> None:
        self._table, self._name = table, name

    def __enter__(self) -> None:
        self._started = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self._table[self._name] = self._table.get(self._name, 0.0) + (time.perf_counter() - self._started) * 1000.0
