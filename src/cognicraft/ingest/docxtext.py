"""The text of one DOCX paragraph, as Word shows it: inserted text in, deleted text, field codes and notes out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cognicraft.ingest.clean import raised

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
_BOX = W + "txbxContent"
_OUT = frozenset({W + "del", W + "moveFrom", W + "rPr", W + "pPr", W + "instrText", W + "delText", _BOX, _FALLBACK})
_AS = {W + "tab": "\t", W + "br": "\n", W + "cr": "\n", W + "noBreakHyphen": "-"}


def paragraph_text(paragraph: Any) -> str:
    """Its runs joined; text boxes that are anchored in it are left to `text_boxes`."""
    parts: list[str] = []
    stack = list(reversed(paragraph))
    while stack:
        element = stack.pop()
        if element.tag == W + "t":
            text = element.text or ""
            parts.append(raised(text) if _is_raised(element.getparent()) else text)
        elif element.tag in _AS:
            parts.append(_AS[element.tag])
        elif element.tag not in _OUT:
            stack.extend(reversed(element))
    return "".join(parts)


def _is_raised(run: Any) -> bool:
    align = run.find(f"{W}rPr/{W}vertAlign")
    return align is not None and align.get(W + "val") == "superscript"


def text_boxes(paragraph: Any) -> Iterator[Any]:
    """The contents of the text boxes of a paragraph; the copy for old programs (`Fallback`) is left out."""
    stack = list(reversed(paragraph))
    while stack:
        element = stack.pop()
        if element.tag == _BOX:
            yield element
        elif element.tag != _FALLBACK:
            stack.extend(reversed(element))
