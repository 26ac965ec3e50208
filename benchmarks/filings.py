"""Ask 20 SEC filings: is the right file among the sources, and does the figure stand in a quoted one?

usage: filings.py [--home DIR] [--show N] [--json FILE]     --home keeps the ingested filings for the next run

Data: ../shared/data/sec10q_docugami (MIT; the filings are public). Of its questions those whose `Source Docs` pattern
fits exactly one file are asked, as a person would: no filter, default settings. A figure is a number of the reference
answer with at least two digits that is not a year, a count below 40 (it may be a day of a month; a percentage counts)
or part of the question. It "stands in a source" if the quote holds the same digits: a decimal point counts for numbers
of up to three digits only, since 23.198 billion stands in a table in millions as 23,198. `--show` prints questions,
answers and sources to be read by eye.
"""

from __future__ import annotations

import argparse
import csv
import fnmatch
import json
import re
import sys
import tempfile
import time
from pathlib import Path

from cognicraft import Workspace

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "sec10q_docugami" / "v1"
_NUMBER = re.compile(r"(?<![\w.,])(?<!\d-)\d[\d,]*(?:\.\d+)?(?![\w])(?:\s?%)?")
_YEAR = re.compile(r"(19|20)\d\d")
_COUNT = re.compile(r"[0-3]\d")


def figures(text: str) -> set[str]:
    """Numbers with at least two digits; without separators, and from four digits on without the decimal point."""
    found = set()
    for number in _NUMBER.findall(text):
        plain = "".join(number.replace(",", "").split())
        digits = sum(map(str.isdigit, plain))
        if digits >= 2 and not _YEAR.fullmatch(plain) and not _COUNT.fullmatch(plain):
            found.add(plain.replace(".", "") if digits >= 4 else plain)
    return found


def questions() -> list[tuple[str, str, str]]:
    """(question, file name, reference answer) of the questions that name one file."""
    names = sorted(path.name for path in (DATA / "docs").glob("*.pdf"))
    with (DATA / "qna_data.csv").open(encoding="utf-8-sig", newline="") as stream:
        rows = list(csv.DictReader(stream))
    found = []
    for row in rows:
        fits = [name for name in names if fnmatch.fnmatch(name, row["Source Docs"].strip())]
        if len(fits) == 1:
            found.append((row["Question"], fits[0], row["Answer"]))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--home", type=Path)
    parser.add_argument("--show", type=int, default=0)
    parser.add_argument("--json", type=Path, default=Path("benchmarks/results/filings.json"))
    arguments = parser.parse_args()
    if not DATA.is_dir():
        print(f"The filings are not at {DATA}: nothing measured.", file=sys.stderr)
        return 2
    with (
        tempfile.TemporaryDirectory() as temporary,
        Workspace("filings", home=arguments.home or temporary) as workspace,
    ):
        started, cpu = time.perf_counter(), time.process_time()
        report = workspace.ingest(DATA / "docs")
        ingest_s = time.perf_counter() - started
        ingest_cpu_s = time.process_time() - cpu
        pages = sum(info.pages for info in workspace.documents())
        result = ask_all(workspace, show=arguments.show)
        result.update(
            files=report.files,
            failed=len(report.failed),
            pages=pages,
            chunks=workspace.info().chunks,
        )
        if report.added == report.files:
            result.update(
                ingest_s=round(ingest_s, 1),
                ingest_cpu_s_without_readers=round(ingest_cpu_s, 1),
            )
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    arguments.json.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    print(json.dumps({key: value for key, value in result.items() if key != "per_question"}, indent=2))
    return 0


def ask_all(workspace: Workspace, *, show: int) -> dict[str, object]:
    asked = questions()
    rows = []
    for number, (question, file, reference) in enumerate(asked):
        answer = workspace.ask(question)
        hits = workspace.search(question, limit=10).hits
        wanted = figures(reference) - figures(question)
        sources = [Path(source.file).name for source in answer.sources] if answer.answered else []
        cited = answer.sources if answer.answered else []
        quoted = figures(" ".join(source.quote for source in cited))
        quoted_right = figures(" ".join(source.quote for source in cited if Path(source.file).name == file))
        first = figures(answer.sentences[0].text) if answer.answered else set()
        retrieved = figures(" ".join(hit.text for hit in hits if Path(hit.file).name == file))
        rows.append(
            {
                "question": question,
                "file": file,
                "answered": answer.answered,
                "file_in_sources": file in sources,
                "file_is_first_source": sources[:1] == [file],
                "file_first_hit": bool(hits) and Path(hits[0].file).name == file,
                "file_in_hits": any(Path(hit.file).name == file for hit in hits),
                "has_figure": bool(wanted),
                "figure_quoted": bool(wanted & quoted),
                "figure_quoted_from_right_file": bool(wanted & quoted_right),
                "figure_in_first_sentence": bool(wanted & first),
                "figure_retrieved": bool(wanted & retrieved),
            }
        )
        if number < show or (show and number % max(1, len(asked) // show) == 0):
            print(f"\n=== {question}\n    wanted: {file}: {reference[:300]!r}\n    {answer.answer[:700]}")
            for source in answer.sources:
                print(f"      [{source.n}] {Path(source.file).name} p.{source.page}: {source.quote[:160]!r}")
    with_figure = [row for row in rows if row["has_figure"]]

    def rate(name: str, among: list[dict[str, object]]) -> float:
        return round(sum(bool(row[name]) for row in among) / max(1, len(among)), 3)

    return {
        "questions": len(rows),
        "answered": rate("answered", rows),
        "right_file_among_sources": rate("file_in_sources", rows),
        "right_file_is_first_source": rate("file_is_first_source", rows),
        "right_file_first_hit": rate("file_first_hit", rows),
        "right_file_in_10_hits": rate("file_in_hits", rows),
        "questions_with_figure": len(with_figure),
        "figure_in_quoted_source": rate("figure_quoted", with_figure),
        "figure_quoted_from_right_file": rate("figure_quoted_from_right_file", with_figure),
        "figure_in_first_sentence": rate("figure_in_first_sentence", with_figure),
        "figure_in_10_hits_of_right_file": rate("figure_retrieved", with_figure),
        "per_question": rows,
    }


if __name__ == "__main__":
    sys.exit(main())
