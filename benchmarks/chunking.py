"""How well the splitters keep together what a question needs: Chroma's chunking evaluation, at five chunks.

Data: `../shared/data/chunking_eval` (472 questions over five corpora, each with the character ranges that answer it).
Protocol, after Smith and Troynikov, "Evaluating Chunking Strategies for Retrieval", Chroma, 2024: the chunks of all
five corpora stand in one collection; each question retrieves five of them; with R the reference ranges, C the sum of
the lengths of the five chunks (text that two of them share counts twice, chunks of another corpus count too), and T the
part of R that lies in retrieved chunks of the right corpus (each character once):
    recall = |T| / |R|     precision = |T| / C     IoU = |T| / (C + |R not in T|)
each averaged over the questions. Precision omega is the precision of a retriever that finds every chunk that holds a
part of R and no other. Theirs is a dense arm alone; here `dense` is that, and `default` is what the product does.
Chunks stand in their default context (the outline of `contextualize`).

    python benchmarks/chunking.py [--quick] [--json benchmarks/results/chunking.json]
"""

from __future__ import annotations

import argparse
import csv
import json
import platform
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from cognicraft.ingest.contextualize import contextualize
from cognicraft.ingest.recursive import RecursiveSplitter
from cognicraft.ingest.split import StructureSplitter
from cognicraft.models.minilm import MiniLM
from cognicraft.protocols import Splitter
from cognicraft.records import Block, Chunk, ContextualChunk, Document
from ranking import DEFAULT, by_arm

DATA = Path(__file__).parent / "../../shared/data/chunking_eval"
RESULTS = Path(__file__).parent / "results" / "chunking.json"
CHUNKS = 5
Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    corpus: str
    references: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Held:
    """A chunk and the corpus it is of."""

    corpus: str
    chunk: Chunk


def questions() -> list[Question]:
    with (DATA / "questions_df.csv").open(encoding="utf-8", newline="") as file:
        return [
            Question(
                text=row["question"],
                corpus=row["corpus_id"],
                references=tuple(
                    (int(reference["start_index"]), int(reference["end_index"]))
                    for reference in json.loads(row["references"])
                ),
            )
            for row in csv.DictReader(file)
        ]


def corpora(*, structure: bool = True) -> list[Document]:
    """The five texts as the product's plain-text reader would give them: headings where a line says that it is one."""
    return [
        Document(source=path.stem, text=text, blocks=_headings(text) if structure else ())
        for path in sorted((DATA / "corpora").glob("*.md"))
        for text in [path.read_text(encoding="utf-8")]
    ]


def _headings(text: str) -> tuple[Block, ...]:
    """Wiki headings (` = = Title = = `) and the ones of Markdown."""
    blocks = []
    for match in re.finditer(r"^ ?(?P<wiki>=(?: =){0,4}) [^=\n]+ (?P=wiki) ?$|^(?P<hashes>#{1,6}) [^\n]+$", text, re.M):
        level = len((match["wiki"] or match["hashes"]).replace(" ", ""))
        blocks.append(Block(kind="heading", start=match.start(), end=match.end(), level=level))
    return tuple(blocks)


def score(question: Question, retrieved: Sequence[Held]) -> dict[str, float]:
    """Recall, precision and IoU of one question, as fractions."""
    total = _length(question.references)
    found = _covered(question, retrieved)
    shown = sum(held.chunk.end - held.chunk.start for held in retrieved)
    # A character that two references share counts twice in the protocol's denominator, and once in what was found.
    missed = sum(_length(_without(reference, question, retrieved)) for reference in question.references)
    return {
        "recall": found / total,
        "precision": found / shown if shown else 0.0,
        "iou": found / (shown + missed) if shown + missed else 0.0,
    }


def _covered(question: Question, retrieved: Sequence[Held]) -> int:
    return _length(_merged(_overlaps(question.references, question.corpus, retrieved)))


def _without(reference: Span, question: Question, retrieved: Sequence[Held]) -> list[Span]:
    left: list[Span] = []
    position = reference[0]
    for start, end in _merged(_overlaps([reference], question.corpus, retrieved)):
        left.append((position, start))
        position = end
    return [*left, (position, reference[1])]


def _overlaps(references: Sequence[Span], corpus: str, retrieved: Sequence[Held]) -> list[Span]:
    return [
        (max(start, held.chunk.start), min(end, held.chunk.end))
        for held in retrieved
        if held.corpus == corpus
        for start, end in references
        if max(start, held.chunk.start) < min(end, held.chunk.end)
    ]


def _merged(spans: Sequence[Span]) -> list[Span]:
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], end)
        else:
            merged.append((start, end))
    return merged


def _length(spans: Sequence[Span]) -> int:
    return sum(end - start for start, end in spans)


def precision_omega(question: Question, held: Sequence[Held]) -> float:
    touching = [one for one in held if _overlaps(question.references, question.corpus, [one])]
    joined = _length(_merged([(one.chunk.start, one.chunk.end) for one in touching]))
    return _covered(question, touching) / joined if joined else 0.0


def splitters(*, quick: bool) -> dict[str, Splitter]:
    """Ours at its default first, then the recursive one as in the systems before, then other sizes of both."""
    chosen: dict[str, Splitter] = {
        "structure (default)": StructureSplitter(),
        "recursive 1500/200": RecursiveSplitter(),
    }
    if quick:
        return chosen
    for max_tokens, overlap_tokens in ((254, 50), (300, 50)):
        chosen[f"structure {max_tokens}/{overlap_tokens}"] = StructureSplitter(
            max_tokens=max_tokens, overlap_tokens=overlap_tokens
        )
    for characters, overlap in ((800, 100),):
        chosen[f"recursive {characters}/{overlap}"] = RecursiveSplitter(
            max_characters=characters, overlap_characters=overlap
        )
    return chosen


def run(splitter: Splitter, *, embedder: MiniLM, asked: Sequence[Question], arms: Sequence[str]) -> dict[str, object]:
    held: list[Held] = []
    contextual: list[ContextualChunk] = []
    split_s = 0.0
    for document in corpora():
        started = time.process_time()
        chunks = splitter(document, offsets=embedder.token_offsets)
        split_s += time.process_time() - started
        held += [Held(document.source, chunk) for chunk in chunks]
        contextual += contextualize(document, chunks)
    names = {str(number): question.text for number, question in enumerate(asked)}
    encodings = {name: embedder.encode_query(text) for name, text in names.items()}
    found = by_arm(names, contextual, embedder=embedder, encodings=encodings)
    result: dict[str, object] = {
        "chunks": len(held),
        "tokens_mean": sum(one.chunk.tokens for one in held) / len(held),
        "tokens_most": max(one.chunk.tokens for one in held),
        "split_cpu_s": split_s,
        "precision_omega": sum(precision_omega(question, held) for question in asked) / len(asked),
    }
    for arm in arms:
        scores = [
            score(question, [held[int(hit.chunk_id)] for hit in found[arm][str(number)][:CHUNKS]])
            for number, question in enumerate(asked)
        ]
        result[arm] = {name: sum(one[name] for one in scores) / len(scores) for name in scores[0]}
    return result


def main(argv: Sequence[str] | None = None, *, write: Callable[[str], None] = print) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="only the default and the recursive splitter at 1500/200")
    parser.add_argument("--json", type=Path, default=RESULTS)
    options = parser.parse_args(argv)
    if not DATA.is_dir():
        parser.exit(2, f"The data folder {DATA} is not there.\n")
    arms = ("dense", "lexical", "minmax", "zscore", DEFAULT)
    embedder = MiniLM()
    asked = questions()
    results: dict[str, dict[str, object]] = {}
    write(f"{'splitter':<22}{'chunks':>7}{'tokens':>7}" + "".join(f"{arm + ' R/IoU':>17}" for arm in arms))
    for name, splitter in splitters(quick=options.quick).items():
        result = results[name] = run(splitter, embedder=embedder, asked=asked, arms=arms)
        cells = "".join(f"{result[arm]['recall']:>10.3f}/{result[arm]['iou']:.4f}" for arm in arms)  # type: ignore[index]
        write(f"{name:<22}{result['chunks']:>7}{result['tokens_mean']:>7.0f}{cells}")
        options.json.parent.mkdir(parents=True, exist_ok=True)
        report = {
            "benchmark": "chunking",
            "questions": len(asked),
            "retrieved": CHUNKS,
            "encoder": embedder.fingerprint,
            "machine": f"{platform.machine()} {platform.system()}",
            "results": results,
        }
        options.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    write(f"written: {options.json}")


if __name__ == "__main__":
    main()
