"""From targets to files: folders, patterns, links, strange names, and what is said of what is not read."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cognicraft.errors import Unreadable, UnsupportedFile
from cognicraft.ingest.discover import FoundFile, count_skipped, discover
from cognicraft.ingest.sourcename import path_of, source_of
from unit.ingest.reading import write


def names(found: list[FoundFile], folder: Path) -> list[str]:
    return [os.path.relpath(file.path, folder) for file in found if not file.error and not file.skipped]


def find(*targets: Path | str) -> list[FoundFile]:
    return list(discover([str(target) for target in targets]))


def test_a_folder_is_walked_to_the_bottom_in_order(tmp_path: Path) -> None:
    for name in (
        "b.txt",
        "a/z.md",
        "a/y/x.json",
        "c.PDF",
        ".hidden.txt",
        ".git/a.txt",
        "node_modules/a.js",
        "~$d.docx",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        write(tmp_path, name, "x")
    found = find(tmp_path)
    assert names(found, tmp_path) == ["a/y/x.json", "a/z.md", "b.txt", "c.PDF"]
    assert found[0].size == 1
    assert found[0].mtime_ns == (tmp_path / "a/y/x.json").stat().st_mtime_ns
    assert found[0].source == (tmp_path / "a/y/x.json").as_posix()


def test_files_that_no_reader_takes_are_skipped_in_a_folder_and_refused_by_name(tmp_path: Path) -> None:
    for name in ("a.png", "b.png", "c.txt", "d", "README"):
        write(tmp_path, name, "x")
    found = find(tmp_path)
    assert names(found, tmp_path) == ["README", "c.txt"]
    assert count_skipped(found) == {"no reader for *.png": 2, "no extension": 1}
    (named,) = find(tmp_path / "a.png")
    assert isinstance(named.error, UnsupportedFile)
    assert "a.png" in named.error.message


def test_a_file_without_an_extension_may_be_named(tmp_path: Path) -> None:
    assert names(find(write(tmp_path, "notes", "x")), tmp_path) == ["notes"]


def test_a_hidden_file_may_be_named(tmp_path: Path) -> None:
    assert names(find(write(tmp_path, ".notes.txt", "x")), tmp_path) == [".notes.txt"]


def test_what_does_not_exist_is_named_and_the_rest_is_found(tmp_path: Path) -> None:
    write(tmp_path, "a.txt", "x")
    found = find(tmp_path / "no.txt", tmp_path / "a.txt", tmp_path / "*.md", "")
    assert names(found, tmp_path) == ["a.txt"]
    messages = [file.error.message for file in found if file.error]
    assert "no.txt does not exist" in messages[0]
    assert "No file matches" in messages[1]
    assert "is not a path" in messages[2]
    assert all(isinstance(file.error, Unreadable) for file in found if file.error)


def test_patterns_match_across_folders_and_give_each_file_once(tmp_path: Path) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    for name in ("a/1.txt", "a/b/2.txt", "a/b/3.md"):
        write(tmp_path, name, "x")
    assert names(find(tmp_path / "**/*.txt"), tmp_path) == ["a/1.txt", "a/b/2.txt"]
    assert names(find(tmp_path / "a/b/*", tmp_path), tmp_path) == ["a/b/2.txt", "a/b/3.md", "a/1.txt"]
    assert names(find(tmp_path / "**"), tmp_path) == ["a/1.txt", "a/b/2.txt", "a/b/3.md"]


def test_a_name_that_looks_like_a_pattern_is_a_name_where_it_exists(tmp_path: Path) -> None:
    write(tmp_path, "1.txt", "x")
    path = write(tmp_path, "[1].txt", "x")
    assert names(find(path), tmp_path) == ["[1].txt"]


def test_the_same_file_is_given_once_and_equal_files_twice(tmp_path: Path) -> None:
    path = write(tmp_path, "a.txt", "x")
    write(tmp_path, "b.txt", "x")
    (tmp_path / "c.txt").symlink_to(path)
    assert names(find(path, tmp_path, f"{tmp_path}/./a.txt", path), tmp_path) == ["a.txt", "b.txt"]


def test_links_that_lead_in_a_circle_end_and_are_named(tmp_path: Path) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    write(tmp_path, "a/b/1.txt", "x")
    (tmp_path / "a/b/up").symlink_to(tmp_path / "a")
    (tmp_path / "again").symlink_to(tmp_path / "a/b")
    (tmp_path / "self").symlink_to(tmp_path / "self")
    (tmp_path / "dangling.txt").symlink_to(tmp_path / "gone.txt")
    found = find(tmp_path)
    assert names(found, tmp_path) == ["a/b/1.txt"]
    assert {Path(file.path).name: file.skipped for file in found if file.skipped} == {
        "up": "a link back to a folder above it", "again": "a folder read already",
    }  # fmt: skip
    errors = {Path(file.path).name: file.error.message for file in found if file.error}
    assert "leads back to itself" in errors["self"]
    assert "does not exist" in errors["dangling.txt"]


def test_a_link_out_of_the_folder_is_followed(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    write(tmp_path, "out/1.txt", "x")
    (tmp_path / "in/link").symlink_to(tmp_path / "out")
    assert names(find(tmp_path / "in"), tmp_path) == ["in/link/1.txt"]


@pytest.mark.skipif(os.name == "nt", reason="POSIX file names")
def test_strange_names_are_found_and_printable(tmp_path: Path) -> None:
    folder = os.fsencode(tmp_path)
    strange = [b"new\nline.txt", b"bytes\xff\xfe.txt", b"esc\x1b[31m.txt", b"back\\x41.txt", "größe.txt".encode()]
    for name in strange:
        with open(folder + b"/" + name, "wb") as stream:  # noqa: PTH123
            stream.write(b"x")
    found = find(tmp_path)
    assert sorted(os.fsencode(Path(file.path).name) for file in found) == sorted(strange)
    for file in found:
        file.source.encode("utf-8")
        assert file.source.isprintable()
        assert path_of(file.source) == file.path
        assert Path(path_of(file.source)).read_bytes() == b"x"


@pytest.mark.skipif(os.name == "nt", reason="POSIX file names")
@given(
    st.lists(
        st.binary(min_size=1, max_size=12).filter(lambda name: b"\x00" not in name), min_size=2, max_size=2, unique=True
    )
)
def test_sources_are_printable_distinct_and_lead_back(paths: list[bytes]) -> None:
    first, second = (source_of(path) for path in paths)
    assert first != second
    assert os.fsencode(path_of(first)) == paths[0]
    assert "\n" not in first
    first.encode("utf-8")


def test_a_list_on_standard_input(tmp_path: Path) -> None:
    for name in ("a.txt", "b c.txt"):
        write(tmp_path, name, "x")
    lines = f"{tmp_path}/b c.txt\r\n\n{tmp_path}/a.txt\n".encode()
    assert names(list(discover([], stdin_list=True, stdin=io.BytesIO(lines))), tmp_path) == ["b c.txt", "a.txt"]
    zeros = f"{tmp_path}/b c.txt\0{tmp_path}/a.txt\0".encode()
    assert names(list(discover([], stdin_list=True, stdin=io.BytesIO(zeros))), tmp_path) == ["b c.txt", "a.txt"]


def test_a_deep_tree_is_walked_without_recursion(tmp_path: Path) -> None:
    deep = tmp_path
    for _ in range(300):
        deep = deep / "d"
    deep.mkdir(parents=True)
    write(deep, "a.txt", "x")
    assert len(find(tmp_path)) == 1


def test_a_folder_without_permission_is_named(ordinary_folder: Path) -> None:
    (ordinary_folder / "closed").mkdir(mode=0)
    (entry,) = find(ordinary_folder)
    assert entry.error
    assert "no permission" in entry.error.message


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes")
def test_a_named_pipe_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.txt")
    assert [file.skipped for file in find(tmp_path)] == ["not a regular file"]
    (entry,) = find(tmp_path / "pipe.txt")
    assert entry.error
