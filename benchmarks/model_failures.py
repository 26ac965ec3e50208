"""What the product does when the language model fails: the command line in real processes, servers that misbehave.

usage: model_failures.py [--only WORD] [--no-real] [--json FILE]

A stand-in speaks the OpenAI protocol over a loopback socket (tests/provider_servers.py) and fails as each case says: no
server, a wrong key, too many requests, failures, silence, half a reply, nonsense, a refusal, a prompt that is too long;
for the answer itself, and for the steps before it (plan, reranking) and beside it (contexts of chunks). Where
llama.cpp's server is prepared (scripts/servers/llama.py prepare), it is killed in mid-answer, too.

Printed and kept for each case: the exit code, the first sentence that a person reads, and what is kept: the JSON record
of the answer, or the state of the workspace. A row is wrong (exit code 1 of this script) where a traceback is shown,
the exit code is not what docs/troubleshooting.md says, the command outlives its limit, or nothing is said of the
failure.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from provider_servers import Reply, Request, provider_server  # type: ignore[import-not-found]  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results" / "model_failures.json"
DOCUMENTS = ROOT / "demo" / "documents"
QUESTION = "Which k does reciprocal rank fusion use, and who proposed it?"
GOOD_ANSWER = "Reciprocal rank fusion uses k = 60 [1]. It was proposed by Cormack, Clarke and Büttcher [1]."
PLAN = {
    "intent": "Look up a constant and its authors.",
    "complexity": "simple",
    "strategy": "chunks",
    "variations": [{"query": "RRF constant k 60"}],
}
LIMIT_S = 60.0
MODEL_TIMEOUT_S = 3


@dataclass(frozen=True)
class Case:
    """One way to fail. command: what is run after `cognicraft`. exit: the exit code that is right."""

    name: str
    step: str
    reply: Reply
    command: tuple[str, ...]
    exit: int = 0
    no_server: bool = False
    key: str = "test-key"


@dataclass
class Row:
    """What a case came to. wrong: "" where it is as it should be."""

    case: str
    step: str
    exit: int
    seconds: float
    message: str
    kept: str
    calls: int
    wrong: str = ""


def step_of(request: Request) -> str:
    """Which step asks, by its instructions."""
    text = request.text
    if "You plan how a question" in text:
        return "plan"
    if "You write a passage to search with" in text:
        return "passage"
    if "You judge how well passages" in text:
        return "rerank"
    if "You place passages of documents" in text:
        return "context"
    return "answer"


def good(request: Request) -> Reply:
    """What a model that works replies."""
    step = step_of(request)
    if step == "plan":
        return Reply(text=json.dumps(PLAN))
    if step == "passage":
        return Reply(text="The method adds the reciprocal of rank plus a constant, proposed in 2009.")
    if step == "rerank":
        return Reply(text=json.dumps(_example(request.schema or {})))
    if step == "context":
        return Reply(text="This passage is of a handbook on retrieval. It explains one of its methods.")
    return Reply(text=GOOD_ANSWER)


def _example(schema: Mapping[str, Any], root: Mapping[str, Any] | None = None) -> Any:
    """Some value that fits a JSON schema."""
    root = schema if root is None else root
    if "$ref" in schema:
        return _example(root["$defs"][schema["$ref"].split("/")[-1]], root)
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type")
    if kind == "object":
        return {name: _example(inner, root) for name, inner in schema.get("properties", {}).items()}
    if kind == "array":
        return [_example(schema.get("items", {}), root)]
    return {"integer": 1, "number": 1.0, "boolean": True}.get(str(kind), "text")


ASK = ("ask", QUESTION, "--json")
FAILURES: tuple[tuple[str, Reply], ...] = (
    ("500, also after retries", Reply(status=500)),
    ("429, also after retries", Reply(status=429)),
    ("hangs before the reply", Reply(text=GOOD_ANSWER, hang_s=600)),
    ("body that is not JSON", Reply(malformed=True)),
    ("refuses", Reply(refusal=True)),
    ("prompt too long", Reply(overflow=True)),
)
IN_MID_REPLY: tuple[tuple[str, Reply], ...] = (
    ("connection cut in mid-answer", Reply(text=GOOD_ANSWER, break_after=30)),
    ("error inside the stream", Reply(text=GOOD_ANSWER, failing_after=30)),
    ("hangs in mid-answer", Reply(text=GOOD_ANSWER, hang_s=600, hang_after=30)),
    ("stopped by a content filter", Reply(text=GOOD_ANSWER[:30], finish="content_filter")),
    ("cut at the token limit", Reply(text=GOOD_ANSWER[:60], finish="length")),
)
NONSENSE: tuple[tuple[str, Reply], ...] = (
    ("nonsense without citations", Reply(text="Bananas are curved because of the moon. " * 3)),
    ("citations that do not exist", Reply(text="It uses k = 60 [97]. It is from 2009 [98].")),
    ("an empty reply", Reply(text="")),
)


UNUSABLE = (*FAILURES, ("nonsense", Reply(text="Bananas!")))


def cases() -> list[Case]:
    """All cases against the stand-in."""
    found = [
        Case("works", "answer", Reply(text=GOOD_ANSWER), ASK),
        Case("no server", "answer", Reply(), ASK, no_server=True),
        Case("wrong key", "answer", Reply(), ASK, 9, key="wrong-key"),
        Case("unknown model", "answer", Reply(status=404), ASK, 9),
    ]
    found += [Case(name, "answer", reply, ASK) for name, reply in (*FAILURES, *IN_MID_REPLY, *NONSENSE)]
    in_text = ("ask", QUESTION, "--stream")
    found += [Case(f"{name}, as text", "answer", reply, in_text) for name, reply in IN_MID_REPLY[:1]]
    planned = (*ASK, "--plan", "--hyde", "--set", "search.plan_timeout_s=3")
    found += [Case(name, "plan", reply, planned) for name, reply in UNUSABLE]
    found.append(Case("wrong key", "plan", Reply(status=401), planned, 9))
    return [*found, *(Case(name, "rerank", reply, (*ASK, "--rerank", "llm")) for name, reply in UNUSABLE)]


def environment(home: Path, base_url: str, key: str) -> dict[str, str]:
    """Settings of a person with one OpenAI-compatible server; nothing of whoever runs this."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("COGNICRAFT_")}
    cache = {"COGNICRAFT_CACHE": os.environ["COGNICRAFT_CACHE"]} if "COGNICRAFT_CACHE" in os.environ else {}
    return {
        **kept,
        **cache,
        "COGNICRAFT_HOME": str(home),
        "COGNICRAFT_MODEL_ANSWER": "compatible:test",
        "COGNICRAFT_MODEL_SMALL": "compatible:test",
        "COGNICRAFT_MODEL_BASE_URL": base_url,
        "COGNICRAFT_MODEL_API_KEY": key,
        "COGNICRAFT_MODEL_TIMEOUT_S": str(MODEL_TIMEOUT_S),
        "COGNICRAFT_MODEL_RETRIES": "1",
        "COGNICRAFT_MODEL_CACHE": "false",
        "OMP_WAIT_POLICY": "PASSIVE",
        "NO_COLOR": "1",
    }


@dataclass
class Finished:
    exit: int
    out: str
    err: str
    seconds: float


def cognicraft(*arguments: str, env: Mapping[str, str], home: Path) -> Finished:
    """The command in a process of its own; exit -1 where it had to be ended at the limit."""
    started = time.monotonic()
    command = [sys.executable, "-m", "cognicraft", *arguments]
    try:
        done = subprocess.run(command, env=dict(env), cwd=home, capture_output=True, text=True, timeout=LIMIT_S)
    except subprocess.TimeoutExpired as error:
        out, err = (part.decode() if isinstance(part, bytes) else part or "" for part in (error.stdout, error.stderr))
        return Finished(-1, out, err, time.monotonic() - started)
    return Finished(done.returncode, done.stdout, done.stderr, time.monotonic() - started)


def judge(case: Case, done: Finished, calls: int, usual: frozenset[str] = frozenset()) -> Row:
    """A row of the table, with what is wrong about it. usual: what is said where nothing fails."""
    record: dict[str, Any] = {}
    if "--json" in case.command and done.out.strip():
        try:
            record = json.loads(done.out)
        except ValueError:
            record = {"unreadable": True}
    said = [line for line in [*record.get("warnings", []), *_lines(done.err)] if line not in usual]
    message = said[0] if said else ""
    row = Row(case.name, case.step, done.exit, round(done.seconds, 1), message, kept(record, done), calls)
    problems = []
    if done.exit == -1:
        problems.append(f"still running after {LIMIT_S:g} s")
    elif done.exit != case.exit:
        problems.append(f"exit {done.exit}, not {case.exit}")
    if "Traceback" in done.err or "Traceback" in done.out:
        problems.append("a traceback is shown")
    if case.key != "test-key" and case.key in done.out + done.err:
        problems.append("the key is shown")
    if "unreadable" in record:
        problems.append("the record is not JSON")
    if case.name != "works" and not message:
        problems.append("nothing is said of the failure")
    if done.exit == 0 and "--json" in case.command and "answer" not in record:
        problems.append("no record")
    if calls == 0 and not case.no_server:
        problems.append("the model was never asked")
    row.wrong = "; ".join(problems)
    return row


def kept(record: Mapping[str, Any], done: Finished) -> str:
    """What there is after the command: the answer, by whom, with how many sources."""
    if record and "answer" in record:
        sentences = record.get("sentences", [])
        uncited = sum(not sentence["citations"] for sentence in sentences)
        unknown = sum(bool(sentence.get("unknown_citations")) for sentence in sentences)
        by = record.get("model") or "quoted word for word"
        parts = [
            "answered" if record.get("answered") else "not answered",
            f"by {by}" if record.get("model") else by,
            f"{len(sentences)} sentences",
            f"{len(record.get('sources', []))} sources",
        ]
        parts += [f"{uncited} uncited"] if uncited else []
        parts += [f"{unknown} with unknown citations"] if unknown else []
        return ", ".join(parts)
    return "text: " + " ".join(done.out.split())[:80] if done.out.strip() else "nothing"


def _lines(text: str) -> list[str]:
    """Lines that a person reads, without progress."""
    lines = [re.sub(r"^(?:error|note|warning): ", "", line.strip()) for line in text.splitlines()]
    return [line for line in lines if line and not re.match(r"\d+/\d+ files", line)]


def usually_said(command: tuple[str, ...], home: Path) -> frozenset[str]:
    """What the command says with a model that works."""
    with provider_server("openai") as server:
        server.respond = good
        env = environment(home, server.base_url, "test-key")
        done = cognicraft(*command, "-w", "handbook", env=env, home=home)
    record = json.loads(done.out) if "--json" in command and done.out else {}
    return frozenset([*record.get("warnings", []), *_lines(done.err)])


def run_case(case: Case, home: Path, usual: frozenset[str]) -> Row:
    with provider_server("openai") as server:
        server.respond = lambda request: case.reply if step_of(request) == case.step else good(request)
        base_url = server.base_url
        if case.no_server:
            server.close()
        done = cognicraft(*case.command, "-w", "handbook", env=environment(home, base_url, case.key), home=home)
        asked = [request for request in server.requests if step_of(request) == case.step]
        return judge(case, done, len(asked), usual)


def contexts(home: Path, folder: Path) -> list[Row]:
    """Ingest with contexts by a model that stops working after six chunks, then again with one that works."""
    rows: list[Row] = []
    paid: list[str] = []

    def respond(request: Request) -> Reply:
        if not rows and len(paid) == 6:
            return Reply(status=500)
        paid.append(request.text)
        return good(request)

    with provider_server("openai") as server:
        server.respond = respond
        env = environment(home, server.base_url, "test-key") | {"COGNICRAFT_MODEL_CACHE": "true"}
        for name, exits in (("server fails in mid-contextualisation", 9), ("the same, gone on with", 0)):
            before = len(paid)
            done = cognicraft("ingest", str(folder), "-w", "new", "--context", "llm", "--yes", env=env, home=home)
            listed = cognicraft("documents", "list", "-w", "new", "--json", env=env, home=home)
            ready = 0 if listed.exit else sum(one["status"] == "ready" for one in json.loads(listed.out))
            twice = len(paid) - len(set(paid))
            left = f"{ready} documents, {len(set(paid))} chunks paid for, {twice} of them twice"
            said = [*_lines(done.err), *_lines(done.out), ""][0]
            row = Row(name, "context", done.exit, round(done.seconds, 1), said, left, len(paid) - before)
            problems = ["a traceback is shown"] if "Traceback" in done.err else []
            problems += [f"exit {done.exit}, not {exits}"] if done.exit != exits else []
            problems += ["paid twice"] if twice else []
            row.wrong = "; ".join(problems)
            rows.append(row)
    return rows


def killed_in_mid_answer(home: Path) -> Row | None:
    """llama.cpp's server, killed once the first words of an answer are there; None where it is not prepared."""
    from model_servers import missing, own_server  # type: ignore[import-not-found]

    if reason := missing("llama"):
        print(f"llama.cpp's server is left out: {reason}", file=sys.stderr)
        return None
    with own_server("llama") as server:
        env = environment(home, server.openai_url, "none") | {
            "COGNICRAFT_MODEL_ANSWER": f"compatible:{server.model}",
            "COGNICRAFT_MODEL_SMALL": f"compatible:{server.model}",
            "COGNICRAFT_MODEL_TIMEOUT_S": "60",
            "PYTHONUNBUFFERED": "1",
        }
        command = [sys.executable, "-m", "cognicraft", "ask", QUESTION, "-w", "handbook", "--stream"]
        more = ["--top-k", "3", "--max-tokens", "800"]
        started = time.monotonic()
        process = subprocess.Popen(
            [*command, *more], env=env, cwd=home, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        first = process.stdout.read(8)
        server.kill()
        try:
            out, err = process.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
        done = Finished(process.returncode, first + out, err, time.monotonic() - started)
    case = Case("llama.cpp's server killed in mid-answer", "answer", Reply(), tuple(command[3:]))
    return judge(case, done, 1)


def show(rows: list[Row]) -> None:
    for row in rows:
        wrong = f"  WRONG: {row.wrong}" if row.wrong else ""
        came = f"{row.exit:4} {row.seconds:5.1f} {row.calls:5}  {row.kept} | {row.message[:160]}"
        print(f"{row.step:8} {row.case:38} {came}{wrong}", flush=True)


def keep(file: Path, rows: list[Row], *, others: bool) -> None:
    """Write the rows; others: rows of cases that did not run now stay as they were."""
    old = json.loads(file.read_text(encoding="utf-8")) if others and file.is_file() else []
    new = {(row.step, row.case): asdict(row) for row in rows}
    merged = {(row["step"], row["case"]): row for row in old} | new
    file.write_text(json.dumps(list(merged.values()), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="cases or steps whose name holds this word")
    parser.add_argument("--no-real", action="store_true", help="leave the real server out")
    parser.add_argument("--json", type=Path, default=RESULTS, help="where the rows are kept")
    options = parser.parse_args()
    rows: list[Row] = []
    usual: dict[tuple[str, ...], frozenset[str]] = {}
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        plain = environment(home, "", "") | {"COGNICRAFT_MODEL_ANSWER": "none", "COGNICRAFT_MODEL_SMALL": ""}
        ingested = cognicraft("ingest", str(DOCUMENTS), "-w", "handbook", env=plain, home=home)
        if ingested.exit:
            print(ingested.err, file=sys.stderr)
            return 1
        print(f"{'step':8} {'case':38} {'exit':>4} {'s':>5} {'calls':>5}  kept | message")
        for case in cases():
            if options.only in f"{case.step} {case.name}":
                if case.command not in usual:
                    usual[case.command] = usually_said(case.command, home)
                rows.append(run_case(case, home, usual[case.command]))
                show(rows[-1:])
        if options.only in "context mid-contextualisation":
            small = home / "small"
            small.mkdir()
            for name in ("planning.md", "measuring.md"):
                (small / name).write_bytes((DOCUMENTS / name).read_bytes())
            rows += contexts(home, small)
            show(rows[-2:])
        if not options.no_real and options.only in "answer killed" and (row := killed_in_mid_answer(home)):
            rows.append(row)
            show([row])
    keep(options.json, rows, others=bool(options.only or options.no_real))
    wrong = [row for row in rows if row.wrong]
    print(f"\n{len(rows)} cases, {len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
