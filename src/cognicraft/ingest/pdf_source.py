"""What pdfium knows of a PDF, as plain values: pages of lines of words with their boxes, outline, properties.

Takes: a path. Returns: `SourcePage`s one at a time, in page order, lines in content-stream order (a layout order
interleaves columns). Method: pdfium's C interface, called for whole pages of text and for the first and last
character of each word: calls per character would cost more than the text itself. Cost: about 5 ms a page, two thirds
of it pdfium's own. What can go wrong: pdfium is not thread-safe and a hostile file may end the process, so only a
reader process should come here.
Coordinates are in points as the page is seen, origin bottom left, y up; rotation of the page is undone.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import pypdfium2.raw as pdfium

from cognicraft.errors import CorruptFile, EncryptedFile, Unreadable
from cognicraft.ingest.pdf_words import HYPHEN_MARK, clean, needs_cleaning
from cognicraft.ingest.sourcename import source_of

_LINE = re.compile(r"[^\r\n\ufffe]+\ufffe?")
_WORD = re.compile(r"[^\s\x00]+")
_BOLD = re.compile(rb"bold|black|heavy", re.IGNORECASE)
_OUTLINE_LIMIT = 5000
_SPARSE_LINES = 2
_PICTURE_SEARCH_LIMIT = 1000
_RULE_SEARCH_LIMIT = 20_000
_THIN = 2.5
_initialized = False


class Word(NamedTuple):
    """A run of characters without white space, and where it begins and ends on its line."""

    text: str
    left: float
    right: float


class Line(NamedTuple):
    """Words that pdfium gives as one line; made by `line_of`.

    `top - bottom` is the height of its font, `weight` is larger if bold, `gap` is the widest white space between words.
    """

    words: tuple[Word, ...]
    text: str
    bottom: float
    top: float
    weight: int
    gap: float

    @property
    def left(self) -> float:
        return self.words[0].left

    @property
    def right(self) -> float:
        return self.words[-1].right

    @property
    def height(self) -> float:
        return self.top - self.bottom


def line_of(words: Sequence[Word], *, bottom: float, top: float, weight: int) -> Line:
    """A line of at least one word."""
    gap = max((after.left - before.right for before, after in pairwise(words)), default=0.0)
    return Line(tuple(words), " ".join([word.text for word in words]), bottom, max(top, bottom), weight, gap)


class Rule(NamedTuple):
    """A horizontal line drawn on the page, or a thin box."""

    y: float
    left: float
    right: float


@dataclass(frozen=True, slots=True)
class SourcePage:
    """A page. `objects` counts what is drawn on it, text or not; `damaged` pages could not be opened.

    `pictured` says of a page with next to no text that it holds a picture; of other pages it is not asked.
    """

    width: float
    height: float
    lines: tuple[Line, ...]
    objects: int = 0
    pictured: bool = False
    damaged: bool = False


@dataclass(frozen=True, slots=True)
class OutlineEntry:
    """A bookmark: its title, depth from 1, and page index from 0 (-1 where it leads nowhere)."""

    title: str
    level: int
    page: int


class PdfFile:
    """An open PDF; made by `open_pdf`."""

    def __init__(self, handle: Any) -> None:
        self._handle = handle
        self.page_count: int = pdfium.FPDF_GetPageCount(handle)

    def property(self, key: str) -> str:
        """Of the document information: "Title", "Author", …; "" where absent."""
        name = key.encode("ascii")
        return _utf16(lambda buffer, size: pdfium.FPDF_GetMetaText(self._handle, name, buffer, size))

    def outline(self) -> list[OutlineEntry]:
        """Bookmarks in reading order; loops and absurd sizes are cut off."""
        entries: list[OutlineEntry] = []
        seen: set[int] = set()
        stack: list[tuple[Any, int]] = [(pdfium.FPDFBookmark_GetFirstChild(self._handle, None), 1)]
        while stack and len(entries) < _OUTLINE_LIMIT:
            mark, level = stack.pop()
            address = ctypes.cast(mark, ctypes.c_void_p).value if mark else None
            if address is None or address in seen:
                continue
            seen.add(address)
            title = _bookmark_title(mark)
            destination = pdfium.FPDFBookmark_GetDest(self._handle, mark)
            page = pdfium.FPDFDest_GetDestPageIndex(self._handle, destination) if destination else -1
            if title:
                entries.append(OutlineEntry(title, level, page))
            stack.append((pdfium.FPDFBookmark_GetNextSibling(self._handle, mark), level))
            stack.append((pdfium.FPDFBookmark_GetFirstChild(self._handle, mark), level + 1))
        return entries

    def page(self, index: int) -> SourcePage:
        """Page `index`, counted from 0."""
        page = pdfium.FPDF_LoadPage(self._handle, index)
        if not page:
            return SourcePage(0.0, 0.0, (), damaged=True)
        try:
            width, height = pdfium.FPDF_GetPageWidthF(page), pdfium.FPDF_GetPageHeightF(page)
            objects = pdfium.FPDFPage_CountObjects(page)
            lines: tuple[Line, ...] = ()
            if objects:
                text_page = pdfium.FPDFText_LoadPage(page)
                if text_page:
                    try:
                        rotation = pdfium.FPDFPage_GetRotation(page)
                        lines = tuple(_lines(text_page, rotation, width, height))
                    finally:
                        pdfium.FPDFText_ClosePage(text_page)
            sparse = len(lines) <= _SPARSE_LINES
            return SourcePage(width, height, lines, objects, sparse and _has_picture(page, objects))
        finally:
            pdfium.FPDF_ClosePage(page)

    def rules(self, index: int) -> list[Rule]:
        """The horizontal rules of page `index`, pieces joined, from the top. Costs as much as the text of the page."""
        page = pdfium.FPDF_LoadPage(self._handle, index)
        if not page:
            return []
        try:
            if pdfium.FPDFPage_GetRotation(page):
                return []
            return _rules(page)
        finally:
            pdfium.FPDF_ClosePage(page)


@contextmanager
def open_pdf(path: str) -> Iterator[PdfFile]:
    """Open a file that begins like a PDF.

    Raises: EncryptedFile where it asks for a password; CorruptFile where it cannot be understood; Unreadable.
    """
    global _initialized
    if not _initialized:
        pdfium.FPDF_InitLibrary()
        _initialized = True
    encoded = path.encode("utf-8", "surrogatepass") if sys.platform == "win32" else os.fsencode(path)
    handle = pdfium.FPDF_LoadDocument(encoded, None)
    if not handle:
        raise _open_error(path, pdfium.FPDF_GetLastError())
    try:
        yield PdfFile(handle)
    finally:
        pdfium.FPDF_CloseDocument(handle)


def _open_error(path: str, code: int) -> CorruptFile | EncryptedFile | Unreadable:
    name = source_of(path)
    if code in (pdfium.FPDF_ERR_PASSWORD, pdfium.FPDF_ERR_SECURITY):
        return EncryptedFile(f"{name} asks for a password.", remedy="Save a copy without one and ingest that.")
    if code == pdfium.FPDF_ERR_FILE:
        return Unreadable(f"{name} cannot be opened.", remedy="Check that it exists and that you may read it.")
    return CorruptFile(
        f"{name} is damaged: it begins like a PDF, but its structure cannot be read.",
        remedy="Fetch it again, or open it in its own program and save it again.",
    )


def _has_picture(page: Any, objects: int) -> bool:
    kinds = (
        pdfium.FPDFPageObj_GetType(pdfium.FPDFPage_GetObject(page, index))
        for index in range(min(objects, _PICTURE_SEARCH_LIMIT))
    )
    return any(kind in (pdfium.FPDF_PAGEOBJ_IMAGE, pdfium.FPDF_PAGEOBJ_FORM) for kind in kinds)


def _rules(page: Any) -> list[Rule]:
    left, bottom, right, top = (ctypes.c_float() for _ in range(4))
    references = [ctypes.byref(side) for side in (left, bottom, right, top)]
    get, kind, bounds = pdfium.FPDFPage_GetObject, pdfium.FPDFPageObj_GetType, pdfium.FPDFPageObj_GetBounds
    pieces: list[tuple[int, float, float, float]] = []
    for index in range(min(pdfium.FPDFPage_CountObjects(page), _RULE_SEARCH_LIMIT)):
        item = get(page, index)
        if kind(item) == pdfium.FPDF_PAGEOBJ_PATH and bounds(item, *references) and top.value - bottom.value < _THIN:
            pieces.append((-round(top.value), left.value, right.value, top.value))
    pieces.sort()
    rules: list[Rule] = []
    for _, start, end, y in pieces:
        if rules and abs(rules[-1].y - y) < 1 and start - rules[-1].right < 1.5:
            rules[-1] = Rule(rules[-1].y, rules[-1].left, max(rules[-1].right, end))
        else:
            rules.append(Rule(y, start, end))
    return rules


def _lines(text_page: Any, rotation: int, width: float, height: float) -> Iterator[Line]:
    text = _page_text(text_page)
    box = pdfium.FS_RECTF()
    reference = ctypes.byref(box)
    box_of = pdfium.FPDFText_GetLooseCharBox
    unclean = needs_cleaning(text)
    for match in _LINE.finditer(text):
        words: list[Word] = []
        bottom = top = 0.0
        weight = 0
        for word in _WORD.finditer(text, match.start(), match.end()):
            first, last = word.start(), word.end() - 1
            if text[last] == "\ufffe" and last > first:
                last -= 1
            box_of(text_page, first, reference)
            left, right, low, high = box.left, box.right, box.bottom, box.top
            if last > first:
                box_of(text_page, last, reference)
                if rotation:
                    left, right = min(left, box.left), max(right, box.right)
                    low, high = min(low, box.bottom), max(high, box.top)
                else:
                    right = box.right
            if rotation == 1:
                left, right, low, high = low, high, height - right, height - left
            elif rotation == 2:
                left, right, low, high = width - right, width - left, height - high, height - low
            elif rotation == 3:
                left, right, low, high = width - high, width - low, left, right
            if not words:
                bottom, top, weight = low, high, _weight(text_page, first)
            content = word.group()
            if unclean and not (content.isascii() and content.isprintable()):
                mark = HYPHEN_MARK if content[-1] == HYPHEN_MARK else ""
                content = clean(content) + mark
                if not content.strip():
                    continue
            words.append(Word(content, left, max(left, right)))
        if words:
            # A line counts as bold only if it ends so too: "Revenue. We recognise" is not a heading.
            weight = min(weight, _weight(text_page, last))
            yield line_of(words, bottom=bottom, top=top, weight=weight)


def _weight(text_page: Any, index: int) -> int:
    """Of the font of a character; from the font's name where the file does not tell (the standard fonts)."""
    weight: int = pdfium.FPDFText_GetFontWeight(text_page, index)
    if weight > 0:
        return weight
    name = ctypes.create_string_buffer(64)
    pdfium.FPDFText_GetFontInfo(text_page, index, name, 64, None)
    return 700 if _BOLD.search(name.value) else 400


def _page_text(text_page: Any) -> str:
    """The text of the page, one Python character per pdfium character, so that positions are shared."""
    count = pdfium.FPDFText_CountChars(text_page)
    if count <= 0:
        return ""
    buffer = (ctypes.c_ushort * (count + 1))()
    written = pdfium.FPDFText_GetText(text_page, 0, count, buffer)
    text = bytes(buffer)[: 2 * max(0, written - 1)].decode("utf-16-le", "replace")
    if len(text) == count:
        return text
    # Characters without a code, or beyond the basic plane: ask for each.
    codes = (pdfium.FPDFText_GetUnicode(text_page, index) for index in range(count))
    hyphens = (pdfium.FPDFText_IsHyphen(text_page, index) == 1 for index in range(count))
    return "".join(
        "\ufffe" if hyphen else chr(code) if code <= sys.maxunicode else "\ufffd"
        for code, hyphen in zip(codes, hyphens, strict=True)
    )


def _bookmark_title(mark: Any) -> str:
    return _utf16(lambda buffer, size: pdfium.FPDFBookmark_GetTitle(mark, buffer, size))


def _utf16(fill: Any) -> str:
    """Call a pdfium function that reports a size in bytes, then fills a buffer."""
    size = fill(None, 0)
    if size <= 2:
        return ""
    buffer = ctypes.create_string_buffer(size)
    fill(buffer, size)
    return " ".join(buffer.raw[: size - 2].decode("utf-16-le", "replace").split())
