"""Ollama on this machine: where it listens, and which of its models can chat.

Takes: nothing, or an address. Returns: names, and how much a model reads. Method: its own HTTP interface (`/api/tags`,
`/api/show`, `/api/ps`) through the standard library. Cost: one short request, then one for each model. What can go
wrong: nothing runs, which is an empty list or None.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

DEFAULT_PORT = 11434
DEFAULT_CONTEXT_TOKENS = 4096


def ollama_address(base_url: str | None = None, *, environment: Mapping[str, str] | None = None) -> str:
    """Address of the server, without a trailing slash or `/v1`: the one given, that of OLLAMA_HOST, or the usual one.

    OLLAMA_HOST is read as Ollama itself reads it: `host`, `host:port`, `:port` or a whole address. 0.0.0.0, which a
    server listens on, is this machine.
    """
    text = (base_url or (os.environ if environment is None else environment).get("OLLAMA_HOST", "")).strip()
    text = text.rstrip("/").removesuffix("/v1").rstrip("/")
    if not text:
        return f"http://127.0.0.1:{DEFAULT_PORT}"
    whole = "://" in text
    parts = urlsplit(text if whole else f"http://{text}")
    host = parts.hostname or "127.0.0.1"
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    host = f"[{host}]" if ":" in host else host
    # A whole address has the port of its scheme, as Ollama's own programs take it.
    port = parts.port or ({"http": 80, "https": 443}.get(parts.scheme, DEFAULT_PORT) if whole else DEFAULT_PORT)
    return f"{parts.scheme}://{host}:{port}{parts.path}"


def running_ollama(base_url: str | None = None, timeout_s: float = 0.3) -> list[str]:
    """Names of the models that can chat on the running server, newest first; none where nothing runs.

    timeout_s: for each request, in seconds.
    """
    address = ollama_address(base_url)
    if not _listens(address, timeout_s):
        return []
    try:
        listed = _ask(f"{address}/api/tags", None, timeout_s).get("models", [])
        newest_first = sorted(listed, key=lambda model: str(model.get("modified_at", "")), reverse=True)
        names = [str(model["name"]) for model in newest_first]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return []
    return [name for name in names if _can_chat(address, name, timeout_s)]


def ollama_context_tokens(address: str, name: str, *, timeout_s: float = 1.0) -> int | None:
    """Tokens that the server lets that model read; None where nothing runs or it has no such model.

    A loaded model says so itself. Else what its Modelfile sets (`num_ctx`), else OLLAMA_CONTEXT_LENGTH, else 4,096,
    the least that Ollama takes by itself; never more than the model was trained for. What is longer Ollama cuts off
    at the front without a word.
    """
    full = name if ":" in name.rpartition("/")[2] else f"{name}:latest"
    try:
        for loaded in _ask(f"{address}/api/ps", None, timeout_s).get("models") or []:
            if loaded.get("name") == full and loaded.get("context_length"):
                return int(loaded["context_length"])
        shown = _ask(f"{address}/api/show", {"model": name}, timeout_s)
        info = shown.get("model_info") or {}
        trained = next((int(value) for key, value in info.items() if key.endswith(".context_length")), None)
        lines = (line.split() for line in str(shown.get("parameters") or "").splitlines())
        set_to = next((int(line[1]) for line in lines if len(line) == 2 and line[0] == "num_ctx"), None)
        default = int(os.environ.get("OLLAMA_CONTEXT_LENGTH") or DEFAULT_CONTEXT_TOKENS)
    except (OSError, ValueError, TypeError, AttributeError):
        return None
    return min(set_to or default, trained or set_to or default)


def _can_chat(address: str, name: str, timeout_s: float) -> bool:
    try:
        shown = _ask(f"{address}/api/show", {"model": name}, timeout_s)
    except (OSError, ValueError):
        return "embed" not in name  # not told in time: by its name
    capabilities = shown.get("capabilities")
    if isinstance(capabilities, list):
        return "completion" in capabilities
    family = str((shown.get("details") or {}).get("family", ""))
    return "bert" not in family and "embed" not in name  # servers before capabilities were told


def _listens(address: str, timeout_s: float) -> bool:
    """Whether anything answers there at all: asked before what speaks HTTP is imported (30 ms of a cold start)."""
    import socket

    parts = urlsplit(address)
    try:
        with socket.create_connection((parts.hostname or "", parts.port or DEFAULT_PORT), timeout=timeout_s):
            return True
    except (OSError, ValueError):
        return False


def _ask(url: str, body: object, timeout_s: float) -> dict[str, Any]:
    import urllib.request

    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data=data, headers={"content-type": "application/json"})
    # A proxy of the environment cannot know the servers of this machine.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=timeout_s) as response:
        value = json.loads(response.read())
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")
    return value
