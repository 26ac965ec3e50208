"""An encoder at a provider, or on a server of one's own, behind `protocols.Embedder`.

Takes: texts. Returns: `Encoding`s of length 1, without token codes: no provider gives token vectors. Method: the
provider's protocol (`embed_wire`) over `embed_http`, in batches within its limits, side by side. The family's own words
stand before questions and documents (`embed_prompts`).
Cost: the provider's. Tokens are an estimate (`embed_tokens`), as its tokenizer is not here: a text is cut to
`max_text_tokens` of them, with a margin of a third. Where the provider still finds a text too long, it is cut by halves
until it fits, and counted in `shortened`.
What can go wrong: the errors of `embed_http`; a reply of another shape or length (ModelReplyInvalid). A text without a
visible character is not sent, as some providers refuse it: it has a fixed vector of its own. A provider may give a text
vectors that differ in the last bits from call to call.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property

import numpy as np

from cognicraft.errors import ContextOverflow, ModelError, ModelReplyInvalid
from cognicraft.models.embed_http import JsonClient
from cognicraft.models.embed_names import EmbedderName
from cognicraft.models.embed_prompts import Prefixes
from cognicraft.models.embed_tokens import TOKENS_PER_PIECE, cut_to, pieces
from cognicraft.models.embed_wire import Shown, Wire, shown_by_ollama
from cognicraft.records import Encoding, FloatArray, digest

UNKNOWN_MAX_TOKENS = 512
"""Taken of a model of which nothing is known: most encoders read as much or more."""
_SHORTEST_PIECES = 16
_FORMAT = "1"
"""Raised with every change here that changes vectors."""
_UNSENDABLE = dict.fromkeys((0, *range(55296, 57344)), 65533)


class RemoteEmbedder:
    """An `Embedder` at a provider. Thread-safe. concurrency: requests that run side by side."""

    def __init__(
        self, name: EmbedderName, *, wire: Wire, client: JsonClient, prefixes: Prefixes, concurrency: int = 4
    ) -> None:
        self._name = name
        self._wire = wire
        self._client = client
        self._prefixes = prefixes
        self._concurrency = concurrency
        self._dimensions = name.dimensions or (name.known.dimensions if name.known else None)
        self._lock = threading.Lock()
        self._shortened = 0

    @property
    def name(self) -> str:
        return str(self._name)

    @property
    def dimensions(self) -> int:
        """Length of a vector: as asked for, as known, or as a call shows. Raises: ModelError."""
        if self._dimensions is None:
            self._dimensions = self._shown.dimensions
        return self._dimensions

    @property
    def max_tokens(self) -> int:
        """Estimated tokens of one text, prefix included. Raises: ModelError, where the server must be asked."""
        return int(self._real_max_tokens / TOKENS_PER_PIECE)

    @cached_property
    def max_text_tokens(self) -> int:
        """Estimated tokens of a document's text that are used; `token_offsets` counts the same."""
        # Two for the special tokens that a model puts around a text.
        room = self.max_tokens - 2 - max(len(pieces(prefix)) for prefix in self._prefixes)
        return max(room, _SHORTEST_PIECES)

    @property
    def languages(self) -> frozenset[str] | None:
        return None

    @property
    def fingerprint(self) -> str:
        """Of name, dimensions and prefixes; where the model runs does not matter. Raises: ModelError."""
        return digest(_FORMAT, self.name, str(self.dimensions), *self._prefixes, size=8)

    @property
    def shortened(self) -> int:
        """Texts, so far, that the provider found too long although the estimate did not, and that were cut further."""
        return self._shortened

    def token_offsets(self, text: str) -> list[tuple[int, int]]:
        return pieces(text)

    def encode_documents(self, texts: Sequence[str], *, token_codes: bool = False) -> list[Encoding]:
        """One encoding per text, in order. token_codes: asked for in vain, there are none."""
        return [Encoding(vector) for vector in self._encode(texts, query=False)]

    def encode_query(self, text: str) -> Encoding:
        """The question's encoding, without token codes."""
        (vector,) = self._encode([text], query=True)
        return Encoding(vector)

    def close(self) -> None:
        """Nothing is held between calls."""

    def _encode(self, texts: Sequence[str], *, query: bool) -> list[FloatArray]:
        prefix = self._prefixes.query if query else self._prefixes.document
        most = self.max_text_tokens if texts else 0
        ready = [cut_to(text.translate(_UNSENDABLE), most) for text in texts]
        sent = [number for number, text in enumerate(ready) if text.strip()]
        batches = self._batches([ready[number] for number in sent])
        if len(batches) > 1 and self._concurrency > 1:
            pool = ThreadPoolExecutor(min(self._concurrency, len(batches)), thread_name_prefix="encode-remote")
            try:
                rows = list(pool.map(lambda batch: self._ask(batch, prefix, query=query), batches))
            finally:
                # After a failure the batches that have not begun are not paid for.
                pool.shutdown(cancel_futures=True)
        else:
            rows = [self._ask(batch, prefix, query=query) for batch in batches]
        vectors = dict(zip(sent, (vector for batch in rows for vector in batch), strict=True))
        return [vectors.get(number, self._blank) for number in range(len(texts))]

    def _batches(self, texts: Sequence[str]) -> list[list[str]]:
        """In order, each within the provider's limits."""
        batches: list[list[str]] = []
        tokens = 0
        for text in texts:
            # Rough is enough: two characters a token is more than any ordinary text has.
            size = len(text) // 2 + 1
            if not batches or len(batches[-1]) == self._wire.max_texts or tokens + size > self._wire.max_tokens:
                batches.append([])
                tokens = 0
            batches[-1].append(text)
            tokens += size
        return batches

    def _ask(self, texts: list[str], prefix: str, *, query: bool) -> list[FloatArray]:
        path, body = self._wire.request([prefix + text for text in texts], query=query)
        try:
            return self._vectors(self._client.post(path, body), count=len(texts))
        except ContextOverflow:
            if len(texts) > 1:
                half = len(texts) // 2
                return self._ask(texts[:half], prefix, query=query) + self._ask(texts[half:], prefix, query=query)
            return [self._shorter(texts[0], prefix, query=query)]

    def _shorter(self, text: str, prefix: str, *, query: bool) -> FloatArray:
        """The vector of the longest half, quarter, … that the provider takes."""
        most = len(pieces(text)) // 2
        while True:
            path, body = self._wire.request([prefix + cut_to(text, most)], query=query)
            try:
                (vector,) = self._vectors(self._client.post(path, body), count=1)
            except ContextOverflow:
                most //= 2
                if most < _SHORTEST_PIECES:
                    raise
            else:
                with self._lock:
                    self._shortened += 1
                return vector

    def _vectors(self, reply: dict[str, object], *, count: int) -> list[FloatArray]:
        try:
            vectors = self._wire.vectors(reply)
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise self._bad_reply(f"it holds no vectors as documented ({type(error).__name__})") from None
        if len(vectors) != count:
            raise self._bad_reply(f"it holds {len(vectors)} vectors for {count} texts")
        if self._dimensions is None:
            self._dimensions = self._usable_length(len(vectors[0]))
        expected = self._dimensions
        units = []
        for vector in vectors:
            if len(vector) != expected:
                raise self._bad_reply(f"a vector has {len(vector)} dimensions, not {expected}")
            length = float(np.linalg.norm(vector.astype(np.float64)))
            if not math.isfinite(length) or length == 0:
                raise self._bad_reply("a vector is zero or holds what is not a number")
            # Shortened vectors come without length 1 from some providers; ours have it always.
            units.append((vector / length).astype(np.float32))
        return units

    def _bad_reply(self, reason: str) -> ModelReplyInvalid:
        return ModelReplyInvalid(
            f"The reply of {self.name} cannot be used: {reason}.",
            remedy=f"Check that {self._client.address} serves this encoder.",
        )

    @cached_property
    def _blank(self) -> FloatArray:
        """Of a text without a visible character: the same in every dimension, so near to nothing."""
        return np.full(self.dimensions, 1 / math.sqrt(self.dimensions), np.float32)

    @cached_property
    def _real_max_tokens(self) -> int:
        if self._name.known is not None:
            return self._name.known.max_tokens
        if self._name.provider.name == "ollama":
            return self._shown.max_tokens
        return UNKNOWN_MAX_TOKENS

    @cached_property
    def _shown(self) -> Shown:
        """What the server says of a model that is not known here."""
        if self._name.provider.name == "ollama":
            reply = self._client.post("/api/show", {"model": self._name.model})
            try:
                return shown_by_ollama(reply)
            except (KeyError, TypeError, ValueError):
                raise self._bad_reply("/api/show does not say what the model is") from None
        path, body = self._wire.request([self._prefixes.document + "A first text."], query=False)
        (vector,) = self._vectors(self._client.post(path, body), count=1)
        return Shown(len(vector), UNKNOWN_MAX_TOKENS)

    def _usable_length(self, length: int) -> int:
        if length == 0 or length % 8:
            raise ModelError(
                f"The vectors of {self.name} have {length} dimensions, which is no multiple of 8.",
                remedy="Choose another encoder, or ask for a number of dimensions: NAME@256.",
            )
        return length
