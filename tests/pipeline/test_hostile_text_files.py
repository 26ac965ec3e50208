"""A folder of all that goes wrong with text files: each bad one is named with its reason, each good one is in."""

from __future__ import annotations

import json
import os
import struct
import zipfile
from pathlib import Path

import pytest

from cognicraft.errors import ReadError
from cognicraft.ingest.discover import discover
from cognicraft.ingest.read import read_file
from unit.ingest.reading import assert_sound

MB = 1_000_000
GOOD = {
    b"good.txt": "Good words.",
    b"good\nname.txt": "Good words.",
    b"good\xff\xfe.txt": "Good words.",
    "größe 文.md": "# Good\n\nwords\n",
    b"good.html": "<p>Good words.</p>",
    b"good.json": '{"text": "Good words."}',
    b"good.jsonl": '{"text": "Good words."}\n{"text": "More."}\n',
    b"good.csv": "a,b\nGood,words\n",
    b"wide.txt": "Good words in UTF-16.\n".encode("utf-16-le"),
    b"one-long-line.txt": "word " * 400_000,
    b"many-blank-lines.txt": "\n" * 2_000_000 + "Good words.",
    b"many-elements.html": "<p>Good words.</p>" * 5_000,
    b"unclosed.html": "<b><i><p>" * 3_000 + "Good words.",
    b"stars.md": "*" * 100_000 + "\n\nGood words.",
    b"brackets.md": "[" * 50_000 + "\n\nGood words.",
    b"quotes.md": "> " * 20_000 + "Good words.",
    b"pipes.md": "|a" * 2_000 + "|\n" + "|-" * 2_000 + "|\n" + "|Good" * 2_000 + "|\n",
    b"spans.html": "<table>" + "<tr><td colspan=1000 rowspan=60000>Good<td>words" * 50 + "</table>",
}
BAD = {
    b"zero.txt": (b"", "empty"),
    b"zero.json": (b"", "empty"),
    b"blank.txt": (b" \n\t\r\n" * 1000, "empty"),
    b"blank.html": (b"<script>x</script>", "empty"),
    b"program.txt": (b"\x7fELF" + bytes(range(256)) * 40, "binary"),
    b"picture.md": (b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 40, "binary"),
    b"noise.txt": (bytes((i * 7919 + (i >> 3) * 31) % 256 for i in range(20_000)), "binary"),
    b"zeros.json": (b"\x00" * 10_000, "binary"),
    b"page.pdf": (b"<!doctype html><p>Sign in</p>", "corrupt"),
    b"words.pdf": (b"Only words.", "corrupt"),
    b"words.docx": (b"Only words.", "corrupt"),
    b"cut.docx": (b"PK\x03\x04" + b"\x14\x00" * 20, "corrupt"),
    b"cut.json": (b'{"text": "never ends', "corrupt"),
    b"cut.jsonl": (b'{"text": "never ends\n{"text', "corrupt"),
    b"deep.json": (b"[" * 100_000, "corrupt"),
    b"deep-closed.json": (b'{"a":' * 50_000 + b"1" + b"}" * 50_000, "corrupt"),
    b"deep.html": (b"<div>" * 100_000, "corrupt"),
    b"locked.docx": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "EncryptedPackage".encode("utf-16-le"), "encrypted"),
    b"old.docx": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\x00" * 600, "unsupported"),
}


def write_all(folder: Path) -> None:
    for name, content in [*GOOD.items(), *((name, content) for name, (content, _) in BAD.items())]:
        path = os.path.join(os.fsencode(folder), name if isinstance(name, bytes) else name.encode())  # noqa: PTH118
        with open(path, "wb") as stream:  # noqa: PTH123
            stream.write(content if isinstance(content, bytes) else content.encode())
    with zipfile.ZipFile(folder / "bomb.docx", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", "<x/>")
        for number in range(3):
            archive.writestr(f"word/{number}.xml", b" " * (50 * MB))
    with (folder / "large.txt").open("wb") as stream:
        stream.truncate(200 * MB)
    with (folder / "large.jsonl").open("wb") as stream:
        stream.write(b'{"text": "x"}\n')
        stream.truncate(200 * MB)
    (folder / "loop").symlink_to(folder)
    (folder / "self.txt").symlink_to(folder / "self.txt")
    (folder / "gone.txt").symlink_to(folder / "nowhere.txt")
    if hasattr(os, "mkfifo"):
        os.mkfifo(folder / "pipe.txt")


@pytest.mark.skipif(os.name == "nt", reason="POSIX file names")
def test_each_bad_file_is_named_with_its_reason_and_each_good_one_is_in(tmp_path: Path) -> None:
    write_all(tmp_path)
    failed: dict[bytes, ReadError] = {}
    sources: dict[bytes, str] = {}
    read: set[bytes] = set()
    skipped: dict[bytes, str] = {}
    for file in discover([str(tmp_path)]):
        name = os.fsencode(Path(file.path).name)
        if file.skipped:
            skipped[name] = file.skipped
            continue
        try:
            if file.error:
                raise file.error
            for document in read_file(file.path, {"max_file_mb": 10}):
                assert_sound(document)
                assert document.source == file.source
                read.add(name)
        except ReadError as error:
            failed[name] = error
            sources[name] = file.source
    assert read == {name if isinstance(name, bytes) else name.encode() for name in GOOD}
    assert {name: error.code for name, error in failed.items()} == {
        **{name: code for name, (_, code) in BAD.items()},
        b"bomb.docx": "too-large", b"large.txt": "too-large", b"large.jsonl": "too-large",
        b"self.txt": "cannot-open", b"gone.txt": "cannot-open",
    }  # fmt: skip
    for name, error in failed.items():
        assert sources[name] in error.message
        assert error.remedy.endswith(".")
        json.dumps([error.message, error.remedy], ensure_ascii=False).encode("utf-8")
    assert skipped == {b"loop": "a link back to a folder above it", b"pipe.txt": "not a regular file"}


def test_an_archive_with_a_false_directory_is_an_error_of_ours(tmp_path: Path) -> None:
    docx = pytest.importorskip("docx")
    document = docx.Document()
    document.add_paragraph("words " * 100)
    document.save(str(tmp_path / "a.docx"))
    data = (tmp_path / "a.docx").read_bytes()
    directory = data.rfind(b"PK\x05\x06")
    for offset, value in ((12, 0), (16, 4_000_000_000)):
        changed = bytearray(data)
        changed[directory + offset : directory + offset + 4] = struct.pack("<I", value)
        (tmp_path / "b.docx").write_bytes(changed)
        with pytest.raises(ReadError, match=r"b\.docx"):
            list(read_file(str(tmp_path / "b.docx"), {}))


@pytest.mark.parametrize("name", ["a.docx", "a.html", "a.md", "a.json", "a.jsonl", "a.csv", "a.txt"])
def test_a_file_damaged_anywhere_gives_sound_documents_or_an_error_of_ours(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    if name == "a.docx":
        docx = pytest.importorskip("docx")
        document = docx.Document()
        document.add_heading("Heading", 1)
        document.add_table(2, 2).cell(0, 0).text = "cell"
        document.save(str(path))
    else:
        path.write_text('{"text": "words | <p>x</p>"}\n{"n": [1, 2]}\n# Heading\n\n| a | b |\n|---|---|\n| 1 | 2 |\n')
    data = path.read_bytes()
    for step in range(60):
        changed = bytearray(data)
        at = len(data) * step // 60
        changed[at : at + 1 + step % 5] = bytes([(step * 37 + 11) % 256]) * (step % 7)
        path.write_bytes(changed)
        outcome = ""
        try:
            for document in read_file(str(path), {}):
                assert_sound(document)
                outcome = document.source
        except ReadError as error:
            outcome = error.message
        assert name in outcome
