"""Read PPTX.

Takes a path; returns one document: each slide is a page, so that a citation can name it; its title is a heading, then
its texts in the order of the slide, tables as self-describing lines, speaker notes last. Method: python-pptx (extra
`office`). Cost: linear in the shapes.
What can go wrong: what `ooxml.check_archive` says; `MissingExtra`; `EmptyFile` where the slides are pictures.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cognicraft.errors import MissingExtra
from cognicraft.ingest.assemble import Assembly
from cognicraft.ingest.clean import one_line
from cognicraft.ingest.ooxml import check_archive, parsing
from cognicraft.ingest.readoptions import ReadOptions
from cognicraft.ingest.sourcename import source_of
from cognicraft.ingest.tables import guess_head, linearize
from cognicraft.records import Document

_KIND = "a PPTX presentation"
_MEDIA_TYPE = "application/vnd.openxmlformats-officedocument.presentationml.presentation"


def read_pptx(path: str, *, options: ReadOptions) -> Iterator[Document]:
    """The one document of a presentation."""
    check_archive(path, options=options, part="[Content_Types].xml", kind=_KIND)
    source = source_of(path)
    try:
        import pptx
    except ModuleNotFoundError as error:
        if error.name != "pptx":
            raise
        raise MissingExtra("Reading PPTX files", extra="office") from error
    with parsing(source, _KIND):
        presentation = pptx.Presentation(path)
        assembly = Assembly(source, max_characters=options.max_characters)
        first_title = ""
        for slide in presentation.slides:
            assembly.start_page()
            title = slide.shapes.title
            heading = one_line(title.text_frame.text) if title is not None else ""
            assembly.add("heading", heading, level=1)
            first_title = first_title or heading
            for shape in _flat(slide.shapes):
                if title is None or shape.shape_id != title.shape_id:
                    _add(assembly, shape)
            if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
                assembly.add("paragraph", slide.notes_slide.notes_text_frame.text)
        name = presentation.core_properties.title or ""
    yield assembly.document(source, title=name or first_title, media_type=_MEDIA_TYPE)


def _flat(shapes: Any) -> Iterator[Any]:
    """The shapes, also those in groups, in order."""
    stack = list(reversed(list(shapes)))
    while stack:
        shape = stack.pop()
        inner = getattr(shape, "shapes", None)
        if inner is not None:
            stack.extend(reversed(list(inner)))
        else:
            yield shape


def _add(assembly: Assembly, shape: Any) -> None:
    if getattr(shape, "has_table", False):
        rows = [[cell.text_frame.text for cell in row.cells] for row in shape.table.rows]
        heads = 1 if shape.table.first_row and len(rows) > 1 else guess_head(rows)
        assembly.add("table", "\n".join(linearize(rows[0] if heads else [], rows[heads:])))
    elif getattr(shape, "has_text_frame", False):
        lines = [
            "  " * min(paragraph.level, 8) + one_line(paragraph.text)
            for paragraph in shape.text_frame.paragraphs
            if paragraph.text.strip()
        ]
        assembly.add("list" if len(lines) > 1 else "paragraph", "\n".join(lines))
