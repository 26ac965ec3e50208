"""`cognicraft prompts`: the templates that a model is asked with, to be copied and changed."""

from __future__ import annotations

from typing import Annotated

import typer

app = typer.Typer(help="Show the prompt templates, to copy and change them.", no_args_is_help=True)


@app.command("list")
def list_prompts() -> None:
    """Name the templates of the package, each with its first line."""
    from cognicraft.answer.prompting import BUILT_IN, load_template
    from cognicraft.cli.output import table

    rows = []
    for name in BUILT_IN:
        lines = load_template(name).text.splitlines()
        rows.append([name, next((line for line in lines if line.strip() and not line.startswith("<!--")), "")])
    table(["name", "what it is for"], rows)


@app.command("show")
def show_prompt(
    name: Annotated[str, typer.Argument(metavar="NAME", help="assistant, translation, scientific or legal.")],
) -> None:
    """Print a template. `cognicraft prompts show assistant > mine.md`, edit it, then `ask --prompt mine.md`."""
    from cognicraft.answer.prompting import load_template

    print(load_template(name).text, end="")
