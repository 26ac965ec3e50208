"""What the Edge engine costs: building, searching, fetching, opening, disk, memory, on synthetic chunks of real sizes.

    python benchmarks/engine_latency.py [--chunks 1000 10000 50000] [--json FILE]

A chunk has 384 dimensions (clustered as embeddings are: a centre and noise), about 80 terms drawn from a Zipf law over
50,000, 1 kB of text and 200 token codes of 48 bytes; ten chunks a document, 64 documents a `replace`. Each question is
asked once, all of them different; times are milliseconds, p50 / p95 on the clock / mean of the processor, of which the
last says more on a busy machine. Recall is of the exact best 100 in numpy. Every size runs in a process of its own, so
that its memory is its own.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from cognicraft.engines.edge import EdgeEngine
from cognicraft.records import (
    AllOf,
    Chunk,
    ContextualChunk,
    DocumentRecord,
    EncodedChunk,
    EncodedDocument,
    Equals,
    FloatArray,
    Phrase,
    Range,
    SparseVector,
    Term,
    chunk_id,
    digest,
)

DIMENSIONS, VOCABULARY, TERMS, TOKENS, PER_DOCUMENT, BATCH = 384, 50_000, 80, 200, 10, 64
QUESTIONS = 100


class Corpus:
    """Documents and questions of one seed."""

    def __init__(self, chunks: int) -> None:
        self.random = np.random.default_rng(0)
        self.chunks = chunks
        self.centres = self.random.standard_normal((max(chunks // 50, 10), DIMENSIONS))
        law = 1 / np.arange(1, VOCABULARY + 1)
        self.law = np.cumsum(law / law.sum())

    def vectors(self, count: int) -> FloatArray:
        noise = 0.7 * self.random.standard_normal((count, DIMENSIONS))
        vectors = self.centres[self.random.integers(0, len(self.centres), count)] + noise
        return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float32)

    def terms(self, count: int) -> list[int]:
        drawn = np.searchsorted(self.law, self.random.random(count))
        return [int(term) for term in np.minimum(drawn, VOCABULARY - 1)]

    def document(self, number: int, vectors: FloatArray) -> EncodedDocument:
        identifier = digest(f"folder/{number}.txt", "")
        chunks = []
        for place, vector in enumerate(vectors):
            terms = self.terms(TERMS)
            text = " ".join(f"word{term}" for term in terms) + " and so on" * 30
            chunk = Chunk(text, place * 1000, place * 1000 + len(text), page=place + 1, page_end=place + 1)
            indices, counts = np.unique(np.array(terms, dtype=np.uint32), return_counts=True)
            chunks.append(
                EncodedChunk(
                    id=chunk_id(identifier, "1", chunk),
                    chunk=ContextualChunk(chunk),
                    dense={"minilm": vector},
                    lexical=SparseVector(indices, (counts / (counts + 1.2)).astype(np.float32)),
                    terms=tuple(f"word{term}" for term in terms),
                    token_codes={"minilm": self.random.integers(0, 256, (TOKENS, DIMENSIONS // 8), dtype=np.uint8)},
                )
            )
        record = DocumentRecord(
            id=identifier,
            source=f"folder/{number}.txt",
            revision="1",
            title=f"Document {number}",
            language="en",
            chunk_count=len(chunks),
            metadata={"year": 2000 + number % 20, "kind": "report"},
        )
        return EncodedDocument(record, tuple(chunks))


def measure(chunks: int) -> dict[str, Any]:
    corpus = Corpus(chunks)
    result: dict[str, Any] = {"chunks": chunks}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "workspace")
        engine = EdgeEngine.create(path, dense={"minilm": DIMENSIONS}, token_codes=True)
        vectors = corpus.vectors(chunks).reshape(-1, PER_DOCUMENT, DIMENSIONS)
        wall = cpu = 0.0
        for start in range(0, len(vectors), BATCH):
            batch = [corpus.document(start + i, one) for i, one in enumerate(vectors[start : start + BATCH])]
            began, began_cpu = time.perf_counter(), _cpu_s()
            engine.replace(batch)
            wall, cpu = wall + time.perf_counter() - began, cpu + _cpu_s() - began_cpu
        result["build_wall_s"], result["build_cpu_s"] = round(wall, 1), round(cpu, 1)
        result["outside_graph"] = engine.info().detail["chunks_outside_graph"]
        began = time.perf_counter()
        engine.close()
        result["close_s"] = round(time.perf_counter() - began, 2)
        began = time.perf_counter()
        engine = EdgeEngine.open(path)
        result["open_s"] = round(time.perf_counter() - began, 2)
        result |= _searches(engine, corpus, vectors.reshape(-1, DIMENSIONS))
        result["disk_mb"] = round(engine.info().disk_bytes / 1e6)
        engine.close()
        (path / "statistics.npz").unlink()
        began = time.perf_counter()
        engine = EdgeEngine.open(path)
        result["open_after_kill_s"] = round(time.perf_counter() - began, 2)
        engine.close()
    result["rss_mb"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3)
    return result


def _searches(engine: EdgeEngine, corpus: Corpus, vectors: FloatArray) -> dict[str, Any]:
    near = vectors[corpus.random.integers(0, len(vectors), QUESTIONS)]
    noise = 0.5 * corpus.random.standard_normal(near.shape) / np.sqrt(DIMENSIONS)
    questions = (near + noise).astype(np.float32)
    lexical = []
    for _ in range(QUESTIONS):
        indices, counts = np.unique(np.array(corpus.terms(8), dtype=np.uint32), return_counts=True)
        lexical.append(SparseVector(indices, counts.astype(np.float32)))
    years = [Equals("year", 2000 + i % 20) for i in range(QUESTIONS)]
    numbers = [Range("year", gte=2000 + i % 10, lt=2005 + i % 10) for i in range(QUESTIONS)]
    boolean = [AllOf((Term((f"word{i}",)), Term((f"word{i + 3}", "none")))) for i in range(QUESTIONS)]
    phrases = [Phrase((f"word{i}", f"word{i + 1}")) for i in range(QUESTIONS)]
    ids = [[one.chunk_id for one in engine.search_dense("minilm", one, limit=200)] for one in questions]
    found = [engine.search_dense("minilm", one, limit=100) for one in questions]
    recall = []
    for question, ranking in zip(questions, found, strict=True):
        cut = np.sort(vectors @ (question / np.linalg.norm(question)))[-min(100, len(vectors))]
        recall.append(np.mean([one.score >= cut - 1e-5 for one in ranking]))
    return {
        "dense_ms": _times(lambda i: engine.search_dense("minilm", questions[i], limit=100)),
        "dense_recall@100": round(float(np.mean(recall)), 4),
        "dense_equals_ms": _times(lambda i: engine.search_dense("minilm", questions[i], limit=100, where=years[i])),
        "dense_range_ms": _times(lambda i: engine.search_dense("minilm", questions[i], limit=100, where=numbers[i])),
        "lexical_ms": _times(lambda i: engine.search_lexical(lexical[i], limit=100)),
        "lexical_equals_ms": _times(lambda i: engine.search_lexical(lexical[i], limit=100, where=years[i])),
        "boolean_ms": _times(lambda i: engine.search_boolean(boolean[i], rank_by=lexical[i], limit=100)),
        "phrase_ms": _times(lambda i: engine.search_boolean(phrases[i], rank_by=lexical[i], limit=100)),
        "chunks_10_ms": _times(lambda i: engine.chunks(ids[i][:10])),
        "token_codes_200_ms": _times(lambda i: engine.token_codes("minilm", ids[i])),
        "languages_ms": _times(lambda i: engine.languages()),
    }


def _times(ask: Callable[[int], object]) -> str:
    times = []
    began_cpu = time.process_time()
    for number in range(QUESTIONS):
        began = time.perf_counter()
        ask(number)
        times.append(1e3 * (time.perf_counter() - began))
    cpu = 1e3 * (time.process_time() - began_cpu) / QUESTIONS
    return f"{np.percentile(times, 50):.2f} / {np.percentile(times, 95):.2f} / {cpu:.2f}"


def _cpu_s() -> float:
    """Of this process and of the ones it ended: the graph is built in another."""
    return sum(os.times()[:4])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chunks", type=int, nargs="+", default=[1_000, 10_000, 50_000])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(arguments.one)))
        return
    results = []
    for chunks in arguments.chunks:
        command = [sys.executable, __file__, "--one", str(chunks)]
        results.append(json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout))
    for key in results[0]:
        print(f"{key:20s}" + "".join(f"{result[key]!s:>22s}" for result in results), flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
