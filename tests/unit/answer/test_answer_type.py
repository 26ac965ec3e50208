"""What a question asks for, and whether a sentence holds it."""

from __future__ import annotations

import pytest

from cognicraft.answer.answer_type import asked_for, holds


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("How many points did they score?", "number"),
        ("What percentage of voters stayed away?", "number"),
        ("What were total net sales?", "number"),
        ("What were Apple's net sales of services in Q3 2022?", "number"),
        ("When was the treaty signed?", "date"),
        ("In what year did it end?", "date"),
        ("Who wrote it?", "name"),
        ("Where does the Rhine begin?", "name"),
        ("Wie viele Einwohner hat Bern?", "number"),
        ("¿Cuándo terminó la guerra?", "date"),
        ("Why is the sky blue?", None),
        ("", None),
    ],
)
def test_the_kind_that_is_asked_for(question: str, kind: str | None) -> None:
    assert asked_for(question) == kind


def test_what_the_question_says_itself_does_not_count() -> None:
    question = "How many people lived in Bern in 1850?"
    assert not holds("In 1850 Bern grew.", "number", question=question)
    assert holds("In 1850 Bern had 27,000 inhabitants.", "number", question=question)
    assert not holds("It was built by Bern.", "name", question="Who built Bern?")
    assert holds("It was built by Berchtold.", "name", question="Who built Bern?")
    assert holds("They left in May.", "date", question="When did they leave?")
    assert not holds("They left.", None, question="Why did they leave?")


@pytest.mark.parametrize(
    "sentence",
    [
        "Sales increased during the third quarter of 2022.",
        "See Note 3 and Item 2.",
        "(3) Services include advertising.",
        "The three- and nine-month periods ended June 25, 2022.",
    ],
)
def test_dates_and_marks_are_no_amounts(sentence: str) -> None:
    assert not holds(sentence, "number", question="How much did they sell?")
    assert holds(f"{sentence} They sold 19,604.", "number", question="How much did they sell?")
