"""Text, pages, headings and errors of the PDF reader, on PDFs made here."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cognicraft.errors import CorruptFile, EmptyFile, EncryptedFile, FileTooLarge, NoTextLayer, ReadError, Unreadable
from cognicraft.ingest.pdf import read_pdf
from cognicraft.ingest.pdf_words import clean, join_lines
from cognicraft.records import Document
from pdf_files import Sheet, empty_pages, no_pages, raw_pdf, recursive_page_tree

FIRST = ["The first paragraph says what this page is about and runs on to", "a second line that ends here."]
SECOND = ["Another paragraph begins after a gap and is", "not joined to the one above it."]


def read(path: Path, **options: object) -> Document:
    (document,) = read_pdf(str(path), options=options)
    assert [page.number for page in document.pages] == list(range(1, len(document.pages) + 1))
    bounds = [0, *(page.end for page in document.pages)]
    assert [page.start for page in document.pages] == bounds[:-1]
    assert bounds[-1] == len(document.text)
    place = 0
    for block in document.blocks:
        assert not document.text[place : block.start].strip()
        assert block.start < block.end
        place = block.end
    assert not document.text[place:].strip()
    return document


def blocks(document: Document) -> list[tuple[str, str]]:
    return [(block.kind, document.text[block.start : block.end]) for block in document.blocks]


def page_text(document: Document, number: int) -> str:
    page = document.pages[number - 1]
    return document.text[page.start : page.end].strip()


def test_lines_of_a_paragraph_are_joined_and_paragraphs_kept_apart(tmp_path: Path) -> None:
    sheet = Sheet(tmp_path / "a.pdf").lines(72, 700, FIRST).lines(72, 650, SECOND)
    assert blocks(read(sheet.save())) == [("paragraph", " ".join(FIRST)), ("paragraph", " ".join(SECOND))]


def test_a_paragraph_over_a_page_break_is_one_block_with_the_break_inside(tmp_path: Path) -> None:
    sheet = Sheet(tmp_path / "a.pdf").lines(72, 100, ["The sentence on this page goes"])
    document = read(sheet.page().lines(72, 700, ["on over here."]).save())
    assert document.text == "The sentence on this page goes on over here."
    assert [document.text[page.start : page.end] for page in document.pages] == [
        "The sentence on this page goes ",
        "on over here.",
    ]


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        (["We recog-", "nise it."], "We recognise it."),
        (["The long-", "Term plan."], "The long-Term plan."),
        (["From 10-", "20 pieces."], "From 10-20 pieces."),
        (["A state-of-the-", "art engine."], "A state-of-the-art engine."),
        (["It is well-known, so the well-", "known one."], "It is well-known, so the well-known one."),
    ],
)
def test_a_word_cut_at_the_line_end_is_made_whole(tmp_path: Path, lines: list[str], text: str) -> None:
    assert read(Sheet(tmp_path / "a.pdf").lines(72, 700, lines).save()).text == text


def test_list_items_are_blocks_of_their_own(tmp_path: Path) -> None:
    lines = ["Three things matter:", "• the first thing", "• the second thing", "(c) the third thing"]
    found = blocks(read(Sheet(tmp_path / "a.pdf").lines(72, 700, lines).save()))
    assert [kind for kind, _ in found] == ["paragraph", "list", "list", "list"]
    assert found[1][1] == "• the first thing"


def test_rows_of_a_table_of_words_are_kept_apart(tmp_path: Path) -> None:
    sheet = Sheet(tmp_path / "a.pdf")
    for number, (term, meaning) in enumerate(
        (("Term", "Meaning"), ("BM25", "a way to rank"), ("RRF", "a way to join"))
    ):
        sheet.text(72, 700 - 12 * number, term).text(200, 700 - 12 * number, meaning)
    assert read(sheet.save()).text == "Term Meaning\n\nBM25 a way to rank\n\nRRF a way to join"


def test_two_headings_set_apart_in_one_style_are_two(tmp_path: Path) -> None:
    sheet = Sheet(tmp_path / "a.pdf").center(306, 740, "Handbook", size=18, bold=True)
    sheet.text(72, 716, "1 Ranking", size=18, bold=True).lines(72, 690, FIRST)
    assert [text for kind, text in blocks(read(sheet.save())) if kind == "heading"] == ["Handbook", "1 Ranking"]


def report(path: Path, pages: int) -> Path:
    sheet = Sheet(path)
    for number in range(1, pages + 1):
        sheet.text(72, 760, "Annual Report of the Society", size=8)
        sheet.lines(
            72,
            700,
            [f"Page text number {number} tells of {number * 7} things", f"and line {number * 11} ends it."],
        )
        sheet.text(300, 30, f"Page {number} of {pages}", size=8).page()
    return sheet.save()


def test_running_headers_and_footers_are_dropped(tmp_path: Path) -> None:
    document = read(report(tmp_path / "a.pdf", 5))
    assert "Annual Report" not in document.text
    assert "Page 3 of 5" not in document.text
    assert page_text(document, 3) == "Page text number 3 tells of 21 things and line 33 ends it."


def test_in_two_pages_only_page_numbers_are_sure_to_be_footers(tmp_path: Path) -> None:
    document = read(report(tmp_path / "a.pdf", 2))
    assert document.text.count("Annual Report of the Society") == 2
    assert "Page 1 of 2" not in document.text


def test_numbers_that_repeat_at_the_edge_without_counting_pages_are_kept(tmp_path: Path) -> None:
    sheet = Sheet(tmp_path / "a.pdf")
    for total in (812, 97, 4410, 33):
        sheet.lines(72, 700, ["Some words on this page that differ", "from page to page."]).text(
            300, 30, str(total)
        ).page()
    document = read(sheet.save())
    assert all(str(total) in document.text for total in (812, 97, 4410, 33))


def test_headings_come_from_size_and_weight_with_levels(tmp_path: Path) -> None:
    sheet = Sheet(tmp_path / "a.pdf").text(72, 740, "The Great Book", size=24)
    sheet.text(72, 700, "First Chapter", size=16).lines(72, 670, FIRST)
    sheet.text(72, 620, "A section", bold=True).lines(72, 600, SECOND)
    document = read(sheet.save())
    assert document.title == "The Great Book"
    assert [(block.level, text) for block, (kind, text) in zip(document.blocks, blocks(document), strict=True)
            if kind == "heading"] == [(1, "The Great Book"), (2, "First Chapter"), (3, "A section")]  # fmt: skip
    assert document.heading_path(len(document.text) - 1) == ("The Great Book", "First Chapter", "A section")


def test_headings_come_from_the_outline_where_they_look_like_the_body(tmp_path: Path) -> None:
    sheet = Sheet(tmp_path / "a.pdf", title="A Plain Thing")
    sheet.bookmark("Part One", 0).text(72, 740, "Part One").lines(72, 700, FIRST)
    sheet.bookmark("Detail", 1).text(72, 640, "Detail").lines(72, 600, SECOND)
    document = read(sheet.save())
    headings = [block for block in document.blocks if block.kind == "heading"]
    assert [(block.level, document.text[block.start : block.end]) for block in headings] == [
        (1, "Part One"),
        (2, "Detail"),
    ]
    assert document.title == "A Plain Thing"


@pytest.mark.parametrize("title", ["Microsoft Word - draft3.docx", "untitled", "(anonymous)", "a.pdf", "", "12/3"])
def test_a_title_that_is_a_file_name_is_not_taken(tmp_path: Path, title: str) -> None:
    sheet = Sheet(tmp_path / "a.pdf", title=title).text(72, 740, "Real Title", size=20).lines(72, 700, FIRST)
    assert read(sheet.save()).title == "Real Title"


def test_a_turned_page_reads_like_an_upright_one(tmp_path: Path) -> None:
    upright = Sheet(tmp_path / "a.pdf").lines(72, 700, FIRST)
    turned = Sheet(tmp_path / "b.pdf")
    turned.canvas.setPageRotation(90)
    turned.canvas.rotate(90)
    turned.canvas.translate(0, -612)
    turned.lines(72, 500, FIRST)
    assert read(upright.save()).text == read(turned.save()).text


def test_a_page_without_text_is_named_among_others(tmp_path: Path) -> None:
    sheet = (
        Sheet(tmp_path / "a.pdf").lines(72, 700, FIRST).page().picture().page().picture().page().lines(72, 700, SECOND)
    )
    document = read(sheet.save())
    assert len(document.pages) == 4
    assert page_text(document, 4) == " ".join(SECOND)
    assert any("pages 2-3" in warning and "ocrmypdf" in warning for warning in document.warnings)


def test_reading_twice_gives_the_same(tmp_path: Path) -> None:
    path = report(tmp_path / "a.pdf", 4)
    assert read(path).content_hash == read(path).content_hash


def file(folder: Path, data: bytes) -> Path:
    path = folder / "a.pdf"
    path.write_bytes(data)
    return path


BAD = {
    "zero bytes": (b"", EmptyFile),
    "no header": (b"PK\x03\x04" + bytes(100), CorruptFile),
    "header alone": (b"%PDF-1.7\n", CorruptFile),
    "no catalog": (raw_pdf([b"<< >>"]), EmptyFile),
    "no pages": (no_pages(), EmptyFile),
    "blank pages": (empty_pages(3), EmptyFile),
    "page tree in a circle": (recursive_page_tree(), CorruptFile),
}


@pytest.mark.parametrize("name", BAD)
def test_each_bad_file_has_its_own_error(tmp_path: Path, name: str) -> None:
    data, error = BAD[name]
    with pytest.raises(ReadError) as caught:
        read(file(tmp_path, data))
    assert type(caught.value) is error
    assert "a.pdf" in caught.value.message
    assert caught.value.remedy


def test_a_password_a_scan_and_an_absent_file_are_named(tmp_path: Path) -> None:
    with pytest.raises(EncryptedFile, match="password"):
        read(Sheet(tmp_path / "a.pdf", password="x").text(72, 700, "secret").save())
    with pytest.raises(NoTextLayer, match="no text"):
        read(Sheet(tmp_path / "b.pdf").picture().page().picture().text(10, 10, "p. 2", size=6).save())
    with pytest.raises(Unreadable, match="does not exist"):
        read(tmp_path / "absent.pdf")


def test_a_short_text_is_no_scan(tmp_path: Path) -> None:
    assert read(Sheet(tmp_path / "a.pdf").text(72, 700, "Yes.").save()).text == "Yes."


@pytest.mark.parametrize("limits", [{"max_pages": 2}, {"max_characters": 50}, {"max_file_mb": 0.0005}])
def test_limits_are_named_with_what_is_over_them(tmp_path: Path, limits: dict[str, float]) -> None:
    path = report(tmp_path / "a.pdf", 3)
    with pytest.raises(FileTooLarge, match="limit"):
        read(path, **limits)
    assert read(path, **{key: value * 1000 for key, value in limits.items()}).text


def test_a_damaged_page_is_left_out_and_named(tmp_path: Path) -> None:
    good = (
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 5 0 R /Resources << /Font << /F 6 0 R >> >> >>"
    )
    content = b"BT /F 12 Tf 72 700 Td (A page that can be read.) Tj ET"
    data = raw_pdf(
        [
            b"<< /Type /Catalog /Pages 2 0 R >>",
            b"<< /Type /Pages /Kids [3 0 R 4 0 R] /Count 2 >>",
            good,
            b"(not a page)",
            b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content),
            b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        ]
    )
    document = read(file(tmp_path, data))
    assert page_text(document, 1) == "A page that can be read."
    assert any("page 2" in warning for warning in document.warnings)


@given(st.text())
def test_clean_text_has_no_characters_that_nobody_sees(text: str) -> None:
    cleaned = clean(text)
    assert clean(cleaned) == cleaned
    assert not set(cleaned) & {"\0", "\x02", "\u00ad", "\ufb01", "\ufffe", "\ufeff"}


@given(st.text(alphabet="ab-\ufffe 1A"), st.text(alphabet="ab-1A", min_size=1))
def test_joining_two_lines_loses_no_letter(before: str, after: str) -> None:
    joined = join_lines(before, after, occurs=lambda word: False)
    assert [c for c in joined if c.isalnum()] == [c for c in before + after if c.isalnum()]


def test_ligatures_are_spelled_out() -> None:
    assert clean("\ufb01nal e\ufb00ort co\u00adoperate\0") == "final effort cooperate"
