"""What a question is taken to mean without a model."""

from __future__ import annotations

import pytest

from cognicraft.records import DocumentRecord, digest
from cognicraft.search.lexical import LexicalEncoder
from cognicraft.search.names import Names
from cognicraft.search.understand import expand, key_terms, understand

LEXICAL = LexicalEncoder()


def names(*sources: str, language: str = "en") -> Names:
    records = [DocumentRecord(digest(source), source, "1") for source in sources]
    return Names.learn(records, terms=lambda text: LEXICAL.terms(text, language=language))


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What's BM25?", "What is BM25?"),
        ("Why didn’t it work?", "Why did not it work?"),
        ("They'll say I'm late and can't", "They will say I am late and cannot"),
        ("Acme's report", "Acme's report"),
        ("rock'n'roll", "rock'n'roll"),
    ],
)
def test_contractions_are_written_out_and_possessives_stay(question: str, expected: str) -> None:
    assert expand(question) == expected


def test_key_terms_are_the_words_that_tell_in_their_order() -> None:
    assert key_terms("What's the capital expenditure of Acme in the capital?") == ("capital", "expenditure", "Acme")
    assert key_terms("Wie hoch ist der Umsatz von Acme?", language="de") == ("hoch", "Umsatz", "Acme")
    assert key_terms("Quel est le chiffre d'affaires de l'Oréal ?") == ("chiffre", "affaires", "Oréal")
    assert key_terms("What is it?") == ()


@pytest.mark.parametrize(
    "question",
    [
        "Show me my biography",
        "open the biography",
        "Could you please show me the whole biography document?",
        "Zeig mir meine Biography",
        "Montre-moi ma biography",
        "Muéstrame mi biography",
        "Apri il documento biography",
        "summarize my biography",
    ],
)
def test_a_document_asked_for_by_its_name_is_given_whole(question: str) -> None:
    known = names("me/biography.md", "me/letters.md", "me/taxes 2022.pdf")
    assert understand(question, names=known).whole_document == digest("me/biography.md")


def test_the_annual_report_of_a_year_is_given_whole() -> None:
    known = names("acme annual report 2021.pdf", "acme annual report 2022.pdf", "acme minutes 2022.txt")
    understood = understand("Open the 2022 annual report", names=known)
    assert understood.whole_document == digest("acme annual report 2022.pdf")
    assert understood.notes[0] == "Taken to ask for the whole of acme annual report 2022.pdf."
    latest = understand("show me the latest annual report", names=known)
    assert latest.whole_document == digest("acme annual report 2022.pdf")


@pytest.mark.parametrize(
    "question",
    [
        "What does my biography say?",  # a question about it
        "Show me the revenue in the biography",  # about something in it
        "Show me the letters",  # two of them
        "Show me everything",
        "Open",
        "Show me how fusion works",
    ],
)
def test_what_does_not_clearly_ask_for_one_document_is_an_ordinary_question(question: str) -> None:
    known = names("me/biography.md", "me/letters 1.md", "me/letters 2.md")
    assert understand(question, names=known).whole_document == ""


def test_a_person_is_told_what_the_question_was_taken_to_mean() -> None:
    known = names("2022 Q3 ACME.pdf", "2022 Q2 ACME.pdf", "2022 Q3 BOLT.pdf")
    understood = understand("What's Acme's revenue in Q3 2022?", names=known)
    assert understood.query == "What is Acme's revenue in Q3 2022?"
    assert understood.hints[0].source == "2022 Q3 ACME.pdf"
    assert understood.hints[0].words == ("Acme", "Q3 2022")
    assert understood.notes == ("Taken to mean: Acme, Q3 2022 -> 2022 Q3 ACME.pdf.",)
    missing = understand("What's Acme's revenue in Q3 2019?", names=known)
    assert missing.notes[-1] == "No document of that name is for 2019 Q3."


def test_without_names_nothing_is_hinted_at() -> None:
    understood = understand("What did Acme earn in 2021?")
    assert understood.hints == ()
    assert understood.whole_document == ""
    assert understood.notes == ()
