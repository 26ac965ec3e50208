"""An encoder from any folder with an ONNX file and a tokenizer, as sentence-transformers and the hub lay it out.

Takes: texts. Returns: `Encoding`s of length 1, without token codes: those need the model's mean token vector.
Method: one text a run, as in `onnx.py`, so that company never changes a vector. Read from the folder where it is there:
    `1_Pooling/config.json` (mean, cls, max, last token; else the mean: Reimers & Gurevych 2019, arXiv:1908.10084), the
    prompts in `config_sentence_transformers.json` (else those of the model's family), the tokens it reads in
    `sentence_bert_config.json`, `tokenizer_config.json` or `config.json` (else 512).
Cost: the model's. What can go wrong: a file that is absent or damaged, a layer that is not in the ONNX file, a way of
    pooling that is not known (ModelFileError). A text over the limit is cut; `token_offsets` shows it coming.
"""

from __future__ import annotations

import hashlib
import json
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from cognicraft.errors import ModelFileError
from cognicraft.models.embed_local import LocalEmbedder
from cognicraft.models.embed_prompts import Prefixes, prefixes_of
from cognicraft.models.onnx_session import open_session, open_tokenizer
from cognicraft.records import FloatArray, digest

if TYPE_CHECKING:
    pass

Pooling = Literal["mean", "cls", "max", "lasttoken"]
# In this order, each in the folder itself or in its folder `onnx`.
MODEL_FILES = ("model.onnx", "model_optimized.onnx", "model_quantized.onnx", "model_int8.onnx")
_REMEDY = "Give a folder that holds model.onnx (or onnx/model.onnx) and tokenizer.json of a sentence encoder."
_USUAL_MAX_TOKENS = 512
_POSITIONS_FROM_TWO = ("roberta", "xlm-roberta", "camembert", "mpnet")
_OLD_POOLING: dict[str, Pooling] = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_lasttoken": "lasttoken",
}


class FolderEmbedder(LocalEmbedder):
    """An `Embedder` on an ONNX folder. Thread-safe.

    name: left out, `onnx:` and the folder. prefixes: left out, from the folder. file: the ONNX file in it, left out,
    any of the usual names. threads: as in `LocalEmbedder`.

    Raises: ModelFileError; UsageError where `threads` is negative.
    """

    def __init__(
        self, folder: str | Path, *, name: str = "", prefixes: Prefixes | None = None, file: str = "", threads: int = 0
    ) -> None:
        self._folder = Path(folder).expanduser().absolute()
        self._model = _model_file(self._folder, file)
        _refuse_other_layers(self._folder)
        self._pooling, self._prompt_counts = _pooling(self._folder)
        self._lower = bool(_json(self._folder / "sentence_bert_config.json").get("do_lower_case"))
        super().__init__(
            name or f"onnx:{self._folder}",
            tokenizer=open_tokenizer(self._folder / "tokenizer.json", remedy=_REMEDY),
            prefixes=prefixes or own_prefixes(self._folder) or prefixes_of(self._folder.name),
            max_tokens=_max_tokens(self._folder),
            threads=threads,
        )
        self._cutting = open_tokenizer(self._folder / "tokenizer.json", remedy=_REMEDY)
        self._cutting.enable_truncation(self._max_tokens)
        self._session = open_session(self._model, remedy=_REMEDY)
        self._inputs = {one.name for one in self._session.get_inputs()}
        self._output, self._pooled = self._choose_output()

    @cached_property
    def dimensions(self) -> int:
        """From a run, as not every file says it."""
        return len(self._run(self._cutting.encode("a").ids or [0], skipped=0))

    @cached_property
    def fingerprint(self) -> str:
        """Of the files' content and of how they are used; where the folder lies does not matter."""
        files = [self._model, self._folder / "tokenizer.json", *_weights_beside(self._model)]
        reading = (self._pooling, str(self._prompt_counts), str(self._max_tokens), str(self._lower))
        return digest(*(_sha256(file) for file in files), *reading, *self._prefixes, size=8)

    def _vector(self, text: str, *, query: bool) -> FloatArray:
        prefix = self._prefixes.query if query else self._prefixes.document
        ids = self._cutting.encode(prefix + (text.lower() if self._lower else text)).ids
        if not ids:  # no special tokens and no text: nothing to run
            return np.zeros(self.dimensions, np.float32)
        # Where the prompt does not count, it goes with the special tokens before it.
        skipped = self._begin + self._count(prefix) if prefix and not self._prompt_counts else 0
        return self._run(ids, skipped=skipped)

    def _run(self, ids: list[int], *, skipped: int) -> FloatArray:
        row = np.array([ids], np.int64)
        feed = {"input_ids": row, "attention_mask": np.ones_like(row), "token_type_ids": np.zeros_like(row)}
        feed["position_ids"] = np.arange(len(ids), dtype=np.int64)[None]
        (output,) = self._session.run([self._output], {name: feed[name] for name in self._inputs})
        values: FloatArray = np.asarray(output[0], np.float32)
        if self._pooled:
            return values
        return _pool(values[skipped if skipped < len(values) else 0 :], self._pooling)

    @cached_property
    def _begin(self) -> int:
        """Special tokens before a text."""
        return int(sum(self._tokenizer.encode("a").special_tokens_mask[:1]))

    def _choose_output(self) -> tuple[str, bool]:
        """Name of the output to take, and whether it is one vector a text already."""
        if unknown := self._inputs - {"input_ids", "attention_mask", "token_type_ids", "position_ids"}:
            names = ", ".join(sorted(unknown))
            raise _unusable(self._model, f"it wants inputs that a sentence encoder has not: {names}")
        ranks = {one.name: len(one.shape) for one in self._session.get_outputs()}
        tokens = [name for name, rank in ranks.items() if rank == 3]
        vectors = [name for name, rank in ranks.items() if rank == 2]
        if vectors and (not tokens or ("sentence_embedding" in vectors and not _has_pooling(self._folder))):
            return ("sentence_embedding" if "sentence_embedding" in vectors else vectors[0]), True
        if not tokens:
            raise _unusable(self._model, "it gives neither token vectors nor a sentence vector")
        return next((name for name in ("last_hidden_state", "token_embeddings") if name in tokens), tokens[0]), False


def _pool(tokens: FloatArray, pooling: Pooling) -> FloatArray:
    pooled: FloatArray
    if pooling in ("cls", "lasttoken"):
        pooled = tokens[0 if pooling == "cls" else -1]
    else:
        pooled = tokens.max(axis=0) if pooling == "max" else tokens.mean(axis=0)
    return pooled


def _unusable(path: Path, reason: str) -> ModelFileError:
    return ModelFileError(str(path), reason=reason, remedy=_REMEDY)


def _model_file(folder: Path, file: str) -> Path:
    if not folder.is_dir():
        raise _unusable(folder, "there is no such folder")
    names = [file] if file else [f"{place}{name}" for name in MODEL_FILES for place in ("", "onnx/")]
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise _unusable(folder, f"it holds no {names[0]}")


def _weights_beside(model: Path) -> list[Path]:
    """Large models keep their weights in a file beside the graph."""
    return [path for path in (model.with_name(model.name + end) for end in ("_data", ".data")) if path.is_file()]


def _json(path: Path) -> dict[str, Any]:
    """An object, empty where there is no such file. Raises: ModelFileError where it is no object."""
    if not path.is_file():
        return {}
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise _unusable(path, str(error)) from None
    if not isinstance(value, dict):
        raise _unusable(path, "it holds no JSON object")
    return value


def _refuse_other_layers(folder: Path) -> None:
    path = folder / "modules.json"
    if not path.is_file():
        return
    try:
        kinds = [str(module["type"]).rpartition(".")[2] for module in json.loads(path.read_text(encoding="utf-8"))]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _unusable(path, str(error) or type(error).__name__) from None
    if other := [kind for kind in kinds if kind not in ("Transformer", "Pooling", "Normalize")]:
        raise _unusable(path, f"the model has a layer outside of its ONNX file: {', '.join(other)}")


def _has_pooling(folder: Path) -> bool:
    return (folder / "1_Pooling" / "config.json").is_file()


def _pooling(folder: Path) -> tuple[Pooling, bool]:
    """How token vectors become one, and whether those of the prompt count."""
    path = folder / "1_Pooling" / "config.json"
    config = _json(path)
    counts = bool(config.get("include_prompt", True))
    chosen = [mode for name, mode in _OLD_POOLING.items() if config.get(name)]
    others = [name for name, value in config.items() if name.startswith("pooling_mode_") and value is True]
    if isinstance(config.get("pooling_mode"), str):
        mode = str(config["pooling_mode"])
        chosen = [known for known in _OLD_POOLING.values() if known == mode]
        others = [mode]
    if not config:
        return "mean", True
    if len(chosen) != 1 or len(others) != 1:
        raise _unusable(path, f"this way of pooling is not known: {', '.join(others) or 'none'}")
    return chosen[0], counts


def own_prefixes(folder: Path) -> Prefixes | None:
    """The prompts that the folder itself names; None where it names none. Raises: ModelFileError."""
    config = _json(folder / "config_sentence_transformers.json")
    prompts = config.get("prompts") or {}
    usual = prompts.get(config.get("default_prompt_name") or "", "")
    query = prompts.get("query", usual)
    document = next((prompts[name] for name in ("document", "passage", "corpus") if name in prompts), usual)
    return Prefixes(str(query), str(document)) if query or document else None


def _max_tokens(folder: Path) -> int:
    config = _json(folder / "config.json")
    positions = config.get("max_position_embeddings")
    if isinstance(positions, int) and config.get("model_type") in _POSITIONS_FROM_TWO:
        positions -= 2
    found = [
        _json(folder / "sentence_bert_config.json").get("max_seq_length"),
        _json(folder / "tokenizer_config.json").get("model_max_length"),
        positions,
    ]
    # A limit that nobody set is written as a number with thirty digits.
    usable = [value for value in found if isinstance(value, int) and 2 < value < 1_000_000]
    return min(usable, default=_USUAL_MAX_TOKENS)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
