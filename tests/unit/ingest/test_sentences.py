"""Sentence spans: what ends a sentence and what does not, and what holds for every text."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cognicraft.ingest.sentences import sentences


def cut(text: str) -> list[str]:
    return [text[start:end] for start, end in sentences(text)]


@pytest.mark.parametrize(
    "text",
    [
        "Dr. Smith met Prof. Jones at St. Mary's.",
        "J. R. R. Tolkien wrote it.",
        "The U.S. Government paid $4.5 million.",
        "Sales rose 3.5 % to 1,234.56 in Q3.",
        "See Fig. 3 and Eq. 4, e.g. The first one.",
        "Apple Inc. Reports results.",
        "It is No. 5 in the list.",
        "Version 1.2.3 of www.example.com is out.",
        "He said “Why?” and left.",
        "Yahoo! is a company.",
        "Am 3. Oktober feiert man.",
        "Das kostet ca. Zwanzig Euro, d.h. Viel.",
        "It wrapped\nin the middle of a line.",
        "Wait ... not yet.",
        "The year-end (approx. Dec. 31) was strong.",
        "1. First item stands alone.",
        "(a) The company shall pay.",
    ],
)
def test_a_stop_that_ends_nothing_is_not_a_boundary(text: str) -> None:
    assert cut(text) == [text]


@pytest.mark.parametrize(
    "parts",
    [
        ("One is here.", "Two is there."),
        ("He works at Apple Inc.", "The firm is big."),
        ("It rained in the U.S.", "The sun came later."),
        ("Really?!", "Yes."),
        ("She said “Go.”", "He went."),
        ("It was proved.[12]", "Others disagree."),
        ("It ended in 1999.", "Then it began."),
        ("He bought apples, pears, etc.", "They were good."),
        ("They like it.", "iPhone sales rose."),
        ("(It was late.)", "We left."),
        ("Wait…", "There it is."),
        ("It is vitamin C.", "The body needs it."),
        ("¿Qué es?", "¡Nada!"),
    ],
)
def test_a_stop_before_a_new_sentence_is_a_boundary(parts: tuple[str, ...]) -> None:
    assert cut(" ".join(parts)) == list(parts)


def test_text_without_capitals_is_cut_at_its_stops() -> None:
    text = "sales rose by 5.2 million in 2017. costs fell. see note 18. the rest stayed."
    assert cut(text) == ["sales rose by 5.2 million in 2017.", "costs fell.", "see note 18.", "the rest stayed."]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("今天下雨。明天晴吗？他说「好。」然后走了。", ["今天下雨。", "明天晴吗？", "他说「好。」", "然后走了。"]),
        ("これはペンです。それは本です！", ["これはペンです。", "それは本です！"]),
        ("यह एक वाक्य है। यह दूसरा है॥", ["यह एक वाक्य है।", "यह दूसरा है॥"]),
        ("هل هذا صحيح؟ نعم. انتهى", ["هل هذا صحيح؟", "نعم.", "انتهى"]),
        ("یہ جملہ ہے۔ دوسرا جملہ۔", ["یہ جملہ ہے۔", "دوسرا جملہ۔"]),
        ("См. рис. 5 ниже. Там всё видно.", ["См. рис. 5 ниже.", "Там всё видно."]),
    ],
)
def test_stops_of_other_scripts_end_sentences(text: str, expected: list[str]) -> None:
    assert cut(text) == expected


def test_lines_of_lists_and_tables_stand_alone() -> None:
    text = "We sell:\n- apples and pears\n- nuts\n2) plums\n"
    text += "Sales | 2021: 5 | 2020: 4\nCosts | 2021: 3 | 2020: 2\nThat is all."
    assert cut(text) == text.split("\n")


def test_a_short_line_over_a_long_one_is_a_heading_and_a_blank_line_always_ends() -> None:
    text = "Risk factors\nOur business depends on the weather of the whole of next year\nand on rain\n\nand more"
    assert cut(text) == [
        "Risk factors",
        "Our business depends on the weather of the whole of next year\nand on rain",
        "and more",
    ]


def test_only_the_span_that_was_asked_for_is_cut() -> None:
    text = "One here. Two there. Three now."
    assert [text[a:b] for a, b in sentences(text, start=4, end=16)] == ["here.", "Two th"]
    assert sentences(text, start=9, end=9) == []
    assert sentences("  \n\t ") == []


texts = st.text(
    alphabet=st.sampled_from("aAbZ9. .!?…\n\n \t'\"”)]|-•。؟।1(é漢") | st.characters(codec="utf-8"), max_size=120
)


@settings(deadline=None)
@given(texts, st.integers(0, 130), st.integers(0, 130))
def test_spans_are_bare_in_order_and_hold_every_character_that_is_not_white(text: str, start: int, end: int) -> None:
    spans = sentences(text, start=start, end=end)
    position = start
    for first, last in spans:
        assert text[position:first].strip() == ""
        assert first < last <= end
        assert text[first:last] == text[first:last].strip()
        position = last
    assert text[position:end].strip() == ""


@pytest.mark.parametrize("unit", ["one two three. ", "word ", "a\n", "x | y\n", "U.S. ", "。", "1. ", '." '])
def test_time_grows_with_the_text_and_no_faster(unit: str) -> None:
    def seconds(copies: int) -> float:
        started = time.process_time()
        sentences(unit * copies)
        return time.process_time() - started

    small = max(seconds(10_000), 0.005)
    assert seconds(80_000) < 40 * small


def test_lines_of_fields_are_sentences_of_their_own() -> None:
    text = "definition: A way of training in which the first\ndimensions are usable.\nyear: 2022\npaper: Somebody"
    assert [text[a:b] for a, b in sentences(text)] == [
        "definition: A way of training in which the first\ndimensions are usable.",
        "year: 2022",
        "paper: Somebody",
    ]
