"""Build demo/documents/retrieval-handbook.pdf from the Markdown chapters in demo/source.

Takes: the chapters, read in the order of their file names. The Markdown is the small part of the language that the
chapters use: headings, paragraphs, lists, quotes, tables with a caption before them, fenced formulas, two figures.
Returns: one PDF (A4) with running headers and footers, bookmarks, a table of contents and real tables.
Method: reportlab's flowables; `invariant` leaves out dates and random ids, so that equal sources and equal versions
of reportlab and pyphen give equal bytes.
Cost: a few CPU-seconds. What can go wrong: a character outside Windows-1252 (the standard fonts do not have it), a
figure that has no drawing, a table whose rows differ in length; each stops the build and names the file and line.

    python scripts/build_handbook.py [--source DIRECTORY] [--out FILE]
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from reportlab.graphics.shapes import Drawing, Line, PolyLine, Rect, String
from reportlab.lib import colors
from reportlab.lib.enums import TA_JUSTIFY, TA_RIGHT
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import ParagraphStyle
from reportlab.lib.units import mm
from reportlab.platypus import (
    BaseDocTemplate,
    CondPageBreak,
    Flowable,
    Frame,
    KeepTogether,
    NextPageTemplate,
    PageBreak,
    PageTemplate,
    Paragraph,
    Spacer,
    Table,
    TableStyle,
    XPreformatted,
)
from reportlab.platypus.tableofcontents import TableOfContents

REPOSITORY = Path(__file__).resolve().parent.parent
TITLE = "A Handbook of Retrieval"
SUBTITLE = "Part one: foundations"
MARGIN = 30 * mm
TEXT_WIDTH = A4[0] - 2 * MARGIN
INK = colors.HexColor("#1d2733")
ACCENT = colors.HexColor("#23527c")
RULE = colors.HexColor("#9aa7b4")
SHADE = colors.HexColor("#f1f4f7")

# A word broken in a table cell or a heading is hard to read and hard to find again: only running text is hyphenated.
BODY = ParagraphStyle(
    "body",
    fontName="Times-Roman",
    fontSize=11,
    leading=15.5,
    textColor=INK,
    alignment=TA_JUSTIFY,
    spaceAfter=7,
    hyphenationLang="en_GB",
    hyphenationMinWordLength=8,
    embeddedHyphenation=1,
    allowWidows=0,
    allowOrphans=0,
)
ITEM = ParagraphStyle("item", BODY, leftIndent=16, bulletIndent=2, spaceAfter=3)
QUOTE = ParagraphStyle(
    "quote",
    BODY,
    leftIndent=8,
    rightIndent=8,
    backColor=SHADE,
    borderPadding=(6, 8, 7, 8),
    spaceBefore=12,
    spaceAfter=14,
    hyphenationLang="",
)
HEADINGS = {
    1: ParagraphStyle("h1", fontName="Helvetica-Bold", fontSize=22, leading=27, textColor=ACCENT, spaceAfter=16),
    2: ParagraphStyle(
        "h2", fontName="Helvetica-Bold", fontSize=14, leading=18, textColor=INK, spaceBefore=13, spaceAfter=6
    ),
}
CAPTION = ParagraphStyle(
    "caption", fontName="Helvetica", fontSize=9, leading=12, textColor=INK, spaceBefore=7, spaceAfter=4
)
CELL = ParagraphStyle("cell", fontName="Helvetica", fontSize=9, leading=11.5, textColor=INK)
CELL_RIGHT = ParagraphStyle("cell-right", CELL, alignment=TA_RIGHT)
HEAD = ParagraphStyle("head", CELL, fontName="Helvetica-Bold")
HEAD_RIGHT = ParagraphStyle("head-right", HEAD, alignment=TA_RIGHT)
FORMULA = ParagraphStyle(
    "formula",
    fontName="Courier",
    fontSize=9,
    leading=12.5,
    textColor=INK,
    backColor=SHADE,
    borderPadding=(5, 6, 6, 6),
    leftIndent=6,
    rightIndent=6,
    spaceBefore=7,
    spaceAfter=14,
)
CONTENTS = [
    ParagraphStyle("toc1", fontName="Helvetica-Bold", fontSize=10.5, leading=15, textColor=INK, spaceBefore=5),
    ParagraphStyle("toc2", fontName="Helvetica", fontSize=9.5, leading=12.5, textColor=INK, leftIndent=14),
]


class SourceError(Exception):
    """A chapter holds something that this script does not set; the message names file, line and remedy."""


@dataclass(frozen=True, slots=True)
class Block:
    """One piece of a chapter: its kind, its lines without markup of the kind, and the line where it begins (from 1)."""

    kind: str
    lines: tuple[str, ...]
    line_number: int


def blocks(text: str) -> Iterator[Block]:
    """Cut a chapter into blocks; a blank line ends every block but a fenced formula."""
    lines = text.splitlines()
    at = 0
    while at < len(lines):
        start = at
        if not lines[at].strip():
            at += 1
            continue
        if lines[at].startswith("```"):
            at += 1
            while at < len(lines) and not lines[at].startswith("```"):
                at += 1
            yield Block("formula", tuple(lines[start + 1 : at]), start + 1)
            at += 1
            continue
        while at < len(lines) and lines[at].strip() and not (at > start and lines[at].startswith("```")):
            at += 1
        yield Block(kind_of(lines[start]), tuple(lines[start:at]), start + 1)


def kind_of(line: str) -> str:
    """Name the kind of the block that begins with this line."""
    for kind, pattern in (
        ("heading", r"#{1,2} "),
        ("figure", r"!\["),
        ("quote", r"> "),
        ("table", r"\|"),
        ("caption", r"\*\*Table "),
        ("list", r"(-|\d+\.) "),
    ):
        if re.match(pattern, line):
            return kind
    return "paragraph"


def inline(text: str) -> str:
    """Turn inline Markdown into reportlab's markup; code first, because nothing inside it is markup."""
    parts = re.split(r"`([^`]+)`", text)
    for index, part in enumerate(parts):
        part = escape(part)
        if index % 2:
            parts[index] = f'<font face="Courier" size="-0.5">{part}</font>'
            continue
        part = re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", part)
        parts[index] = re.sub(r"(?<![\w*])\*(?=\S)([^*]+?)(?<=\S)\*(?![\w*])", r"<i>\1</i>", part)
    return "".join(parts)


class Heading(Paragraph):  # type: ignore[misc]  # reportlab ships no types
    """A heading that enters the bookmarks and the table of contents when it is placed on a page."""

    def __init__(self, text: str, level: int, key: str) -> None:
        super().__init__(inline(text), HEADINGS[level])
        self.text_plain, self.level, self.key = text, level, key

    def draw(self) -> None:
        self.canv.bookmarkPage(self.key)
        self.canv.addOutlineEntry(self.text_plain, self.key, level=self.level - 1, closed=self.level == 1)
        super().draw()


class Handbook(BaseDocTemplate):  # type: ignore[misc]  # reportlab ships no types
    """The document: a title page, a contents page, and text pages with a running header and footer."""

    def __init__(self, filename: str) -> None:
        super().__init__(
            filename,
            pagesize=A4,
            title=TITLE,
            author="The CogniCraft authors",
            subject=SUBTITLE,
            lang="en-GB",
            invariant=1,
            leftMargin=MARGIN,
            rightMargin=MARGIN,
            topMargin=28 * mm,
            bottomMargin=26 * mm,
        )
        frame = Frame(MARGIN, 26 * mm, TEXT_WIDTH, A4[1] - 54 * mm, 0, 0, 0, 0, id="text")
        self.chapter = ""
        self.addPageTemplates(
            [PageTemplate("title", [frame], onPage=draw_title), PageTemplate("text", [frame], onPageEnd=draw_running)]
        )

    def beforeDocument(self) -> None:
        self.chapter = ""  # the document is set twice, for the page numbers in the contents

    def afterFlowable(self, flowable: Flowable) -> None:
        if isinstance(flowable, Heading):
            if flowable.level == 1:
                self.chapter = flowable.text_plain
            self.notify("TOCEntry", (flowable.level - 1, escape(flowable.text_plain), self.page, flowable.key))


def draw_title(canvas: Any, _document: BaseDocTemplate) -> None:
    """Draw the title page; its words are drawn and not flowed, so that they stay out of the contents."""
    middle, height = A4[0] / 2, A4[1]
    canvas.setFillColor(ACCENT)
    canvas.setFont("Helvetica-Bold", 32)
    canvas.drawCentredString(middle, height - 95 * mm, TITLE)
    canvas.setFillColor(INK)
    canvas.setFont("Helvetica", 16)
    canvas.drawCentredString(middle, height - 108 * mm, SUBTITLE)
    canvas.setStrokeColor(RULE)
    canvas.line(middle - 35 * mm, height - 116 * mm, middle + 35 * mm, height - 116 * mm)
    canvas.setFont("Times-Italic", 12)
    words = (
        "Reading, chunking, lexical search, dense embeddings,",
        "Boolean search and fusion, with their formulas",
        "and with numbers that you can recompute",
    )
    for index, line in enumerate(words):
        canvas.drawCentredString(middle, height - 126 * mm - index * 17, line)
    canvas.setFont("Helvetica", 9)
    canvas.drawCentredString(middle, 34 * mm, "Part of the CogniCraft demo documents. Apache License 2.0.")


def draw_running(canvas: Any, document: Handbook) -> None:
    """Draw header and footer when the page is full, so that the header names the chapter that the page is in."""
    left, right, top, bottom = MARGIN, A4[0] - MARGIN, A4[1] - 18 * mm, 15 * mm
    canvas.saveState()
    canvas.setFillColor(INK)
    canvas.setStrokeColor(RULE)
    canvas.setLineWidth(0.4)
    canvas.setFont("Helvetica", 8.5)
    canvas.drawString(left, top, TITLE)
    canvas.drawRightString(right, top, document.chapter)
    canvas.line(left, top - 5, right, top - 5)
    canvas.line(left, bottom + 12, right, bottom + 12)
    canvas.drawString(left, bottom, SUBTITLE)
    canvas.drawRightString(right, bottom, f"Page {document.page}")
    canvas.restoreState()


def table(block: Block, chapter: Path) -> Table:
    """Set a pipe table; columns are as wide as their longest word asks, and the rest goes to the long texts."""
    rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in block.lines]
    if len(rows) < 3 or any(len(row) != len(rows[0]) for row in rows):
        raise SourceError(f"{chapter.name}:{block.line_number}: the rows of this table differ in length; even them out")
    right = [mark.endswith(":") for mark in rows[1]]
    body = [rows[0], *rows[2:]]
    cells = [
        [
            Paragraph(inline(text), ((HEAD_RIGHT if r else HEAD) if index == 0 else (CELL_RIGHT if r else CELL)))
            for text, r in zip(row, right, strict=True)
        ]
        for index, row in enumerate(body)
    ]
    # Numbers end where the next column of words begins; a gap keeps them apart for the eye and for a reader of PDFs.
    gaps = [14.0 if column and right[column - 1] and not right[column] else 5.0 for column in range(len(right))]
    widths = column_widths(cells, [gap + 6.0 for gap in gaps])
    built = Table(cells, colWidths=widths, repeatRows=1, hAlign="LEFT", spaceAfter=14)
    built.setStyle(
        TableStyle(
            [
                ("VALIGN", (0, 0), (-1, 0), "BOTTOM"),
                ("VALIGN", (0, 1), (-1, -1), "TOP"),
                ("LINEABOVE", (0, 0), (-1, 0), 0.9, INK),
                ("LINEBELOW", (0, 0), (-1, 0), 0.5, INK),
                ("LINEBELOW", (0, 1), (-1, -2), 0.25, RULE),
                ("LINEBELOW", (0, -1), (-1, -1), 0.9, INK),
                ("BACKGROUND", (0, 0), (-1, 0), SHADE),
                ("TOPPADDING", (0, 0), (-1, -1), 3),
                ("BOTTOMPADDING", (0, 0), (-1, -1), 3.5),
                ("RIGHTPADDING", (0, 0), (-1, -1), 5),
                *(("LEFTPADDING", (column, 0), (column, -1), gap) for column, gap in enumerate(gaps)),
            ]
        )
    )
    return built


def column_widths(cells: list[list[Paragraph]], padding: list[float]) -> list[float]:
    """Widths in points: what each column would like on one line, pressed down to the width of the text."""
    columns = list(zip(*cells, strict=True))
    wanted = [max(one_line_width(cell) for cell in column) + pad for column, pad in zip(columns, padding, strict=True)]
    if sum(wanted) <= TEXT_WIDTH:
        slack = min(18.0, (TEXT_WIDTH - sum(wanted)) / len(wanted))
        return [width + slack for width in wanted]
    least = [
        min(want, max(cell.minWidth() for cell in column) + pad)
        for want, column, pad in zip(wanted, columns, padding, strict=True)
    ]
    share = (TEXT_WIDTH - sum(least)) / (sum(wanted) - sum(least))
    return [low + (want - low) * share for low, want in zip(least, wanted, strict=True)]


def one_line_width(cell: Paragraph) -> float:
    """Width in points of the cell's text if it is set on one line."""
    cell.wrap(100_000, 100_000)
    return max(cell.getActualLineWidths0(), default=0.0)


def figure(name: str) -> Drawing:
    """The drawing of a figure; raises KeyError for a name that has none."""
    return {"pipeline": pipeline_figure, "saturation": saturation_figure}[name]()


def pipeline_figure() -> Drawing:
    """Two rows of boxes joined by arrows, with the index between them."""
    drawing = Drawing(TEXT_WIDTH, 118)

    def box(x: float, y: float, width: float, label: str) -> None:
        drawing.add(Rect(x, y, width, 24, rx=3, ry=3, fillColor=SHADE, strokeColor=ACCENT, strokeWidth=0.8))
        drawing.add(
            String(x + width / 2, y + 8.5, label, fontName="Helvetica", fontSize=9, fillColor=INK, textAnchor="middle")
        )

    def arrow(x1: float, y1: float, x2: float, y2: float) -> None:
        drawing.add(Line(x1, y1, x2, y2, strokeColor=INK, strokeWidth=0.8))
        dx, dy = (4, 0) if y1 == y2 else (0, 4 if y2 > y1 else -4)
        drawing.add(
            PolyLine(
                [x2 - dx + dy / 2, y2 - dy + dx / 2, x2, y2, x2 - dx - dy / 2, y2 - dy - dx / 2],
                strokeColor=INK,
                strokeWidth=0.8,
            )
        )

    for row, (y, labels) in enumerate(
        (
            (90.0, ("file", "read", "split", "encode")),
            (2.0, ("question", "retrieve", "fuse", "rerank", "ground", "verify")),
        )
    ):
        width, step = (56.0, 80.0) if row == 0 else (56.0, (TEXT_WIDTH - 56) / 5)
        for index, label in enumerate(labels):
            x = index * step
            box(x, y, width, label)
            if index:
                arrow(x - step + width, y + 12, x, y + 12)
    retrieve = (TEXT_WIDTH - 56) / 5
    box(retrieve, 46, 3 * 80 + 56 - retrieve, "index: chunks, sparse weights, vectors")
    arrow(3 * 80 + 28, 90, 3 * 80 + 28, 70)
    arrow(retrieve + 28, 46, retrieve + 28, 26)
    return drawing


def saturation_figure() -> Drawing:
    """tf*(k1+1)/(tf+k1) for three values of k1, computed here so that it cannot disagree with the table."""
    left, bottom, width, height = 34.0, 30.0, 330.0, 135.0
    drawing = Drawing(TEXT_WIDTH, bottom + height + 8)
    largest_tf, largest_factor = 10.0, 3.0

    def place(tf: float, factor: float) -> tuple[float, float]:
        return left + width * tf / largest_tf, bottom + height * factor / largest_factor

    def label(x: float, y: float, text: str, anchor: str = "middle") -> None:
        drawing.add(String(x, y, text, fontName="Helvetica", fontSize=8, fillColor=INK, textAnchor=anchor))

    for factor in (0, 1, 2, 3):
        x, y = place(0, factor)
        drawing.add(Line(x, y, x + width, y, strokeColor=RULE, strokeWidth=0.8 if factor == 0 else 0.25))
        label(x - 6, y - 3, f"{factor}.0", "end")
    for tf in range(0, 11, 2):
        label(place(tf, 0)[0], bottom - 11, str(tf))
    label(left + width / 2, bottom - 24, "occurrences of the term in the document (tf)")
    for k1, ink in ((0.5, RULE), (1.2, ACCENT), (2.0, INK)):
        points: list[float] = []
        for tenth in range(0, 101):
            points.extend(place(tenth / 10, (tenth / 10) * (k1 + 1) / (tenth / 10 + k1)))
        drawing.add(PolyLine(points, strokeColor=ink, strokeWidth=1.4))
        label(points[-2] + 5, points[-1] - 3, f"k1 = {k1}", "start")
    return drawing


def flowables(chapter: Path, text: str) -> list[Flowable]:
    """Set one chapter. Raises SourceError, naming file and line, for what cannot be set."""
    result: list[Flowable] = []
    caption: Paragraph | None = None
    for block in blocks(text):
        where = f"{chapter.name}:{block.line_number}"
        joined = " ".join(line.strip() for line in block.lines)
        for character in "\n".join(block.lines):
            try:
                character.encode("cp1252")
            except UnicodeEncodeError:
                reason = f"{where}: the fonts of the PDF do not have {character!r}; write it in words"
                raise SourceError(reason) from None
        if caption is not None and block.kind != "table":
            raise SourceError(f"{where}: a table caption must stand directly before its table")
        if block.kind == "heading":
            marks, title = joined.split(" ", 1)
            if len(marks) == 1:
                result.append(PageBreak())
            else:
                result.append(CondPageBreak(30 * mm))
            result.append(Heading(title, len(marks), f"{chapter.stem}-{block.line_number}"))
        elif block.kind == "caption":
            caption = Paragraph(inline(joined), CAPTION)
        elif block.kind == "table":
            built = table(block, chapter)
            if caption is None:
                raise SourceError(f"{where}: this table has no caption; write '**Table N.M.** ...' before it")
            result.append(KeepTogether([caption, built]))
            caption = None
        elif block.kind == "formula":
            formula = XPreformatted(escape("\n".join(block.lines)), FORMULA)
            # A formula belongs to the sentence before it, and that to its heading; none should end a page alone.
            leading: list[Flowable] = []
            if result and type(result[-1]) is Paragraph:
                leading.insert(0, result.pop())
            if result and isinstance(result[-1], Heading) and result[-1].level > 1:
                leading.insert(0, result.pop())
            result.append(KeepTogether([*leading, formula]))
        elif block.kind == "figure":
            name, legend = re.fullmatch(r"!\[(\w+)\]\((.+)\)", joined).groups()  # type: ignore[union-attr]
            try:
                drawing = figure(name)
            except KeyError:
                raise SourceError(f"{where}: no drawing is called {name!r}; add it to figure()") from None
            result.append(KeepTogether([Spacer(1, 6), drawing, Paragraph(inline(legend), CAPTION), Spacer(1, 8)]))
        elif block.kind == "quote":
            result.append(Paragraph(inline(" ".join(line.removeprefix("> ") for line in block.lines)), QUOTE))
        elif block.kind == "list":
            for line in block.lines:
                mark, item = line.split(" ", 1)
                result.append(Paragraph(inline(item), ITEM, bulletText="\u2022" if mark == "-" else mark))
            result.append(Spacer(1, 5))
        else:
            result.append(Paragraph(inline(joined), BODY))
    return result


def build(source: Path, out: Path) -> None:
    """Write the handbook. Raises SourceError when there are no chapters or one of them cannot be set."""
    chapters = sorted(source.glob("*.md"))
    if not chapters:
        raise SourceError(f"{source}: no Markdown chapters here; name their folder with --source")
    contents = TableOfContents(levelStyles=CONTENTS, dotsMinLevel=0)
    story: list[Flowable] = [
        NextPageTemplate("text"),
        PageBreak(),
        Paragraph("Contents", HEADINGS[1]),
        contents,
    ]
    for chapter in chapters:
        story.extend(flowables(chapter, chapter.read_text(encoding="utf-8")))
    out.parent.mkdir(parents=True, exist_ok=True)
    Handbook(str(out)).multiBuild(story)


def main(arguments: list[str] | None = None) -> int:
    """Parse the command line and build; 0 when the PDF was written, 1 when a chapter could not be set."""
    parser = argparse.ArgumentParser(description="Build the handbook of retrieval as a PDF.")
    parser.add_argument("--source", type=Path, default=REPOSITORY / "demo" / "source")
    parser.add_argument("--out", type=Path, default=REPOSITORY / "demo" / "documents" / "retrieval-handbook.pdf")
    options = parser.parse_args(arguments)
    try:
        build(options.source, options.out)
    except SourceError as error:
        print(f"build_handbook: {error}", file=sys.stderr)
        return 1
    print(f"{options.out.name}: {options.out.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
