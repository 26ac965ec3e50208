"""The question that places one chunk: template, the part of the document that is shown, and the messages.

Takes: a document, a chunk, how much may be shown. Returns: messages whose stable beginning is the same for all chunks
that are shown the same part. Method: a document that fits is shown whole; of a longer one its beginning (a quarter of
the room) and a section around the chunk. Sections lie on a grid of half their length, so that neighbouring chunks share
one and a provider's prompt cache still helps, and every chunk has at least a quarter of a section on either side.
Cost: linear in what is shown. What can go wrong: tokens are estimated (`estimated_tokens`), so a model with another
tokenizer may read less than thought; who calls falls back to a smaller part.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from string import Template

from cognicraft.errors import SettingsError
from cognicraft.records import Chunk, Document, Message, digest

BEGINNING_SHARE = 0.25
GAP = "\n\n[… left out …]\n\n"
_PARTS = ("instructions", "document", "chunk")
_NEEDED = {"document": ("document", "fence"), "chunk": ("chunk", "fence")}
_NAMES = {"title", "file", "document", "fence", "headings", "chunk"}
_OWN_FILE = "context_prompt.md"
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_HEADING = re.compile(r"^# (instructions|document|chunk)[ \t]*$", re.MULTILINE)
_PIECE = re.compile(r"[A-Za-z]+|[^\W\d_A-Za-z]+|\d|[^\w\s]|\n+")


def estimated_tokens(text: str) -> int:
    """About how many tokens a language model makes of a text; rather too many than too few.

    Four letters of Latin script a token, at least one a word; each digit and mark one; other scripts one a letter up to
    two letters a token. Tokenizers differ by half; none of them is needed to know whether a document fits.
    """
    count = 0.0
    for match in _PIECE.finditer(text):
        piece = match[0]
        if piece[0].isascii():
            count += max(1.0, len(piece) / 5) if piece[0].isalpha() else (0.75 if piece[0].isdigit() else 1.0)
        else:
            count += len(piece) if piece[0] >= "\u2e80" else max(1.0, len(piece) / 2.5)
    return round(count)


@dataclass(frozen=True, slots=True)
class Shown:
    """A part of a document's text: its beginning, and a section [start, end) unless that is part of the beginning."""

    beginning: int
    start: int
    end: int
    whole: bool

    def text_of(self, document: Document) -> str:
        if self.start <= self.beginning:
            return document.text[: max(self.beginning, self.end)]
        return document.text[: self.beginning].rstrip() + GAP + document.text[self.start : self.end]


class ContextPrompt:
    """The template, from the package or from a file of the person's own. Raises: SettingsError."""

    def __init__(self, file: Path | None = None) -> None:
        self._name = str(file) if file else _OWN_FILE
        try:
            text = (file or files(__package__).joinpath(_OWN_FILE)).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise SettingsError(
                f"The prompt template {self._name} cannot be read: {error}.",
                remedy="Give the path of a text file in UTF-8, or leave it out for the template of the package.",
            ) from None
        self._parts = self._parse(text)

    @cached_property
    def digest(self) -> str:
        """Changes with the wording: contexts made with another one are other contexts."""
        return digest(*(self._parts[part].template for part in _PARTS))

    def stable(self, document: Document, shown: Shown) -> tuple[Message, ...]:
        """The beginning that all chunks with the same shown part have in common."""
        text = shown.text_of(document)
        values = _values(document, text)
        return (
            Message("system", self._parts["instructions"].substitute(values)),
            Message("user", self._parts["document"].substitute(values, document=text), stable=True),
        )

    def asking(self, document: Document, chunk: Chunk, shown_text: str) -> Message:
        """What is asked about one chunk, after the stable beginning with that text."""
        headings = " > ".join(" ".join(heading.split()) for heading in chunk.heading_path) or "none"
        values = _values(document, shown_text)
        return Message("user", self._parts["chunk"].substitute(values, headings=headings, chunk=chunk.text))

    @cached_property
    def own_tokens(self) -> int:
        """Tokens of the template without what is filled in."""
        return sum(estimated_tokens(self._parts[part].template) for part in _PARTS)

    def _parse(self, text: str) -> dict[str, Template]:
        pieces = _HEADING.split(_COMMENT.sub("", text))
        parts = {name: Template(body.strip()) for name, body in zip(pieces[1::2], pieces[2::2], strict=True)}
        missing = [part for part in _PARTS if part not in parts]
        if missing:
            raise self._unusable(f"has no part `# {missing[0]}`")
        for part, template in parts.items():
            if not template.is_valid():
                raise self._unusable(f"has a $ in its part `{part}` that names nothing (write $$ for a dollar sign)")
            used = set(template.get_identifiers())
            allowed = _NAMES if part == "chunk" else _NAMES - {"chunk", "headings"}
            allowed = allowed - {"document"} if part != "document" else allowed
            if unknown := sorted(used - allowed):
                raise self._unusable(f"uses ${{{unknown[0]}}} in its part `{part}`, where there is none")
            if missing := [name for name in _NEEDED.get(part, ()) if name not in used]:
                raise self._unusable(f"lacks ${{{missing[0]}}} in its part `{part}`")
        return parts

    def _unusable(self, why: str) -> SettingsError:
        return SettingsError(
            f"The prompt template {self._name} {why}.", remedy=f"Begin with a copy of {_OWN_FILE} of the package."
        )


def shown_parts(document: Document, chunks: Sequence[Chunk], *, room_tokens: int, tokens: int) -> list[Shown]:
    """For each chunk the part of the document that it is shown with.

    room_tokens: tokens that the part may have. tokens: those of the whole document.
    """
    length = len(document.text)
    if tokens <= room_tokens:
        return [Shown(beginning=length, start=0, end=length, whole=True)] * len(chunks)
    # Characters by the document's own density, with care for a part that is denser than the rest (tables).
    room = int(length * max(room_tokens, 0) / max(tokens, 1) * 0.9)
    beginning = _border(document.text, int(room * BEGINNING_SHARE))
    section = room - beginning
    if section < 2:
        return [Shown(beginning=beginning, start=beginning, end=beginning, whole=False)] * len(chunks)
    step = section // 2
    parts = []
    for chunk in chunks:
        place = ((chunk.start + chunk.end) // 2) // step
        start = min(max(place * step - step // 2, 0), max(length - section, 0))
        end = min(start + section, length)
        parts.append(Shown(beginning, _border_after(document.text, start, end), end, whole=False))
    return parts


def _border(text: str, position: int) -> int:
    """The position, moved back to the beginning of a line or word where one is near."""
    if position <= 0 or position >= len(text):
        return min(max(position, 0), len(text))
    for mark in ("\n", " "):
        found = text.rfind(mark, max(position - 200, 0), position)
        if found >= 0:
            return found + 1
    return position


def _border_after(text: str, position: int, end: int) -> int:
    """The position, moved on to the next line or word where one is near."""
    if position <= 0:
        return 0
    for mark in ("\n", " "):
        found = text.find(mark, position, min(position + 200, end))
        if found >= 0:
            return found + 1
    return position


def _values(document: Document, shown_text: str) -> dict[str, str]:
    name = document.source.rsplit("/", 1)[-1]
    return {
        "title": " ".join(document.title.split()) or "none",
        "file": " ".join(name.split()),
        # Nobody can write a line into a document that ends it early: the mark depends on the whole of its text.
        "fence": f"=== {digest(shown_text, size=6)}",
    }
