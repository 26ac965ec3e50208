"""Signals to a probability that the claim is borne out: a logistic regression whose numbers lie in `verify_model.json`.

Takes: a row of `verify_signals.NAMES`. Returns: a probability. Method: weights over standardised signals, each of the
sign that its meaning has, one set of weights with an encoder and one without; made by `scripts/train_verify.py`.
Cost: one product. What can go wrong: the classes of the training sets count alike, so where nearly everything is
supported the probability is too low; the order of claims is not touched by it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from cognicraft.answer.verify_signals import NAMES
from cognicraft.records import FloatArray


@dataclass(frozen=True, slots=True)
class VerifyModel:
    """p = 1 / (1 + exp(-(bias + sum of weight x signal))), weights in the units of the signals."""

    weights: FloatArray
    bias: float

    def probability(self, values: FloatArray) -> float:
        """In (0, 1). Raises: ValueError where a signal is not finite."""
        logit = float(values @ self.weights) + self.bias
        if not math.isfinite(logit):
            raise ValueError("a signal is not a finite number")
        return 1.0 / (1.0 + math.exp(-max(min(logit, 60.0), -60.0)))


def read_model(table: Mapping[str, Any]) -> VerifyModel:
    """From `{"bias": …, "weights": {signal: …}}`. Raises: KeyError for a signal that does not exist."""
    weights = np.zeros(len(NAMES), dtype=np.float32)
    for name, weight in table["weights"].items():
        if name not in NAMES:
            raise KeyError(name)
        weights[NAMES.index(name)] = weight
    return VerifyModel(weights, float(table["bias"]))


@cache
def shipped_model(*, encoder: bool) -> VerifyModel:
    table = json.loads(files("cognicraft.answer").joinpath("verify_model.json").read_text(encoding="utf-8"))
    return read_model(table["with_encoder" if encoder else "without_encoder"])
