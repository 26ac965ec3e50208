"""Find the weights in `cognicraft/answer/scoring.py`: `python scripts/train_extract.py [--data DIR] [--cache DIR]`.

Trains on the development half of squad2 (the first half of its articles) and prints
    the conditional logit over the candidate sentences of a question (label: the reference answer stands in it),
    the logistic model of whether a question is off-topic (against the questions of cosqa and cranfield),
each beside what is written in the code, with the share of right first sentences on the half that was not trained on.
The numbers in the code are these, rounded by hand towards what also holds on the passages of `chunking_eval`.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))

from answers import CachedEmbedder, Corpus, half, holds_answer, references  # noqa: E402
from cognicraft.answer.candidates import candidates  # noqa: E402
from cognicraft.answer.extract import describe  # noqa: E402
from cognicraft.answer.features import NAMES  # noqa: E402
from cognicraft.answer.scoring import MINILM, SENTENCE_WEIGHTS, sentence_scores  # noqa: E402
from cognicraft.evaluate.datasets import load  # noqa: E402
from cognicraft.search.lexical import LexicalEncoder  # noqa: E402

Array = npt.NDArray[np.float64]
OFF_TOPIC = ("cosqa", "cranfield")
OFF_TOPIC_NAMES = ("passage_late_interaction", "similarity", "coverage")


def conditional_logit(groups: Sequence[tuple[Array, Array]], *, penalty: float = 1e-3, steps: int = 600) -> Array:
    """Weights that make the right candidates of each group likeliest; a group is (features, 0/1 labels)."""
    stacked = np.concatenate([features for features, _ in groups])
    mean, spread = stacked.mean(axis=0), stacked.std(axis=0) + 1e-9
    features = (stacked - mean) / spread
    labels = np.concatenate([label for _, label in groups])
    sizes = [len(label) for _, label in groups]
    starts = np.concatenate(([0], np.cumsum(sizes)[:-1]))
    member = np.repeat(np.arange(len(groups)), sizes)

    def slope(weights: Array) -> Array:
        scores = features @ weights
        exponentials = np.exp(scores - np.maximum.reduceat(scores, starts)[member])
        total = np.add.reduceat(exponentials, starts)[member]
        right = np.maximum(np.add.reduceat(exponentials * labels, starts), 1e-12)[member]
        gradient = features.T @ (exponentials / total - exponentials * labels / right) / len(groups)
        return np.asarray(gradient + 2 * penalty * weights)

    return np.asarray(_descend(slope, features.shape[1], steps=steps) / spread)


def logistic(features: Array, labels: Array, *, penalty: float = 1e-3, steps: int = 2000) -> tuple[Array, float]:
    """Weights and bias; both classes weigh the same."""
    mean, spread = features.mean(axis=0), features.std(axis=0) + 1e-9
    padded = np.hstack([(features - mean) / spread, np.ones((len(features), 1))])
    share = np.where(labels > 0, 0.5 / labels.sum(), 0.5 / (1 - labels).sum())

    def slope(weights: Array) -> Array:
        expected = 1 / (1 + np.exp(-padded @ weights))
        return np.asarray(padded.T @ (share * (expected - labels)) + 2 * penalty * np.append(weights[:-1], 0.0))

    weights = _descend(slope, padded.shape[1], steps=steps)
    scaled = weights[:-1] / spread
    return scaled, float(weights[-1] - scaled @ mean)


def _descend(slope, size: int, *, steps: int) -> Array:  # type: ignore[no-untyped-def]
    """Gradient descent with momentum on standardised features."""
    weights, speed = np.zeros(size), np.zeros(size)
    for _ in range(steps):
        speed = 0.9 * speed - 0.3 * slope(weights)
        weights = weights + speed
    return weights


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=ROOT / "../shared/data")
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "cognicraft-benchmarks")
    parser.add_argument("--questions", type=int, default=None)
    options = parser.parse_args()
    dataset = load(options.data / "squad2")
    embedder, lexical = CachedEmbedder(options.cache), LexicalEncoder()
    corpus = Corpus(dataset, embedder=embedder, lexical=lexical)

    def described(question: str) -> tuple[list[str], Array]:
        found = corpus.find(question)
        sentences = candidates([passage.stored for passage in found.passages])
        columns = describe(
            question,
            found.passages,
            sentences,
            embedder=embedder,
            question_encoding=found.encoding,
            lexical_terms=corpus.terms,
        )
        return [sentence.text for sentence in sentences], columns.astype(np.float64)

    def off_topic_features(columns: Array) -> list[float]:
        best = np.argsort(-sentence_scores(columns.astype(np.float32)), kind="stable")[:5]
        return [columns[best if name != "coverage" else best[:1], NAMES.index(name)].max() for name in OFF_TOPIC_NAMES]

    used = [NAMES.index(name) for name in SENTENCE_WEIGHTS]
    trained: list[tuple[Array, Array]] = []
    held_out: list[tuple[Array, Array]] = []
    on_topic: list[list[float]] = []
    mine = half(dataset, first=True, limit=options.questions)
    for (name, question), own in zip(list(dataset.queries.items())[: options.questions], mine, strict=False):
        texts, columns = described(question)
        labels = np.array([float(holds_answer(text, references(dataset, name))) for text in texts])
        if own:
            on_topic.append(off_topic_features(columns))
        if labels.any():
            (trained if own else held_out).append((columns[:, used], labels))
    weights = conditional_logit(trained)
    in_code = np.array(list(SENTENCE_WEIGHTS.values()))
    for label, groups in (("trained on", trained), ("held out", held_out)):
        if groups:
            right = [np.mean([y[np.argmax(x @ w)] for x, y in groups]) for w in (weights, in_code)]
            print(f"{label}: {len(groups)} questions, first sentence right: fitted {right[0]:.3f}, code {right[1]:.3f}")
    for name, fitted, code in zip(SENTENCE_WEIGHTS, weights, in_code, strict=True):
        print(f"  {name:40} fitted {fitted:7.2f}   code {code:7.2f}")

    elsewhere: list[list[float]] = []
    for other in OFF_TOPIC:
        questions = list(load(options.data / other).queries.values())
        random.Random(0).shuffle(questions)
        elsewhere += [off_topic_features(described(question)[1]) for question in questions[:150]]
    embedder.keep()
    matrix = np.array(on_topic + elsewhere)
    weights, bias = logistic(matrix, np.array([1.0] * len(on_topic) + [0.0] * len(elsewhere)))
    print(f"off-topic or not: {len(on_topic)} questions against {len(elsewhere)}")
    for name, fitted in zip(OFF_TOPIC_NAMES, weights, strict=True):
        print(f"  {name:40} fitted {fitted:7.2f}   code {getattr(MINILM, name):7.2f}")
    print(f"  {'bias':40} fitted {bias:7.2f}   code {MINILM.bias:7.2f}")


if __name__ == "__main__":
    main()
