"""`cognicraft reindex`: a workspace encoded again with other encoders, with progress, stoppable and resumable."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from cognicraft.cli.options import ConfigFile, Home, Json, WorkspaceName

if TYPE_CHECKING:
    from cognicraft.reindexing import ReindexProgress
    from cognicraft.results import ReindexReport


def reindex(
    embedder: Annotated[
        list[str],
        typer.Option(
            "--embedder",
            "--encoder",
            metavar="NAME",
            help="Dense encoder to become: minilm, multilingual-e5, openai:MODEL, ... Repeatable, or joined by commas.",
        ),
    ],
    workspace: WorkspaceName = None,
    home: Home = None,
    config_file: ConfigFile = None,
    as_json: Json = False,
) -> None:
    """Encode a workspace again with other encoders, from the text that it holds. No file is read.

    Questions are answered with the old encoders until the end; then the new ones take over in one step. Ctrl-C or a
    kill loses nothing that was encoded: the same command goes on from there.
    """
    from cognicraft.cli.ingest import _ctrl_c
    from cognicraft.cli.options import workspace as open_workspace
    from cognicraft.cli.output import plural, print_json, print_warnings

    names = [part.strip() for name in embedder for part in _split(name) if part.strip()]
    with open_workspace(workspace, home, config_file) as opened, _ctrl_c() as stopped:
        report = _progress(
            lambda show: opened.reindex(*names, progress=show, cancelled=stopped),
            quiet=as_json,
        )
    if as_json:
        print_json(report)
        return
    encoders = ", ".join(report.encoders)
    if not report.switched:
        print(f"Nothing to do: {report.workspace} is encoded with {encoders}.")
    else:
        kept = f" ({plural(report.kept, 'document')} were done before)" if report.kept else ""
        print(
            f"{report.workspace} is encoded with {encoders} now, not {', '.join(report.encoders_before)}: "
            f"{plural(report.documents, 'document')}, {plural(report.chunks, 'chunk')}{kept} in "
            f"{report.timings_ms['total'] / 1000:.1f} s."
        )
    print_warnings(report.warnings)


def _split(name: str) -> list[str]:
    """Names joined by commas; a folder may have a comma of its own."""
    return [name] if name.startswith("onnx:") else name.split(",")


def _progress(work: Callable[[Callable[[ReindexProgress], None]], ReindexReport], *, quiet: bool) -> ReindexReport:
    """A bar in a terminal, a line every few seconds elsewhere; both on standard error."""
    if quiet:
        return work(lambda _: None)
    if not sys.stderr.isatty():
        last = time.monotonic()

        def line(now: ReindexProgress) -> None:
            nonlocal last
            if time.monotonic() - last >= 5:
                last = time.monotonic()
                print(
                    f"{now.documents_done}/{now.documents_total} documents, "
                    f"{now.chunks_done}/{now.chunks_total} chunks, {_short(now.current)}",
                    file=sys.stderr,
                    flush=True,
                )

        return work(line)
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    from cognicraft.cli.output import console

    with Bar(
        TextColumn("Encode"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("chunks"),
        TextColumn("{task.fields[rate]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[current]}", style="dim"),
        console=console(stderr=True),
        transient=True,
    ) as bar:
        task = bar.add_task("encode", total=None, rate="", current="")
        started, before = time.monotonic(), -1

        def show(now: ReindexProgress) -> None:
            nonlocal before
            before = now.chunks_done if before < 0 else before
            rate = (now.chunks_done - before) / max(time.monotonic() - started, 1e-9)
            bar.update(
                task,
                total=now.chunks_total,
                completed=now.chunks_done,
                rate=f"{rate:.0f} chunks/s",
                current=_short(now.current),
            )

        return work(show)


def _short(current: str) -> str:
    """The last part of a file's name; what is waited for, whole."""
    if current.startswith("waiting: "):
        return current
    name = current.rsplit("/", 1)[-1]
    return name if len(name) <= 40 else f"{name[:37]}..."
