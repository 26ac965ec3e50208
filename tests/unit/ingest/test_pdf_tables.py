"""Tables: every row tells its label and the head of each value; no number is lost or given a head by guess."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cognicraft.ingest.pdf import read_pdf
from cognicraft.ingest.pdf_cells import split_cells
from cognicraft.ingest.pdf_furniture import drop_furniture
from cognicraft.ingest.pdf_source import Line, Word, line_of, open_pdf
from cognicraft.ingest.pdf_tables import find_tables
from cognicraft.records import Document
from datasets import DATA
from pdf_files import Sheet

FILINGS = DATA / "sec10q_docugami" / "v1" / "docs"
needs_filings = pytest.mark.skipif(not FILINGS.is_dir(), reason="the SEC filings are not in ../shared/data")
NUMBER = re.compile(r"\d[\d,.]*\d|\d")


def read(path: Path) -> Document:
    (document,) = read_pdf(str(path), options={})
    return document


def tables(document: Document) -> list[list[str]]:
    return [document.text[block.start : block.end].split("\n") for block in document.blocks if block.kind == "table"]


def statement(path: Path) -> Sheet:
    """An income statement: two levels of heads, sections, a label of two lines, currency signs set apart."""
    sheet = Sheet(path).center(306, 720, "STATEMENTS OF OPERATIONS", bold=True)
    sheet.center(306, 708, "(In millions, except per-share amounts)")
    for left, period in ((300, "Three Months Ended"), (440, "Nine Months Ended")):
        sheet.center(left + 65, 690, period, size=8, bold=True).rule(left, left + 130, 687)
        for number, year in enumerate(("2022", "2021")):
            middle = left + 35 + 65 * number
            sheet.center(middle, 678, f"June {25 + number},", size=8, bold=True)
            sheet.center(middle, 670, year, size=8, bold=True)
    rows = [
        (72, "Net sales:", []),
        (82, "Products", ["$", "63,355", "$", "63,948", "$", "245,241", "$", "232,309"]),
        (82, "Services", ["", "19,604", "", "17,486", "", "58,941", "", "50,148"]),
        (92, "Total net sales", ["", "82,959", "", "81,434", "", "304,182", "", "282,457"]),
        (72, "Operating expenses:", []),
        (82, "Research and development", ["", "6,797", "", "5,717", "", "19,490", "", "16,142"]),
        (82, "Other income/(expense), net", ["", "(10)", "", "—", "", "(97)", "", "796"]),
        (72, "Operating income", ["$", "1.20", "$", "1.31", "$", "4.86", "$", "4.42"]),
    ]
    y = 650.0
    for left, label, cells in rows:
        sheet.text(left, y, label)
        for number, cell in enumerate(cells):
            column, value = divmod(number, 2)
            edge = 300 + 70 * (column // 2) * 2 + 65 * (column % 2)
            if cell and not value:
                sheet.text(edge + 2, y, cell)
            elif cell:
                sheet.right(edge + 60, y, cell)
        y -= 12
    return sheet.text(72, y - 24, "See the notes to these statements, which are part of them.")


def test_each_row_tells_its_section_its_label_and_the_full_head_of_each_value(tmp_path: Path) -> None:
    document = read(statement(tmp_path / "a.pdf").save())
    (rows,) = tables(document)
    assert rows[0] == "(In millions, except per-share amounts)"
    assert rows[1] == (
        "Net sales: Products | Three Months Ended June 25, 2022: $63,355 | Three Months Ended June 26, 2021: $63,948"
        " | Nine Months Ended June 25, 2022: $245,241 | Nine Months Ended June 26, 2021: $232,309"
    )
    assert rows[2].startswith("Net sales: Services | Three Months Ended June 25, 2022: 19,604 | ")
    assert rows[5].startswith(
        "Operating expenses: Other income/(expense), net | Three Months Ended June 25, 2022: (10)"
    )
    assert "June 26, 2021: — |" in rows[5]
    assert rows[6].startswith("Operating income | Three Months Ended June 25, 2022: $1.20 | ")
    assert document.text.endswith("See the notes to these statements, which are part of them.")


def test_a_section_ends_with_its_total_and_with_its_indent(tmp_path: Path) -> None:
    sheet = Sheet(tmp_path / "a.pdf")
    rows = [(72, "Assets:", ""), (82, "Cash", "10"), (92, "Total cash", "10"), (92, "Margin", "4"), (72, "Tax", "2")]
    for number, (left, label, value) in enumerate(rows):
        sheet.text(left, 700 - 12 * number, label).right(400, 700 - 12 * number, value or " ")
    (lines,) = tables(read(sheet.save()))
    assert lines == ["Assets: Cash | 10", "Assets: Total cash | 10", "Margin | 4", "Tax | 2"]


def test_a_label_of_two_lines_is_one_label(tmp_path: Path) -> None:
    sheet = Sheet(tmp_path / "a.pdf").text(72, 700, "Cash").right(400, 700, "1,000")
    sheet.text(72, 686, "Adjustments for realized gains included in").text(72, 677, "net income").right(
        400, 677, "2,000"
    )
    sheet.text(72, 663, "Total").right(400, 663, "3,000")
    assert tables(read(sheet.save())) == [
        ["Cash | 1,000", "Adjustments for realized gains included in net income | 2,000", "Total | 3,000"]
    ]


def test_without_heads_none_is_made_up(tmp_path: Path) -> None:
    sheet = Sheet(tmp_path / "a.pdf").lines(
        72, 730, ["The following table shows what was sold in the course of the year:"]
    )
    for number, label in enumerate(("Apples", "Pears")):
        sheet.text(72, 700 - 12 * number, label).right(300, 700 - 12 * number, "12").right(
            400, 700 - 12 * number, "340"
        )
    assert tables(read(sheet.save())) == [["Apples | 12 | 340", "Pears | 12 | 340"]]


def test_years_as_labels_are_labels(tmp_path: Path) -> None:
    sheet = Sheet(tmp_path / "a.pdf")
    for number, year in enumerate(("2023", "2024", "Thereafter")):
        sheet.text(72, 700 - 12 * number, year).right(400, 700 - 12 * number, f"{number + 1},500")
    assert tables(read(sheet.save())) == [["2023 | 1,500", "2024 | 2,500", "Thereafter | 3,500"]]


def test_prose_with_numbers_stays_prose(tmp_path: Path) -> None:
    lines = [
        "In 2022 we sold 63,355 units, and in 2021 we",
        "sold 63,948; the price was $4.20 on average in 2022 and",
        "$4.10 in 2021.",
    ]
    document = read(Sheet(tmp_path / "a.pdf").lines(72, 700, lines).save())
    assert tables(document) == []
    assert document.text == " ".join(lines)


def line(*cells: tuple[float, float, str]) -> Line:
    return line_of([Word(text, left, right) for left, right, text in cells], bottom=0.0, top=10.0, weight=400)


@pytest.mark.parametrize(
    ("cells", "texts"),
    [
        ([(0, 5, "$"), (40, 60, "1,234")], ["$1,234"]),
        ([(0, 5, "$"), (40, 43, "("), (43, 60, "10"), (60, 63, ")")], ["$(10)"]),
        ([(0, 20, "53.6"), (24, 32, "%"), (60, 80, "43.5"), (84, 92, "%")], ["53.6%", "43.5%"]),
        ([(0, 20, "Net"), (22, 40, "sales"), (100, 120, "12")], ["Net sales", "12"]),
        ([(0, 20, "12"), (25, 45, "13")], ["12", "13"]),
    ],
)
def test_signs_stay_with_their_number(cells: list[tuple[float, float, str]], texts: list[str]) -> None:
    assert [cell.text for cell in split_cells(line(*cells))] == texts


WORDS = st.sampled_from(
    ["Net", "sales", "12", "(3)", "$", "4,500", "2022", "Total:", "—", "%", "of", "U.S.", "1.5%", "June 30,"]
)
ROWS = st.lists(
    st.tuples(st.lists(st.tuples(st.integers(0, 40), WORDS), min_size=1, max_size=6), st.integers(-3, 30)), max_size=14
)


@settings(max_examples=60)
@given(ROWS)
def test_no_word_of_any_page_is_lost_and_tables_never_overlap(rows: list[tuple[list[tuple[int, str]], int]]) -> None:
    lines: list[Line] = []
    y = 700.0
    for cells, step in rows:
        y -= step
        words: list[Word] = []
        right = 50.0
        for gap, text in cells:
            left = right + gap * 3
            right = left + 5 * len(text)
            words.append(Word(text, left, right))
        lines.append(line_of(words, bottom=y, top=y + 10, weight=400))
    found = find_tables(lines)
    assert all(before.end <= after.start for before, after in pairwise(found))
    for table in found:
        assert 0 <= table.start < table.end <= len(lines)
        wanted = Counter(number for line in lines[table.start : table.end] for number in NUMBER.findall(line.text))
        assert not wanted - Counter(NUMBER.findall(table.text))
        letters = Counter(c for line in lines[table.start : table.end] for c in line.text if c.isalpha())
        assert not letters - Counter(table.text)


@needs_filings
@pytest.mark.parametrize("name", ["2022 Q3 AAPL", "2023 Q1 MSFT"])
def test_every_number_of_a_filing_is_on_its_page_in_the_text(name: str) -> None:
    path = FILINGS / f"{name}.pdf"
    with open_pdf(str(path)) as source:
        kept = drop_furniture([source.page(index).lines for index in range(source.page_count)])
    document = read(path)
    for lines, page in zip(kept, document.pages, strict=True):
        wanted = Counter(number for line in lines for number in NUMBER.findall(line.text))
        missing = wanted - Counter(NUMBER.findall(document.text[page.start : page.end]))
        assert not missing, f"page {page.number}: {missing}"


FACTS = {
    "2022 Q3 AAPL": [
        (
            4,
            "Net sales: Services | Three Months Ended June 25, 2022: 19,604 | Three Months Ended June 26, 2021: 17,486",
        ),
        (6, "Current assets: Inventories | June 25, 2022: 5,433 | September 25, 2021: 6,580"),
    ],
    "2023 Q1 MSFT": [
        (
            3,
            "Total revenue | Three Months Ended December 31, 2022: 52,747"
            " | Three Months Ended December 31, 2021: 51,728",
        ),
    ],
}


@needs_filings
@pytest.mark.parametrize("name", FACTS)
def test_rows_of_real_filings_read_as_the_page_shows_them(name: str) -> None:
    document = read(FILINGS / f"{name}.pdf")
    for number, fact in FACTS[name]:
        page = document.pages[number - 1]
        assert fact in document.text[page.start : page.end]
