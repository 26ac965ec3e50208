"""A cross-encoder from an ONNX folder: question and passage read together, one score for each passage.

Takes: a question and passages. Returns: a score per passage, larger is better: the model's logit, or the logit for
    "relevant" less the one for "not" where it has two. Not scaled: compare within one question only.
Method: pairs as the model was trained on them (Nogueira and Cho 2019, arXiv:1901.04085), run by onnxruntime. A passage
    longer than the window is read in windows that overlap, and the best one counts (MaxP: Dai and Callan, SIGIR 2019):
    nothing of it goes unread. The question is cut only where it is longer than half of the window; then both are cut
    from the longer side, as `longest_first` does.
Cost: one run of the model for every pair and window, side by side on threads; `benchmarks/rerank_cost.py` measures it.
What can go wrong: a file that is absent, damaged or not of a cross-encoder (ModelFileError, when it is made). Nothing
    in a text makes scoring fail; a score that is not a number becomes None.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cognicraft.errors import ModelFileError, UsageError
from cognicraft.models.onnx_session import open_session, open_tokenizer

if TYPE_CHECKING:
    import tokenizers

# In this order, each beside `config.json` or in its folder `onnx`.
MODEL_FILES = ("model.onnx", "model_quantized.onnx", "model_int8.onnx", "model_uint8.onnx")
_REMEDY = "Give a folder that holds model.onnx (or onnx/model.onnx), tokenizer.json and config.json of a cross-encoder."
_KNOWN_INPUTS = ("input_ids", "attention_mask", "token_type_ids")
# Models of these families count positions from two on: their tables are two longer than what they read.
_POSITIONS_FROM_TWO = ("roberta", "xlm-roberta", "camembert", "xlm-roberta-xl")
_OVERLAP_TOKENS = 64
_SURROGATES = re.compile("[\ud800-\udfff]")

Logits = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True, slots=True)
class _Row:
    """One pair as the model reads it; `passage` is the number of the passage it belongs to."""

    passage: int
    token_ids: list[int]
    type_ids: list[int]


@dataclass(frozen=True, slots=True)
class _Template:
    """Special tokens before, between and after question and passage, and the segment number of each token."""

    before: list[int]
    between: list[int]
    after: list[int]
    before_types: list[int]
    between_types: list[int]
    after_types: list[int]
    question_type: int
    passage_type: int

    @property
    def tokens(self) -> int:
        return len(self.before) + len(self.between) + len(self.after)

    def row(self, number: int, question: list[int], passage: list[int]) -> _Row:
        ids = [*self.before, *question, *self.between, *passage, *self.after]
        types = [
            *self.before_types,
            *[self.question_type] * len(question),
            *self.between_types,
            *[self.passage_type] * len(passage),
            *self.after_types,
        ]
        return _Row(number, ids, types)


class CrossEncoder:
    """A `Reranker` on a folder with `model.onnx` or `onnx/model.onnx`, `tokenizer.json`, `config.json`. Thread-safe.

    file: the ONNX file in the folder, where it is not the usual one (a quantised one, say). threads: batches run side
    by side; 0 means one per CPU that this process may use. max_tokens: of question, passage and special tokens
    together, never more than the model has positions for. batch: pairs in one run, sorted by length; alone a pair's
    score never depends on its company (in a batch that of a quantised model may), and a batch saves next to nothing.

    Raises:
        ModelFileError: a file is absent or damaged, or the model is not a cross-encoder.
        UsageError: `threads`, `max_tokens` or `batch` is too small.
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        name: str = "",
        file: str = "",
        threads: int = 1,
        max_tokens: int = 512,
        batch: int = 1,
    ) -> None:
        if threads < 0 or max_tokens < 16 or batch < 1:
            raise UsageError(
                f"threads is {threads}, max_tokens {max_tokens}, batch {batch}.",
                remedy="threads is 0 for one per CPU or more; max_tokens is at least 16, batch at least 1.",
            )
        self._folder = Path(folder).expanduser()
        self._name = name or self._folder.name
        config = _config(self._folder)
        self._tokenizer = _tokenizer(self._folder / "tokenizer.json")
        self._template = _template(self._tokenizer, self._folder / "tokenizer.json")
        self._max_tokens = _window(config, max_tokens, self._folder / "config.json")
        self._pad = _padding_id(config, self._tokenizer)
        self._model = _model_file(self._folder, file)
        self._session = open_session(self._model, remedy=_REMEDY)
        self._inputs = self._checked_inputs()
        outputs = [value.name for value in self._session.get_outputs()]
        self._output = "logits" if "logits" in outputs else outputs[0]
        self._batch = batch
        self._threads = threads or _usable_cpus()
        self._pool: ThreadPoolExecutor | None = None
        self._try_out()

    @property
    def name(self) -> str:
        return self._name

    @property
    def max_tokens(self) -> int:
        """Tokens of one run: question, passage and special ones together."""
        return self._max_tokens

    def scores(self, question: str, passages: Sequence[str]) -> list[float | None]:
        """A score per passage, in order, larger is better, without bounds; None where the model gave no number."""
        if not passages:
            return []
        rows = sorted(self._rows(question, passages), key=lambda row: len(row.token_ids))
        batches = [rows[start : start + self._batch] for start in range(0, len(rows), self._batch)]
        best: list[float | None] = [None] * len(passages)
        for batch, values in zip(batches, self._run_all(batches), strict=True):
            for row, value in zip(batch, values, strict=True):
                known = best[row.passage]
                if math.isfinite(value) and (known is None or value > known):
                    best[row.passage] = value
        return best

    def close(self) -> None:
        """Ends the threads. Idempotent; it works on afterwards, with new threads."""
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown()

    def _run_all(self, batches: list[list[_Row]]) -> list[list[float]]:
        if self._threads == 1 or len(batches) == 1:
            return [self._run(batch) for batch in batches]
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="cross-encoder")
        return list(self._pool.map(self._run, batches))

    def _rows(self, question: str, passages: Sequence[str]) -> list[_Row]:
        asked = self._tokenizer.encode(_encodable(question), add_special_tokens=False).ids
        texts = self._tokenizer.encode_batch([_encodable(text) for text in passages], add_special_tokens=False)
        return [row for number, text in enumerate(texts) for row in self._windows(number, asked, text.ids)]

    def _windows(self, number: int, asked: list[int], text: list[int]) -> list[_Row]:
        both = self._max_tokens - self._template.tokens
        if len(asked) > both // 2:
            asked = asked[: max(both // 2, both - len(text))]
        room = both - len(asked)
        if len(text) <= room:
            return [self._template.row(number, asked, text)]
        # The last window ends with the passage and is as long as the others.
        step = room - min(_OVERLAP_TOKENS, room // 2)
        starts = [*range(0, len(text) - room, step), len(text) - room]
        return [self._template.row(number, asked, text[start : start + room]) for start in starts]

    def _run(self, rows: list[_Row]) -> list[float]:
        """Scores of one batch, padded to its longest row."""
        width = max(len(row.token_ids) for row in rows)
        feed = {
            "input_ids": np.full((len(rows), width), self._pad, np.int64),
            "attention_mask": np.zeros((len(rows), width), np.int64),
            "token_type_ids": np.zeros((len(rows), width), np.int64),
        }
        for index, row in enumerate(rows):
            length = len(row.token_ids)
            feed["input_ids"][index, :length] = row.token_ids
            feed["attention_mask"][index, :length] = 1
            feed["token_type_ids"][index, :length] = row.type_ids
        (logits,) = self._session.run(
            [self._output], {name: feed[name].astype(kind, copy=False) for name, kind in self._inputs.items()}
        )
        return _values(logits)

    def _checked_inputs(self) -> dict[str, type[np.integer[Any]]]:
        inputs = {value.name: value.type for value in self._session.get_inputs()}
        if "input_ids" not in inputs or not set(inputs) <= set(_KNOWN_INPUTS):
            raise _unusable(
                self._model, f"it asks for {', '.join(inputs)}; a cross-encoder reads {', '.join(_KNOWN_INPUTS)}"
            )
        return {name: np.int32 if kind == "tensor(int32)" else np.int64 for name, kind in inputs.items()}

    def _try_out(self) -> None:
        """One pair through the whole model: a file that loads but cannot run shows here, not at the first question."""
        probe = self._windows(0, [self._pad], [self._pad])[0]
        try:
            values = self._run([probe, probe])
        except Exception as error:  # onnxruntime's own exceptions have no common class but Exception
            raise _unusable(self._model, _first_line(error)) from error
        if len(values) != 2:
            raise _unusable(self._model, f"it gave {len(values)} scores for 2 pairs")


def _values(logits: Logits) -> list[float]:
    """(pairs, 1), (pairs,) or (pairs, 2) logits as one score a pair, larger is better."""
    if logits.ndim == 2 and logits.shape[1] == 2:
        logits = logits[:, 1] - logits[:, 0]
    elif logits.ndim == 2 and logits.shape[1] == 1:
        logits = logits[:, 0]
    elif logits.ndim != 1:
        raise ValueError(
            f"its output has the shape {tuple(logits.shape)}, not one or two numbers a pair: not a cross-encoder"
        )
    return [float(value) for value in logits]


def _config(folder: Path) -> dict[str, Any]:
    if not folder.is_dir():
        raise _unusable(folder, "there is no such folder")
    path = folder / "config.json"
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise _unusable(path, str(error.strerror)) from error
    except ValueError as error:
        raise _unusable(path, f"it is not JSON ({error})") from error
    if not isinstance(config, dict):
        raise _unusable(path, "it is not a JSON object")
    return config


def _window(config: dict[str, Any], max_tokens: int, path: Path) -> int:
    positions = config.get("max_position_embeddings")
    if not isinstance(positions, int) or isinstance(positions, bool):
        return max_tokens
    if config.get("model_type") in _POSITIONS_FROM_TWO:
        positions -= 2
    if positions < 16:
        raise _unusable(path, f"max_position_embeddings leaves {positions} tokens to read")
    return min(max_tokens, positions)


def _padding_id(config: dict[str, Any], tokenizer: tokenizers.Tokenizer) -> int:
    known = config.get("pad_token_id")
    if isinstance(known, int):
        return known
    for token in ("[PAD]", "<pad>"):
        if (found := tokenizer.token_to_id(token)) is not None:
            return int(found)
    return 0


def _template(tokenizer: tokenizers.Tokenizer, path: Path) -> _Template:
    """Where the tokenizer puts special tokens into a pair, seen on an example."""
    pair = tokenizer.encode("a", "a")
    where = pair.sequence_ids
    if 0 not in where or 1 not in where:
        raise _unusable(path, "it makes no tokens of a letter")
    first, last = where.index(0), len(where) - 1 - where[::-1].index(1)
    second = where.index(1)
    middle = len(where[:second]) - where[:second][::-1].index(0)
    return _Template(
        before=pair.ids[:first],
        between=pair.ids[middle:second],
        after=pair.ids[last + 1 :],
        before_types=pair.type_ids[:first],
        between_types=pair.type_ids[middle:second],
        after_types=pair.type_ids[last + 1 :],
        question_type=pair.type_ids[first],
        passage_type=pair.type_ids[second],
    )


def _tokenizer(path: Path) -> tokenizers.Tokenizer:
    if not path.is_file():
        raise _unusable(path, "it is absent")
    return open_tokenizer(path, remedy=_REMEDY)


def _model_file(folder: Path, file: str) -> Path:
    for name in [file] if file else MODEL_FILES:
        for path in (folder / name, folder / "onnx" / name):
            if path.is_file():
                return path
    if file:
        raise _unusable(folder / file, "it is absent")
    found = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.onnx"))
    if len(found) == 1:
        return folder / found[0]
    reason = f"it holds no ONNX file named {', '.join(MODEL_FILES)}"
    raise _unusable(folder, f"{reason}, but {', '.join(found)}" if found else reason)


def _unusable(path: Path, reason: str) -> ModelFileError:
    return ModelFileError(str(path), reason=reason.rstrip("."), remedy=_REMEDY)


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _encodable(text: str) -> str:
    return text if text.isascii() else _SURROGATES.sub("\ufffd", text)


def _usable_cpus() -> int:
    # Not every system can tell which CPUs this process may use.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
