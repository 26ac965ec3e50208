"""The quantisation and the graph, on small weights."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from cognicraft.models.graph import Shape, bert_model, quantize_columns, quantize_rows

onnxruntime = pytest.importorskip("onnxruntime")
pytest.importorskip("onnx", reason="writing a graph needs the package onnx")

matrices = npst.arrays(
    np.float32,
    st.tuples(st.integers(1, 6), st.integers(1, 5).map(lambda half: 2 * half)),
    elements=st.floats(-4, 4, width=32),
)


@given(matrices)
def test_two_neighbours_never_saturate_a_sixteen_bit_sum(weight: np.ndarray) -> None:
    values = np.abs(quantize_columns(weight).values.astype(np.int32))
    assert (255 * (values[0::2] + values[1::2])).max() <= 32767


@given(matrices)
def test_columns_come_back_within_half_a_step(weight: np.ndarray) -> None:
    columns = quantize_columns(weight)
    error = np.abs(columns.values * columns.scales - weight.T)
    assert (error <= columns.scales * 0.501 + 1e-30).all()


@given(matrices)
def test_rows_come_back_within_half_a_step(table: np.ndarray) -> None:
    values, scales = quantize_rows(table)
    assert (np.abs(values * scales - table) <= scales * 0.501 + 1e-30).all()


def test_a_zero_matrix_stays_zero_and_finite() -> None:
    columns = quantize_columns(np.zeros((3, 4), np.float32))
    assert not columns.values.any()
    assert np.isfinite(columns.scales).all()


def _weights(
    generator: np.random.Generator, *, words: int = 20, hidden: int = 16, wide: int = 32
) -> dict[str, np.ndarray]:
    def normal(*shape: int) -> np.ndarray:
        return generator.normal(0, 0.3, shape).astype(np.float32)

    weights = {"word": normal(words, hidden), "position": normal(12, hidden)}
    sizes = {
        "query": (hidden, hidden),
        "key": (hidden, hidden),
        "value": (hidden, hidden),
        "attention": (hidden, hidden),
    }
    sizes |= {"up": (wide, hidden), "down": (hidden, wide)}
    for layer in range(2):
        for name, size in sizes.items():
            weights[f"{layer}.{name}.weight"] = normal(*size)
            weights[f"{layer}.{name}.bias"] = normal(size[0])
    for name in ("norm", "0.attention_norm", "0.norm", "1.attention_norm", "1.norm"):
        weights[name + ".weight"] = 1 + normal(hidden)
        weights[name + ".bias"] = normal(hidden)
    return weights


def _run(model: object, ids: list[int]) -> tuple[np.ndarray, np.ndarray]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    tokens, sentence = session.run(["token_vectors", "sentence_vector"], {"input_ids": np.array([ids], np.int64)})
    return tokens[0], sentence[0]


def _by_hand(weights: dict[str, np.ndarray], ids: list[int], shape: Shape) -> np.ndarray:
    """BERT's encoder (Devlin et al. 2019, arXiv:1810.04805), post-norm, exact GELU, in float64."""
    from math import erf, sqrt

    def norm(x: np.ndarray, at: str) -> np.ndarray:
        centred = x - x.mean(axis=1, keepdims=True)
        return (
            centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + shape.epsilon) * weights[at + ".weight"]
            + weights[at + ".bias"]
        )

    def linear(x: np.ndarray, at: str) -> np.ndarray:
        return x @ weights[at + ".weight"].T.astype(np.float64) + weights[at + ".bias"]

    x = norm(weights["word"][ids].astype(np.float64) + weights["position"][: len(ids)], "norm")
    size = x.shape[1] // shape.heads
    for layer in range(shape.layers):
        query, key, value = (linear(x, f"{layer}.{name}") for name in ("query", "key", "value"))
        heads = []
        for head in range(shape.heads):
            part = slice(head * size, (head + 1) * size)
            scores = query[:, part] @ key[:, part].T / sqrt(size)
            shares = np.exp(scores - scores.max(axis=1, keepdims=True))
            heads.append(shares / shares.sum(axis=1, keepdims=True) @ value[:, part])
        x = norm(x + linear(np.concatenate(heads, axis=1), f"{layer}.attention"), f"{layer}.attention_norm")
        wide = linear(x, f"{layer}.up")
        wide = wide * 0.5 * (1 + np.vectorize(erf)(wide / sqrt(2)))
        x = norm(x + linear(wide, f"{layer}.down"), f"{layer}.norm")
    return x


SHAPE = Shape(layers=2, heads=4, positions=10, epsilon=1e-12)
IDS = [3, 1, 4, 1, 5, 9]


def test_the_float_graph_computes_bert() -> None:
    weights = _weights(np.random.default_rng(7))
    tokens, sentence = _run(bert_model(weights, SHAPE, quantized=False), IDS)
    expected = _by_hand(weights, IDS, SHAPE)
    np.testing.assert_allclose(tokens, expected, atol=2e-5)
    np.testing.assert_allclose(sentence, expected.mean(axis=0), atol=2e-5)


def test_the_int8_graph_stays_near_the_float_graph() -> None:
    weights = _weights(np.random.default_rng(7))
    _, exact = _run(bert_model(weights, SHAPE, quantized=False), IDS)
    _, near = _run(bert_model(weights, SHAPE), IDS)
    assert exact @ near / np.linalg.norm(exact) / np.linalg.norm(near) > 0.995
    assert not np.array_equal(exact, near)


def test_the_same_weights_give_the_same_bytes() -> None:
    first, second = (bert_model(_weights(np.random.default_rng(7)), SHAPE) for _ in range(2))
    assert first.SerializeToString(deterministic=True) == second.SerializeToString(deterministic=True)
