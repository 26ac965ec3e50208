"""The words of names and of questions, cut alike so that they can be compared.

Takes: a path, a title, a question. Returns: `Word`s, each with the terms that it may be found by.
Method: file names are cut at underscores, at the border of lower and upper case, and between a word and a year. `10-K`
    and `10Q` are one term each; a number counts with the word before it (chapter 3), a long one by itself; all else is
    analysed as the lexical arm does.
Cost: one pass of a regular expression; words are analysed once a process.
What can go wrong: a name run together (annualreport.pdf) is one word.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePosixPath

Terms = Callable[[str], list[str]]

_FOLDERS = 3
# A hyphen joins what is short, 10-K and R-2, and parts words.
_SEPARATORS = re.compile(r"[\s_+~,;:()\[\]{}|]+|%20|(?<=[^\W\d_]{2})-|-(?=[^\W\d_]{3})")
_BORDER = re.compile(r"(?<=[a-z])(?=[A-Z][a-z])|(?<=[a-z]{2})(?=\d)|(?<=\d{4})(?=[^\W\d_]{2})")
_EXTENSION = re.compile(r"(?:\.[A-Za-z][A-Za-z0-9]{0,5}){1,2}$")
_WORD = re.compile(r"[^\W_]+(?:[-.&'’][^\W_]+)*")
_CODE = re.compile(r"(?=.*\d)(?=.*[^\W\d_])[^\W_]+(?:-[^\W_]+)*\Z")
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]")


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a name or a question and the terms that it may be found by."""

    text: str
    terms: tuple[str, ...]


def words_of(text: str, *, terms: Terms) -> list[Word]:
    """The words of a text that are found by something, in order; stop words have no terms."""
    found: list[Word] = []
    before = ""
    for match in _WORD.finditer(_BORDER.sub(" ", _SEPARATORS.sub(" ", unicodedata.normalize("NFKC", text)))):
        surface = match[0]
        own: list[str]
        if surface.isdecimal():
            own = [f"{before}#{int(surface)}"] if before else []
            own += [surface] if len(surface) >= 4 else []
        elif _CODE.match(surface):
            own = [re.sub(r"(?<=[a-z])s$", "", surface.casefold().replace("-", ""))]
        else:
            own = terms(surface)
            if _UNSPACED.search(surface):
                found += [Word(surface, (term,)) for term in own]
                own = []
        if own:
            found.append(Word(surface, tuple(own)))
        before = own[-1] if own and not surface.isdecimal() else ""
    return found


def bare(word: str) -> str:
    """Without a possessive ending."""
    return re.sub(r"['’]s?$", "", word)


def path_names(source: str) -> tuple[str, list[str]]:
    """The file name without its extension, and the last few folders above it."""
    path = PurePosixPath(source.replace("\\", "/").partition("#")[0].partition("?")[0])
    folders = [part for part in path.parts[:-1] if part not in ("/", ".", "..")][-_FOLDERS:]
    return _EXTENSION.sub("", path.name) or path.name, folders
