"""Finding a running Ollama. The stand-in answers `/api/tags`, `/api/show` and `/api/ps` as Ollama documents them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from cognicraft.errors import ContextOverflow
from cognicraft.models.ollama import ollama_address, ollama_context_tokens, running_ollama
from cognicraft.records import Message
from provider_servers import ProviderServer, Reply, Request, provider_server

TAGS = {
    "models": [
        {"name": "older:1b", "modified_at": "2026-01-02T10:00:00+01:00", "details": {"family": "llama"}},
        {"name": "nomic-embed-text:latest", "modified_at": "2026-09-02T10:00:00+01:00"},
        {"name": "newer:latest", "modified_at": "2026-08-02T10:00:00+01:00"},
    ]
}
SHOWN: dict[str, dict[str, Any]] = {
    "older:1b": {
        "capabilities": ["completion"],
        "parameters": 'stop  "<|im_end|>"\nnum_ctx   16384',
        "model_info": {"llama.context_length": 8192},
    },
    "nomic-embed-text:latest": {"capabilities": ["embedding"], "model_info": {"nomic-bert.context_length": 2048}},
    "newer:latest": {"capabilities": ["completion", "tools"], "model_info": {"qwen3.context_length": 40960}},
}


@pytest.fixture
def ollama(monkeypatch: pytest.MonkeyPatch) -> Iterator[ProviderServer]:
    monkeypatch.delenv("OLLAMA_CONTEXT_LENGTH", raising=False)
    loaded: list[dict[str, Any]] = []

    def respond(request: Request) -> Reply:
        if request.path == "/api/tags":
            return Reply(json=TAGS)
        if request.path == "/api/ps":
            return Reply(json={"models": loaded})
        if request.path == "/api/show":
            name = request.body["model"]
            full = name if ":" in name else f"{name}:latest"
            return Reply(json=SHOWN[full]) if full in SHOWN else Reply(json={"error": "not found"}, status=404)
        return Reply(text="Hello")

    with provider_server("openai") as server:
        server.key = None
        server.respond = respond
        server.loaded = loaded  # type: ignore[attr-defined]
        yield server


@pytest.mark.parametrize(
    ("given", "address"),
    [
        ("", "http://127.0.0.1:11434"),
        ("localhost", "http://localhost:11434"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("0.0.0.0:8080", "http://127.0.0.1:8080"),
        (":9000", "http://127.0.0.1:9000"),
        ("http://box", "http://box:80"),
        ("https://box.example/", "https://box.example:443"),
        ("http://box:11434/v1", "http://box:11434"),
        ("http://box:11434/v1/", "http://box:11434"),
        ("https://box/under/path", "https://box:443/under/path"),
        ("[::1]:11434", "http://[::1]:11434"),
    ],
)
def test_the_address_is_read_as_ollama_reads_it(given: str, address: str) -> None:
    assert ollama_address(environment={"OLLAMA_HOST": given}) == address
    if given:
        assert ollama_address(given, environment={"OLLAMA_HOST": "elsewhere"}) == address


def test_models_that_chat_are_listed_newest_first(ollama: ProviderServer) -> None:
    assert running_ollama(ollama.address, 5.0) == ["newer:latest", "older:1b"]


def test_the_environment_says_where(ollama: ProviderServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_HOST", ollama.address.removeprefix("http://"))
    assert running_ollama(timeout_s=5.0) == ["newer:latest", "older:1b"]


def test_nothing_runs(ollama: ProviderServer) -> None:
    ollama.close()
    assert running_ollama(ollama.address) == []
    assert ollama_context_tokens(ollama.address, "newer") is None


@pytest.mark.parametrize(
    "reply", [Reply(json={"other": 1}), Reply(json=[1]), Reply(malformed=True), Reply(json={}, status=500)]
)
def test_something_else_listens_there(ollama: ProviderServer, reply: Reply) -> None:
    ollama.respond = lambda request: reply
    assert running_ollama(ollama.address, 5.0) == []
    assert ollama_context_tokens(ollama.address, "newer", timeout_s=5.0) in (None, 4096)


def test_silence_is_not_waited_for(ollama: ProviderServer) -> None:
    ollama.respond = lambda request: Reply(hang_s=20)
    began = time.monotonic()
    assert running_ollama(ollama.address, 0.2) == []
    assert time.monotonic() - began < 5


@pytest.mark.parametrize(("name", "tokens"), [("newer", 4096), ("newer:latest", 4096), ("older:1b", 8192)])
def test_how_much_a_model_reads_is_asked(ollama: ProviderServer, name: str, tokens: int) -> None:
    """`newer` by Ollama's own default, `older` by its Modelfile and no more than it was trained for."""
    assert ollama_context_tokens(ollama.address, name, timeout_s=5.0) == tokens


def test_a_larger_default_of_the_environment_holds(ollama: ProviderServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_CONTEXT_LENGTH", "32768")
    assert ollama_context_tokens(ollama.address, "newer", timeout_s=5.0) == 32768


def test_a_loaded_model_says_so_itself(ollama: ProviderServer) -> None:
    ollama.loaded.append({"name": "newer:latest", "context_length": 12_345})  # type: ignore[attr-defined]
    assert ollama_context_tokens(ollama.address, "newer", timeout_s=5.0) == 12_345


@pytest.mark.parametrize("how", ["complete", "stream"])
def test_a_prompt_that_ollama_would_cut_without_a_word_is_refused(ollama: ProviderServer, how: str) -> None:
    pytest.importorskip("pydantic_ai", reason="the extra `llm` is not installed")
    from cognicraft.models.llm import open_language_model

    long = [Message("user", "word " * 5000)]
    with closing(open_language_model("ollama:newer", base_url=ollama.address)) as model:
        assert model.context_tokens == 4096
        assert model.complete([Message("user", "Hi")]).text == "Hello"
        with pytest.raises(ContextOverflow, match="4,096"):
            model.complete(long) if how == "complete" else list(model.stream(long))
    assert [request.path for request in ollama.requests if "chat" in request.path] == ["/v1/chat/completions"]


@pytest.mark.parametrize("how", ["complete", "stream"])
def test_a_prompt_that_ollama_did_cut_is_noticed(ollama: ProviderServer, how: str) -> None:
    """Of 6,000 words a real server read the last message alone and counted 18 tokens."""
    pytest.importorskip("pydantic_ai", reason="the extra `llm` is not installed")
    from cognicraft.models.llm import open_language_model

    long = [Message("user", "word " * 6000), Message("user", "Hi")]
    usage = {"prompt_tokens": 18, "completion_tokens": 1, "total_tokens": 19}
    choice = {"index": 0, "message": {"role": "assistant", "content": "Hello"}, "finish_reason": "stop"}
    body = {"id": "1", "object": "chat.completion", "created": 1, "model": "newer", "choices": [choice]}
    if how == "stream":
        delta = {"index": 0, "delta": {"content": "Hello"}, "finish_reason": "stop"}
        body |= {"object": "chat.completion.chunk", "choices": [delta]}
    body |= {"usage": usage}
    ollama.respond = lambda request: Reply(json=body, events=how == "stream")
    with (
        closing(open_language_model("ollama:newer", base_url=ollama.address, context_tokens=100_000)) as model,
        pytest.raises(ContextOverflow, match="cut off"),
    ):
        model.complete(long) if how == "complete" else list(model.stream(long))
