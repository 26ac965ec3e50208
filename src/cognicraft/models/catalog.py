"""The catalog: which models a provider has by size, how much they read, and what they cost.

Takes: `catalog.toml` beside this file and, where the person has one, a file that adds to it or changes it. Returns:
entries by name (`openai:gpt-…`) or by size (`openai:small`). A price that is not in the file is unknown, never zero.
What can go wrong: a file that does not parse, a size that does not exist.

    [openai]
    small = "gpt-5-mini"                    # medium, large, flagship likewise
    context_tokens = 128_000                # of models that are not listed below

    [openai.models."gpt-5-mini"]
    context_tokens = 400_000
    input_usd = 0.25                        # US dollars per million tokens
    output_usd = 2.00
    cached_usd = 0.025                      # read from the provider's prompt cache; left out: as input
    cache_write_usd = 0.25                  # written to it; left out: as input
    long_from_tokens = 272_000              # prompts that are longer cost, all of them,
    long_input_usd = 0.50                   # this (cached and written in proportion)
    long_output_usd = 3.00
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from cognicraft.errors import SettingsError, UsageError
from cognicraft.models.llm_names import PROVIDERS, ModelName, parse_name

SIZES = ("small", "medium", "large", "flagship")
DEFAULT_CONTEXT_TOKENS = 8_192
_PRICES = (
    "input_usd",
    "output_usd",
    "cached_usd",
    "cache_write_usd",
    "long_from_tokens",
    "long_input_usd",
    "long_output_usd",
)
_MODEL_KEYS = frozenset({"context_tokens", *_PRICES})
_PROVIDER_KEYS = frozenset({*SIZES, "context_tokens", "models"})


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens."""

    input_usd: float
    output_usd: float
    cached_usd: float | None = None
    cache_write_usd: float | None = None
    long_from_tokens: float | None = None
    long_input_usd: float | None = None
    long_output_usd: float | None = None

    def cost_usd(self, input_tokens: int, output_tokens: int, cached: int = 0, cache_writes: int = 0) -> float:
        """cached and cache_writes are part of input_tokens."""
        cached_usd = self.input_usd if self.cached_usd is None else self.cached_usd
        write_usd = self.input_usd if self.cache_write_usd is None else self.cache_write_usd
        plain = max(0, input_tokens - cached - cache_writes)
        asked = plain * self.input_usd + cached * cached_usd + cache_writes * write_usd
        said = output_tokens * self.output_usd
        if self.long_from_tokens is not None and input_tokens > self.long_from_tokens:
            asked *= (self.long_input_usd or self.input_usd) / (self.input_usd or 1)
            said = output_tokens * (self.long_output_usd or self.output_usd)
        return (asked + said) / 1e6


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """A model. price: None where it is not known. listed: whether the catalog has this very model."""

    name: str
    context_tokens: int
    price: Price | None = None
    listed: bool = False


class Catalog:
    """Providers and their models. Made by `load`; does not change."""

    __slots__ = ("_tree",)

    def __init__(self, tree: Mapping[str, Mapping[str, Any]]) -> None:
        self._tree = tree

    @classmethod
    def load(cls, extra_file: Path | None = None) -> Catalog:
        """The shipped catalog, with what a file adds or changes, key by key.

        Raises: SettingsError for a file that is absent, does not parse or holds an unknown key.
        """
        shipped = files("cognicraft.models").joinpath("catalog.toml").read_text(encoding="utf-8")
        tree = _checked(tomllib.loads(shipped), "catalog.toml")
        if extra_file is not None:
            _merge(tree, _checked(_read(extra_file), str(extra_file)))
        return cls(tree)

    def resolve(self, name: str) -> CatalogEntry:
        """The entry of `provider:model` or `provider:size`. A model that is not listed has the provider's defaults.

        Raises: UsageError for a provider that does not exist, or a size that the provider does not have.
        """
        parsed = parse_name(name)
        model = self._by_size(parsed)
        provider = self._tree.get(parsed.provider.name, {})
        entry = provider.get("models", {}).get(model)
        values = {"context_tokens": provider.get("context_tokens", DEFAULT_CONTEXT_TOKENS)} | (entry or {})
        price = None
        if "input_usd" in values and "output_usd" in values:
            price = Price(**{key: float(values[key]) for key in _PRICES if key in values})
        elif not parsed.provider.needs_key and parsed.provider.name in ("ollama", "local"):
            price = Price(0.0, 0.0)  # one's own machine
        return CatalogEntry(
            str(ModelName(parsed.provider, model)), int(values["context_tokens"]), price, listed=entry is not None
        )

    def small_of(self, name: str) -> str:
        """Name of the small model of that model's provider; the same model where the provider has no sizes."""
        parsed = parse_name(name)
        small = self._tree.get(parsed.provider.name, {}).get("small")
        return f"{parsed.provider.name}:{small or self._by_size(parsed)}"

    def sizes(self, provider: str) -> dict[str, str]:
        """Size -> `provider:model`, of one provider; empty where it has none."""
        found = self._tree.get(provider, {})
        return {size: f"{provider}:{found[size]}" for size in SIZES if size in found}

    def _by_size(self, name: ModelName) -> str:
        provider = self._tree.get(name.provider.name, {})
        sizes = [size for size in SIZES if size in provider]
        if name.model in sizes:
            return str(provider[name.model])
        if name.model in SIZES:
            raise UsageError(
                f"The catalog has no {name.model} model of {name.provider.label}.",
                remedy=f"Name the model itself, {name.provider.name}:MODEL, or set {name.provider.name}.{name.model} "
                "in a file of your own (model.catalog).",
            )
        near = difflib.get_close_matches(name.model.lower(), sizes, n=1, cutoff=0.75)
        if near and name.model not in provider.get("models", {}):
            raise UsageError(
                f"{name.provider.label} has no model {name.model!r} in the catalog, and it is no size.",
                remedy=f"Did you mean {name.provider.name}:{near[0]}?",
            )
        return name.model


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.expanduser().read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(
            f"The catalog file {path} cannot be read: {error.strerror}.", remedy="Correct model.catalog."
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"The catalog file {path} is not TOML: {error}.", remedy="Correct the file.") from error


def _checked(tree: dict[str, Any], where: str) -> dict[str, dict[str, Any]]:
    for provider, values in tree.items():
        _known(provider, PROVIDERS, f"provider {provider!r}", where)
        if not isinstance(values, dict):
            raise _wrong(f"{provider} is not a table", where)
        for key, value in values.items():
            _known(key, _PROVIDER_KEYS, f"key {provider}.{key}", where)
            if key in SIZES and not (isinstance(value, str) and value):
                raise _wrong(f"{provider}.{key} is not the name of a model", where)
            if key == "context_tokens":
                _positive(value, f"{provider}.{key}", where)
        models = values.get("models", {})
        if not isinstance(models, dict) or not all(isinstance(model, dict) for model in models.values()):
            raise _wrong(f"{provider}.models is not a table of tables", where)
        for model, entry in models.items():
            for key, value in entry.items():
                _known(key, _MODEL_KEYS, f"key {key} of {provider}:{model}", where)
                _positive(value, f"{key} of {provider}:{model}", where, zero=key != "context_tokens")
    return tree


def _known(key: str, known: Any, what: str, where: str) -> None:
    if key in known:
        return
    near = difflib.get_close_matches(key, list(known), n=1, cutoff=0.5)
    hint = f"Did you mean {near[0]}?" if near else f"There are: {', '.join(sorted(known))}."
    raise SettingsError(f"The catalog file {where} has an unknown {what}.", remedy=hint)


def _positive(value: object, what: str, where: str, *, zero: bool = False) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0 or (value == 0 and not zero):
        raise _wrong(f"{what} is not a number above 0, but {value!r}", where)


def _wrong(what: str, where: str) -> SettingsError:
    return SettingsError(f"The catalog file {where} is not usable: {what}.", remedy="Correct the file.")


def _merge(tree: dict[str, dict[str, Any]], more: dict[str, dict[str, Any]]) -> None:
    for provider, values in more.items():
        mine = tree.setdefault(provider, {})
        models = mine.get("models", {})
        for model, entry in values.get("models", {}).items():
            models[model] = models.get(model, {}) | entry
        mine.update(values)
        mine["models"] = models
