"""Where words that a model quotes stand in a text, if they stand there at all.

Takes: a quote and the text it is said to come from. Returns: the span in the text as it is, or None. Method: both are
brought to one form (white space one blank; quotation marks, apostrophes and dashes of one kind; accents composed; what
`fence.harmless` changes), each character of it knowing where it came from, and then compared letter by letter; case
counts. A quote begins and ends at borders of words and figures, so that "5 m" is not found in "1.5 m".
Cost: linear in the text.
What can go wrong: a quote with words left out ("opened … in May") is not found: it is not what the text says.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from cognicraft.answer.fence import harmless

_DOUBLE = '"“”„‟«»″＂'
_SINGLE = "'‘’‚‛‹›′`´"
_DASHES = "-‐‑‒–—−"
_SAME = str.maketrans({**dict.fromkeys(_DOUBLE, '"'), **dict.fromkeys(_SINGLE, "'"), **dict.fromkeys(_DASHES, "-")})
_DROPPED = "\u00ad\u200b\u2060\ufeff"
_AROUND = " \"'"
_ELLIPSIS = re.compile(r"^(?:\.{3}|…)|(?:\.{3}|…)$")
_UNSPACED = re.compile("[\u0e00-\u0eff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


@dataclass(frozen=True, slots=True)
class _Plain:
    """A text in one form; `at[i]` and `ends[i]` are the span in the original that character `i` stands for."""

    text: str
    at: list[int]
    ends: list[int]


def find_quote(
    quote: str, text: str, *, start: int = 0, end: int | None = None, skip: str = ""
) -> tuple[int, int] | None:
    """Half-open span in `text` that reads like the quote; the first one between `start` and `end`.

    skip: a pattern of what is no part of the text's words (citations in an answer).
    """
    stop = len(text) if end is None else end
    plain = _plain(text, start, stop, skip)
    for wanted in _forms(quote, skip):
        position = plain.text.find(wanted)
        while position >= 0:
            last = position + len(wanted)
            if _whole(plain.text, position, last):
                return plain.at[position], plain.ends[last - 1]
            position = plain.text.find(wanted, position + 1)
    return None


def _forms(quote: str, skip: str) -> list[str]:
    """The quote as it is, and without the quotation marks or the ellipsis that a model puts around it."""
    bare = _plain(quote, 0, len(quote), skip).text.strip()
    without = _ELLIPSIS.sub("", bare.strip(_AROUND)).strip(_AROUND)
    return [form for form in dict.fromkeys((bare, without)) if any(character.isalnum() for character in form)]


def _plain(text: str, start: int, end: int, skip: str) -> _Plain:
    shown = harmless(text)  # positions stay the same
    left_out = {at for found in re.finditer(skip, text) for at in range(*found.span())} if skip else set()
    characters: list[str] = []
    at: list[int] = []
    ends: list[int] = []
    for position in range(start, end):
        character = shown[position]
        if position in left_out or character in _DROPPED:
            continue
        if character.isspace():
            if characters and characters[-1] == " ":
                continue
            character = " "
        elif unicodedata.combining(character) and characters:
            composed = unicodedata.normalize("NFC", characters[-1] + character)
            if len(composed) == 1:
                characters[-1] = composed
                ends[-1] = position + 1
                continue
        characters.append(character.translate(_SAME))
        at.append(position)
        ends.append(position + 1)
    return _Plain("".join(characters), at, ends)


def _whole(text: str, start: int, end: int) -> bool:
    """Whether the span cuts no word and no figure in two."""
    return not (_joined(text, start) or _joined(text, end))


def _joined(text: str, border: int) -> bool:
    if not 0 < border < len(text):
        return False
    before, after = text[border - 1], text[border]
    if before.isdigit() and after in ".," and text[border + 1 : border + 2].isdigit():
        return True
    if after.isdigit() and before in ".," and text[max(border - 2, 0) : border - 1].isdigit():
        return True
    if not (before.isalnum() and after.isalnum()):
        return False
    return not (_UNSPACED.match(before) or _UNSPACED.match(after))
