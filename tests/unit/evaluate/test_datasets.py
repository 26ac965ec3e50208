"""Reading a BEIR-shaped folder: what is kept, what is counted, what is refused and how."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cognicraft.errors import UsageError
from cognicraft.evaluate.datasets import load, splits

SHARED_DATA = Path(__file__).resolve().parents[3].parent / "shared" / "data"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "letters"
    (root / "qrels").mkdir(parents=True)
    write(
        root / "corpus.jsonl",
        {"_id": "d1", "title": "One", "text": "First."},
        {"_id": 2, "text": "Second."},
    )
    write(
        root / "queries.jsonl",
        {"_id": "q1", "text": "Which is first?", "answers": ["First"]},
        {"_id": "q2", "text": "Which is second?"},
        {"_id": "q3", "text": "Which is third?"},
    )
    header = "query-id\tcorpus-id\tscore\n"
    (root / "qrels" / "test.tsv").write_text(f"{header}q1\td1\t1\nq2\t2\t2\nq2\td1\t0\nq9\td1\t1\n")
    (root / "qrels" / "train.tsv").write_text(f"{header}q3\td1\t1\n")
    return root


def write(path: Path, *records: object) -> None:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")


def test_questions_judgements_and_further_fields_are_read(folder: Path) -> None:
    dataset = load(folder)
    assert dataset.name == "letters"
    assert dict(dataset.queries) == {"q1": "Which is first?", "q2": "Which is second?"}
    assert dataset.qrels == {"q1": {"d1": 1}, "q2": {"2": 2, "d1": 0}}
    assert dataset.extra == {"q1": {"answers": ["First"]}}


def test_questions_without_judgement_and_judgements_without_question_are_counted(folder: Path) -> None:
    dataset = load(folder)
    assert (dataset.skipped, dataset.without_text) == (1, 1)


def test_documents_come_with_id_title_and_text_and_can_be_read_twice(folder: Path) -> None:
    dataset = load(folder)
    for _ in range(2):
        assert [(d.source, d.title, d.text) for d in dataset.documents()] == [
            ("d1", "One", "First."),
            ("2", "", "Second."),
        ]


def test_the_corpus_is_not_read_before_it_is_asked_for(folder: Path) -> None:
    (folder / "corpus.jsonl").write_text('{"_id": "d1", "text": "First."}\nbroken\n')
    documents = load(folder).documents()
    assert next(documents).source == "d1"
    with pytest.raises(UsageError, match=r"Line 2 of .*corpus\.jsonl"):
        next(documents)


def test_another_split_has_other_questions(folder: Path) -> None:
    assert splits(folder) == ["test", "train"]
    assert list(load(folder, split="train").queries) == ["q3"]


def test_an_unknown_split_names_those_there_are(folder: Path) -> None:
    with pytest.raises(UsageError, match="no split named 'dev'") as caught:
        load(folder, split="dev")
    assert "test, train" in caught.value.remedy


def test_unanswerable_questions_are_read_where_there_are_any(folder: Path) -> None:
    assert load(folder).unanswerable == {}
    write(folder / "unanswerable.jsonl", {"_id": "u1", "text": "Which is last?", "passage": "d1"})
    assert load(folder).unanswerable == {"u1": "Which is last?"}


@pytest.mark.parametrize("name", ["corpus.jsonl", "queries.jsonl"])
def test_a_folder_of_another_shape_is_refused_by_what_it_lacks(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(UsageError, match=f"has no {name}"):
        load(folder)


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not there"):
        load(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "not JSON"),
        ("[1]", "not a JSON object"),
        ('{"text": "no id"}', 'no "_id"'),
        ('{"_id": true, "text": "no id"}', 'no "_id"'),
        ('{"_id": "x"}', 'no "text"'),
        ('{"_id": "q1", "text": "again"}', "'q1' was there before"),
    ],
)
def test_a_broken_line_is_named_with_its_reason(folder: Path, line: str, reason: str) -> None:
    with (folder / "queries.jsonl").open("a") as file:
        file.write(line + "\n")
    with pytest.raises(UsageError, match=r"Line 4 of .*queries\.jsonl") as caught:
        load(folder)
    assert reason in caught.value.message


@pytest.mark.parametrize(("line", "reason"), [("q1 0 d1 1", "1 columns"), ("q1\td1\tyes", "'yes'")])
def test_a_broken_judgement_is_named_with_its_reason(folder: Path, line: str, reason: str) -> None:
    with (folder / "qrels" / "test.tsv").open("a") as file:
        file.write(line + "\n")
    with pytest.raises(UsageError, match="Line 6 of ") as caught:
        load(folder)
    assert reason in caught.value.message


def test_text_that_is_not_utf8_is_named_with_its_line(folder: Path) -> None:
    (folder / "queries.jsonl").write_bytes(b'{"_id": "q1", "text": "ok"}\n{"_id": "q2", "text": "\xff"}\n')
    with pytest.raises(UsageError, match=r"Line 2 of .*not UTF-8"):
        load(folder)


def test_a_split_that_judges_no_question_of_the_file_is_refused(folder: Path) -> None:
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq9\td1\t1\n")
    with pytest.raises(UsageError, match="No question"):
        load(folder)


def test_blank_lines_and_a_byte_order_mark_do_no_harm(folder: Path) -> None:
    (folder / "queries.jsonl").write_bytes(b'\xef\xbb\xbf{"_id": "q1", "text": "Which?"}\n\n')
    assert load(folder).queries == {"q1": "Which?"}


@pytest.mark.skipif(not SHARED_DATA.is_dir(), reason="the shared test data is not beside the repository")
def test_the_shared_squad_questions_are_read_whole() -> None:
    dataset = load(SHARED_DATA / "squad2")
    assert (len(dataset.queries), len(dataset.unanswerable)) == (2910, 3168)
    assert sum(1 for _ in dataset.documents()) == 1216
