"""`cognicraft export`: what a workspace holds, for other programs."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from cognicraft.cli.options import ConfigFile, Home, WorkspaceName

app = typer.Typer(help="Write what a workspace holds for other programs.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    pass


@app.command("triplets")
def triplets(
    out: Annotated[str, typer.Option("--out", "-o", metavar="FILE", help="File to write; - is standard output.")] = "-",
    session: Annotated[
        list[str] | None, typer.Option("--session", metavar="ID", help="Only this session. Repeatable.")
    ] = None,
    workspace: WorkspaceName = None,
    home: Home = None,
    config_file: ConfigFile = None,
) -> None:
    """Write (question, context, answer) lines of saved chats in the chat fine-tuning shape, verified answers only.

    An answer by a model is verified where every claim is supported; sentences that were quoted are the documents' own.
    """
    from cognicraft.cli.options import workspace as open_workspace
    from cognicraft.cli.output import plural
    from cognicraft.triplets import triplets

    with open_workspace(workspace, home, config_file) as opened:
        sessions = opened.sessions
        turns = [turn for one in session or sessions.ids() for turn in sessions.open(one).turns]
    lines = [json.dumps(line, ensure_ascii=False) for line in triplets(turns)]
    text = "".join(f"{line}\n" for line in lines)
    if out == "-":
        sys.stdout.write(text)
    else:
        Path(out).write_text(text, encoding="utf-8")
    kept = f"{plural(len(lines), 'line')} of {plural(len(turns), 'turn')}"
    print(f"{kept}: the others were not answered, or not verified.", file=sys.stderr)
