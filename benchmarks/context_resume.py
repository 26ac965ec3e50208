"""Contexts by a language model, killed and resumed: is each chunk paid for once?

usage: context_resume.py [--files 20] [--real] [--concurrency 4] [--reply-ms 60] [--json FILE]
       context_resume.py --estimate [--json FILE]

A stand-in that speaks the OpenAI protocol over a loopback socket counts its calls; it outlives the runs. Files: PDFs
made here, or with --real the 20 SEC filings of ../shared/data/sec10q_docugami (thousands of calls).
First part: `cognicraft ingest --context llm --yes` is killed (SIGKILL) when a third and when two thirds of the calls
have come in, and then goes through. A call is paid twice only where it was under way at a kill: asked for, its reply
not yet kept; never more than the concurrency. A last run over the same files must ask for nothing.
Second part, in a fresh home: the server is killed half way; the run must end with exit code 9 and a sentence, and the
next one, with the server back, must ask only for what is missing. Exit code 1 where anything of this does not hold.

--estimate: what the estimate before a run says of those filings from a few of them, against all of them read.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from cognicraft import Workspace
from cognicraft.ingest.context_estimate import SizedFile, estimate, spread_sample
from cognicraft.ingest.context_llm import ChunkContexts, Expected
from cognicraft.ingest.context_store import ContextStore
from cognicraft.ingest.read import read_file
from cognicraft.ingest.split import StructureSplitter
from cognicraft.models.llm import open_language_model
from cognicraft.models.minilm import MiniLM
from provider_servers import (  # type: ignore[import-not-found]
    ProviderServer,
    Reply,
    Request,
    provider_server,
)

FILINGS = Path(__file__).resolve().parents[2] / "shared" / "data" / "sec10q_docugami" / "v1" / "docs"
MODEL = "compatible:stand-in"
WINDOW_TOKENS = 16_000
SAID = "This passage stands in the yearly report of a small company. It tells how a part of its business went."


@dataclass
class Calls:
    """What the stand-in was asked, over all servers and runs, by a digest of the whole prompt."""

    by_prompt: Counter[int] = field(default_factory=Counter)

    def respond(self, request: Request, *, reply_s: float) -> Reply:
        self.by_prompt[hash(request.text)] += 1
        return Reply(text=SAID, hang_s=reply_s)

    @property
    def total(self) -> int:
        return self.by_prompt.total()

    @property
    def twice(self) -> int:
        """Calls beyond the first for the same prompt."""
        return self.total - len(self.by_prompt)


def make_pdfs(folder: Path, count: int) -> None:
    """Reports of three to six pages, no two pages alike."""
    from reportlab.lib.pagesizes import letter
    from reportlab.pdfgen.canvas import Canvas

    folder.mkdir(parents=True)
    for number in range(count):
        canvas = Canvas(str(folder / f"report-{number:02}.pdf"), pagesize=letter, invariant=1)
        canvas.setTitle(f"Report {number} of the Northern Mills Company")
        for page in range(3 + number % 4):
            canvas.setFont("Helvetica-Bold", 16)
            canvas.drawString(72, 720, f"Part {page + 1}: mill {number * 10 + page}")
            canvas.setFont("Helvetica", 10)
            for line in range(40):
                canvas.drawString(
                    72,
                    690 - 14 * line,
                    f"In week {line + 1} mill {number * 10 + page} spun {(number + 3) * (page + 7) * (line + 11)} "
                    "pounds of cotton and mended two of its frames.",
                )
            canvas.showPage()
        canvas.save()


def ingest(folder: Path, home: Path, server: ProviderServer, concurrency: int) -> subprocess.Popen[str]:
    environment = {
        **os.environ,
        "COGNICRAFT_HOME": str(home),
        "COGNICRAFT_MODEL_CONTEXT": MODEL,
        "COGNICRAFT_MODEL_BASE_URL": server.base_url,
        "COGNICRAFT_MODEL_API_KEY": "test-key",
        "COGNICRAFT_MODEL_CONTEXT_TOKENS": str(WINDOW_TOKENS),
        "COGNICRAFT_MODEL_CONCURRENCY": str(concurrency),
        "COGNICRAFT_MODEL_RETRIES": "1",
    }
    return subprocess.Popen(
        [sys.executable, "-m", "cognicraft", "ingest", str(folder), "--context", "llm", "--yes"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def chunks_in(home: Path) -> tuple[int, int, int]:
    """Documents, chunks, and chunks whose context the stand-in did not write."""
    with Workspace(home=home) as workspace:
        stored = [chunk for info in workspace.documents() for chunk in workspace.engine.document_chunks(info.id)]
        bare = sum(SAID not in chunk.chunk.lexical_context for chunk in stored)
        return len(workspace.documents()), len(stored), bare


def kept_in(home: Path) -> int:
    """Replies that are kept on disk."""
    store = ContextStore(home / "contexts.sqlite")
    try:
        return len(store)
    finally:
        store.close()


def wait_for(calls: Calls, wanted: int, child: subprocess.Popen[str]) -> None:
    while calls.total < wanted and child.poll() is None:
        time.sleep(0.005)


def killed_twice(folder: Path, home: Path, arguments: argparse.Namespace, expected: int) -> dict[str, Any]:
    calls = Calls()
    under_way: list[int] = []
    with provider_server("openai") as server:
        server.respond = lambda request: calls.respond(request, reply_s=arguments.reply_ms / 1000)
        for share in (1 / 3, 2 / 3):
            child = ingest(folder, home, server, arguments.concurrency)
            wait_for(calls, int(expected * share), child)
            child.send_signal(signal.SIGKILL)
            child.communicate()
            time.sleep(0.5)  # requests that are on their way to the server are counted
            under_way.append(len(calls.by_prompt) - kept_in(home))
            print(f"killed after {calls.total} calls, {under_way[-1]} under way", flush=True)
        child = ingest(folder, home, server, arguments.concurrency)
        output, _ = child.communicate()
        print(output, end="", flush=True)
        before = calls.total
        ingest(folder, home, server, arguments.concurrency).communicate()
    documents, chunks, bare = chunks_in(home)
    return {
        "documents": documents,
        "chunks": chunks,
        "chunks_without_context": bare,
        "calls": calls.total,
        "different_prompts": len(calls.by_prompt),
        "asked_twice": calls.twice,
        "under_way_at_the_kills": under_way,
        "calls_of_another_run": calls.total - before,
        "exit_code": child.returncode,
    }


def server_gone(folder: Path, home: Path, arguments: argparse.Namespace, expected: int) -> dict[str, Any]:
    calls = Calls()
    with provider_server("openai") as server:
        server.respond = lambda request: calls.respond(request, reply_s=arguments.reply_ms / 1000)
        child = ingest(folder, home, server, arguments.concurrency)
        wait_for(calls, expected // 2, child)
    output, _ = child.communicate()
    under_way = len(calls.by_prompt) - kept_in(home)
    message = [line.strip() for line in output.splitlines() if line.strip()]
    print(*message[-3:], sep="\n", flush=True)
    kept_documents, _, bare = chunks_in(home)
    with provider_server("openai") as server:
        server.respond = lambda request: calls.respond(request, reply_s=0)
        resumed = ingest(folder, home, server, arguments.concurrency)
        resumed.communicate()
    documents, chunks, bare_after = chunks_in(home)
    return {
        "exit_code": child.returncode,
        "message": message[-2:],
        "traceback": "Traceback" in output,
        "documents_written_before": kept_documents,
        "chunks_without_context": bare + bare_after,
        "documents": documents,
        "chunks": chunks,
        "calls": calls.total,
        "asked_twice": calls.twice,
        "under_way_when_it_went": under_way,
        "resumed_exit_code": resumed.returncode,
    }


def estimate_error(windows: Sequence[int], samples: Sequence[int]) -> list[dict[str, Any]]:
    """Estimated against counted, both in the step's own tokens, for the filings."""
    files = [SizedFile(str(path), path.stat().st_size) for path in sorted(FILINGS.glob("*.pdf"))]
    encoder, split = MiniLM(), StructureSplitter()
    documents = {file.source: list(read_file(file.source)) for file in files}
    chunks = {file: [split(one, offsets=encoder.token_offsets) for one in own] for file, own in documents.items()}
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        for window in windows:

            def opened(window: int = window) -> Any:
                return open_language_model(MODEL, base_url="http://127.0.0.1:9/v1", context_tokens=window)

            contexts = ChunkContexts(MODEL, opened, store=ContextStore(Path(temporary) / "none.sqlite"))
            expected: dict[str, list[Expected]] = {
                file: [contexts.expected(one, cut) for one, cut in zip(own, chunks[file], strict=True)]
                for file, own in documents.items()
            }
            whole = estimate(files, taken=expected, contexts=contexts, price=lambda *_: None)
            for most in samples:
                taken = {file.source: expected[file.source] for file in spread_sample(files, most=most)}
                found = estimate(files, taken=taken, contexts=contexts, price=lambda *_: None)
                rows.append(
                    {
                        "window_tokens": window,
                        "files_read": found.files_read,
                        "chunks": found.chunks,
                        "chunks_counted": whole.chunks,
                        "chunks_error": round(found.chunks / whole.chunks - 1, 3),
                        "input_tokens": found.input_tokens,
                        "input_tokens_counted": whole.input_tokens,
                        "input_error": round(found.input_tokens / whole.input_tokens - 1, 3),
                    }
                )
                print(json.dumps(rows[-1]), flush=True)
            contexts.close()
    return rows


def main(given: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=20)
    parser.add_argument("--real", action="store_true")
    parser.add_argument("--concurrency", type=int, default=4)
    parser.add_argument("--reply-ms", type=float, default=60)
    parser.add_argument("--json", type=Path, default=Path("benchmarks/results/context_resume.json"))
    parser.add_argument("--estimate", action="store_true")
    arguments = parser.parse_args(given)
    if arguments.estimate:
        rows = estimate_error((16_000, 128_000, 1_000_000), (3, 6, 12))
        arguments.json.with_name("context_estimate.json").write_text(
            json.dumps(rows, indent=2) + "\n", encoding="utf-8"
        )
        return 0
    with contextlib.redirect_stderr(io.StringIO()):  # the stand-in reports every connection that a kill breaks
        return kill_and_resume(arguments)


def kill_and_resume(arguments: argparse.Namespace) -> int:
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "files"
        if arguments.real:
            folder = FILINGS
        else:
            make_pdfs(folder, arguments.files)
        with Workspace(home=Path(temporary) / "plain") as workspace:  # how many calls to expect
            expected = workspace.ingest(folder).chunks
        print(f"{expected} chunks", flush=True)
        killed = killed_twice(folder, Path(temporary) / "killed", arguments, expected)
        gone = server_gone(folder, Path(temporary) / "gone", arguments, expected)
    whole = killed["chunks"] == expected == gone["chunks"]
    holds = {
        "every chunk is there with its context": whole
        and not killed["chunks_without_context"]
        and not gone["chunks_without_context"],
        "each chunk was paid for once, but for calls under way at a kill": killed["asked_twice"]
        <= sum(killed["under_way_at_the_kills"]),
        "another run asks for nothing": killed["calls_of_another_run"] == 0,
        "a server that goes ends the run with exit code 9 and a sentence": gone["exit_code"] == 9
        and not gone["traceback"],
        "the next run asks only for what is missing": gone["asked_twice"] <= gone["under_way_when_it_went"]
        and gone["resumed_exit_code"] == 0,
    }
    result = {
        "expected_chunks": expected,
        "concurrency": arguments.concurrency,
        "killed_twice": killed,
        "server_gone": gone,
        "holds": holds,
        "seconds": round(time.monotonic() - started),
    }
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    arguments.json.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(result, indent=2))
    return 0 if all(holds.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
