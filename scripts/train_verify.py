"""Make src/cognicraft/answer/verify_model.json: the weights that turn signals into a probability of support.

usage: train_verify.py [--data DIR] [--features FILE] [--write]

--data: folder with grounding/*.jsonl and scifact/ (default ../shared/data); --features: keep the signals in this .npz,
and take them from there if it exists; --write: write the model file, else only print what was found.

Logistic regression by Newton's method. Families of sets (three of BEGIN, QAGS, WiCE, SciFact) weigh alike, and in each
set both classes. To each family belong sentences of its own texts: whole or shortened (supported), from another text,
or with a figure, a name or the sign changed (not supported), so that a quotation and its opposite are told apart.
A weight of the wrong sign (more words in common must not make support less likely) is set to 0 and the rest is fitted
anew. The penalty is strong, because the model is for other texts than these. Afterwards Platt's scaling (1999) on
probabilities of families that were left out, so that .5 means what it says on texts not seen.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cognicraft.answer.verify import OfflineVerifier
from cognicraft.answer.verify_model import VerifyModel
from cognicraft.answer.verify_signals import ENCODED, NAMES
from cognicraft.evaluate.grounding import GroundingRow, auroc, read_rows
from cognicraft.ingest.sentences import sentences
from cognicraft.models.minilm import MiniLM
from cognicraft.records import EvidenceText

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT.parent / "shared" / "data"
MODEL = ROOT / "src" / "cognicraft" / "answer" / "verify_model.json"
FAMILIES = {
    "begin_cmu": "begin",
    "begin_tc": "begin",
    "begin_wow": "begin",
    "qags_cnndm": "qags",
    "wice": "wice",
    "scifact": "scifact",
    "begin altered": "begin",
    "qags altered": "qags",
    "wice altered": "wice",
    "scifact altered": "scifact",
}
ALTERED = "altered"
"""Name after the family's of the set made of its own texts."""
_SENTENCES_A_FAMILY = 400
_VERB = re.compile(r"\b(is|are|was|were|has|had|can|could|will|would|may|must|should)\b(?! not)")
_FIGURE = re.compile(r"\d+")
_NAME = re.compile(r"(?<=[a-z,] )[A-Z][a-z]{2,}\b")
LOWERS = frozenset({
    "uncovered", "quantities_missing", "names_missing", "names_elsewhere", "quantities_elsewhere", "negation",
    "opposite", "swap", "personal",
})  # fmt: skip
"""Signals of which more makes support less likely; of all others more makes it likelier."""
PENALTY = 1_500.0
ALTERED_WEIGHT = 0.1
"""Of a family's altered texts beside its sets, in the weights; in the scaling both count alike."""
_SET_WEIGHT = 1_000.0

Matrix = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Measures:
    """The signals of one set's rows and their labels."""

    values: Matrix
    labels: npt.NDArray[np.bool_]


def read_sets(data: Path) -> dict[str, list[GroundingRow]]:
    sets = {
        name: list(read_rows(data / "grounding" / f"{file}.jsonl"))
        for name, file in (
            ("begin_cmu", "begin_cmu_dev"),
            ("begin_tc", "begin_tc_dev"),
            ("begin_wow", "begin_wow_dev"),
            ("qags_cnndm", "qags_cnndm"),
            ("wice", "wice_dev"),
        )
    }
    sets["scifact"] = scifact_rows(data / "scifact")
    for seed, family in enumerate(dict.fromkeys(FAMILIES.values())):
        own = [row for name, rows in sets.items() if FAMILIES.get(name) == family for row in rows]
        sets[f"{family} {ALTERED}"] = altered_rows(own, seed=seed)
    return sets


def scifact_rows(folder: Path) -> list[GroundingRow]:
    """Claims with the abstract that was judged; a claim without evidence with the first abstract that it cites."""
    documents: dict[str, dict[str, Any]] = {}
    for line in (folder / "corpus.jsonl").read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        documents[str(entry["_id"])] = entry
    rows = []
    for line in (folder / "claims_evidence.jsonl").read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        document = documents.get(entry["doc"] or (re.findall(r"\d+", entry["cited"]) or [""])[0])
        if document is not None:
            text = f"{document.get('title', '')}\n\n{document['text']}"
            rows.append(
                GroundingRow(entry["id"], (EvidenceText(1, text),), entry["claim"], entry["label"] == "SUPPORT")
            )
    return rows


def altered_rows(rows: Sequence[GroundingRow], *, seed: int) -> list[GroundingRow]:
    """Half supported: sentences of the texts, some shortened; half not: of another text, or altered."""
    draw = random.Random(seed)
    contexts = sorted({row.context for row in rows if len(row.context) > 150})
    found: list[GroundingRow] = []
    while len(found) < _SENTENCES_A_FAMILY:
        context, other = draw.sample(contexts, 2)
        kind = ("whole", "shortened", "other", "altered")[len(found) % 4]
        text = other if kind == "other" else context
        spans = [span for span in sentences(text) if 40 <= span[1] - span[0] <= 300]
        if not spans:
            continue
        sentence = text[slice(*draw.choice(spans))]
        claim: str | None = sentence
        if kind == "shortened":
            claim = sentence[: sentence.rfind(",")] + "." if sentence.count(",") and sentence.rfind(",") > 40 else None
        elif kind == "altered":
            claim = _altered(sentence, context, draw)
        if claim is not None:
            supported = kind in ("whole", "shortened")
            found.append(GroundingRow(f"{seed}-{len(found)}", (EvidenceText(1, context),), claim, supported))
    return found


def _altered(sentence: str, context: str, draw: random.Random) -> str | None:
    ways = ["figure", "name", "sign"]
    draw.shuffle(ways)
    for way in ways:
        if way == "figure" and (figures := list(_FIGURE.finditer(sentence))):
            match = draw.choice(figures)
            value = int(match[0]) + draw.choice([-3, -2, -1, 1, 2, 3, 10])
            return f"{sentence[: match.start()]}{abs(value)}{sentence[match.end() :]}"
        if way == "sign" and (verb := _VERB.search(sentence)) is not None:
            return f"{sentence[: verb.end()]} not{sentence[verb.end() :]}"
        if way == "name" and (names := list(_NAME.finditer(sentence))):
            match = draw.choice(names)
            others = sorted(set(_NAME.findall(context)) - {one[0] for one in names})
            if others:
                return f"{sentence[: match.start()]}{draw.choice(others)}{sentence[match.end() :]}"
    return None


def measure(sets: Mapping[str, Sequence[GroundingRow]], verifier: OfflineVerifier) -> dict[str, Measures]:
    return {
        name: Measures(
            np.array([verifier.signals(row.claim, row.evidence).values for row in rows], dtype=np.float64),
            np.array([row.label for row in rows]),
        )
        for name, rows in sets.items()
    }


def train(measures: Mapping[str, Measures], *, without: str = "", encoder: bool = True) -> VerifyModel:
    """A model of all families but one, scaled by predictions for families that were left out in turn."""
    used = {name: one for name, one in measures.items() if FAMILIES[name] != without}
    weights, bias = _fit(used, encoder=encoder)
    logits, labels, counts = [], [], []
    for family in dict.fromkeys(FAMILIES[name] for name in used):
        part_weights, part_bias = _fit(
            {name: one for name, one in used.items() if FAMILIES[name] != family}, encoder=encoder
        )
        for name, one in used.items():
            if FAMILIES[name] == family:
                logits.append(one.values @ part_weights + part_bias)
                labels.append(one.labels)
                counts.append(_row_weights(name, one, used, altered_weight=1.0))
    slope, shift = _newton(
        np.concatenate(logits)[:, None], np.concatenate(labels), np.concatenate(counts), penalty=1e-6
    )
    return VerifyModel((weights * slope).astype(np.float32), float(bias * slope + shift))


def _row_weights(name: str, one: Measures, used: Mapping[str, Measures], *, altered_weight: float) -> Matrix:
    """Families alike, sets of a family alike, classes of a set alike."""
    altered = name.endswith(ALTERED)
    siblings = sum(FAMILIES[other] == FAMILIES[name] and other.endswith(ALTERED) == altered for other in used)
    share = one.labels.mean()
    each = np.where(one.labels, 0.5 / share, 0.5 / (1.0 - share)) / len(one.labels)
    weight = altered_weight if altered else 1.0
    return np.asarray(each * weight * _SET_WEIGHT / siblings, dtype=np.float64)


def _fit(used: Mapping[str, Measures], *, encoder: bool) -> tuple[Matrix, float]:
    values = np.concatenate([one.values for one in used.values()])
    labels = np.concatenate([one.labels for one in used.values()])
    counts = np.concatenate(
        [_row_weights(name, one, used, altered_weight=ALTERED_WEIGHT) for name, one in used.items()]
    )
    mean = np.average(values, axis=0, weights=counts)
    spread = np.sqrt(np.average((values - mean) ** 2, axis=0, weights=counts)) + 1e-6
    signs = np.array([-1.0 if name in LOWERS else 1.0 for name in NAMES])
    active = np.array([encoder or name not in ENCODED for name in NAMES])
    while True:
        found = _newton(((values - mean) / spread)[:, active], labels, counts, penalty=PENALTY)
        weights = np.zeros(len(NAMES))
        weights[active] = found[:-1]
        wrong = weights * signs
        if wrong.min() >= 0:
            break
        active[int(wrong.argmin())] = False
    weights /= spread
    return weights, float(found[-1] - weights @ mean)


def _newton(values: Matrix, labels: npt.NDArray[np.bool_], counts: Matrix, *, penalty: float) -> Matrix:
    columns = np.c_[values, np.ones(len(values))]
    ridge = np.eye(columns.shape[1]) * penalty
    ridge[-1, -1] = 0.0
    found = np.zeros(columns.shape[1])
    for _ in range(60):
        probability = 1.0 / (1.0 + np.exp(-np.clip(columns @ found, -60, 60)))
        slope = columns.T @ (counts * (probability - labels)) + ridge @ found
        curve = (columns * (counts * probability * (1 - probability))[:, None]).T @ columns + ridge
        step = np.linalg.solve(curve, slope)
        found -= step
        if np.abs(step).max() < 1e-9:
            break
    return found


def kept_measures(data: Path, file: Path | None) -> dict[str, Measures]:
    if file is not None and file.is_file():
        stored = np.load(file)
        return {name: Measures(stored[f"{name}.values"], stored[f"{name}.labels"]) for name in FAMILIES}
    measures = measure(
        read_sets(data), OfflineVerifier(MiniLM(threads=1), model=VerifyModel(np.zeros(len(NAMES), np.float32), 0.0))
    )
    if file is not None:
        arrays: dict[str, Any] = {f"{name}.values": one.values for name, one in measures.items()}
        arrays |= {f"{name}.labels": one.labels for name, one in measures.items()}
        np.savez(file, **arrays)
    return measures


def _table(model: VerifyModel) -> dict[str, Any]:
    return {
        "bias": round(model.bias, 4),
        "weights": {name: round(float(weight), 4) for name, weight in zip(NAMES, model.weights, strict=True) if weight},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--features", type=Path)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    measures = kept_measures(options.data, options.features)
    for encoder in (True, False):
        print("with encoder" if encoder else "without encoder")
        for name, one in measures.items():
            model = train(measures, without=FAMILIES[name], encoder=encoder)
            scores = one.values @ model.weights
            print(f"  {name:12} left out: AUROC {auroc(one.labels, scores):.3f}")
    tables = {
        "with_encoder": _table(train(measures)),
        "without_encoder": _table(train(measures, encoder=False)),
    }
    text = json.dumps({"made_by": "scripts/train_verify.py", **tables}, indent=2) + "\n"
    if options.write:
        MODEL.write_text(text, encoding="utf-8")
    else:
        print(text)


if __name__ == "__main__":
    main()
