"""Replies as sentences with their citations, however the pieces are cut."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cognicraft.answer.citations import CitationReader, CitedSentence, quote_span

KNOWN = frozenset({1, 2, 3, 4, 5})


def read(*pieces: str) -> tuple[str, tuple[CitedSentence, ...]]:
    reader = CitationReader(known=KNOWN)
    shown = "".join([*(reader.feed(piece) for piece in pieces), reader.close()])
    assert shown == reader.text
    for sentence in reader.sentences:
        assert shown[sentence.start : sentence.end] == sentence.text
    return shown, reader.sentences


def told(text: str) -> list[tuple[str, tuple[int, ...]]]:
    return [(sentence.text, sentence.citations) for sentence in read(text)[1]]


@pytest.mark.parametrize(
    ("form", "numbers"),
    [
        ("[1]", (1,)),
        ("[1][2]", (1, 2)),
        ("[1] [2]", (1, 2)),
        ("[1, 2]", (1, 2)),
        ("[1,2;3]", (1, 2, 3)),
        ("[1-3]", (1, 2, 3)),
        ("[1–3, 5]", (1, 2, 3, 5)),
        ("[2 and 4]", (2, 4)),
        ("【1】", (1,)),
        ("【2†source】", (2,)),
        ("[Source 1]", (1,)),
        ("[Sources 1, 2]", (1, 2)),
        ("[source: 3]", (3,)),
        ("[Passage 4]", (4,)),
        ("[passage 1, passage 2]", (1, 2)),
        ("[^1]", (1,)),
        ("[ 1 ]", (1,)),
        ("[1][1]", (1,)),
    ],
)
def test_every_usual_form_is_a_citation_before_and_after_the_full_stop(form: str, numbers: tuple[int, ...]) -> None:
    marks = "".join(f"[{number}]" for number in numbers)
    for reply in (
        f"The price is 5 {form}. Next one.",
        f"The price is 5. {form} Next one.",
        f"The price is 5.{form} Next one.",
    ):
        shown, sentences = read(reply)
        assert shown == f"The price is 5. {marks} Next one."
        assert [(one.text, one.citations) for one in sentences] == [("The price is 5.", numbers), ("Next one.", ())]


@pytest.mark.parametrize(
    "text", ["See [the note].", "From [2021] on.", "In [1.2, 3.4] it lies.", "[x] done", "a[i] is", "[0]"]
)
def test_other_brackets_are_text(text: str) -> None:
    assert read(text)[0] == text
    assert all(one.citations == one.unknown == () for one in read(text)[1])


def test_a_number_that_no_passage_has_is_kept_apart_and_shown() -> None:
    shown, (sentence,) = read("It is so [2][9].")
    assert shown == "It is so. [2][9]"
    assert (sentence.citations, sentence.unknown) == ((2,), (9,))


def test_citations_inside_a_sentence_stay_in_place() -> None:
    shown, (sentence,) = read("According to [2], it costs 5 [1], not 6 [3].")
    assert shown == "According to [2], it costs 5 [1], not 6. [3]"
    assert sentence.citations == (2, 1, 3)
    assert sentence.claim == "According to, it costs 5, not 6."


def test_abbreviations_and_scripts_without_spaces_do_not_hide_boundaries() -> None:
    assert told("It was Apple Inc. [1] Reports say so. [2]") == [("It was Apple Inc.", (1,)), ("Reports say so.", (2,))]
    assert told("价格是五。[1]重量是三。[2]") == [("价格是五。", (1,)), ("重量是三。", (2,))]
    assert told("See e.g. [1] for more.") == [("See e.g. [1] for more.", (1,))]


def test_items_of_lists_and_lines_without_stops_are_sentences() -> None:
    reply = "It has two parts:\n- the first [1]\n- the second [2].\n1. Then. [3]\n\nPrice: 5 [4]\nWeight: 3 [5]"
    sentences = read(reply)[1]
    assert [(one.text, one.citations, one.kind) for one in sentences] == [
        ("It has two parts:", (), "introduction"),
        ("the first", (1,), "sentence"),
        ("the second.", (2,), "sentence"),
        ("Then.", (3,), "sentence"),
        ("Price: 5", (4,), "sentence"),
        ("Weight: 3", (5,), "sentence"),
    ]


def test_a_citation_at_the_beginning_of_a_line_belongs_to_what_follows() -> None:
    assert told("[1] The price is 5.\n[2] The weight is 3.") == [("The price is 5.", (1,)), ("The weight is 3.", (2,))]
    assert told("The price is 5.\n[1]") == [("The price is 5.", (1,))]
    assert told("- [1] The price is 5.") == [("The price is 5.", (1,))]


@pytest.mark.parametrize("text", ["[1]. The price is 5.", "It is in [1].pdf now.", "A [1].5 B"])
def test_a_stop_that_ends_no_sentence_is_not_moved(text: str) -> None:
    assert read(text)[0] == text


def test_headings_tables_and_code_are_told_apart() -> None:
    reply = (
        "# Costs\n**In short**\n\n| What | Price |\n| --- | --- |\n| Fee | 5 [1] |\n| Tax | 2 | [2]\n\n"
        "```python\nprice = fees[1]. \n```\nUse `fees[2]` here [3].\n"
    )
    shown, sentences = read(reply)
    assert [(one.text, one.citations, one.kind) for one in sentences] == [
        ("# Costs", (), "heading"),
        ("**In short**", (), "heading"),
        ("| What | Price |", (), "heading"),
        ("| Fee | 5 [1] |", (1,), "row"),
        ("| Tax | 2 |", (2,), "row"),
        ("```python\nprice = fees[1]. \n```", (), "code"),
        ("Use `fees[2]` here.", (3,), "sentence"),
    ]
    assert "price = fees[1]. \n```\n" in shown


def test_citations_alone_belong_to_what_stands_before_them() -> None:
    code, after = read("```\nx = 1\n```\n[2]\n```\ny\n```")[1]
    assert (code.kind, code.citations, after.citations) == ("code", (2,), ())
    assert read("[1]\n# Costs\nNone.")[1][0].citations == (1,)


def test_a_sentence_without_a_citation_is_kept_as_such() -> None:
    assert told("First. [1] Second without. Third. [2]") == [
        ("First.", (1,)),
        ("Second without.", ()),
        ("Third.", (2,)),
    ]


def test_white_space_around_a_reply_is_not_shown() -> None:
    assert read("\n\n  It is 5. [1] \n\n")[0] == "It is 5. [1]"


def test_text_is_shown_as_soon_as_it_is_certain() -> None:
    reader = CitationReader(known=KNOWN)
    assert reader.feed("The price is") == "The price is"
    assert reader.feed(" 5 ") == " 5"
    assert reader.feed("[1") == ""
    assert reader.feed("].") == ""
    assert reader.feed(" Next") == ". [1] Next"
    assert reader.feed(" [no") == ""
    assert reader.feed("te] x") == " [note] x"


_BITS = st.sampled_from(
    [
        *(
            "[1]",
            "[2, 3]",
            "[9]",
            "【1】",
            "[Source 2]",
            "[1-3]",
            "[",
            "]",
            "【",
            "[1",
            "2]",
            "[note]",
            "`",
            "```",
            "\n```\n",
        ),
        *(
            ". ",
            ".",
            "!",
            " ",
            "\n",
            "\n\n",
            "- ",
            "1. ",
            "| ",
            " | ",
            "|---|",
            "# ",
            "**",
            '"',
            ")",
            "(",
            ":",
            ",",
            "。",
            "…",
        ),
        *("The price", "is", "5", "word", "Inc", "e.g", "Next", "价格", "é"),
    ]
)


@given(st.lists(_BITS, max_size=25).map("".join), st.data())
def test_where_the_pieces_are_cut_changes_nothing(text: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    pieces = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert read(*pieces) == read(text)


@given(st.lists(_BITS.filter(lambda bit: "`" not in bit), max_size=25).map("".join))
def test_nothing_but_white_space_and_citations_is_changed_and_none_is_lost(text: str) -> None:
    shown, sentences = read(text)
    letters = [character for character in text if character.isalpha() and character not in "Source"]
    assert [character for character in shown if character.isalpha() and character not in "Source"] == letters
    assert [(one.start, one.end) for one in sentences] == sorted((one.start, one.end) for one in sentences)
    cited = {number for one in sentences for number in (*one.citations, *one.unknown)}
    assert not sentences or cited == {int(number) for number in re.findall(r"\[([1-9]\d{0,2})\]", shown)}
    for earlier, later in pairwise(sentences):
        assert earlier.end <= later.start


def test_a_long_reply_takes_time_in_proportion() -> None:
    text = "The price of item is 5 [1]. [[[ ((( " * 3000
    assert len(read(text)[1]) > 2000


# ── the sentence of a passage that bears it out ───────────────────────────────────────────────────────────────

PASSAGE = (
    "The company was founded in 1998. Revenue rose to 12,345 million euro in 2021, after 11,000 million in 2020. "
    "The board thanks all employees. Costs fell by 3.5 percent."
)


@pytest.mark.parametrize(
    ("statement", "quoted"),
    [
        (
            "In 2021 revenue was 12345 million euro.",
            "Revenue rose to 12,345 million euro in 2021, after 11,000 million in 2020.",
        ),
        ("It was founded in 1998.", "The company was founded in 1998."),
        ("Die Kosten sanken um 3,5 Prozent.", "Costs fell by 3.5 percent."),
        ("Employees were thanked by the board.", "The board thanks all employees."),
    ],
)
def test_the_sentence_that_shares_most_is_quoted(statement: str, quoted: str) -> None:
    start, end = quote_span(statement, PASSAGE)
    assert PASSAGE[start:end] == quoted


def test_neighbours_are_quoted_with_it_where_they_add_what_it_lacks() -> None:
    start, end = quote_span("The board thanks employees, and costs fell by 3.5 percent.", PASSAGE)
    assert PASSAGE[start:end] == "The board thanks all employees. Costs fell by 3.5 percent."


def test_where_nothing_is_shared_the_whole_passage_is_quoted() -> None:
    assert quote_span("Zebras graze.", PASSAGE) == (0, len(PASSAGE))
    assert quote_span("", PASSAGE) == (0, len(PASSAGE))
    assert quote_span("Zebras graze.", "") == (0, 0)


def test_scripts_without_spaces_are_compared_by_pairs_of_letters() -> None:
    passage = "公司成立于一九九八年。收入增长到一百万。"
    start, end = quote_span("收入为一百万。", passage)
    assert passage[start:end] == "收入增长到一百万。"


@given(st.text(max_size=60), st.text(max_size=200))
def test_a_quote_always_lies_in_its_passage(statement: str, passage: str) -> None:
    start, end = quote_span(statement, passage)
    assert 0 <= start <= end <= len(passage)
    assert quote_span(statement, passage) == (start, end)
