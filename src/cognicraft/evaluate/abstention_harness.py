"""Measure on a BEIR-shaped folder whether the product declines where the documents do not tell.

Takes: the folder, with `unanswerable.jsonl` beside `queries.jsonl`. Returns: an `AbstentionEvaluation`. Method: the
corpus goes through the same ingest as anybody's documents and each question through `ask`, as configured; the
confidence is that by which `ask` declines. An answer is right where a document that it quotes is judged relevant.
Cost: one ingest of the corpus, one `ask` a question.
What can go wrong: questions answered by a model have the confidence of their check, which is another number.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from cognicraft.answer.scoring import DEFAULT_THRESHOLD
from cognicraft.errors import Cancelled, UsageError
from cognicraft.evaluate.abstention import Asked, abstention_figures, threshold_for
from cognicraft.evaluate.datasets import Dataset, load
from cognicraft.results import AbstentionEvaluation, RiskPoint
from cognicraft.workspace import Workspace

AT_MOST_WRONG = (0.01, 0.05, 0.1, 0.2)


def evaluate_abstention(
    folder: Path,
    *,
    split: str = "test",
    queries: int | None = None,
    settings: Mapping[str, object] | None = None,
    home: Path | None = None,
    config_file: Path | None = None,
    progress: Callable[[str], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> AbstentionEvaluation:
    """queries: only the first so many of each kind. home: folder to keep the documents in; left out, nothing is kept.

    Raises: UsageError for a folder without unanswerable questions; Cancelled.
    """
    dataset = load(folder, split=split)
    if not dataset.unanswerable:
        raise UsageError(
            f"{folder} has no questions without an answer.",
            remedy="Put them into unanswerable.jsonl, in the form of queries.jsonl.",
        )
    with (
        tempfile.TemporaryDirectory(prefix="cognicraft-evaluate-") as temporary,
        Workspace("abstention", home=home or temporary, settings=settings, config_file=config_file) as workspace,
    ):
        return _measure(workspace, dataset, queries, progress or (lambda _: None), cancelled or (lambda: False))


def _measure(
    workspace: Workspace,
    dataset: Dataset,
    queries: int | None,
    progress: Callable[[str], None],
    cancelled: Callable[[], bool],
) -> AbstentionEvaluation:
    started = time.perf_counter()
    report = workspace.ingest_documents(
        dataset.documents(), progress=lambda now: progress(f"ingest: {now.documents} documents"), cancelled=cancelled
    )
    ingested = time.perf_counter()
    questions = [(key, text, True) for key, text in list(dataset.queries.items())[:queries]]
    questions += [(key, text, False) for key, text in list(dataset.unanswerable.items())[:queries]]
    own = workspace.settings.answer.threshold
    threshold = DEFAULT_THRESHOLD if own is None else own
    asked: list[Asked] = []
    config: dict[str, object] = {}
    for number, (key, text, answerable) in enumerate(questions, start=1):
        if cancelled():
            raise Cancelled(f"Stopped after {number - 1} of {len(questions)} questions.", remedy="Nothing was written.")
        # Quotes are asked for at any confidence, so that the curve knows what would have been quoted.
        answer = workspace.ask(text, threshold=0.0)
        config = {**answer.config, "threshold": threshold}
        confidence = float((answer.confidence if answer.model else answer.config.get("confidence")) or 0.0)
        answered = answer.answered and (bool(answer.model) or confidence >= threshold)
        relevant = {document for document, grade in dataset.qrels.get(key, {}).items() if grade > 0}
        right = answerable and answer.answered and bool(relevant & {source.file for source in answer.sources})
        asked.append(Asked(key, confidence, answered, answerable, right))
        if number % 25 == 0 or number == len(questions):
            progress(f"ask: {number} of {len(questions)} questions")
    figures = abstention_figures(asked)
    curve = [RiskPoint(coverage=p.coverage, risk=p.risk, threshold=p.threshold) for p in figures.curve]
    found = {str(share): threshold_for(figures.curve, most_wrong=share) for share in AT_MOST_WRONG}
    with_answer = [one for one in asked if one.answerable]
    return AbstentionEvaluation(
        dataset=dataset.name,
        answerable=len(with_answer),
        unanswerable=len(asked) - len(with_answer),
        auroc=figures.auroc,
        refusal_precision=figures.refusal_precision,
        refusal_recall=figures.refusal_recall,
        right_document=sum(one.right and one.answered for one in with_answer) / max(1, len(with_answer)),
        curve=curve,
        at_most_wrong={
            share: None if p is None else RiskPoint(coverage=p.coverage, risk=p.risk, threshold=p.threshold)
            for share, p in found.items()
        },
        config=config,
        warnings=report.warnings,
        timings_ms={
            "ingest": round((ingested - started) * 1000, 1),
            "ask": round((time.perf_counter() - ingested) * 1000, 1),
        },
    )
