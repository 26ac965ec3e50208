"""Cut a line into cells, and tell values from words.

Takes: a line of words with their places. Returns: cells, left to right; a currency sign, a bracket or a per cent sign
that stands apart is joined to its number. Method: a gap wider than any word space ends a cell; so does a narrower one
between two numbers. Cost: one look per word. What can go wrong: columns set closer than words are.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import NamedTuple

from cognicraft.ingest.pdf_source import Line, Word

WIDE_GAP = 0.6
"""In line heights. A word space is about .25, and up to .5 where lines are stretched to the margin."""
NUMBER_GAP = 0.35
LONGEST_VALUE = 8
"""In words, signs and footnote marks included."""

_NUMBER = re.compile(
    r"[(\[]?[-+–—−]?(?:[A-Z]{0,3}[$€£¥])?[(]?[-–−]?(?:\d[\d.,]*\d|\d|[.,]\d+)[)\]]?(?:%|x|bps|pts?|ppts?)?[)\]]?[*†‡]*"
    r"|\d[\d.,]*%?[-–—]\d[\d.,]*%?"
)
_DASH = re.compile(r"[-–—−]+|[$€£¥][-–—−]+|N/?A|n/a|NM|nm|N\.M\.|\*+|\(?[-–—]\)?%?")
_PREFIX = re.compile(r"[A-Z]{0,3}[$€£¥][(]?|[(]")
_SUFFIX = re.compile(r"[)\]]|%|[)]%|%[)]|pts?|ppts?|bps|\(\d\)|\([a-z]\)|[*†‡]+")
_JOINERS = frozenset("–-—−/")
_YEAR = re.compile(r"(?:19|20)\d\d(?:\s*\(\d\))?")
_MEASURE = re.compile(r"\d[\d.,]*\s(?:years?|days?|hours?|times|basis points)|\d+\.\d+\s(?:months?|weeks?)")
_LEADER = re.compile(r"[.…·_]{3,}")


class Cell(NamedTuple):
    """A piece of a line. `value`: numbers, dashes and their signs only. `core_left` leaves out a leading sign."""

    text: str
    left: float
    right: float
    value: bool
    core_left: float

    @property
    def digits(self) -> bool:
        return self.value and any(character.isdigit() for character in self.text)

    @property
    def center(self) -> float:
        return (self.left + self.right) / 2

    @property
    def year(self) -> bool:
        return _YEAR.fullmatch(self.text) is not None


def split_cells(line: Line) -> list[Cell]:
    """The cells of a line; dot leaders between a label and its number are left out."""
    height = line.height or 1.0
    if line.gap <= NUMBER_GAP * height and "..." not in line.text:
        return [_cell(line.words)]
    groups: list[list[Word]] = []
    sign_before = False
    for word in line.words:
        if _LEADER.fullmatch(word.text):
            sign_before = False
            groups.append([])
            continue
        if not groups or not groups[-1]:
            groups[-1:] = [[word]]
        elif sign_before and (_is_value(word.text) or _PREFIX.fullmatch(word.text)):
            groups[-1].append(word)
        else:
            gap = word.left - groups[-1][-1].right
            last = groups[-1][-1].text
            apart = gap > WIDE_GAP * height or (
                gap > NUMBER_GAP * height
                and (_is_value(last) or _SUFFIX.fullmatch(last) is not None)
                and (_is_value(word.text) or _PREFIX.fullmatch(word.text) is not None)
                and _SUFFIX.fullmatch(word.text) is None
            )
            suffix = _SUFFIX.fullmatch(word.text) is not None and gap < 1.5 * height and _is_value(last)
            if apart and not suffix:
                groups.append([word])
            else:
                groups[-1].append(word)
        sign_before = all(_PREFIX.fullmatch(part.text) for part in groups[-1])
    return [_cell(group) for group in groups if group]


def _cell(words: Sequence[Word]) -> Cell:
    texts = [word.text for word in words]
    if len(words) > LONGEST_VALUE:
        return Cell(" ".join(texts), words[0].left, words[-1].right, False, words[0].left)
    value = all(
        _is_value(text) or _PREFIX.fullmatch(text) or _SUFFIX.fullmatch(text) or text in _JOINERS for text in texts
    )
    value = (value and any(_is_value(text) for text in texts)) or _MEASURE.fullmatch(" ".join(texts)) is not None
    core = next((word for word in words if not _PREFIX.fullmatch(word.text)), words[0])
    return Cell(_joined(texts) if value else " ".join(texts), words[0].left, words[-1].right, value, core.left)


def _joined(texts: list[str]) -> str:
    """Signs close up to their number: "$", "(", "10", ")" is "$(10)"."""
    out = texts[0]
    for before, text in itertools.pairwise(texts):
        close = _PREFIX.fullmatch(before) or text in (")", "]", "%", ")%", "%)")
        out += text if close else f" {text}"
    return out


def _is_value(text: str) -> bool:
    return _NUMBER.fullmatch(text) is not None or _DASH.fullmatch(text) is not None
