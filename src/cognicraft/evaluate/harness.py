"""Measure the product's own search on a BEIR-shaped folder.

Takes: the folder. Returns: a `RetrievalEvaluation`. Method: the corpus goes through the same ingest as anybody's
documents, into a workspace of its own; each judged question through the same search; a document stands where its best
chunk stands. Cost: one ingest of the corpus (none where a kept workspace has it already), one search a question.
What can go wrong: an arm gives at most `depth` chunks, so recall@100 counts fewer than 100 documents where several
chunks are of one document.
"""

from __future__ import annotations

import json
import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from cognicraft.answer.judge_combined import fail_closed
from cognicraft.errors import Cancelled
from cognicraft.evaluate.datasets import Dataset, load
from cognicraft.evaluate.grounding import Measured
from cognicraft.evaluate.metrics import measure, summarize
from cognicraft.records import Claim, Verdict
from cognicraft.results import Figure, GroundingEvaluation, RetrievalEvaluation
from cognicraft.workspace import Workspace


def evaluate_retrieval(
    folder: Path,
    *,
    split: str = "test",
    queries: int | None = None,
    encoders: tuple[str, ...] | None = None,
    arms: Sequence[str] | None = None,
    fusion: str | None = None,
    weights: Mapping[str, float] | None = None,
    rerank: str | None = None,
    depth: int | None = None,
    keep: bool = False,
    workspace: str | None = None,
    home: Path | None = None,
    config_file: Path | None = None,
    settings: Mapping[str, object] | None = None,
    progress: Callable[[str], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> RetrievalEvaluation:
    """Ingest the corpus, ask every judged question, measure.

    queries: only the first so many judged questions. keep: keep the documents in the workspace `workspace` (by default
    `eval-` and the folder's name) and use what is there already; otherwise nothing is left behind.
    Raises: UsageError for a folder not of that shape; Cancelled; what `Workspace.ingest` and `search` raise.
    """
    dataset = load(folder, split=split)
    name = workspace or "eval-" + (re.sub(r"[^A-Za-z0-9._-]+", "-", dataset.name).strip("-.") or "dataset")
    given = {**(settings or {}), "ingest.encoders": encoders}

    def run(at_home: Path | None) -> RetrievalEvaluation:
        with Workspace(name, home=at_home, settings=given, config_file=config_file) as opened:
            return _measure(
                opened,
                dataset,
                queries=queries,
                search={"arms": arms, "fusion": fusion, "weights": weights, "rerank": rerank, "depth": depth},
                progress=progress or (lambda _: None),
                cancelled=cancelled or (lambda: False),
            )

    if keep:
        return run(home)
    with tempfile.TemporaryDirectory(prefix="cognicraft-evaluate-") as temporary:
        return run(Path(temporary))


def _measure(
    workspace: Workspace,
    dataset: Dataset,
    *,
    queries: int | None,
    search: Mapping[str, object],
    progress: Callable[[str], None],
    cancelled: Callable[[], bool],
) -> RetrievalEvaluation:
    started = time.perf_counter()
    report = workspace.ingest_documents(
        dataset.documents(),
        progress=lambda now: progress(f"ingest: {now.documents} documents, {now.chunks} chunks"),
        cancelled=cancelled,
    )
    ingested = time.perf_counter()
    document_of = workspace.chunk_sources()
    asked = list(dataset.queries.items())[:queries]
    whole: dict[str, dict[str, float]] = {}
    by_arm: dict[str, dict[str, dict[str, float]]] = {}
    warnings: dict[str, int] = {}
    config: dict[str, object] = {}
    for number, (query_id, text) in enumerate(asked, start=1):
        if cancelled():
            raise Cancelled(
                f"Stopped after {number - 1} of {len(asked)} questions.",
                remedy="Nothing was written; run it again.",
            )
        found = workspace.rankings(text, **search)  # type: ignore[arg-type]
        config = found.config
        relevance = dataset.qrels[query_id]
        whole[query_id] = measure(_documents(found.fused, document_of), relevance)
        for arm, chunk_ids in found.arms.items():
            by_arm.setdefault(arm, {})[query_id] = measure(_documents(chunk_ids, document_of), relevance)
        for warning in found.warnings:
            kind = warning.split(":")[0]
            warnings[kind] = warnings.get(kind, 0) + 1
        if number % 25 == 0 or number == len(asked):
            progress(f"search: {number} of {len(asked)} questions")
    # A question that an arm was dropped for found nothing there: it counts, as zero.
    nothing = measure([], {})
    searched = time.perf_counter()
    return RetrievalEvaluation(
        dataset=dataset.name,
        split=dataset.split,
        documents=report.files,
        chunks=len(document_of),
        queries=len(asked),
        config={**config, "manifest": workspace.manifest.model_dump(mode="json")},
        metrics=summarize(whole),
        arms={
            arm: summarize({query_id: measured.get(query_id, nothing) for query_id in whole})
            for arm, measured in by_arm.items()
        },
        per_query={query_id: measured["ndcg@10"] for query_id, measured in whole.items()},
        warnings=[
            *report.warnings,
            *(f"{count} questions: {kind}" for kind, count in warnings.items()),
            *([f"{dataset.skipped} questions have no judgement in {dataset.split}."] if dataset.skipped else []),
        ],
        timings_ms={
            "ingest": round((ingested - started) * 1000, 1),
            "search": round((searched - ingested) * 1000, 1),
        },
    )


def _documents(chunk_ids: Iterable[str], document_of: Mapping[str, str]) -> list[str]:
    """Documents in the order of their best chunk."""
    return list(dict.fromkeys(document_of[chunk_id] for chunk_id in chunk_ids))


def evaluate_grounding(
    file: Path,
    *,
    scores: Path | None = None,
    settings: Mapping[str, object] | None = None,
    home: Path | None = None,
    config_file: Path | None = None,
    progress: Callable[[str], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> GroundingEvaluation:
    """How well the check of claims, as answers are checked, tells supported ones from others.

    file: rows {id, context or evidence, claim, label, group?}. scores: file for the score and verdict of every row.
    Raises: UsageError for a row that is not of that shape, with its number; Cancelled.
    """
    from cognicraft.answer.verify import SUPPORTED_AT
    from cognicraft.evaluate.grounding import figures, read_rows

    started = time.perf_counter()
    rows = list(read_rows(file))
    found: list[Verdict] = []
    with Workspace(home=home, config_file=config_file, settings=settings) as workspace:
        verifier = workspace.verifier()
        for number, row in enumerate(rows, start=1):
            if cancelled is not None and cancelled():
                raise Cancelled(f"Stopped after {number - 1} of {len(rows)} claims.", remedy="Nothing was written.")
            found += fail_closed(verifier, [Claim(row.claim, 0, len(row.claim))], row.evidence)
            if progress is not None and (number % 25 == 0 or number == len(rows)):
                progress(f"check: {number} of {len(rows)} claims")
        name = verifier.name
    if scores is not None:
        lines = [
            json.dumps({"id": row.id, "score": round(verdict.score, 6), "verdict": verdict.kind})
            for row, verdict in zip(rows, found, strict=True)
        ]
        scores.write_text("\n".join(lines) + "\n", encoding="utf-8")
    measured = figures(rows, [verdict.score for verdict in found], threshold=SUPPORTED_AT)

    def figure(one: Measured) -> Figure:
        return Figure(value=one.value, low=one.low, high=one.high)

    return GroundingEvaluation(
        rows=measured.rows,
        supported=measured.supported,
        auroc=figure(measured.auroc),
        balanced_accuracy=figure(measured.balanced_accuracy),
        f1_unsupported=figure(measured.f1_unsupported),
        threshold=measured.threshold,
        verdicts=dict(Counter(verdict.kind for verdict in found).most_common()),
        verifier=name,
        timings_ms={"total": round((time.perf_counter() - started) * 1000, 1)},
    )
