"""Read DOCX.

Takes a path; returns one document: the body in its order with headings (by style, or by outline level), paragraphs,
lists and tables; headers, footers, comments, deleted text and notes are left out. Method: python-docx opens the
package, and the XML of the body is walked directly, because its own object model leaves out content controls and
text boxes and needs quadratic time for tables. Cost: linear in the XML.
What can go wrong: what `ooxml.check_archive` says; `EmptyFile` where the body has no text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from cognicraft.ingest.assemble import Assembly
from cognicraft.ingest.clean import one_line
from cognicraft.ingest.docxtable import docx_table_lines
from cognicraft.ingest.docxtext import W, paragraph_text, text_boxes
from cognicraft.ingest.ooxml import check_archive, parsing
from cognicraft.ingest.readoptions import ReadOptions
from cognicraft.ingest.sourcename import source_of
from cognicraft.records import Document, MetadataValue

_KIND = "a DOCX document"
_MEDIA_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
_HEADING = re.compile(r"heading ([1-9])$", re.IGNORECASE)
_MAX_LEVEL = 6


def read_docx(path: str, *, options: ReadOptions) -> Iterator[Document]:
    """The one document of a DOCX file."""
    check_archive(path, options=options, part="[Content_Types].xml", kind=_KIND)
    source = source_of(path)
    with parsing(source, _KIND):
        import docx

        word = docx.Document(path)
        assembly = Assembly(source, max_characters=options.max_characters)
        body = _Body(assembly, _Styles(word.styles.element))
        body.add(word.element.body)
        properties = word.core_properties
        title = one_line(properties.title or "") or body.title
        metadata: dict[str, MetadataValue] = {}
        for name, value in (("author", properties.author), ("subject", properties.subject)):
            if value and one_line(value):
                metadata[name] = one_line(value)
        if properties.modified:
            metadata["modified"] = properties.modified.date().isoformat()
        language = one_line(properties.language or "").lower()
    yield assembly.document(
        source, title=title, media_type=_MEDIA_TYPE, metadata=metadata, language=re.split("[-_]", language)[0]
    )


class _Styles:
    """What the paragraph styles of a document mean: the level of a heading, or a list."""

    def __init__(self, element: Any) -> None:
        self._styles = {style.get(W + "styleId"): style for style in element.iter(W + "style")}

    def level(self, paragraph: Any) -> int:
        """The depth of a heading from 1; 0 for other paragraphs."""
        properties = paragraph.find(W + "pPr")
        if properties is None:
            return 0
        own = _outline_level(properties)
        if own is not None:
            return own
        for style in self._chain(properties):
            name = _value(style, "name") or ""
            match = _HEADING.match(name)
            if match:
                return min(int(match[1]), _MAX_LEVEL)
            if name.lower() == "title":
                return 1
            inner = style.find(W + "pPr")
            level = _outline_level(inner) if inner is not None else None
            if level is not None:
                return level
        return 0

    def list_depth(self, paragraph: Any) -> int:
        """The depth of a list item from 1; 0 for other paragraphs."""
        properties = paragraph.find(W + "pPr")
        if properties is None:
            return 0
        for place in (properties, *(style.find(W + "pPr") for style in self._chain(properties))):
            numbering = place.find(W + "numPr") if place is not None else None
            if numbering is None:
                continue
            if _value(numbering, "numId") == "0":  # taken out of the list again
                return 0
            depth = _value(numbering, "ilvl") or "0"
            return min(int(depth), 8) + 1 if depth.isdecimal() else 1
        return 0

    def _chain(self, properties: Any) -> Iterator[Any]:
        """The style of a paragraph and those that it is based on."""
        name = _value(properties, "pStyle")
        for _ in range(20):
            style = self._styles.get(name)
            if style is None:
                return
            yield style
            name = _value(style, "basedOn")


class _Body:
    """Adds the body of a document to an assembly."""

    def __init__(self, assembly: Assembly, styles: _Styles) -> None:
        self._assembly = assembly
        self._styles = styles
        self._items: list[str] = []
        self.title = ""

    def add(self, body: Any) -> None:
        for element in _unwrapped(body):
            if element.tag == W + "tbl":
                self._end_list()
                self._assembly.add("table", "\n".join(docx_table_lines(element)))
            else:
                self._paragraph(element)
                for box in text_boxes(element):
                    self._end_list()
                    self.add(box)
        self._end_list()

    def _paragraph(self, paragraph: Any) -> None:
        text = paragraph_text(paragraph).strip()
        if not text:
            return
        level = self._styles.level(paragraph)
        depth = 0 if level else self._styles.list_depth(paragraph)
        if depth:
            self._items.append("  " * (depth - 1) + "- " + text)
            return
        self._end_list()
        if level:
            self.title = self.title or one_line(text)
            self._assembly.add("heading", one_line(text), level=level)
        else:
            self._assembly.add("paragraph", text)

    def _end_list(self) -> None:
        if self._items:
            self._assembly.add("list", "\n".join(self._items))
            self._items.clear()


def _unwrapped(parent: Any) -> Iterator[Any]:
    """The paragraphs and tables below a body, also those in content controls, in order."""
    stack = list(reversed(parent))
    while stack:
        element = stack.pop()
        if element.tag in (W + "p", W + "tbl"):
            yield element
        elif element.tag in (W + "sdt", W + "sdtContent", W + "customXml", W + "ins", W + "smartTag"):
            stack.extend(reversed(element))


def _outline_level(properties: Any) -> int | None:
    value = _value(properties, "outlineLvl")
    if value is None or not value.isdecimal():
        return None
    return min(int(value) + 1, _MAX_LEVEL) if int(value) < 9 else 0


def _value(element: Any, name: str) -> str | None:
    child = element.find(W + name)
    value: str | None = child.get(W + "val") if child is not None else None
    return value
