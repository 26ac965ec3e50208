"""Encoders from ONNX folders: a tiny seeded model that the test writes, against numpy; and the shipped one."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from cognicraft.errors import ModelFileError, UsageError
from cognicraft.models.minilm import DATA, MiniLM
from cognicraft.models.onnx_folder import FolderEmbedder
from cognicraft.models.provider_embedders import open_embedder
from cognicraft.protocols import Embedder
from cognicraft.testing.embedder import TEXTS, EmbedderConformance

WORDS = ["[PAD]", "[CLS]", "[SEP]", "[UNK]", "bees", "boat", "dance", "harbour", "query", "passage", ":"]
TABLE = np.random.default_rng(5).standard_normal((len(WORDS), 16)).astype(np.float32)


def write_folder(folder: Path, *, inputs: tuple[str, ...] = ("input_ids", "attention_mask"), rank: int = 3) -> Path:
    """A model whose token vectors are rows of TABLE, or their sum for rank 2."""
    (folder / "onnx").mkdir(parents=True)
    nodes = [onnx.helper.make_node("Gather", ["table", "input_ids"], ["last_hidden_state"], axis=0)]
    shape: list[Any] = ["batch", "tokens", 16]
    output = "last_hidden_state"
    if rank == 2:
        nodes.append(onnx.helper.make_node("ReduceSum", [output, "axes"], ["sentence_embedding"], keepdims=0))
        output, shape = "sentence_embedding", ["batch", 16]
    graph = onnx.helper.make_graph(
        nodes,
        "tiny",
        [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.INT64, ["batch", "tokens"]) for name in inputs],
        [onnx.helper.make_tensor_value_info(output, onnx.TensorProto.FLOAT, shape)],
        [onnx.numpy_helper.from_array(TABLE, "table"), onnx.numpy_helper.from_array(np.array([1], np.int64), "axes")],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, str(folder / "onnx" / "model.onnx"))
    tokenizer = Tokenizer(models.WordLevel({word: index for index, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def write_json(path: Path, value: object) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")


def rows(*words: str) -> npt.NDArray[np.float32]:
    return TABLE[[WORDS.index(word) for word in words]]


def unit(vector: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    return vector / np.linalg.norm(vector)


class TestPooling:
    @pytest.mark.parametrize(
        ("mode", "expected"),
        [
            (None, rows("[CLS]", "bees", "dance", "[SEP]").mean(axis=0)),
            ({"pooling_mode_mean_tokens": True}, rows("[CLS]", "bees", "dance", "[SEP]").mean(axis=0)),
            ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, rows("[CLS]")[0]),
            ({"pooling_mode_max_tokens": True}, rows("[CLS]", "bees", "dance", "[SEP]").max(axis=0)),
            ({"pooling_mode_lasttoken": True}, rows("[SEP]")[0]),
            ({"pooling_mode": "cls"}, rows("[CLS]")[0]),
        ],
    )
    def test_is_that_of_the_folder(self, tmp_path: Path, mode: dict[str, Any] | None, expected: Any) -> None:
        folder = write_folder(tmp_path / "tiny")
        if mode is not None:
            write_json(folder / "1_Pooling" / "config.json", {"word_embedding_dimension": 16, **mode})
        (encoding,) = FolderEmbedder(folder).encode_documents(["bees dance"])
        assert np.allclose(encoding.vector, unit(expected), atol=1e-6)

    def test_a_sentence_vector_of_the_file_is_taken_as_it_is(self, tmp_path: Path) -> None:
        embedder = FolderEmbedder(write_folder(tmp_path / "tiny", rank=2))
        expected = unit(rows("[CLS]", "boat", "[SEP]").sum(axis=0))
        assert np.allclose(embedder.encode_query("boat").vector, expected, atol=1e-6)
        assert embedder.dimensions == 16

    @pytest.mark.parametrize(
        "mode",
        [
            {"pooling_mode_weightedmean_tokens": True},
            {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": True},
            {"pooling_mode": "attention"},
        ],
    )
    def test_a_way_that_is_not_known_is_refused(self, tmp_path: Path, mode: dict[str, Any]) -> None:
        folder = write_folder(tmp_path / "tiny")
        write_json(folder / "1_Pooling" / "config.json", mode)
        with pytest.raises(ModelFileError, match="pooling is not known"):
            FolderEmbedder(folder)


class TestPrompts:
    def test_are_those_of_the_folder(self, tmp_path: Path) -> None:
        folder = write_folder(tmp_path / "tiny")
        prompts = {"query": "query: ", "document": "passage: "}
        write_json(folder / "config_sentence_transformers.json", {"prompts": prompts, "default_prompt_name": None})
        embedder = FolderEmbedder(folder)
        asked = unit(rows("[CLS]", "query", ":", "boat", "[SEP]").mean(axis=0))
        stored = unit(rows("[CLS]", "passage", ":", "boat", "[SEP]").mean(axis=0))
        assert np.allclose(embedder.encode_query("boat").vector, asked, atol=1e-6)
        assert np.allclose(embedder.encode_documents(["boat"])[0].vector, stored, atol=1e-6)
        assert embedder.max_text_tokens == embedder.max_tokens - 4

    def test_that_are_not_to_count_are_left_out_of_the_mean(self, tmp_path: Path) -> None:
        folder = write_folder(tmp_path / "tiny")
        write_json(folder / "config_sentence_transformers.json", {"prompts": {"query": "query: "}})
        write_json(folder / "1_Pooling" / "config.json", {"pooling_mode_mean_tokens": True, "include_prompt": False})
        expected = unit(rows("boat", "[SEP]").mean(axis=0))
        assert np.allclose(FolderEmbedder(folder).encode_query("boat").vector, expected, atol=1e-6)

    def test_are_those_of_the_family_where_the_folder_names_none(self, tmp_path: Path) -> None:
        embedder = FolderEmbedder(write_folder(tmp_path / "multilingual-e5-tiny"))
        expected = unit(rows("[CLS]", "query", ":", "boat", "[SEP]").mean(axis=0))
        assert np.allclose(embedder.encode_query("boat").vector, expected, atol=1e-6)


class TestLimits:
    @pytest.mark.parametrize(
        ("file", "value", "tokens"),
        [
            ("sentence_bert_config.json", {"max_seq_length": 6}, 6),
            ("tokenizer_config.json", {"model_max_length": 7}, 7),
            ("tokenizer_config.json", {"model_max_length": 10**30}, 512),
            ("config.json", {"max_position_embeddings": 9, "model_type": "bert"}, 9),
            ("config.json", {"max_position_embeddings": 514, "model_type": "xlm-roberta"}, 512),
        ],
    )
    def test_come_from_the_folder(self, tmp_path: Path, file: str, value: dict[str, Any], tokens: int) -> None:
        folder = write_folder(tmp_path / "tiny")
        write_json(folder / file, value)
        embedder = FolderEmbedder(folder)
        assert embedder.max_tokens == tokens
        cut, whole = embedder.encode_documents(["bees " * tokens, "bees " * (tokens - 2)])
        assert np.array_equal(cut.vector, whole.vector)


class TestFolders:
    def test_the_fingerprint_knows_content_and_reading_but_not_the_place(self, tmp_path: Path) -> None:
        one = write_folder(tmp_path / "one")
        two = Path(shutil.copytree(one, tmp_path / "two"))
        assert FolderEmbedder(one).fingerprint == FolderEmbedder(two).fingerprint
        write_json(two / "1_Pooling" / "config.json", {"pooling_mode_cls_token": True})
        changed = FolderEmbedder(two).fingerprint
        (two / "onnx" / "model.onnx").write_bytes((one / "onnx" / "model.onnx").read_bytes() + b"\x72\x00")
        assert len({FolderEmbedder(one).fingerprint, changed, FolderEmbedder(two).fingerprint}) == 3

    def test_are_opened_by_name(self, tmp_path: Path) -> None:
        folder = write_folder(tmp_path / "tiny")
        embedder = open_embedder(f"onnx:{folder}")
        assert embedder.name == f"onnx:{folder}"
        assert embedder.encode_query("boat").token_codes is None

    def test_that_cannot_be_used_say_why(self, tmp_path: Path) -> None:
        with pytest.raises(ModelFileError, match="no such folder"):
            open_embedder(f"onnx:{tmp_path / 'absent'}")
        (tmp_path / "empty").mkdir()
        with pytest.raises(ModelFileError, match=r"holds no model\.onnx"):
            open_embedder(f"onnx:{tmp_path / 'empty'}")
        damaged = write_folder(tmp_path / "damaged")
        (damaged / "onnx" / "model.onnx").write_bytes(b"not a model")
        with pytest.raises(ModelFileError, match="damaged"):
            open_embedder(f"onnx:{damaged}")
        dense = write_folder(tmp_path / "dense")
        write_json(dense / "config.json", {})
        kinds = ["Transformer", "Pooling", "Dense"]
        path = dense / "modules.json"
        path.write_text(json.dumps([{"type": f"sentence_transformers.models.{kind}"} for kind in kinds]))
        with pytest.raises(ModelFileError, match=r"outside of its ONNX file: Dense"):
            open_embedder(f"onnx:{dense}")
        other = write_folder(tmp_path / "other", inputs=("input_ids", "pixel_values"))
        with pytest.raises(ModelFileError, match="pixel_values"):
            open_embedder(f"onnx:{other}")
        (other / "config.json").write_text("[")
        with pytest.raises(ModelFileError, match=r"config\.json"):
            open_embedder(f"onnx:{other}")
        with pytest.raises(UsageError):
            FolderEmbedder(damaged, threads=-1)


class TestTheShippedEncoderAsAFolder(EmbedderConformance):
    """A real model through the same code: its own pooling differs from ours by rounding only."""

    token_codes = False

    @pytest.fixture(scope="class")
    @classmethod
    def embedder(cls, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedder]:
        folder = tmp_path_factory.mktemp("minilm")
        for name in ("model.onnx", "tokenizer.json"):
            shutil.copy(DATA / name, folder / name)
        write_json(folder / "sentence_bert_config.json", {"max_seq_length": 256})
        write_json(folder / "1_Pooling" / "config.json", {"pooling_mode_mean_tokens": True})
        with closing(FolderEmbedder(folder)) as embedder:
            yield embedder

    def test_its_vectors_are_those_of_the_shipped_encoder(self, embedder: Embedder) -> None:
        with closing(MiniLM()) as shipped:
            pairs = zip(embedder.encode_documents(TEXTS), shipped.encode_documents(TEXTS), strict=True)
            assert all(float(ours.vector @ theirs.vector) > 0.99999 for ours, theirs in pairs)
            assert (embedder.max_tokens, embedder.max_text_tokens) == (shipped.max_tokens, shipped.max_text_tokens)
