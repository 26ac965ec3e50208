"""Cross-encoders by name: a folder, a real download from a hub on this machine, and what is said without one."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cognicraft.errors import ModelFileError
from cognicraft.models.cross_encoder_hub import cross_encoder_named
from rerank_servers import hub_server
from tiny_cross_encoder import TinyCrossEncoder, tiny_cross_encoder

pytest.importorskip("huggingface_hub", reason="the extra `hub` is not installed")

REPOSITORY = "Xenova/ms-marco-MiniLM-L-6-v2"
ASK = """
import json, sys
from cognicraft.errors import CogniCraftError
from cognicraft.models.cross_encoder_hub import cross_encoder_named
try:
    reranker = cross_encoder_named(sys.argv[1])
    found = {"name": reranker.name, "scores": reranker.scores("when", ["bridge"])}
except CogniCraftError as error:
    found = {"error": type(error).__name__, "message": error.message, "remedy": error.remedy}
print(json.dumps(found | {"fastembed": "fastembed" in sys.modules}))
"""


@pytest.fixture
def tiny(tmp_path: Path) -> TinyCrossEncoder:
    return tiny_cross_encoder(tmp_path / "repository", file="onnx/model.onnx")


def _asked(name: str, home: Path, **variables: str) -> dict[str, object]:
    """What a fresh process makes of the name, with that cache; the hub's library reads its variables at import."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("HF_", "HUGGINGFACE_"))}
    environment = kept | {"HF_HOME": str(home / "hub"), "HF_HUB_DISABLE_TELEMETRY": "1"} | variables
    done = subprocess.run(
        [sys.executable, "-c", ASK, name], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_a_folder_is_taken_as_it_is(tiny: TinyCrossEncoder) -> None:
    reranker = cross_encoder_named(str(tiny.folder))
    assert reranker.scores("when", ["bridge"]) == pytest.approx(tiny.reference("when", "bridge"), abs=1e-4)


def test_no_name_is_the_small_english_one_fetched_once(tiny: TinyCrossEncoder, tmp_path: Path) -> None:
    with hub_server({REPOSITORY: tiny.folder}) as endpoint:
        fetched = _asked("", tmp_path, HF_ENDPOINT=endpoint)
    assert fetched["name"] == "ms-marco-MiniLM-L-6-v2"
    assert fetched["scores"] == pytest.approx(tiny.reference("when", "bridge"), abs=1e-4)
    # The hub is gone; what was fetched stays.
    again = _asked("ms-marco-MiniLM-L-6-v2", tmp_path, HF_ENDPOINT=endpoint)
    assert again["scores"] == fetched["scores"]
    assert not fetched["fastembed"]


def test_any_repository_that_holds_a_cross_encoder(tiny: TinyCrossEncoder, tmp_path: Path) -> None:
    with hub_server({"somebody/their-reranker": tiny.folder}) as endpoint:
        fetched = _asked("somebody/their-reranker", tmp_path, HF_ENDPOINT=endpoint)
    assert fetched["name"] == "somebody/their-reranker"
    assert fetched["scores"] == pytest.approx(tiny.reference("when", "bridge"), abs=1e-4)


def test_other_names_are_looked_up_in_fastembeds_list(tiny: TinyCrossEncoder, tmp_path: Path) -> None:
    pytest.importorskip("fastembed", reason="the extra `hub` is not installed")
    with hub_server({"Xenova/ms-marco-MiniLM-L-12-v2": tiny.folder}) as endpoint:
        fetched = _asked("xenova/MS-MARCO-minilm-l-12-v2", tmp_path, HF_ENDPOINT=endpoint)
    assert fetched["fastembed"]
    assert fetched["scores"] == pytest.approx(tiny.reference("when", "bridge"), abs=1e-4)


def test_a_download_that_was_cut_off_is_finished(tiny: TinyCrossEncoder, tmp_path: Path) -> None:
    with hub_server({REPOSITORY: tiny.folder}) as endpoint:
        _asked("", tmp_path, HF_ENDPOINT=endpoint)
        (model,) = (tmp_path / "hub").rglob("snapshots/*/onnx/model.onnx")
        model.unlink()
        assert "scores" in _asked("", tmp_path, HF_ENDPOINT=endpoint)


@pytest.mark.parametrize("name", ["ms-marco-MiniLM-L-6-v2", "BAAI/bge-reranker-v2-m3", "somebody/their-reranker"])
@pytest.mark.parametrize(
    "variables", [{"HF_HUB_OFFLINE": "1"}, {"HF_ENDPOINT": "http://127.0.0.1:9"}], ids=["offline", "unreachable"]
)
def test_without_a_network_it_names_the_remedy(tmp_path: Path, name: str, variables: dict[str, str]) -> None:
    found = _asked(name, tmp_path, **variables)
    assert found["error"] == "ModelUnavailable"
    assert name in str(found["message"])
    for part in ("hf download", "search.rerank_model", "HF_HOME"):
        assert part in str(found["remedy"])


def test_a_repository_that_does_not_exist(tmp_path: Path) -> None:
    with hub_server({}) as endpoint:
        found = _asked("nobody/nothing", tmp_path, HF_ENDPOINT=endpoint)
    assert found["error"] == "ModelNotFound"
    assert "nobody/nothing" in str(found["message"])


def test_a_repository_without_onnx_says_what_is_missing(tiny: TinyCrossEncoder, tmp_path: Path) -> None:
    shutil.rmtree(tiny.folder / "onnx")
    with hub_server({"somebody/torch-only": tiny.folder}) as endpoint:
        found = _asked("somebody/torch-only", tmp_path, HF_ENDPOINT=endpoint)
    assert found["error"] == "ModelFileError"
    assert "holds no ONNX cross-encoder" in str(found["message"])


@pytest.mark.parametrize("name", ["bge-reranker", "./not/there/at/all", "/no/such/folder", "a/b/c"])
def test_what_is_neither_a_folder_nor_a_name_is_refused(name: str) -> None:
    with pytest.raises(ModelFileError, match=r"no such folder.*ms-marco-MiniLM-L-6-v2"):
        cross_encoder_named(name)
