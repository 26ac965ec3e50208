"""The words of names and of questions, cut alike so that they can be compared; and the labels of all documents.

Takes: a path, a title, a question. Returns: `Word`s, each with the terms that it may be found by. Of the records of
    all documents: `Labels`.
Method: file names are cut at underscores, at the border of lower and upper case, and between a word and a year. `10-K`
    and `10Q` are one term each; a number counts with the word before it (chapter 3), a long one by itself; all else is
    analysed as the lexical arm does. A document has labels: its file name, its title, its folders, its texts of
    metadata. They are kept in columns of numbers and plain lists, so that a file of them is soon read.
Cost: one pass of a regular expression; a text that many documents share is cut once.
What can go wrong: a name run together (annualreport.pdf) is one word.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from cognicraft.records import DocumentRecord
from cognicraft.search.periods import Dated, Period, periods, without

Terms = Callable[[str], Sequence[str]]

METADATA_WEIGHT = 0.7
"""How far a text of metadata is trusted to name its document, where a file name or a title is trusted by 1."""

_FOLDERS = 3
_FOLDER_WEIGHT = 0.9
_SHORT_CHUNKS = 3
_LONGEST_LABEL_WORDS = 24
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
            own = list(terms(surface))
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
    path = source.replace("\\", "/").partition("#")[0].partition("?")[0]
    parts = [part for part in path.split("/") if part not in ("", ".")] or [""]
    folders = [part for part in parts[:-1] if part != ".."][-_FOLDERS:]
    return _EXTENSION.sub("", parts[-1]) or parts[-1], folders


@dataclass(frozen=True, slots=True)
class Labels:
    """The names of all documents in columns; a document, a label, a reading and a date go by their numbers.

    ids, sources, dated: of each document its id, where it comes from, the number of its date. short: whether documents
    are a passage or two. document, reading, weight: of each label its document, its words, how far it can be trusted to
    name it. readings: words, each with its terms. postings: term -> labels that hold it. frequency: term -> in how many
    documents' names. dates: where periods stand. by_period: period, or the year or quarter of one -> dates.
    """

    ids: list[str]
    sources: list[str]
    dated: list[int]
    short: bool
    document: list[int]
    reading: list[int]
    weight: list[float]
    readings: list[tuple[tuple[str, ...], ...]]
    postings: Mapping[str, list[int]]
    frequency: Mapping[str, int]
    dates: list[Dated]
    by_period: Mapping[Period, list[int]]


def read_labels(documents: Sequence[DocumentRecord], *, terms: Terms) -> tuple[Labels, dict[str, list[str]]]:
    """The labels of the documents; and word of file or folder names -> ids of the documents that bear it."""
    reader = _Reader(terms)
    document: list[int] = []
    reading: list[int] = []
    weight: list[float] = []
    dated: list[int] = []
    postings: dict[str, list[int]] = defaultdict(list)
    frequency: dict[str, int] = defaultdict(int)
    groups: dict[str, list[str]] = defaultdict(list)
    for number, record in enumerate(documents):
        stem, folders = path_names(record.source)
        paths = [reader.read(stem), *map(reader.read, folders)]
        title = reader.read(record.title)
        texts = [reader.read(value) for value in record.metadata.values() if isinstance(value, str)]
        held: set[str] = set()
        weighed = [(paths[0], 1.0), (title, 1.0), *((one, _FOLDER_WEIGHT) for one in paths[1:])]
        for one, trusted in [*weighed, *((one, METADATA_WEIGHT) for one in texts)]:
            if one.found_by:
                for term in one.found_by:
                    postings[term].append(len(document))
                held.update(one.found_by)
                document.append(number)
                reading.append(one.number)
                weight.append(trusted)
        for term in held:
            frequency[term] += 1
        # Once, though a folder and the files in it are often called alike.
        for code in dict.fromkeys(code for one in paths for code in one.found_by):
            if "#" not in code:
                groups[code].append(record.id)
        dated.append(reader.date(paths[0], title, paths[1:], texts))
    lengths = [record.chunk_count for record in documents if record.chunk_count]
    return Labels(
        ids=[record.id for record in documents],
        sources=[record.source for record in documents],
        dated=dated,
        short=bool(lengths) and median(lengths) <= _SHORT_CHUNKS,  # whatever one long manual among them has
        document=document,
        reading=reading,
        weight=weight,
        readings=list(reader.readings),
        postings=dict(postings),
        frequency=dict(frequency),
        dates=reader.dates,
        by_period=dict(reader.by_period),
    ), groups


@dataclass(frozen=True, slots=True)
class _Read:
    """A name that was read: the number of its words, the terms that it is found by, its periods."""

    number: int
    found_by: tuple[str, ...]
    periods: frozenset[Period]


class _Reader:
    """Reads each text once: folders and titles come again and again, and so do dates."""

    def __init__(self, terms: Terms) -> None:
        self.readings: dict[tuple[tuple[str, ...], ...], int] = {}
        self.dates: list[Dated] = []
        self.by_period: dict[Period, list[int]] = defaultdict(list)
        self._terms = terms
        self._read: dict[str, _Read] = {}
        self._numbers: dict[tuple[frozenset[Period], ...], int] = {}

    def read(self, text: str) -> _Read:
        found = self._read.get(text)
        if found is None:
            mentions = periods(text)
            words = words_of(without(text, mentions), terms=self._terms)[:_LONGEST_LABEL_WORDS]
            by_terms = tuple(dict.fromkeys(word.terms for word in words))
            found = self._read[text] = _Read(
                self.readings.setdefault(by_terms, len(self.readings)),
                tuple(dict.fromkeys(term for terms in by_terms for term in terms)),
                frozenset(mention.period for mention in mentions),
            )
        return found

    def date(self, stem: _Read, title: _Read, folders: Sequence[_Read], texts: Sequence[_Read]) -> int:
        """The number of the date that these names together give a document."""
        levels = (stem.periods, title.periods, _union(folders), _union(texts))
        number = self._numbers.get(levels)
        if number is None:
            number = self._numbers[levels] = len(self.dates)
            self.dates.append(Dated(levels))
            whole = frozenset[Period]().union(*levels)
            within = {part for one in whole for part in (one, Period(one.year), Period(quarter=one.quarter))}
            for period in within - {Period()}:
                self.by_period[period].append(number)
        return number


def _union(names: Sequence[_Read]) -> frozenset[Period]:
    return frozenset[Period]().union(*(name.periods for name in names if name.periods))
