"""One search over one workspace: the steps of `search/` put together as the settings say.

Takes: an open workspace, a question, its search settings. Returns: what every arm gave and the final ranking.
Both `search` and `ask` begin here; `Workspace` gives the arguments, the steps know nothing of each other.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from cognicraft.config import SearchSettings
from cognicraft.errors import UsageError
from cognicraft.manifest import Manifest
from cognicraft.protocols import Embedder, Engine
from cognicraft.records import Filter

if TYPE_CHECKING:
    from cognicraft.search.fuse import Fusion
    from cognicraft.search.lexical import LexicalEncoder
    from cognicraft.search.retrieve import ArmResults, Retrieved


@dataclass(frozen=True, slots=True)
class Opened:
    """A workspace as searching sees it: its engine, and the encoders that it was made with."""

    name: str
    manifest: Manifest
    engine: Engine
    embedders: Mapping[str, Embedder]
    lexical: LexicalEncoder

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
    """What a search gave, before any text is fetched."""

    arms: ArmResults
    retrieved: Retrieved


def find(
    opened: Opened, question: str, settings: SearchSettings, *, where: str | Filter | None, limit: int | None
) -> Found:
    """Search as the settings say. limit: hits kept; None keeps all that the arms gave.

    Raises: UsageError, FilterError, EngineError.
    """
    from cognicraft.search.filters import parse_filter
    from cognicraft.search.rerank import LateInteraction
    from cognicraft.search.retrieve import rank, retrieve

    if not question.strip():
        raise UsageError("The question is empty.", remedy="Ask something.")
    engine = opened.engine
    found = retrieve(
        question,
        engine=engine,
        arms=opened.arms(settings.arms),
        embedders=opened.embedders,
        lexical=opened.lexical,
        depth=max(settings.depth, limit or 0),
        where=parse_filter(where) if isinstance(where, str) else where,
        language_of=partial(question_language, lexical=opened.lexical, among=frozenset(engine.languages()) - {""}),
    )
    late = None
    if settings.rerank == "late-interaction" and opened.manifest.late_interaction:
        late = LateInteraction(budget_ms=settings.rerank_budget_ms, depth=settings.rerank_depth)
    retrieved = rank(
        found,
        engine=engine,
        fusion=_fusion(settings.fusion, settings.rrf_k, settings.rrf_first_rank),
        weights=opened.arm_weights(settings.weights),
        rerank=late,
        limit=limit,
    )
    return Found(found, retrieved)


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
