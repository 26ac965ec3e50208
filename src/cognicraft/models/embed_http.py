"""JSON over HTTP to a provider of encoders: one request, asked again where that may help, errors in our words.

Takes: a path and a body. Returns: the reply as a dict. Method: the standard library, so that an encoder at a provider
needs no extra. It opens a connection for each request; beside the reply itself that is one round trip or two, little
for a batch of texts, noticeable for a single question.
Asked again, after a pause that doubles or that the provider names: 408, 429, 5xx, a connection that breaks. Not: a time
limit that ran out, a quota that is used up, an address where nothing listens.
What can go wrong: ModelAuthentication, ModelNotFound, ModelRateLimited, ModelTimeout, ModelUnavailable,
ContextOverflow, ModelReplyInvalid, ModelError. No message holds the key.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import random
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from time import sleep
from typing import Any
from urllib.parse import urlsplit

from cognicraft.errors import ModelError, ModelReplyInvalid, ModelTimeout, ModelUnavailable
from cognicraft.models.embed_faults import Fault, clean, fault_of_status, unreached
from cognicraft.models.embed_names import EmbedderName
from cognicraft.models.retry_after import retry_after_s

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 8.0
_LONGEST_WAIT_S = 60.0
"""A provider that asks to wait longer than this is given up at once."""
_PIECE_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class JsonClient:
    """Requests to one provider. Thread-safe. timeout_s: for one request, from the connection to the last byte."""

    name: EmbedderName
    address: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    key: str = field(default="", repr=False)
    timeout_s: float = 60.0
    retries: int = 3

    def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """The reply's JSON object. Raises: the errors of this module."""
        pause_s = _FIRST_PAUSE_S
        for left in range(self.retries, -1, -1):
            outcome = self._once(path, body)
            if isinstance(outcome, dict):
                return outcome
            wait_s = outcome.retry_after_s
            if not outcome.retry or left == 0 or (wait_s is not None and wait_s > _LONGEST_WAIT_S):
                raise outcome.error
            # Not all at the same moment, where several requests failed together.
            sleep(wait_s if wait_s is not None else pause_s * random.uniform(0.8, 1.2))
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
        raise AssertionError("the last try returns or raises")

    def _once(self, path: str, body: Mapping[str, Any]) -> dict[str, Any] | Fault:
        data = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        headers = {"content-type": "application/json", "accept": "application/json", "user-agent": "cognicraft"}
        request = urllib.request.Request(self.address + path, data=data, headers={**headers, **self.headers})
        deadline = time.monotonic() + self.timeout_s
        try:
            with _opener(self.address).open(request, timeout=self.timeout_s) as response:
                text = _read(response, deadline)
        except urllib.error.HTTPError as error:
            with error:
                said = b""
                with contextlib.suppress(OSError, http.client.HTTPException):
                    said = _read(error, deadline)
            wait_s = retry_after_s(error.headers.get("retry-after"))
            return fault_of_status(self.name, error.code, said, wait_s=wait_s, address=self.address, key=self.key)
        except TimeoutError:
            return Fault(self._timed_out())
        except urllib.error.URLError as error:
            return self._not_reached(error.reason)
        except (OSError, http.client.HTTPException) as error:
            reason = clean(str(error) or type(error).__name__, self.key)
            message = f"The connection to {self.name} broke off: {reason}."
            return Fault(ModelUnavailable(message, remedy="Ask again later."), retry=True)
        try:
            value = json.loads(text)
        except ValueError:
            value = None
        if isinstance(value, dict):
            return value
        message = f"The reply of {self.name} is not a JSON object."
        return Fault(
            ModelReplyInvalid(
                message, remedy=f"Check that {self.address} speaks the protocol of {self.name.provider.label}."
            ),
            retry=True,
        )

    def _timed_out(self) -> ModelError:
        return ModelTimeout(
            f"{self.name} did not reply within {self.timeout_s:g} s.", remedy="Allow more time, or ask again later."
        )

    def _not_reached(self, reason: object) -> Fault:
        if isinstance(reason, TimeoutError):
            return Fault(self._timed_out())
        final = isinstance(reason, ConnectionRefusedError | ssl.SSLError)
        words = "nothing listens there" if isinstance(reason, ConnectionRefusedError) else str(reason)
        return Fault(unreached(self.name, self.address, clean(words, self.key)), retry=not final)


def _opener(address: str) -> urllib.request.OpenerDirector:
    # A proxy of the environment cannot know the servers of this machine.
    if (urlsplit(address).hostname or "") in ("127.0.0.1", "localhost", "::1"):
        return urllib.request.build_opener(urllib.request.ProxyHandler({}))
    return urllib.request.build_opener()


def _read(response: Any, deadline: float) -> bytes:
    """The whole body. A time limit of the socket alone would let a server send a byte now and then for ever."""
    parts = []
    while part := response.read1(_PIECE_BYTES):
        parts.append(part)
        if time.monotonic() > deadline:
            raise TimeoutError
    if getattr(response, "length", None):
        raise http.client.IncompleteRead(b"".join(parts), response.length)
    return b"".join(parts)
