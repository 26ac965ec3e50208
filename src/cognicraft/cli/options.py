"""Options that commands share, and the workspace they name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from cognicraft.workspace import Workspace

WorkspaceName = Annotated[str | None, typer.Option("--workspace", "-w", metavar="NAME", help="Workspace to use.")]
Home = Annotated[
    Path | None,
    typer.Option("--home", metavar="DIR", help="Folder of all workspaces (COGNICRAFT_HOME; ~/.cognicraft)."),
]
ConfigFile = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="Settings file instead of cognicraft.toml.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON record instead of text.")]
Arms = Annotated[
    list[str] | None,
    typer.Option(
        "--arm",
        metavar="ARM",
        help="Arm to search with: dense, lexical, boolean, or an encoder's name. Repeatable.",
    ),
]
Fusion = Annotated[str | None, typer.Option("--fusion", metavar="NAME", help="zscore, minmax, rrf or dbsf.")]
Rerank = Annotated[
    str | None,
    typer.Option(
        "--rerank", metavar="NAME", help="late-interaction, cross-encoder, llm, llm-listwise, remote or none."
    ),
]
RerankModel = Annotated[
    str | None, typer.Option("--rerank-model", metavar="NAME", help="Cross-encoder: a hub name or an ONNX folder.")
]
Model = Annotated[
    str | None,
    typer.Option(
        "--model", "-m", metavar="NAME", help="Language model, provider:model (openai:small, ollama:llama3.2), or none."
    ),
]
Route = Annotated[
    bool | None, typer.Option("--route/--no-route", help="Prefer documents that the question names (default: yes).")
]
Plan = Annotated[
    bool | None, typer.Option("--plan/--no-plan", help="Let a language model plan the search (default: no).")
]
Hyde = Annotated[
    bool | None,
    typer.Option("--hyde/--no-hyde", help="Search with a passage that a model makes up, too (default: no)."),
]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Any search, answer or model setting, for this once. Repeatable."),
]
Weights = Annotated[
    list[str] | None,
    typer.Option("--weight", metavar="ARM=W", help="Weight of an arm in the fusion. Repeatable."),
]
Depth = Annotated[int | None, typer.Option("--depth", metavar="N", help="Hits taken from each arm.")]
Where = Annotated[
    str | None,
    typer.Option("--where", metavar="FILTER", help="""Only where it holds, e.g. 'year >= 2022 and file = "a.pdf"'."""),
]


def workspace(
    name: str | None,
    home: Path | None,
    config_file: Path | None,
    settings: dict[str, object] | None = None,
) -> Workspace:
    from cognicraft.workspace import Workspace

    return Workspace(name, home=home, config_file=config_file, settings=settings)


def parse_weights(pairs: list[str] | None) -> dict[str, float] | None:
    """`ARM=W` pairs. Raises: UsageError."""
    from cognicraft.errors import UsageError

    if not pairs:
        return None
    weights: dict[str, float] = {}
    for pair in pairs:
        name, _, value = pair.partition("=")
        try:
            weights[name.strip()] = float(value)
        except ValueError:
            raise UsageError(
                f"The weight {pair!r} is not ARM=NUMBER.", remedy="For example: --weight lexical=0.5"
            ) from None
    return weights


def parse_settings(pairs: list[str] | None) -> dict[str, object]:
    """`KEY=VALUE` pairs as settings; values are read as in the environment. Raises: UsageError, SettingsError."""
    from cognicraft.config import parse_value
    from cognicraft.errors import UsageError

    values: dict[str, object] = {}
    for pair in pairs or ():
        key, equals, text = pair.partition("=")
        if not equals:
            raise UsageError(f"The setting {pair!r} is not KEY=VALUE.", remedy="For example: --set search.depth=200")
        values[key.strip()] = parse_value(key.strip(), text)
    return values
