"""How fast PDFs are read, and what of their tables is understood: `benchmarks/reading.py [FOLDER] [--json FILE]`.

Over the 20 SEC filings of ../shared/data (or another folder of PDFs), in one process and one thread:
pages per CPU-second of pdfium's text alone, of text with words, boxes and weights, and of the whole reader with
headings and tables, side by side because machines differ; table rows, how many of their values carry a head; numbers
on the pages that are not in the text (there must be none). Then the same files through the reader pool, with its start.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import re
import resource
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pypdfium2.raw as pdfium

from cognicraft.ingest.pdf import read_pdf
from cognicraft.ingest.pdf_furniture import drop_furniture
from cognicraft.ingest.pdf_source import Line, open_pdf
from cognicraft.ingest.worker import ReaderPool
from cognicraft.records import Document

FILINGS = Path(__file__).resolve().parents[2] / "shared" / "data" / "sec10q_docugami" / "v1" / "docs"
_NUMBER = re.compile(r"\d[\d,.]*\d|\d")


def text_alone(path: Path) -> int:
    """Pages of a file, with pdfium's own text of each taken and thrown away."""
    with open_pdf(str(path)) as file:
        for index in range(file.page_count):
            page = pdfium.FPDF_LoadPage(file._handle, index)
            text = pdfium.FPDFText_LoadPage(page)
            count = pdfium.FPDFText_CountChars(text)
            buffer = (ctypes.c_ushort * (count + 1))()
            pdfium.FPDFText_GetText(text, 0, count, buffer)
            pdfium.FPDFText_ClosePage(text)
            pdfium.FPDF_ClosePage(page)
        return file.page_count


def words(path: Path) -> int:
    with open_pdf(str(path)) as file:
        for index in range(file.page_count):
            file.page(index)
        return file.page_count


def whole(path: Path) -> int:
    return len(next(read_pdf(str(path), options={})).pages)


def pages_per_cpu_second(measure: Callable[[Path], int], paths: list[Path]) -> float:
    begun = time.process_time()
    pages = sum(measure(path) for path in paths)
    return pages / (time.process_time() - begun)


def kept_lines(path: Path) -> list[tuple[Line, ...]]:
    with open_pdf(str(path)) as file:
        return drop_furniture([file.page(index).lines for index in range(file.page_count)])


def quality(paths: list[Path]) -> dict[str, int]:
    """Rows and values of tables, values with a head, numbers on pages and numbers lost."""
    found: Counter[str] = Counter(tables=0, rows=0, values=0, values_with_head=0, numbers=0, numbers_lost=0)
    for path in paths:
        document = next(read_pdf(str(path), options={}))
        for lines, page in zip(kept_lines(path), document.pages, strict=True):
            wanted = Counter(number for line in lines for number in _NUMBER.findall(line.text))
            lost = wanted - Counter(_NUMBER.findall(document.text[page.start : page.end]))
            found["numbers"] += wanted.total()
            found["numbers_lost"] += lost.total()
        found.update(_rows(document))
    return dict(found)


def _rows(document: Document) -> Counter[str]:
    found: Counter[str] = Counter()
    for block in document.blocks:
        if block.kind != "table":
            continue
        found["tables"] += 1
        for row in document.text[block.start : block.end].split("\n"):
            values = row.split(" | ")[1:]
            found["rows"] += bool(values)
            found["values"] += len(values)
            found["values_with_head"] += sum(": " in value for value in values)
    return found


def pool(paths: list[Path], *, workers: int) -> dict[str, float]:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begun = time.monotonic()
    first_s = 0.0
    characters = 0
    with ReaderPool(workers=workers, memory_limit_mb=1024, deadline_s=120, recycle_after=200) as readers:
        for outcome in readers.read((str(path), {}) for path in paths):
            first_s = first_s or time.monotonic() - begun
            characters += sum(len(document.text) for document in outcome.documents)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "workers": workers,
        "wall_s": round(time.monotonic() - begun, 2),
        "first_result_s": round(first_s, 2),
        "cpu_s": round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 2),
        "peak_mb_of_a_reader": round(after.ru_maxrss / 1024, 1),
        "characters": characters,
    }


def start_cpu_s() -> float:
    """CPU-seconds of a reader process that reads one small text file."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with ReaderPool(workers=1, memory_limit_mb=1024, deadline_s=60, recycle_after=1) as readers:
        list(readers.read([(__file__, {})]))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 3)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("folder", nargs="?", type=Path, default=FILINGS)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    paths = sorted(options.folder.glob("**/*.pdf"))
    if not paths:
        print(f"No PDFs in {options.folder}.", file=sys.stderr)
        return 2
    plain = pages_per_cpu_second(text_alone, paths)
    boxes = pages_per_cpu_second(words, paths)
    full = pages_per_cpu_second(whole, paths)
    result = {
        "files": len(paths),
        "pages_per_cpu_second": {"text alone": round(plain, 1), "words": round(boxes, 1), "whole": round(full, 1)},
        "ratio_to_text_alone": {"words": round(boxes / plain, 2), "whole": round(full / plain, 2)},
        "quality": quality(paths),
        "reader_start_cpu_s": start_cpu_s(),
        "pool": pool(paths, workers=2),
    }
    print(json.dumps(result, indent=2))
    if options.json:
        options.json.write_text(json.dumps(result, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
