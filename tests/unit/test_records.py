"""Ids, hashes and heading paths follow from content, never from position."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cognicraft.records import Block, Chunk, Document, chunk_id, digest

texts = st.text(st.characters(), max_size=20)


@given(texts, texts, texts, texts)
def test_a_digest_tells_where_one_part_ends(a: str, b: str, c: str, d: str) -> None:
    assert (digest(a, b) == digest(c, d)) == ((a, b) == (c, d))


def test_equal_texts_in_two_files_are_two_documents() -> None:
    one, two = Document(source="a.txt", text="same"), Document(source="b.txt", text="same")
    assert one.content_hash == two.content_hash
    assert one.id != two.id


def test_a_new_version_keeps_the_id_and_changes_the_hash() -> None:
    old, new = Document(source="a.txt", text="old"), Document(source="a.txt", text="new")
    assert old.id == new.id
    assert old.content_hash != new.content_hash


def test_metadata_is_part_of_the_content() -> None:
    assert (
        Document(source="a", text="t", metadata={"year": 1}).content_hash
        != Document(source="a", text="t", metadata={"year": 2}).content_hash
    )


def test_a_chunk_id_does_not_depend_on_its_position() -> None:
    here, there = Chunk(text="t", start=0, end=1), Chunk(text="t", start=50, end=51)
    assert chunk_id("d", "r", here) == chunk_id("d", "r", there)
    assert chunk_id("d", "r", here) != chunk_id("d", "r2", here)
    assert chunk_id("d", "r", here) != chunk_id("d", "r", Chunk(text="t", start=0, end=1, occurrence=1))


def test_a_heading_path_holds_the_open_headings_only() -> None:
    text = "One\nTwo\nbody\nThree\nend"
    document = Document(
        source="a",
        text=text,
        blocks=(
            Block("heading", 0, 3, level=1),
            Block("heading", 4, 7, level=2),
            Block("paragraph", 8, 12),
            Block("heading", 13, 18, level=2),
            Block("paragraph", 19, 22),
        ),
    )
    assert document.heading_path(9) == ("One", "Two")
    assert document.heading_path(20) == ("One", "Three")
    assert document.heading_path(0) == ("One",)
