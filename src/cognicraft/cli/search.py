"""`cognicraft search`: passages, and how each was found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cognicraft.cli.options import (
    Arms,
    ConfigFile,
    Depth,
    Fusion,
    Home,
    Hyde,
    Json,
    Model,
    Plan,
    Rerank,
    RerankModel,
    Route,
    Set,
    Weights,
    Where,
    WorkspaceName,
)

if TYPE_CHECKING:
    from cognicraft.results import SearchResult, Understood


def search(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="Words or a question; with --arm boolean a rule.")],
    workspace: WorkspaceName = None,
    home: Home = None,
    config_file: ConfigFile = None,
    as_json: Json = False,
    limit: Annotated[int | None, typer.Option("--limit", "-n", metavar="N", help="Hits to show.")] = None,
    arm: Arms = None,
    fusion: Fusion = None,
    weight: Weights = None,
    rerank: Rerank = None,
    depth: Depth = None,
    where: Where = None,
    model: Model = None,
    rerank_model: RerankModel = None,
    route: Route = None,
    plan: Plan = None,
    hyde: Hyde = None,
    changed: Set = None,
    explain: Annotated[
        bool,
        typer.Option("--explain", help="Show each hit's rank and score in every arm, and the time by step."),
    ] = False,
) -> None:
    """Find passages. By default by meaning and by words together, fused and reranked."""
    from cognicraft.cli.options import parse_settings, parse_weights
    from cognicraft.cli.options import workspace as open_workspace
    from cognicraft.cli.output import print_json

    settings: dict[str, object] = {
        "model.answer": model,
        "search.rerank_model": rerank_model,
        "search.route": route,
        "search.plan": plan,
        "search.hyde": hyde,
    }
    with open_workspace(workspace, home, config_file) as opened:
        result = opened.search(
            query,
            limit=limit,
            arms=arm,
            fusion=fusion,
            weights=parse_weights(weight),
            rerank=rerank,
            depth=depth,
            where=where,
            settings={
                **parse_settings(changed),
                **{key: value for key, value in settings.items() if value is not None},
            },
        )
    if as_json:
        print_json(result)
    elif explain:
        _print_explained(result)
    else:
        _print_hits(result)


def _print_hits(result: SearchResult) -> None:
    from cognicraft.cli.output import place, print_warnings

    for hit in result.hits:
        print(f"{hit.rank}. {place(hit.file, hit.page, None, hit.heading)}  ({hit.score:.3f})")
        text = " ".join(hit.text.split())
        print(f"   {text[:280]}{'...' if len(text) > 280 else ''}")
    if not result.hits:
        print("Nothing found.")
    print_warnings(result.warnings)


def _print_explained(result: SearchResult) -> None:
    from cognicraft.cli.output import place, print_warnings, table

    arms = list(dict.fromkeys(name for hit in result.hits for name in hit.arms))
    rows = [
        [
            str(hit.rank),
            f"{hit.score:.4f}",
            *(f"#{hit.arms[arm].rank}  {hit.arms[arm].score:.4f}" if arm in hit.arms else "-" for arm in arms),
            place(hit.file, hit.page, None, ""),
            " ".join(hit.text.split())[:60],
        ]
        for hit in result.hits
    ]
    table(["rank", "score", *arms, "source", "text"], rows, numeric=[0, 1])
    steps = ", ".join(f"{name} {value:.1f}" for name, value in result.timings_ms.items())
    print_understood(result.understood)
    print(f"\nmilliseconds: {steps}")
    print_warnings(result.warnings)


def print_understood(meaning: Understood) -> None:
    """What a question was taken to mean: its telling words, the documents it names, what else was searched."""
    from cognicraft.cli.output import short_file

    print(f"\ntaken to mean: {', '.join(meaning.key_terms) or meaning.query}")
    for document in meaning.documents:
        by = f" by {', '.join(document.words)}" if document.words else ""
        print(f"  {short_file(document.file)}  fit {document.fit:.2f}{by}")
    for number, query in enumerate(meaning.queries[1:], start=2):
        print(f"  query {number}: {query}")
    for line in meaning.notes:
        print(f"  {line}")
