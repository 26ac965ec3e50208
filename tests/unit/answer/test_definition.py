"""Questions that ask what a thing is, and how plainly a sentence says it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cognicraft.answer.definition import defines, thing_asked


@pytest.mark.parametrize(
    ("question", "thing"),
    [
        ("What is BM25?", "BM25"),
        ("what's a chunk", "a chunk"),
        ("What does RRF stand for?", "RRF"),
        ("What is meant by late interaction?", "late interaction"),
        ("Who was Ada Lovelace?", "Ada Lovelace"),
        ("Define hubness.", "hubness"),
        ("Was ist ein Index?", "ein Index"),
        ("How many chunks are there?", None),
        ("Why is the sky blue?", None),
        ("", None),
    ],
)
def test_the_thing_that_is_asked_for(question: str, thing: str | None) -> None:
    assert thing_asked(question) == thing


@pytest.mark.parametrize(
    ("sentence", "names", "opens", "least", "most"),
    [
        ("A chunk is a span of its document.", (), False, 1.0, 1.0),
        ("Chunks are short.", (), False, 0.5, 0.7),
        ("chunk: a span of its document", (), False, 0.8, 0.8),
        ("definition: A span of its document.", ("3.1 Chunks",), False, 1.0, 1.0),
        ("definition: A list of rankings.", ("fusion",), False, 0.0, 0.0),
        ("It is what is found, ranked and cited.", ("Chunk",), True, 0.4, 0.6),
        ("It is what is found, ranked and cited.", ("Chunk",), False, 0.0, 0.0),
        ("The overlap of a chunk is short.", (), False, 0.0, 0.0),
        ("", (), False, 0.0, 0.0),
    ],
)
def test_how_plainly_a_sentence_defines(
    terms: Callable[[str], list[str]],
    sentence: str,
    names: tuple[str, ...],
    opens: bool,
    least: float,
    most: float,
) -> None:
    plainness = defines(sentence, thing=frozenset(terms("a chunk")), names=names, opens=opens, lexical_terms=terms)
    assert least <= plainness <= most


def test_a_name_in_brackets_is_the_name_as_well(terms: Callable[[str], list[str]]) -> None:
    sentence = "Reciprocal rank fusion (RRF) is a sum of reciprocal ranks."
    for thing in ("RRF", "reciprocal rank fusion"):
        assert defines(sentence, thing=frozenset(terms(thing)), names=(), opens=False, lexical_terms=terms) == 1.0
    assert defines(sentence, thing=frozenset(), names=(), opens=False, lexical_terms=terms) == 0.0
