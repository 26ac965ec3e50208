"""What it changes that a question names a document."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from cognicraft.answer.extract import Extraction, Passage
from cognicraft.answer.features import Named

Ask = Callable[..., Extraction]
Make = Callable[..., Passage]

QUESTION = "What was Acme's net income in Q3 2023?"


def test_of_two_equal_passages_the_one_of_the_named_document_is_quoted_first(passage: Make, ask: Ask) -> None:
    other = passage("Net income was 20 million.", source="b.pdf")
    named = replace(passage("Net income was 30 million.", source="a.pdf"), named=Named(1.0, ("Acme", "Q3 2023")))
    answer = ask(QUESTION, [other, named], threshold=0.0)
    assert answer.sentences[0].text == "Net income was 30 million."
    assert answer.sentences[0].passage_index == 1


def test_a_weak_fit_does_not_outweigh_what_a_passage_says(passage: Make, ask: Ask) -> None:
    telling = passage("Net income was 20 million.", source="b.pdf")
    named = replace(passage("The company makes pumps and valves.", source="a.pdf"), named=Named(0.2, ("Acme",)))
    assert ask(QUESTION, [telling, named], threshold=0.0).sentences[0].text == "Net income was 20 million."


def test_words_that_name_the_document_count_as_said_by_its_sentences(passage: Make, ask: Ask) -> None:
    unnamed = passage("Net income was 30 million.", source="AXQ_1.pdf")
    named = replace(unnamed, named=Named(0.0, ("Acme", "Q3 2023")))
    assert ask(QUESTION, [named], threshold=0.0).confidence > ask(QUESTION, [unnamed], threshold=0.0).confidence


def test_more_passages_are_read_only_where_they_are_asked_for(passage: Make, ask: Ask) -> None:
    passages = [passage(f"Pump {n} is painted blue.", source=f"{n}.txt") for n in range(14)]
    passages.append(passage("Net income of Acme was 30 million in Q3 2023.", source="last.txt"))
    assert "30 million" not in ask(QUESTION, passages, threshold=0.0).sentences[0].text
    assert "30 million" in ask(QUESTION, passages, threshold=0.0, max_passages=20).sentences[0].text
