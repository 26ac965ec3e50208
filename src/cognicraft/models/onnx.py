"""A dense encoder in an ONNX file, run by onnxruntime on the CPU, one text at a time.

Takes: texts. Returns: `Encoding`s: the mean of the token vectors at length 1, and on request the token codes.
Method: mean pooling (Reimers & Gurevych 2019, arXiv:1908.10084); token codes are the packed signs of the
    token vectors less the model's mean token vector, one bit a dimension. Texts run side by side on threads,
    each text alone in its run, so order and company never change a vector.
Cost: see `benchmarks/embedding.py`. onnxruntime is imported when an encoder is made, not when this module is.
What can go wrong: an absent or cut-off model file (ModelFileError). A text over the limit is cut to its first
    `max_text_tokens` tokens; the caller can see it coming with `token_offsets`. Nothing in a text makes
    encoding fail.
"""

from __future__ import annotations

import hashlib
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
from cognicraft.records import ByteArray, Encoding, FloatArray

if TYPE_CHECKING:
    pass

_SURROGATES = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """The three files of an encoder, and what is known of them.

    fingerprint: of model, tokenizer and mean vector together.
    model_bytes: size of the model file; a file of another size was cut off or exchanged and is refused.
    """

    model: Path
    tokenizer: Path
    mean_token_vector: Path
    fingerprint: str
    model_bytes: int


@dataclass(frozen=True, slots=True)
class Reading:
    """How texts are put to the model. Token ids of begin and end; prefixes stand between begin and the text."""

    begin: int
    end: int
    document_prefix: str = ""
    query_prefix: str = ""


class OnnxEmbedder:
    """An `Embedder` on an ONNX file written by `cognicraft.models.graph`. Thread-safe.

    threads: how many texts are encoded side by side; 0 means one per CPU that this process may use.

    Raises:
        ModelFileError: a file is absent, of the wrong size, or onnxruntime refuses it.
        UsageError: `threads` is negative.
    """

    def __init__(
        self,
        name: str,
        *,
        files: ModelFiles,
        reading: Reading,
        max_tokens: int,
        languages: frozenset[str] | None,
        remedy: str,
        threads: int = 0,
    ) -> None:
        if threads < 0:
            raise UsageError(f"threads is {threads}.", remedy="Give 0 for one per CPU, or a positive number.")
        _check_size(files, remedy)
        self._name = name
        self._languages = languages
        self._fingerprint = files.fingerprint
        self._reading = reading
        self._max_tokens = max_tokens
        self._threads = threads or _usable_cpus()
        self._tokenizer = open_tokenizer(files.tokenizer, remedy=remedy)
        self._mean = _load_mean(files.mean_token_vector, remedy)
        self._session = open_session(files.model, remedy=remedy)
        self._document_prefix = self._token_ids(reading.document_prefix)
        self._query_prefix = self._token_ids(reading.query_prefix)
        self._pool: ThreadPoolExecutor | None = None

    @property
    def name(self) -> str:
        return self._name

    @property
    def dimensions(self) -> int:
        """Length of a vector, in float32 numbers."""
        return int(self._mean.shape[0])

    @property
    def max_tokens(self) -> int:
        """Tokens of one run, special ones and prefix included."""
        return self._max_tokens

    @property
    def max_text_tokens(self) -> int:
        """Tokens of a document's text that are used; `token_offsets` counts the same tokens."""
        return self._max_tokens - 2 - len(self._document_prefix)

    @property
    def languages(self) -> frozenset[str] | None:
        """ISO 639-1 codes of the languages it was trained on; None where that is not stated."""
        return self._languages

    @property
    def fingerprint(self) -> str:
        """Hex; another one means other vectors."""
        return self._fingerprint

    def token_offsets(self, text: str) -> list[tuple[int, int]]:
        """Half-open character spans of the text's tokens, in order, without special tokens and without
        truncation.

        Spans do not overlap; where one character became several tokens, all but the last have an empty span
        before it.
        """
        spans: list[tuple[int, int]] = self._tokenizer.encode(_encodable(text), add_special_tokens=False).offsets
        for index in range(len(spans) - 1):
            (start, end), (next_start, _) = spans[index], spans[index + 1]
            if end > next_start:
                spans[index] = (start, max(start, next_start))
        return spans

    def encode_documents(self, texts: Sequence[str], *, token_codes: bool = False) -> list[Encoding]:
        """One encoding per text, in order. Codes are of the first `max_text_tokens` tokens of the text."""
        if len(texts) < 2 or self._threads == 1:
            return [self._encode(text, self._document_prefix, token_codes=token_codes) for text in texts]
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix=f"encode-{self._name}")
        return list(
            self._pool.map(lambda text: self._encode(text, self._document_prefix, token_codes=token_codes), texts)
        )

    def encode_query(self, text: str) -> Encoding:
        """The question's encoding, with token codes."""
        return self._encode(text, self._query_prefix, token_codes=True)

    def close(self) -> None:
        """Ends the threads. Idempotent; the encoder works on afterwards, with new threads."""
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown()

    def _token_ids(self, text: str) -> list[int]:
        return self._tokenizer.encode(_encodable(text), add_special_tokens=False).ids if text else []

    def _encode(self, text: str, prefix: list[int], *, token_codes: bool) -> Encoding:
        room = self._max_tokens - 2 - len(prefix)
        ids = [self._reading.begin, *prefix, *self._token_ids(text)[:room], self._reading.end]
        feed = {"input_ids": np.array([ids], np.int64)}
        if not token_codes:
            (sentence,) = self._session.run(["sentence_vector"], feed)
            return Encoding(_unit(sentence[0]))
        sentence, tokens = self._session.run(["sentence_vector", "token_vectors"], feed)
        return Encoding(_unit(sentence[0]), pack_signs(tokens[0, 1 + len(prefix) : -1], mean=self._mean))


def pack_signs(token_vectors: FloatArray, *, mean: FloatArray) -> ByteArray:
    """(tokens, dimensions) float32 to (tokens, dimensions // 8) uint8: bit 1 where the centred value is above
    0.

    mean: of token vectors at length 1. Lengths differ (MiniLM's from 1 to 13), so each vector is compared at
    its own.
    """
    lengths = np.sqrt(np.einsum("ij,ij->i", token_vectors, token_vectors))
    return np.packbits(token_vectors > lengths[:, None] * mean, axis=1)


def fingerprint_of(sha256s: Sequence[str]) -> str:
    """One short name for several files, from their hashes in order."""
    return hashlib.sha256(" ".join(sha256s).encode()).hexdigest()[:16]


def sha256_of(path: Path) -> str:
    """Hex digest of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _usable_cpus() -> int:
    # Not every system can tell which CPUs this process may use.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _unit(vector: npt.NDArray[Any]) -> FloatArray:
    unit: FloatArray = (vector / np.linalg.norm(vector)).astype(np.float32)
    return unit


def _encodable(text: str) -> str:
    """Lone surrogates replaced one for one, so that offsets still count the caller's characters."""
    return text if text.isascii() else _SURROGATES.sub("\ufffd", text)


def _check_size(files: ModelFiles, remedy: str) -> None:
    try:
        size = files.model.stat().st_size
    except OSError as error:
        raise ModelFileError(str(files.model), reason=str(error.strerror), remedy=remedy) from error
    if size != files.model_bytes:
        reason = f"it has {size} bytes instead of {files.model_bytes}"
        raise ModelFileError(str(files.model), reason=reason, remedy=remedy)


def _load_mean(path: Path, remedy: str) -> FloatArray:
    try:
        return np.asarray(np.load(path), np.float32)
    except (OSError, ValueError) as error:
        raise ModelFileError(str(path), reason=str(error), remedy=remedy) from error
