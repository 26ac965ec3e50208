"""`cognicraft workspaces`: list, delete."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from cognicraft.cli.options import ConfigFile, Home, Json

app = typer.Typer(help="The workspaces of a home.", no_args_is_help=True)


@app.command("list")
def list_workspaces(home: Home = None, config_file: ConfigFile = None, as_json: Json = False) -> None:
    """List workspaces with their size."""
    from cognicraft.cli.options import workspace as open_workspace
    from cognicraft.cli.output import print_json, table

    with open_workspace(None, home, config_file) as opened:
        found = opened.list_workspaces()
    if as_json:
        print_json(found)
        return

    def count(number: int | None) -> str:
        return "?" if number is None else str(number)

    table(
        ["name", "documents", "chunks", "MB", "engine", "encoders", "note"],
        [
            [
                w.name,
                count(w.documents),
                count(w.chunks),
                f"{w.disk_bytes / 1e6:.1f}",
                w.engine,
                " ".join(w.encoders),
                w.note,
            ]
            for w in found
        ],
        numeric=[1, 2, 3],
    )


@app.command("delete")
def delete_workspace(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Workspace to delete.")],
    home: Home = None,
    config_file: ConfigFile = None,
    as_json: Json = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Delete a workspace and all that is in it. The files themselves are not touched."""
    from cognicraft.cli.options import workspace as open_workspace
    from cognicraft.cli.output import print_json
    from cognicraft.errors import UsageError

    with open_workspace(name, home, config_file) as opened:
        if not yes:
            if not sys.stdin.isatty():
                raise UsageError(
                    "Deleting a workspace asks first, and nobody is there to answer.", remedy="Give --yes."
                )
            typer.confirm(f"Delete the workspace {name} in {opened.path}?", abort=True)
        opened.delete_workspace()
    if as_json:
        print_json({"deleted": name})
    else:
        print(f"Deleted the workspace {name}.")
