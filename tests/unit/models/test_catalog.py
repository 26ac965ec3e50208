"""The catalog of providers and models, and a person's own file over it."""

from __future__ import annotations

from pathlib import Path

import pytest

from cognicraft.errors import SettingsError, UsageError
from cognicraft.models.catalog import SIZES, Catalog, Price

SIZED = ("openai", "google", "anthropic", "openrouter", "groq", "mistral")


@pytest.fixture
def own_file(tmp_path: Path) -> Path:
    return tmp_path / "catalog.toml"


@pytest.mark.parametrize("provider", SIZED)
@pytest.mark.parametrize("size", SIZES)
def test_every_provider_with_a_key_has_every_size(provider: str, size: str) -> None:
    entry = Catalog.load().resolve(f"{provider}:{size}")
    assert entry.listed
    assert entry.name.startswith(f"{provider}:")
    assert entry.context_tokens >= 100_000


@pytest.mark.parametrize("provider", ["openai", "google", "anthropic", "groq", "mistral"])
def test_the_small_one_is_the_cheapest(provider: str) -> None:
    prices = [Catalog.load().resolve(f"{provider}:{size}").price for size in SIZES]
    totals = [price.input_usd + price.output_usd for price in prices if price is not None]
    assert len(totals) == len(SIZES)
    assert totals[0] == min(totals)


def test_small_of_is_the_small_one_of_the_same_provider() -> None:
    catalog = Catalog.load()
    assert catalog.small_of("openai:gpt-4.1") == catalog.resolve("openai:small").name
    assert catalog.small_of("gemini:large") == catalog.resolve("google:small").name


@pytest.mark.parametrize("name", ["ollama:llama3.2:3b", "compatible:mine", "local:a/b.gguf", "azure:deployment"])
def test_small_of_a_provider_without_sizes_is_the_same_model(name: str) -> None:
    assert Catalog.load().small_of(name) == name


def test_a_model_that_is_not_listed_has_its_providers_context_and_no_price() -> None:
    entry = Catalog.load().resolve("openai:gpt-of-tomorrow")
    assert not entry.listed
    assert entry.price is None
    assert entry.context_tokens == 128_000


def test_a_model_on_ones_own_machine_costs_nothing() -> None:
    for name in ("ollama:llama3.2", "local:model.gguf"):
        price = Catalog.load().resolve(name).price
        assert price is not None
        assert price.cost_usd(1000, 1000) == 0
    assert Catalog.load().resolve("compatible:x").price is None, "who knows whose server that is"


def test_a_cost_counts_what_was_cached_apart() -> None:
    price = Price(2.0, 10.0, cached_usd=0.5, cache_write_usd=2.5)
    cost = price.cost_usd(1_000_000, 100_000, cached=400_000, cache_writes=100_000)
    assert cost == pytest.approx(0.5 * 2.0 + 0.4 * 0.5 + 0.1 * 2.5 + 0.1 * 10.0)


def test_a_long_prompt_costs_more_as_a_whole() -> None:
    price = Price(2.0, 10.0, cached_usd=0.2, long_from_tokens=1000, long_input_usd=4.0, long_output_usd=15.0)
    assert price.cost_usd(1000, 10) == pytest.approx((1000 * 2.0 + 10 * 10.0) / 1e6)
    assert price.cost_usd(1001, 10, cached=1) == pytest.approx((1000 * 4.0 + 1 * 0.4 + 10 * 15.0) / 1e6)


def test_an_own_file_adds_and_overrides_key_by_key(own_file: Path) -> None:
    own_file.write_text(
        '[ollama]\nsmall = "llama3.2:1b"\n'
        '[openai]\nsmall = "gpt-5-nano"\n[openai.models."gpt-5-nano"]\ncontext_tokens = 400_000\n'
        '[openai.models."gpt-6.1-sol"]\noutput_usd = 9.0\n'
    )
    before, catalog = Catalog.load(), Catalog.load(own_file)
    assert catalog.resolve("openai:small").name == "openai:gpt-5-nano"
    assert catalog.resolve("openai:small").context_tokens == 400_000
    assert catalog.small_of("ollama:llama3.3") == "ollama:llama3.2:1b"
    changed, shipped = catalog.resolve("openai:large").price, before.resolve("openai:large").price
    assert changed is not None
    assert shipped is not None
    assert (changed.output_usd, changed.input_usd) == (9.0, shipped.input_usd)
    assert catalog.resolve("openai:medium") == before.resolve("openai:medium")
    assert Catalog.load().resolve("openai:small") == before.resolve("openai:small"), "the shipped one is untouched"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("not toml", "not TOML"),
        ('[opnai]\nsmall = "x"', "Did you mean openai?"),
        ('[openai]\nsmal = "x"', "Did you mean small?"),
        ("[openai]\nsmall = 3", "not the name of a model"),
        ("[openai]\ncontext_tokens = 0", "above 0"),
        ("[openai]\ncontext_tokens = true", "above 0"),
        ('[openai.models."x"]\nprice = 3', "unknown key price"),
        ('[openai.models."x"]\ninput_usd = -1', "above 0"),
        ("openai = 3", "not a table"),
        ("[openai]\nmodels = 3", "not a table of tables"),
    ],
)
def test_a_bad_file_is_refused_by_name(own_file: Path, text: str, said: str) -> None:
    own_file.write_text(text)
    with pytest.raises(SettingsError) as caught:
        Catalog.load(own_file)
    assert said in str(caught.value)
    assert str(own_file) in str(caught.value)


def test_an_absent_file_is_refused(own_file: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be read"):
        Catalog.load(own_file)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("openai:smal", "Did you mean openai:small?"),
        ("anthropic:flagshp", "Did you mean anthropic:flagship?"),
        ("ollama:small", "no small model of Ollama"),
        ("nobody:small", "no provider"),
    ],
)
def test_an_unknown_size_is_answered_with_the_nearest(name: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        Catalog.load().resolve(name)
    assert said in str(caught.value)


def test_sizes_lists_what_a_provider_has() -> None:
    assert list(Catalog.load().sizes("openai")) == list(SIZES)
    assert Catalog.load().sizes("ollama") == {}
