"""Encoders from the hub: from a cache that holds them, where the hub has none, and with no hub at all."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("fastembed", reason="the extra `hub` is not installed")

from cognicraft.errors import MissingExtra, ModelUnavailable
from cognicraft.models import hub
from cognicraft.models.hub import hub_embedder
from cognicraft.models.minilm import DATA, MiniLM
from cognicraft.models.provider_embedders import open_embedder
from cognicraft.protocols import Embedder
from cognicraft.testing.embedder import TEXTS, EmbedderConformance

LISTED = "sentence-transformers/all-MiniLM-L6-v2"
REVISION = "0123456789abcdef0123456789abcdef01234567"


def keep(cache: Path, repository: str, *, prompts: dict[str, str] | None = None) -> None:
    """Put the shipped encoder where the hub's own program keeps that repository."""
    root = cache / ("models--" + repository.replace("/", "--"))
    snapshot = root / "snapshots" / REVISION
    snapshot.mkdir(parents=True)
    (root / "refs").mkdir()
    (root / "refs" / "main").write_text(REVISION)
    for name in ("model.onnx", "tokenizer.json"):
        shutil.copy(DATA / name, snapshot / name)
    (snapshot / "config.json").write_text(json.dumps({"model_type": "bert", "pad_token_id": 0}))
    tokenizer = {"model_max_length": 256, "pad_token": "[PAD]"}
    (snapshot / "tokenizer_config.json").write_text(json.dumps(tokenizer))
    (snapshot / "special_tokens_map.json").write_text(json.dumps({"pad_token": "[PAD]", "cls_token": "[CLS]"}))
    if prompts:
        (snapshot / "config_sentence_transformers.json").write_text(json.dumps({"prompts": prompts}))


class TestThroughFastembed(EmbedderConformance):
    token_codes = False

    @pytest.fixture(scope="class")
    @classmethod
    def embedder(cls, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedder]:
        cache = tmp_path_factory.mktemp("hub")
        keep(cache, "Qdrant/all-MiniLM-L6-v2-onnx")
        with closing(hub_embedder(LISTED, cache_folder=cache)) as embedder:
            yield embedder

    def test_its_vectors_are_those_of_the_shipped_encoder(self, embedder: Embedder) -> None:
        with closing(MiniLM()) as shipped:
            pairs = zip(embedder.encode_documents(TEXTS), shipped.encode_documents(TEXTS), strict=True)
            assert all(float(ours.vector @ theirs.vector) > 0.9999 for ours, theirs in pairs)
            assert (embedder.max_tokens, embedder.max_text_tokens) == (256, 254)
            assert embedder.name == f"hub:{LISTED}"


def test_a_repository_that_fastembed_does_not_list_is_read_as_a_folder(tmp_path: Path) -> None:
    keep(tmp_path, "somebody/some-encoder", prompts={"query": "query: "})
    with (
        closing(hub_embedder("somebody/some-encoder", cache_folder=tmp_path)) as embedder,
        closing(MiniLM()) as shipped,
    ):
        assert embedder.name == "hub:somebody/some-encoder"
        ours, theirs = embedder.encode_query("boat"), shipped.encode_query("query: boat")
        assert float(np.dot(ours.vector, theirs.vector)) > 0.99999


def said_by(name: str, endpoint: str, cache: Path) -> str:
    """What opening says, in a process of its own: where the hub is, is read when its library is imported."""
    code = (
        "from cognicraft.models.provider_embedders import open_embedder\n"
        "from cognicraft.errors import CogniCraftError\n"
        f"try: open_embedder('hub:{name}')\n"
        "except CogniCraftError as error: print(error.code, error)"
    )
    environment = {"HF_ENDPOINT": endpoint, "COGNICRAFT_CACHE": str(cache), "PATH": ""}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=120)
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize("name", [LISTED, "somebody/some-encoder"])
def test_without_a_network_the_remedy_is_said_soon(name: str, tmp_path: Path) -> None:
    started = time.monotonic()
    said = said_by(name, "http://127.0.0.1:9", tmp_path)
    assert time.monotonic() - started < 30
    assert said.startswith(f"model-unavailable The encoder hub:{name} cannot be had from the hub")
    assert "then use onnx:FOLDER" in said


def test_a_name_that_the_hub_does_not_know_is_said(tmp_path: Path) -> None:
    class Hub(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(404)
            self.send_header("X-Error-Code", "RepoNotFound")
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Hub) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        said = said_by("somebody/absent", f"http://127.0.0.1:{server.server_address[1]}", tmp_path)
        server.shutdown()
    assert said.startswith("model-not-found The hub has no model somebody/absent")


def test_without_the_extra_its_name_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fastembed", None)
    with pytest.raises(MissingExtra, match=r"cognicraft\[hub\]"):
        open_embedder(f"hub:{LISTED}")


def test_a_cut_off_download_is_not_taken_for_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(tmp_path, "somebody/some-encoder")
    (tmp_path / "models--somebody--some-encoder" / "snapshots" / REVISION / "model.onnx").unlink()

    def unreachable(name: str, repository: str) -> None:
        raise ModelUnavailable("asked the hub")

    monkeypatch.setattr(hub, "_ask_hub", unreachable)
    with pytest.raises(ModelUnavailable, match="asked the hub"):
        hub_embedder("somebody/some-encoder", cache_folder=tmp_path)
