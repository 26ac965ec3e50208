"""`cognicraft evaluate retrieval` on a folder small enough to check by eye."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from cognicraft import Workspace
from cognicraft.errors import Cancelled, UsageError
from cognicraft.evaluate.harness import evaluate_retrieval

CORPUS = {
    "lake": "Lake Constance is fed by the Rhine.",
    "bread": "Rye bread is baked with sourdough.",
    "moon": "The moon circles the earth once a month.",
}
QUESTIONS = {
    "q1": ("Which river feeds Lake Constance?", "lake"),
    "q2": ("What is rye bread baked with?", "bread"),
    "q3": ("How long does the moon take around the earth?", "lake"),  # judged wrongly on purpose
}


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    folder = tmp_path / "tiny"
    (folder / "qrels").mkdir(parents=True)
    rows = [json.dumps({"_id": key, "title": "", "text": text}) for key, text in CORPUS.items()]
    (folder / "corpus.jsonl").write_text("\n".join(rows) + "\n")
    rows = [json.dumps({"_id": key, "text": text}) for key, (text, _) in QUESTIONS.items()]
    (folder / "queries.jsonl").write_text("\n".join(rows) + "\n")
    lines = [f"{key}\t{document}\t1" for key, (_, document) in QUESTIONS.items()]
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + "\n".join(lines) + "\n")
    return folder


def test_the_figures_are_those_that_can_be_worked_by_hand(dataset: Path, home: Path) -> None:
    measured = evaluate_retrieval(dataset)
    assert (measured.documents, measured.queries, measured.split) == (3, 3, "test")
    assert measured.per_query["q1"] == measured.per_query["q2"] == 1.0
    assert measured.per_query["q3"] < 1.0, "the document that answers stands before the one that is judged"
    assert measured.metrics["success@1"] == pytest.approx(2 / 3)
    assert measured.metrics["recall@100"] == 1.0
    assert set(measured.arms) == {"dense", "lexical"}
    assert not home.exists(), "nothing is left behind"


def test_a_kept_workspace_is_used_again(dataset: Path, home: Path) -> None:
    evaluate_retrieval(dataset, keep=True)
    with Workspace("eval-tiny") as workspace:
        assert len(workspace.documents()) == 3
    again = evaluate_retrieval(dataset, keep=True, arms=["lexical"], rerank="none", queries=2)
    assert again.queries == 2
    assert set(again.arms) == {"lexical"}
    assert again.arms["lexical"]["mrr@10"] == 1.0, "the first two questions share their words with the right document"


def test_the_command_writes_the_promised_record(dataset: Path, home: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    done = subprocess.run(
        [sys.executable, "-m", "cognicraft", "evaluate", "retrieval", str(dataset), "--json", str(out)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "ndcg@10" in done.stdout
    record = json.loads(out.read_text())
    assert {"dataset", "documents", "queries", "config", "metrics", "arms", "per_query"} <= set(record)
    assert set(record["metrics"]) == {
        "ndcg@10", "recall@5", "recall@10", "recall@20", "recall@100",
        "mrr@10", "map", "success@1", "success@5", "success@10",
    }  # fmt: skip
    assert record["dataset"] == "tiny"


def test_a_split_that_is_not_there_names_those_that_are(dataset: Path, home: Path) -> None:
    with pytest.raises(UsageError, match="train") as caught:
        evaluate_retrieval(dataset, split="train")
    assert "test" in str(caught.value)


def test_stopping_says_how_far_it_came(dataset: Path, home: Path) -> None:
    asked = iter([False] * 4 + [True] * 100)
    with pytest.raises(Cancelled, match="of 3 questions"):
        evaluate_retrieval(dataset, cancelled=lambda: next(asked))


# ── the check of claims ───────────────────────────────────────────────────────────────────────────────────────

ROWS = [
    {"id": "a", "context": "The bridge was opened in 1932.", "claim": "The bridge was opened in 1932.", "label": 1},
    {"id": "b", "context": "The bridge was opened in 1932.", "claim": "The bridge was opened in 1957.", "label": 0},
    {"id": "c", "evidence": ["Bees dance.", "Honey is sweet."], "claim": "Honey is sweet.", "label": 1},
    {"id": "d", "evidence": ["Bees dance.", "Honey is sweet."], "claim": "The moon is made of cheese.", "label": 0},
]


def grounding(tmp_path: Path, rows: list[dict[str, object]], *arguments: str) -> subprocess.CompletedProcess[str]:
    file = tmp_path / "rows.jsonl"
    file.write_text("\n".join(json.dumps(row) for row in rows) + "\n", encoding="utf-8")
    return subprocess.run(
        [sys.executable, "-m", "cognicraft", "evaluate", "grounding", str(file), *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_the_check_of_claims_is_measured(home: Path, tmp_path: Path) -> None:
    done = grounding(tmp_path, ROWS, "--json", "-", "--scores", str(tmp_path / "scores.jsonl"))
    record = json.loads(done.stdout)
    assert record["rows"] == 4
    assert record["auroc"]["value"] == 1.0
    assert record["balanced_accuracy"]["value"] == 1.0
    scores = [json.loads(line) for line in (tmp_path / "scores.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [row["id"] for row in scores] == ["a", "b", "c", "d"]
    assert scores[1]["verdict"] == "CONTRADICTED"


def test_a_row_that_is_none_is_named_by_its_number(home: Path, tmp_path: Path) -> None:
    done = grounding(tmp_path, [*ROWS, {"id": "e", "claim": "No evidence.", "label": 1}])
    assert done.returncode == 2
    assert "line 5" in done.stderr


# ── declining ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_declining_is_measured(home: Path, dataset: Path) -> None:
    rows = [{"_id": "u1", "text": "Which sauce goes with fried squid?"}, {"_id": "u2", "text": "Who invented jazz?"}]
    (dataset / "unanswerable.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "cognicraft", "evaluate", "abstention", str(dataset), "--json", "-"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    record = json.loads(done.stdout)
    assert (record["answerable"], record["unanswerable"]) == (3, 2)
    assert record["auroc"] == 1.0
    assert record["refusal_recall"] == 1.0
    assert record["curve"][-1]["coverage"] == 1.0


def test_declining_is_not_measured_without_questions_to_decline(home: Path, dataset: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "cognicraft", "evaluate", "abstention", str(dataset)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 2
    assert "unanswerable.jsonl" in done.stderr
