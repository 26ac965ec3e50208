"""The recursive character splitter: sizes, overlap, separators, and what holds for every text."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cognicraft.errors import UsageError
from cognicraft.ingest.recursive import RecursiveSplitter
from cognicraft.models.minilm import MiniLM
from cognicraft.protocols import TokenOffsets
from cognicraft.records import Document


@pytest.fixture(scope="module")
def offsets() -> TokenOffsets:
    return MiniLM(threads=1).token_offsets


def cut(text: str, offsets: TokenOffsets, **options: object) -> list[str]:
    splitter = RecursiveSplitter(**options)  # type: ignore[arg-type]
    return [chunk.text for chunk in splitter(Document(source="x", text=text), offsets=offsets)]


def test_paragraphs_are_kept_whole_where_they_fit(offsets: TokenOffsets) -> None:
    assert cut("aaa bbb\n\nccc ddd\n\neee", offsets, max_characters=9, overlap_characters=0) == [
        "aaa bbb",
        "ccc ddd",
        "eee",
    ]


def test_finer_separators_are_used_only_where_a_piece_is_too_long(offsets: TokenOffsets) -> None:
    text = "Short one.\n\nThis is long. It goes on and on"
    assert cut(text, offsets, max_characters=16, overlap_characters=0) == [
        "Short one.",
        "This is long.",
        "It goes on and",
        "on",
    ]


def test_a_chunk_begins_with_the_end_of_the_one_before(offsets: TokenOffsets) -> None:
    assert cut("a b c d e f g h", offsets, max_characters=8, overlap_characters=4) == ["a b c d", "c d e f", "e f g h"]


def test_other_separators_can_be_given(offsets: TokenOffsets) -> None:
    assert cut("one;two;three", offsets, max_characters=4, overlap_characters=0, separators=(";", "")) == [
        "one;",
        "two;",
        "thre",
        "e",
    ]


def test_without_the_empty_separator_a_long_word_stays_whole(offsets: TokenOffsets) -> None:
    assert cut("abcdefgh ij", offsets, max_characters=4, overlap_characters=0, separators=(" ",)) == ["abcdefgh", "ij"]


@pytest.mark.parametrize("sizes", [(0, 0), (10, 10), (10, -1), (-5, 0)])
def test_sizes_that_cannot_be_meant_are_refused_with_a_remedy(sizes: tuple[int, int]) -> None:
    with pytest.raises(UsageError) as refused:
        RecursiveSplitter(max_characters=sizes[0], overlap_characters=sizes[1])
    assert "characters" in refused.value.message
    assert refused.value.remedy


@settings(deadline=None)
@given(
    text=st.text(alphabet=st.sampled_from("ab. \n\n漢é") | st.characters(codec="utf-8"), max_size=300),
    size=st.integers(1, 60),
    overlap=st.integers(0, 59),
)
def test_chunks_are_exact_bounded_in_order_and_cover_the_text(
    offsets: TokenOffsets, text: str, size: int, overlap: int
) -> None:
    overlap = min(overlap, size - 1)
    document = Document(source="x", text=text)
    chunks = RecursiveSplitter(max_characters=size, overlap_characters=overlap)(document, offsets=offsets)
    covered = 0
    for before, chunk in zip([None, *chunks], chunks, strict=False):
        assert document.text[chunk.start : chunk.end] == chunk.text == chunk.text.strip() != ""
        assert len(chunk.text) <= size
        assert text[covered : max(chunk.start, covered)].strip() == ""
        if before is not None:
            assert chunk.start > before.start
            assert chunk.end > before.end
            assert before.end - chunk.start <= overlap
        covered = chunk.end
    assert text[covered:].strip() == ""
    assert bool(chunks) == bool(text.strip())
