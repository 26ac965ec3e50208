"""Feature columns to the two numbers that decide: how likely a sentence answers, and whether anything does.

Takes: the matrix of `features.features`.
Returns: a score per candidate, and a confidence from 0 to 1 for the question.
Method: a conditional logit over the candidates, whose few weights `scripts/train_extract.py` finds and
    prints, rounded by hand here; and a logistic model that tells questions of the matter from off-topic ones.
    What they were fitted on and what they reach is in docs/decisions/0009-answering-without-a-model.md.
Cost: none to speak of.
What can go wrong: the second model was fitted with the shipped encoder; another encoder's cosines lie elsewhere, so
    it needs its own `Calibration` (the order of the sentences hardly depends on it).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cognicraft.answer.features import NAMES
from cognicraft.records import FloatArray

SENTENCE_WEIGHTS = {
    "late_interaction": 8.0,
    "late_interaction_with_sentence_before": 7.0,
    "similarity": 6.0,
    "coverage": 2.5,
    "coverage_in_context": 3.0,
    "passage": 1.0,
    "holds_number": 3.0,
    "holds_date": 1.0,
    "holds_name": 0.5,
    "leads_on": 2.5,
    "row_label": 5.0,
    "document": 6.0,
    "heading": 2.0,
    "defines": 9.0,
    "repeated": 3.0,
}
"""Log-odds that a sentence answers rather than another candidate, per unit of the feature."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """Log-odds that the passages treat what is asked: `bias` and, for each feature, weight x its value.

    passage_late_interaction and similarity: the largest among the five best candidates; coverage: of the best one.
    """

    bias: float
    passage_late_interaction: float
    similarity: float
    coverage: float


MINILM = Calibration(bias=-18.8, passage_late_interaction=22.0, similarity=13.0, coverage=8.0)
"""For the shipped encoder."""

MULTILINGUAL_E5 = Calibration(bias=-18.2, passage_late_interaction=30.0, similarity=15.0, coverage=3.0)
"""For multilingual-e5-small; between languages its cosines are lower, so that more is declined there."""

CALIBRATIONS = {"minilm": MINILM, "multilingual-e5": MULTILINGUAL_E5}
"""By the encoder's name; the shipped encoder's stands in for any other."""

DEFAULT_THRESHOLD = 0.5
"""Declines 2 in 100 questions that could be answered; the decision record has the figures."""

_SENTENCE = np.array([SENTENCE_WEIGHTS.get(name, 0.0) for name in NAMES], dtype=np.float32)
_BEST = 5


def sentence_scores(columns: FloatArray) -> FloatArray:
    """(candidates,) float32; only differences between the candidates of one question mean anything."""
    scores: FloatArray = columns @ _SENTENCE
    return scores


def confidence(columns: FloatArray, scores: FloatArray, *, calibration: Calibration = MINILM) -> float:
    """From 0 to 1: how surely the passages of the best candidates treat what is asked; 0 without any."""
    if not len(columns):
        return 0.0
    best = np.argsort(-scores, kind="stable")[:_BEST]
    log_odds = (
        calibration.bias
        + calibration.passage_late_interaction * _largest(columns, best, "passage_late_interaction")
        + calibration.similarity * _largest(columns, best, "similarity")
        + calibration.coverage * _largest(columns, best[:1], "coverage")
    )
    return 1.0 / (1.0 + math.exp(-max(-50.0, min(50.0, log_odds))))


def _largest(columns: FloatArray, rows: np.ndarray[tuple[int], np.dtype[np.intp]], name: str) -> float:
    return float(columns[rows, NAMES.index(name)].max())
