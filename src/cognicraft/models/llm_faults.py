"""What went wrong at a provider, in our errors: which of them, in one sentence, with what to do, and never with a key.

Takes: an exception of pydantic-ai, a provider's library or the transport. Returns: an error of `errors.py`, whether
asking again may help, and how long the provider asks to wait. Loaded when something fails or a model is opened.
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
    ModelRefused,
    ModelReplyInvalid,
    ModelTimeout,
    ModelUnavailable,
)
from cognicraft.models.llm_names import ModelName
from cognicraft.records import Usage

_KEYS = re.compile(r"\b(?:sk|pk|gsk|or|key|AIza)[-_A-Za-z0-9]{12,}")
_MOST_CHARACTERS = 300


class Rejected(ModelError):
    """The provider does not take the request as it is; in other words, or without a schema, it may."""


@dataclass(frozen=True, slots=True)
class Fault:
    """An error as the caller sees it. retry_after_s: what the provider asks to wait, None where it does not say."""

    error: ModelError
    retry: bool = False
    retry_after_s: float | None = None


@dataclass(frozen=True, slots=True)
class Subject:
    """Which model an error speaks of. The key is here so that it can be taken out of what is said."""

    name: ModelName
    base_url: str
    key: str = ""

    @property
    def provider(self) -> str:
        """The provider as it begins a sentence."""
        label = self.name.provider.label
        return label[0].upper() + label[1:]

    @property
    def remedy_unreached(self) -> str:
        if self.name.provider.name == "ollama":
            return "Start it with `ollama serve`."
        if self.name.provider.name == "compatible":
            return "Start the server, or correct model.base_url."
        if self.name.provider.protocol == "local":
            return "Ask again; if it stays so, try another model file."
        return "Look at the network, or ask again later."


def spent_by(error: BaseException) -> Usage:
    """What the calls behind an error took, as far as it is known."""
    usage = getattr(error, "usage", None)
    return usage if isinstance(usage, Usage) else Usage()


def charge(error: ModelError, usage: Usage) -> ModelError:
    """Note on an error what was paid before it."""
    error.__dict__["usage"] = spent_by(error) + usage
    return error


def timed_out(subject: Subject, timeout_s: float, *, piece: bool = False) -> ModelTimeout:
    what = "the next piece of the reply did not come" if piece else "there was no whole reply"
    return ModelTimeout(
        f"{subject.name} took too long: {what} within {timeout_s:g} s.",
        remedy="Raise model.timeout_s, or choose a quicker model.",
    )


def refused(subject: Subject, reason: str) -> ModelRefused:
    reason = _clean(reason, subject.key)
    return ModelRefused(
        f"{subject.name} refused to reply" + (f": {reason}" if reason else "") + ".",
        remedy="Put the question in other words, or choose another model.",
    )


def broken_off(subject: Subject, reason: str) -> ModelUnavailable:
    return ModelUnavailable(
        f"The reply of {subject.name} broke off: {_clean(reason, subject.key)}.", remedy="Ask again."
    )


def broken_by(error: BaseException, subject: Subject) -> ModelError:
    """What an exception means in the midst of a streamed reply."""
    fault = explain(error, subject)
    if not fault.retry:
        return fault.error
    return broken_off(subject, _clean(_provider_words(error), subject.key) if _has_body(error) else _cause(error))


def too_long(subject: Subject, context_tokens: int | None) -> ContextOverflow:
    """Of a server that cuts off what is too long: context_tokens is what it reads, None where it did not say."""
    reads = f" ({context_tokens:,} tokens)" if context_tokens is not None else ", and was cut off"
    return ContextOverflow(
        f"The prompt is longer than {subject.name} reads as it is served{reads}.",
        remedy="Start Ollama with a larger OLLAMA_CONTEXT_LENGTH, or lower answer.max_tokens.",
    )


def closed(subject: Subject) -> ModelUnavailable:
    return ModelUnavailable(f"{subject.name} is closed.", remedy="Open the model again.")


def explain(error: BaseException, subject: Subject) -> Fault:
    """What an exception means. Anything unknown is a `ModelError` with its own words."""
    from pydantic_ai import exceptions as known

    if isinstance(error, ModelError):
        return Fault(error)
    provider, name = subject.provider, subject.name
    status: int | None = getattr(error, "status_code", None)
    wait_s: float | None = getattr(error, "retry_after", None)
    said = _clean(_provider_words(error), subject.key)
    because = (f" ({status})" if status else "") + (f": {said}" if said else "")
    if isinstance(error, known.ModelAuthenticationError):
        # The provider's own words may quote the key, so they are left out.
        takes = "does not let this API key use" if status == 403 else "does not accept the API key given for"
        variables = " or ".join(name.provider.key_variables) or "model.api_key"
        return Fault(ModelAuthentication(f"{provider} {takes} {name}.", remedy=f"Check {variables}."))
    if isinstance(error, known.ModelNotFoundError) or status == 404:
        return Fault(ModelNotFound(f"{provider} has no model {name.model!r}{because}.", remedy=_not_found(subject)))
    if isinstance(error, known.ModelContextWindowExceededError) or _is_overflow(said):
        remedy = "Lower answer.max_tokens, or choose a model that reads more."
        return Fault(ContextOverflow(f"The prompt is longer than {name} reads{because}.", remedy=remedy))
    if isinstance(error, known.ModelQuotaExceededError):
        message = f"The quota or credit at {name.provider.label} for {name} is used up{because}."
        return Fault(ModelRateLimited(message, remedy="Look at your account there."))
    if isinstance(error, known.ModelRateLimitError) or status == 429:
        message = f"{provider} says that {name} is asked too often{because}."
        return Fault(ModelRateLimited(message, remedy="Wait, or lower model.concurrency."), True, wait_s)
    if isinstance(error, known.ModelTimeoutError | known.ModelRequestTimeout):
        remedy = "Raise model.timeout_s, or choose a quicker model."
        return Fault(ModelTimeout(f"{name} did not reply in time.", remedy=remedy), True)
    if isinstance(error, known.ContentFilterError):
        return Fault(refused(subject, said))
    if isinstance(error, known.ModelUnavailableError | known.ModelServerError) or (status or 0) >= 500:
        message = f"{provider} failed to serve {name}{because}."
        return Fault(ModelUnavailable(message, remedy="Ask again later, or choose another model."), True, wait_s)
    if isinstance(error, known.ModelRequestRejectedError | known.ModelHTTPError):
        message = f"{provider} rejects the request to {name}{because}."
        # 408 and 409 are about the moment, not about the request.
        return Fault(Rejected(message, remedy="Check the model's settings."), status in (408, 409), wait_s)
    if _is_unreadable(error):
        message = f"The reply of {name} cannot be read: it is not as the provider's protocol has it."
        remedy = "Ask again; if it stays so, check that the address is right."
        return Fault(ModelReplyInvalid(message, remedy=remedy))
    if isinstance(error, known.ModelConnectionError | OSError) or _of_transport(error):
        if getattr(error, "phase", None) in ("connect", "pool"):
            message = f"{name} cannot be reached at {subject.base_url}: {_cause(error)}."
        else:
            message = f"The connection to {name} broke off: {_cause(error)}."
        return Fault(ModelUnavailable(message, remedy=subject.remedy_unreached), True, wait_s)
    message = f"{name} failed: {type(error).__name__}{because}."
    return Fault(ModelError(message, remedy="Ask again, or choose another model."))


def _is_unreadable(error: BaseException) -> bool:
    from pydantic_ai.exceptions import UnexpectedModelBehavior

    if isinstance(error, UnexpectedModelBehavior | ValueError):
        return True
    return isinstance(error.__cause__, ValueError) or "decode response as JSON" in str(error)


def _of_transport(error: BaseException) -> bool:
    return type(error).__module__.split(".")[0] in ("httpx2", "httpcore2", "httpx", "anyio")


def _has_body(error: BaseException) -> bool:
    return getattr(error, "body", None) is not None


def _not_found(subject: Subject) -> str:
    if subject.name.provider.name == "ollama":
        return f"Fetch it with `ollama pull {subject.name.model}`; `ollama list` shows what is there."
    if subject.name.provider.name in ("compatible", "azure"):
        return "Check the name and the address; the server's own list is at /v1/models."
    return f"Check the name, or use {subject.name.provider.name}:small."


def _is_overflow(said: str) -> bool:
    text = said.lower()
    return any(
        words in text
        for words in (
            "context length",
            "context size",
            "context window",
            "prompt is too long",
            "exceeds the maximum number of tokens",
            "exceed_context_size",
        )
    )


def _provider_words(error: BaseException) -> str:
    """The sentence in the body that the provider sent, else the exception's own words."""
    body = getattr(error, "body", None)
    for message in _messages(body):
        return message
    if isinstance(body, str) and body.strip() and "<html" not in body.lower():
        return body
    if body is not None:
        return ""
    return str(getattr(error, "message", "") or error)


def _messages(value: Any) -> Iterator[str]:
    if isinstance(value, str) and value.lstrip().startswith(("{", "[")):
        try:
            value = json.loads(value)
        except ValueError:
            return
    if isinstance(value, dict):
        if isinstance(value.get("message"), str):
            yield value["message"]
        for inner in value.values():
            if isinstance(inner, dict | list):
                yield from _messages(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _messages(inner)


def _cause(error: BaseException) -> str:
    """The innermost reason, in words."""
    seen = error
    while (inner := seen.__cause__ or seen.__context__) is not None:
        seen = inner
    words = re.sub(r"^\[Errno \d+\] ", "", str(seen)) or type(seen).__name__
    if isinstance(seen, ConnectionRefusedError) or "refused" in words.lower() or "attempts failed" in words.lower():
        return "nothing listens there"
    return _clean(words, "") or type(seen).__name__


def _clean(text: str, key: str) -> str:
    """One line without keys, without a full stop, of bounded length."""
    if key:
        text = text.replace(key, "***")
    text = " ".join(_KEYS.sub("***", text).split())
    if len(text) > _MOST_CHARACTERS:
        text = text[:_MOST_CHARACTERS].rstrip() + " …"
    return text.rstrip(".")
