"""What each part of the lexical arm is worth: constants, stop words, pairs, identifiers, context.

    python benchmarks/lexical.py --data ../shared/data [--queries 300]

Takes: BEIR-shaped folders. Returns: nDCG@10 of BM25 alone by set and variant, benchmarks/results/lexical.json.
Method: the product's splitter and outline context, then exact BM25 in numpy over the encoder's own terms, so that
    constants can be varied without storing anything anew. A document stands where its best chunk stands.
Cost: about 5 CPU-minutes.
"""

from __future__ import annotations

import argparse
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt

from cognicraft.evaluate.datasets import Dataset, load
from cognicraft.evaluate.metrics import ndcg
from cognicraft.ingest.contextualize import contextualize
from cognicraft.ingest.split import StructureSplitter
from cognicraft.models.minilm import MiniLM
from cognicraft.search import lexical as module
from cognicraft.search.lexical import PAIR_WEIGHT, LexicalEncoder

SETS = {
    "cranfield": ("cranfield", "test"),
    "scifact train": ("scifact", "train"),
    "scifact": ("scifact", "test"),
    "anthropic_docs_rag": ("anthropic_docs_rag", "test"),
    "hotpotqa": ("hotpotqa_hipporag100", "test"),
    "limit_small": ("limit_small", "test"),
    "squad2": ("squad2", "test"),
    "cosqa": ("cosqa", "test"),
}
Postings = dict[object, tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]]


@dataclass(frozen=True)
class Corpus:
    """A set, its chunks' texts with and without context, and the document of each."""

    dataset: Dataset
    texts: list[str]
    bare: list[str]
    owners: list[str]
    questions: list[tuple[str, str]]


class Index:
    """Exact BM25 over terms and pairs of neighbours."""

    def __init__(self, corpus: Corpus, texts: Sequence[str]) -> None:
        self.corpus, self.encoder = corpus, LexicalEncoder()
        sequences = [self.encoder.terms(text, language="en") for text in texts]
        self.lengths = np.array([len(one) for one in sequences], dtype=float)
        counted: dict[object, list[tuple[int, int]]] = {}
        for number, sequence in enumerate(sequences):
            for key, count in Counter([*sequence, *pairwise(sequence)]).items():
                counted.setdefault(key, []).append((number, count))
        self.postings: Postings = {
            key: (np.array([n for n, _ in found]), np.array([c for _, c in found], dtype=float))
            for key, found in counted.items()
        }
        self.queries = {
            query_id: self.encoder.terms(
                text, language="en", without=self.encoder.function_words(text, languages=["en"])
            )
            for query_id, text in corpus.questions
        }

    def quality(
        self, *, k1: float = 1.2, b: float = 0.75, average: float | None = 60.0, pair: float = PAIR_WEIGHT
    ) -> float:
        norm = k1 * (1 - b + b * self.lengths / (average or self.lengths.mean()))
        found = []
        for query_id, terms in self.queries.items():
            scores = np.zeros(len(self.lengths))
            weights: dict[object, float] = dict(Counter(terms))
            weights |= dict.fromkeys(pairwise(terms), pair)
            for key, weight in weights.items():
                if weight and key in self.postings:
                    places, counts = self.postings[key]
                    idf = math.log1p((len(scores) - len(places) + 0.5) / (len(places) + 0.5))
                    scores[places] += weight * idf * counts * (k1 + 1) / (counts + norm[places])
            best = np.argsort(-scores, kind="stable")[:100]
            documents = list(dict.fromkeys(self.corpus.owners[i] for i in best if scores[i] > 0))
            found.append(ndcg(documents, self.corpus.dataset.qrels[query_id], k=10))
        return float(np.mean(found))


def main() -> None:
    root = Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=root.parent.parent / "shared" / "data")
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--set", action="append", choices=SETS)
    parser.add_argument("--results", type=Path, default=root / "results")
    options = parser.parse_args()
    corpora = {name: _corpus(options.data, *SETS[name], options.queries) for name in options.set or SETS}
    table: dict[str, dict[str, float]] = {}

    def show(label: str, indexes: dict[str, Index], **how: float | None) -> None:
        table[label] = {name: index.quality(**how) for name, index in indexes.items()}  # type: ignore[arg-type]
        row = " ".join(f"{value:.3f}" for value in table[label].values())
        print(f"{label:34s} {row}  mean {np.mean(list(table[label].values())):.4f}", flush=True)

    print("variant", *corpora, sep=" · ")
    indexes = {name: Index(corpus, corpus.texts) for name, corpus in corpora.items()}
    print("mean length:", {name: round(float(index.lengths.mean())) for name, index in indexes.items()})
    show("default", indexes)
    for average in (None, 45.0, 75.0, 100.0, 150.0):
        show(f"average length {average or 'of the set'}", indexes, average=average)
    for k1, b in ((0.9, 0.4), (0.9, 0.75), (1.2, 0.5), (1.2, 0.9), (1.6, 0.75), (2.0, 0.75)):
        show(f"k1 {k1}, b {b}", indexes, k1=k1, b=b)
    for pair in (0.0, 0.1, 0.4):
        show(f"pairs {pair}", indexes, pair=pair)
    show("no context", {name: Index(corpus, corpus.bare) for name, corpus in corpora.items()})
    for label, change in _CHANGES.items():
        with_change = change()
        show(label, {name: Index(corpus, corpus.texts) for name, corpus in corpora.items()})
        with_change()
    options.results.mkdir(parents=True, exist_ok=True)
    (options.results / "lexical.json").write_text(
        json.dumps({"command": "python benchmarks/lexical.py", "queries": options.queries, "ndcg@10": table}, indent=1)
        + "\n"
    )


def _corpus(data: Path, folder: str, split: str, limit: int) -> Corpus:
    dataset = load(data / folder, split=split)
    offsets = _minilm().token_offsets
    splitter = StructureSplitter(max_tokens=160)
    texts, bare, owners = [], [], []
    for document in dataset.documents():
        for one in contextualize(document, splitter(document, offsets=offsets), lexical="outline"):
            texts.append(one.lexical_text)
            bare.append(one.chunk.text)
            owners.append(document.source)
    step = max(1, len(dataset.queries) // limit)
    return Corpus(dataset, texts, bare, owners, list(dataset.queries.items())[::step])


_MODELS: list[MiniLM] = []


def _minilm() -> MiniLM:
    if not _MODELS:
        _MODELS.append(MiniLM(threads=1))
    return _MODELS[0]


def _without(name: str, value: object) -> Callable[[], Callable[[], None]]:
    """Puts another value in the place of a part of the encoder; what it gives puts the old one back."""

    def change() -> Callable[[], None]:
        kept = getattr(module, name)
        setattr(module, name, value)
        return lambda: setattr(module, name, kept)

    return change


_CHANGES = {
    "no stop words": _without("STOP_WORDS", {}),
    "no stemming": _without("STEMMERS", {}),
    "camelCase and digits not split": _without("_CAMEL", re.compile(r"(?!x)x")),
    "snake_case, dots, hyphens not split": _without("_SEPARATORS", re.compile(r"(?!x)x")),
}


if __name__ == "__main__":
    main()
