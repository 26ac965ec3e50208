"""Quantities: what they are worth, and when one bears another out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cognicraft.answer.verify_numbers import Quantity, agrees, missing, quantities, rival


def only(text: str) -> Quantity:
    (found,) = quantities(text)
    return found


@pytest.mark.parametrize(
    ("text", "value", "kind", "unit"),
    [
        ("1,234.5 apples", 1234.5, "plain", ""),
        ("1.234,5 apples", 1234.5, "plain", ""),
        ("1.2 million people", 1.2e6, "plain", ""),
        ("$3bn", 3e9, "money", "dollar"),
        ("58 million euros", 58e6, "money", "euro"),
        ("12%", 12.0, "percent", ""),
        ("12 per cent of it", 12.0, "percent", ""),
        ("twenty-one people", 21.0, "plain", ""),
        ("two hundred people", 200.0, "plain", ""),
        ("three thousand people", 3000.0, "plain", ""),
        ("in 1932", 1932.0, "year", ""),
        ("1,932 people", 1932.0, "plain", ""),
        ("27 kilometres", 27_000.0, "measure", "length"),
        ("27 km", 27_000.0, "measure", "length"),
        ("10 mg", 0.01, "measure", "mass"),
        ("the third quarter", 3.0, "quarter", ""),
        ("Q3", 3.0, "quarter", ""),
        ("11·9 million", 11.9e6, "plain", ""),
    ],
)
def test_a_quantity_is_read(text: str, value: float, kind: str, unit: str) -> None:
    found = only(text)
    assert (found.kind, found.unit) == (kind, unit)
    assert found.value == pytest.approx(value)


@pytest.mark.parametrize(
    ("claim", "evidence"),
    [
        ("4,806 people", "4806 people"),
        ("1.2 million people", "1,234,567 people"),
        ("three ships", "3 ships"),
        ("5 km", "5,000 metres"),
        ("about 4,800 people", "4,806 people"),
        ("58 million euros", "€58m"),
        ("12 percent", "12%"),
        ("Q3 2023", "the third quarter of 2023"),
        ("9 June 1714", "1714-06-09"),
        ("3.14", "3.14159"),
    ],
)
def test_what_agrees(claim: str, evidence: str) -> None:
    assert missing(quantities(claim), quantities(evidence)) == []


@pytest.mark.parametrize(
    ("claim", "evidence"),
    [
        ("4,810 people", "4,806 people"),
        ("1,234,567 people", "1.2 million people"),
        ("3 million people", "3 billion people"),
        ("58 million dollars", "58 million euros"),
        ("10 g", "10 mg"),
        ("27 miles", "27 kilometres"),
        ("12 percent", "12 people"),
        ("1932", "1923"),
        ("Q2", "the third quarter"),
        ("in May 2020", "in June 2020"),
    ],
)
def test_what_does_not_agree(claim: str, evidence: str) -> None:
    assert missing(quantities(claim), quantities(evidence))


def test_identifiers_and_fractions_are_no_quantities() -> None:
    assert quantities("PI-3K and ARRY-142886 and IL2 and 1/2000") == ()


def test_figures_taken_apart_are_read_both_ways() -> None:
    there = quantities("The fortress is 3, 800 km away, at 2. 4 miles.", both_readings=True)
    assert not missing(quantities("3,800 km and 2.4 miles"), there)
    assert not missing(quantities("3 and 800 km"), there)


def test_the_rival_is_what_stands_beside_the_same_noun() -> None:
    there = quantities("In 2020 the fleet had 34 ships and 2,600 men.")
    found = rival(only("43 ships"), there)
    assert found is not None
    assert found.text == "34"


@given(st.text(max_size=300))
def test_any_text_is_taken_and_spans_lie_in_it(text: str) -> None:
    for found in (*quantities(text), *quantities(text, both_readings=True)):
        assert 0 <= found.start < found.end <= len(text)


def test_what_is_too_large_to_be_a_number_is_none() -> None:
    assert quantities("one hundred and " * 400) == ()
    assert quantities("9" * 300 + " trillion") == ()


@given(st.integers(0, 10**9))
def test_a_number_agrees_with_itself_however_it_is_written(number: int) -> None:
    plain, grouped = quantities(f"it has {number} parts"), quantities(f"it has {number:,} parts")
    if plain[0].kind == grouped[0].kind:  # 1932 may be a year, 1,932 may not
        assert agrees(plain[0], grouped[0])


@given(st.integers(2100, 10**8), st.integers(1, 1000))
def test_another_whole_number_does_not_agree(number: int, more: int) -> None:
    assert missing(quantities(f"{number} parts"), quantities(f"{number + more} parts"))
