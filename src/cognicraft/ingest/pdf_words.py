"""Clean characters: ligatures, soft hyphens, control characters; words that a line end has cut in two.

Takes and returns: text. Cost: one regular expression per page. What can go wrong: a compound that was cut at its own
hyphen ("well-/known") looks like a cut word; the rest of the document decides where it can.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cognicraft.ingest.pdf_source import Line

HYPHEN_MARK = "\ufffe"
"""What pdfium puts in place of a hyphen at a line end."""

_LIGATURES = {
    "\ufb00": "ff",
    "\ufb01": "fi",
    "\ufb02": "fl",
    "\ufb03": "ffi",
    "\ufb04": "ffl",
    "\ufb05": "st",
    "\ufb06": "st",
    "\uf0b7": "•",  # bullets of the Symbol and Wingdings fonts
    "\uf0a7": "▪",
    "\u00a0": " ",
    "\u2028": " ",
    "\u2029": " ",
}
_UNCLEAN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00a0\u00ad\u200b\u2028\u2029\u2060\ufeff\uf0b7\uf0a7\ufb00-\ufb06\ufffe\uffff"
    "\ud800-\udfff]"
)
_UNBROKEN = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*(?![^\W\d_]|-$|\ufffe)")
_CUT_TAIL = re.compile(r"[^\W\d_]+$")
_CUT_HEAD = re.compile(r"[^\W\d_]+")


def needs_cleaning(text: str) -> bool:
    """Whether `clean` would change the text; one look at a page spares a look at each word."""
    return _UNCLEAN.search(text) is not None or not (text.isascii() or unicodedata.is_normalized("NFC", text))


def clean(text: str) -> str:
    """Text with ligatures spelled out and without characters that nobody sees. Line-end marks are dropped too."""
    if _UNCLEAN.search(text):
        text = _UNCLEAN.sub(lambda match: _LIGATURES.get(match.group(), ""), text)
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def joint(before: str, after: str, *, occurs: Callable[[str], bool]) -> tuple[int, str]:
    """How two lines of one paragraph meet: characters to take off the first, then what to put between them.

    A word cut at the line end is made whole; a compound keeps its hyphen. occurs: whether a word, in lower case,
    stands unbroken anywhere in the document.
    """
    marked = before.endswith(HYPHEN_MARK)
    if not marked and not (len(before) > 1 and before[-1] in "-\u2010" and before[-2].isalnum()):
        return 0, " "
    stem = before[:-1]
    tail, head = _CUT_TAIL.search(stem), _CUT_HEAD.match(after)
    if tail is None or head is None:
        return 1, "-"
    inside_compound = tail.start() > 0 and stem[tail.start() - 1] in "-\u2010"
    if not head.group()[0].islower() or tail.group().isupper() or inside_compound:
        return 1, "-"
    compound = f"{tail.group()}-{head.group()}".lower()
    whole = f"{tail.group()}{head.group()}".lower()
    return 1, "-" if occurs(compound) and not occurs(whole) else ""


def join_lines(before: str, after: str, *, occurs: Callable[[str], bool]) -> str:
    """Two lines of one paragraph as one; see `joint`."""
    cut, between = joint(before, after, occurs=occurs)
    return f"{before[: len(before) - cut]}{between}{after}"


def mend(text: str, *, occurs: Callable[[str], bool]) -> str:
    """Words that are cut in the middle of a text made whole."""
    while HYPHEN_MARK in text:
        before, _, after = text.partition(HYPHEN_MARK)
        text = join_lines(before + HYPHEN_MARK, after.lstrip(" "), occurs=occurs)
    return text


class Vocabulary:
    """The words of a document, gathered when first asked for: most documents never cut a word."""

    def __init__(self, pages: Sequence[Sequence[Line]]) -> None:
        self._pages = pages
        self._words: set[str] | None = None

    def occurs(self, word: str) -> bool:
        """Whether the word, in lower case, stands unbroken in the document."""
        if self._words is None:
            text = " ".join([line.text for lines in self._pages for line in lines]).lower()
            self._words = set(_UNBROKEN.findall(text))
        return word in self._words
