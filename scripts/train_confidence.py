"""Make src/cognicraft/answer/confidence_weights.json: the figures that turn a check into a probability.

usage: train_confidence.py ROWS.jsonl ... [--write]        fit on rows {scores, right[, kinds, group]}, one per answer
       train_confidence.py --grounding DIR [--rows FILE] [--write]        make such rows first, by the offline check

scores: 0..1 of each claim; right: whether all that the answer says is borne out; kinds: its verdicts (left out: by the
score, from .5 on SUPPORTED); group: the set that it comes from. --grounding: folder with *.jsonl of {context, claim,
label}: every claim is held against its context by `OfflineVerifier` with the shipped encoder. These are answers of one
claim, so answers of two to four claims are put together from rows of one set, half of them with all claims right.
--rows: keep the rows (or take them from there if it exists). --write: write the file.

Platt scaling (1999) over confidence, least and mean score, no weight below 0; families of sets (`begin_cmu_dev` and
`begin_tc_dev` are of one, `begin`) weigh alike, and in each family right and wrong answers. Printed: ECE (ten bins of
equal weight) of each family by weights found on the others, and by weights found on other rows of all families; ECE of
the mean score, taken for a probability; and the share of right answers, which the probability takes for one half.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cognicraft.answer.confidence import Weights, features
from cognicraft.records import Claim, EvidenceText, Verdict, VerdictKind

Array = npt.NDArray[np.float64]
TARGET = Path(__file__).resolve().parent.parent / "src" / "cognicraft" / "answer" / "confidence_weights.json"
MOST_CLAIMS = 4
BINS = 10
STEPS = 5_000
PENALTY = 0.001


@dataclass(frozen=True)
class Row:
    """One answer: what the check said, whether it was right, where it comes from."""

    described: tuple[float, float, float]
    right: bool
    group: str
    claims: int


def described(scores: Sequence[float], kinds: Sequence[VerdictKind] | None) -> tuple[float, float, float]:
    chosen = kinds or ["SUPPORTED" if score >= 0.5 else "UNSUPPORTED" for score in scores]
    verdicts = [Verdict(Claim("", 0, 0), kind, score) for kind, score in zip(chosen, scores, strict=True)]
    found = features(verdicts)
    assert found is not None, "a row without claims"
    return found


def rows_of(objects: Iterable[dict[str, Any]]) -> list[Row]:
    return [
        Row(
            described(one["scores"], one.get("kinds")),
            bool(one["right"]),
            str(one.get("group", "")).split("_")[0],
            len(one["scores"]),
        )
        for one in objects
    ]


def checked(folder: Path) -> list[dict[str, Any]]:
    """Answers of one claim, by the offline check."""
    from cognicraft.answer.verify import OfflineVerifier
    from cognicraft.models.minilm import MiniLM

    verifier = OfflineVerifier(MiniLM(threads=1))
    made = []
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            claim = Claim(row["claim"], 0, len(row["claim"]))
            (verdict,) = verifier.verify([claim], [EvidenceText(1, row["context"])])
            made.append(
                {
                    "scores": [round(verdict.score, 5)],
                    "kinds": [verdict.kind],
                    "right": row["label"] == 1,
                    "group": path.stem,
                }
            )
        print(f"checked {path.name}", flush=True)
    return made


def put_together(singles: Sequence[dict[str, Any]], *, seed: int = 7) -> list[dict[str, Any]]:
    """The answers of one claim, and as many of each length up to `MOST_CLAIMS` from claims of one set."""
    shuffled = random.Random(seed)
    made = list(singles)
    for group in sorted({one["group"] for one in singles}):
        own = [one for one in singles if one["group"] == group]
        right = [one for one in own if one["right"]]
        wrong = [one for one in own if not one["right"]]
        if not right or not wrong:
            continue
        for length in range(2, MOST_CLAIMS + 1):
            for number in range(len(own)):
                parts = [shuffled.choice(right) for _ in range(length)]
                if number % 2:
                    # One or more are wrong, one more often than not: most wrong answers are so by one statement.
                    for at in range(shuffled.choice([1, 1, 1, min(2, length)])):
                        parts[at] = shuffled.choice(wrong)
                made.append(
                    {
                        "scores": [part["scores"][0] for part in parts],
                        "kinds": [part["kinds"][0] for part in parts],
                        "right": all(part["right"] for part in parts),
                        "group": group,
                    }
                )
    return made


def balance(rows: Sequence[Row]) -> Array:
    """Weights of rows: sets alike, and in each set right and wrong alike."""
    counts: dict[tuple[str, bool], int] = {}
    for row in rows:
        counts[row.group, row.right] = counts.get((row.group, row.right), 0) + 1
    weights = np.array([1.0 / counts[row.group, row.right] for row in rows])
    return np.asarray(weights / weights.sum())


def fitted(rows: Sequence[Row], *, penalty: float = PENALTY) -> Weights:
    features_ = np.array([[*row.described, 1.0] for row in rows])
    # Platt's targets: a little off 0 and 1, so that few rows do not make certainty.
    right = np.array([row.right for row in rows], dtype=float)
    targets = np.where(right > 0, (right.sum() + 1) / (right.sum() + 2), 1 / ((1 - right).sum() + 2))
    share = balance(rows)
    weights = np.zeros(4)
    speed = np.zeros(4)
    for _ in range(STEPS):
        expected = 1 / (1 + np.exp(-features_ @ weights))
        slope = features_.T @ (share * (expected - targets)) + penalty * np.append(weights[:3], 0.0)
        speed = 0.9 * speed - 0.2 * slope
        weights = weights + speed
        weights[:3] = np.maximum(weights[:3], 0.0)
    return Weights(*(round(float(weight), 4) for weight in weights))


def predicted(rows: Sequence[Row], weights: Weights) -> Array:
    vector = np.array([weights.confidence, weights.least_score, weights.mean_score])
    return np.asarray(1 / (1 + np.exp(-(np.array([row.described for row in rows]) @ vector + weights.bias))))


def calibration_error(rows: Sequence[Row], chances: Array) -> float:
    """ECE over bins of equal weight, rows weighed as in the fit."""
    order = np.argsort(chances, kind="stable")
    share = balance(rows)[order]
    right = np.array([row.right for row in rows], dtype=float)[order]
    bins = np.minimum((np.cumsum(share) - share / 2) * BINS, BINS - 1).astype(int)
    error = 0.0
    for number in range(BINS):
        inside = bins == number
        if inside.any():
            error += abs(float((share[inside] * (right[inside] - chances[order][inside])).sum()))
    return error


def ranks_right(rows: Sequence[Row], chances: Array) -> float:
    """AUROC."""
    right = np.array([row.right for row in rows])
    higher = chances[right][:, None] > chances[~right][None, :]
    equal = chances[right][:, None] == chances[~right][None, :]
    return float((higher + 0.5 * equal).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("rows_files", nargs="*", type=Path, metavar="ROWS.jsonl")
    parser.add_argument("--grounding", type=Path)
    parser.add_argument("--rows", type=Path)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    objects = [json.loads(line) for path in options.rows_files for line in path.read_text("utf-8").splitlines()]
    singles: list[dict[str, Any]] = []
    if options.grounding and options.rows and options.rows.is_file():
        singles = [json.loads(line) for line in options.rows.read_text("utf-8").splitlines()]
    elif options.grounding:
        singles = checked(options.grounding)
        if options.rows:
            options.rows.write_text("".join(json.dumps(one) + "\n" for one in singles), "utf-8")
    if not objects and not singles:
        parser.error("give files of rows, or --grounding")
    rows = rows_of([*objects, *put_together(singles)])
    # Halves that share no claim: put together after they were parted.
    halves = [rows_of([*objects[at::2], *put_together(singles[at::2])]) for at in (0, 1)]
    by_half = [fitted(half) for half in halves]
    groups = sorted({row.group for row in rows})
    print(f"{'family':<10} answers  right  AUROC  ECE: by other families  by other rows  mean score")
    held_out, other_rows = [], []
    for group in groups:
        own = [row for row in rows if row.group == group]
        others = [row for row in rows if row.group != group]
        if not others or len({row.right for row in own}) < 2:
            continue
        chances = predicted(own, fitted(others))
        held_out.append(calibration_error(own, chances))
        parts = [([row for row in half if row.group == group], by_half[1 - at]) for at, half in enumerate(halves)]
        crossed = np.concatenate([predicted(part, weights) for part, weights in parts])
        other_rows.append(calibration_error([row for part, _ in parts for row in part], crossed))
        plain = calibration_error(own, np.array([row.described[2] for row in own]))
        share = sum(row.right for row in own) / len(own)
        print(
            f"{group:<10} {len(own):>7}  {share:.3f}  {ranks_right(own, chances):.3f}  {held_out[-1]:>22.3f}"
            f"  {other_rows[-1]:>13.3f}  {plain:>10.3f}"
        )
    crossed_rows = [row for half in halves for row in half]
    crossed = np.concatenate([predicted(half, by_half[1 - at]) for at, half in enumerate(halves)])
    crossed_error = calibration_error(crossed_rows, crossed)
    weights = fitted(rows)
    own_error = calibration_error(rows, predicted(rows, weights))
    mean_error = float(np.mean(held_out)) if held_out else None
    print(f"\nall: ECE {own_error:.3f} fitted, {crossed_error:.3f} by other rows", end="")
    print(f", {mean_error:.3f} by other families" if mean_error is not None else "")
    print(json.dumps(asdict(weights)))
    if options.write:
        told = {
            "about": "Logistic model of cognicraft.answer.confidence.probability, made by scripts/train_confidence.py.",
            "trained_on": f"{len(rows)} answers of 1 to {max(row.claims for row in rows)} claims: {', '.join(groups)}; "
            "put together from single claims where the set has these only; right and wrong ones weigh alike",
            "ece": {
                "other_rows_of_the_same_families": round(crossed_error, 4),
                "other_families": round(mean_error, 4) if mean_error is not None else None,
            },
            "weights": asdict(weights),
        }
        TARGET.write_text(json.dumps(told, indent=2) + "\n", "utf-8")
        print(f"wrote {TARGET.name}")


if __name__ == "__main__":
    main()
