"""Cross-encoders from folders made here: the scores of a numpy reference, long texts, and damaged folders."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from cognicraft.errors import ModelFileError, UsageError
from cognicraft.models.cross_encoder import CrossEncoder
from tiny_cross_encoder import TinyCrossEncoder, tiny_cross_encoder

QUESTION = "when was the bridge opened?"
PASSAGES = [
    "the bridge opened in 1932",
    "snow on the summit",
    "a ferry, of the river; was what? " * 6,
    "",
    "bee",
    "insulin & sugar 41.7",
]
CLOSE = 1e-4


@pytest.fixture(params=["bert", "xlm-roberta"])
def tiny(request: pytest.FixtureRequest, tmp_path: Path) -> TinyCrossEncoder:
    return tiny_cross_encoder(tmp_path / "model", family=request.param)


def _copied_words(count: int, *, seed: int = 1) -> str:
    letters = random.Random(seed)
    return " ".join(letters.choice(["bridge", "snow", "bee", "x7", "q", "of"]) for _ in range(count))


def test_scores_are_those_of_the_reference(tiny: TinyCrossEncoder) -> None:
    found = CrossEncoder(tiny.folder).scores(QUESTION, PASSAGES)
    expected = [tiny.reference(QUESTION, passage)[0] for passage in PASSAGES]
    assert found == pytest.approx(expected, abs=CLOSE)
    assert np.ptp(expected) > 100 * CLOSE


@pytest.mark.parametrize("batch", [1, 2, 64])
@pytest.mark.parametrize("threads", [1, 3])
def test_neither_batches_nor_threads_move_a_score(tiny: TinyCrossEncoder, batch: int, threads: int) -> None:
    reranker = CrossEncoder(tiny.folder, batch=batch, threads=threads)
    passages = [_copied_words(count, seed=count) for count in (90, 3, 41, 8, 20, 1, 60)]
    expected = [tiny.reference(QUESTION, passage)[0] for passage in passages]
    assert reranker.scores(QUESTION, passages) == pytest.approx(expected, abs=CLOSE)
    reranker.close()
    assert reranker.scores(QUESTION, passages) == pytest.approx(expected, abs=CLOSE)


def test_two_logits_score_by_their_difference(tmp_path: Path) -> None:
    tiny = tiny_cross_encoder(tmp_path / "model", logits=2)
    expected = [np.diff(tiny.reference(QUESTION, passage))[0] for passage in PASSAGES]
    assert CrossEncoder(tiny.folder).scores(QUESTION, PASSAGES) == pytest.approx(expected, abs=CLOSE)


def test_a_model_of_several_layers_and_heads(tmp_path: Path) -> None:
    tiny = tiny_cross_encoder(tmp_path / "model", layers=3, heads=4, width=32)
    expected = [tiny.reference(QUESTION, passage)[0] for passage in PASSAGES]
    assert CrossEncoder(tiny.folder).scores(QUESTION, PASSAGES) == pytest.approx(expected, abs=CLOSE)


def _of(tiny: TinyCrossEncoder, question: list[int], passage: list[int]) -> float:
    """The reference's score of token ids, between the special tokens of the family."""
    before, between, after = ([2], [3], [3]) if tiny.family == "bert" else ([0], [2, 2], [2])
    ids = [*before, *question, *between, *passage, *after]
    second = len(passage) + len(after) if tiny.family == "bert" else 0
    return float(tiny.reference_of(ids, [0] * (len(ids) - second) + [1] * second)[0])


def _tokens(tiny: TinyCrossEncoder, text: str) -> list[int]:
    return list(tiny.tokenizer.encode(text, add_special_tokens=False).ids)


def test_a_long_passage_counts_by_its_best_window(tiny: TinyCrossEncoder) -> None:
    special = 3 if tiny.family == "bert" else 4
    question, passage = _tokens(tiny, QUESTION), _tokens(tiny, _copied_words(90))
    room = 40 - special - len(question)
    step = room - room // 2
    starts = [*range(0, len(passage) - room, step), len(passage) - room]
    assert len(starts) > 4
    windows = [_of(tiny, question, passage[start : start + room]) for start in starts]
    assert int(np.argmax(windows)) > 0
    (found,) = CrossEncoder(tiny.folder, max_tokens=40).scores(QUESTION, [_copied_words(90)])
    assert found == pytest.approx(max(windows), abs=CLOSE)


def test_only_the_passage_is_cut_while_the_question_is_at_most_half(tiny: TinyCrossEncoder) -> None:
    special = 3 if tiny.family == "bert" else 4
    question = _tokens(tiny, QUESTION)
    window = special + 2 * len(question)
    passage = _tokens(tiny, "snow " * (len(question) + 1))
    halves = [_of(tiny, question, passage[: len(question)]), _of(tiny, question, passage[-len(question) :])]
    (found,) = CrossEncoder(tiny.folder, max_tokens=window).scores(QUESTION, ["snow " * (len(question) + 1)])
    assert found == pytest.approx(max(halves), abs=CLOSE)


def test_a_question_longer_than_half_is_cut_from_the_longer_side(tiny: TinyCrossEncoder) -> None:
    special = 3 if tiny.family == "bert" else 4
    long_question = _copied_words(60, seed=3)
    question, short = _tokens(tiny, long_question), _tokens(tiny, "snow year")
    both = 32 - special
    reranker = CrossEncoder(tiny.folder, max_tokens=32)
    (beside_a_short_one,) = reranker.scores(long_question, ["snow year"])
    assert beside_a_short_one == pytest.approx(_of(tiny, question[: both - len(short)], short), abs=CLOSE)
    passage = _tokens(tiny, ("snow " * 200).strip())
    (beside_a_long_one,) = reranker.scores(long_question, [("snow " * 200).strip()])
    half = both // 2
    assert beside_a_long_one == pytest.approx(_of(tiny, question[:half], passage[: both - half]), abs=CLOSE)


def test_the_models_own_positions_bound_the_window(tiny: TinyCrossEncoder, tmp_path: Path) -> None:
    small = tiny_cross_encoder(tmp_path / "small", family=tiny.family, positions=32)
    reranker = CrossEncoder(small.folder, max_tokens=512)
    assert reranker.max_tokens == 32
    assert None not in reranker.scores(QUESTION, [_copied_words(300)])


@pytest.mark.parametrize("file", ["model.onnx", "onnx/model.onnx", "onnx/model_quantized.onnx", "onnx/own_name.onnx"])
def test_the_model_is_found_where_exports_put_it(tmp_path: Path, file: str) -> None:
    tiny = tiny_cross_encoder(tmp_path / "model", file=file)
    assert CrossEncoder(tiny.folder).scores(QUESTION, PASSAGES[:1])[0] is not None


def test_the_full_model_goes_before_a_quantised_one_and_a_named_file_before_both(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    quantised = tiny_cross_encoder(folder, file="onnx/model_quantized.onnx", seed=1)
    full = tiny_cross_encoder(folder, file="onnx/model.onnx", seed=2)
    expected = full.reference(QUESTION, "snow")[0], quantised.reference(QUESTION, "snow")[0]
    assert abs(expected[0] - expected[1]) > 1e-2
    assert CrossEncoder(folder).scores(QUESTION, ["snow"]) == pytest.approx([expected[0]], abs=CLOSE)
    chosen = CrossEncoder(folder, file="model_quantized.onnx")
    assert chosen.scores(QUESTION, ["snow"]) == pytest.approx([expected[1]], abs=CLOSE)


def test_several_models_of_other_names_are_listed_and_none_is_guessed(tmp_path: Path) -> None:
    tiny_cross_encoder(tmp_path / "model", file="one.onnx")
    tiny_cross_encoder(tmp_path / "model", file="two.onnx")
    with pytest.raises(ModelFileError, match=r"one\.onnx, two\.onnx"):
        CrossEncoder(tmp_path / "model")


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json", "config.json"])
def test_an_absent_file_is_named_with_what_a_folder_must_hold(tmp_path: Path, name: str) -> None:
    folder = tiny_cross_encoder(tmp_path / "model").folder
    (folder / name).unlink()
    with pytest.raises(ModelFileError, match=rf"{name}.*Give a folder that holds"):
        CrossEncoder(folder)


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json", "config.json"])
@pytest.mark.parametrize("content", [b"", b"\x00\x01 not what it should be", None])
def test_a_damaged_file_is_named(tmp_path: Path, name: str, content: bytes | None) -> None:
    folder = tiny_cross_encoder(tmp_path / "model").folder
    whole = (folder / name).read_bytes()
    (folder / name).write_bytes(whole[: len(whole) // 2] if content is None else content)
    with pytest.raises(ModelFileError, match=name.replace(".", r"\.")) as caught:
        CrossEncoder(folder)
    assert caught.value.remedy


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="no such folder"):
        CrossEncoder(tmp_path / "nothing")


def test_a_config_that_leaves_no_room_is_refused(tmp_path: Path) -> None:
    folder = tiny_cross_encoder(tmp_path / "model").folder
    (folder / "config.json").write_text(json.dumps({"max_position_embeddings": 4}))
    with pytest.raises(ModelFileError, match="leaves 4 tokens"):
        CrossEncoder(folder)


def _replace_model(folder: Path, *, inputs: list[str], shape: list[Any], nodes: list[Any], constants: Any = ()) -> None:
    values = [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "length"]) for name in inputs]
    output = helper.make_tensor_value_info("out", TensorProto.FLOAT, shape)
    graph = helper.make_graph(nodes, "other", values, [output], list(constants))
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), folder / "model.onnx"
    )


def test_an_encoder_is_not_taken_for_a_cross_encoder(tmp_path: Path) -> None:
    folder = tiny_cross_encoder(tmp_path / "model").folder
    axes = helper.make_tensor("axes", TensorProto.INT64, [1], [2])
    nodes = [
        helper.make_node("Cast", ["input_ids"], ["tokens"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["tokens", "axes"], ["out"]),
    ]
    _replace_model(folder, inputs=["input_ids"], shape=["batch", "length", 1], nodes=nodes, constants=[axes])
    with pytest.raises(ModelFileError, match="not a cross-encoder"):
        CrossEncoder(folder)


def test_a_model_that_asks_for_more_than_text_is_refused(tmp_path: Path) -> None:
    folder = tiny_cross_encoder(tmp_path / "model").folder
    nodes = [
        helper.make_node("Add", ["input_ids", "pixels"], ["sum"]),
        helper.make_node("Cast", ["sum"], ["out"], to=TensorProto.FLOAT),
    ]
    _replace_model(folder, inputs=["input_ids", "pixels"], shape=["batch", "length"], nodes=nodes)
    with pytest.raises(ModelFileError, match="pixels"):
        CrossEncoder(folder)


def test_a_score_that_is_no_number_is_none(tmp_path: Path) -> None:
    folder = tiny_cross_encoder(tmp_path / "model").folder
    zero = helper.make_tensor("zero", TensorProto.FLOAT, [1], [0.0])
    axes = helper.make_tensor("axes", TensorProto.INT64, [1], [1])
    nodes = [
        helper.make_node("Cast", ["input_ids"], ["tokens"], to=TensorProto.FLOAT),
        helper.make_node("ReduceMax", ["tokens", "axes"], ["most"], keepdims=1),
        helper.make_node("Mul", ["most", "zero"], ["none"]),
        helper.make_node("Div", ["none", "zero"], ["out"]),
    ]
    _replace_model(folder, inputs=["input_ids"], shape=["batch", 1], nodes=nodes, constants=[zero, axes])
    assert CrossEncoder(folder, max_tokens=16).scores("a", ["b", "c"]) == [None, None]


@pytest.mark.parametrize("wrong", [{"threads": -1}, {"max_tokens": 3}, {"batch": 0}])
def test_numbers_that_cannot_be_meant_are_refused(tmp_path: Path, wrong: dict[str, int]) -> None:
    with pytest.raises(UsageError):
        CrossEncoder(tmp_path, **wrong)  # type: ignore[arg-type]
