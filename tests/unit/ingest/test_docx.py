"""Office files: what of a document becomes text, and which archives are refused."""

from __future__ import annotations

import io
import struct
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest

from cognicraft.errors import CorruptFile, EmptyFile, EncryptedFile, FileTooLarge, UnsupportedFile
from unit.ingest.reading import blocks_of, read_one, write

docx = pytest.importorskip("docx")
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


def save(folder: Path, document: Any, name: str = "a.docx") -> Path:
    path = folder / name
    document.save(str(path))
    return path


def with_body(folder: Path, xml: str) -> Path:
    """A DOCX whose body is `xml`, for what python-docx cannot write."""
    buffer = io.BytesIO()
    docx.Document().save(buffer)
    path = folder / "a.docx"
    namespaces = (
        'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" '
        'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
    )
    with zipfile.ZipFile(buffer) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for member in old.infolist():
            data = old.read(member)
            if member.filename == "word/document.xml":
                data = f"<w:document {namespaces}><w:body>{xml}</w:body></w:document>".encode()
            new.writestr(member.filename, data)
    return path


def paragraph(inner: str) -> str:
    return f"<w:p><w:r><w:t>{inner}</w:t></w:r></w:p>"


def test_headings_paragraphs_lists_and_tables_come_in_their_order(tmp_path: Path) -> None:
    document = docx.Document()
    document.add_heading("The Report", 0)
    document.add_heading("Sales", 1)
    document.add_paragraph("They rose.")
    document.add_paragraph("one", style="List Bullet")
    document.add_paragraph("two", style="List Bullet 2")
    table = document.add_table(2, 2)
    for row, texts in enumerate((("Product", "Sales"), ("iPhone", "40,665"))):
        for column, text in enumerate(texts):
            table.cell(row, column).text = text
    document.add_heading("Outlook", 2)
    document.sections[0].header.paragraphs[0].text = "running header"
    document.core_properties.title = "Title of the file"
    document.core_properties.author = "Ada"
    read = read_one(save(tmp_path, document))
    assert [(kind, text) for kind, text in blocks_of(read)][:3] == [
        ("heading", "The Report"), ("heading", "Sales"), ("paragraph", "They rose."),
    ]  # fmt: skip
    assert blocks_of(read)[3][0] == "list"
    assert blocks_of(read)[4:] == [("table", "iPhone | Sales: 40,665"), ("heading", "Outlook")]
    assert read.heading_path(len(read.text) - 1) == ("Sales", "Outlook")
    assert read.title == "Title of the file"
    assert read.metadata["author"] == "Ada"
    assert "running header" not in read.text


def test_the_first_heading_is_the_title_where_none_is_set(tmp_path: Path) -> None:
    document = docx.Document()
    document.add_heading("Sales", 1)
    assert read_one(save(tmp_path, document)).title == "Sales"


def test_merged_cells_label_every_row_and_head_every_column(tmp_path: Path) -> None:
    document = docx.Document()
    table = document.add_table(4, 3)
    cells = (("Item", "Net sales", ""), ("", "2022", "2021"), ("Mac", "1", "2"), ("", "3", "4"))
    for row, texts in enumerate(cells):
        for column, text in enumerate(texts):
            table.cell(row, column).text = text
    table.cell(0, 1).merge(table.cell(0, 2))
    table.cell(2, 0).merge(table.cell(3, 0))
    for row in table.rows[:2]:
        row._tr.get_or_add_trPr().append(docx.oxml.OxmlElement("w:tblHeader"))
    assert read_one(save(tmp_path, document)).text == (
        "Mac | Net sales 2022: 1 | Net sales 2021: 2\nMac | Net sales 2022: 3 | Net sales 2021: 4"
    )


def test_controls_text_boxes_and_tracked_changes(tmp_path: Path) -> None:
    box = f"<w:txbxContent>{paragraph('boxed')}</w:txbxContent>"
    body = (
        f"<w:sdt><w:sdtContent>{paragraph('controlled')}</w:sdtContent></w:sdt>"
        "<w:p><w:ins><w:r><w:t>new</w:t></w:r></w:ins><w:del><w:r><w:delText>old</w:delText></w:r></w:del>"
        "<w:r><w:tab/><w:t>and</w:t><w:br/><w:t>next</w:t><w:instrText>PAGE</w:instrText></w:r></w:p>"
        f"<w:p><w:r><w:t>anchor</w:t><mc:AlternateContent><mc:Choice>{box}</mc:Choice>"
        f"<mc:Fallback>{box}</mc:Fallback></mc:AlternateContent></w:r></w:p>"
    )
    assert read_one(with_body(tmp_path, body)).text == "controlled\n\nnew\tand\nnext\n\nanchor\n\nboxed"


def test_raised_figures_do_not_join_their_numbers(tmp_path: Path) -> None:
    document = docx.Document()
    paragraph = document.add_paragraph("Sales of 40,665")
    paragraph.add_run("1").font.superscript = True
    assert read_one(save(tmp_path, document)).text == "Sales of 40,665¹"


def test_a_heading_is_known_by_its_outline_level_too(tmp_path: Path) -> None:
    body = f'<w:p><w:pPr><w:outlineLvl w:val="2"/></w:pPr><w:r><w:t>Third</w:t></w:r></w:p>{paragraph("text")}'
    assert [(block.kind, block.level) for block in read_one(with_body(tmp_path, body)).blocks] == [
        ("heading", 3), ("paragraph", 0),
    ]  # fmt: skip


def test_a_document_without_text_is_empty(tmp_path: Path) -> None:
    with pytest.raises(EmptyFile):
        read_one(save(tmp_path, docx.Document()))


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "a.docx"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", "<x/>")
        archive.writestr("word/document.xml", b"\x20" * 30_000_000)
    with pytest.raises(FileTooLarge, match=r"would unpack to 30 MB .* limit is 10 MB"):
        read_one(path, max_file_mb=1)


def test_a_bomb_that_lies_about_its_size_is_corrupt(tmp_path: Path) -> None:
    document = docx.Document()
    document.add_paragraph("x" * 50_000)
    data = bytearray(save(tmp_path, document).read_bytes())
    with zipfile.ZipFile(io.BytesIO(bytes(data))) as archive:
        member = archive.getinfo("word/document.xml")
    size = struct.pack("<I", member.file_size)
    while (at := data.find(size)) >= 0:
        data[at : at + 4] = struct.pack("<I", 100)
    with pytest.raises(CorruptFile, match=r"b\.docx is damaged"):
        read_one(write(tmp_path, "b.docx", bytes(data)))


@pytest.mark.parametrize("kept", [0.3, 0.9, 0.99])
def test_a_truncated_file_is_corrupt(tmp_path: Path, kept: float) -> None:
    document = docx.Document()
    document.add_paragraph("words " * 500)
    data = save(tmp_path, document).read_bytes()
    with pytest.raises(CorruptFile, match=r"b\.docx is damaged or not a DOCX"):
        read_one(write(tmp_path, "b.docx", data[: int(len(data) * kept)]))


@pytest.mark.parametrize(
    "xml",
    ["<w:p>", "<!DOCTYPE x [<!ENTITY a 'b'>]><w:p/>", "<w:p>" * 10_000 + "</w:p>" * 10_000],
    ids=["open", "dtd", "deep"],
)
def test_damaged_xml_is_an_error_of_ours(tmp_path: Path, xml: str) -> None:
    with pytest.raises((CorruptFile, EmptyFile)):
        read_one(with_body(tmp_path, xml))


def test_password_and_old_binary_format_are_told_apart(tmp_path: Path) -> None:
    encrypted = OLE + b"\x00" * 512 + "EncryptedPackage".encode("utf-16-le") + b"\x00" * 512
    with pytest.raises(EncryptedFile, match="asks for a password"):
        read_one(write(tmp_path, "a.docx", encrypted))
    with pytest.raises(UnsupportedFile, match="Office 97"):
        read_one(write(tmp_path, "b.docx", OLE + b"\x00" * 1024))


def test_other_content_under_the_name_is_corrupt(tmp_path: Path) -> None:
    with pytest.raises(CorruptFile, match="looks like text"):
        read_one(write(tmp_path, "a.docx", "just words"))
    with pytest.raises(CorruptFile, match="looks like HTML"):
        read_one(write(tmp_path, "a.docx", "<html><p>sign in</p></html>"))
    with zipfile.ZipFile(tmp_path / "b.docx", "w") as archive:
        archive.writestr("a.txt", "words")
    with pytest.raises(CorruptFile, match="not a DOCX"):
        read_one(tmp_path / "b.docx")


def test_sheets_are_pages_of_tables(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl", reason="extra office")
    book = openpyxl.Workbook()
    for row in (("Quarter", "Sales"), ("Q3", 40665.5), ("Q2", None)):
        book.active.append(row)
    hidden = book.create_sheet("Hidden")
    hidden.append(["secret"])
    hidden.sheet_state = "hidden"
    second = book.create_sheet("Costs")
    second["C4"], second["D4"], second["C5"], second["D5"] = "Item", "Cost", "Rent", 7
    book.save(tmp_path / "a.xlsx")
    document = read_one(tmp_path / "a.xlsx")
    assert document.text == "Sheet\n\nQ3 | Sales: 40665.5\nQ2\n\nCosts\n\nRent | Cost: 7"
    assert [document.text[page.start : page.end].split()[0] for page in document.pages] == ["Sheet", "Costs"]
    assert "Hidden" in document.warnings[0]


def test_far_cells_cost_no_time(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl", reason="extra office")
    book = openpyxl.Workbook()
    for cell, value in (("A1", "Name"), ("B1", "Sales"), ("A100000", "last"), ("B100000", 5), ("XFD2", "too far")):
        book.active[cell] = value
    book.save(tmp_path / "a.xlsx")
    start = time.process_time()
    assert read_one(tmp_path / "a.xlsx").text == "Sheet\n\nlast | Sales: 5"
    assert time.process_time() - start < 5


def test_slides_are_pages(tmp_path: Path) -> None:
    pptx = pytest.importorskip("pptx", reason="extra office")
    show = pptx.Presentation()
    for title, text in (("First", "one\ntwo"), ("", ""), ("Third", "three")):
        slide = show.slides.add_slide(show.slide_layouts[1])
        slide.shapes.title.text = title
        slide.placeholders[1].text = text
    slide.notes_slide.notes_text_frame.text = "spoken"
    show.save(tmp_path / "a.pptx")
    document = read_one(tmp_path / "a.pptx")
    assert document.title == "First"
    assert [document.text[page.start : page.end].strip() for page in document.pages] == [
        "First\n\none\ntwo", "", "Third\n\nthree\n\nspoken",
    ]  # fmt: skip
