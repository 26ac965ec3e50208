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


MAKERS: dict[str, Callable[[], str]] = {
    "quality": quality,
    "quality-short": quality_short,
    "answers": answers,
    "chunking": chunking,
    "speed": speed,
    "embedding": embedding,
    "filings": filings,
    "crash": crash,
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
