"""Which language model does which work, and what it may cost.

Takes: the `model` settings. Returns: for each role (answer, plan, rewrite, rerank, context, check) the name of its
model, and the open model itself, wrapped in the cache of replies and in the meter of one question or one command.
Method: `model.answer` is what the person chose; `auto` finds a running Ollama, else there is none, and every step goes
without. The other roles take the small model of the same provider, unless a setting of their own names another.
Nothing is imported or opened before a role is asked for; the search for Ollama is one refused connection.
"""

from __future__ import annotations

import os
import threading
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from cognicraft.config import ModelSettings
from cognicraft.protocols import LanguageModel
from cognicraft.records import digest
from cognicraft.results import ListedModel, ModelListing

if TYPE_CHECKING:
    from cognicraft.models.catalog import Catalog
    from cognicraft.models.meter import Meter

Role = Literal["answer", "plan", "rewrite", "rerank", "context", "check"]
ROLES: tuple[Role, ...] = ("answer", "plan", "rewrite", "rerank", "context", "check")
NONE = "none"
AUTO = "auto"


class OpenModels:
    """Models held open, each once, until `close`. Thread-safe."""

    def __init__(self) -> None:
        self._models: dict[tuple[str, str, ModelSettings], LanguageModel] = {}
        self._opening = threading.Lock()

    def model(self, name: str, settings: ModelSettings, *, base_url: str) -> LanguageModel:
        with self._opening:
            key = (name, base_url, settings)
            if key not in self._models:
                self._models[key] = _opened(name, settings, base_url)
            return self._models[key]

    def close(self) -> None:
        with self._opening:
            for model in self._models.values():
                model.close()
            self._models.clear()


class Roles:
    """The models of one workspace under one set of settings. Thread-safe. models: holds those that are opened."""

    def __init__(self, settings: ModelSettings, *, models: OpenModels, cache_folder: Path) -> None:
        self._settings = settings
        self._models = models
        self._cache_folder = cache_folder

    @property
    def catalog(self) -> Catalog:
        return _catalog(self._settings.catalog)

    @cached_property
    def answering(self) -> str:
        """Full name of the model that writes answers, "" where there is none. Raises: UsageError."""
        chosen = self._settings.answer.strip()
        if chosen.lower() in ("", NONE):
            return ""
        if chosen.lower() == AUTO:
            from cognicraft.models.ollama import running_ollama

            running = running_ollama()
            return f"ollama:{running[0]}" if running else ""
        return self.catalog.resolve(chosen).name

    @property
    def note(self) -> str:
        """One line on what `auto` came to; "" where the person chose."""
        if self._settings.answer.strip().lower() != AUTO:
            return ""
        if self.answering:
            return f"Answered by {self.answering}, found running on this machine (`--model none` quotes instead)."
        return "No language model is set and no Ollama runs here: sentences are quoted word for word."

    def name_of(self, role: Role) -> str:
        """Full name of the model of that role, "" where there is none. Raises: UsageError."""
        if role == "answer":
            return self.answering
        own = getattr(self._settings, role) or self._settings.small
        if own:
            return "" if own.strip().lower() == NONE else self.catalog.resolve(own).name
        return self.catalog.small_of(self.answering) if self.answering else ""

    def meter(self) -> Meter:
        """For one question or one command."""
        from cognicraft.models.meter import Meter

        return Meter(budget_usd=self._settings.budget_usd, budget_tokens=self._settings.budget_tokens)

    def model(self, role: Role, *, meter: Meter, cached: bool = True) -> LanguageModel | None:
        """The model of that role, open, its calls counted by the meter; None where there is none.

        Raises: UsageError, MissingExtra, ModelAuthentication, ModelFileError.
        """
        name = self.name_of(role)
        if not name:
            return None
        # An address of one's own is that of the provider who answers, not of another one beside it.
        same = provider_of(name) == provider_of(self.answering or name)
        base_url = self._settings.base_url if same else ""
        model = self._models.model(name, self._settings, base_url=base_url)
        if cached and self._settings.cache:
            from cognicraft.models.cached import CachedModel

            # Two servers may serve different models under one name.
            model = CachedModel(model, self._cache_folder / (digest(base_url)[:8] if base_url else "usual"))
        return meter.of(model)


def listing(roles: Roles, *, provider: str | None) -> ModelListing:
    """The catalog, which keys are set, and who does which work. Raises: UsageError for an unknown provider."""
    from cognicraft.models.llm_names import PROVIDERS, parse_name

    wanted = [parse_name(f"{provider}:small").provider] if provider else list(PROVIDERS.values())
    models: list[ListedModel] = []
    for one in wanted:
        variables = one.key_variables
        is_set = next((name for name in variables if os.environ.get(name)), "")
        key = (
            f"{is_set} is set"
            if is_set
            else f"{variables[0]} is not set"
            if variables and one.needs_key
            else "none needed"
        )
        sizes: dict[str, list[str]] = {}
        for size, name in roles.catalog.sizes(one.name).items():
            sizes.setdefault(name, []).append(size)
        for name, own in sizes.items():
            entry = roles.catalog.resolve(name)
            models.append(
                ListedModel(
                    name=name,
                    size=", ".join(own),
                    context_tokens=entry.context_tokens,
                    input_usd=entry.price.input_usd if entry.price else None,
                    output_usd=entry.price.output_usd if entry.price else None,
                    key=key,
                )
            )
    return ModelListing(models=models, roles={role: roles.name_of(role) for role in ROLES}, note=roles.note)


def provider_of(name: str) -> str:
    return name.partition(":")[0]


@lru_cache(maxsize=4)
def _catalog(file: str) -> Catalog:
    from cognicraft.models.catalog import Catalog

    return Catalog.load(Path(file).expanduser() if file else None)


def _opened(name: str, settings: ModelSettings, base_url: str) -> LanguageModel:
    from cognicraft.models.llm import open_language_model

    return open_language_model(
        name,
        # A key goes to the server it was set for, never to a provider that has its own variable.
        api_key=settings.api_key.get_secret_value() if settings.api_key and name.startswith("compatible:") else None,
        base_url=base_url,
        temperature=settings.temperature,
        timeout_s=settings.timeout_s,
        retries=settings.retries,
        concurrency=settings.concurrency,
        max_output_tokens=settings.max_output_tokens,
        context_tokens=settings.context_tokens,
        catalog=_catalog(settings.catalog),
    )
