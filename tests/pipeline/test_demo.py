"""Every question of the demo is answered from the file that holds the answer, in the words of that file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from cognicraft import Workspace

DEMO = Path(__file__).resolve().parents[2] / "demo"
EXPECTED = json.loads((DEMO / "expected.json").read_text(encoding="utf-8"))
ANSWERABLE = [entry for entry in EXPECTED if entry["file"]]
UNANSWERABLE = [entry for entry in EXPECTED if not entry["file"]]


def plain(text: str) -> str:
    """White space as single blanks; U+FFFE, which a PDF may have for the hyphen at a line end, undone."""
    return " ".join(text.replace("\ufffe\n", "").replace("\ufffe", "").split())


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    with Workspace("handbook", home=tmp_path_factory.mktemp("demo")) as workspace:
        report = workspace.ingest(DEMO / "documents")
        assert report.failed == []
        yield workspace


def test_the_demo_asks_what_is_expected() -> None:
    lines = (DEMO / "questions.txt").read_text(encoding="utf-8").splitlines()
    asked = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    assert asked == [entry["question"] for entry in EXPECTED]
    assert ANSWERABLE
    assert UNANSWERABLE


@pytest.mark.parametrize("entry", ANSWERABLE, ids=lambda entry: str(entry["question"]))
def test_the_answer_quotes_the_expected_words_from_the_expected_file(demo: Workspace, entry: dict[str, str]) -> None:
    answer = demo.ask(entry["question"])
    assert answer.answered
    cited = [source for source in answer.sources if Path(source.file.partition("#")[0]).name == entry["file"]]
    assert cited, f"cited are {[source.file for source in answer.sources]}"
    quotes = [plain(source.quote) for source in cited]
    assert any(plain(entry["contains"]) in quote for quote in quotes), quotes


@pytest.mark.parametrize("entry", UNANSWERABLE, ids=lambda entry: str(entry["question"]))
def test_what_no_document_tells_is_not_answered(demo: Workspace, entry: dict[str, str]) -> None:
    answer = demo.ask(entry["question"])
    assert not answer.answered
    assert answer.sentences == []


@pytest.mark.parametrize(
    ("question", "first"),
    [
        ("What is Matryoshka representation learning?", "definition: A way of training"),
        ("What is RRF?", "definition: Reciprocal rank fusion"),
        ("What does abstention mean?", "definition: Declining to answer"),
        ("What is a chunk?", "A chunk is a span of its document"),
        ("Who proposed RRF?", "Gordon Cormack, Charles Clarke and Stefan Büttcher"),
        ("What is the formula for the confidence of an answer?", "The confidence of an answer is computed"),
    ],
)
def test_the_best_sentence_comes_first(demo: Workspace, question: str, first: str) -> None:
    answer = demo.ask(question)
    assert plain(answer.answer).startswith(first)


@pytest.mark.parametrize("question", ["How does Boolean search work?", "What is chunking?", "When was BM25 published?"])
def test_no_line_of_the_table_of_contents_is_quoted(demo: Workspace, question: str) -> None:
    answer = demo.ask(question, threshold=0.0)
    assert answer.sentences
    for sentence in answer.sentences:
        assert ". . . ." not in sentence.text
        assert not sentence.text.rstrip().endswith(" .")
