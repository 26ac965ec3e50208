"""Does search find the right document among similar ones, with and without routing by the workspace's own names?

usage: routing.py [--home DIR] [--cache DIR] [--set NAME …] [--no-filings] [--queries N] [--json FILE]

Filings: 20 quarterly reports of five companies (../shared/data/sec10q_docugami, MIT). Of the questions, those whose
`Source Docs` pattern fits exactly one file ask for that file; those that fit the four files of a company ask for these.
Counted among ten hits, default settings, no filter:
    document at 1        the first hit is of the right file                    (of one of the four, for the second kind)
    page at 10           a hit of the right file is on a page where a figure of the reference answer stands
    figure at 10         a hit of the right file holds a figure of the reference answer
    quoted               such a figure stands in a quoted source of `ask`; first source: its file is the right one
The questions of two companies (apart in the table as `development`) were looked at while routing was made; those of the
other three were not. `names only`: the questions of the raw list that the first list does not have (no reference).
Other sets: nDCG@10 with and without, where routing has nothing to do.
--home keeps the ingested filings, --cache a home with workspaces named quality-SET-minilm, as benchmarks/quality.py
keeps them.
"""

from __future__ import annotations

import argparse
import csv
import fnmatch
import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cognicraft import Workspace
from cognicraft.evaluate.harness import evaluate_retrieval
from filings import DATA, figures

DEVELOPMENT = ("AAPL", "MSFT")
SETS = ("scifact", "squad2", "anthropic_docs_rag", "hotpotqa_hipporag100", "cranfield")
WAYS = {"without": False, "with": True}


@dataclass(frozen=True)
class Asked:
    question: str
    files: tuple[str, ...]
    reference: str

    @property
    def company(self) -> str:
        return self.files[0].split()[-1].removesuffix(".pdf")


def asked() -> Iterator[Asked]:
    """The questions of both lists, those with a reference answer first; a question that was there is left out."""
    names = sorted(path.name for path in (DATA / "docs").glob("*.pdf"))
    seen = set()
    for file in (DATA / "qna_data.csv", DATA.parent / "raw_questions" / "questions.csv"):
        with file.open(encoding="utf-8-sig", newline="") as stream:
            for row in csv.DictReader(stream):
                fits = tuple(name for name in names if fnmatch.fnmatch(name, row["Source Docs"].strip()))
                question = row["Question"].strip()
                if fits and question not in seen:
                    seen.add(question)
                    yield Asked(question, fits, row.get("Answer") or "")


def measure_filings(workspace: Workspace, *, limit: int | None) -> dict[str, Any]:
    pages = _pages(workspace)
    groups: dict[str, list[Asked]] = {}
    for one in list(asked())[:limit]:
        half = "development" if one.company in DEVELOPMENT else "held out"
        kind = "four files" if len(one.files) > 1 else "one file" if one.reference else "names only"
        groups.setdefault(f"{kind}, {half}", []).append(one)
    result: dict[str, Any] = {}
    for group, questions in sorted(groups.items()):
        result[group] = {"questions": len(questions)}
        for way, route in WAYS.items():
            rows = [_row(workspace, one, pages, route=route) for one in questions]
            result[group][way] = _rates(rows)
    whole = [one for group, questions in groups.items() if group.startswith("one file") for one in questions]
    result["one file, all"] = {"questions": len(whole)}
    for way, route in WAYS.items():
        result["one file, all"][way] = _rates([_row(workspace, one, pages, route=route) for one in whole])
    return result


def _row(workspace: Workspace, one: Asked, pages: dict[str, dict[int, set[str]]], *, route: bool) -> dict[str, Any]:
    settings = {"search.route": route}
    hits = workspace.search(one.question, limit=10, settings=settings).hits
    files = [Path(hit.file).name for hit in hits]
    row: dict[str, Any] = {
        "document at 1": files[0] in one.files,
        "documents in 10": len({name for name in files if name in one.files}) / len(one.files),
        "hits of the right files": sum(name in one.files for name in files) / max(1, len(files)),
    }
    wanted = figures(one.reference) - figures(one.question)
    if len(one.files) > 1 or not one.reference:
        return row
    answer = workspace.ask(one.question, settings=settings)
    row["first source"] = bool(answer.answered and Path(answer.sources[0].file).name in one.files)
    row["among sources"] = bool(answer.answered and any(Path(s.file).name in one.files for s in answer.sources))
    if wanted:
        (file,) = one.files
        own = [hit for hit, name in zip(hits, files, strict=True) if name == file]
        right = {number for number, held in pages[file].items() if held & wanted}
        if right:
            row["page at 10"] = any(right & set(range(hit.page or 0, (hit.page or 0) + 2)) for hit in own)
        row["figure at 10"] = bool(figures(" ".join(hit.text for hit in own)) & wanted)
        quotes = [source.quote for source in answer.sources] if answer.answered else []
        row["quoted"] = bool(figures(" ".join(quotes)) & wanted)
        row["quoted first"] = bool(answer.answered and figures(answer.sentences[0].text) & wanted)
    return row


def _pages(workspace: Workspace) -> dict[str, dict[int, set[str]]]:
    """File name -> page -> the figures that stand on it."""
    found: dict[str, dict[int, set[str]]] = {}
    for info in workspace.documents(failed=False):
        held = found.setdefault(Path(info.file).name, {})
        for chunk in workspace.chunks_of(info.id):
            held.setdefault(chunk.page, set()).update(figures(chunk.text))
    return found


def _rates(rows: list[dict[str, Any]]) -> dict[str, float]:
    names = dict.fromkeys(name for row in rows for name in row)
    return {
        name: round(sum(map(float, values)) / len(values), 3)
        for name in names
        if (values := [row[name] for row in rows if name in row])
    }


def measure_set(name: str, *, data: Path, cache: Path | None, limit: int | None) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as temporary:
        found = {
            way: evaluate_retrieval(
                data / name,
                queries=limit,
                keep=True,
                workspace=f"quality-{name}-minilm",
                home=cache or Path(temporary),
                settings={"search.route": route, "search.rerank_budget_ms": 1e6},
            )
            for way, route in WAYS.items()
        }
    ndcg = {way: round(one.metrics["ndcg@10"], 4) for way, one in found.items()}
    before, after = (found[way].per_query for way in WAYS)
    return {
        "questions": found["with"].queries,
        **ndcg,
        "recall@10": {way: round(one.metrics["recall@10"], 4) for way, one in found.items()},
        "better": sum(after[query] > before[query] for query in before),
        "worse": sum(after[query] < before[query] for query in before),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--home", type=Path)
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--data", type=Path, default=DATA.parents[1])
    parser.add_argument("--set", dest="sets", action="append", choices=(*SETS, "none"))
    parser.add_argument("--no-filings", action="store_true")
    parser.add_argument("--queries", type=int)
    parser.add_argument("--json", type=Path, default=Path("benchmarks/results/routing.json"))
    options = parser.parse_args()
    if not DATA.is_dir():
        print(f"The filings are not at {DATA}: nothing measured.", file=sys.stderr)
        return 2
    result: dict[str, Any] = {}
    if not options.no_filings:
        with (
            tempfile.TemporaryDirectory() as temporary,
            Workspace("filings", home=options.home or temporary) as workspace,
        ):
            workspace.ingest(DATA / "docs")
            result["filings"] = measure_filings(workspace, limit=options.queries)
            print(json.dumps(result["filings"], indent=1))
    for name in options.sets or SETS:
        if name != "none":
            result[name] = measure_set(name, data=options.data, cache=options.cache, limit=options.queries)
            print(name, json.dumps(result[name]), flush=True)
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
