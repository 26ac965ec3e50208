"""A folder of files made to break a reader: each is named with its reason, and the good ones are all read."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cognicraft.errors import CorruptFile, EmptyFile, EncryptedFile, NoTextLayer, ReadError, ReadMemory, ReadTimeout
from cognicraft.ingest.worker import ReaderPool, ReadOutcome
from pdf_files import Sheet, bomb, empty_pages, no_pages, raw_pdf, recursive_page_tree, stream

MEMORY_LIMIT_MB = 250
DEADLINE_S = 20.0
GOOD = [
    "good.pdf",
    "line\nbreak.pdf",
    "späße und 日本.pdf",
    "  spaces .pdf",
    os.fsdecode(b"not\xffutf8.pdf"),
    "tab\there.pdf",
]


def deeply_nested_arrays() -> bytes:
    return raw_pdf([b"<< /Type /Catalog /Pages 2 0 R >>", b"[" * 200_000])


def form_that_draws_itself() -> bytes:
    """A form object that paints itself for ever, beside a line of text."""
    paint = b"BT /F 12 Tf 72 700 Td (Readable beside the circle.) Tj ET /X Do"
    resources = b"/Resources << /Font << /F 5 0 R >> /XObject << /X 6 0 R >> >>"
    return raw_pdf(
        [
            b"<< /Type /Catalog /Pages 2 0 R >>",
            b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R " + resources + b" >>",
            stream(paint),
            b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
            stream(b"/X Do", entries=b"/Type /XObject /Subtype /Form /BBox [0 0 9 9] " + resources),
        ]
    )


HOSTILE: dict[str, tuple[bytes, type[ReadError]]] = {
    "zero bytes.pdf": (b"", EmptyFile),
    "a picture.pdf": (b"\x89PNG\r\n\x1a\n" + bytes(64), CorruptFile),
    "a page of the web.pdf": (b"<!doctype html><p>not a PDF", CorruptFile),
    "header alone.pdf": (b"%PDF-1.7\n", CorruptFile),
    "noise behind a header.pdf": (b"%PDF-1.7\n" + bytes(range(256)) * 40, CorruptFile),
    "no pages.pdf": (no_pages(), EmptyFile),
    "ten thousand empty pages.pdf": (empty_pages(10_000), EmptyFile),
    "circle of pages.pdf": (recursive_page_tree(), CorruptFile),
    "nested.pdf": (deeply_nested_arrays(), EmptyFile),
    "bomb.pdf": (bomb(400), ReadMemory),
}


def good_pdf(path: Path) -> Path:
    return (
        Sheet(path).lines(72, 700, ["This file is a good one, and its text", "is read whatever it is called."]).save()
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    for name in GOOD:
        plain = good_pdf(folder / "plain.tmp")
        try:
            plain.rename(folder / name)
        except OSError:  # a file system that takes no such name
            plain.unlink()
    for name, (data, _) in HOSTILE.items():
        (folder / name).write_bytes(data)
    whole = good_pdf(folder / "whole.tmp").read_bytes()
    (folder / "whole.tmp").unlink()
    (folder / "truncated.pdf").write_bytes(whole[: len(whole) // 2])
    (folder / "circle of forms.pdf").write_bytes(form_that_draws_itself())
    Sheet(folder / "locked.pdf", password="x").text(72, 700, "secret").save()
    Sheet(folder / "scan.pdf").picture().page().picture().save()
    return folder


@pytest.fixture(scope="module")
def outcomes(folder: Path) -> dict[str, ReadOutcome]:
    def paths() -> Iterator[tuple[str, dict[str, object]]]:
        for path in sorted(folder.iterdir()):
            yield str(path), {}

    with ReaderPool(workers=2, memory_limit_mb=MEMORY_LIMIT_MB, deadline_s=DEADLINE_S, recycle_after=50) as pool:
        found = list(pool.read(paths()))
    assert all(outcome.done for outcome in found)
    assert len(found) == len(list(folder.iterdir()))
    return {Path(outcome.path).name: outcome for outcome in found}


@pytest.mark.parametrize("name", HOSTILE)
def test_each_hostile_file_has_the_error_that_fits_it(outcomes: dict[str, ReadOutcome], name: str) -> None:
    error = outcomes[name].error
    assert type(error) is HOSTILE[name][1]
    assert name in error.message
    assert error.remedy


@pytest.mark.parametrize(
    ("name", "error"), [("truncated.pdf", CorruptFile), ("locked.pdf", EncryptedFile), ("scan.pdf", NoTextLayer)]
)
def test_a_cut_a_locked_and_a_scanned_file_are_named_so(
    outcomes: dict[str, ReadOutcome], name: str, error: type[ReadError]
) -> None:
    assert type(outcomes[name].error) is error


def test_every_good_file_is_read_whatever_its_name(outcomes: dict[str, ReadOutcome], folder: Path) -> None:
    present = [name for name in GOOD if (folder / name).exists()]
    assert len(present) >= 3
    for name in present:
        (document,) = outcomes[name].documents
        assert document.text == "This file is a good one, and its text is read whatever it is called."
        assert document.source.isprintable()
    assert len({outcomes[name].documents[0].id for name in present}) == len(present)


def test_a_form_that_draws_itself_does_not_hide_the_text_beside_it(outcomes: dict[str, ReadOutcome]) -> None:
    (document,) = outcomes["circle of forms.pdf"].documents
    assert document.text == "Readable beside the circle."


def test_messages_are_one_printable_line(outcomes: dict[str, ReadOutcome]) -> None:
    for outcome in outcomes.values():
        if outcome.error is not None:
            assert str(outcome.error).isprintable()


@pytest.mark.skipif(sys.platform != "linux", reason="the memory limit of a process is only enforced on Linux")
def test_the_bomb_is_stopped_by_the_limit_of_its_process_not_by_luck(tmp_path: Path) -> None:
    """The same page, small enough for the limit, is read to its end."""
    path = tmp_path / "small.pdf"
    path.write_bytes(bomb(4))
    with ReaderPool(workers=1, memory_limit_mb=MEMORY_LIMIT_MB, deadline_s=DEADLINE_S, recycle_after=9) as pool:
        (outcome,) = pool.read([(str(path), {})])
    assert type(outcome.error) is EmptyFile


def test_a_file_that_takes_too_long_is_given_up(tmp_path: Path) -> None:
    slow = tmp_path / "slow.pdf"
    sheet = Sheet(slow)
    for _ in range(60):
        for row in range(60):
            sheet.text(72, 740 - 11 * row, "word " * 40, size=4)
        sheet.page()
    sheet.save()
    with ReaderPool(workers=1, memory_limit_mb=MEMORY_LIMIT_MB, deadline_s=0.02, recycle_after=9) as pool:
        found = {Path(outcome.path).name: outcome for outcome in pool.read([(str(slow), {})])}
    assert type(found["slow.pdf"].error) is ReadTimeout
    assert "0.02 s" in str(found["slow.pdf"].error)
