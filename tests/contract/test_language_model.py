"""The shipped conformance suite over each protocol, the wrappers, and a real model file where there is one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

pytest.importorskip("pydantic_ai", reason="the extra `llm` is not installed")

from cognicraft.models.cached import CachedModel
from cognicraft.models.llm import open_language_model
from cognicraft.models.meter import Meter
from cognicraft.protocols import LanguageModel
from cognicraft.records import Message
from cognicraft.testing.language_model import LanguageModelConformance, colour_json
from model_files import small_gguf
from model_servers import CHAT_MODEL, own_server
from provider_servers import ProviderServer, Reply, Request, provider_server


def reply_to(request: Request) -> Reply:
    """Echo the last message; fill the schema where one is asked for."""
    return Reply(text=colour_json() if request.schema else f"You said: {request.messages[-1][1]}", pace_s=0.001)


class Echoing(LanguageModelConformance):
    """Over a stand-in, replies can be foretold."""

    def last_words(self, messages: tuple[Message, ...]) -> str:
        return messages[-1].text


class TestOpenAIProtocol(Echoing):
    @pytest.fixture
    def server(self) -> Iterator[ProviderServer]:
        with provider_server("openai") as server:
            server.respond = reply_to
            yield server

    @pytest.fixture
    def language_model(self, server: ProviderServer) -> Iterator[LanguageModel]:
        with closing(opened("openai:gpt-4.1-mini", server)) as model:
            yield model


class TestGeminiProtocol(Echoing):
    @pytest.fixture
    def language_model(self) -> Iterator[LanguageModel]:
        with provider_server("gemini") as server:
            server.respond = reply_to
            with closing(opened("google:gemini-2.5-flash", server)) as model:
                yield model


class TestAnthropicProtocol(Echoing):
    @pytest.fixture
    def language_model(self) -> Iterator[LanguageModel]:
        with provider_server("anthropic") as server:
            server.respond = reply_to
            with closing(opened("anthropic:claude-sonnet-4-6", server)) as model:
                yield model


class TestMetered(TestOpenAIProtocol):
    @pytest.fixture
    def language_model(self, server: ProviderServer) -> Iterator[LanguageModel]:
        with closing(Meter(budget_tokens=10**9).of(opened("compatible:test", server))) as model:
            yield model


class TestCached(TestOpenAIProtocol):
    @pytest.fixture
    def language_model(self, server: ProviderServer, tmp_path: Path) -> Iterator[LanguageModel]:
        with closing(CachedModel(opened("compatible:test", server), tmp_path)) as model:
            yield model


class TestModelFile(LanguageModelConformance):
    """llama.cpp over a real file of 135 million weights: wiring, not wisdom."""

    max_tokens = 8

    @pytest.fixture(scope="class")
    @classmethod
    def kept_loaded(cls) -> Iterator[str]:
        pytest.importorskip("xllamacpp", reason="the extra `local` is not installed")
        with closing(open_language_model(f"local:{small_gguf()}", context_tokens=2048)) as model:
            yield model.name

    @pytest.fixture
    def language_model(self, kept_loaded: str) -> Iterator[LanguageModel]:
        with closing(open_language_model(kept_loaded, context_tokens=2048)) as model:
            yield model


@pytest.mark.slow
class TestOllama(LanguageModelConformance):
    """A real Ollama server with the same small model."""

    max_tokens = 8

    @pytest.fixture(scope="class")
    @classmethod
    def address(cls) -> Iterator[str]:
        with own_server("ollama") as server:
            yield server.url

    @pytest.fixture
    def language_model(self, address: str) -> Iterator[LanguageModel]:
        with closing(open_language_model(f"ollama:{CHAT_MODEL}", base_url=address)) as model:
            yield model


def opened(name: str, server: ProviderServer) -> LanguageModel:
    return open_language_model(name, base_url=server.base_url, api_key="test-key", timeout_s=20)
