"""Retrieval quality of the arms, the fusions and the default on every BEIR-shaped set there is.

    python benchmarks/quality.py --data ../shared/data --cache CACHE [--encoder minilm] [--set scifact …] [--queries N]

Takes: folders in the shape of BEIR. Returns: a table on the screen, benchmarks/results/quality.json and quality.md.
Method: each corpus goes through the product's own ingest (`Workspace`) into a workspace kept under CACHE, so that a
    second run encodes questions only; each judged question through `search.retrieve` and through each way of ranking.
    A document stands where its best chunk stands. Metrics are those of `cognicraft.evaluate`.
The default was chosen on the train questions of scifact and on cranfield; the other sets had no say.
Cost: about 10 CPU-minutes for the corpora with `minilm`, 25 with `multilingual-e5`; then a few ms a question and way.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections.abc import Mapping
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

from cognicraft import Workspace
from cognicraft.encoders import embedder_named
from cognicraft.errors import FilterError
from cognicraft.evaluate.datasets import Dataset, load
from cognicraft.evaluate.metrics import measure, summarize
from cognicraft.ingest.language import detect_question
from cognicraft.protocols import Engine
from cognicraft.records import Ranking
from cognicraft.search.fuse import dbsf, minmax, rrf, zscore
from cognicraft.search.lexical import LexicalEncoder
from cognicraft.search.rerank import LateInteraction
from cognicraft.search.retrieve import BOOLEAN, LEXICAL, ArmResults, rank, retrieve

SETS = {
    "scifact train": ("scifact", "train"),
    "cranfield": ("cranfield", "test"),
    "scifact": ("scifact", "test"),
    "cosqa": ("cosqa", "test"),
    "squad2": ("squad2", "test"),
    "hotpotqa": ("hotpotqa_hipporag100", "test"),
    "limit_small": ("limit_small", "test"),
    "anthropic_docs_rag": ("anthropic_docs_rag", "test"),
    "xquad en": ("xquad/q_en_p_en", "test"),
    "xquad es": ("xquad/q_es_p_en", "test"),
    "xquad de": ("xquad/q_de_p_en", "test"),
}
"""Name -> (folder, split). The mean leaves the train questions out."""

WAYS = ("dense", "lexical", "boolean", "minmax .5/.5", "z-score", "RRF", "DBSF", "default")
METRICS = ("ndcg@10", "recall@10", "recall@20", "recall@100", "mrr@10")
TUNED_ON = ("scifact train", "cranfield")


def main() -> None:
    options = _options()
    results = options.results
    results.mkdir(parents=True, exist_ok=True)
    kept = results / "quality.json"
    report = json.loads(kept.read_text()) if options.add and kept.is_file() else {"sets": {}}
    report |= {
        "settings": options.setting,
        "command": "python benchmarks/quality.py",
        "date": date.today().isoformat(),
        "machine": f"{platform.machine()}, Python {platform.python_version()}",
        "ways": WAYS,
        "tuned_on": TUNED_ON,
    }
    for encoder in options.encoder:
        for name in options.set or SETS:
            folder, split = SETS[name]
            if not (options.data / folder / "corpus.jsonl").is_file():
                print(f"skipped {name}: {options.data / folder} is not there", file=sys.stderr)
                continue
            found = _measured(load(options.data / folder, split=split), encoder, folder, options)
            report["sets"].setdefault(encoder, {})[name] = found
            row = " ".join(f"{way} {found['ways'][way]['ndcg@10']:.3f}" for way in WAYS)
            print(f"{encoder} · {name}: {row} ({found['seconds']:.0f} s)", flush=True)
            kept.write_text(json.dumps(report, indent=1) + "\n")
            (results / "quality.md").write_text(_markdown(report))
    print(_markdown(report))


def _measured(dataset: Dataset, encoder: str, folder: str, options: argparse.Namespace) -> dict[str, Any]:
    """Ingest (or find what is kept), ask, measure each way."""
    started = time.perf_counter()
    # The questions in three languages are asked of one corpus.
    corpus = "xquad" if folder.startswith("xquad") else folder
    name = f"quality-{corpus}-{encoder}"
    settings = {"ingest.encoders": (encoder,), **dict(setting.split("=", 1) for setting in options.setting)}
    with Workspace(name, home=options.cache, settings=settings) as workspace:
        report = workspace.ingest_documents(dataset.documents())
        source_of = workspace.chunk_sources()
        manifest = workspace.manifest
        lexical = LexicalEncoder(k1=manifest.bm25_k1, b=manifest.bm25_b, average_length=manifest.bm25_average_length)
        # The workspace's own engine: a person's search gives one way of ranking, here all are had from one retrieval.
        engine = workspace.engine
        per_way, warnings = _asked(dataset, encoder, engine, source_of, lexical, options.queries)
    summaries = {way: summarize(measured) for way, measured in per_way.items()}
    return {
        "documents": report.files,
        "chunks": len(source_of),
        "queries": len(per_way["default"]),
        "ways": {way: {metric: summary[metric] for metric in METRICS} for way, summary in summaries.items()},
        "warnings": warnings,
        "seconds": time.perf_counter() - started,
    }


def _asked(
    dataset: Dataset,
    encoder: str,
    engine: Engine,
    source_of: Mapping[str, str],
    lexical: LexicalEncoder,
    limit: int | None,
) -> tuple[dict[str, dict[str, Mapping[str, float]]], dict[str, int]]:
    """Way -> question -> metrics, and how often each warning was given."""
    embedders = {encoder: embedder_named(encoder)}
    spoken = frozenset(engine.languages()) - {""}
    rerank = LateInteraction(budget_ms=60_000)  # the machine is shared: quality must not depend on its mood
    per_way: dict[str, dict[str, Mapping[str, float]]] = {way: {} for way in WAYS}
    warnings: dict[str, int] = {}
    for query_id, question in list(dataset.queries.items())[:limit]:
        ask = partial(retrieve, question, engine=engine, arms=[encoder, LEXICAL], embedders=embedders, lexical=lexical)
        chosen = ask(language_of=lambda text: detect_question(text, among=spoken).code)
        # The plain fusions do not look at languages: they are given every arm.
        found = chosen if len(chosen.rankings) == 2 else ask()
        ranked: dict[str, Ranking] = {
            "dense": found.rankings[encoder],
            "lexical": found.rankings[LEXICAL],
            "boolean": _boolean(question, engine, lexical),
            "minmax .5/.5": minmax(found.rankings),
            "z-score": zscore(found.rankings),
            "RRF": rrf(found.rankings),
            "DBSF": dbsf(found.rankings),
            "default": rank(chosen, engine=engine, rerank=rerank).ranking,
        }
        for warning in chosen.warnings:
            kind = warning.split(":")[0]
            warnings[kind] = warnings.get(kind, 0) + 1
        for way, ranking in ranked.items():
            documents = list(dict.fromkeys(source_of[hit.chunk_id] for hit in ranking))
            per_way[way][query_id] = measure(documents, dataset.qrels[query_id])
    return per_way, warnings


def _boolean(question: str, engine: Engine, lexical: LexicalEncoder) -> Ranking:
    """The AND of the question's content words; nothing where it cannot be read as a rule."""
    try:
        found: ArmResults = retrieve(question, engine=engine, arms=[BOOLEAN], embedders={}, lexical=lexical)
    except FilterError:
        return ()
    return found.rankings[BOOLEAN]


def _markdown(report: Mapping[str, object]) -> str:
    """nDCG@10 by set and way, one table an encoder, then the other metrics of the default."""
    lines = [f"Date {report['date']}; {report['machine']}; `{report['command']}`.", ""]
    sets = report["sets"]
    assert isinstance(sets, dict)
    for encoder, found in sets.items():
        lines += [f"## {encoder}: nDCG@10", "", "| set | questions | " + " | ".join(WAYS) + " |"]
        lines.append("| --- " * (len(WAYS) + 2) + "|")
        for name, one in found.items():
            figures = [one["ways"][way]["ndcg@10"] for way in WAYS]
            marked = [f"**{f:.3f}**" if f == max(figures) else f"{f:.3f}" for f in figures]
            note = " (tuned on)" if name in TUNED_ON else ""
            lines.append(f"| {name}{note} | {one['queries']} | " + " | ".join(marked) + " |")
        counted = [one for name, one in found.items() if name != "scifact train"]
        if counted:
            means = [sum(one["ways"][way]["ndcg@10"] for one in counted) / len(counted) for way in WAYS]
            lines.append("| mean without train | | " + " | ".join(f"{mean:.3f}" for mean in means) + " |")
        lines += ["", f"## {encoder}: the default", "", "| set | " + " | ".join(METRICS) + " | chunks |"]
        lines.append("| --- " * (len(METRICS) + 2) + "|")
        for name, one in found.items():
            row = " | ".join(f"{one['ways']['default'][metric]:.3f}" for metric in METRICS)
            lines.append(f"| {name} | {row} | {one['chunks']} |")
        lines.append("")
    return "\n".join(lines) + "\n"


def _options() -> argparse.Namespace:
    root = Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=root.parent.parent / "shared" / "data")
    parser.add_argument("--cache", type=Path, required=True, help="folder that keeps the workspaces")
    parser.add_argument("--results", type=Path, default=root / "results")
    parser.add_argument("--encoder", action="append", help="repeatable; default minilm")
    parser.add_argument("--set", action="append", choices=SETS, help="repeatable; default all")
    parser.add_argument("--queries", type=int, help="only the first so many questions of each set")
    parser.add_argument("--setting", action="append", default=[], metavar="KEY=VALUE", help="another ingest setting")
    parser.add_argument("--add", action="store_true", help="keep the figures of other sets in quality.json")
    options = parser.parse_args()
    options.encoder = options.encoder or ["minilm"]
    return options


if __name__ == "__main__":
    main()
