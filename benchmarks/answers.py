"""How good answers without a model are: `python benchmarks/answers.py [--data DIR] [--cache DIR] [--out FILE]`.

Asks the questions of public sets of the product's own retrieval and extraction, and counts
    first, first three    the reference answer stands, word for word, in the first (first three) quoted sentences,
                          whatever the confidence; case, punctuation and white space aside, whole words only
    ceiling               it stands in any sentence of the ten passages
    refused               share of the answerable questions that are declined at the default threshold
    declined              share of the unanswerable or off-topic questions that are declined
    AUROC                 that an answerable question gets a higher confidence than one that is not
Off-topic: the questions of one set asked of the corpus of another. The development half of squad2 (the first half of
its articles) chose the threshold and the weights; the other half and the other sets did not, and are reported apart.
Encodings are kept in a cache folder: the second run is quicker.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sqlite3
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from cognicraft.answer.extract import MAX_PASSAGES, Extraction, Passage, extract
from cognicraft.answer.features import NOT_NAMED, Named
from cognicraft.answer.scoring import DEFAULT_THRESHOLD
from cognicraft.engines.memory import MemoryEngine
from cognicraft.evaluate.datasets import Dataset, load
from cognicraft.ingest.contextualize import contextualize
from cognicraft.ingest.encode import DocumentToEncode, encode
from cognicraft.ingest.split import StructureSplitter
from cognicraft.models.minilm import MiniLM
from cognicraft.records import DocumentRecord, Encoding
from cognicraft.search.aliases import early_chunks
from cognicraft.search.lexical import LexicalEncoder
from cognicraft.search.names import Names
from cognicraft.search.rerank import LateInteraction
from cognicraft.search.retrieve import LEXICAL, rank, retrieve
from cognicraft.search.route import routes
from cognicraft.search.understand import understand

ROOT = Path(__file__).resolve().parent.parent
ARM = "minilm"
SETS = ("squad2", "xquad/q_en_p_en", "hotpotqa_hipporag100")
OFF_TOPIC = (
    ("hotpotqa_hipporag100", "squad2"),
    ("cranfield", "squad2"),
    ("cosqa", "squad2"),
    ("squad2", "hotpotqa_hipporag100"),
    ("squad2", "anthropic_docs_rag"),
)
OFF_TOPIC_QUESTIONS = 300


class CachedEmbedder(MiniLM):
    """The shipped encoder, one thread, with every encoding kept in a file."""

    def __init__(self, folder: Path) -> None:
        super().__init__(threads=1)
        folder.mkdir(parents=True, exist_ok=True)
        self._store = sqlite3.connect(folder / f"encodings-{self.fingerprint}.sqlite", check_same_thread=False)
        self._store.execute("create table if not exists kept (key blob primary key, vector blob, codes blob)")

    def encode_documents(self, texts: Sequence[str], *, token_codes: bool = False) -> list[Encoding]:
        encodings = [self._kept(text, codes=token_codes, query=False) for text in texts]
        self.keep()
        return encodings

    def encode_query(self, text: str) -> Encoding:
        return self._kept(text, codes=True, query=True)

    def keep(self) -> None:
        """Write what is not yet written; documents are written as they come, questions here."""
        self._store.commit()

    def _kept(self, text: str, *, codes: bool, query: bool) -> Encoding:
        key = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16, key=bytes([codes, query])).digest()
        row = self._store.execute("select vector, codes from kept where key = ?", (key,)).fetchone()
        if row is not None:
            kept = np.frombuffer(row[1], np.uint8).reshape(-1, self.dimensions // 8) if codes else None
            return Encoding(np.frombuffer(row[0], np.float32), kept)
        made = super().encode_query(text) if query else super().encode_documents([text], token_codes=codes)[0]
        stored = b"" if made.token_codes is None else made.token_codes.tobytes()
        self._store.execute("insert into kept values (?, ?, ?)", (key, made.vector.tobytes(), stored))
        return made


@dataclass(frozen=True)
class Found:
    """What retrieval gives for a question."""

    question: str
    encoding: Encoding
    passages: tuple[Passage, ...]


class Corpus:
    """A corpus in the exact engine, cut, encoded and ranked as the product does by default."""

    def __init__(self, dataset: Dataset, *, embedder: CachedEmbedder, lexical: LexicalEncoder) -> None:
        self.embedder, self.lexical = embedder, lexical
        self.engine = MemoryEngine(dense={ARM: embedder.dimensions})
        splitter = StructureSplitter()
        documents = []
        for document in dataset.documents():
            chunks = contextualize(document, splitter(document, offsets=embedder.token_offsets))
            record = DocumentRecord(document.id, document.source, "1", title=document.title, language="en")
            documents.append(DocumentToEncode(record, tuple(chunks)))
        self.engine.replace(
            encode(
                documents,
                embedders={ARM: embedder},
                lexical=lambda text, language: lexical.document(text, language=language),
                token_codes=True,
            )
        )

        self.names = Names.learn(
            self.engine.documents(),
            terms=self.terms,
            first_chunks_of=partial(early_chunks, self.engine, arm=ARM, dimensions=embedder.dimensions),
        )

    def find(self, question: str) -> Found:
        hints = understand(question, names=self.names).hints
        named = {hint.document_id: Named(hint.fit, hint.words) for hint in hints}
        arms = retrieve(
            question,
            engine=self.engine,
            arms=[ARM, LEXICAL],
            embedders={ARM: self.embedder},
            lexical=self.lexical,
            routes=routes(hints),
        )
        best = rank(arms, engine=self.engine, rerank=LateInteraction(budget_ms=1e9), limit=MAX_PASSAGES)
        ids = [hit.chunk_id for hit in best.ranking]
        passages = tuple(
            Passage(
                stored,
                hit.score,
                {arm: place.score for arm, place in best.places[hit.chunk_id].items()},
                codes,
                named.get(stored.document_id, NOT_NAMED),
            )
            for stored, hit, codes in zip(
                self.engine.chunks(ids), best.ranking, self.engine.token_codes(ARM, ids), strict=True
            )
        )
        return Found(question, arms.encodings[ARM], passages)

    def terms(self, text: str) -> list[str]:
        return self.lexical.terms(text, language="en")

    def answer(self, found: Found, *, threshold: float = 0.0) -> Extraction:
        return extract(
            found.question,
            found.passages,
            embedder=self.embedder,
            question_encoding=found.encoding,
            lexical_terms=self.terms,
            threshold=threshold,
        )


def holds_answer(text: str, answers: Sequence[str]) -> bool:
    """Whether one of the reference answers stands in the text as whole words; case and punctuation aside."""
    padded = f" {_plain(text)} "
    return any(f" {plain} " in padded for plain in map(_plain, answers) if plain)


def _plain(text: str) -> str:
    return " ".join(re.sub(r"[^\w\s]", " ", text.lower()).split())


def references(dataset: Dataset, name: str) -> list[str]:
    """The reference answers of a question."""
    extra = dataset.extra.get(name, {})
    return list(extra["answers"]) if "answers" in extra else [extra["answer"]] if "answer" in extra else []


def measure(dataset: Dataset, corpus: Corpus, *, limit: int | None) -> Iterator[dict[str, Any]]:
    """A record per question: confidence, and for the answerable ones where the reference answer stands."""
    for name, question in list(dataset.queries.items())[:limit]:
        found = corpus.find(question)
        started = time.process_time()
        extraction = corpus.answer(found)
        cpu_ms = (time.process_time() - started) * 1000
        hits = [holds_answer(sentence.text, references(dataset, name)) for sentence in extraction.sentences]
        yield {
            "answerable": True,
            "first": hits[:1] == [True],
            "three": any(hits),
            "ceiling": any(holds_answer(p.stored.chunk.chunk.text, references(dataset, name)) for p in found.passages),
            "confidence": extraction.confidence,
            "cpu_ms": cpu_ms,
        }
    for question in list(dataset.unanswerable.values())[:limit]:
        yield {"answerable": False, "confidence": corpus.answer(corpus.find(question)).confidence}


def auroc(higher: Sequence[float], lower: Sequence[float]) -> float:
    """Probability that a draw of `higher` is above one of `lower`, ties half."""
    values, places, counts = np.unique([*higher, *lower], return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[places]
    above = ranks[: len(higher)].sum() - len(higher) * (len(higher) + 1) / 2
    return float(above / (len(higher) * len(lower))) if higher and lower and len(values) else float("nan")


def summary(records: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """The figures of the module docstring over some records."""
    answerable = [record for record in records if record["answerable"]]
    others = [record["confidence"] for record in records if not record["answerable"]]
    confidences = [record["confidence"] for record in answerable]
    figures: dict[str, float] = {"questions": len(answerable)}
    if answerable:
        figures |= {name: float(np.mean([r[name] for r in answerable])) for name in ("first", "three", "ceiling")}
        figures["refused"] = float(np.mean([value < DEFAULT_THRESHOLD for value in confidences]))
        figures["first_at_threshold"] = float(
            np.mean([r["first"] and r["confidence"] >= DEFAULT_THRESHOLD for r in answerable])
        )
        figures["cpu_ms_p50"], figures["cpu_ms_p95"] = np.percentile([r["cpu_ms"] for r in answerable], [50, 95])
    if others:
        figures |= {"unanswerable": len(others), "declined": float(np.mean([v < DEFAULT_THRESHOLD for v in others]))}
        if confidences:
            figures["auroc"] = auroc(confidences, others)
    return figures


def half(dataset: Dataset, *, first: bool, limit: int | None) -> list[bool]:
    """For each record of `measure`: whether it belongs to the first half of the corpus's documents."""
    order = {document.source: number for number, document in enumerate(dataset.documents())}
    middle = sorted(order[next(iter(judged))] for judged in dataset.qrels.values())[len(dataset.qrels) // 2]
    path = dataset.folder / "unanswerable.jsonl"
    passages = [json.loads(line)["passage"] for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    asked = [next(iter(judged)) for judged in list(dataset.qrels.values())[:limit]]
    return [(order[source] < middle) == first for source in [*asked, *passages[:limit]]]


def show(name: str, figures: Mapping[str, float]) -> None:
    print(f"{name:44}", *(f"{key} {value:.3f}" if value < 1 else f"{key} {value:g}" for key, value in figures.items()))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=ROOT / "../shared/data")
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "cognicraft-benchmarks")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks/results/answers.json")
    parser.add_argument("--questions", type=int, default=None, help="of each set, the first so many only")
    options = parser.parse_args()
    if not options.data.is_dir():
        parser.error(f"there is no folder {options.data}; give --data")

    embedder, lexical = CachedEmbedder(options.cache), LexicalEncoder()
    corpora: dict[str, Corpus] = {}

    def corpus_of(name: str) -> Corpus:
        if name not in corpora:
            corpora[name] = Corpus(load(options.data / name), embedder=embedder, lexical=lexical)
        return corpora[name]

    results: dict[str, dict[str, float]] = {}
    answerable: dict[str, list[float]] = {}
    for name in SETS:
        dataset = load(options.data / name)
        records = list(measure(dataset, corpus_of(name), limit=options.questions))
        embedder.keep()
        answerable[name] = [record["confidence"] for record in records if record["answerable"]]
        results[name] = summary(records)
        show(name, results[name])
        if dataset.unanswerable:
            for label, first in (("development half", True), ("other half", False)):
                mine = half(dataset, first=first, limit=options.questions)
                part = [record for record, own in zip(records, mine, strict=True) if own]
                results[f"{name}, {label}"] = summary(part)
                show(f"{name}, {label}", results[f"{name}, {label}"])
    for asked, told in OFF_TOPIC:
        questions = list(load(options.data / asked).queries.values())
        random.Random(1).shuffle(questions)
        corpus = corpus_of(told)
        records = [
            {"answerable": False, "confidence": corpus.answer(corpus.find(question)).confidence}
            for question in questions[: min(OFF_TOPIC_QUESTIONS, options.questions or OFF_TOPIC_QUESTIONS)]
        ]
        embedder.keep()
        name = f"{asked} asked of {told}"
        results[name] = summary(records)
        results[name]["auroc"] = auroc(answerable["squad2"], [record["confidence"] for record in records])
        show(name, results[name])
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(
        json.dumps({"threshold": DEFAULT_THRESHOLD, "encoder": embedder.fingerprint, "sets": results}, indent=2) + "\n",
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()
