"""Dispatch: which reader gets a file, and what is said where its name and its bytes disagree."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from cognicraft.errors import BinaryFile, CorruptFile, EmptyFile, Unreadable, UnsupportedFile
from cognicraft.ingest.read import SUPPORTED, media_type_of, read_file
from unit.ingest.reading import blocks_of, read_all, read_one, write

PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + b"\x00" * 50


@pytest.mark.parametrize("extension", sorted(set(SUPPORTED) - {".pdf", ".docx", ".xlsx", ".pptx"}))
def test_every_text_format_is_read_by_its_extension(tmp_path: Path, extension: str) -> None:
    content = '{"text": "words 1"}' if "json" in extension else "words 1\n"
    document = read_one(write(tmp_path, f"a{extension.upper()}", content))
    assert document.text.replace("\n", " ") == "words 1"
    assert document.media_type.split("/")[0] in ("text", "application")


@pytest.mark.parametrize("extension", sorted(SUPPORTED))
def test_an_empty_file_is_empty_whatever_its_name(tmp_path: Path, extension: str) -> None:
    with pytest.raises(EmptyFile, match="no bytes"):
        read_one(write(tmp_path, f"a{extension}", b""))


@pytest.mark.parametrize("extension", [".txt", ".md", ".html", ".json", ".jsonl", ".csv", ".py"])
@pytest.mark.parametrize(
    ("content", "called"),
    [
        (PNG, "a PNG picture"),
        (b"\x7fELF\x02\x01\x01" + b"\x00" * 60, "a program"),
        (b"MZ\x90\x00\x03" + b"\x00" * 60, "a Windows program"),
        (b"\x1f\x8b\x08\x00rest", "a gzip archive"),
    ],
)
def test_binary_files_named_as_text_are_refused(tmp_path: Path, extension: str, content: bytes, called: str) -> None:
    with pytest.raises(BinaryFile, match=called):
        read_one(write(tmp_path, f"a{extension}", content))


def test_an_archive_named_as_text_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.txt", "w") as archive:
        archive.writestr("b.txt", "words")
    with pytest.raises(BinaryFile, match="a ZIP archive"):
        read_one(tmp_path / "a.txt")


@pytest.mark.parametrize(
    ("content", "looks_like"),
    [
        (b"<!DOCTYPE html><p>Sign in", "HTML"),
        (PNG, "a PNG picture"),
        (b"Just words.\n", "text"),
        (b"PK\x03\x04rest", "ZIP"),
    ],
)
def test_a_pdf_that_is_none_says_what_it_looks_like(tmp_path: Path, content: bytes, looks_like: str) -> None:
    with pytest.raises(CorruptFile, match=f"named as a PDF, but it looks like .*{looks_like}"):
        read_one(write(tmp_path, "a.pdf", content))


def test_text_that_begins_like_a_signature_is_text(tmp_path: Path) -> None:
    for content in ("MZ is a magic number", "BM25 ranks documents", "ID3 tags", "%PDF- begins a PDF", "RIFF and raff"):
        assert read_one(write(tmp_path, "a.txt", content)).text == content


def test_text_about_pdf_is_text(tmp_path: Path) -> None:
    assert read_one(write(tmp_path, "a.md", "The header is `%PDF-1.7`.\n")).media_type == "text/markdown"


def test_a_pdf_under_another_name_is_read_as_one(tmp_path: Path) -> None:
    canvas = pytest.importorskip("reportlab.pdfgen.canvas")
    page = canvas.Canvas(str(tmp_path / "a.txt"))
    page.drawString(72, 720, "Words on a page.")
    page.save()
    document = read_one(tmp_path / "a.txt")
    assert "Words on a page." in document.text
    assert document.media_type == "application/pdf"
    assert "whatever its name says" in document.warnings[-1]


def test_html_without_an_extension_or_named_as_text_is_read_as_html(tmp_path: Path) -> None:
    for name in ("page", "page.txt"):
        assert read_one(write(tmp_path, name, "<!doctype html><p>Words</p>")).text == "Words"


@pytest.mark.parametrize("name", ["README", "notes", "LICENSE"])
def test_text_without_an_extension_is_read(tmp_path: Path, name: str) -> None:
    assert read_one(write(tmp_path, name, "words")).text == "words"


def test_an_unknown_extension_is_unsupported_and_named(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedFile, match=r"a\.xyz cannot be read: there is no reader for files named \*\.xyz"):
        read_one(write(tmp_path, "a.xyz", "words"))


def test_what_is_no_file_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match="does not exist"):
        read_one(tmp_path / "a.txt")
    with pytest.raises(Unreadable, match="folder"):
        read_one(tmp_path)
    (tmp_path / "loop.txt").symlink_to(tmp_path / "loop.txt")
    with pytest.raises(Unreadable, match="leads back to itself"):
        read_one(tmp_path / "loop.txt")


def test_a_file_without_permission_cannot_be_opened(ordinary_folder: Path) -> None:
    path = write(ordinary_folder, "a.txt", "x")
    path.chmod(0)
    with pytest.raises(Unreadable, match="no permission"):
        read_one(path)


def test_the_same_file_gives_the_same_hash_and_another_text_another(tmp_path: Path) -> None:
    path = write(tmp_path, "a.json", '{"text": "a", "n": 1}')
    first = read_one(path)
    assert read_one(path).content_hash == first.content_hash
    assert read_one(path).id == first.id
    changed = read_one(write(tmp_path, "a.json", '{"text": "a", "n": 2}'))
    assert changed.id == first.id
    assert changed.content_hash != first.content_hash


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_csv_rows_describe_themselves(tmp_path: Path, delimiter: str) -> None:
    rows = [["name", "age", "town"], ["Ada", "36", "London"], ["Alan", "", "Wilms\nlow"]]
    content = "\r\n".join(delimiter.join(f'"{cell}"' for cell in row) for row in rows)
    document = read_one(write(tmp_path, "a.csv", content))
    assert blocks_of(document) == [("table", "Ada | age: 36 | town: London\nAlan | town: Wilms low")]


def test_csv_without_a_head_keeps_its_first_row(tmp_path: Path) -> None:
    assert read_one(write(tmp_path, "a.csv", "1,2\n3,4\n")).text == "1 | 2\n3 | 4"
    assert read_one(write(tmp_path, "a.tsv", "only\thead\n")).text == "only | head"


def test_csv_with_an_open_quote_is_read_or_refused_clearly(tmp_path: Path) -> None:
    assert "words" in read_one(write(tmp_path, "a.csv", 'a,b\n"words,2\n')).text


def test_importing_the_dispatcher_loads_no_reader() -> None:
    script = (
        "import sys, cognicraft.ingest.read; "
        "print([m for m in ('docx', 'selectolax', 'markdown_it', 'py3langid', 'yaml', 'pypdfium2') "
        "if m in sys.modules])"
    )
    path = os.pathsep.join(sys.path)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}
    )
    assert done.stdout.strip() == "[]", done.stderr


def test_the_media_type_is_told_from_the_name_alone() -> None:
    assert media_type_of("x/A.JSONL") == "application/jsonl"
    assert media_type_of("README") == "text/plain"
    assert media_type_of("a.xyz") == ""
    assert all(key.startswith(".") and key == key.lower() for key in SUPPORTED)


def test_options_are_not_needed(tmp_path: Path) -> None:
    assert [one.text for one in read_file(str(write(tmp_path, "a.txt", "words")))] == ["words"]
    assert len(read_all(write(tmp_path, "a.jsonl", '{"a": 1}\n{"a": 2}'), unknown_option=1)) == 2
