"""What a provider's refusal means, in our errors: one sentence, what to do, and never the key.

Takes: a status and the body beside it. Returns: the error, whether asking again may help, and how long to wait.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from cognicraft.errors import (
    ContextOverflow,
    ModelAuthentication,
    ModelError,
    ModelNotFound,
    ModelRateLimited,
    ModelUnavailable,
)
from cognicraft.models.embed_names import EmbedderName

_KEYS = re.compile(r"\b(?:sk|pk|key|AIza)[-_A-Za-z0-9*]{8,}")
_OVERFLOW = re.compile(
    r"context (length|size|window)|maximum (input|context|token)|too (long|many tokens)|too large to process"
    r"|exceeds the (maximum|max|limit)|input (length|is longer)|increase the physical batch size",
    re.IGNORECASE,
)
_QUOTA = re.compile(r"insufficient_quota|billing|exceeded your current quota, please check your plan", re.IGNORECASE)
_BAD_KEY = re.compile(r"API_KEY_INVALID|api key not valid|invalid api (key|token)", re.IGNORECASE)
_DELAY = re.compile(r'"retryDelay"\s*:\s*"([0-9.]+)s"')
_MOST_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class Fault:
    """retry_after_s: what the provider asks to wait, None where it does not say."""

    error: ModelError
    retry: bool = False
    retry_after_s: float | None = None


def fault_of_status(
    name: EmbedderName, status: int, body: bytes, *, wait_s: float | None, address: str, key: str
) -> Fault:
    """What a reply other than 200 means."""
    raw = body.decode("utf-8", "replace")
    said = clean(_words(raw), key)
    because = f": {said}" if said else ""
    label = name.provider.label
    if status in (401, 403) or (status == 400 and _BAD_KEY.search(raw)):
        # The provider's own words may quote the key, so they are left out.
        variables = " or ".join(name.provider.key_variables) or "the key"
        why = "does not let this API key use it" if status == 403 else "does not accept the API key"
        return Fault(ModelAuthentication(f"{label} {why} for {name}.", remedy=f"Check {variables}."))
    if status == 404:
        if name.provider.name == "ollama":
            remedy = f"Fetch it with `ollama pull {name.model}`."
        else:
            remedy = f"Check the name of the model and the address {address}."
        return Fault(ModelNotFound(f"{label} has no encoder {name.model!r}{because}.", remedy=remedy))
    if status == 429:
        delay = _DELAY.search(raw)
        wait_s = float(delay[1]) if wait_s is None and delay else wait_s
        if _QUOTA.search(raw):
            message = f"The quota or credit at {label} for {name} is used up{because}."
            return Fault(ModelRateLimited(message, remedy="Look at your account there."))
        asked = f"; it asks to wait {wait_s:.0f} s" if wait_s else ""
        message = f"{label} says that {name} is asked too often{because}{asked}."
        return Fault(ModelRateLimited(message, remedy="Wait, then go on."), retry=True, retry_after_s=wait_s)
    # llama.cpp answers a text that is too long with 500.
    if status in (400, 413, 422, 500) and _OVERFLOW.search(said):
        message = f"A text is longer than {name} reads{because}."
        return Fault(ContextOverflow(message, remedy="Choose smaller chunks, or an encoder that reads more."))
    if status in (408, 409, 425) or status >= 500:
        message = f"{label} failed to serve {name} ({status}){because}."
        return Fault(ModelUnavailable(message, remedy="Ask again later."), retry=True, retry_after_s=wait_s)
    message = f"{label} rejects the request to {name} ({status}){because}."
    return Fault(ModelError(message, remedy=f"Check the name of the model and the address {address}."))


def unreached(name: EmbedderName, address: str, reason: str) -> ModelUnavailable:
    """Nothing answers at that address."""
    if name.provider.name == "ollama":
        remedy = "Start it with `ollama serve`."
    elif name.provider.name == "compatible":
        remedy = "Start the server, or correct its base URL."
    elif "CERTIFICATE_VERIFY_FAILED" in reason:
        remedy = "Set SSL_CERT_FILE to the certificates that this network needs."
    else:
        remedy = "Look at the network, or ask again later."
    return ModelUnavailable(f"{name} cannot be reached at {address}: {reason}.", remedy=remedy)


def clean(text: str, key: str) -> str:
    """One line without keys, without a full stop, of bounded length."""
    if key:
        text = text.replace(key, "***")
    text = " ".join(_KEYS.sub("***", text).split())
    if len(text) > _MOST_CHARACTERS:
        text = text[:_MOST_CHARACTERS].rstrip() + " …"
    return text.rstrip(".")


def _words(raw: str) -> str:
    """The sentence in an error body: `message` or `error` at any depth, else the text where it is not a web page."""
    try:
        value = json.loads(raw)
    except ValueError:
        return "" if "<html" in raw.lower() else raw
    return next(_messages(value), "")


def _messages(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for name in ("message", "error", "detail"):
            if isinstance(value.get(name), str):
                yield value[name]
        for inner in value.values():
            yield from _messages(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _messages(inner)
