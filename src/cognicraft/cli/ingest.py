"""`cognicraft ingest`: files in, with progress, stoppable and resumable."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from cognicraft.cli.options import ConfigFile, Home, Json, WorkspaceName

if TYPE_CHECKING:
    from cognicraft.ingest.context_estimate import ContextEstimate
    from cognicraft.ingestion import Progress
    from cognicraft.results import IngestReport


def ingest(
    targets: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TARGET...", help="Files, folders or globs to read; - reads a list of paths from standard input."
        ),
    ] = None,
    workspace: WorkspaceName = None,
    home: Home = None,
    config_file: ConfigFile = None,
    as_json: Json = False,
    encoder: Annotated[
        list[str] | None,
        typer.Option("--encoder", metavar="NAME", help="Dense encoder: minilm, multilingual-e5. Repeatable."),
    ] = None,
    splitter: Annotated[str | None, typer.Option("--splitter", metavar="NAME", help="structure or recursive.")] = None,
    chunk_tokens: Annotated[
        int | None, typer.Option("--chunk-tokens", metavar="N", help="Largest chunk, in tokens.")
    ] = None,
    context: Annotated[
        str | None,
        typer.Option(
            "--context",
            metavar="MODE",
            help="What is put before a chunk to encode it: none, outline, or llm (sentences by a language model).",
        ),
    ] = None,
    context_dense: Annotated[
        str | None, typer.Option("--context-dense", metavar="MODE", help="The same for the dense arms only.")
    ] = None,
    context_lexical: Annotated[
        str | None, typer.Option("--context-lexical", metavar="MODE", help="The same for the lexical arm only.")
    ] = None,
    context_model: Annotated[
        str | None,
        typer.Option("--context-model", metavar="PROVIDER:MODEL", help="Language model that writes contexts."),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Do not ask before a language model is paid for contexts.")
    ] = False,
    late_interaction: Annotated[
        bool | None,
        typer.Option("--late-interaction/--no-late-interaction", help="Keep token vectors for reranking, or not."),
    ] = None,
    json_text: Annotated[
        list[str] | None,
        typer.Option("--json-text", metavar="FIELD", help="JSON field or pointer that is text. Repeatable."),
    ] = None,
    json_metadata: Annotated[
        list[str] | None,
        typer.Option("--json-metadata", metavar="FIELD", help="JSON field to filter by. Repeatable."),
    ] = None,
    prune: Annotated[bool, typer.Option("--prune", help="Remove documents whose file has vanished.")] = False,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Read files on the quarantine list again.")
    ] = False,
) -> None:
    """Read documents into a workspace. New and changed files are read, unchanged ones are skipped.

    Reads PDF, JSON, JSONL, Markdown, HTML, DOCX and text. Ctrl-C stops and loses nothing that was done; the same
    command goes on from there. Files that cannot be read are listed by `documents list --failed`; exit code 4 says
    that there are some. With `--context llm` what the language model will cost is estimated and asked first.
    """
    from cognicraft.cli.options import workspace as open_workspace
    from cognicraft.cli.output import print_json
    from cognicraft.errors import UsageError

    names = list(targets or [])
    if "-" in names or (not names and not sys.stdin.isatty()):
        from cognicraft.ingest.discover import listed_paths

        names = [name for name in names if name != "-"]
        names += [path for path in listed_paths(sys.stdin.buffer) if path.strip()]
    if not names:
        raise UsageError(
            "Nothing to ingest was named.",
            remedy="Give files, folders or globs, or - for a list on standard input.",
        )
    settings: dict[str, object] = {
        "ingest.encoders": tuple(encoder) if encoder else None,
        "ingest.splitter": splitter,
        "ingest.chunk_tokens": chunk_tokens,
        "ingest.context_dense": context_dense or context,
        "ingest.context_lexical": context_lexical or context,
        "model.context": context_model,
        "ingest.late_interaction": late_interaction,
        "ingest.json_text": tuple(json_text) if json_text else None,
        "ingest.json_metadata": tuple(json_metadata) if json_metadata else None,
    }
    with open_workspace(workspace, home, config_file, settings) as opened, _ctrl_c() as stopped:
        if opened.settings.engine == "memory":
            raise UsageError(
                "The engine memory forgets everything when this command ends.",
                remedy="Use the engine edge, or the memory engine from Python.",
            )
        report = _progress(
            lambda show, confirm: opened.ingest(
                *names, prune=prune, retry_failed=retry_failed, progress=show, cancelled=stopped, confirm=confirm
            ),
            quiet=as_json,
            yes=yes,
        )
    if as_json:
        print_json(report)
    else:
        _print_report(report)
    if report.failed:
        raise typer.Exit(4)


@contextmanager
def _ctrl_c() -> Iterator[Callable[[], bool]]:
    """The first Ctrl-C asks the run to stop at the next step; the second stops at once."""
    asked = False

    def handle(_number: int, _frame: object) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True
        print("\nStopping after this step; Ctrl-C again stops at once.", file=sys.stderr)

    before = signal.signal(signal.SIGINT, handle)
    try:
        yield lambda: asked
    finally:
        signal.signal(signal.SIGINT, before)


Work = Callable[[Callable[["Progress"], None], Callable[["ContextEstimate"], bool]], "IngestReport"]


def _progress(work: Work, *, quiet: bool, yes: bool) -> IngestReport:
    """A bar in a terminal, a line every few seconds elsewhere; both on standard error."""

    def confirm(estimate: ContextEstimate) -> bool:
        return _go_on(estimate, yes=yes)

    if quiet:
        return work(lambda _: None, confirm)
    if not sys.stderr.isatty():
        last = time.monotonic()

        def line(now: Progress) -> None:
            nonlocal last
            if time.monotonic() - last >= 5:
                last = time.monotonic()
                contexts = _contexts(now)
                print(
                    f"{now.files_done}/{now.files_total} files, {now.chunks} chunks, "
                    f"{contexts + ', ' if contexts else ''}{_short(now.current)}",
                    file=sys.stderr,
                    flush=True,
                )

        return work(line, confirm)
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.progress import Progress as Bar

    from cognicraft.cli.output import console

    with Bar(
        TextColumn("Ingest"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("files"),
        TextColumn("{task.fields[rate]}"),
        TextColumn("{task.fields[contexts]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[current]}", style="dim"),
        console=console(stderr=True),
        transient=True,
    ) as bar:
        task = bar.add_task("ingest", total=None, rate="", contexts="", current="")
        started = time.monotonic()

        def show(now: Progress) -> None:
            rate = now.chunks / max(time.monotonic() - started, 1e-9)
            bar.update(
                task,
                total=now.files_total,
                completed=now.files_done,
                rate=f"{rate:.0f} chunks/s",
                contexts=_contexts(now),
                current=_short(now.current),
            )

        def pausing(estimate: ContextEstimate) -> bool:
            bar.stop()  # a question and a bar do not share a line
            try:
                return confirm(estimate)
            finally:
                bar.start()

        return work(show, pausing)


def _go_on(estimate: ContextEstimate, *, yes: bool) -> bool:
    """Ask whether to pay for contexts. Raises: UsageError where nobody can be asked."""
    from cognicraft.errors import UsageError

    print(estimate, file=sys.stderr)
    if yes:
        return True
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(
            "Contexts by a language model are paid for, and nobody can be asked here.",
            remedy="Add --yes to go on at that cost, or leave --context llm out.",
        )
    print("Go on? [y/N] ", end="", file=sys.stderr, flush=True)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # nothing runs yet: Ctrl-C stops at once
    try:
        return sys.stdin.readline().strip().lower() in ("y", "yes")
    finally:
        signal.signal(signal.SIGINT, before)


def _contexts(now: Progress) -> str:
    """`120 of about 600 contexts, 45,000 tokens, 0.01 USD`; "" without a language model."""
    if not now.contexts and now.contexts_expected is None:
        return ""
    of = "" if now.contexts_expected is None else f" of about {now.contexts_expected}"
    tokens = now.usage.input_tokens + now.usage.output_tokens
    cost = "" if now.usage.cost_usd is None else f", {now.usage.cost_usd:.2f} USD"
    return f"{now.contexts}{of} contexts, {tokens:,} tokens{cost}"


def _short(file: str) -> str:
    name = file.rsplit("/", 1)[-1]
    return name if len(name) <= 40 else f"{name[:37]}..."


def _print_report(report: IngestReport) -> None:
    from cognicraft.cli.output import plural, print_warnings, short_file

    seconds = report.timings_ms["total"] / 1000
    done = report.added + report.changed
    print(
        f"{plural(done, 'file')} read into {report.workspace} ({report.added} new, {report.changed} changed, "
        f"{report.unchanged} unchanged): {plural(report.documents, 'document')}, "
        f"{plural(report.chunks, 'chunk')} in {seconds:.1f} s."
    )
    if report.vanished:
        removed = f"{plural(report.pruned, 'document')} removed" if report.pruned else "--prune removes their documents"
        print(f"{plural(len(report.vanished), 'file')} vanished ({removed}):")
        for file in report.vanished[:10]:
            print(f"  {short_file(file)}")
    if report.skipped:
        reasons = ", ".join(f"{count} ({reason})" for reason, count in report.skipped.items())
        print(f"Passed over: {reasons}.")
    print_warnings(report.warnings)
    if report.failed:
        print(f"{plural(len(report.failed), 'file')} could not be read:", file=sys.stderr)
        for failed in report.failed:
            print(f"  {short_file(failed.file)}: {failed.error}", file=sys.stderr)
