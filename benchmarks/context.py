"""What the outline before a chunk does to each arm: nDCG@10 with and without, for the dense and the lexical text apart.

Data: BEIR-shaped sets of `../shared/data` whose documents have titles. A document's title and the words of its id
stand in for title and file name; none of these texts has headings, so what is measured is what the head of a document
is worth to chunks that do not hold it. A document scores as its best chunk. `none` does not see the titles at all.

    python benchmarks/context.py [DATASET ...] [--json benchmarks/results/context.json]
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cognicraft.evaluate.datasets import load
from cognicraft.evaluate.metrics import ndcg, recall
from cognicraft.ingest.contextualize import contextualize
from cognicraft.ingest.split import StructureSplitter
from cognicraft.models.minilm import MiniLM
from cognicraft.records import ContextualChunk, Ranking
from cognicraft.search.lexical import LexicalEncoder
from ranking import DEFAULT, DenseArm, LexicalArm, rankings

DATA = Path(__file__).parent / "../../shared/data"
RESULTS = Path(__file__).parent / "results" / "context.json"
SETS = ("anthropic_docs_rag", "cranfield", "squad2", "scifact")
MODES = ("none", "outline")


def measure(name: str, *, embedder: MiniLM, queries: int) -> dict[str, Any]:
    """Means over the questions, by `arm mode` and by `default dense-mode/lexical-mode`."""
    dataset = load(DATA / name)
    splitter = StructureSplitter()
    owners: list[str] = []
    chunks: dict[str, list[ContextualChunk]] = {mode: [] for mode in MODES}
    for document in dataset.documents():
        cut = splitter(document, offsets=embedder.token_offsets)
        owners += [document.source] * len(cut)
        for mode in MODES:
            chunks[mode] += contextualize(document, cut, dense=mode, lexical=mode)  # type: ignore[arg-type]
    dense = {mode: DenseArm([one.dense_text for one in chunks[mode]], embedder=embedder) for mode in MODES}
    encoder = LexicalEncoder()
    lexical = {mode: LexicalArm([one.lexical_text for one in chunks[mode]], encoder=encoder) for mode in MODES}
    scores: dict[str, list[tuple[float, float]]] = {}

    def note(label: str, ranking: Ranking, relevance: dict[str, int]) -> None:
        found = list(dict.fromkeys(owners[int(hit.chunk_id)] for hit in ranking))
        scores.setdefault(label, []).append((ndcg(found, relevance, k=10), recall(found, relevance, k=5)))

    # Evenly over the file: questions of one document stand together.
    step = max(1, len(dataset.queries) // queries)
    asked = list(dataset.queries.items())[::step]
    for identifier, text in asked:
        relevance = dict(dataset.qrels[identifier])
        encoding = embedder.encode_query(text)
        for dense_mode in MODES:
            for lexical_mode in MODES:
                found = rankings(text, dense=dense[dense_mode], lexical=lexical[lexical_mode], encoding=encoding)
                note(f"default {dense_mode}/{lexical_mode}", found[DEFAULT], relevance)
                if dense_mode == lexical_mode:
                    note(f"dense {dense_mode}", found["dense"], relevance)
                    note(f"lexical {lexical_mode}", found["lexical"], relevance)
    return {
        "chunks": len(owners),
        "documents": len(set(owners)),
        "queries": len(asked),
        "ndcg@10": {label: sum(one[0] for one in values) / len(values) for label, values in scores.items()},
        "recall@5": {label: sum(one[1] for one in values) / len(values) for label, values in scores.items()},
    }


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("datasets", nargs="*", default=list(SETS))
    parser.add_argument("--queries", type=int, default=500, help="at most about so many questions of each set")
    parser.add_argument("--json", type=Path, default=RESULTS)
    options = parser.parse_args(argv)
    embedder = MiniLM()
    results: dict[str, Any] = {}
    for name in options.datasets:
        if not (DATA / name).is_dir():
            parser.exit(2, f"The data folder {DATA / name} is not there.\n")
        result = results[name] = measure(name, embedder=embedder, queries=options.queries)
        print(f"\n{name}: {result['documents']} documents, {result['chunks']} chunks, {result['queries']} questions")
        for label, value in sorted(result["ndcg@10"].items()):
            print(f"  {label:<26} nDCG@10 {value:.3f}   recall@5 {result['recall@5'][label]:.3f}", flush=True)
        options.json.parent.mkdir(parents=True, exist_ok=True)
        report = {"benchmark": "context", "encoder": embedder.fingerprint, "results": results}
        options.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    print(f"written: {options.json}")


if __name__ == "__main__":
    main()
