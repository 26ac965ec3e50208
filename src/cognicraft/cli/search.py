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
    Json,
    Rerank,
    Weights,
    Where,
    WorkspaceName,
)

if TYPE_CHECKING:
    from cognicraft.results import SearchResult


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
    explain: Annotated[
        bool,
        typer.Option("--explain", help="Show each hit's rank and score in every arm, and the time by step."),
    ] = False,
) -> None:
    """Find passages. By default by meaning and by words together, fused and reranked."""
    from cognicraft.cli.options import parse_weights
    from cognicraft.cli.options import workspace as open_workspace
    from cognicraft.cli.output import print_json

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
    print(f"\nmilliseconds: {steps}")
    print_warnings(result.warnings)
