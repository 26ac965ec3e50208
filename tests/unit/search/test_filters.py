"""Metadata filters as people type them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cognicraft.errors import FilterError
from cognicraft.records import And, Equals, Exists, Filter, In, Not, Or, Range
from cognicraft.search.filters import format_filter, parse_filter


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('company = "AAPL"', Equals("company", "AAPL")),
        ("company == 'AAPL'", Equals("company", "AAPL")),
        ("draft = true", Equals("draft", True)),
        ("year = 2022", Equals("year", 2022)),
        ("year != 2022", Not(Equals("year", 2022))),
        ("year >= 2022", Range("year", gte=2022)),
        ("2020 <= year < 2022", Range("year", gte=2020, lt=2022)),
        ("2020 < year", Range("year", gt=2020)),
        ("rate < -1.5e3", Range("rate", lt=-1500.0)),
        ('x in ("a", 1, false)', In("x", ("a", 1, False))),
        ("x not in (1)", Not(In("x", (1,)))),
        ("x exists", Exists("x")),
        ("NOT x EXISTS", Not(Exists("x"))),
        ("a = 1 and b = 2 or c = 3", Or((And((Equals("a", 1), Equals("b", 2))), Equals("c", 3)))),
        ("a = 1 and (b = 2 or c = 3)", And((Equals("a", 1), Or((Equals("b", 2), Equals("c", 3)))))),
        ("`net sales` > 0", Range("net sales", gt=0)),
        ("`and` = 1", Equals("and", 1)),
        ('a = "say \\"x\\" \\\\"', Equals("a", 'say "x" \\')),
        ("a.b-c/d = 1", Equals("a.b-c/d", 1)),
        ('größe = "ß"', Equals("größe", "ß")),
    ],
)
def test_text_gives_filter(text: str, expected: Filter) -> None:
    found = parse_filter(text)
    assert found == expected
    assert repr(found) == repr(expected)  # 1 == True in Python; here they differ


@pytest.mark.parametrize(
    ("text", "position", "reason"),
    [
        ("", 1, "the name of a field"),
        ("company = AAPL", 11, "in quotes"),
        ("company", 8, "expected ="),
        ("year > '2022'", 8, "a number"),
        ("year > 1e999", 8, "finite"),
        ("a = 1 b = 2", 7, "and, or"),
        ("(a = 1", 7, '")"'),
        ("a = 1)", 6, "the end"),
        ("a in ()", 7, "a value"),
        ("a in 1", 6, '"("'),
        ('a = "x', 5, "not closed"),
        ("a ~ 1", 3, "means nothing"),
        ("2020 < 2022", 8, "the name of a field"),
        ("not", 4, "the name of a field"),
    ],
)
def test_what_does_not_parse_is_named_with_its_place(text: str, position: int, reason: str) -> None:
    with pytest.raises(FilterError, match=f"character {position}:") as caught:
        parse_filter(text)
    assert reason in caught.value.message
    assert caught.value.remedy


@pytest.mark.parametrize("tree", [In("a", ()), Range("a"), Range("a", gt=1, gte=1), And(()), Equals("", 1)])
def test_what_cannot_be_written_is_refused(tree: Filter) -> None:
    with pytest.raises(FilterError):
        format_filter(tree)


names = st.text(min_size=1, max_size=12).filter(lambda name: "`" not in name)
numbers = st.integers(-(10**18), 10**18) | st.floats(allow_nan=False, allow_infinity=False)
scalars = st.text(max_size=12) | numbers | st.booleans()
lower = st.fixed_dictionaries({"gte": numbers}) | st.fixed_dictionaries({"gt": numbers})
upper = st.fixed_dictionaries({"lte": numbers}) | st.fixed_dictionaries({"lt": numbers})
ranges = st.builds(
    lambda name, bounds: Range(name, **bounds),
    names,
    lower | upper | st.builds(lambda one, two: one | two, lower, upper),
)
conditions = (
    st.builds(Equals, names, scalars)
    | st.builds(In, names, st.lists(scalars, min_size=1, max_size=3).map(tuple))
    | st.builds(Exists, names)
    | ranges
)
filters = st.recursive(
    conditions,
    lambda inner: (
        st.builds(Not, inner)
        | st.builds(And, st.lists(inner, min_size=2, max_size=3).map(tuple))
        | st.builds(Or, st.lists(inner, min_size=2, max_size=3).map(tuple))
    ),
    max_leaves=6,
)


@settings(max_examples=60)
@given(filters)
def test_a_written_filter_is_read_back_the_same(tree: Filter) -> None:
    read = parse_filter(format_filter(tree))
    assert repr(read) == repr(tree)


@given(st.text(alphabet="ab1 =<>!()\"'`,andorti", max_size=30) | st.text(max_size=40))
def test_any_text_parses_or_is_refused(text: str) -> None:
    try:
        tree = parse_filter(text)
    except FilterError:
        return  # refused in our own words; any other error fails the test
    assert repr(parse_filter(format_filter(tree))) == repr(tree)


def test_deep_nesting_is_refused_and_not_a_crash() -> None:
    with pytest.raises(FilterError, match="inside each other"):
        parse_filter("not " * 5000 + "a = 1")
    with pytest.raises(FilterError, match="inside each other"):
        parse_filter("(" * 5000 + "a = 1" + ")" * 5000)
