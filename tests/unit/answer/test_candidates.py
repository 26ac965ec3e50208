"""What of a passage may be an answer."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cognicraft.answer.candidates import candidates
from cognicraft.answer.extract import Extraction, Passage

Ask = Callable[..., Extraction]
Make = Callable[..., Passage]


def texts(passage: Passage) -> list[str]:
    return [candidate.text for candidate in candidates([passage.stored])]


def test_what_a_colon_introduces_goes_with_it_word_for_word(passage: Make) -> None:
    text = "It is computed as follows:\n\nscore = a / b\n  + 1 if c\nclamped to 1\n\nThe first term is the share."
    first = texts(passage(text))[0]
    assert first == text[: text.index("\n\nThe first")]


def test_a_list_goes_with_the_sentence_that_introduces_it(passage: Make) -> None:
    text = "To install it:\n\n1. Download the archive.\n2. Unpack it.\n3. Run it.\n\nThen restart."
    found = candidates([passage(text).stored])
    assert found[0].text == text[: text.index("\n\nThen")]
    assert found[0].brings_list


def test_a_table_is_not_taken_for_what_a_colon_introduces(passage: Make) -> None:
    text = "The sales were as follows:\n\nRegion\n\nNorth | 2023: 12\nSouth | 2023: 7"
    assert "The sales were as follows:" in texts(passage(text))


def test_what_is_introduced_is_bounded(passage: Make) -> None:
    text = "All of it:\n\n" + "\n".join(f"- item number {n} of a very long list of items" for n in range(60))
    assert len(texts(passage(text))[0]) < 700


@pytest.mark.parametrize(
    "line",
    [
        "3 Chunking . . . . . . . . . . . . . . . . 10",
        "Chunking ............ 10",
        "3.1 How many chunks",
        "A Handbook of Retrieval 3 Chunking",
    ],
)
def test_lines_of_contents_headings_and_running_heads_are_no_candidates(passage: Make, line: str) -> None:
    made = passage(f"{line}\n\nA chunk is a span.", title="A Handbook of Retrieval", headings=["3 Chunking"])
    assert texts(made) == ["A chunk is a span."]


@pytest.mark.parametrize("line", ["3.5 million people live there.", "Chunking: 3 ways", "Wait... it rose."])
def test_lines_that_say_something_stay(passage: Make, line: str) -> None:
    assert line in texts(passage(f"{line}\n\nA chunk is a span.", headings=["Chunking"]))


def test_the_code_after_the_introduction_is_quoted_with_it(ask: Ask, passage: Make) -> None:
    text = "To check the version, run:\n\n```\nagent --version\n```\n\nUpdates come weekly."
    extraction = ask("How do I check the version?", [passage(text)])
    assert "agent --version" in extraction.sentences[0].text


def test_a_question_in_the_text_is_not_quoted_but_its_answer(ask: Ask, passage: Make) -> None:
    text = "How do I reset my password?\n\nOpen Settings, choose Security and press Reset."
    extraction = ask("How do I reset my password?", [passage(text)])
    assert [s.text for s in extraction.sentences] == ["Open Settings, choose Security and press Reset."]


def test_a_row_that_says_nothing_is_not_quoted(ask: Ask, passage: Make) -> None:
    text = "The index keeps a hash of each file.\n\nno | Hash: new\n\nyes | Hash: old"
    extraction = ask("Why does the index keep a hash?", [passage(text)])
    assert [s.text for s in extraction.sentences] == ["The index keeps a hash of each file."]


def test_of_two_equal_rows_that_of_the_named_document_comes_first(ask: Ask, passage: Make) -> None:
    row = "Services | Three Months Ended June 25, 2022: {} | Three Months Ended June 26, 2021: {}"
    passages = [
        passage(row.format("12,001", "11,002"), source="2022 Q3 Beta.pdf", title="Beta Inc."),
        passage(row.format("11,500", "9,000"), source="2022 Q1 Acme.pdf", title="Acme Inc."),
        passage(row.format("19,604", "17,486"), source="2022 Q3 Acme.pdf", title="Acme Inc."),
    ]
    extraction = ask("What were Acme's net sales of services in Q3 2022?", passages, threshold=0.0)
    assert extraction.sentences[0].text == "Services | Three Months Ended June 25, 2022: 19,604"


def test_the_line_keyed_definition_answers_what_is(ask: Ask, passage: Make) -> None:
    text = (
        "Learning by nested vectors\n\ndefinition: A way of training in which the first dimensions are usable by "
        "themselves.\nyear: 2022\npaper: Kusupati: Learning by Nested Vectors"
    )
    made = passage(text, title="Learning by nested vectors")
    first = ask("What is learning by nested vectors?", [made], threshold=0.0).sentences[0]
    assert first.text.startswith("definition: A way of training")
