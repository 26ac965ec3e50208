"""Names of language models, `provider:model`, and what is known of each provider: variables, address, protocol.

Takes: a name as a person writes it. Returns: the provider and the model in it. What can go wrong: a provider that
does not exist, which is answered with the nearest that does.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from cognicraft.errors import ModelAuthentication, UsageError
from cognicraft.models.ollama import ollama_address

Protocol = Literal["openai", "openrouter", "ollama", "azure", "google", "anthropic", "local"]


@dataclass(frozen=True, slots=True)
class Provider:
    """How a provider is reached. base_url "" is the protocol library's own default."""

    name: str
    label: str
    protocol: Protocol
    key_variables: tuple[str, ...] = ()
    base_url: str = ""
    base_url_variables: tuple[str, ...] = ()
    needs_key: bool = True


PROVIDERS: Mapping[str, Provider] = {
    provider.name: provider
    for provider in (
        Provider("openai", "OpenAI", "openai", ("OPENAI_API_KEY",), "https://api.openai.com/v1", ("OPENAI_BASE_URL",)),
        Provider(
            "google",
            "Google Gemini",
            "google",
            ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
            "https://generativelanguage.googleapis.com",
            ("GOOGLE_GEMINI_BASE_URL",),
        ),
        Provider(
            "anthropic",
            "Anthropic",
            "anthropic",
            ("ANTHROPIC_API_KEY",),
            "https://api.anthropic.com",
            ("ANTHROPIC_BASE_URL",),
        ),
        Provider("ollama", "Ollama", "ollama", ("OLLAMA_API_KEY",), "", (), needs_key=False),
        Provider(
            "openrouter",
            "OpenRouter",
            "openrouter",
            ("OPENROUTER_API_KEY",),
            "https://openrouter.ai/api/v1",
            ("OPENROUTER_BASE_URL",),
        ),
        Provider("groq", "Groq", "openai", ("GROQ_API_KEY",), "https://api.groq.com/openai/v1", ("GROQ_BASE_URL",)),
        Provider(
            "mistral", "Mistral", "openai", ("MISTRAL_API_KEY",), "https://api.mistral.ai/v1", ("MISTRAL_BASE_URL",)
        ),
        Provider("azure", "Azure OpenAI", "azure", ("AZURE_OPENAI_API_KEY",), "", ("AZURE_OPENAI_ENDPOINT",)),
        Provider("compatible", "the OpenAI-compatible server", "openai", (), "", (), needs_key=False),
        Provider("local", "the local model file", "local", (), "", (), needs_key=False),
    )
}
ALIASES: Mapping[str, str] = {"gemini": "google", "claude": "anthropic"}


@dataclass(frozen=True, slots=True)
class ModelName:
    """A name taken apart; `str` of it is the name as it is shown and counted."""

    provider: Provider
    model: str

    def __str__(self) -> str:
        return f"{self.provider.name}:{self.model}"


def parse_name(name: str) -> ModelName:
    """`provider:model`; the model may hold further colons (`ollama:llama3.2:3b`). `gemini:` is `google:`.

    Raises: UsageError with the nearest provider.
    """
    before, colon, model = name.strip().partition(":")
    key = before.strip().lower()
    provider = PROVIDERS.get(ALIASES.get(key, key))
    if provider is not None and colon and model.strip():
        return ModelName(provider, model.strip())
    if provider is not None:
        raise UsageError(
            f"The language model {name!r} names a provider but no model.",
            remedy=f"Write {provider.name}:MODEL"
            + (f", or {provider.name}:small." if provider.needs_key and provider.name != "azure" else "."),
        )
    if name.lower().endswith(".gguf"):
        raise UsageError(f"The language model {name!r} names no provider.", remedy=f"Did you mean local:{name}?")
    known = [*PROVIDERS, *ALIASES]
    near = difflib.get_close_matches(key, known, n=1, cutoff=0.6)
    if near and colon:
        hint = f"Did you mean {near[0]}:{model}?"
    else:
        hint = f"Write provider:model; providers are {', '.join(PROVIDERS)}."
    what = f"There is no provider {before!r} of language models" if colon else f"{name!r} names no provider"
    raise UsageError(f"{what} (language model {name!r}).", remedy=hint)


def key_for(name: ModelName, api_key: str | None, environment: Mapping[str, str]) -> str:
    """The key given, or that of the first variable set; "" where none is needed.

    Raises: ModelAuthentication where one is needed.
    """
    if api_key:
        return api_key
    found = next((environment[variable] for variable in name.provider.key_variables if environment.get(variable)), "")
    if not found and name.provider.needs_key:
        raise ModelAuthentication(
            f"{name} needs an API key of {name.provider.label}, and none is set.",
            remedy=f"Set the variable {' or '.join(name.provider.key_variables)}.",
        )
    return found


def address_for(name: ModelName, base_url: str, environment: Mapping[str, str]) -> str:
    """Where the provider is asked: the address given, that of its variable, or its usual one.

    Raises: UsageError where there is none (`compatible:`, `azure:`), or it is no web address.
    """
    provider = name.provider
    if provider.protocol == "ollama":
        return ollama_address(base_url or None, environment=environment) + "/v1"
    variables = provider.base_url_variables
    found = base_url or next((environment[variable] for variable in variables if environment.get(variable)), "")
    found = found or provider.base_url
    if not found and provider.protocol != "local":
        how = f"Set {variables[0]}" if variables else "Set model.base_url"
        raise UsageError(
            f"{name} needs the address of its server.", remedy=f"{how}, for instance http://127.0.0.1:8000/v1."
        )
    if found and not found.startswith(("http://", "https://")):
        raise UsageError(
            f"The address {found!r} of {name} is not usable: it does not begin with http:// or https://.",
            remedy="Write it whole, for instance http://127.0.0.1:8000/v1.",
        )
    return found.rstrip("/")
