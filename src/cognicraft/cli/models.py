"""`cognicraft models`: the language models that can be named, and which of them this machine can reach."""

from __future__ import annotations

from typing import Annotated

import typer

from cognicraft.cli.options import ConfigFile, Home, Json


def models(
    home: Home = None,
    config_file: ConfigFile = None,
    as_json: Json = False,
    provider: Annotated[str | None, typer.Option("--provider", metavar="NAME", help="Only this provider.")] = None,
) -> None:
    """List providers with their small, medium, large and flagship models, their keys, and who does which work."""
    from cognicraft.cli.options import workspace as open_workspace
    from cognicraft.cli.output import print_json, table

    with open_workspace(None, home, config_file) as opened:
        found = opened.models(provider=provider)
    if as_json:
        print_json(found)
        return
    rows = [
        [
            model.name,
            model.size,
            f"{model.context_tokens:,}",
            _price(model.input_usd),
            _price(model.output_usd),
            model.key,
        ]
        for model in found.models
    ]
    table(["model", "size", "tokens", "USD/M in", "USD/M out", "key"], rows, numeric=[2, 3, 4])
    print()
    table(["work", "model"], [[role, name or "none"] for role, name in found.roles.items()])
    if found.note:
        print(f"\n{found.note}")


def _price(usd: float | None) -> str:
    return "" if usd is None else f"{usd:g}"
