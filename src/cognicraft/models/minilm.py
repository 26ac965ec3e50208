"""The encoder that travels with the package: all-MiniLM-L6-v2, int8, English, no download.

Takes: texts, of which the first 254 tokens count. Returns: vectors of 384 dimensions. Method: `onnx.py`; the
    files in `data/minilm` are made by `scripts/build_minilm.py` from the weights of
    sentence-transformers/all-MiniLM-L6-v2 (Apache-2.0).
Cost: 23 MB on disk, tens of milliseconds to load. What can go wrong: a damaged installation (ModelFileError).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cognicraft.errors import ModelFileError
from cognicraft.models.onnx import ModelFiles, OnnxEmbedder, Reading, fingerprint_of, sha256_of

DATA = Path(__file__).parent / "data" / "minilm"
_REMEDY = "Install the package again: pip install --force-reinstall cognicraft"
_CLS, _SEP = 101, 102


class MiniLM(OnnxEmbedder):
    """all-MiniLM-L6-v2. `threads` as in `OnnxEmbedder`.

    Raises:
        ModelFileError: the files of the installation are absent or damaged.
    """

    def __init__(self, *, threads: int = 0) -> None:
        super().__init__(
            "minilm",
            files=_files(),
            reading=Reading(begin=_CLS, end=_SEP),
            max_tokens=256,
            languages=frozenset({"en"}),
            remedy=_REMEDY,
            threads=threads,
        )


def verify() -> None:
    """Compares every shipped file with the hash in the manifest; for `doctor`, not for each load (it reads 23
    MB).

    Raises:
        ModelFileError: a file differs or is absent.
    """
    for name, entry in _manifest()["files"].items():
        path = DATA / name
        if not path.is_file():
            raise ModelFileError(str(path), reason="it is absent", remedy=_REMEDY)
        if sha256_of(path) != entry["sha256"]:
            raise ModelFileError(str(path), reason="its content is not what was shipped", remedy=_REMEDY)


def _manifest() -> dict[str, Any]:
    path = DATA / "manifest.json"
    try:
        manifest: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelFileError(str(path), reason=str(error), remedy=_REMEDY) from error
    return manifest


def _files() -> ModelFiles:
    entries = _manifest()["files"]
    return ModelFiles(
        model=DATA / "model.onnx",
        tokenizer=DATA / "tokenizer.json",
        mean_token_vector=DATA / "mean.npy",
        fingerprint=fingerprint_of([entries[name]["sha256"] for name in ("model.onnx", "tokenizer.json", "mean.npy")]),
        model_bytes=entries["model.onnx"]["bytes"],
    )
