"""A GGUF file run in this process, by llama.cpp.

Takes: the path of a file. Returns: the address of a server for it on a loopback port, with a key that only this
process knows. Method: `xllamacpp` serves the OpenAI protocol from its own threads, so that streaming, schemas and
cancelling go the same way as with any provider. Cost: the file in memory and a few seconds to load it; opened twice,
it is loaded once. What can go wrong: the file is absent, damaged, or of a kind that llama.cpp does not know.
"""

from __future__ import annotations

import json
import os
import secrets
import threading
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cognicraft.errors import MissingExtra, ModelFileError

THREADS = 2
_REMEDY = "Name a GGUF file of a chat model, for instance local:models/SmolLM2-135M-Instruct.Q4_1.gguf."

_lock = threading.Lock()
_running: dict[tuple[Path, int], RunningModel] = {}


@dataclass(slots=True)
class RunningModel:
    """A served file. `release` once for each `serve`; the last one ends the server."""

    address: str
    key: str
    context_tokens: int
    _place: tuple[Path, int]
    _server: Any
    _users: int = field(default=1)

    def release(self) -> None:
        with _lock:
            self._users -= 1
            if self._users == 0:
                _running.pop(self._place, None)
                self._server = None  # llama.cpp stops with its last reference


def serve(path: Path, *, context_tokens: int) -> RunningModel:
    """Load the file and serve it.

    context_tokens: memory is set aside for as many, at most as many as the model was trained for.
    Raises: ModelFileError, MissingExtra.
    """
    path = path.expanduser()
    _check(path)
    place = (path.resolve(), context_tokens)
    with _lock:
        running = _running.get(place)
        if running is not None:
            running._users += 1
            return running
        running = _started(path, context_tokens, place)
        _running[place] = running
        return running


def _check(path: Path) -> None:
    try:
        with path.open("rb") as file:
            magic = file.read(4)
    except OSError as error:
        reason = {FileNotFoundError: "there is no such file", IsADirectoryError: "it is a folder"}
        raise ModelFileError(str(path), reason=reason.get(type(error), str(error.strerror)), remedy=_REMEDY) from None
    if magic != b"GGUF":
        raise ModelFileError(str(path), reason="it is not a GGUF file", remedy=_REMEDY)


def _started(path: Path, context_tokens: int, place: tuple[Path, int]) -> RunningModel:
    # Threads that spin while they wait make two programs on one machine many times slower.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        import xllamacpp
    except ImportError as error:
        raise MissingExtra(f"The model file {path}", extra="local") from error
    key = secrets.token_hex(16)
    wanted = xllamacpp.CommonParams()
    wanted.model.path = str(path)
    wanted.n_ctx = context_tokens
    wanted.n_parallel = 1
    wanted.cpuparams.n_threads = wanted.cpuparams_batch.n_threads = min(THREADS, os.cpu_count() or 1)
    wanted.hostnames = ["127.0.0.1"]
    wanted.port = 0
    wanted.api_keys = [key]
    wanted.ui = False
    wanted.endpoint_slots = False
    wanted.verbosity = -1
    try:
        server = xllamacpp.Server(wanted)
        address = str(server.listening_address)
        told = _ask(f"{address}/props", key)
    except (RuntimeError, OSError, ValueError) as error:
        reason = "llama.cpp cannot load it; it is damaged, or of a kind that this version does not know"
        raise ModelFileError(str(path), reason=reason, remedy=_REMEDY) from error
    tokens = int(told.get("default_generation_settings", {}).get("n_ctx") or context_tokens)
    return RunningModel(f"{address}/v1", key, min(tokens, context_tokens), place, server)


def _ask(url: str, key: str) -> dict[str, Any]:
    request = urllib.request.Request(url, headers={"authorization": f"Bearer {key}"})
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=30) as response:
        value: dict[str, Any] = json.loads(response.read())
        return value
