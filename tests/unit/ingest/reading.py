"""What the tests of the readers share: read a file that was just written, and hold a document to its invariants."""

from __future__ import annotations

from pathlib import Path

from cognicraft.ingest.read import read_file
from cognicraft.records import Document


def read_all(path: Path, **options: object) -> list[Document]:
    documents = list(read_file(str(path), options))
    for document in documents:
        assert_sound(document)
    return documents


def read_one(path: Path, **options: object) -> Document:
    documents = read_all(path, **options)
    assert len(documents) == 1
    return documents[0]


def write(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def blocks_of(document: Document) -> list[tuple[str, str]]:
    return [(block.kind, document.text[block.start : block.end]) for block in document.blocks]


def assert_sound(document: Document) -> None:
    """The invariants of `records.Document`."""
    text = document.text
    position = 0
    for block in document.blocks:
        assert position <= block.start < block.end <= len(text)
        assert not text[position : block.start].strip()
        assert text[block.start : block.end].strip()
        assert (block.level > 0) == (block.kind == "heading")
        position = block.end
    assert document.blocks
    assert not text[position:].strip()
    for character in "\r\x00\x0b\x0c\x1b\ufeff\u2028":
        assert character not in text
    text.encode("utf-8")  # no lone surrogates
    document.source.encode("utf-8")
    assert "\n" not in document.title
    for start, end, _ in document.pointers:
        assert 0 <= start < end <= len(text)
    if document.pages:
        assert document.pages[0].start == 0
        assert document.pages[-1].end == len(text)
        assert [page.number for page in document.pages] == list(range(1, len(document.pages) + 1))
        for before, after in zip(document.pages, document.pages[1:], strict=False):
            assert before.end == after.start
