"""Answers to claims: spans exact, nothing lost, cut only where both sides stand on their own."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cognicraft.answer.cited_sentences import cited_sentences
from cognicraft.answer.claims import claims

KNOWN = (1, 2, 3)

PIECES = st.sampled_from([
    "The bridge was opened in 1932", "Acme bought Initech", "and", "but", ";", ",", ".", " ", " ", "\n", "\n\n", "[1]",
    "[2][3]", "[9]", "it", "the tunnel was closed", "# Heading", "- item", "| a | b |", "```", "which",
    "Berlin is large", "e.g.", "3.5", "東京。", "whereas", "while", "(", ")", "\"",
])  # fmt: skip


def texts(answer: str) -> list[str]:
    return [claim.text for claim in claims(answer, known=KNOWN)]


@given(st.one_of(st.lists(PIECES, max_size=25).map(" ".join), st.text(max_size=200)))
def test_spans_are_exact_in_order_and_cover_every_statement(answer: str) -> None:
    found = claims(answer, known=KNOWN)
    end = 0
    for claim in found:
        assert end <= claim.start < claim.end <= len(answer)
        end = claim.end
    covered = {position for claim in found for position in range(claim.start, claim.end)}
    for sentence in cited_sentences(answer, known=KNOWN):
        if sentence.says_something:
            letters = {at for at in range(sentence.start, sentence.end) if answer[at].isalnum()}
            assert letters <= covered


@given(st.lists(PIECES, max_size=25).map(" ".join))
def test_no_word_is_lost_or_made_up(answer: str) -> None:
    for claim in claims(answer, known=KNOWN):
        stands = re.sub(r"\[\d+\]", " ", answer[claim.start : claim.end])
        words, given_words = re.findall(r"\w+", claim.text), re.findall(r"\w+", stands)
        dropped = given_words[: len(given_words) - len(words)]
        assert given_words[len(dropped) :] == words
        assert dropped in ([], ["and"], ["but"], ["while"], ["whereas"])


@given(st.lists(PIECES, max_size=25).map(" ".join))
def test_every_citation_stays_with_some_claim_of_its_sentence(answer: str) -> None:
    found = claims(answer, known=KNOWN)
    for sentence in cited_sentences(answer, known=KNOWN):
        if sentence.says_something:
            own = [claim for claim in found if sentence.start <= claim.start < sentence.end]
            cited = {number for claim in own for number in claim.cited}
            assert cited == {*sentence.citations, *sentence.unknown}


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (
            "Acme bought Initech in 2019, and the deal was paid in cash.",
            ["Acme bought Initech in 2019", "the deal was paid in cash."],
        ),
        ("Berlin is large; Bonn is small.", ["Berlin is large", "Bonn is small."]),
        ("The lake was frozen but the river was open.", ["The lake was frozen", "the river was open."]),
        ("Sales of cars rose, while the price of steel fell by half.", None),
        ("The firm was founded in Paris and has offices in Rome.", None),
        ("It rose in May, and it fell in June.", None),
        ("Salt and pepper were sold, and used.", None),
        ("If the tenant leaves, and the landlord agrees, the deposit is returned.", None),
        ("He said that the bridge was closed and the road was open.", None),
        ("The bridge, which was opened in 1932, is long.", None),
        ("The firm sells cars and trucks built in Japan.", None),
    ],
)
def test_a_sentence_is_cut_only_between_clauses_that_stand_alone(answer: str, expected: list[str] | None) -> None:
    found = texts(answer)
    if answer.startswith("Sales"):  # both sides have a subject and a verb: either is right, but no word is lost
        assert " ".join(found).replace(",", "").count("steel") == 1
    else:
        assert found == (expected or [answer])


@pytest.mark.parametrize("endless", ["The a is b and ", "one hundred and ", "A is b; ", "[1]", "(", "x, and "])
def test_an_endless_sentence_is_taken_in_good_time(endless: str) -> None:
    started = time.process_time()
    claims(f"Berlin is large {endless * 5_000}.", known=KNOWN)
    assert time.process_time() - started < 5.0


def test_a_piece_cites_what_stands_in_it() -> None:
    first, second = claims("The bridge was opened in 1932 [1] and the tunnel was closed in 1940 [2].", known=KNOWN)
    assert (first.text, first.cited) == ("The bridge was opened in 1932", (1,))
    assert (second.text, second.cited) == ("the tunnel was closed in 1940.", (2,))


def test_citations_at_the_end_belong_to_all_pieces_without_one() -> None:
    assert [claim.cited for claim in claims("Berlin is large; Bonn is small. [1][3]", known=KNOWN)] == [(1, 3), (1, 3)]


def test_a_number_that_no_passage_has_stays_cited() -> None:
    assert claims("Berlin is large [7].", known=KNOWN)[0].cited == (7,)


def test_headings_introductions_and_code_state_nothing() -> None:
    assert texts("# Bridges\n\nThese were opened:\n\n```\nopen(1932)\n```\n\nThe bridge was opened in 1932. [1]") == [
        "The bridge was opened in 1932."
    ]


def test_a_row_of_a_table_is_one_claim() -> None:
    assert len(texts("| Year | Length; Width |\n|---|---|\n| 1932 | 503 m; 49 m [1] |")) == 1
