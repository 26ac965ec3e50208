"""Table rows: which cells are shown, with which unit."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cognicraft.answer.extract import Extraction, Passage
from cognicraft.answer.rows import cells, chosen_cells, column_head, unit

Terms = Callable[[str], list[str]]

ROW = (
    "Net sales: Services | Three Months Ended June 25, 2022: $ 19,604 | Three Months Ended June 26, 2021: 17,486 "
    "| Nine Months Ended June 25, 2022: 58,941 | Nine Months Ended June 26, 2021: 50,148"
)


def shown(question: str, terms: Terms, row: str = ROW) -> list[str]:
    return [row[start:end] for start, end in chosen_cells(row, question=question, lexical_terms=terms)][1:]


def test_cells_are_spans_of_the_row_without_white_space() -> None:
    row = "Label  | a: 1 |  | b: 2"
    assert [row[start:end] for start, end in cells(row)] == ["Label", "a: 1", "b: 2"]


@pytest.mark.parametrize(("cell", "head"), [("2022: $ 5", "2022"), ("At 10:30: 5", "At 10:30"), ("12", ""), ("a:", "")])
def test_the_column_head_stands_before_the_last_colon(cell: str, head: str) -> None:
    assert column_head(cell) == head


def test_the_year_asked_for_picks_its_columns(terms: Terms) -> None:
    assert shown("What were net sales of services in 2021?", terms) == [
        "Three Months Ended June 26, 2021: 17,486",
        "Nine Months Ended June 26, 2021: 50,148",
    ]


@pytest.mark.parametrize(
    "question",
    ["What were net sales of services in Q3 2022?", "What were services sales in the third quarter of 2022?"],
)
def test_a_quarter_asked_for_picks_the_column_of_three_months(terms: Terms, question: str) -> None:
    assert shown(question, terms) == ["Three Months Ended June 25, 2022: $ 19,604"]


def test_the_date_asked_for_picks_one_column(terms: Terms) -> None:
    question = "What were net sales of services in the nine months ended June 25, 2022?"
    assert shown(question, terms) == ["Nine Months Ended June 25, 2022: 58,941"]


def test_a_question_that_names_no_column_gets_the_whole_row(terms: Terms) -> None:
    assert len(shown("What did services bring in?", terms)) == 4


def test_the_unit_is_the_nearest_remark_before_the_row() -> None:
    text = f"Operations\n(In millions, except per share amounts)\n{ROW}"
    start = text.index(ROW)
    span = unit(text, row_start=start, row_end=len(text))
    assert span is not None
    assert text[slice(*span)] == "(In millions, except per share amounts)"


def test_no_unit_is_made_up_and_none_is_repeated() -> None:
    assert unit(f"It sold in millions of homes.\n{ROW}", row_start=30, row_end=30 + len(ROW)) is None
    own = "(In thousands)\nShares (in millions) | 2022: 5"
    assert unit(own, row_start=15, row_end=len(own)) is None
    words = "(In thousands)\nColour | Left: red"
    assert unit(words, row_start=15, row_end=len(words)) is None


def test_a_row_is_answered_with_label_column_and_unit_and_quoted_whole(
    ask: Callable[..., Extraction], passage: Callable[..., Passage]
) -> None:
    text = (
        "Apple Inc. Condensed Consolidated Statements of Operations (In millions)\n\n"
        f"Net sales: Products | Three Months Ended June 25, 2022: $ 63,355\n{ROW}\n"
        "Cost of sales: Services | Three Months Ended June 25, 2022: 5,589"
    )
    extraction = ask("What were the net sales of services in Q3 2022?", [passage(text, source="10q.pdf", start=7)])
    assert extraction.answered
    first = extraction.sentences[0]
    assert first.text == "Net sales: Services | Three Months Ended June 25, 2022: $ 19,604 (In millions)"
    assert text[first.start - 7 : first.end - 7] == ROW


def test_the_row_named_in_full_comes_before_prose_and_rows_named_in_half(
    ask: Callable[..., Extraction], passage: Callable[..., Passage]
) -> None:
    prose = "Services net sales increased during the third quarter of 2022 due primarily to advertising."
    table = (
        f"Net sales by category: iPhone | Three Months Ended June 25, 2022: $ 40,665\n{ROW}\n"
        "Cost of sales: Services | Three Months Ended June 25, 2022: 5,589"
    )
    extraction = ask("What were Apple's net sales of services in Q3 2022?", [passage(prose), passage(table)])
    assert extraction.sentences[0].text == "Net sales: Services | Three Months Ended June 25, 2022: $ 19,604"
