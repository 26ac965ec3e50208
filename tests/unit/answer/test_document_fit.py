"""Which document a question names."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cognicraft.answer.document_fit import document_fit
from cognicraft.answer.extract import Passage

Terms = Callable[[str], list[str]]
Make = Callable[..., Passage]


def fits(question: str, sources: Sequence[str], passage: Make, terms: Terms) -> list[float]:
    stored = [passage(f"Text {n}.", source=source).stored for n, source in enumerate(sources)]
    return document_fit(question, stored, lexical_terms=terms)


def test_the_file_whose_name_the_question_says_fits_best(passage: Make, terms: Terms) -> None:
    sources = ["2022 Q3 acme.pdf", "2023 Q3 acme.pdf", "2023 Q1 acme.pdf", "2023 Q3 other.pdf"]
    fit = fits("What were Acme's sales in Q3 2023?", sources, passage, terms)
    assert max(fit) == fit[1] > fit[0]
    assert sorted(fit)[-2] < fit[1]


def test_a_quarter_in_words_is_the_quarter_of_the_file_name(passage: Make, terms: Terms) -> None:
    fit = fits("What were the sales in the first quarter?", ["acme Q3.pdf", "acme_Q1.pdf"], passage, terms)
    assert fit[1] > fit[0]


def test_the_latest_is_the_newest_of_the_files_that_fit_otherwise(passage: Make, terms: Terms) -> None:
    sources = ["2022 Q3 acme.pdf", "2023 Q1 acme.pdf", "2023 Q3 other.pdf"]
    fit = fits("What does Acme's latest report say of sales?", sources, passage, terms)
    assert max(fit) == fit[1]
    dated = fits("What does the newest log say?", ["log-2024-12-31.txt", "log-2025-01-02.txt"], passage, terms)
    assert dated[1] > dated[0]


def test_without_a_name_in_the_question_no_document_is_preferred(passage: Make, terms: Terms) -> None:
    assert fits("How tall is it?", ["acme.pdf", "other.pdf"], passage, terms) == [0.0, 0.0]
    assert fits("What does the acme report say?", ["acme.pdf"], passage, terms) == [0.0]
    assert fits("What does the acme report say?", [], passage, terms) == []


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    question=st.text(max_size=40),
    sources=st.lists(st.sampled_from(["2023 Q1 a.pdf", "b 2024-01.txt", "c", "folder/d e.md#/1", ""]), max_size=4),
)
def test_the_number_lies_between_0_and_1(passage: Make, terms: Terms, question: str, sources: list[str]) -> None:
    fit = fits(question, sources, passage, terms)
    assert len(fit) == len(sources)
    assert all(0.0 <= value <= 1.0 for value in fit)
