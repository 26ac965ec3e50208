"""Language models of any provider behind `protocols.LanguageModel`: the way in.

Takes: `provider:model` and plain settings. Returns: a model to complete, stream and fill schemas with. Method:
pydantic-ai speaks the protocols (`llm_wire.py`); what must hold for all of them, calls side by side, retries,
deadlines, cancelling, errors in our words, is in `llm_model.py`. Cost: nothing until a model is opened, then the
import of the provider's library, 1 to 6 seconds. What can go wrong: see `LanguageModel`; every failure names model,
reason and remedy, and none shows a key.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from cognicraft.models.catalog import Catalog
from cognicraft.models.llm_faults import Subject
from cognicraft.models.llm_model import ProviderModel
from cognicraft.models.llm_names import address_for, key_for, parse_name
from cognicraft.models.llm_prices import published
from cognicraft.models.ollama import ollama_context_tokens
from cognicraft.protocols import LanguageModel


def open_language_model(
    name: str,
    *,
    api_key: str | None = None,
    base_url: str = "",
    temperature: float = 0.0,
    timeout_s: float = 120.0,
    retries: int = 3,
    concurrency: int = 4,
    max_output_tokens: int = 1024,
    context_tokens: int | None = None,
    catalog: Catalog | None = None,
) -> LanguageModel:
    """A model by its name: `openai:gpt-…`, `openai:small`, `ollama:llama3.2:3b`, `compatible:MODEL`, `local:FILE.gguf`.

    api_key, base_url: where left out, those of the provider's own variables. timeout_s: seconds for a whole call, or
    for the next piece of a stream. retries: further tries. concurrency: calls side by side. context_tokens: left out,
    from the catalog, or as Ollama says. Nothing else is sent yet.
    Raises: UsageError for a name that cannot be meant, ModelAuthentication where a key is missing, MissingExtra,
    ModelFileError for `local:`.
    """
    entry = (catalog or Catalog.load()).resolve(name)
    parsed = parse_name(entry.name)
    tokens = context_tokens or entry.context_tokens
    on_close: Callable[[], None] | None = None
    if parsed.provider.protocol == "local":
        from cognicraft.models.local import serve

        running = serve(Path(parsed.model), context_tokens=tokens)
        address, key, tokens, on_close = running.address, running.key, running.context_tokens, running.release
        concurrency = 1  # one answer at a time has all threads
    else:
        key = key_for(parsed, api_key, os.environ)
        address = address_for(parsed, base_url, os.environ)
        if parsed.provider.protocol == "ollama" and context_tokens is None:
            tokens = ollama_context_tokens(address.removesuffix("/v1"), parsed.model) or tokens
    from cognicraft.models.llm_wire import open_wire

    try:
        wire = open_wire(parsed, base_url=address, key=key, temperature=temperature)
    except BaseException:
        if on_close is not None:
            on_close()
        raise
    # The catalog first, since a person can change it.
    known_cost, known_tokens = published(parsed)
    if context_tokens is None and not entry.listed and known_tokens:
        tokens = known_tokens
    return ProviderModel(
        Subject(parsed, address, key),
        wire,
        cost=entry.price.cost_usd if entry.price is not None else known_cost,
        context_tokens=tokens,
        timeout_s=timeout_s,
        retries=retries,
        concurrency=concurrency,
        max_output_tokens=max_output_tokens,
        on_close=on_close,
    )
