"""Rerank services over HTTP: Cohere, Jina and text-embeddings-inference (TEI), and servers that speak like one of them.

Takes: the address, or the name `cohere` or `jina`; the model; a key. Returns: a score per passage, larger is better.
Method: one POST of question and passages; the reply names each passage by its index. The shape is told from the
    address: `…/v2/rerank` is Cohere's, `…/v1/rerank` Jina's (llama.cpp, vLLM and Infinity speak it too), `…/rerank`
    TEI's. By the standard library: it is one request, and works without any extra.
Cost: one request for 1000 passages (TEI: for 32), and what the service charges.
What can go wrong: no answer, 5xx and 429 are tried again, as `Retry-After` says or with growing pauses, until
    `timeout_s` is over; all else is an error of `errors.py` at once. Redirects are not followed: they would carry the
    key elsewhere. Blank passages are not sent and get None, as do passages that the reply does not name.
"""

from __future__ import annotations

import http.client
import json
import math
import os
import random
import re
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from cognicraft.errors import (
    ContextOverflow,
    ModelAuthentication,
    ModelError,
    ModelNotFound,
    ModelRateLimited,
    ModelReplyInvalid,
    ModelTimeout,
    ModelUnavailable,
    UsageError,
)
from cognicraft.models.retry_after import retry_after_s

Shape = Literal["cohere", "jina", "tei"]
SERVICES: Mapping[str, str] = {"cohere": "https://api.cohere.com/v2/rerank", "jina": "https://api.jina.ai/v1/rerank"}
"""Addresses that have a name."""
KEY_VARIABLE = "RERANK_API_KEY"
"""Key of a server that is neither Cohere's nor Jina's own."""
_OWN_KEYS: Mapping[str, tuple[str, ...]] = {
    "api.cohere.com": ("COHERE_API_KEY", "CO_API_KEY"),
    "api.cohere.ai": ("COHERE_API_KEY", "CO_API_KEY"),
    "api.jina.ai": ("JINA_API_KEY",),
}
_MODELS: Mapping[Shape, str] = {"cohere": "rerank-v3.5", "jina": "jina-reranker-v2-base-multilingual", "tei": ""}
_MOST_PASSAGES: Mapping[Shape, int] = {"cohere": 1000, "jina": 1000, "tei": 32}
_RETRIED = frozenset({408, 409, 424, 425, 429})
_MOST_BYTES = 32 * 2**20
_SURROGATES = re.compile("[\ud800-\udfff]")


class _Again(Exception):
    """A failure that may pass: the error to raise when it does not, and how long the service asked to wait."""

    def __init__(self, error: ModelError, wait_s: float | None = None) -> None:
        super().__init__(str(error))
        self.error = error
        self.wait_s = wait_s


class _TooMuch(Exception):
    """More than the service takes at once."""


class _Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object, **__: object) -> None:
        """Never: urllib would send the key along."""


@dataclass(frozen=True, slots=True)
class _Reply:
    status: int
    headers: Mapping[str, str]
    body: bytes


class RemoteReranker:
    """A `Reranker` at an address. Thread-safe.

    url: of the service, or `cohere` or `jina`. An address without a path gets the usual one of its shape. model: empty
    is the usual one of Cohere and Jina; TEI serves one only. shape: where the address does not tell it. api_key: left
    out, it is COHERE_API_KEY or JINA_API_KEY where the address is theirs, RERANK_API_KEY (optional) elsewhere.
    timeout_s: for all tries together, in seconds. retries: further tries.

    Raises:
        UsageError: an address or a number that cannot be meant.
        ModelAuthentication: Cohere or Jina without a key.
    """

    def __init__(
        self,
        url: str,
        *,
        model: str = "",
        shape: Shape | None = None,
        api_key: str | None = None,
        timeout_s: float = 30.0,
        retries: int = 3,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        if not timeout_s > 0 or retries < 0:
            raise UsageError(
                f"timeout_s is {timeout_s}, retries {retries}.", remedy="Give a time above 0 s and 0 or more."
            )
        self._url, self._shape = address_of(url, shape)
        self._host = urllib.parse.urlsplit(self._url).netloc
        self._model = model or _MODELS[self._shape]
        self._key = api_key or _key_for(self._url, os.environ if environment is None else environment)
        self._timeout_s = timeout_s
        self._retries = retries
        self._opener = urllib.request.build_opener(_Stay)
        self._closed = threading.Event()

    @property
    def name(self) -> str:
        return f"{self._shape}:{self._model or self._host}"

    @property
    def shape(self) -> Shape:
        return self._shape

    def scores(self, question: str, passages: Sequence[str]) -> list[float | None]:
        """A score per passage, in order, larger is better (0 to 1 from the services named above).

        None for a blank passage, for one that the reply does not name, and for all where the question is blank.

        Raises: ModelUnavailable, ModelRateLimited, ModelTimeout, ModelAuthentication, ModelNotFound, ContextOverflow,
        ModelReplyInvalid; ModelError for another refusal.
        """
        found: list[float | None] = [None] * len(passages)
        asked = [number for number, text in enumerate(passages) if text.strip()]
        if not asked or not question.strip():
            return found
        deadline = time.monotonic() + self._timeout_s
        most = _MOST_PASSAGES[self._shape]
        for start in range(0, len(asked), most):
            part = asked[start : start + most]
            scores = self._scored(_encodable(question), [_encodable(passages[number]) for number in part], deadline)
            for number, score in zip(part, scores, strict=True):
                found[number] = score
        return found

    def close(self) -> None:
        """Ends waiting between tries. Idempotent."""
        self._closed.set()

    def _scored(self, question: str, texts: list[str], deadline: float) -> list[float | None]:
        try:
            return self._read(self._exchanged(self._request(question, texts), deadline), len(texts))
        except _TooMuch as error:
            if len(texts) == 1:
                raise ContextOverflow(
                    f"The reranker at {self._host} cannot read a passage of {len(texts[0])} characters: {error}.",
                    remedy="Use smaller chunks, or a reranker that reads more at once.",
                ) from None
            half = len(texts) // 2
            return self._scored(question, texts[:half], deadline) + self._scored(question, texts[half:], deadline)

    # ── the request ───────────────────────────────────────────────────────────────────────────────────────────────

    def _request(self, question: str, texts: list[str]) -> bytes:
        body: dict[str, Any]
        if self._shape == "tei":
            body = {"query": question, "texts": texts, "truncate": True}
        else:
            body = {"model": self._model, "query": question, "documents": texts}
            if self._shape == "jina":
                body["return_documents"] = False
        return json.dumps(body, ensure_ascii=False).encode("utf-8")

    def _exchanged(self, body: bytes, deadline: float) -> bytes:
        """The body of a good reply, tried until it comes, the tries are used up or the time is over."""
        attempt = 0
        while True:
            try:
                reply = self._sent(body, deadline)
                if reply.status == 200:
                    return reply.body
                raise self._refused(reply)
            except _Again as failure:
                attempt += 1
                pause_s = (
                    failure.wait_s if failure.wait_s is not None else 0.5 * 2 ** (attempt - 1) * random.uniform(1, 1.5)
                )
                if attempt > self._retries or time.monotonic() + pause_s >= deadline or self._closed.wait(pause_s):
                    raise failure.error from None

    def _sent(self, body: bytes, deadline: float) -> _Reply:
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            raise self._late()
        headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "cognicraft"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        request = urllib.request.Request(self._url, data=body, headers=headers, method="POST")
        try:
            try:
                response = self._opener.open(request, timeout=left_s)
            except urllib.error.HTTPError as error:
                response = error
            with response:
                return _Reply(response.status, response.headers, self._body(response, deadline))
        except TimeoutError:
            raise self._late() from None
        except (OSError, http.client.HTTPException) as error:
            # urllib wraps what happens before the reply into URLError; what happens in it comes as it is.
            reason = getattr(error, "reason", error)
            if isinstance(reason, TimeoutError):
                raise self._late() from None
            raise _Again(self._unreachable(str(reason) or type(reason).__name__)) from None

    def _body(self, response: Any, deadline: float) -> bytes:
        pieces: list[bytes] = []
        size = 0
        while piece := response.read1(65_536):
            pieces.append(piece)
            size += len(piece)
            if size > _MOST_BYTES:
                raise ModelReplyInvalid(f"The reranker at {self._host} sent more than {_MOST_BYTES // 2**20} MB.")
            if time.monotonic() > deadline:
                raise TimeoutError
        length = response.headers.get("Content-Length", "")
        if length.isdigit() and size < int(length):
            raise http.client.IncompleteRead(b"".join(pieces), int(length) - size)
        return b"".join(pieces)

    # ── the reply ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _read(self, body: bytes, count: int) -> list[float | None]:
        """Scores by index; both forms are read whatever was asked: servers mix them."""
        try:
            reply = json.loads(body)
        except ValueError:
            raise self._invalid("it is not JSON") from None
        entries = reply.get("results") if isinstance(reply, dict) else reply
        if not isinstance(entries, list):
            raise self._invalid("it holds no list of results")
        found: list[float | None] = [None] * count
        for entry in entries:
            index, score = _placed(entry)
            if 0 <= index < count and found[index] is None:
                found[index] = score
        if all(score is None for score in found):
            raise self._invalid(f"it scores none of the {count} passages")
        return found

    def _refused(self, reply: _Reply) -> Exception:
        """What a status other than 200 means."""
        said = self._said(reply.body)
        status = f"{reply.status}{f': {said}' if said else ''}"
        at = f"The reranker at {self._host}"
        if reply.status in (401, 403, 498):
            variable = _OWN_KEYS.get(self._host, (KEY_VARIABLE,))[0]
            what = "does not accept the key" if self._key else "asks for a key"
            return ModelAuthentication(f"{at} {what} ({status}).", remedy=f"Set {variable} to a valid key.")
        if reply.status == 404:
            return ModelNotFound(
                f"{at} knows no such model or address ({status}).",
                remedy=f"Check search.rerank_model ({self._model or 'not set'}) and search.rerank_url ({self._url}).",
            )
        if reply.status == 402:
            return ModelRateLimited(
                f"{at} says that the quota is used up ({status}).", remedy="Top it up, or take another."
            )
        if reply.status == 413 or (reply.status == 422 and self._shape == "tei"):
            return _TooMuch(status)
        if 300 <= reply.status < 400:
            target = reply.headers.get("Location", "")
            return ModelUnavailable(
                f"{at} has moved ({reply.status}).", remedy=f"Set search.rerank_url to its new address: {target}."
            )
        if reply.status == 429:
            error: ModelError = ModelRateLimited(
                f"{at} got too many requests ({status}).", remedy="Wait, then ask again."
            )
            return _Again(error, retry_after_s(reply.headers.get("Retry-After")))
        if reply.status >= 500 or reply.status in _RETRIED:
            return _Again(self._unreachable(status), retry_after_s(reply.headers.get("Retry-After")))
        return ModelError(
            f"{at} refused the request ({status}).",
            remedy="Check that the address speaks the Cohere, Jina or TEI shape (search.rerank_url).",
        )

    def _said(self, body: bytes) -> str:
        """The service's own words, in one short line, without our key."""
        text = body.decode("utf-8", "replace")
        try:
            reply = json.loads(text)
        except ValueError:
            # A page of HTML from a proxy says nothing.
            return "" if text.lstrip().startswith("<") else self._line(text)
        if isinstance(reply, dict):
            for name in ("message", "detail", "error"):
                said = reply.get(name)
                if isinstance(said, dict):
                    said = said.get("message")
                if isinstance(said, str):
                    return self._line(said)
        return self._line(text)

    def _line(self, text: str) -> str:
        line = " ".join(text.split())
        if self._key:
            line = line.replace(self._key, "…")
        return f"{line[:200]}…" if len(line) > 200 else line

    def _unreachable(self, reason: str) -> ModelUnavailable:
        return ModelUnavailable(
            f"The reranker at {self._host} cannot be reached or failed ({self._line(reason)}).",
            remedy="Check that it runs and that search.rerank_url is its address.",
        )

    def _late(self) -> ModelTimeout:
        return ModelTimeout(
            f"The reranker at {self._host} gave no reply within {self._timeout_s:g} s.",
            remedy="Try again, or let it read fewer candidates (search.rerank_candidates).",
        )

    def _invalid(self, reason: str) -> ModelReplyInvalid:
        return ModelReplyInvalid(
            f"The reply of the reranker at {self._host} cannot be used: {reason}.",
            remedy=f"Check that {self._url} speaks the {self._shape} shape.",
        )


def address_of(url: str, shape: Shape | None = None) -> tuple[str, Shape]:
    """The full address and its shape. Raises: UsageError for what is no address of a reranker."""
    if url in SERVICES:
        url = SERVICES[url]
    parts = urllib.parse.urlsplit(url.strip())
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(
            f"{url!r} is no address of a reranker.",
            remedy="Give `cohere`, `jina` or an address such as http://localhost:8080/rerank.",
        )
    path = parts.path.rstrip("/")
    if shape is None:
        if parts.hostname.endswith((".cohere.com", ".cohere.ai")) or path.endswith("/v2/rerank"):
            shape = "cohere"
        elif parts.hostname.endswith(".jina.ai") or path.endswith(("/v1/rerank", "/v1")):
            shape = "jina"
        else:
            shape = "tei"
    if not path.endswith("rerank"):
        usual = {"cohere": "/v2/rerank", "jina": "/v1/rerank", "tei": "/rerank"}[shape]
        # Addresses are often given up to their version.
        path = path.removesuffix(usual.removesuffix("/rerank")) + usual
    return urllib.parse.urlunsplit(parts._replace(path=path, fragment="")), shape


def _key_for(url: str, environment: Mapping[str, str]) -> str:
    """A provider's own variable for its own address only: another server must not see that key."""
    host = urllib.parse.urlsplit(url).hostname or ""
    if host in _OWN_KEYS:
        variables = _OWN_KEYS[host]
        for variable in variables:
            if environment.get(variable):
                return environment[variable]
        raise ModelAuthentication(f"The reranker at {host} needs a key.", remedy=f"Set {variables[0]}.")
    return environment.get(KEY_VARIABLE, "")


def _placed(entry: object) -> tuple[int, float | None]:
    """Index and score of one entry; index -1 where it is none."""
    if isinstance(entry, dict):
        index, score = entry.get("index"), entry.get("relevance_score", entry.get("score"))
        if isinstance(index, int) and isinstance(score, int | float) and math.isfinite(score):
            return index, float(score)
    return -1, None


def _encodable(text: str) -> str:
    return text if text.isascii() else _SURROGATES.sub("\ufffd", text)
