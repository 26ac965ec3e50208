"""The adapter over each protocol, and what it makes of every fault. Stand-ins on loopback sockets, nothing mocked."""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest
from pydantic import BaseModel, Field

pytest.importorskip("pydantic_ai", reason="the extra `llm` is not installed")

from cognicraft.errors import (
    ContextOverflow,
    ModelAuthentication,
    ModelError,
    ModelNotFound,
    ModelRateLimited,
    ModelRefused,
    ModelReplyInvalid,
    ModelTimeout,
    ModelUnavailable,
    UsageError,
)
from cognicraft.models.catalog import Catalog
from cognicraft.models.llm import open_language_model
from cognicraft.protocols import LanguageModel
from cognicraft.records import Message, Usage
from provider_servers import ProviderServer, Reply, provider_server, tokens_of

NAMES = {
    "openai": "openai:gpt-4.1-mini",
    "gemini": "google:gemini-2.5-flash",
    "anthropic": "anthropic:claude-sonnet-4-6",
}
HELLO = [Message("user", "Hello there")]
TEXT = "The ferry leaves the harbour at nine."
SOON = {"retry-after-ms": "20"}
WRONG_KEY = "sk-wrong-0123456789abcdefghij"


@pytest.fixture(params=["openai", "gemini", "anthropic"])
def server(request: pytest.FixtureRequest) -> Iterator[ProviderServer]:
    with provider_server(request.param) as server:
        yield server


@pytest.fixture
def openai_server() -> Iterator[ProviderServer]:
    with provider_server("openai") as server:
        yield server


def opened(server: ProviderServer, name: str = "", **settings: object) -> LanguageModel:
    given: dict[str, object] = {"api_key": "test-key", "timeout_s": 20.0, "retries": 2} | settings
    return open_language_model(name or NAMES[server.protocol], base_url=server.base_url, **given)  # type: ignore[arg-type]


def ask(model: LanguageModel, how: str) -> str:
    if how == "complete":
        return model.complete(HELLO).text
    return "".join(model.stream(HELLO))


both = pytest.mark.parametrize("how", ["complete", "stream"])


class Plan(BaseModel):
    intent: Literal["find", "compare"]
    parts: list[str] = Field(min_length=1)


GOOD = json.dumps({"intent": "find", "parts": ["ferry"]})


# ── what is sent and what comes back ──────────────────────────────────────────────────────────────────────────


def test_messages_go_in_order_with_the_models_settings(server: ProviderServer) -> None:
    turns = [
        Message("system", "Be brief."),
        Message("user", "First"),
        Message("assistant", "Yes?"),
        Message("user", "Second"),
    ]
    with closing(opened(server, temperature=0.0, max_output_tokens=77)) as model:
        model.complete(turns)
        list(model.stream(turns, max_tokens=5))
    first, second = server.requests
    assert first.messages == second.messages == [(turn.role, turn.text) for turn in turns]
    assert (first.max_tokens, second.max_tokens) == (77, 5)
    assert first.temperature == second.temperature == 0
    assert (first.stream, second.stream) == (False, True)
    assert first.model == NAMES[server.protocol].partition(":")[2]


@both
def test_usage_is_what_the_provider_counted_and_priced_by_the_catalog(
    server: ProviderServer, how: str, tmp_path: Path
) -> None:
    provider, _, name = NAMES[server.protocol].partition(":")
    prices = "input_usd = 2.0\noutput_usd = 10.0\ncached_usd = 0.5"
    file = tmp_path / "catalog.toml"
    file.write_text(f'[{provider}.models."{name}"]\n{prices}\n')
    server.respond = lambda request: Reply(text=TEXT, cached_tokens=1)
    with closing(opened(server, catalog=Catalog.load(file))) as model:
        usage = model.complete(HELLO).usage
        if how == "stream":
            stream = model.stream(HELLO)
            list(stream)
            usage = stream.completion.usage
    asked, said = tokens_of("Hello there"), tokens_of(TEXT)
    cost = ((asked - 1) * 2.0 + 1 * 0.5 + said * 10.0) / 1e6
    assert usage == Usage(calls=1, input_tokens=asked, output_tokens=said, cost_usd=pytest.approx(cost))


@both
def test_a_reply_cut_at_its_limit_says_so(server: ProviderServer, how: str) -> None:
    server.respond = lambda request: Reply(text=TEXT, finish="length")
    with closing(opened(server)) as model:
        stream = model.stream(HELLO)
        list(stream)
        assert (model.complete(HELLO) if how == "complete" else stream.completion).finish == "length"


def test_stable_prefixes_become_cache_points_of_anthropic_and_plain_text_elsewhere(server: ProviderServer) -> None:
    turns = [
        Message("system", "Be brief.", stable=True),
        Message("user", "A long document", stable=True),
        Message("user", "A question"),
    ]
    with closing(opened(server)) as model:
        model.complete(turns)
    body = json.dumps(server.requests[0].body)
    assert body.count("cache_control") == (2 if server.protocol == "anthropic" else 0)
    if server.protocol == "anthropic":
        (user,) = server.requests[0].body["messages"]
        assert [("cache_control" in part) for part in user["content"]] == [True, False]
    if server.protocol == "openai":
        assert all(isinstance(message["content"], str) for message in server.requests[0].body["messages"])


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("openai:gpt-5-mini", "max_completion_tokens"),
        ("compatible:x", "max_tokens"),
        ("ollama:llama3.2:3b", "max_tokens"),
        ("mistral:mistral-small-latest", "max_tokens"),
        ("groq:openai/gpt-oss-20b", "max_tokens"),
        ("openrouter:openai/gpt-4.1-mini", "max_tokens"),
        ("azure:my-deployment", "max_completion_tokens"),
    ],
)
def test_each_provider_of_the_openai_protocol_is_asked_as_it_understands(
    openai_server: ProviderServer, name: str, field: str
) -> None:
    """An unknown limit would be no limit at all."""
    openai_server.respond = lambda request: Reply(text=GOOD if request.schema else "Hello")
    with closing(opened(openai_server, name, max_output_tokens=33, context_tokens=1000)) as model:
        assert model.complete(HELLO).text == "Hello"
        assert "".join(model.stream(HELLO)) == "Hello"
        assert model.structured(HELLO, Plan)[0].parts == ["ferry"]
    for request in openai_server.requests:
        assert request.body[field] == 33
        assert request.body["model"] == name.partition(":")[2]
        assert request.key == "test-key"
    assert openai_server.requests[1].body["stream_options"] == {"include_usage": True}


def test_azure_with_a_dated_interface(openai_server: ProviderServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_VERSION", "2025-01-01-preview")
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", openai_server.address)
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "test-key")
    with closing(open_language_model("azure:mine")) as model:
        assert model.complete(HELLO).text == "Echo: Hello there"
    path = openai_server.requests[0].path
    assert path == "/openai/deployments/mine/chat/completions?api-version=2025-01-01-preview"


def test_keys_and_addresses_come_from_the_providers_variables(
    server: ProviderServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    variables = {
        "openai": ("OPENAI_API_KEY", "OPENAI_BASE_URL"),
        "gemini": ("GEMINI_API_KEY", "GOOGLE_GEMINI_BASE_URL"),
        "anthropic": ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"),
    }[server.protocol]
    server.key = "from-the-environment"
    monkeypatch.setenv(variables[0], "from-the-environment")
    monkeypatch.setenv(variables[1], server.base_url)
    with closing(open_language_model(NAMES[server.protocol])) as model:
        assert model.complete(HELLO).text == "Echo: Hello there"


def test_google_api_key_serves_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GEMINI_API_KEY", raising=False)
    monkeypatch.setenv("GOOGLE_API_KEY", "other")
    with provider_server("gemini") as server:
        server.key = "other"
        with closing(open_language_model("gemini:gemini-2.5-flash", base_url=server.base_url)) as model:
            assert model.name == "google:gemini-2.5-flash"
            assert model.complete(HELLO).text == "Echo: Hello there"


def test_a_proxy_of_the_environment_is_not_asked_for_this_machine(
    openai_server: ProviderServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    with closing(opened(openai_server, "compatible:x")) as model:
        assert model.complete(HELLO).text == "Echo: Hello there"


# ── names ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("opanai:gpt-5", "Did you mean openai:gpt-5?"),
        ("antropic:claude", "Did you mean anthropic:claude?"),
        ("gpt-5", "names no provider"),
        ("openai:", "names a provider but no model"),
        ("openai", "openai:small"),
        ("", "names no provider"),
        ("model.gguf", "Did you mean local:model.gguf?"),
        ("compatible:x", "address of its server"),
        ("openai:smal", "Did you mean openai:small?"),
    ],
)
def test_a_name_that_cannot_be_meant_is_answered_with_the_nearest(name: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        open_language_model(name, api_key="test-key")
    assert said in str(caught.value)


def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(UsageError, match="http://"):
        open_language_model("compatible:x", base_url="localhost:8000")


@pytest.mark.parametrize(
    ("name", "variable"),
    [("openai:x", "OPENAI_API_KEY"), ("google:x", "GEMINI_API_KEY"), ("groq:x", "GROQ_API_KEY")],
)
def test_a_missing_key_names_its_variable(name: str, variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for unset in ("OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "GROQ_API_KEY"):
        monkeypatch.delenv(unset, raising=False)
    with pytest.raises(ModelAuthentication) as caught:
        open_language_model(name)
    assert variable in str(caught.value)


# ── faults ────────────────────────────────────────────────────────────────────────────────────────────────────

ALWAYS = {
    # what the stand-in does · the error · how often it is asked with two retries
    "too many requests": (Reply(status=429, headers=SOON), ModelRateLimited, 3),
    "failure at the provider": (Reply(status=500, headers=SOON), ModelUnavailable, 3),
    "overloaded": (Reply(status=503, headers=SOON), ModelUnavailable, 3),
    "rejected": (Reply(status=400), ModelError, 1),
    "forbidden": (Reply(status=403), ModelAuthentication, 1),
    "overflow": (Reply(overflow=True), ContextOverflow, 1),
    "refusal": (Reply(refusal=True), ModelRefused, 1),
    "content filter": (Reply(text=TEXT, finish="content_filter"), ModelRefused, 1),
    "not JSON": (Reply(malformed=True), ModelReplyInvalid, 1),
}


@both
@pytest.mark.parametrize("fault", ALWAYS)
def test_a_fault_is_one_clear_error_and_retried_only_where_it_helps(
    server: ProviderServer, fault: str, how: str
) -> None:
    reply, kind, tries = ALWAYS[fault]
    server.respond = lambda request: reply
    with closing(opened(server)) as model, pytest.raises(ModelError) as caught:
        ask(model, how)
    assert type(caught.value) is kind or (kind is ModelError and isinstance(caught.value, ModelError))
    assert len(server.requests) == tries
    assert_clear(caught.value, model, "test-key")
    if tries > 1:
        assert f"({tries} tries)" in str(caught.value)


@both
@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_passing_fault_is_overcome(server: ProviderServer, status: int, how: str) -> None:
    server.queue(Reply(status=status, headers=SOON), Reply(text=TEXT))
    with closing(opened(server)) as model:
        assert ask(model, how) == TEXT
    assert len(server.requests) == 2


@both
def test_a_wrong_key_is_asked_once_and_never_shown(server: ProviderServer, how: str) -> None:
    with closing(opened(server, api_key=WRONG_KEY)) as model, pytest.raises(ModelAuthentication) as caught:
        ask(model, how)
    assert len(server.requests) == 1
    assert_clear(caught.value, model, WRONG_KEY)
    assert caught.value.__cause__ is None


def test_a_key_that_a_provider_repeats_is_taken_out(server: ProviderServer) -> None:
    server.key = None
    server.respond = lambda request: Reply(status=400, message=f"Bad header {WRONG_KEY} in request")
    with closing(opened(server, api_key=WRONG_KEY)) as model, pytest.raises(ModelError) as caught:
        model.complete(HELLO)
    assert "Bad header ***" in str(caught.value)
    assert_clear(caught.value, model, WRONG_KEY)


@both
def test_an_unknown_model_is_asked_for_once(server: ProviderServer, how: str) -> None:
    server.models = {"another"}
    with closing(opened(server)) as model, pytest.raises(ModelNotFound) as caught:
        ask(model, how)
    assert len(server.requests) == 1
    assert model.name.partition(":")[2] in str(caught.value)


@both
def test_silence_ends_at_the_time_limit_and_hangs_up(server: ProviderServer, how: str) -> None:
    server.respond = lambda request: Reply(hang_s=30)
    began = time.monotonic()
    with closing(opened(server, timeout_s=0.3)) as model, pytest.raises(ModelTimeout) as caught:
        ask(model, how)
    assert time.monotonic() - began < 5
    assert_clear(caught.value, model, "test-key")
    assert_soon(lambda: server.cancelled == 1)


def test_a_callers_own_time_limit_holds_while_it_waits_for_a_slot(openai_server: ProviderServer) -> None:
    openai_server.respond = lambda request: Reply(hang_s=30)
    with closing(opened(openai_server, concurrency=1)) as model:
        stream = model.stream(HELLO)
        with pytest.raises(ModelTimeout):
            model.complete(HELLO, timeout_s=0.2)
        stream.close()


def test_a_pause_longer_than_the_time_limit_is_not_waited_for(server: ProviderServer) -> None:
    server.respond = lambda request: Reply(status=429, headers={"retry-after": "40"})
    began = time.monotonic()
    with closing(opened(server, timeout_s=2)) as model, pytest.raises(ModelRateLimited) as caught:
        model.complete(HELLO)
    assert time.monotonic() - began < 2
    assert len(server.requests) == 1
    assert "Wait 40 s" in caught.value.remedy


def test_retry_after_is_waited_for(server: ProviderServer) -> None:
    server.queue(Reply(status=429, headers={"retry-after": "1"}))
    began = time.monotonic()
    with closing(opened(server)) as model:
        model.complete(HELLO)
    assert time.monotonic() - began >= 1


def test_a_broken_connection_is_tried_again(server: ProviderServer) -> None:
    server.queue(Reply(text=TEXT, break_after=30))
    with closing(opened(server)) as model:
        assert model.complete(HELLO).text == "Echo: Hello there"
    assert len(server.requests) == 2


MIDWAY = {
    "cut": (Reply(text=TEXT, break_after=12), ModelUnavailable),
    "ended without an end": (Reply(text=TEXT, ends_after=12), ModelUnavailable),
    "failing": (Reply(text=TEXT, failing_after=12), ModelUnavailable),
    "silent": (Reply(text=TEXT, hang_after=12, hang_s=30), ModelTimeout),
}


@pytest.mark.parametrize("fault", MIDWAY)
def test_half_a_stream_is_given_then_an_error_and_never_asked_again(server: ProviderServer, fault: str) -> None:
    reply, kind = MIDWAY[fault]
    server.respond = lambda request: reply
    with closing(opened(server, timeout_s=0.5 if fault == "silent" else 20)) as model:
        stream = model.stream(HELLO)
        got: list[str] = []
        with pytest.raises(kind) as caught:
            got.extend(stream)
        assert "".join(got) == TEXT[:12] == stream.completion.text
        assert stream.completion.usage.calls == 1
        assert stream.completion.usage.output_tokens > 0
    assert len(server.requests) == 1
    assert_clear(caught.value, model, "test-key")


def test_nothing_listens(server: ProviderServer) -> None:
    address = server.base_url
    server.close()
    with (
        closing(open_language_model(NAMES[server.protocol], base_url=address, api_key="test-key", retries=0)) as model,
        pytest.raises(ModelUnavailable) as caught,
    ):
        model.complete(HELLO)
    assert "cannot be reached" in str(caught.value)
    assert address in str(caught.value)


# ── cancelling, closing, side by side ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("way", ["closed", "dropped", "dropped unread", "model closed"])
def test_leaving_a_stream_hangs_up_at_the_provider(server: ProviderServer, way: str) -> None:
    server.respond = lambda request: Reply(text="word " * 2000, pace_s=0.01)
    with closing(opened(server)) as model:
        stream = model.stream(HELLO)
        assert_soon(lambda: server.running == 1)
        if way != "dropped unread":
            pieces = iter(stream)
            next(pieces)
        if way == "closed":
            stream.close()
        elif way == "model closed":
            model.close()
            with pytest.raises(ModelUnavailable, match="closed"):
                list(stream)
        else:
            pieces = None
            del stream
            gc.collect()
        assert_soon(lambda: server.cancelled == 1)


def test_closing_ends_a_call_under_way(server: ProviderServer) -> None:
    server.respond = lambda request: Reply(hang_s=30)
    model = opened(server)
    caught: list[BaseException] = []

    def call() -> None:
        try:
            model.complete(HELLO)
        except BaseException as error:
            caught.append(error)

    thread = threading.Thread(target=call)
    thread.start()
    assert_soon(lambda: server.running == 1)
    model.close()
    thread.join(5)
    assert [type(error) for error in caught] == [ModelUnavailable]
    assert_soon(lambda: server.cancelled == 1)


INTERRUPTED = """
import sys
from cognicraft.models.llm import open_language_model
from cognicraft.records import Message
model = open_language_model("compatible:x", base_url=sys.argv[1], api_key="test-key")
try:
    if sys.argv[2] == "complete":
        model.complete([Message("user", "Hello")])
    else:
        for piece in model.stream([Message("user", "Hello")]):
            pass
except KeyboardInterrupt:
    print("interrupted", flush=True)
    sys.stdin.read()
"""


@both
def test_an_interrupt_hangs_up_at_the_provider(openai_server: ProviderServer, how: str) -> None:
    openai_server.respond = lambda request: Reply(hang_s=60)
    program = [sys.executable, "-c", INTERRUPTED, openai_server.base_url, how]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert_soon(lambda: openai_server.running == 1, within_s=60)
        os.kill(process.pid, signal.SIGINT)
        # The process still lives: it is the interrupt that hangs up, not its end.
        assert process.stdout is not None
        assert process.stdout.readline() == "interrupted\n"
        assert_soon(lambda: openai_server.cancelled == 1)
        process.communicate("")


def test_at_most_so_many_calls_run_side_by_side(openai_server: ProviderServer) -> None:
    openai_server.respond = lambda request: Reply(text="done", hang_s=0.1)
    with closing(opened(openai_server, concurrency=3)) as model:
        threads = [threading.Thread(target=model.complete, args=(HELLO,)) for _ in range(9)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(openai_server.requests) == 9
    assert openai_server.most_running == 3


# ── structured replies ────────────────────────────────────────────────────────────────────────────────────────


def test_the_schema_is_given_to_the_provider(server: ProviderServer) -> None:
    server.respond = lambda request: Reply(text=GOOD)
    with closing(opened(server)) as model:
        value, usage = model.structured(HELLO, Plan)
    assert value == Plan(intent="find", parts=["ferry"])
    assert usage.calls == 1
    schema = server.requests[0].schema
    assert schema is not None
    assert set(schema["properties"]) == {"intent", "parts"}


@pytest.mark.parametrize(
    "reply",
    [
        f"```json\n{GOOD}\n```",
        f"Sure! Here is the plan:\n{GOOD}\nAnything else?",
        f"<think>perhaps {{this}} or [that]</think>{GOOD}",
        json.dumps({"plan": json.loads(GOOD)}),
        json.dumps([json.loads(GOOD)]),
        GOOD.replace('"ferry"', '"fer\nry"'),
    ],
)
def test_words_and_fences_round_the_json_are_forgiven(openai_server: ProviderServer, reply: str) -> None:
    openai_server.respond = lambda request: Reply(text=reply)
    with closing(opened(openai_server)) as model:
        assert model.structured(HELLO, Plan)[0].intent == "find"
    assert len(openai_server.requests) == 1


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ("I would rather not use JSON.", "it holds no JSON object"),
        (json.dumps({"intent": "dance", "parts": ["x"]}), "intent: input should be 'find' or 'compare'"),
        (json.dumps({"intent": "find", "parts": []}), "parts: list should have at least 1 item"),
        (GOOD[:-4], "it holds no JSON object"),
    ],
)
def test_a_bad_reply_is_asked_again_with_what_was_wrong(server: ProviderServer, bad: str, said: str) -> None:
    server.queue(Reply(text=bad), Reply(text=GOOD))
    with closing(opened(server)) as model:
        value, usage = model.structured(HELLO, Plan)
    assert value.intent == "find"
    assert usage.calls == 2
    first, second = server.requests
    assert second.messages[0] == first.messages[0] == ("user", "Hello there")
    assert second.messages[1] == ("assistant", bad)
    role, words = second.messages[2]
    assert role == "user"
    assert said in words
    assert '"intent"' in words


def test_three_bad_replies_are_an_error_that_tells_what_they_took(server: ProviderServer) -> None:
    server.respond = lambda request: Reply(text='{"intent": "dance"}')
    with closing(opened(server)) as model, pytest.raises(ModelReplyInvalid) as caught:
        model.structured(HELLO, Plan)
    assert len(server.requests) == 3
    assert "intent: input should be" in str(caught.value)
    assert caught.value.__dict__["usage"].calls == 3


def test_a_server_that_knows_no_schemas_is_asked_in_words(openai_server: ProviderServer) -> None:
    def respond(request: object) -> Reply:
        if "response_format" in request.body:  # type: ignore[attr-defined]
            return Reply(status=400, message="response_format is not supported")
        return Reply(text=GOOD)

    openai_server.respond = respond
    with closing(opened(openai_server, "compatible:x")) as model:
        assert model.structured(HELLO, Plan)[0].intent == "find"
        assert model.structured(HELLO, Plan)[0].intent == "find"
    formats = ["response_format" in request.body for request in openai_server.requests]
    assert formats == [True, False, False], "asked for the schema once, then in words"
    assert "JSON schema" in openai_server.requests[-1].text


@pytest.mark.parametrize("fault", ["refusal", "overflow", "too many requests", "not JSON"])
def test_faults_of_a_structured_call_are_those_of_any_call(server: ProviderServer, fault: str) -> None:
    reply, kind, tries = ALWAYS[fault]
    server.respond = lambda request: replace(reply, text=GOOD)
    with closing(opened(server)) as model, pytest.raises(kind):
        model.structured(HELLO, Plan)
    assert len(server.requests) == tries


# ── cost of having it ─────────────────────────────────────────────────────────────────────────────────────────


def test_nothing_heavy_is_imported_until_a_model_is_opened() -> None:
    program = (
        "import sys, cognicraft.models.llm, cognicraft.models.meter, cognicraft.models.cached, "
        "cognicraft.models.catalog, cognicraft.models.ollama\n"
        "heavy = {'pydantic_ai', 'openai', 'anthropic', 'google.genai', 'httpx', 'httpx2', 'xllamacpp'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# ── what the tests say often ──────────────────────────────────────────────────────────────────────────────────


def assert_clear(error: ModelError, model: LanguageModel, key: str) -> None:
    """One sentence that names the model, one that says what to do, no key, no words of a library."""
    said = str(error)
    assert model.name in said
    assert error.message.endswith(".")
    assert error.remedy.endswith(".")
    assert "\n" not in said
    assert key not in said
    for foreign in ("Traceback", "pydantic", "httpx", "status_code", "None", "Errno"):
        assert foreign not in said


def assert_soon(condition: object, *, within_s: float = 5.0) -> None:
    end = time.monotonic() + within_s
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < end, "did not come about in time"
        time.sleep(0.01)
