"""What a cross-encoder costs a question: CPU milliseconds for 20 candidates, by their length and by pairs in a run.

    .venv/bin/python benchmarks/rerank_cost.py [--model FOLDER] [--candidates 20] [--rounds 3]

Without --model, a model of the shape of ms-marco-MiniLM-L-6-v2 (6 layers, 384 wide, 12 heads) with random weights and a
small vocabulary: the cost is that of the shape, the scores mean nothing. One thread, best of the rounds, the settings
interleaved in one run: read the ratios, not the absolute figures.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from cognicraft.models.cross_encoder import CrossEncoder  # noqa: E402

QUESTION = "when was the bridge opened"
WORDS = ("bridge", "opened", "river", "ferry", "bee", "sugar", "insulin", "summit", "snow", "year")
TOKENS = (50, 100, 200, 400)
BATCHES = (1, 4, 20)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, help="folder of an ONNX cross-encoder")
    parser.add_argument("--candidates", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.model or _stand_in(Path(scratch))
        print(f"{'tokens':>8}" + "".join(f"{f'batch {batch}':>12}" for batch in BATCHES) + "   CPU ms")
        rerankers = [CrossEncoder(folder, batch=batch) for batch in BATCHES]
        for tokens in TOKENS:
            best = [float("inf")] * len(BATCHES)
            passages = _passages(arguments.candidates, tokens)
            for _ in range(arguments.rounds):
                for index, reranker in enumerate(rerankers):
                    started = time.process_time()
                    reranker.scores(QUESTION, passages)
                    best[index] = min(best[index], (time.process_time() - started) * 1000.0)
            print(f"{tokens:>8}" + "".join(f"{value:>12.0f}" for value in best))


def _passages(count: int, tokens: int) -> list[str]:
    """Words of one token each; lengths differ as those of chunks do."""
    rng = random.Random(count * tokens)
    lengths = [rng.randint(tokens * 6 // 10, tokens * 14 // 10) for _ in range(count)]
    return [" ".join(rng.choices(WORDS, k=length)) for length in lengths]


def _stand_in(folder: Path) -> Path:
    from tiny_cross_encoder import tiny_cross_encoder  # type: ignore[import-not-found, unused-ignore]

    tiny_cross_encoder(folder, layers=6, width=384, heads=12)
    return folder


if __name__ == "__main__":
    main()
