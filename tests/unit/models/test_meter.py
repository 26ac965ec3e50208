"""The meter counts every call once, failed ones too, and stops before a call that the budget does not carry."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from pydantic import BaseModel

pytest.importorskip("pydantic_ai", reason="the extra `llm` is not installed")

from cognicraft.errors import BudgetSpent, ModelReplyInvalid, ModelUnavailable
from cognicraft.models.cached import CachedModel
from cognicraft.models.catalog import Catalog
from cognicraft.models.llm import open_language_model
from cognicraft.models.meter import Meter
from cognicraft.protocols import LanguageModel
from cognicraft.records import Message, Usage
from provider_servers import ProviderServer, Reply, provider_server, tokens_of

HELLO = [Message("user", "Hello there")]
TEXT = "Hello to you as well."
ONE = tokens_of("Hello there") + tokens_of(TEXT)


class Word(BaseModel):
    word: str


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    with provider_server("openai") as server:
        server.respond = lambda request: Reply(text='{"word": "yes"}' if request.schema else TEXT)
        yield server


@pytest.fixture
def model(server: ProviderServer, tmp_path: Path) -> Iterator[LanguageModel]:
    prices = tmp_path / "catalog.toml"
    prices.write_text('[compatible.models."priced"]\ninput_usd = 1000.0\noutput_usd = 1000.0\n')
    catalog = Catalog.load(prices)
    with closing(
        open_language_model("compatible:priced", base_url=server.base_url, api_key="test-key", catalog=catalog)
    ) as model:
        yield model


def test_every_kind_of_call_is_counted_once(model: LanguageModel) -> None:
    meter = Meter()
    metered = meter.of(model)
    metered.complete(HELLO)
    assert meter.usage == Usage(1, 0, tokens_of("Hello there"), tokens_of(TEXT), pytest.approx(ONE / 1000))
    stream = metered.stream(HELLO)
    assert "".join(stream) == TEXT
    stream.close()
    assert meter.usage.calls == 2
    value, usage = metered.structured(HELLO, Word)
    assert value.word == "yes"
    assert meter.usage.calls == 2 + usage.calls == 3


def test_a_stream_that_is_left_is_counted_by_what_came(model: LanguageModel, server: ProviderServer) -> None:
    server.respond = lambda request: Reply(text="word " * 500, pace_s=0.01)
    meter = Meter()
    stream = meter.of(model).stream(HELLO)
    for _piece in stream:
        break
    stream.close()
    assert meter.usage.calls == 1
    assert meter.usage.input_tokens > 0
    assert 0 < meter.usage.output_tokens < 300


def test_what_failed_is_counted_too(model: LanguageModel, server: ProviderServer) -> None:
    meter = Meter()
    server.respond = lambda request: Reply(text="no JSON at all")
    with pytest.raises(ModelReplyInvalid):
        meter.of(model).structured(HELLO, Word)
    assert meter.usage.calls == 3
    server.respond = lambda request: Reply(text=TEXT, break_after=6)
    with pytest.raises(ModelUnavailable):
        list(meter.of(model).stream(HELLO))
    assert meter.usage.calls == 4


def test_a_token_budget_stops_before_the_next_call(model: LanguageModel, server: ProviderServer) -> None:
    meter = Meter(budget_tokens=2 * ONE)
    metered = meter.of(model)
    metered.complete(HELLO)
    metered.complete(HELLO)
    for call in (metered.complete, metered.stream, lambda messages: metered.structured(messages, Word)):
        with pytest.raises(BudgetSpent) as caught:
            call(HELLO)
        assert "tokens" in str(caught.value)
        assert "model.budget_tokens" in caught.value.remedy
    assert len(server.requests) == 2


def test_a_budget_in_dollars_stops_before_the_next_call(model: LanguageModel, server: ProviderServer) -> None:
    metered = Meter(budget_usd=ONE / 1000).of(model)
    metered.complete(HELLO)
    with pytest.raises(BudgetSpent, match="US dollars"):
        metered.complete(HELLO)
    assert len(server.requests) == 1


def test_a_model_of_unknown_price_is_refused_under_a_budget_in_dollars(server: ProviderServer) -> None:
    with closing(open_language_model("compatible:x", base_url=server.base_url, api_key="test-key")) as model:
        with pytest.raises(BudgetSpent, match="price of compatible:x is not known"):
            Meter(budget_usd=5.0).of(model).complete(HELLO)
        assert Meter(budget_tokens=10_000).of(model).complete(HELLO).text == TEXT
    assert len(server.requests) == 1


def test_one_budget_holds_for_several_models_and_threads(model: LanguageModel, server: ProviderServer) -> None:
    meter = Meter()
    pair = (meter.of(model), meter.of(model))
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda index: pair[index % 2].complete(HELLO), range(24)))
    assert meter.usage.calls == 24
    assert meter.usage.input_tokens == 24 * tokens_of("Hello there")


def test_a_kept_reply_counts_as_cached_and_costs_nothing(model: LanguageModel, tmp_path: Path) -> None:
    meter = Meter()
    metered = meter.of(CachedModel(model, tmp_path / "kept"))
    metered.complete(HELLO)
    metered.complete(HELLO)
    assert (meter.usage.calls, meter.usage.cached_calls) == (1, 1)
    assert meter.usage.cost_usd == pytest.approx(ONE / 1000)
