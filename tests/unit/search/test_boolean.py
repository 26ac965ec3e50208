"""Boolean queries as people type them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cognicraft.errors import FilterError
from cognicraft.records import AllOf, AnyOf, BooleanQuery, NoneOf, Phrase, Term
from cognicraft.search.boolean import parse
from cognicraft.search.lexical import LexicalEncoder, term_index

ENCODER = LexicalEncoder()
CAT, DOG, MOON = Term(("cat",)), Term(("dog",)), Term(("moon",))


def tree(query: str, *languages: str) -> BooleanQuery:
    return parse(query, encoder=ENCODER, languages=languages or ["en"])[0]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("cats", CAT),
        ("cat dog", AllOf((CAT, DOG))),
        ("cat AND dog", AllOf((CAT, DOG))),
        ("cat && dog", AllOf((CAT, DOG))),
        ("cat OR dog", AnyOf((CAT, DOG))),
        ("cat||dog", AnyOf((CAT, DOG))),
        ("cat OR dog moon", AnyOf((CAT, AllOf((DOG, MOON))))),
        ("(cat OR dog) moon", AllOf((AnyOf((CAT, DOG)), MOON))),
        ("cat NOT dog", AllOf((CAT, NoneOf(DOG)))),
        ("cat -dog", AllOf((CAT, NoneOf(DOG)))),
        ("cat !dog", AllOf((CAT, NoneOf(DOG)))),
        ("NOT NOT cat", NoneOf(NoneOf(CAT))),
        ("cat -(dog moon)", AllOf((CAT, NoneOf(AllOf((DOG, MOON)))))),
        ('"cats and dogs"', Phrase(("cat", "dog"))),
        ("“cats dogs”", Phrase(("cat", "dog"))),
        ('"cats"', CAT),
        ("snake_case", Phrase(("snake", "case", "snakecas"))),
        ("and or not cat", CAT),
        ("What is the cat?", CAT),
        ("the AND cat", CAT),
        ("cat - dog", AllOf((CAT, DOG))),
    ],
)
def test_query_gives_tree(query: str, expected: BooleanQuery) -> None:
    assert tree(query) == expected


def test_operators_are_upper_case_only() -> None:
    assert tree("cat or dog") == AllOf((CAT, DOG))


def test_a_word_has_a_form_for_each_language() -> None:
    assert tree("nations", "en", "") == Term(("nations", "nation"))


def test_a_question_in_a_workspace_of_two_languages_asks_for_no_stop_word() -> None:
    assert tree("What is the cat", "en", "de") == CAT


def test_rank_by_leaves_out_what_is_negated() -> None:
    _, vector = parse("cat NOT dog NOT (moon NOT wolf)", encoder=ENCODER, languages=["en"])
    assert term_index("dog") not in vector.indices.tolist()
    assert term_index("moon") not in vector.indices.tolist()
    assert {term_index("cat"), term_index("wolf")} <= set(vector.indices.tolist())


@pytest.mark.parametrize(
    ("query", "position", "expected"),
    [
        ("(cat OR dog", 12, '")"'),
        ("cat OR", 7, "a word"),
        ("OR cat", 1, "a word"),
        ("cat AND OR dog", 9, "a word"),
        ("cat )", 5, "the end"),
        ('cat "dog', 5, "not closed"),
        ("()", 2, "a word"),
        ("NOT", 4, "a word"),
    ],
)
def test_what_does_not_parse_is_named_with_its_place(query: str, position: int, expected: str) -> None:
    with pytest.raises(FilterError, match=f"character {position}") as caught:
        tree(query)
    assert expected in caught.value.message
    assert caught.value.remedy


@pytest.mark.parametrize("query", ["", "   ", "the of", "?", "NOT the", '""'])
def test_a_query_without_words_is_refused(query: str) -> None:
    with pytest.raises(FilterError):
        tree(query)


def test_deep_nesting_is_refused_and_not_a_crash() -> None:
    with pytest.raises(FilterError, match="inside each other"):
        tree("(" * 5000 + "cat" + ")" * 5000)
    with pytest.raises(FilterError, match="inside each other"):
        tree("NOT " * 5000 + "cat")


@given(st.text(alphabet='ab "()-!&|ANDORT', max_size=40) | st.text(max_size=60))
def test_any_text_parses_or_is_refused(query: str) -> None:
    try:
        found = tree(query)
    except FilterError:
        return  # refused in our own words; any other error fails the test
    assert isinstance(found, Term | Phrase | AllOf | AnyOf | NoneOf)
