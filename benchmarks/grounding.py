"""Does verification without a model tell supported claims from unsupported ones, on sets that it was not trained on?

usage: grounding.py [--data DIR] [--features FILE] [--json FILE] [--quick]

Sets: BEGIN dev (three, dialogue), QAGS CNN/DM (summaries), WiCE dev (Wikipedia and the page cited), SciFact (claims
and abstracts). For each family of sets the weights are trained anew on the other families (scripts/train_verify.py)
and the product's own verdict is scored, conflicts and all: `whole`; the same without an encoder: `without encoder`;
`weights alone`: the probability before conflicts lower it. Beside them, untrained: each signal alone, `coverage` being
lexical coverage, and `claim length` (shorter is supported), which knows nothing of the evidence. `best cut` of
these and of the length: balanced accuracy at the threshold that is best on the very set, which flatters them.
95 % intervals by the bootstrap over contexts. ECE: ten bins of equal width, on the claims as they are.
Cost: CPU time (time.process_time, one thread) of a 5-sentence answer over 10 passages of 800 characters, nothing
remembered, median of 15; and the planted faults of tests/planted_faults.json.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cognicraft.answer.claims import claims
from cognicraft.answer.verify import SUPPORTED_AT, OfflineVerifier
from cognicraft.answer.verify_signals import NAMES
from cognicraft.evaluate.grounding import GroundingFigures, GroundingRow, balanced_accuracy, figures
from cognicraft.models.minilm import MiniLM
from cognicraft.records import Claim, EvidenceText

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

from train_verify import ALTERED, DATA, FAMILIES, LOWERS, kept_measures, read_sets, train  # noqa: E402

FAULTS = ROOT / "tests" / "planted_faults.json"
PASSAGES = 10
PASSAGE_CHARACTERS = 800


def verdict_scores(verifier: OfflineVerifier, rows: Sequence[GroundingRow]) -> list[float]:
    return [verifier.verify([Claim(row.claim, 0, len(row.claim))], row.evidence)[0].score for row in rows]


def told(found: GroundingFigures) -> dict[str, Any]:
    return {
        name: {
            "value": round(one.value, 3) if one.value is not None else None,
            "interval": [round(one.low, 3), round(one.high, 3)]
            if one.low is not None and one.high is not None
            else None,
        }
        for name, one in (
            ("auroc", found.auroc),
            ("balanced_accuracy", found.balanced_accuracy),
            ("f1_unsupported", found.f1_unsupported),
        )
    }


def alone(rows: Sequence[GroundingRow], scores: np.ndarray[Any, Any], *, draws: int) -> dict[str, Any]:
    """A single number as the score, with the threshold that is best on this very set."""
    labels = [row.label for row in rows]
    cuts = np.unique(np.quantile(scores, np.linspace(0, 1, 101)))
    best = max(cuts, key=lambda cut: balanced_accuracy(labels, scores >= cut) or 0.0)
    found = told(figures(rows, scores.tolist(), threshold=float(best), draws=draws))
    return {"auroc": found["auroc"], "best_cut": found["balanced_accuracy"], "f1_at_best_cut": found["f1_unsupported"]}


def calibration_error(labels: Sequence[bool], scores: Sequence[float]) -> float:
    truth, given = np.array(labels, dtype=float), np.array(scores)
    bins = np.minimum((given * 10).astype(int), 9)
    return float(
        sum(
            abs(truth[bins == one].mean() - given[bins == one].mean()) * (bins == one).mean() for one in np.unique(bins)
        )
    )


def grounding(data: Path, features: Path | None, *, draws: int) -> dict[str, Any]:
    sets = {name: rows for name, rows in read_sets(data).items() if not name.endswith(ALTERED)}
    measures = kept_measures(data, features)
    embedder = MiniLM(threads=1)
    result: dict[str, Any] = {}
    for name, rows in sets.items():
        family = FAMILIES[name]
        values = measures[name].values
        with_encoder = train(measures, without=family)
        without = train(measures, without=family, encoder=False)
        whole = verdict_scores(OfflineVerifier(embedder, model=with_encoder), rows)
        plain = verdict_scores(OfflineVerifier(model=without), rows)
        probabilities = [with_encoder.probability(row.astype(np.float32)) for row in values]
        labels = [row.label for row in rows]
        entry: dict[str, Any] = {
            "rows": len(rows),
            "supported": sum(labels),
            "whole": told(figures(rows, whole, threshold=SUPPORTED_AT, draws=draws)),
            "without_encoder": told(figures(rows, plain, threshold=SUPPORTED_AT, draws=draws)),
            "weights_alone": told(figures(rows, probabilities, threshold=SUPPORTED_AT, draws=draws)),
            "calibration_error": round(calibration_error(labels, whole), 3),
            "claim_length": alone(rows, -np.array([float(len(row.claim)) for row in rows]), draws=draws),
            "signals": {
                signal: alone(rows, values[:, at] * (-1.0 if signal in LOWERS else 1.0), draws=min(draws, 200))
                for at, signal in enumerate(NAMES)
            },
        }
        result[name] = entry
        print(
            f"{name:11} {len(rows):5} rows  whole {_shown(entry['whole']['auroc'])}"
            f"  without encoder {_shown(entry['without_encoder']['auroc'])}"
            f"  weights {_shown(entry['weights_alone']['auroc'])}"
            f"  coverage {_shown(entry['signals']['coverage']['auroc'])}"
            f"  length {_shown(entry['claim_length']['auroc'])}"
            f"  balanced accuracy {_shown(entry['whole']['balanced_accuracy'])}"
            f"  F1 unsupported {_shown(entry['whole']['f1_unsupported'])}  ECE {entry['calibration_error']:.3f}",
            flush=True,
        )
    return result


def _shown(one: dict[str, Any]) -> str:
    low, high = one["interval"] or (float("nan"), float("nan"))
    return f"{one['value']:.3f} [{low:.3f}, {high:.3f}]"


def faults() -> dict[str, Any]:
    table = json.loads(FAULTS.read_text(encoding="utf-8"))
    result: dict[str, Any] = {}
    for verifier in (OfflineVerifier(MiniLM(threads=1)), OfflineVerifier()):
        caught = firmly = flagged = 0
        for pair in table["pairs"]:
            evidence = [EvidenceText(at, text) for at, text in enumerate(table["documents"][pair["document"]], start=1)]
            known = [one.number for one in evidence]
            kinds = {
                which: {one.kind for one in verifier.verify(claims(pair[which], known=known), evidence)}
                for which in ("fault", "twin")
            }
            caught += kinds["fault"] != {"SUPPORTED"}
            firmly += bool(kinds["fault"] & {"UNSUPPORTED", "CONTRADICTED"})
            flagged += bool(kinds["twin"] & {"UNSUPPORTED", "CONTRADICTED"})
        result[verifier.name] = {
            "pairs": len(table["pairs"]),
            "faults_not_supported": caught,
            "faults_unsupported_or_contradicted": firmly,
            "twins_unsupported_or_contradicted": flagged,
        }
        print(verifier.name, result[verifier.name])
    return result


def cost(data: Path) -> dict[str, Any]:
    """Milliseconds of CPU of one answer, the encoder loaded and nothing remembered."""
    texts = [
        json.loads(line)["context"]
        for line in (data / "grounding" / "wice_dev.jsonl").read_text(encoding="utf-8").splitlines()[:60]
    ]
    embedder = MiniLM(threads=1)
    embedder.encode_documents(["warm"], token_codes=True)
    result: dict[str, Any] = {"answers_of_sentences": 5, "passages": PASSAGES, "passage_characters": PASSAGE_CHARACTERS}
    for what, encoder in (("with_encoder", embedder), ("without_encoder", None)):
        taken = []
        for turn in range(15):
            chosen = [texts[(turn * 3 + at) % len(texts)][200 : 200 + PASSAGE_CHARACTERS] for at in range(PASSAGES)]
            evidence = [EvidenceText(at, text) for at, text in enumerate(chosen, start=1)]
            sentences = [" ".join(text.split()[20:42]) for text in chosen[:5]]
            answer = " ".join(
                f"{one[0].upper()}{one[1:].rstrip('.')}. [{at}]" for at, one in enumerate(sentences, start=1)
            )
            verifier = OfflineVerifier(encoder)
            started = time.process_time()
            verifier.verify(claims(answer, known=range(1, PASSAGES + 1)), evidence)
            taken.append((time.process_time() - started) * 1000)
        result[what] = {"median_cpu_ms": round(statistics.median(taken), 1), "longest_cpu_ms": round(max(taken), 1)}
    print(result)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--features", type=Path, help="signals kept by train_verify.py")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--quick", action="store_true", help="100 draws for the intervals instead of 1,000")
    options = parser.parse_args()
    result = {
        "sets": grounding(options.data, options.features, draws=100 if options.quick else 1_000),
        "planted_faults": faults(),
        "cost": cost(options.data),
    }
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
