"""A GGUF file in this process: what cannot be loaded says why; what is loaded is shared and let go."""

from __future__ import annotations

import urllib.error
import urllib.request
from contextlib import closing
from pathlib import Path

import pytest

pytest.importorskip("pydantic_ai", reason="the extra `local` is not installed")
pytest.importorskip("xllamacpp", reason="the extra `local` is not installed")

from cognicraft.errors import ContextOverflow, ModelFileError, ModelTimeout
from cognicraft.models import local
from cognicraft.models.llm import open_language_model
from cognicraft.records import Message
from model_files import small_gguf

HELLO = [Message("user", "Hello there")]


@pytest.fixture(scope="module")
def file() -> Path:
    return small_gguf()


def test_an_absent_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="there is no such file") as caught:
        open_language_model(f"local:{tmp_path / 'none.gguf'}")
    assert str(tmp_path / "none.gguf") in str(caught.value)
    assert caught.value.remedy


def test_a_folder_and_another_kind_of_file_are_refused(tmp_path: Path) -> None:
    other = tmp_path / "notes.gguf"
    other.write_text("These are notes.")
    with pytest.raises(ModelFileError, match="not a GGUF file"):
        open_language_model(f"local:{other}")
    with pytest.raises(ModelFileError, match="it is a folder"):
        open_language_model(f"local:{tmp_path}")


def test_a_damaged_file_is_refused(file: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.gguf"
    damaged.write_bytes(file.read_bytes()[:200_000])
    with pytest.raises(ModelFileError, match="damaged"):
        open_language_model(f"local:{damaged}")


def test_a_file_is_loaded_once_and_let_go_with_its_last_user(file: Path) -> None:
    first = open_language_model(f"local:{file}", context_tokens=512)
    second = open_language_model(f"local:{file}", context_tokens=512)
    (running,) = local._running.values()
    first.close()
    assert second.complete(HELLO, max_tokens=4).usage.output_tokens > 0
    second.close()
    assert local._running == {}
    with pytest.raises(OSError):
        urllib.request.urlopen(running.address.removesuffix("/v1") + "/health", timeout=2)


def test_only_this_process_may_ask_it(file: Path) -> None:
    with closing(open_language_model(f"local:{file}", context_tokens=512)):
        (running,) = local._running.values()
        assert running.address.startswith("http://127.0.0.1:")
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(f"{running.address}/chat/completions", data=b"{}", timeout=5)
        assert caught.value.code == 401
        caught.value.close()


def test_overflow_time_limit_and_going_on_after_both(file: Path) -> None:
    with closing(open_language_model(f"local:{file}", context_tokens=512)) as model:
        assert model.context_tokens == 512
        with pytest.raises(ContextOverflow) as caught:
            model.complete([Message("user", "word " * 800)])
        assert str(file) in str(caught.value)
        with pytest.raises(ModelTimeout):
            model.complete([Message("user", "Tell a long story.")], max_tokens=400, timeout_s=0.3)
        stream = model.stream([Message("user", "Tell a long story.")], max_tokens=400)
        next(iter(stream))
        stream.close()
        assert model.complete(HELLO, max_tokens=4).usage.output_tokens in range(1, 5)
