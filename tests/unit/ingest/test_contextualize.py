"""The context of a chunk: what it says, what it leaves out, and that the two arms are kept apart."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cognicraft.errors import UsageError
from cognicraft.ingest.contextualize import contextualize, file_words
from cognicraft.records import Chunk, Document


def chunk_of(text: str, *heading_path: str) -> Chunk:
    return Chunk(text=text, start=0, end=len(text), heading_path=heading_path)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("2022 Q3 AAPL.pdf", "2022 Q3 AAPL"),
        ("filings/ACME_2021Q2_10Q.pdf", "ACME 2021 Q2 10Q"),
        ("a\\b\\annualReport2020.tar.gz", "annual Report 2020"),
        ("https://example.com/docs/get-started.html?a=1#b", "get started"),
        ("docs/README", "README"),
        ("v1.2 notes.md", "v1.2 notes"),
        (".bashrc", "bashrc"),
        ("报告_2020.pdf", "报告 2020"),
        ("", ""),
    ],
)
def test_a_file_name_is_read_as_words(source: str, words: str) -> None:
    assert file_words(source) == words


def test_the_outline_is_title_file_name_and_headings_above_each_other() -> None:
    document = Document(source="ACME_2021Q2_10Q.pdf", text="…", title="Quarterly report")
    (one,) = contextualize(document, [chunk_of("Sales rose.", "Part I", "Results")], dense="none", lexical="outline")
    assert one.lexical_context == "Quarterly report\nACME 2021 Q2 10Q\nPart I\nResults"
    assert one.lexical_text.endswith("\nSales rose.")
    assert one.dense_context == ""
    assert one.dense_text == "Sales rose."


@pytest.mark.parametrize(
    ("source", "context"),
    [("4983", ""), ("8c2f1d9ab04e77aa.json", ""), ("2021.pdf", "2021"), ("10-K.pdf", "10 K"), ("Q3.pdf", "Q3")],
)
def test_a_file_name_that_only_numbers_the_file_is_left_out(source: str, context: str) -> None:
    (one,) = contextualize(Document(source=source, text="…"), [chunk_of("Text.")], lexical="outline")
    assert one.lexical_context == context


def test_each_arm_has_its_own_mode() -> None:
    document = Document(source="a.md", text="…", title="Title")
    for dense in ("none", "outline"):
        for lexical in ("none", "outline"):
            (one,) = contextualize(document, [chunk_of("Text.")], dense=dense, lexical=lexical)  # type: ignore[arg-type]
            assert bool(one.dense_context) == (dense == "outline")
            assert bool(one.lexical_context) == (lexical == "outline")


def test_what_the_text_begins_with_and_what_was_said_before_is_left_out() -> None:
    document = Document(source="rivers.md", text="…", title="Rivers")
    (one,) = contextualize(document, [chunk_of("## Rivers\nThey flow.", "Rivers")], lexical="outline")
    assert one.lexical_context == ""
    (two,) = contextualize(document, [chunk_of("They flow.", "Rivers", "The Nile")], lexical="outline")
    assert two.lexical_context == "Rivers\nThe Nile"


def test_a_mode_that_does_not_exist_is_refused_by_name() -> None:
    document = Document(source="a", text="a")
    with pytest.raises(UsageError, match="outlines") as refused:
        contextualize(document, [], lexical="outlines")  # type: ignore[arg-type]
    assert "outline" in refused.value.remedy


words = st.builds(lambda text, times: text * times, st.text(max_size=12), st.integers(0, 40))


@settings(deadline=None)
@given(words, st.lists(words, max_size=5), st.text(max_size=50))
def test_the_outline_is_bounded_and_the_chunk_untouched(title: str, path: list[str], text: str) -> None:
    document = Document(source="some/file name.pdf", text=text, title=title)
    chunk = chunk_of(text, *path)
    (one,) = contextualize(document, [chunk], dense="outline", lexical="outline")
    assert one.chunk is chunk
    assert len(one.dense_context) <= 310
    assert all(0 < len(line) <= 120 for line in one.dense_context.split("\n") if one.dense_context)
