"""One search over one workspace: the steps of `search/` put together as the settings say.

Takes: an open workspace, a question, its search settings. Returns: what every arm gave and the final ranking.
Both `search` and `ask` begin here; `Workspace` gives the arguments, the steps know nothing of each other.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from cognicraft.config import SearchSettings
from cognicraft.errors import UsageError
from cognicraft.manifest import Manifest
from cognicraft.protocols import Embedder, Engine, Reranker
from cognicraft.records import DocumentHint, Filter, Plan, PlannedQuery, Ranking, Understanding
from cognicraft.roles import Roles

if TYPE_CHECKING:
    from cognicraft.models.meter import Meter
    from cognicraft.search.fuse import Fusion
    from cognicraft.search.lexical import LexicalEncoder
    from cognicraft.search.names import Names
    from cognicraft.search.retrieve import ArmResults, Retrieved

_PLANNED_FIT = 0.5
"""How surely a document is taken to be meant that only a model's plan names."""
_READERS = ("cross-encoder", "llm", "llm-listwise", "remote")


@dataclass(frozen=True, slots=True)
class Opened:
    """A workspace as searching sees it: its engine, and the encoders that it was made with."""

    name: str
    manifest: Manifest
    engine: Engine
    embedders: Mapping[str, Embedder]
    lexical: LexicalEncoder
    names: Callable[[], Names]

    def arms(self, names: Sequence[str]) -> list[str]:
        """Arm names as a person gives them to the engine's: `dense` is every encoder."""
        arms: list[str] = []
        for name in names or ("dense", "lexical"):
            arms += self.manifest.encoder_names if name == "dense" else [name]
        return list(dict.fromkeys(arms))

    def arm_weights(self, weights: Mapping[str, float]) -> dict[str, float] | None:
        """Raises: UsageError for an arm that there is not."""
        if not weights:
            return None
        encoders = self.manifest.encoder_names
        own: dict[str, float] = {}
        known = {*encoders, "dense", "lexical", "boolean", "late-interaction"}
        for name, weight in weights.items():
            if name not in known:
                raise UsageError(
                    f"There is no arm {name!r} to weigh.", remedy=f"There are: {', '.join(sorted(known))}."
                )
            own.update(dict.fromkeys(encoders, weight) if name == "dense" else {name: weight})
        return own

    def public_arm(self, name: str) -> str:
        """With one encoder its arm is called `dense`; with several each keeps its own name."""
        return "dense" if (name,) == self.manifest.encoder_names else name


@dataclass(frozen=True, slots=True)
class Found:
    """What a search gave, before any text is fetched. arms: of the question itself, where a plan had more queries."""

    arms: ArmResults
    retrieved: Retrieved
    understanding: Understanding
    plan: Plan | None = None


@dataclass(frozen=True, slots=True)
class Rankings:
    """Chunk ids best first: of each arm, and of all fused and reranked."""

    fused: list[str]
    arms: dict[str, list[str]]
    warnings: list[str]
    config: dict[str, Any]


def find(
    opened: Opened,
    question: str,
    settings: SearchSettings,
    *,
    where: str | Filter | None,
    limit: int | None,
    roles: Roles,
    meter: Meter,
) -> Found:
    """Search as the settings say. limit: hits kept; None keeps all that the arms gave.

    Raises: UsageError, FilterError, EngineError; ModelError where a model can never answer (wrong key, spent budget).
    """
    from cognicraft.search.filters import parse_filter

    if not question.strip():
        raise UsageError("The question is empty.", remedy="Ask something.")
    started = time.perf_counter()
    understanding = _understood(opened, question, settings)
    understood_ms = (time.perf_counter() - started) * 1000
    plan, timings = _planned(opened, question, understanding, settings, roles=roles, meter=meter)
    wide = max(limit or 0, settings.rerank_candidates if settings.rerank in _READERS else 0) if limit else None
    filtered = parse_filter(where) if isinstance(where, str) else where
    queries, notes = _queries(opened, understanding.query, plan, settings)
    one = partial(
        _search_once,
        opened,
        settings=settings,
        where=filtered,
        hints=_hints(opened, understanding, plan),
        limit=wide if len(queries) == 1 else None,  # what several queries found is cut after they are fused
    )
    arms, retrieved = _searched(one, queries, limit=wide)
    retrieved = replace(retrieved, warnings=(*notes, *retrieved.warnings))
    if settings.rerank in _READERS:
        retrieved = _reread(opened, question, settings, retrieved, roles=roles, meter=meter)
    retrieved = replace(
        retrieved,
        ranking=retrieved.ranking[:limit],
        timings_ms={"understand": understood_ms, **timings, **retrieved.timings_ms},
    )
    return Found(arms, retrieved, understanding, plan)


def _understood(opened: Opened, question: str, settings: SearchSettings) -> Understanding:
    """What the question means by rule. A Boolean rule says itself what it means."""
    from cognicraft.search.retrieve import BOOLEAN
    from cognicraft.search.understand import understand

    if BOOLEAN in settings.arms:
        return Understanding(question)
    return understand(question, names=opened.names() if settings.route else None)


def _hints(opened: Opened, understanding: Understanding, plan: Plan | None) -> tuple[DocumentHint, ...]:
    """Documents that the question names, and those that a plan names besides."""
    if plan is None or not plan.file_hints:
        return understanding.hints
    known = {hint.document_id for hint in understanding.hints}
    named = opened.names().documents_of(plan.file_hints)
    more = [DocumentHint(one, source, _PLANNED_FIT) for one, source in named if one not in known]
    return (*understanding.hints, *more)


def _planned(
    opened: Opened,
    question: str,
    understanding: Understanding,
    settings: SearchSettings,
    *,
    roles: Roles,
    meter: Meter,
) -> tuple[Plan | None, dict[str, float]]:
    """The plan by a model, where one is wanted; without a model a plan that says so."""
    if not (settings.plan or settings.hyde):
        return None, {}
    from cognicraft.search.plan import plan

    model = roles.model("plan", meter=meter)
    if model is None:
        note = "The search went on without a plan: no language model is set (--model, or model.answer)."
        return Plan(queries=(PlannedQuery(question),), notes=(note,)), {}
    started = time.perf_counter()
    made = plan(
        question,
        model=model,
        understanding=understanding,
        file_names=opened.names().sources,
        variations=settings.variations if settings.plan else 0,
        hyde=settings.hyde,
        passage_only=settings.hyde and not settings.plan,
        timeout_s=settings.plan_timeout_s,
    )
    return made, {"plan": (time.perf_counter() - started) * 1000}


def _search_once(
    opened: Opened,
    query: PlannedQuery,
    *,
    settings: SearchSettings,
    where: Filter | None,
    hints: Sequence[DocumentHint],
    limit: int | None,
) -> _Searched:
    """One text through the arms, fused and reranked by late interaction."""
    from cognicraft.search.rerank import LateInteraction
    from cognicraft.search.retrieve import rank, retrieve
    from cognicraft.search.route import routes
    from cognicraft.search.variants import arms_for, embedders_for

    engine = opened.engine
    found = retrieve(
        query.text,
        engine=engine,
        arms=arms_for(query, opened.arms(settings.arms), dense=opened.embedders),
        embedders=embedders_for(query, opened.embedders),
        lexical=opened.lexical,
        depth=max(settings.depth, limit or 0),
        where=where,
        language_of=partial(question_language, lexical=opened.lexical, among=frozenset(engine.languages()) - {""}),
        routes=routes(hints),
    )
    late = None
    if settings.rerank != "none" and opened.manifest.late_interaction:
        late = LateInteraction(budget_ms=settings.rerank_budget_ms, depth=settings.rerank_depth)
    retrieved = rank(
        found,
        engine=engine,
        fusion=_fusion(settings.fusion, settings.rrf_k, settings.rrf_first_rank),
        weights=opened.arm_weights(settings.weights),
        rerank=late,
        limit=limit,
    )
    return _Searched(found, retrieved)


@dataclass(frozen=True, slots=True)
class _Searched:
    """One query's arms and ranking, as `retrieve_variants` wants it."""

    arms: ArmResults
    retrieved: Retrieved

    @property
    def ranking(self) -> Ranking:
        return self.retrieved.ranking

    @property
    def timings_ms(self) -> Mapping[str, float]:
        return self.retrieved.timings_ms

    @property
    def warnings(self) -> tuple[str, ...]:
        return self.retrieved.warnings


def _queries(
    opened: Opened, question: str, plan: Plan | None, settings: SearchSettings
) -> tuple[Sequence[PlannedQuery], Sequence[str]]:
    """What is searched with, and in sentences what was left out."""
    from cognicraft.search.variants import searchable

    if plan is None:
        return (PlannedQuery(question),), ()
    kept, notes = searchable(plan.queries, opened.arms(settings.arms), dense=opened.embedders)
    return kept, (*plan.notes, *notes)


def _searched(
    one: Callable[[PlannedQuery], _Searched], queries: Sequence[PlannedQuery], *, limit: int | None
) -> tuple[ArmResults, Retrieved]:
    """The question alone, or every query side by side, fused."""
    from cognicraft.search.retrieve import Place
    from cognicraft.search.variants import retrieve_variants

    found = retrieve_variants(queries, retrieve=one)
    first = found.each[0]
    if len(queries) == 1:
        return first.arms, first.retrieved
    kept = found.ranking[:limit]
    places = {
        hit.chunk_id: {
            **first.retrieved.places.get(hit.chunk_id, {}),
            **{f"query {by.query + 1}": Place(by.rank, by.score) for by in found.found_by[hit.chunk_id]},
        }
        for hit in kept
    }
    return first.arms, replace(
        first.retrieved, ranking=kept, places=places, timings_ms=found.timings_ms, warnings=found.warnings
    )


def _reread(
    opened: Opened, question: str, settings: SearchSettings, retrieved: Retrieved, *, roles: Roles, meter: Meter
) -> Retrieved:
    """The first hits in the order of a model that reads question and passage together."""
    from cognicraft.search.blend import blend
    from cognicraft.search.retrieve import Place

    started = time.perf_counter()
    reranker = _reader(settings, roles=roles, meter=meter)
    if reranker is None:
        note = "Reranking by a language model was left out: none is set (--model, or model.answer)."
        return replace(retrieved, warnings=(*retrieved.warnings, note))
    candidates = [hit.chunk_id for hit in retrieved.ranking[: settings.rerank_candidates]]
    texts = {chunk.id: chunk.chunk.dense_text for chunk in opened.engine.chunks(candidates)}
    judged = blend(
        retrieved.ranking,
        texts,
        question=question,
        reranker=reranker,
        candidates=settings.rerank_candidates,
        share=settings.rerank_share if settings.rerank.startswith("llm") else None,
    )
    places = {chunk_id: dict(own) for chunk_id, own in retrieved.places.items()}
    for position, hit in enumerate(judged.judged, start=1):
        places.setdefault(hit.chunk_id, {})[settings.rerank] = Place(position, hit.score)
    return replace(
        retrieved,
        ranking=judged.ranking,
        places=places,
        reranked=len(judged.judged),
        timings_ms={**retrieved.timings_ms, settings.rerank: (time.perf_counter() - started) * 1000},
        warnings=(*retrieved.warnings, *judged.notes),
    )


def _reader(settings: SearchSettings, *, roles: Roles, meter: Meter) -> Reranker | None:
    if settings.rerank in ("llm", "llm-listwise"):
        from cognicraft.search.rerank_llm import LlmReranker

        model = roles.model("rerank", meter=meter)
        return LlmReranker(model, listwise=settings.rerank == "llm-listwise") if model is not None else None
    return reranker_named(settings.rerank, settings.rerank_model, settings.rerank_url)


@lru_cache(maxsize=4)
def reranker_named(kind: str, model: str, url: str) -> Reranker:
    """A cross-encoder or a remote reranker, opened once in a process. Raises: UsageError, MissingExtra, ModelError."""
    if kind == "cross-encoder":
        from cognicraft.models.cross_encoder_hub import cross_encoder_named

        return cross_encoder_named(model or "ms-marco-MiniLM-L-6-v2")
    from cognicraft.models.remote_reranker import RemoteReranker

    if not url:
        raise UsageError(
            "A remote reranker needs an address.",
            remedy="Set search.rerank_url, e.g. https://api.jina.ai/v1/rerank.",
        )
    return RemoteReranker(url, model=model)


def question_language(question: str, *, lexical: LexicalEncoder, among: Collection[str]) -> str:
    """The language of a question: by its function words, else by the detector; "" for unsure.

    The function words settle most questions in a language of the documents in microseconds; the detector's model
    takes half a second to load.
    """
    by_words = lexical.language_by_function_words(question)
    if by_words in among:
        return by_words
    from cognicraft.ingest.language import detect_question

    return detect_question(question, among=among).code


def _fusion(name: str, rrf_k: float, rrf_first_rank: int) -> Fusion:
    from cognicraft.search import fuse

    if name == "rrf":
        return partial(fuse.rrf, k=rrf_k, first_rank=rrf_first_rank)
    fusion: Fusion = getattr(fuse, name)
    return fusion
