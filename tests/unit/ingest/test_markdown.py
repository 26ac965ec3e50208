"""Markdown: what of the source stays as it is, and what becomes readable."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cognicraft.errors import BinaryFile, EmptyFile
from cognicraft.ingest.read import read_file
from unit.ingest.reading import assert_sound, blocks_of, read_one, write


def test_headings_lose_their_marks_and_keep_their_levels(tmp_path: Path) -> None:
    document = read_one(write(tmp_path, "a.md", "# Top #\n\nSub *one*\n---------\n\n### Third {#id}\ntext"))
    assert blocks_of(document) == [
        ("heading", "Top"),
        ("heading", "Sub *one*"),
        ("heading", "Third"),
        ("paragraph", "text"),
    ]
    assert [block.level for block in document.blocks] == [1, 2, 3, 0]
    assert document.title == "Top"
    assert document.heading_path(len(document.text) - 1) == ("Top", "Sub *one*", "Third")


def test_paragraphs_and_lists_are_quoted_as_they_are_written(tmp_path: Path) -> None:
    source = "Words **with** [marks](x.md)\nand `code`.\n\n> quoted\n\n1. one\n   - two\n\n   three\n2. four\n"
    document = read_one(write(tmp_path, "a.md", source))
    assert blocks_of(document) == [
        ("paragraph", "Words **with** [marks](x.md)\nand `code`."),
        ("paragraph", "> quoted"),
        ("list", "1. one\n   - two\n\n   three\n2. four"),
    ]


def test_code_is_kept_without_its_fences(tmp_path: Path) -> None:
    document = read_one(
        write(tmp_path, "a.md", "```python\ndef f():\n\n    return '# no heading'\n```\n\n    indented\n")
    )
    assert blocks_of(document) == [("code", "def f():\n\n    return '# no heading'"), ("code", "indented")]


def test_table_rows_describe_themselves(tmp_path: Path) -> None:
    table = "| Format | Width | Note |\n|---|--:|---|\n| A4 | 210 | |\n| A5 | 148 | a \\| b |\n| 7 | 8 | 9 |\n"
    document = read_one(write(tmp_path, "a.md", "**Table 1.**\n\n" + table))
    assert blocks_of(document)[1] == (
        "table",
        "A4 | Width: 210\nA5 | Width: 148 | Note: a | b\nFormat: 7 | Width: 8 | Note: 9",
    )


def test_front_matter_is_title_and_metadata(tmp_path: Path) -> None:
    matter = "---\ntitle: The Title\ndate: 2022-03-01\ntags: [a, b]\nauthor:\n  name: Ada\nn: 3\nnone:\n---\n# First\n"
    document = read_one(write(tmp_path, "a.md", matter))
    assert document.title == "The Title"
    assert document.metadata == {"date": "2022-03-01", "tags": ("a", "b"), "author.name": "Ada", "n": 3}
    assert document.text == "First"


@pytest.mark.parametrize("matter", ["title: [", "a: *unknown", "? [b\n: c"])
def test_bad_front_matter_is_text_with_a_warning(tmp_path: Path, matter: str) -> None:
    document = read_one(write(tmp_path, "a.md", f"---\n{matter}\n---\n\nWords\n"))
    assert "front matter" in document.warnings[0]
    assert "Words" in document.text


def test_front_matter_that_unfolds_without_end_is_bounded(tmp_path: Path) -> None:
    levels = "\n".join(f"l{i}: &l{i} [{', '.join([f'*l{i - 1}'] * 9)}]" for i in range(1, 12))
    document = read_one(write(tmp_path, "a.md", f"---\nl0: &l0 {{k: lol}}\n{levels}\n---\nWords\n"))
    assert document.text == "Words"
    assert len(document.metadata) <= 64


def test_a_thematic_break_is_no_front_matter(tmp_path: Path) -> None:
    document = read_one(write(tmp_path, "a.md", "---\nJust words\n---\nmore\n"))
    assert "Just words" in document.text
    assert "more" in document.text


def test_html_blocks_become_their_text_and_comments_vanish(tmp_path: Path) -> None:
    source = "<p align=center><img src=x><b>Logo</b> text</p>\n\n<!-- secret\n\nstill -->\n\nWords <!-- inner --> end\n"
    document = read_one(write(tmp_path, "a.md", source))
    assert blocks_of(document) == [("paragraph", "Logo text"), ("paragraph", "Words  end")]


def test_windows_newlines_and_a_byte_order_mark(tmp_path: Path) -> None:
    document = read_one(write(tmp_path, "a.md", b"\xef\xbb\xbf# A\r\n\r\nb\r\nc\r\n"))
    assert document.text == "A\n\nb\nc"


@pytest.mark.parametrize("content", ["", "\n\n", "---\ntitle: x\n---\n", "<!-- only -->\n", "***\n"])
def test_nothing_but_marks_is_empty(tmp_path: Path, content: str) -> None:
    with pytest.raises(EmptyFile):
        read_one(write(tmp_path, "a.md", content))


@pytest.mark.parametrize("mark", ["> ", "- ", "[", "*", "~", "<div>", "|"])
def test_deep_nesting_is_read(tmp_path: Path, mark: str) -> None:
    assert "x" in read_one(write(tmp_path, "a.md", mark * 5_000 + "\n\nx\n")).text


MARKS = st.lists(
    st.sampled_from("# |-*`>~\n\t<:![]()=_1.\\&;{}")
    | st.sampled_from(["\n\n", "```", "---", "| a |", "<b>", "<!--", "word", "    ", "é"])
)


@given(MARKS.map("".join))
@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_markdown_gives_a_sound_document(tmp_path: Path, text: str) -> None:
    path = write(tmp_path, "a.md", text)
    try:
        (document,) = read_file(str(path), {})
    except (EmptyFile, BinaryFile):
        return
    assert_sound(document)
