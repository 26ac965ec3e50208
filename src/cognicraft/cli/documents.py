"""`cognicraft documents`: list, show, delete."""

from __future__ import annotations

from typing import Annotated

import typer

from cognicraft.cli.options import ConfigFile, Home, Json, WorkspaceName

app = typer.Typer(help="The documents of a workspace.", no_args_is_help=True)
DocumentName = Annotated[
    str, typer.Argument(metavar="DOCUMENT", help="Id, the first characters of an id, or the file.")
]


@app.command("list")
def list_documents(
    workspace: WorkspaceName = None,
    home: Home = None,
    config_file: ConfigFile = None,
    as_json: Json = False,
    failed: Annotated[
        bool, typer.Option("--failed", help="Only files that could not be read, with the reason.")
    ] = False,
) -> None:
    """List documents, or with --failed the files that could not be read."""
    from cognicraft.cli.options import workspace as open_workspace
    from cognicraft.cli.output import print_json, short_file, table

    with open_workspace(workspace, home, config_file) as opened:
        found = opened.documents(failed=failed)
    if as_json:
        print_json(found)
    elif failed:
        table(["file", "code", "reason"], [[short_file(d.file), d.error_code, d.error] for d in found])
    else:
        table(
            ["id", "pages", "chunks", "language", "file", "title"],
            [
                [
                    d.id[:12],
                    str(d.pages or "-"),
                    str(d.chunks),
                    d.language or "-",
                    short_file(d.file),
                    d.title,
                ]
                for d in found
            ],
            numeric=[1, 2],
        )


@app.command("show")
def show_document(
    document: DocumentName,
    workspace: WorkspaceName = None,
    home: Home = None,
    config_file: ConfigFile = None,
    as_json: Json = False,
) -> None:
    """Show a document: what is known of it, and its text as it was read."""
    from cognicraft.cli.options import workspace as open_workspace
    from cognicraft.cli.output import print_json

    with open_workspace(workspace, home, config_file) as opened:
        shown = opened.document(document)
    if as_json:
        print_json(shown)
        return
    info = shown.document
    for label, value in (
        ("id", info.id),
        ("file", info.file),
        ("title", info.title),
        ("type", info.media_type),
        ("language", info.language),
        ("pages", info.pages or ""),
        ("chunks", info.chunks),
        ("ingested", info.ingested_at),
        ("error", info.error),
        *((f"metadata {key}", value) for key, value in info.metadata.items()),
        *(("note", warning) for warning in info.warnings),
    ):
        if value not in ("", None):
            print(f"{label}: {value}")
    print(f"\n{shown.text}")


@app.command("delete")
def delete_document(
    document: DocumentName,
    workspace: WorkspaceName = None,
    home: Home = None,
    config_file: ConfigFile = None,
    as_json: Json = False,
) -> None:
    """Delete a document from the workspace for good. The file itself is not touched."""
    from cognicraft.cli.options import workspace as open_workspace
    from cognicraft.cli.output import print_json, short_file

    with open_workspace(workspace, home, config_file) as opened:
        gone = opened.delete(document)
    if as_json:
        print_json(gone)
    else:
        print(f"Deleted {short_file(gone.file)} ({gone.chunks} chunks).")
