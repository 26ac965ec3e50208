"""Files that a model names, to files that exist; and the names that it is shown.

Takes: names or patterns as a model wrote them, and the names of the workspace's files.
Returns: names out of the latter, nothing else.
Method: the first that holds of: the same path or file name; a pattern with * or ?; the same words; all words of the
    hint in the path; nearly the same spelling with the same numbers (a filing of 2022 is not one of 2021).
Cost: linear in the file names.
What can go wrong: a hint that nothing fits, or that fits too many files to prefer any: both are given back by name.
"""

from __future__ import annotations

import difflib
import fnmatch
import heapq
import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

_SHOWN = 60
_SHOWN_CHARACTERS = 160
_SPELLING = 0.8
_LONGEST_HINT = 300
_ENDING = re.compile(r"[A-Za-z]\w{0,5}")
_WORD = re.compile(r"[^\W\d_]+|\d+")


@dataclass(frozen=True, slots=True)
class ExistingFiles:
    """names: files that were meant, in the order of the hints. unknown, too_many: hints that fit none, or too many."""

    names: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    too_many: tuple[str, ...] = ()


def words_of(text: str) -> list[str]:
    """Words and numbers in small letters: `ACME_2021Q2.pdf` is acme, 2021, q, 2, pdf."""
    return _WORD.findall(text.casefold())


class FileNames:
    """The names of a workspace's files, to be looked through."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = list(dict.fromkeys(names))

    @cached_property
    def _known(self) -> list[_Name]:
        return [_Name(name) for name in self.names]

    def best_fitting(self, question: str, *, first: Sequence[str] = (), room_characters: int = 6000) -> list[str]:
        """At most 60 names, before others those that share rare words with the question; `first` lead where they exist.

        room_characters: for all of them together.
        """
        asked = set(words_of(question))
        shared = [asked.intersection(words_of(name)) for name in self.names]
        spread = Counter(word for found in shared for word in found)
        worth = {word: math.log(1.0 + len(self.names) / count) for word, count in spread.items()}
        lead = {name: len(first) - place for place, name in enumerate(first)}

        def fit(place: int) -> tuple[int, float, int]:
            return lead.get(self.names[place], 0), math.fsum(worth[word] for word in shared[place]), -place

        shown: list[str] = []
        for place in heapq.nlargest(_SHOWN, range(len(self.names)), key=fit):
            name = " ".join(self.names[place].split())[:_SHOWN_CHARACTERS]
            room_characters -= len(name) + 1
            if room_characters < 0:
                break
            shown.append(name)
        return shown

    def existing(self, hints: Sequence[str], *, most: int = 50) -> ExistingFiles:
        """The files that the hints mean. most: a hint that fits more files than this prefers none."""
        found: dict[str, None] = {}
        unknown, too_many = [], []
        for hint in dict.fromkeys(hints):
            if not words_of(_split(hint)[1]):
                continue  # `*`, `*.pdf` or nothing: it prefers no file
            fitting = _fitting(hint, self._known) if len(hint) <= _LONGEST_HINT else []
            if not fitting:
                unknown.append(hint)
            elif len(fitting) > most:
                too_many.append(hint)
            else:
                found.update(dict.fromkeys(fitting))
        return ExistingFiles(tuple(found)[:most], tuple(unknown), tuple(too_many))


class _Name:
    """A file name with what it is compared by."""

    __slots__ = ("base", "folded", "name", "stem_words", "words")

    def __init__(self, name: str) -> None:
        self.name = name
        self.folded = name.casefold()
        folder, stem, ending = _split(self.folded)
        self.base = stem + ending
        self.stem_words = words_of(stem)
        self.words = {*words_of(folder), *self.stem_words}


def _split(path: str) -> tuple[str, str, str]:
    """Folder, name without its ending, ending. "v2.1 final" has no ending: one begins with a letter and is short."""
    folder, _, base = path.rpartition("/")
    stem, dot, ending = base.rpartition(".")
    if stem and _ENDING.fullmatch(ending):
        return folder, stem, dot + ending
    return folder, base, ""


def _fitting(hint: str, known: Sequence[_Name]) -> list[str]:
    bare = hint.strip().strip("\"'`")  # models quote names; a name may hold a quote, too
    for folded in dict.fromkeys((hint.casefold(), bare.casefold())):
        same = [each.name for each in known if folded in (each.folded, each.base)]
        if same:
            return same
    folded = bare.casefold()
    if "*" in folded or "?" in folded:
        matches = re.compile(fnmatch.translate(folded.replace("[", "[[]"))).match
        return [each.name for each in known if matches(each.folded) or matches(each.base)]
    folder, stem, _ = _split(folded)
    meant = words_of(stem)
    same = [each.name for each in known if each.stem_words == meant]
    if same:
        return same
    wanted = {*words_of(folder), *meant}
    holding = [each.name for each in known if each.words >= wanted]
    if holding:
        return holding
    numbers = _numbers(meant)
    alike = {" ".join(each.stem_words): each for each in known if _numbers(each.stem_words) == numbers}
    near = difflib.get_close_matches(" ".join(meant), alike, n=1, cutoff=_SPELLING)
    return [each.name for each in known if near and each.stem_words == alike[near[0]].stem_words]


def _numbers(words: Sequence[str]) -> list[str]:
    return sorted(word for word in words if word.isdecimal())
