"""Names of encoders that are not built in, and what is known of each provider and model.

    openai:text-embedding-3-small[@dimensions]      ollama:nomic-embed-text       google:gemini-embedding-001[@768]
    cohere:embed-v4.0[@512]                         compatible:MODEL              hub:NAME        onnx:FOLDER

Takes: a name as a person writes it. Returns: the provider, the model and the dimensions in it. What can go wrong: a
provider that does not exist, or a part that is missing (UsageError with the nearest that does).
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cognicraft.errors import ModelAuthentication, UsageError
from cognicraft.models.ollama import ollama_address

ALIASES: Mapping[str, str] = {"gemini": "google"}
LOCAL = ("hub", "onnx")
"""Those that run in this process; a trailing `@` is part of their names."""


@dataclass(frozen=True, slots=True)
class Provider:
    """How a provider is reached. base_url "" is one that has no usual address."""

    name: str
    label: str
    key_variables: tuple[str, ...] = ()
    base_url: str = ""
    base_url_variables: tuple[str, ...] = ()
    needs_key: bool = True


PROVIDERS: Mapping[str, Provider] = {
    provider.name: provider
    for provider in (
        Provider("openai", "OpenAI", ("OPENAI_API_KEY",), "https://api.openai.com/v1", ("OPENAI_BASE_URL",)),
        Provider("ollama", "Ollama", ("OLLAMA_API_KEY",), needs_key=False),
        Provider(
            "google",
            "Google Gemini",
            ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
            "https://generativelanguage.googleapis.com",
            ("GOOGLE_GEMINI_BASE_URL",),
        ),
        Provider("cohere", "Cohere", ("COHERE_API_KEY", "CO_API_KEY"), "https://api.cohere.com", ("CO_API_URL",)),
        Provider("compatible", "the OpenAI-compatible server", needs_key=False),
        Provider("hub", "the hub", needs_key=False),
        Provider("onnx", "the folder", needs_key=False),
    )
}


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a model without asking. max_tokens: real tokens of one text.

    most_dimensions: the largest that can be asked for, 0 where they cannot be chosen.
    """

    dimensions: int
    max_tokens: int
    most_dimensions: int = 0


KNOWN: Mapping[str, Known] = {
    "openai:text-embedding-3-small": Known(1536, 8192, 1536),
    "openai:text-embedding-3-large": Known(3072, 8192, 3072),
    "openai:text-embedding-ada-002": Known(1536, 8192),
    "google:gemini-embedding-001": Known(3072, 2048, 3072),
    "google:gemini-embedding-2": Known(3072, 8192, 3072),
    "google:gemini-embedding-2-preview": Known(3072, 8192, 3072),
    "cohere:embed-v4.0": Known(1536, 128_000, 1536),
    "cohere:embed-english-v3.0": Known(1024, 512),
    "cohere:embed-english-light-v3.0": Known(384, 512),
    "cohere:embed-multilingual-v3.0": Known(1024, 512),
    "cohere:embed-multilingual-light-v3.0": Known(384, 512),
    # As they come from Ollama's library without a tag; any other is asked for by /api/show.
    "ollama:nomic-embed-text": Known(768, 2048, 768),
    "ollama:mxbai-embed-large": Known(1024, 512),
    "ollama:all-minilm": Known(384, 256),
    "ollama:bge-m3": Known(1024, 8192),
    "ollama:embeddinggemma": Known(768, 2048, 768),
}


@dataclass(frozen=True, slots=True)
class EmbedderName:
    """A name taken apart; `str` of it is the name under which a workspace knows the encoder. dimensions 0: not said."""

    provider: Provider
    model: str
    dimensions: int = 0

    def __str__(self) -> str:
        return f"{self.provider.name}:{self.model}" + (f"@{self.dimensions}" if self.dimensions else "")

    @property
    def known(self) -> Known | None:
        return KNOWN.get(f"{self.provider.name}:{self.model.removesuffix(':latest')}")


def parse_embedder_name(name: str) -> EmbedderName:
    """The parts of `provider:model[@dimensions]`; the folder of `onnx:` becomes an absolute path.

    Raises: UsageError.
    """
    before, colon, model = name.strip().partition(":")
    key = before.strip().lower()
    provider = PROVIDERS.get(ALIASES.get(key, key))
    if provider is None:
        near = difflib.get_close_matches(key, [*PROVIDERS, *ALIASES], n=1, cutoff=0.6)
        hint = f"Did you mean {near[0]}:{model}?" if near and colon else f"There are: {', '.join(PROVIDERS)}."
        raise UsageError(f"There is no provider {before!r} of encoders (encoder {name!r}).", remedy=hint)
    model = model.strip()
    if not model:
        raise UsageError(f"The encoder {name!r} names no model.", remedy=f"Write {_example(provider)}.")
    if provider.name == "onnx":
        return EmbedderName(provider, str(Path(model).expanduser().absolute()))
    if provider.name in LOCAL or "@" not in model:
        return EmbedderName(provider, model)
    model, _, text = model.rpartition("@")
    chosen = EmbedderName(provider, model)
    dimensions = int(text) if text.isascii() and text.isdigit() else 0
    most = chosen.known.most_dimensions if chosen.known else 16_384
    if most == 0:
        raise UsageError(f"{chosen} has no choice of dimensions.", remedy=f"Write {chosen}.")
    if not model or not 8 <= dimensions <= most or dimensions % 8:
        raise UsageError(
            f"The dimensions {text!r} of the encoder {name!r} are not usable.",
            remedy=f"Give a multiple of 8 from 8 to {most} after the @.",
        )
    return EmbedderName(provider, model, dimensions)


def canonical_embedder_name(name: str) -> str:
    """The one way to write a name, as a workspace should remember it: `gemini:` is `google:`, folders are absolute.

    A name without a colon is returned as it is. Raises: UsageError.
    """
    return str(parse_embedder_name(name)) if ":" in name else name


def key_for(name: EmbedderName, api_key: str | None, environment: Mapping[str, str]) -> str:
    """The key given, or that of the first variable set; "" where none is needed.

    Raises: ModelAuthentication where one is needed.
    """
    provider = name.provider
    found = api_key or next((environment[one] for one in provider.key_variables if environment.get(one)), "")
    if not found and provider.needs_key:
        raise ModelAuthentication(
            f"{name} needs an API key of {provider.label}, and none is set.",
            remedy=f"Set the variable {' or '.join(provider.key_variables)}.",
        )
    return found


def address_for(name: EmbedderName, base_url: str, environment: Mapping[str, str]) -> str:
    """Where the provider is asked, without a trailing slash.

    Raises: UsageError where there is no address, or it is no web address.
    """
    provider = name.provider
    if provider.name == "ollama":
        return ollama_address(base_url or None, environment=environment)
    variables = provider.base_url_variables
    found = base_url or next((environment[one] for one in variables if environment.get(one)), "") or provider.base_url
    if not found:
        raise UsageError(
            f"{name} needs the address of its server.",
            remedy="Give its base URL, for instance http://127.0.0.1:8000/v1.",
        )
    if not found.startswith(("http://", "https://")):
        raise UsageError(
            f"The address {found!r} of {name} is not usable: it does not begin with http:// or https://.",
            remedy="Write it whole, for instance http://127.0.0.1:8000/v1.",
        )
    return found.rstrip("/")


def _example(provider: Provider) -> str:
    known = next((one for one in KNOWN if one.startswith(f"{provider.name}:")), "")
    return known or f"{provider.name}:{'FOLDER' if provider.name == 'onnx' else 'MODEL'}"
