"""The small real model that `scripts/servers` keeps outside the repository."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def small_gguf() -> Path:
    """Its file; where it was not fetched the test skips and says how."""
    chosen = os.environ.get("COGNICRAFT_CACHE")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cognicraft"
    folder = (Path(chosen).expanduser() if chosen else cache) / "servers" / "smollm2" / "files"
    path = next(iter(sorted(folder.glob("*.gguf"))), None)
    if path is None:
        pytest.skip("the model SmolLM2-135M was not fetched: python scripts/servers/llama.py prepare")
    return path
