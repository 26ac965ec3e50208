"""`cognicraft ask`: a question, and the sentences of the documents that answer it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cognicraft.cli.options import (
    Arms,
    ConfigFile,
    Depth,
    Fusion,
    Home,
    Json,
    Rerank,
    Weights,
    Where,
    WorkspaceName,
)

if TYPE_CHECKING:
    from cognicraft.results import Answer


def ask(
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="The question, in quotes.")],
    workspace: WorkspaceName = None,
    home: Home = None,
    config_file: ConfigFile = None,
    as_json: Json = False,
    arm: Arms = None,
    fusion: Fusion = None,
    weight: Weights = None,
    rerank: Rerank = None,
    depth: Depth = None,
    where: Where = None,
    sentences: Annotated[int | None, typer.Option("--sentences", metavar="N", help="Sentences quoted at most.")] = None,
    threshold: Annotated[
        float | None,
        typer.Option("--threshold", metavar="0..1", help="Confidence below which nothing is answered."),
    ] = None,
) -> None:
    """Answer a question from the documents, word for word, with file, page and quote.

    Where nothing fits the answer says so (exit code 0).
    """
    from cognicraft.cli.options import parse_weights
    from cognicraft.cli.options import workspace as open_workspace
    from cognicraft.cli.output import print_json

    settings: dict[str, object] = {"answer.max_sentences": sentences, "answer.threshold": threshold}
    with open_workspace(workspace, home, config_file, settings) as opened:
        answer = opened.ask(
            question,
            arms=arm,
            fusion=fusion,
            weights=parse_weights(weight),
            rerank=rerank,
            depth=depth,
            where=where,
        )
    if as_json:
        print_json(answer)
    else:
        print_answer(answer)


def print_answer(answer: Answer) -> None:
    from cognicraft.cli.output import place, print_warnings

    print(answer.answer)
    if answer.sources:
        print("\nSources" if answer.answered else "\nNearest passages, which do not answer it")
    for source in answer.sources:
        print(f"[{source.n}] {place(source.file, source.page, source.page_end, source.heading)}")
        if not answer.answered:
            text = " ".join(source.quote.split())
            print(f"    {text[:160]}{'...' if len(text) > 160 else ''}")
    print_warnings(answer.warnings)
