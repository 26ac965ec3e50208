"""How fast: start, reading, encoding, searching at 1 k, 10 k and 100 k chunks, opening again; memory and disk.

usage: speed.py [--sizes 1000,10000,100000] [--questions 200] [--json FILE]

Reading: the 20 SEC filings of ../shared/data through the reader pool; CPU-seconds are those of the reader processes.
Searching: `Workspace.search` as a person gets it (default settings, question encoded each time, late interaction on),
real questions of squad2. The first chunks are squad2's paragraphs, split and encoded by the product; the rest are made
from them (terms of two chunks mixed, vectors and token codes with noise), since encoding 100,000 takes an hour: so
times are real and the order of the hits means nothing. Quote ratios and CPU-seconds; machines differ.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from importlib.metadata import distributions
from pathlib import Path
from statistics import median

import numpy as np

from cognicraft import Workspace
from cognicraft.encoders import embedder_named
from cognicraft.evaluate.datasets import load
from cognicraft.ingest.encode import DocumentToEncode, encode
from cognicraft.ingest.worker import ReaderPool
from cognicraft.records import (
    Chunk,
    ContextualChunk,
    DocumentRecord,
    EncodedChunk,
    EncodedDocument,
    SparseVector,
    digest,
)
from cognicraft.search.lexical import LexicalEncoder

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
REAL_CHUNKS = 1000
PER_DOCUMENT = 50


def start_up() -> dict[str, float]:
    """CPU-seconds of `--help`; wall and CPU seconds of `import cognicraft`, the interpreter's own start taken off."""

    def cpu(*command: str) -> float:
        seconds = []
        for _ in range(5):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([sys.executable, *command], check=True, capture_output=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        return median(seconds)

    nothing = cpu("-c", "pass")
    return {
        "help_cpu_s": round(cpu("-m", "cognicraft", "--help"), 3),
        "import_cpu_s": round(cpu("-c", "import cognicraft") - nothing, 3),
        "import_workspace_cpu_s": round(cpu("-c", "from cognicraft import Workspace") - nothing, 3),
    }


def reading() -> dict[str, float]:
    folder = DATA / "sec10q_docugami" / "v1" / "docs"
    files = sorted(folder.glob("*.pdf"))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    pages = characters = 0
    with ReaderPool(workers=2, memory_limit_mb=2048, deadline_s=120, recycle_after=200) as pool:
        for outcome in pool.read((str(file), {}) for file in files):
            for document in outcome.documents:
                pages += len(document.pages)
                characters += len(document.text)
    seconds = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {
        "files": len(files),
        "pages": pages,
        "characters": characters,
        "pages_per_s": round(pages / seconds, 1),
        "pages_per_cpu_s": round(pages / cpu_s, 1),
    }


def encoding() -> tuple[dict[str, float], list[EncodedChunk]]:
    """Chunks per CPU-second through encode (dense, token codes, lexical), and the encoded chunks."""
    embedder, lexical = embedder_named("minilm"), LexicalEncoder()
    texts = [document.text for document in load(DATA / "squad2").documents()][:REAL_CHUNKS]
    chunks = tuple(ContextualChunk(Chunk(text=text, start=0, end=len(text))) for text in texts)
    record = DocumentRecord(id=digest("real"), source="real", revision="1", language="en")
    tokens = sum(len(embedder.token_offsets(text)) for text in texts)
    cpu, wall = time.process_time(), time.perf_counter()
    encoded = encode(
        [DocumentToEncode(record, chunks)],
        embedders={"minilm": embedder},
        lexical=lambda text, language: lexical.document(text, language=language),
        token_codes=True,
    )
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    return {
        "chunks": len(texts),
        "tokens_per_chunk": round(tokens / len(texts), 1),
        "chunks_per_cpu_s": round(len(texts) / cpu, 1),
        "tokens_per_cpu_s": round(tokens / cpu),
        "chunks_per_s": round(len(texts) / wall, 1),
    }, list(encoded[0].chunks)


def made_documents(real: list[EncodedChunk], first: int, last: int) -> Iterator[EncodedDocument]:
    """Documents that hold the chunks numbered first..last: real ones while there are, then mixtures."""
    for start in range(first, last, PER_DOCUMENT):
        source = f"made:{start}"
        chunks = []
        for number in range(start, min(start + PER_DOCUMENT, last)):
            generator = np.random.default_rng(number)
            one, other = (real[i] for i in generator.integers(0, len(real), 2))
            if number < len(real):
                one = other = real[number]
            weights = dict(zip(one.lexical.indices[::2].tolist(), one.lexical.values[::2].tolist(), strict=True))
            weights.update(zip(other.lexical.indices[1::2].tolist(), other.lexical.values[1::2].tolist(), strict=True))
            indices = np.array(sorted(weights), dtype=np.uint32)
            vector = one.dense["minilm"] + generator.normal(0, 0.03, 384).astype(np.float32) * (number >= len(real))
            codes = one.token_codes["minilm"]
            text = one.chunk.chunk.text
            chunk = Chunk(text=text, start=number, end=number + len(text), occurrence=number)
            chunks.append(
                replace(
                    one,
                    id=digest(source, str(number)),
                    chunk=ContextualChunk(chunk),
                    dense={"minilm": (vector / np.linalg.norm(vector)).astype(np.float32)},
                    lexical=SparseVector(indices, np.array([weights[i] for i in indices.tolist()], dtype=np.float32)),
                    token_codes={"minilm": np.roll(codes, number % 7, axis=0)},
                )
            )
        record = DocumentRecord(id=digest(source), source=source, revision="1", language="en", chunk_count=len(chunks))
        yield EncodedDocument(record, tuple(chunks))


def searching(real: list[EncodedChunk], sizes: list[int], questions: list[str]) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as home:
        have = 0
        for size in sizes:
            with Workspace("speed", home=home) as workspace:
                workspace.ingest_documents([])
                started = time.perf_counter()
                batch: list[EncodedDocument] = []
                for document in made_documents(real, have, size):
                    batch.append(document)
                    if len(batch) == 10:
                        workspace.engine.replace(batch)
                        batch = []
                workspace.engine.replace(batch)
            write_s = time.perf_counter() - started
            have = size
            # In a process of its own: memory and opening as a person has them.
            done = subprocess.run(
                [sys.executable, __file__, "--ask", home, "--questions", str(len(questions))],
                input=json.dumps(questions), capture_output=True, text=True, check=True,
            )  # fmt: skip
            rows.append({"chunks": size, "write_s": round(write_s, 1), **json.loads(done.stdout)})
            print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    return rows


def ask(home: str) -> dict[str, object]:
    """Search a workspace in this process; called in a fresh one."""
    questions = json.loads(sys.stdin.read())
    embedder_named("minilm").encode_query("warm")
    started = time.perf_counter()
    with Workspace("speed", home=home) as workspace:
        workspace.engine.info()
        open_ms = (time.perf_counter() - started) * 1000
        for question in questions[:20]:
            workspace.search(question)
        totals: list[float] = []
        steps: dict[str, list[float]] = {}
        cpu = time.process_time()
        for question in questions:
            result = workspace.search(question)
            totals.append(result.timings_ms["total"])
            for step, value in result.timings_ms.items():
                steps.setdefault(step, []).append(value)
        cpu = time.process_time() - cpu
        disk = workspace.info().disk_bytes
    return {
        "open_ms": round(open_ms, 1),
        "p50_ms": round(float(np.percentile(totals, 50)), 2),
        "p95_ms": round(float(np.percentile(totals, 95)), 2),
        "cpu_ms": round(cpu / len(questions) * 1000, 2),
        "steps_p50_ms": {step: round(float(np.percentile(values, 50)), 2) for step, values in steps.items()},
        "rss_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "disk_mb": round(disk / 1e6),
    }


def installed() -> dict[str, float]:
    """Megabytes of the base install: this package and what it needs, found through the metadata."""
    import re

    known = {dist.metadata["Name"].lower().replace("_", "-"): dist for dist in distributions()}
    wanted, seen = ["cognicraft"], set()
    while wanted:
        name = wanted.pop().lower().replace("_", "-")
        if name in seen or name not in known:
            continue
        seen.add(name)
        for need in known[name].requires or []:
            if "extra ==" not in need and "sys_platform == 'win32'" not in need:
                wanted.append(re.split(r"[ ;<>=!~\[(]", need)[0])
    total = 0
    for name in seen:
        for file in known[name].files or []:
            path = Path(str(known[name].locate_file(file)))
            total += path.stat().st_size if path.is_file() else 0
    source = Path(__file__).resolve().parents[1] / "src" / "cognicraft"
    total += sum(f.stat().st_size for f in source.rglob("*") if f.is_file() and "__pycache__" not in f.parts)
    return {"packages": len(seen), "installed_mb": round(total / 1e6), "torch": "torch" in seen}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="1000,10000,100000")
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--json", type=Path, default=Path("benchmarks/results/speed.json"))
    parser.add_argument("--ask", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.ask:
        print(json.dumps(ask(arguments.ask)))
        return 0
    if not DATA.is_dir():
        print(f"The data sets are not at {DATA}: nothing measured.", file=sys.stderr)
        return 2
    questions = list(load(DATA / "squad2").queries.values())[: arguments.questions]
    encode_result, real = encoding()
    result = {
        "machine": f"{platform.processor() or platform.machine()}, Python {platform.python_version()}",
        "date": date.today().isoformat(),
        "start": start_up(),
        "installed": installed(),
        "reading": reading(),
        "encoding": encode_result,
        "searching": searching(real, [int(size) for size in arguments.sizes.split(",")], questions),
    }
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    arguments.json.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(result, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
