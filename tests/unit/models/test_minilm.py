"""The shipped encoder: what is on disk, what it says when that is damaged, and what loading imports."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cognicraft.errors import ModelFileError, UsageError
from cognicraft.models import minilm
from cognicraft.models.onnx import pack_signs

MODEL_SHA256 = "6aed0ce863249380a08384be69021f50a4a1f2a536d2f0712e4265349c303e02"


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "minilm"
    shutil.copytree(minilm.DATA, folder)
    monkeypatch.setattr(minilm, "DATA", folder)
    return folder


def test_the_shipped_files_are_those_of_the_manifest() -> None:
    minilm.verify()


def test_the_model_file_is_the_pinned_one() -> None:
    assert minilm.sha256_of(minilm.DATA / "model.onnx") == MODEL_SHA256


def test_the_model_file_stays_small() -> None:
    assert (minilm.DATA / "model.onnx").stat().st_size < 24_000_000


def test_licence_and_notice_lie_beside_the_model() -> None:
    assert "Apache License" in (minilm.DATA.parent / "LICENSE").read_text()
    assert "all-MiniLM-L6-v2" in (minilm.DATA.parent / "NOTICE").read_text()


def test_a_changed_byte_is_found_by_verify(copied: Path) -> None:
    data = bytearray((copied / "model.onnx").read_bytes())
    data[1_000_000] ^= 1
    (copied / "model.onnx").write_bytes(data)
    with pytest.raises(ModelFileError, match=r"model\.onnx.*not what was shipped.*pip install"):
        minilm.verify()


def test_a_file_cut_off_is_refused_on_load(copied: Path) -> None:
    (copied / "model.onnx").write_bytes((copied / "model.onnx").read_bytes()[:-1])
    with pytest.raises(ModelFileError, match="bytes instead of"):
        minilm.MiniLM()


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json", "mean.npy", "manifest.json"])
def test_an_absent_file_is_named_with_the_remedy(copied: Path, name: str) -> None:
    (copied / name).unlink()
    with pytest.raises(ModelFileError, match=rf"{name}.*pip install"):
        minilm.MiniLM()


def test_a_tokenizer_that_is_no_json_is_named(copied: Path) -> None:
    (copied / "tokenizer.json").write_text("{")
    with pytest.raises(ModelFileError, match=r"tokenizer\.json"):
        minilm.MiniLM()


def test_negative_threads_are_refused() -> None:
    with pytest.raises(UsageError, match="threads"):
        minilm.MiniLM(threads=-1)


def test_importing_the_module_does_not_import_the_runtime() -> None:
    heavy = ("onnxruntime", "tokenizers", "onnx")
    code = f"import sys, cognicraft.models.minilm; print([name for name in {heavy} if name in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


def test_a_text_uses_as_many_tokens_as_it_says() -> None:
    embedder = minilm.MiniLM(threads=1)
    text = "harbour " * 400
    (encoding,) = embedder.encode_documents([text], token_codes=True)
    assert encoding.token_codes is not None
    assert len(encoding.token_codes) == embedder.max_text_tokens == 254


def test_a_sign_is_that_of_the_direction_less_the_mean_whatever_the_length() -> None:
    mean = np.array([0.5, -0.5, 0, 0, 0, 0, 0, 0], np.float32)
    token = np.array([0.6, -0.8, 0, 0, 0, 0, 0, 0], np.float32)
    expected = [[0b10000000]]
    assert pack_signs(token[None], mean=mean).tolist() == expected
    assert pack_signs(10 * token[None], mean=mean).tolist() == expected
    assert pack_signs(0.1 * token[None], mean=mean).tolist() == expected
