"""Published prices of models that the catalog does not list, from the tables that come with pydantic-ai.

Takes: a provider's and a model's name. Returns: a price with the model's context, or None. Cost: the tables are
loaded with pydantic-ai anyway. What can go wrong: a model newer than the tables has no price, which is unknown.
"""

from __future__ import annotations

from collections.abc import Callable

from cognicraft.models.llm_names import ModelName

Cost = Callable[[int, int, int, int], float | None]
"""(input tokens, output tokens, of the input read from the cache, written to it) -> US dollars, None where unknown."""

# What the tables call a provider; others (one's own servers, Azure's contracts) have no published price.
_PROVIDERS = {
    "openai": "openai",
    "google": "google",
    "anthropic": "anthropic",
    "openrouter": "openrouter",
    "groq": "groq",
    "mistral": "mistral",
}


def published(name: ModelName) -> tuple[Cost | None, int | None]:
    """The price of a model by today's tables, and how many tokens it reads; None for what they do not say."""
    provider = _PROVIDERS.get(name.provider.name)
    try:
        from genai_prices import Usage, calc_price
        from genai_prices.data_snapshot import get_snapshot

        if provider is None:
            return None, None
        _, model = get_snapshot().find_provider_model(name.model, None, provider, None)
    except (ImportError, LookupError):
        return None, None

    def cost_usd(asked: int, said: int, cached: int, writes: int) -> float | None:
        usage = Usage(input_tokens=asked, output_tokens=said, cache_read_tokens=cached, cache_write_tokens=writes)
        try:
            return float(calc_price(usage, name.model, provider_id=provider).total_price)
        except (LookupError, ValueError):
            return None

    return (cost_usd if cost_usd(1000, 1000, 0, 0) is not None else None), model.context_window
