"""`cognicraft evaluate`: how good is it, measured."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cognicraft.cli.options import Arms, ConfigFile, Depth, Fusion, Home, Model, Rerank, Set, Weights, WorkspaceName

if TYPE_CHECKING:
    from pydantic import BaseModel

    from cognicraft.results import RetrievalEvaluation

app = typer.Typer(help="Measure the product on questions with known answers.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    pass


@app.command("retrieval")
def retrieval(
    dataset: Annotated[
        Path,
        typer.Argument(metavar="DATASET_DIR", help="Folder with corpus.jsonl, queries.jsonl, qrels/SPLIT.tsv."),
    ],
    json_file: Annotated[
        str | None,
        typer.Option("--json", metavar="FILE", help="Write the record to FILE; - is standard output."),
    ] = None,
    split: Annotated[str, typer.Option("--split", metavar="NAME", help="Judgements to use.")] = "test",
    queries: Annotated[
        int | None, typer.Option("--queries", metavar="N", help="Only the first N judged questions.")
    ] = None,
    encoder: Annotated[
        list[str] | None, typer.Option("--encoder", metavar="NAME", help="Dense encoder. Repeatable.")
    ] = None,
    arm: Arms = None,
    fusion: Fusion = None,
    weight: Weights = None,
    rerank: Rerank = None,
    depth: Depth = None,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the documents, and use what is there already.")] = False,
    workspace: WorkspaceName = None,
    home: Home = None,
    config_file: ConfigFile = None,
) -> None:
    """Measure search on a BEIR-shaped folder: nDCG, recall, MRR, MAP, success, for the whole and for each arm."""
    from cognicraft.cli.ingest import _ctrl_c
    from cognicraft.cli.options import parse_weights
    from cognicraft.evaluate.harness import evaluate_retrieval

    with _ctrl_c() as stopped:
        measured = evaluate_retrieval(
            dataset,
            split=split,
            queries=queries,
            encoders=tuple(encoder) if encoder else None,
            arms=arm,
            fusion=fusion,
            weights=parse_weights(weight),
            rerank=rerank,
            depth=depth,
            keep=keep,
            workspace=workspace,
            home=home,
            config_file=config_file,
            progress=_line if sys.stderr.isatty() else None,
            cancelled=stopped,
        )
    if json_file == "-":
        from cognicraft.cli.output import print_json

        print_json(measured)
        return
    _print(measured)
    _keep(measured, json_file)


@app.command("grounding")
def grounding(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE.jsonl", help="Rows {id, context or evidence, claim, label: 1 supported, group?}."),
    ],
    json_file: Annotated[
        str | None,
        typer.Option("--json", metavar="FILE", help="Write the record to FILE; - is standard output."),
    ] = None,
    scores: Annotated[
        Path | None, typer.Option("--scores", metavar="FILE", help="Write {id, score, verdict} of every row to FILE.")
    ] = None,
    model: Model = None,
    changed: Set = None,
    home: Home = None,
    config_file: ConfigFile = None,
) -> None:
    """Measure the check of claims on rows with known labels: AUROC, balanced accuracy, F1 of what is unsupported.

    It is the check that `ask` makes, at its own threshold; with `--set answer.judge=model` a model judges besides.
    """
    from cognicraft.cli.ingest import _ctrl_c
    from cognicraft.cli.options import parse_settings
    from cognicraft.cli.output import print_json, table
    from cognicraft.evaluate.harness import evaluate_grounding

    with _ctrl_c() as stopped:
        measured = evaluate_grounding(
            file,
            scores=scores,
            settings={**parse_settings(changed), **({"model.answer": model} if model else {})},
            home=home,
            config_file=config_file,
            progress=_line if sys.stderr.isatty() else None,
            cancelled=stopped,
        )
    if json_file == "-":
        print_json(measured)
        return
    if sys.stderr.isatty():
        _line("")
    print(
        f"{file.name}: {measured.rows} claims, {measured.supported} of them supported; checked by {measured.verifier}"
    )
    figures = {
        "AUROC": measured.auroc,
        f"balanced accuracy at {measured.threshold:g}": measured.balanced_accuracy,
        "F1 of the unsupported": measured.f1_unsupported,
    }
    rows = [
        [name, *("-" if value is None else f"{value:.3f}" for value in (one.value, one.low, one.high))]
        for name, one in figures.items()
    ]
    table(["figure", "value", "95 % from", "to"], rows, numeric=[1, 2, 3])
    print(", ".join(f"{kind} {count}" for kind, count in measured.verdicts.items()))
    _keep(measured, json_file)


@app.command("abstention")
def abstention(
    dataset: Annotated[
        Path,
        typer.Argument(metavar="DATASET_DIR", help="BEIR-shaped folder with unanswerable.jsonl beside queries.jsonl."),
    ],
    json_file: Annotated[
        str | None,
        typer.Option("--json", metavar="FILE", help="Write the record to FILE; - is standard output."),
    ] = None,
    split: Annotated[str, typer.Option("--split", metavar="NAME", help="Judgements to use.")] = "test",
    queries: Annotated[
        int | None, typer.Option("--queries", metavar="N", help="Only the first N questions of each kind.")
    ] = None,
    model: Model = None,
    changed: Set = None,
    home: Home = None,
    config_file: ConfigFile = None,
) -> None:
    """Measure whether `ask` declines where the documents do not tell: AUROC, refusals, the risk-coverage curve."""
    from cognicraft.cli.ingest import _ctrl_c
    from cognicraft.cli.options import parse_settings
    from cognicraft.cli.output import print_json, table
    from cognicraft.evaluate.abstention_harness import evaluate_abstention

    with _ctrl_c() as stopped:
        measured = evaluate_abstention(
            dataset,
            split=split,
            queries=queries,
            settings={**parse_settings(changed), **({"model.answer": model} if model else {})},
            home=home,
            config_file=config_file,
            progress=_line if sys.stderr.isatty() else None,
            cancelled=stopped,
        )
    if json_file == "-":
        print_json(measured)
        return
    if sys.stderr.isatty():
        _line("")
    print(f"{measured.dataset}: {measured.answerable} questions with an answer, {measured.unanswerable} without")
    figures = {
        "AUROC of the confidence": measured.auroc,
        "answered from a right document": measured.right_document,
        "refused, and rightly (precision)": measured.refusal_precision,
        "without an answer, and refused (recall)": measured.refusal_recall,
    }
    rows = [[name, "-" if value is None else f"{value:.3f}"] for name, value in figures.items()]
    table(["figure", "value"], rows, numeric=[1])
    points = []
    for share, point in measured.at_most_wrong.items():
        how = f"answer.threshold {point.threshold:.3f} answers {point.coverage:.0%}" if point else "cannot be had"
        points.append([f"at most {float(share):.0%} wrong", how])
    table(["wanted", "setting"], points)
    _keep(measured, json_file)


def _keep(measured: BaseModel, json_file: str | None) -> None:
    """Write the record where it is wanted, after what was printed of it."""
    if json_file is not None:
        Path(json_file).write_text(measured.model_dump_json(indent=2) + "\n", encoding="utf-8")
        print(f"written to {json_file}")


def _line(text: str) -> None:
    print(f"\r\x1b[2K{text}", end="", file=sys.stderr, flush=True)


def _print(measured: RetrievalEvaluation) -> None:
    from cognicraft.cli.output import print_warnings, table

    if sys.stderr.isatty():
        _line("")
    print(
        f"{measured.dataset}: {measured.documents} documents ({measured.chunks} chunks), {measured.queries} questions"
    )
    ways = {"default": measured.metrics, **measured.arms}
    rows = [[name, *(f"{metrics[name]:.4f}" for metrics in ways.values())] for name in measured.metrics]
    table(["metric", *ways], rows, numeric=range(1, len(ways) + 1))
    print_warnings(measured.warnings)
