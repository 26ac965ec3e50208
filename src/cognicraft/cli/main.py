"""The command line: `cognicraft COMMAND`. Parsing and printing only; each command calls the workspace once.

Exit codes: 0 done (also where the documents do not tell), 1 a defect of ours, 2 a wrong argument or setting, 3 not
found, 4 some files could not be read (the others are in), 5 locked by another process, 6 made with another encoder
or version, 7 an optional part or model file is missing, 8 the engine failed, 9 a language model or another model that
runs elsewhere failed, 130 stopped.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from cognicraft.cli import (
    ask,
    chat,
    config,
    doctor,
    documents,
    evaluate,
    export,
    ingest,
    models,
    prompts,
    reindex,
    search,
    verify,
    workspaces,
)

app = typer.Typer(
    name="cognicraft",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",  # paragraphs of the docstrings flow to the width of the terminal
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Ask your own documents. Every sentence of an answer carries its source, or the answer says that the "
    "documents do not tell.",
    epilog="Exit codes: 0 done, 1 defect, 2 wrong argument, 3 not found, 4 some files unreadable, 5 locked, "
    "6 other encoder or version, 7 part missing, 8 engine failed, 9 model failed, 130 stopped.",
)


def _version(wanted: bool) -> None:
    if wanted:
        from cognicraft import __version__

        typer.echo(f"cognicraft {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


app.command("ingest")(ingest.ingest)
app.command("reindex")(reindex.reindex)
app.command("ask")(ask.ask)
app.command("chat")(chat.chat)
app.command("search")(search.search)
app.command("verify")(verify.verify)
app.add_typer(documents.app, name="documents")
app.add_typer(workspaces.app, name="workspaces")
app.command("models")(models.models)
app.add_typer(prompts.app, name="prompts")
app.command("doctor")(doctor.doctor)
app.add_typer(config.app, name="config")
app.add_typer(evaluate.app, name="evaluate")
app.add_typer(export.app, name="export")


def run() -> None:
    """Entry point: every error of ours becomes one message and its exit code, never a traceback."""
    from cognicraft.errors import CogniCraftError

    try:
        app()
    except CogniCraftError as error:
        from cognicraft.cli.output import print_error

        print_error(error)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        print("Stopped.", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        # The reader went away (`| head`): nothing to say, and nothing to flush into the closed pipe at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except OSError as error:
        import errno

        if error.errno != errno.ENOSPC:
            raise
        print(f"error: The disk is full ({error.filename or 'while writing'}).", file=sys.stderr)
        print("  What was reported as done is kept. Free some space and run again.", file=sys.stderr)
        sys.exit(8)
