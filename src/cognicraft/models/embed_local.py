"""What encoders in this process share: one text a run, side by side on threads, tokens counted by the model's own
tokenizer, length 1. See `onnx_folder.py` and `hub.py`.
"""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from cognicraft.errors import UsageError
from cognicraft.models.embed_prompts import Prefixes
from cognicraft.records import Encoding, FloatArray

if TYPE_CHECKING:
    import tokenizers

_SURROGATES = re.compile("[\ud800-\udfff]")


class LocalEmbedder(ABC):
    """An `Embedder` without token codes. Thread-safe, if `_vector` is.

    tokenizer: one that neither cuts nor pads. threads: texts encoded side by side; 0 means one per CPU that this
    process may use.
    """

    def __init__(
        self, name: str, *, tokenizer: tokenizers.Tokenizer, prefixes: Prefixes, max_tokens: int, threads: int = 0
    ) -> None:
        if threads < 0:
            raise UsageError(f"threads is {threads}.", remedy="Give 0 for one per CPU, or a positive number.")
        self._name = name
        self._tokenizer = tokenizer
        self._prefixes = prefixes
        self._max_tokens = max_tokens
        # Not every system can tell which CPUs this process may use.
        usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        self._threads = threads or usable
        self._pool: ThreadPoolExecutor | None = None

    @property
    @abstractmethod
    def dimensions(self) -> int: ...

    @property
    @abstractmethod
    def fingerprint(self) -> str: ...

    @abstractmethod
    def _vector(self, text: str, *, query: bool) -> FloatArray:
        """(dimensions,) of any length, of a text that holds no lone surrogate, with the prefix that is its due."""

    @property
    def name(self) -> str:
        return self._name

    @property
    def max_tokens(self) -> int:
        return self._max_tokens

    @cached_property
    def max_text_tokens(self) -> int:
        special = self._tokenizer.num_special_tokens_to_add(False)
        return max(1, self._max_tokens - special - self._count(self._prefixes.document))

    @property
    def languages(self) -> frozenset[str] | None:
        return None

    def token_offsets(self, text: str) -> list[tuple[int, int]]:
        """Half-open spans; where one character became several tokens, all but the last are empty, before it."""
        spans: list[tuple[int, int]] = self._tokenizer.encode(encodable(text), add_special_tokens=False).offsets
        for index in range(len(spans) - 1):
            (start, end), (next_start, _) = spans[index], spans[index + 1]
            if end > next_start:
                spans[index] = (start, max(start, next_start))
        return spans

    def encode_documents(self, texts: Sequence[str], *, token_codes: bool = False) -> list[Encoding]:
        """One encoding per text, in order. token_codes: asked for in vain, there are none."""
        if len(texts) < 2 or self._threads == 1:
            return [self._document(text) for text in texts]
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="encode-local")
        return list(self._pool.map(self._document, texts))

    def encode_query(self, text: str) -> Encoding:
        """The question's encoding, without token codes."""
        return Encoding(_unit(self._vector(encodable(text), query=True)))

    def close(self) -> None:
        """Ends the threads. Idempotent; the encoder works on afterwards, with new threads."""
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown()

    def _document(self, text: str) -> Encoding:
        return Encoding(_unit(self._vector(encodable(text), query=False)))

    def _count(self, text: str) -> int:
        return len(self._tokenizer.encode(text, add_special_tokens=False).ids)


def encodable(text: str) -> str:
    """Lone surrogates replaced one for one, so that offsets still count the caller's characters."""
    return text if text.isascii() else _SURROGATES.sub("\ufffd", text)


def _unit(vector: FloatArray) -> FloatArray:
    length = float(np.linalg.norm(vector))
    if not np.isfinite(length) or length == 0:
        # A text that the model has no token for: the same in every dimension, so near to nothing.
        vector, length = np.ones_like(vector), float(np.sqrt(len(vector)))
    unit: FloatArray = (vector / length).astype(np.float32)
    return unit
