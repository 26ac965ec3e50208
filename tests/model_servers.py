"""Real model servers for tests, as fixtures. In `conftest.py`: `from model_servers import llama_server, ollama_server`.

Each is the server of `scripts/servers`, started for this session on a port of its own and ended with it; where it
was not prepared, tests skip with the command that prepares it. COGNICRAFT_TEST_LLAMA_URL and
COGNICRAFT_TEST_OLLAMA_URL name servers that run already. A test that kills a server takes its own: `own_server`.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parent.parent / "scripts" / "servers"
CHAT_MODEL = "smollm2:135m"
EMBEDDING_MODEL = "all-minilm"
START_S = 120
_VARIABLES = {"llama": "COGNICRAFT_TEST_LLAMA_URL", "ollama": "COGNICRAFT_TEST_OLLAMA_URL"}
# Read at import: conftest takes a person's own settings out of the environment.
_RUNNING = {name: os.environ.get(variable, "") for name, variable in _VARIABLES.items()}


@dataclass
class ModelServer:
    """A server that runs. url: without `/v1`; openai_url: with it."""

    url: str
    model: str = CHAT_MODEL
    process: subprocess.Popen[str] | None = field(default=None, repr=False)

    @property
    def openai_url(self) -> str:
        return f"{self.url}/v1"

    def kill(self) -> None:
        """End it and its children at once, as a crash does."""
        self._end(signal.SIGKILL)

    def close(self) -> None:
        self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> None:
        assert self.process is not None, "a server that somebody else started is not ended"
        if self.process.poll() is None:
            os.killpg(self.process.pid, how)
            try:
                self.process.wait(15)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait(15)
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


def missing(name: str) -> str:
    """Why that server cannot be had here; "" where it can."""
    folder = _cache() / "servers"
    how = f"python scripts/servers/{name}.py prepare"
    if not hasattr(os, "killpg"):
        return "the test servers need process groups, which this system has not"
    if not (folder / "smollm2" / "files").is_dir():
        return f"the model SmolLM2-135M was not downloaded: {how}"
    if name == "llama" and importlib.util.find_spec("xllamacpp") is None:
        return "the extra `local` is not installed"
    if name == "ollama" and not (folder / "ollama" / "models-ready").is_file():
        return f"Ollama was not built here: {how} (some minutes, once)"
    return ""


@contextlib.contextmanager
def own_server(name: str) -> Iterator[ModelServer]:
    """A server of one's own, which may be killed. name: "llama" or "ollama"."""
    if reason := missing(name):
        pytest.skip(reason)
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(
            [sys.executable, str(SCRIPTS / f"{name}.py"), "serve", "--until-stdin-closes"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
            start_new_session=True,
        )
        server = ModelServer("", process=process)
        try:
            assert process.stdout is not None
            readable, _, _ = select.select([process.stdout], [], [], START_S)
            server.url = process.stdout.readline().strip() if readable else ""
            if not server.url:
                said.seek(0)
                pytest.fail(f"scripts/servers/{name}.py did not start within {START_S} s: {said.read()[-2000:]}")
            yield server
        finally:
            server.close()


def _shared(name: str) -> Iterator[ModelServer]:
    if _RUNNING[name]:
        yield ModelServer(_RUNNING[name].rstrip("/"))
        return
    with own_server(name) as server:
        yield server


@pytest.fixture(scope="session")
def llama_server() -> Iterator[ModelServer]:
    """llama.cpp's server with `server.model`; one context of 4096 tokens per conversation."""
    yield from _shared("llama")


@pytest.fixture(scope="session")
def ollama_server() -> Iterator[ModelServer]:
    """Ollama with `server.model` and the encoder EMBEDDING_MODEL."""
    yield from _shared("ollama")


def _cache() -> Path:
    if chosen := os.environ.get("COGNICRAFT_CACHE"):
        return Path(chosen).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cognicraft"
