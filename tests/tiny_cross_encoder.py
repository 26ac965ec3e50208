"""Cross-encoders made here: seeded random weights in a whole transformer, as an ONNX folder and in numpy.

tiny = tiny_cross_encoder(folder)                    # BERT: pairs told apart by token_type_ids, one logit
tiny = tiny_cross_encoder(folder, family="xlm-roberta", logits=2)
tiny.reference(question, passage)                    # the logits, by numpy, from the tokenizer's own pair
"""

from __future__ import annotations

import json
import math
import string
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

Family = Literal["bert", "xlm-roberta"]
WORDS = tuple(
    word
    for line in ("when where what which how was", "bridge opened river ferry bee sugar", "insulin summit snow year")
    for word in line.split()
)


@dataclass(frozen=True)
class TinyCrossEncoder:
    folder: Path
    family: Family
    weights: dict[str, Any]
    layers: int
    heads: int
    tokenizer: Tokenizer

    def reference(self, question: str, passage: str) -> Any:
        pair = self.tokenizer.encode(question, passage)
        return self.reference_of(pair.ids, pair.type_ids)

    def reference_of(self, ids: list[int], types: list[int]) -> Any:
        """(logits,) float64 of one pair, in numpy: the model by its definition, nothing padded."""
        w = {name: value.astype(np.float64) for name, value in self.weights.items()}
        positions = np.arange(len(ids)) + (2 if self.family == "xlm-roberta" else 0)
        hidden = w["word"][ids] + w["position"][positions]
        if self.family == "bert":
            hidden = hidden + w["segment"][types]
        hidden = _norm(hidden, w["norm"])
        for layer in range(self.layers):
            query, key, value = (hidden @ w[f"{part}{layer}"] for part in ("query", "key", "value"))
            size = query.shape[1] // self.heads
            mixed = []
            for head in range(self.heads):
                part = slice(head * size, (head + 1) * size)
                scores = query[:, part] @ key[:, part].T / math.sqrt(size)
                scores = np.exp(scores - scores.max(axis=1, keepdims=True))
                mixed.append(scores / scores.sum(axis=1, keepdims=True) @ value[:, part])
            hidden = _norm(hidden + np.concatenate(mixed, axis=1) @ w[f"out{layer}"], w[f"norm_a{layer}"])
            inner = hidden @ w[f"up{layer}"]
            inner = inner * 0.5 * (1 + np.vectorize(math.erf)(inner / math.sqrt(2)))
            hidden = _norm(hidden + inner @ w[f"down{layer}"], w[f"norm_b{layer}"])
        return np.tanh(hidden[0] @ w["pooler"]) @ w["classifier"] + w["bias"]


def tiny_cross_encoder(
    folder: Path,
    *,
    family: Family = "bert",
    logits: int = 1,
    layers: int = 1,
    width: int = 16,
    heads: int = 2,
    positions: int = 512,
    seed: int = 7,
    file: str = "model.onnx",
) -> TinyCrossEncoder:
    """Writes model, tokenizer and config into `folder`."""
    tokenizer = _bert_tokenizer() if family == "bert" else _xlm_tokenizer()
    table = positions + (2 if family == "xlm-roberta" else 0)
    weights = _weights(np.random.default_rng(seed), tokenizer.get_vocab_size(), table, width, layers, logits)
    (folder / file).parent.mkdir(parents=True, exist_ok=True)
    onnx.save(_graph(weights, family=family, layers=layers, heads=heads, width=width), folder / file)
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {"model_type": family, "max_position_embeddings": table, "pad_token_id": 1 if family != "bert" else 0}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return TinyCrossEncoder(folder, family, weights, layers, heads, tokenizer)


def _weights(rng: Any, vocabulary: int, positions: int, width: int, layers: int, logits: int) -> dict[str, Any]:
    def matrix(*shape: int) -> Any:
        return rng.normal(0, 0.5 if shape[0] > 2 else 1.0, shape).astype(np.float32)

    def norm() -> Any:
        return np.stack([rng.normal(1, 0.1, width), rng.normal(0, 0.1, width)]).astype(np.float32)

    found = {"word": matrix(vocabulary, width), "position": matrix(positions, width), "segment": matrix(2, width)}
    found["norm"] = norm()
    for layer in range(layers):
        for name in ("query", "key", "value", "out"):
            found[f"{name}{layer}"] = matrix(width, width)
        found[f"up{layer}"], found[f"down{layer}"] = matrix(width, 4 * width), matrix(4 * width, width)
        found[f"norm_a{layer}"], found[f"norm_b{layer}"] = norm(), norm()
    found["pooler"], found["classifier"], found["bias"] = matrix(width, width), matrix(width, logits), matrix(logits)
    return found


def _norm(values: Any, scale_and_shift: Any) -> Any:
    centred = values - values.mean(axis=-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-5) * scale_and_shift[0] + scale_and_shift[1]


class _Nodes:
    """Nodes and constants of a graph, each call giving the name of its result."""

    def __init__(self, weights: dict[str, Any]) -> None:
        self.nodes: list[Any] = []
        self.constants: dict[str, Any] = dict(weights)

    def __call__(self, operator: str, *inputs: str, **attributes: Any) -> str:
        name = f"{operator.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [name], **attributes))
        return name

    def constant(self, name: str, value: Any) -> str:
        self.constants[name] = np.asarray(value)
        return name

    def norm(self, value: str, weight: str) -> str:
        scale, shift = self.constants.pop(weight)
        names = self.constant(f"{weight}_scale", scale), self.constant(f"{weight}_shift", shift)
        return self("LayerNormalization", value, *names, axis=-1, epsilon=1e-5)


def _graph(weights: dict[str, Any], *, family: Family, layers: int, heads: int, width: int) -> Any:
    node = _Nodes(weights)
    for name, value in {"zero": 0, "one": 1}.items():
        node.constant(name, np.int64(value))
    for name, axes in {"axis_1": [1], "axes_12": [1, 2], "axis_0": [0]}.items():
        node.constant(name, np.array(axes, np.int64))
    if family == "bert":
        del node.constants["bias"]
        length = node(
            "Squeeze", node("Slice", node("Shape", "input_ids"), "axis_1", node.constant("two", [2])), "axis_0"
        )
        positions = node("Range", "zero", length, "one")
    else:
        del node.constants["bias"], node.constants["segment"]
        count = node("CumSum", "attention_mask", node.constant("axis", np.int64(1)))
        positions = node("Add", node("Mul", count, "attention_mask"), "one")
    bias = node.constant("bias", weights["bias"])
    hidden = node("Add", node("Gather", "word", "input_ids"), node("Gather", "position", positions))
    if family == "bert":
        hidden = node("Add", hidden, node("Gather", "segment", "token_type_ids"))
    hidden = node.norm(hidden, "norm")
    hidden_mask = node("Cast", node("Sub", "one", "attention_mask"), to=TensorProto.FLOAT)
    blocked = node("Mul", node("Unsqueeze", hidden_mask, "axes_12"), node.constant("low", np.float32(-1e9)))
    split = node.constant("split", np.array([0, 0, heads, width // heads], np.int64))
    joined = node.constant("joined", np.array([0, 0, width], np.int64))
    root = node.constant("root", np.float32(math.sqrt(width // heads)))

    def by_head(value: str, order: list[int]) -> str:
        return node("Transpose", node("Reshape", value, split), perm=order)

    for layer in range(layers):
        query = by_head(node("MatMul", hidden, f"query{layer}"), [0, 2, 1, 3])
        key = by_head(node("MatMul", hidden, f"key{layer}"), [0, 2, 3, 1])
        value = by_head(node("MatMul", hidden, f"value{layer}"), [0, 2, 1, 3])
        scores = node("Add", node("Div", node("MatMul", query, key), root), blocked)
        mixed = node("MatMul", node("Softmax", scores, axis=-1), value)
        mixed = node("Reshape", node("Transpose", mixed, perm=[0, 2, 1, 3]), joined)
        hidden = node.norm(node("Add", hidden, node("MatMul", mixed, f"out{layer}")), f"norm_a{layer}")
        inner = node("Gelu", node("MatMul", hidden, f"up{layer}"))
        hidden = node.norm(node("Add", hidden, node("MatMul", inner, f"down{layer}")), f"norm_b{layer}")
    first = node("Gather", hidden, "zero", axis=1)
    pooled = node("Tanh", node("MatMul", first, "pooler"))
    node.nodes.append(helper.make_node("Add", [node("MatMul", pooled, "classifier"), bias], ["logits"]))

    names = ["input_ids", "attention_mask"] + (["token_type_ids"] if family == "bert" else [])
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "length"]) for name in names]
    output = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", len(weights["bias"])])
    constants = [numpy_helper.from_array(value, name) for name, value in node.constants.items()]
    graph = helper.make_graph(node.nodes, "cross-encoder", inputs, [output], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def _pieces() -> list[str]:
    return list(string.ascii_lowercase + string.digits + string.punctuation)


def _bert_tokenizer() -> Tokenizer:
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words = [*special, *_pieces(), *(f"##{piece}" for piece in _pieces()), *WORDS]
    tokenizer = Tokenizer(
        models.WordPiece({word: number for number, word in enumerate(dict.fromkeys(words))}, unk_token="[UNK]")
    )
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.add_special_tokens(special)
    return tokenizer


def _xlm_tokenizer() -> Tokenizer:
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    scored = [(word, 0.0) for word in special]
    scored += [(f"▁{word}", -5.0) for word in WORDS] + [(piece, -9.0) for piece in ["▁", *_pieces()]]
    tokenizer = Tokenizer(models.Unigram(scored, unk_id=3))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    tokenizer.add_special_tokens(special)
    return tokenizer
