"""Language models on real servers: llama.cpp's own, and Ollama. The wiring is tested, never the taste of the model."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from pydantic import BaseModel

pytest.importorskip("pydantic_ai", reason="the extra `llm` is not installed")

from cognicraft.errors import ContextOverflow, ModelNotFound, ModelUnavailable
from cognicraft.models.llm import open_language_model
from cognicraft.protocols import LanguageModel
from cognicraft.records import Message
from cognicraft.testing.language_model import LanguageModelConformance
from model_servers import ModelServer, own_server

QUESTION = [Message("system", "You are brief."), Message("user", "Tell me about bees.")]
LONG_STORY = [Message("user", "Tell me a very long story about a mountain hut, with every detail.")]


class Weather(BaseModel):
    """What is asked for by schema."""

    degrees: int
    windy: bool


def opened(kind: str, server: ModelServer, *, model: str = "", timeout_s: float = 120.0) -> LanguageModel:
    """kind: "llama" or "ollama"."""
    chosen = model or server.model
    if kind == "ollama":
        return open_language_model(f"ollama:{chosen}", base_url=server.url, timeout_s=timeout_s)
    return open_language_model(
        f"compatible:{chosen}", base_url=server.openai_url, timeout_s=timeout_s, context_tokens=4096
    )


class _OnServer:
    kind = ""

    def test_a_reply_comes_whole_with_its_usage(self, language_model: LanguageModel) -> None:
        completion = language_model.complete(QUESTION, max_tokens=12)
        assert completion.text.strip()
        assert completion.finish == "length"
        assert completion.usage.calls == 1
        assert completion.usage.input_tokens > 10
        assert 0 < completion.usage.output_tokens <= 12

    def test_a_stream_is_the_same_reply_in_pieces(self, language_model: LanguageModel) -> None:
        # The first call fills the server's cache of the prompt, which moves the last bits of what comes after it.
        language_model.complete(QUESTION, max_tokens=1)
        whole = language_model.complete(QUESTION, max_tokens=16)
        stream = language_model.stream(QUESTION, max_tokens=16)
        pieces = list(stream)
        assert len(pieces) > 3
        assert "".join(pieces) == stream.completion.text == whole.text
        assert stream.completion.usage.output_tokens > 0

    def test_a_reply_fits_the_schema(self, language_model: LanguageModel) -> None:
        weather, usage = language_model.structured(
            [Message("user", "It is 12 degrees and there is a storm. Give degrees and windy as JSON.")],
            Weather,
            max_tokens=80,
        )
        assert isinstance(weather.degrees, int)
        assert isinstance(weather.windy, bool)
        assert usage.output_tokens > 0

    def test_a_stream_that_is_closed_stops_at_once(self, language_model: LanguageModel) -> None:
        stream = language_model.stream(LONG_STORY, max_tokens=1000)
        first = next(iter(stream))
        started = time.monotonic()
        stream.close()
        assert list(stream) == []
        assert time.monotonic() - started < 2
        assert stream.completion.text.startswith(first)
        assert language_model.complete(QUESTION, max_tokens=4).text.strip()

    def test_calls_run_side_by_side(self, language_model: LanguageModel) -> None:
        with ThreadPoolExecutor(3) as pool:
            replies = list(pool.map(lambda _: language_model.complete(QUESTION, max_tokens=6).text.strip(), range(3)))
        assert all(replies)


class TestLlama(_OnServer):
    @pytest.fixture
    def language_model(self, llama_server: ModelServer) -> Iterator[LanguageModel]:
        with closing(opened("llama", llama_server)) as model:
            yield model

    def test_a_closed_stream_frees_its_place_on_the_server(
        self, language_model: LanguageModel, llama_server: ModelServer
    ) -> None:
        stream = language_model.stream(LONG_STORY, max_tokens=3000)
        next(iter(stream))
        assert busy_places(llama_server) == 1
        stream.close()
        end = time.monotonic() + 10
        while busy_places(llama_server) and time.monotonic() < end:
            time.sleep(0.1)
        assert busy_places(llama_server) == 0

    def test_a_prompt_that_is_too_long_is_said(self, language_model: LanguageModel) -> None:
        with pytest.raises(ContextOverflow, match="longer than"):
            language_model.complete([Message("user", "snow " * 6000)], max_tokens=4)


class TestOllama(_OnServer):
    @pytest.fixture
    def language_model(self, ollama_server: ModelServer) -> Iterator[LanguageModel]:
        with closing(opened("ollama", ollama_server)) as model:
            yield model

    def test_the_server_says_how_much_the_model_reads(self, language_model: LanguageModel) -> None:
        assert language_model.context_tokens == 4096

    def test_a_prompt_that_is_too_long_is_said(self, language_model: LanguageModel) -> None:
        with pytest.raises(ContextOverflow):
            language_model.complete([Message("user", "snow " * 6000)], max_tokens=4)

    def test_a_model_that_was_not_pulled_names_the_remedy(self, ollama_server: ModelServer) -> None:
        with (
            closing(opened("ollama", ollama_server, model="absent:1b")) as model,
            pytest.raises(ModelNotFound, match="ollama pull absent:1b"),
        ):
            model.complete(QUESTION)


class TestLlamaConforms(LanguageModelConformance):
    @pytest.fixture
    def language_model(self, llama_server: ModelServer) -> Iterator[LanguageModel]:
        with closing(opened("llama", llama_server)) as model:
            yield model


@pytest.mark.parametrize("kind", ["llama", "ollama"])
class TestAServerThatDies:
    def test_in_mid_answer_is_said_and_what_came_is_kept(self, kind: str) -> None:
        with own_server(kind) as server, closing(opened(kind, server)) as model:
            stream = model.stream(LONG_STORY, max_tokens=2000)
            pieces = iter(stream)
            came = [next(pieces) for _ in range(3)]
            server.kill()
            with pytest.raises(ModelUnavailable, match="smollm2"):
                came.extend(pieces)
            assert stream.completion.text == "".join(came)

    def test_before_the_answer_is_said_with_the_remedy(self, kind: str) -> None:
        with own_server(kind) as server, closing(opened(kind, server)) as model:
            model.complete(QUESTION, max_tokens=2)
            server.kill()
            with pytest.raises(ModelUnavailable, match="nothing listens there"):
                model.complete(QUESTION, max_tokens=2)


def busy_places(server: ModelServer) -> int:
    """Conversations that llama.cpp's server works on now."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"{server.url}/slots", timeout=10) as reply:
        return sum(bool(place["is_processing"]) for place in json.loads(reply.read()))
