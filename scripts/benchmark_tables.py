"""Write the figures of benchmarks/results/ into docs/benchmarks.md and the README, between their markers.

usage: benchmark_tables.py [--check]     --check writes nothing and fails where a page shows other figures

A marker is `<!-- figures: NAME -->`; what follows it, down to `<!-- end -->`, is replaced. A result that is not there
leaves a line that says so: no figure is written that no run gave.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
PAGES = (ROOT / "docs" / "benchmarks.md", ROOT / "README.md")
_MARKER = re.compile(r"<!-- figures: ([\w-]+) -->.*?<!-- end -->", re.DOTALL)


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [f"| {' | '.join(columns)} |", f"|{' --- |' * len(columns)}"]
    lines += [f"| {' | '.join(str(cell) for cell in row)} |" for row in rows]
    return "\n".join(lines)


def result(name: str) -> Any:
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def quality() -> str:
    return (RESULTS / "quality.md").read_text(encoding="utf-8").replace("\n## ", "\n### ").strip()


def quality_short() -> str:
    data = result("quality")
    ways = {"lexical": "keyword (BM25)", "dense": "dense (MiniLM)", "minmax .5/.5": "hybrid (min-max)"}
    ways["default"] = "default (hybrid + late interaction)"
    sets = {"scifact": 300, "squad2": 2910, "anthropic_docs_rag": 100}
    figures = data["sets"]["minilm"]
    rows = [
        [f"{name} ({questions} questions)", *(f"{figures[name]['ways'][way]['ndcg@10']:.3f}" for way in ways)]
        for name, questions in sets.items()
    ]
    head = f"nDCG@10, {data['date']}, {data['machine']}, two shared cores; `{data['command']}`.\n\n"
    return head + table(["data set", *ways.values()], rows)


def answers() -> str:
    rows = []
    for name, row in result("answers")["sets"].items():

        def share(key: str, row: dict[str, float] = row) -> str:
            return f"{row[key]:.3f}" if key in row else ""

        rows.append(
            [name, row["questions"] or row.get("unanswerable", ""), share("first"), share("three"), share("refused"),
             share("declined"), share("auroc")]
        )  # fmt: skip
    columns = ["set", "questions", "first sentence", "first three", "wrongly refused", "rightly declined", "AUROC"]
    return "`python benchmarks/answers.py`.\n\n" + table(columns, rows)


def chunking() -> str:
    data = result("chunking")
    arms = ["lexical", "minmax", "zscore", "default"]
    rows = [
        [
            name,
            row["chunks"],
            *(f"{row[arm]['recall']:.3f} / {row[arm]['iou']:.3f}" for arm in arms),
        ]
        for name, row in data["results"].items()
    ]
    head = f"{data['questions']} questions, recall / IoU at {data['retrieved']} chunks; "
    return head + "`python benchmarks/chunking.py`.\n\n" + table(["splitter", "chunks", *arms], rows)


def speed() -> str:
    data = result("speed")
    rows = [
        [row["chunks"], row["p50_ms"], row["p95_ms"], row["cpu_ms"], row["open_ms"], row["rss_mb"], row["disk_mb"]]
        for row in data["searching"]
    ]
    steps = data["searching"][-1]["steps_p50_ms"]
    start, reading, encoding = data["start"], data["reading"], data["encoding"]
    lines = [
        f"{data['date']}, {data['machine']}; `python benchmarks/speed.py`.",
        "",
        table(["chunks", "search p50 ms", "p95 ms", "CPU ms", "open ms", "RSS MB", "disk MB"], rows),
        "",
        "Milliseconds by step at the largest size (p50): "
        + ", ".join(f"{name} {value}" for name, value in steps.items())
        + ".",
        "",
        f"`--help` {start['help_cpu_s']} CPU-s; `import cognicraft` {start['import_cpu_s']} CPU-s; base install "
        f"{data['installed']['installed_mb']} MB, {data['installed']['packages']} packages, no torch.",
        "",
        f"Reading: {reading['pages']} pages of {reading['files']} filings, {reading['pages_per_cpu_s']} pages per "
        f"CPU-second. Encoding with token codes: {encoding['chunks_per_cpu_s']} chunks of "
        f"{encoding['tokens_per_chunk']} tokens per CPU-second.",
    ]
    return "\n".join(lines)


def embedding() -> str:
    data = result("embedding")
    rows = [
        [name, row["chunks_per_cpu_second"], row["times_float32_default"], row["times_float32_fastest"]]
        for name, row in data["speed"].items()
    ]
    cosine, ndcg = data["cosine_to_float32"]["chunks"], data["ndcg@10"]
    columns = ["encoder", "200-token chunks per CPU-second", "times fp32", "times fp32, fastest level"]
    return (
        f"{data['date']}, {data['machine']['architecture']} with {', '.join(data['machine']['instructions'])}; "
        f"`python {data['command']}`.\n\n"
        + table(columns, rows)
        + f"\n\nCosine to fp32: mean {cosine['mean']}, least {cosine['least']}. nDCG@10 on {ndcg['documents']} "
        f"documents of SciFact: int8 {ndcg['int8']}, fp32 {ndcg['float32']}."
    )


def filings() -> str:
    data = result("filings")
    rows = [[key.replace("_", " "), value] for key, value in data.items() if key != "per_question"]
    return "`python benchmarks/filings.py`.\n\n" + table(["", ""], rows)


def crash() -> str:
    data = result("crash")
    rows = [[data["kills"], data["lost"], data["ghosts"], data["duplicates"], data["half_written_documents"]]]
    moments = ", ".join(f"{count} {name}" for name, count in data["moments"].items())
    columns = ["kills", "lost", "ghosts", "duplicates", "half-written documents"]
    return "`python benchmarks/crash.py`.\n\n" + table(columns, rows) + f"\n\nThe kills fell: {moments}."


ROUTED = {
    "document at 1": "right document first",
    "hits of the right files": "share of hits in the right documents",
    "documents in 10": "right documents among 10 hits",
    "page at 10": "page of a figure of the reference, in 10 hits",
    "figure at 10": "figure of the reference, in 10 hits",
    "first source": "right document is the answer's first source",
    "quoted": "figure of the reference quoted",
}


def routing() -> str:
    data = result("routing")
    groups = sorted(data["filings"].items(), key=lambda group: not group[0].startswith("one file"))
    tables = []
    for chosen in (groups[:3], groups[3:]):
        columns = [f"{name} ({row['questions']})" for name, row in chosen]
        rows = [
            [meaning, *(f"{row['without'][key]:.3f} → {row['with'][key]:.3f}" for _, row in chosen)]
            for key, meaning in ROUTED.items()
            if key in chosen[0][1]["with"]
        ]
        tables.append(table(["without → with", *columns], rows))
    others = [
        [name, row["questions"], f"{row['without']:.4f}", f"{row['with']:.4f}", row["better"], row["worse"]]
        for name, row in data.items()
        if name != "filings"
    ]
    return (
        "`python benchmarks/routing.py`. MiniLM, default settings, ten hits, no filter; twenty filings of five "
        "companies. In brackets the number of questions.\n\n"
        + "\n\n".join(tables)
        + "\n\nOther collections, where routing has little to do, nDCG@10:\n\n"
        + table(["set", "questions", "without", "with", "questions better", "worse"], others)
    )


def routing_short() -> str:
    row = result("routing")["filings"]["one file, all"]
    names = ("document at 1", "page at 10", "figure at 10", "first source")
    rows = [[ROUTED[name], f"{row['without'][name]:.3f}", f"{row['with'][name]:.3f}"] for name in names]
    head = f"{row['questions']} questions on 20 quarterly reports that are all alike (PDF, 1,037 pages); "
    return head + "`python benchmarks/routing.py`.\n\n" + table(["", "routing off", "default"], rows)


def model_failures() -> str:
    rows = [
        [row["step"], row["case"], row["exit"], row["calls"], row["kept"], row["message"].replace("|", "\\|")]
        for row in result("model_failures")
    ]
    wrong = sum(bool(row["wrong"]) for row in result("model_failures"))
    columns = ["step", "what happens", "exit", "calls", "what there is after it", "what is said first"]
    head = f"`python benchmarks/model_failures.py`: {len(rows)} cases, {wrong} of them not as they should be."
    return f"{head}\n\n{table(columns, rows)}"


def context_resume() -> str:
    data = result("context_resume")
    killed, gone = data["killed_twice"], data["server_gone"]
    rows = [
        ["documents, chunks", f"{killed['documents']}, {killed['chunks']}", f"{gone['documents']}, {gone['chunks']}"],
        ["chunks without their context", killed["chunks_without_context"], gone["chunks_without_context"]],
        ["calls in all", killed["calls"], gone["calls"]],
        ["asked twice", killed["asked_twice"], gone["asked_twice"]],
        ["under way at the kills", sum(killed["under_way_at_the_kills"]), gone["under_way_when_it_went"]],
        ["calls of one more run", killed["calls_of_another_run"], ""],
        ["exit code of the run that failed", "", gone["exit_code"]],
    ]
    return (
        f"`python benchmarks/context_resume.py`, {data['concurrency']} calls side by side.\n\n"
        + table(["", "ingest killed twice", "server killed"], rows)
        + f"\n\nWhat the run said whose server went: \u201c{gone['message'][0].removeprefix('error: ')}\u201d"
    )


MAKERS: dict[str, Callable[[], str]] = {
    "quality": quality,
    "quality-short": quality_short,
    "answers": answers,
    "chunking": chunking,
    "speed": speed,
    "embedding": embedding,
    "filings": filings,
    "crash": crash,
    "routing": routing,
    "routing-short": routing_short,
    "model-failures": model_failures,
    "context-resume": context_resume,
}


def filled(text: str) -> str:
    def fill(match: re.Match[str]) -> str:
        name = match[1]
        try:
            body = MAKERS[name]()
        except FileNotFoundError:
            body = "No run of this benchmark is kept."
        return f"<!-- figures: {name} -->\n\n{body}\n\n<!-- end -->"

    return _MARKER.sub(fill, text)


def main() -> int:
    stale = []
    for page in PAGES:
        before = page.read_text(encoding="utf-8")
        after = filled(before)
        if after != before:
            stale.append(page.name)
            if "--check" not in sys.argv[1:]:
                page.write_text(after, encoding="utf-8")
    if stale and "--check" in sys.argv[1:]:
        print(f"Figures differ from benchmarks/results: {', '.join(stale)}. Run: make docs", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
