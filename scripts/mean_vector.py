"""The mean token vector of an encoder, each at length 1, over the texts of a file with one text a line;
special tokens are left out.

    .venv/bin/python scripts/mean_vector.py

Writes `src/cognicraft/models/data/e5/mean.npy` from `mean_texts_multilingual.txt`; `build_minilm.py` uses the
same functions. The texts are fixed in the repository, so that the vector, and with it every stored token
code, can be made again.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from cognicraft.records import FloatArray  # noqa: E402

SCRIPTS = Path(__file__).resolve().parent


def read_texts(name: str) -> list[str]:
    """The lines of a file beside this script."""
    return (SCRIPTS / name).read_text(encoding="utf-8").splitlines()


def open_session(model: bytes | str) -> Any:
    """One thread, basic optimisation: as the product runs it."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def mean_token_vector(
    session: Any, tokenizer: Tokenizer, texts: Iterable[str], *, begin: list[int], end: int
) -> FloatArray:
    """(dimensions,) float32. `begin` is what stands before a text: the begin token and the ids of a prefix."""
    sums = []
    count = 0
    for text in texts:
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        feed = {"input_ids": np.array([[*begin, *ids, end]], np.int64)}
        (tokens,) = session.run(["token_vectors"], feed)
        vectors = tokens[0, len(begin) : -1].astype(np.float64)
        sums.append((vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).sum(axis=0))
        count += len(ids)
    # Rounded, so that the last bits, which differ between CPUs, do not reach the file.
    return np.asarray(np.round(np.sum(sums, axis=0) / count, 4), dtype=np.float32)


def main() -> None:
    from cognicraft.models import e5

    files = e5._files(print)
    tokenizer = Tokenizer.from_file(str(files.tokenizer))
    prefix = tokenizer.encode("passage:", add_special_tokens=False).ids
    mean = mean_token_vector(
        open_session(str(files.model)), tokenizer, read_texts("mean_texts_multilingual.txt"), begin=[0, *prefix], end=2
    )
    out = ROOT / "src/cognicraft/models/data/e5/mean.npy"
    out.parent.mkdir(parents=True, exist_ok=True)
    np.save(out, mean)
    print(f"{out.name}: norm {np.linalg.norm(mean):.3f}")


if __name__ == "__main__":
    main()
