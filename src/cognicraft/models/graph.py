"""Writes the ONNX graph of a BERT encoder with int8 weights, for one text at a time.

Takes: the float32 weights of a BERT-shaped encoder. Returns: an ONNX model with the input `input_ids` (1,
    tokens) int64 and the outputs `token_vectors` (1, tokens, hidden) and `sentence_vector` (1, hidden, the
    mean of the token vectors), float32.
Method: one text per run. Without padding there is no mask, no work on filling, and the activation scales of
    dynamic quantisation come from this text alone, so a text has the same vector whatever it is ingested
    with. Matrix products are int8 x uint8 with one weight scale per output column (Jacob et al. 2018,
    arXiv:1712.05877), the word table has one scale per row. Everything else stays float32.
Cost: seconds to write; the file is about a quarter of the float32 weights. Needs `onnx`, which running the
    model does not.
What can go wrong: onnxruntime's full optimisation fuses Add + LayerNormalization into a kernel that is six
    times slower on x86 (1.31), so sessions on these files stay at the basic level (see `onnx.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cognicraft.records import FloatArray

if TYPE_CHECKING:
    import onnx

_MICROSOFT = "com.microsoft"

# CPUs without VNNI add two neighbouring uint8 x int8 products into an int16, which saturates at 32767. With
# the absolute values of two neighbours adding up to at most 128, 255 * 128 = 32640 never does: the same
# integers on every x86 CPU.
_NEIGHBOURS_AT_MOST = 128


@dataclass(frozen=True, slots=True)
class Shape:
    """What the weights do not tell. `positions` is the longest input in tokens, special ones included."""

    layers: int
    heads: int
    positions: int
    epsilon: float


@dataclass(frozen=True, slots=True)
class QuantizedColumns:
    """(inputs, outputs) int8 and one float32 scale per output: weight ≈ values * scales."""

    values: npt.NDArray[np.int8]
    scales: FloatArray


def quantize_columns(weight: FloatArray) -> QuantizedColumns:
    """Symmetric int8 of an (outputs, inputs) matrix, as (inputs, outputs), safe from int16 saturation."""
    magnitude = np.abs(weight)
    neighbours = (magnitude[:, 0::2] + magnitude[:, 1::2]).max(axis=1)
    # Rounding can add half a step to each of the two: leave room for it.
    scales = np.maximum(neighbours / (_NEIGHBOURS_AT_MOST - 1), magnitude.max(axis=1) / 127)
    scales = np.maximum(scales, np.finfo(np.float32).tiny).astype(np.float32)
    values = np.clip(np.rint(weight / scales[:, None]), -127, 127).astype(np.int8)
    return QuantizedColumns(np.ascontiguousarray(values.T), scales)


def quantize_rows(table: FloatArray) -> tuple[npt.NDArray[np.int8], FloatArray]:
    """Symmetric int8 of a word table with one scale per word: (words, hidden) int8, (words, 1) float32."""
    values = np.empty(table.shape, np.int8)
    scales = np.empty((len(table), 1), np.float32)
    # In pieces: a table of 250,000 words has 400 MB, and whole it would be held four times.
    for start in range(0, len(table), 4096):
        part = slice(start, start + 4096)
        largest = np.maximum(table[part].max(axis=1), -table[part].min(axis=1))[:, None]
        scales[part] = np.maximum(largest / 127, np.finfo(np.float32).tiny)
        values[part] = np.clip(np.rint(table[part] / scales[part]), -127, 127)
    return values, scales


def bert_model(weights: Mapping[str, FloatArray], shape: Shape, *, quantized: bool = True) -> onnx.ModelProto:
    """The encoder as an ONNX model.

    weights: `word` (words, hidden), `position` (at least shape.positions, hidden; the type row already
        added), `norm.weight`, `norm.bias`, and for each layer `N.` with `query`, `key`, `value`, `attention`
        (its output product), `up`, `down` (each `.weight` (outputs, inputs) and `.bias`), `attention_norm`
        and `norm` (each `.weight`, `.bias`).
    quantized: False gives the same graph in float32, the yardstick of the benchmark.
    """
    writer = _Writer()
    x = _embeddings(writer, weights, shape, quantized=quantized)
    for layer in range(shape.layers):
        x = _layer(writer, weights, f"{layer}.", x, shape, quantized=quantized)
    writer.node("Identity", [x], "token_vectors")
    axis = writer.constant("axis_tokens", np.array([1], np.int64))
    writer.node("ReduceMean", [x, axis], "sentence_vector", keepdims=0)
    return writer.model(hidden=weights["word"].shape[1])


class _Writer:
    """Collects nodes and constants; a node's name is that of its first output."""

    def __init__(self) -> None:
        import onnx.helper
        import onnx.numpy_helper

        self._helper = onnx.helper
        self._from_array = onnx.numpy_helper.from_array
        self._types = onnx.TensorProto
        self._nodes: list[Any] = []
        self._constants: list[Any] = []

    def constant(self, name: str, array: npt.NDArray[Any]) -> str:
        self._constants.append(self._from_array(np.ascontiguousarray(array), name))
        return name

    def node(
        self, operator: str, inputs: Sequence[str], output: str, *more: str, domain: str = "", **attributes: Any
    ) -> str:
        made = self._helper.make_node(operator, inputs, [output, *more], output, domain=domain, **attributes)
        self._nodes.append(made)
        return output

    def to_float(self, value: str, output: str) -> str:
        return self.node("Cast", [value], output, to=self._types.FLOAT)

    def model(self, *, hidden: int) -> onnx.ModelProto:
        describe = self._helper.make_tensor_value_info
        graph = self._helper.make_graph(
            self._nodes,
            "encoder",
            [describe("input_ids", self._types.INT64, [1, "tokens"])],
            [
                describe("token_vectors", self._types.FLOAT, [1, "tokens", hidden]),
                describe("sentence_vector", self._types.FLOAT, [1, hidden]),
            ],
            self._constants,
        )
        opsets = [self._helper.make_opsetid("", 20), self._helper.make_opsetid(_MICROSOFT, 1)]
        # A fixed producer and versions: the file's hash must not depend on the installed `onnx`.
        return self._helper.make_model(graph, producer_name="cognicraft", opset_imports=opsets, ir_version=9)


def _embeddings(writer: _Writer, weights: Mapping[str, FloatArray], shape: Shape, *, quantized: bool) -> str:
    if quantized:
        values, scales = quantize_rows(weights["word"])
        row = writer.node("Gather", [writer.constant("word", values), "input_ids"], "word_int8")
        scale = writer.node("Gather", [writer.constant("word_scale", scales), "input_ids"], "word_row_scale")
        words = writer.node("Mul", [writer.to_float(row, "word_float"), scale], "words")
    else:
        words = writer.node("Gather", [writer.constant("word", weights["word"]), "input_ids"], "words")
    zero = writer.constant("zero", np.array([0], np.int64))
    table = writer.constant("position", weights["position"][: shape.positions])
    count = writer.node("Shape", ["input_ids"], "token_count", start=1, end=2)
    positions = writer.node("Slice", [table, zero, count, zero], "positions")
    return _add_and_norm(writer, words, positions, weights, "norm", shape)


def _layer(
    writer: _Writer, weights: Mapping[str, FloatArray], at: str, x: str, shape: Shape, *, quantized: bool
) -> str:
    product = _product_int8 if quantized else _product_float
    attention = _attention_int8 if quantized else _attention_float
    attended = attention(writer, weights, at, x, heads=shape.heads)
    attended = product(writer, weights, at + "attention", attended)
    x = _add_and_norm(writer, attended, x, weights, at + "attention_norm", shape)
    wide = product(writer, weights, at + "up", x)
    wide = writer.node("Gelu", [wide], at + "gelu", domain=_MICROSOFT)
    narrow = product(writer, weights, at + "down", wide)
    return _add_and_norm(writer, narrow, x, weights, at + "norm", shape)


def _add_and_norm(
    writer: _Writer, left: str, right: str, weights: Mapping[str, FloatArray], at: str, shape: Shape
) -> str:
    total = writer.node("Add", [left, right], at + ".sum")
    weight = writer.constant(at + ".weight", weights[at + ".weight"])
    bias = writer.constant(at + ".bias", weights[at + ".bias"])
    return writer.node("LayerNormalization", [total, weight, bias], at + ".out", axis=-1, epsilon=shape.epsilon)


def _joined(weights: Mapping[str, FloatArray], at: str) -> tuple[FloatArray, FloatArray]:
    """Query, key and value as one product: one pass over the input, one scale search."""
    parts = ("query", "key", "value")
    return (
        np.concatenate([weights[f"{at}{part}.weight"] for part in parts]),
        np.concatenate([weights[f"{at}{part}.bias"] for part in parts]),
    )


def _attention_int8(writer: _Writer, weights: Mapping[str, FloatArray], at: str, x: str, *, heads: int) -> str:
    weight, bias = _joined(weights, at)
    columns = quantize_columns(weight)
    writer.node("DynamicQuantizeLinear", [x], at + "x", at + "x.scale", at + "x.zero")
    inputs = [
        at + "x",
        writer.constant(at + "qkv.weight", columns.values),
        writer.constant(at + "qkv.bias", bias),
        at + "x.scale",
        writer.constant(at + "qkv.scale", columns.scales),
        "",
        at + "x.zero",
    ]
    return writer.node("QAttention", inputs, at + "attended", domain=_MICROSOFT, num_heads=heads)


def _attention_float(writer: _Writer, weights: Mapping[str, FloatArray], at: str, x: str, *, heads: int) -> str:
    weight, bias = _joined(weights, at)
    inputs = [x, writer.constant(at + "qkv.weight", weight.T), writer.constant(at + "qkv.bias", bias)]
    return writer.node("Attention", inputs, at + "attended", domain=_MICROSOFT, num_heads=heads)


def _product_int8(writer: _Writer, weights: Mapping[str, FloatArray], at: str, x: str) -> str:
    columns = quantize_columns(weights[at + ".weight"])
    inputs = [
        x,
        writer.constant(at + ".weight", columns.values),
        writer.constant(at + ".scale", columns.scales),
        "",
        writer.constant(at + ".bias", weights[at + ".bias"]),
    ]
    return writer.node("DynamicQuantizeMatMul", inputs, at + ".out", domain=_MICROSOFT)


def _product_float(writer: _Writer, weights: Mapping[str, FloatArray], at: str, x: str) -> str:
    product = writer.node("MatMul", [x, writer.constant(at + ".weight", weights[at + ".weight"].T)], at + ".product")
    return writer.node("Add", [product, writer.constant(at + ".bias", weights[at + ".bias"])], at + ".out")
