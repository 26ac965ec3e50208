"""Replies are kept by what was asked, whole ones only, and survive threads, processes and damage."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from pydantic import BaseModel

pytest.importorskip("pydantic_ai", reason="the extra `llm` is not installed")

from cognicraft.errors import ModelUnavailable
from cognicraft.models.cached import CachedModel
from cognicraft.models.llm import open_language_model
from cognicraft.records import Message, Usage
from provider_servers import ProviderServer, Reply, provider_server

HELLO = [Message("system", "Be brief."), Message("user", "Hello there")]
TEXT = "Hello to you, and a good day — 東京 \ud83d\ude00."


class Word(BaseModel):
    word: str


class Other(BaseModel):
    word: str
    more: int = 0


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    with provider_server("openai") as server:
        server.respond = lambda request: Reply(text='{"word": "yes"}' if request.schema else TEXT)
        yield server


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "kept"


@pytest.fixture
def model(server: ProviderServer, folder: Path) -> Iterator[CachedModel]:
    with closing(opened(server, folder)) as model:
        yield model


def opened(server: ProviderServer, folder: Path, name: str = "compatible:x", **settings: float) -> CachedModel:
    inner = open_language_model(name, base_url=server.base_url, api_key="test-key", retries=0, **settings)  # type: ignore[arg-type]
    return CachedModel(inner, folder)


def test_the_same_call_is_asked_once(model: CachedModel, server: ProviderServer) -> None:
    first, second = model.complete(HELLO), model.complete(HELLO)
    assert first.text == second.text == TEXT.encode("utf-16", "surrogatepass").decode("utf-16")
    assert first.usage.calls == 1
    assert second.usage == Usage(cached_calls=1)
    assert (second.model, second.finish) == (first.model, first.finish)
    assert len(server.requests) == 1


def test_a_stream_and_a_completion_share_what_is_kept(model: CachedModel, server: ProviderServer) -> None:
    stream = model.stream(HELLO)
    pieces = list(stream)
    again = model.stream(HELLO)
    assert "".join(again) == "".join(pieces) == again.completion.text == model.complete(HELLO).text
    assert again.completion.usage == Usage(cached_calls=1)
    assert list(again) == []
    assert len(server.requests) == 1


def test_structured_replies_are_kept_by_schema(model: CachedModel, server: ProviderServer) -> None:
    assert model.structured(HELLO, Word)[0] == model.structured(HELLO, Word)[0] == Word(word="yes")
    assert model.structured(HELLO, Word)[1] == Usage(cached_calls=1)
    assert len(server.requests) == 1
    assert model.structured(HELLO, Other)[0] == Other(word="yes")
    assert len(server.requests) == 2


def test_anything_that_changes_the_reply_is_another_call(server: ProviderServer, folder: Path) -> None:
    models = [
        opened(server, folder),
        opened(server, folder, "compatible:y"),
        opened(server, folder, temperature=0.7),
        opened(server, folder, max_output_tokens=99),
    ]
    for model in models:
        with closing(model):
            model.complete(HELLO)
            model.complete(HELLO, max_tokens=7)
            model.complete([Message("user", "Be brief."), Message("user", "Hello there")])
            model.complete([Message("system", "Be brief.Hello"), Message("user", " there")])
    # The limit of a call replaces the model's own, so the last one shares that reply with the first.
    assert len(server.requests) == 4 * 4 - 1


def test_what_is_only_a_mark_for_the_provider_changes_nothing(model: CachedModel, server: ProviderServer) -> None:
    model.complete(HELLO)
    model.complete([Message("system", "Be brief.", stable=True), HELLO[1]])
    assert len(server.requests) == 1


def test_half_a_stream_is_not_kept(model: CachedModel, server: ProviderServer) -> None:
    server.queue(Reply(text=TEXT, break_after=6))
    with pytest.raises(ModelUnavailable):
        list(model.stream(HELLO))
    stream = model.stream(HELLO)
    next(iter(stream))
    stream.close()
    assert len(list(model.stream(HELLO))) > 1
    assert len(server.requests) == 3
    model.complete(HELLO)
    assert len(server.requests) == 3


def test_an_error_is_not_kept(model: CachedModel, server: ProviderServer) -> None:
    server.queue(Reply(status=500))
    with pytest.raises(ModelUnavailable):
        model.complete(HELLO)
    assert model.complete(HELLO).usage.calls == 1


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"text": 3}', b"\xff\xfe"])
def test_a_damaged_file_is_asked_for_again_and_mended(
    model: CachedModel, server: ProviderServer, folder: Path, damage: bytes
) -> None:
    model.complete(HELLO)
    (file,) = folder.rglob("*.json")
    file.write_bytes(damage)
    assert model.complete(HELLO).usage.calls == 1
    assert model.complete(HELLO).usage.cached_calls == 1


def test_a_kept_value_that_no_longer_fits_is_asked_for_again(
    model: CachedModel, server: ProviderServer, folder: Path
) -> None:
    model.structured(HELLO, Word)
    (file,) = folder.rglob("*.json")
    file.write_text(json.dumps({"value": {"word": 3}}))
    assert model.structured(HELLO, Word)[1].calls == 1


def test_a_folder_that_cannot_be_written_to_is_said_and_does_not_stop(server: ProviderServer, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    with closing(opened(server, blocked)) as model:
        assert model.complete(HELLO).usage.calls == 1
        assert model.complete(HELLO).usage.calls == 1
        (note,) = model.notes
    assert "compatible:x" in note
    assert str(blocked) in note


def test_threads_share_a_folder(model: CachedModel, folder: Path) -> None:
    asked = [[Message("user", f"Question {number % 5}")] for number in range(60)]
    with ThreadPoolExecutor(12) as pool:
        replies = list(pool.map(model.complete, asked))
    assert len({reply.text for reply in replies}) == 1
    assert len(list(folder.rglob("*.json"))) == 5
    assert len([file for file in folder.rglob("*") if file.is_file()]) == 5, "nothing half written is left"


PROCESS = """
import sys
from pathlib import Path
from cognicraft.models.cached import CachedModel
from cognicraft.models.llm import open_language_model
from cognicraft.records import Message
inner = open_language_model("compatible:x", base_url=sys.argv[1], api_key="test-key")
model = CachedModel(inner, Path(sys.argv[2]))
print(sum(model.complete([Message("user", f"Question {n}")]).usage.cached_calls for n in range(20)))
"""


def test_processes_share_a_folder(server: ProviderServer, folder: Path) -> None:
    command = [sys.executable, "-c", PROCESS, server.base_url, str(folder)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert all(process.communicate()[0] and process.returncode == 0 for process in running)
    third = subprocess.run(command, capture_output=True, text=True, check=True)
    assert third.stdout.strip() == "20"
