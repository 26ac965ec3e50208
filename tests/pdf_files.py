"""PDFs written by the tests: with reportlab where a page has a look, byte by byte where it is hostile."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from pathlib import Path

from reportlab.lib.pagesizes import letter
from reportlab.pdfgen.canvas import Canvas


class Sheet:
    """A PDF under construction; `save` gives its path."""

    def __init__(self, path: Path, *, title: str = "", password: str = "") -> None:
        self._path = path
        self.canvas = Canvas(str(path), pagesize=letter, encrypt=password or None, pageCompression=0, invariant=1)
        if title:
            self.canvas.setTitle(title)

    def text(self, x: float, y: float, text: str, *, size: float = 10, bold: bool = False) -> Sheet:
        self.canvas.setFont("Helvetica-Bold" if bold else "Helvetica", size)
        self.canvas.drawString(x, y, text)
        return self

    def lines(self, x: float, y: float, lines: Sequence[str], *, size: float = 10, pitch: float = 12) -> Sheet:
        for number, line in enumerate(lines):
            self.text(x, y - number * pitch, line, size=size)
        return self

    def right(self, x: float, y: float, text: str, *, size: float = 10) -> Sheet:
        self.canvas.setFont("Helvetica", size)
        self.canvas.drawRightString(x, y, text)
        return self

    def center(self, x: float, y: float, text: str, *, size: float = 10, bold: bool = False) -> Sheet:
        self.canvas.setFont("Helvetica-Bold" if bold else "Helvetica", size)
        self.canvas.drawCentredString(x, y, text)
        return self

    def rule(self, left: float, right: float, y: float) -> Sheet:
        self.canvas.rect(left, y, right - left, 0.5, stroke=0, fill=1)
        return self

    def bookmark(self, title: str, level: int) -> Sheet:
        key = f"{title}-{self.canvas.getPageNumber()}"
        self.canvas.bookmarkPage(key)
        self.canvas.addOutlineEntry(title, key, level=level)
        return self

    def picture(self) -> Sheet:
        from PIL import Image
        from reportlab.lib.utils import ImageReader

        self.canvas.drawImage(ImageReader(Image.new("L", (60, 80), 200)), 50, 50, 400, 600)
        return self

    def page(self) -> Sheet:
        self.canvas.showPage()
        return self

    def save(self) -> Path:
        self.canvas.save()
        return self._path


def raw_pdf(objects: Sequence[bytes], *, root: int = 1) -> bytes:
    """A PDF of these objects, numbered from 1, with a true cross-reference table."""
    out = bytearray(b"%PDF-1.7\n")
    offsets = []
    for number, body in enumerate(objects, 1):
        offsets.append(len(out))
        out += b"%d 0 obj\n" % number + body + b"\nendobj\n"
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    for offset in offsets:
        out += b"%010d 00000 n \n" % offset
    out += b"trailer\n<< /Size %d /Root %d 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, root, start)
    return bytes(out)


def stream(data: bytes, *, entries: bytes = b"") -> bytes:
    """A stream object with these bytes as they are."""
    return b"<< /Length %d %s >>\nstream\n" % (len(data), entries) + data + b"\nendstream"


def empty_pages(count: int) -> bytes:
    """A PDF of blank pages."""
    kids = b" ".join(b"%d 0 R" % (number + 3) for number in range(count))
    page = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] >>"
    pages = b"<< /Type /Pages /Kids [%s] /Count %d >>" % (kids, count)
    return raw_pdf([b"<< /Type /Catalog /Pages 2 0 R >>", pages, *[page] * count])


def recursive_page_tree() -> bytes:
    """A page tree that is its own child."""
    return raw_pdf(
        [
            b"<< /Type /Catalog /Pages 2 0 R >>",
            b"<< /Type /Pages /Kids [3 0 R] /Count 1000 >>",
            b"<< /Type /Pages /Parent 2 0 R /Kids [2 0 R 3 0 R] /Count 1000 >>",
        ]
    )


def no_pages() -> bytes:
    return raw_pdf([b"<< /Type /Catalog /Pages 2 0 R >>", b"<< /Type /Pages /Kids [] /Count 0 >>"])


def bomb(megabytes: int) -> bytes:
    """A page whose content unpacks to this much, packed twice over: some kilobytes on disk."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = b"q Q " * (1 << 18)
    # A full flush forgets what came before, so the packed block can be repeated as it is.
    packed = packer.compress(block) + packer.flush(zlib.Z_FULL_FLUSH)
    once = b"\x78\xda" + packed * megabytes + packer.flush()
    twice = zlib.compress(once, 9)
    return raw_pdf(
        [
            b"<< /Type /Catalog /Pages 2 0 R >>",
            b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R >>",
            stream(twice, entries=b"/Filter [/FlateDecode /FlateDecode]"),
        ]
    )
