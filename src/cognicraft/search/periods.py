"""The periods that a text names: years, quarters, halves, months, days.

Takes: a question or a name (file, title). Returns: the periods with the spans of the words that say them.
Method: patterns for the ways to write a period in figures, and tables of ordinals, quarter words and months in several
    languages. A longer reading wins over the year inside it. `agreement` compares a period asked for with one held.
Cost: a few regular expressions over the text.
What can go wrong: 3/4/2023 may be in March or in April, and is read as 2023 only. A fiscal quarter is what the names
    call it: which months it spans is not guessed. A two-digit year counts only after FY, Q3 or an apostrophe.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache

_ORDINALS = (
    "first|1st|1\\.|erste[nrs]?|premier|première|1er|1re|primer|primero|primo|primeiro|eerste|första|første",
    "second|2nd|2\\.|zweite[nrs]?|deuxième|seconde?|2e|2ème|segundo|secondo|tweede|andra|andet|andre",
    "third|3rd|3\\.|dritte[nrs]?|troisième|3e|3ème|tercer|tercero|terzo|terceiro|derde|tredje",
    "fourth|4th|4\\.|vierte[nrs]?|quatrième|4e|4ème|cuarto|quarto|vierde|fjärde|fjerde",
)
_ORDINAL = "|".join(_ORDINALS)
_NUMBER_OF = [re.compile(f"(?:{words})\\Z", re.IGNORECASE) for words in _ORDINALS]
_MONTHS = {
    name: month
    for month, names in enumerate(
        (
            "january jan januar janvier enero gennaio janeiro januari",
            "february feb februar février fevrier febrero febbraio fevereiro februari",
            "march mar märz maerz mars marzo março maart",
            "april apr avril abril aprile",
            "may mai mayo maggio maio mei maj",
            "june jun juni juin junio giugno junho",
            "july jul juli juillet julio luglio julho",
            "august aug août aout agosto augustus augusti",
            "september sep sept septembre septiembre settembre setembro",
            "october oct oktober octobre octubre ottobre outubro okt",
            "november nov novembre noviembre novembro",
            "december dec dezember décembre decembre diciembre dicembre dezembro dez",
        ),
        start=1,
    )
    for name in names.split()
}
_MONTH = "|".join(sorted(_MONTHS, key=len, reverse=True))
_YEAR = r"(?<![\d$€£.,])(?P<year>(?:19|20)\d\d)(?!\d|[.,]\d|\s?%)"
_SHORT = r"['’]?(?P<short>\d\d)(?!\d)"
# What may stand between a quarter and its year: "of", "of fiscal year", "FY", "des Geschäftsjahres".
_OF = (
    r"(?:[\s,/-]*(?:(?:of|in|the|de|del|do|d['’]|des|dans|von|vom|im|van|fiscal|calendar|year|Jahres?|Geschäftsjahres?)\b"
    r"\s*|FY\s?){0,4})"
)
_FISCAL = r"(?:FY|fiscal(?: year)?|financial year|Geschäftsjahr|GJ|exercice|ejercicio|esercizio|exercício)"


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text, re.IGNORECASE)


# What most patterns cannot do without and most texts have little of: looked for first, so that few patterns are tried.
_NEEDS = {
    "year": re.compile(r"(?:19|20)\d\d"),
    "month": _pattern(rf"(?<![a-z])(?:{'|'.join(sorted({name[:3] for name in _MONTHS}))})"),
    "code": _pattern(r"[QTH][1-4]|[1-4][QT]"),
    "part": _pattern(r"quart|qtr|trimest|kvart|kwart|half|halb|semest"),
}


def _needing(needed: str, text: str) -> tuple[frozenset[str], str]:
    return frozenset(needed.split()), text


# Longer readings first: a span that one has taken is not read again.
_PATTERNS = (
    # days
    _needing("year month", rf"(?<![a-z])(?P<name>{_MONTH})\.?\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?,?\s+{_YEAR}"),
    _needing(
        "year month",
        rf"(?<!\d)(?P<day>\d{{1,2}})(?:st|nd|rd|th|\.|er)?\s+(?:de\s+|of\s+)?(?P<name>{_MONTH})\.?,?\s+(?:de\s+|del\s+)?{_YEAR}"
    ),
    _needing(
        "year",
        r"(?<!\d)(?P<year>(?:19|20)\d\d)(?P<mark>[-. /]?)(?P<month>0[1-9]|1[0-2])(?P=mark)"
        r"(?P<day>0[1-9]|[12]\d|3[01])(?!\d)"
    ),
    _needing("year", r"(?<!\d)(?P<one>\d{1,2})(?P<mark>[/.-])(?P<two>\d{1,2})(?P=mark)(?P<year>(?:19|20)\d\d)(?!\d)"),
    # quarters
    _needing("year code", rf"{_YEAR}[\s-]*[QT](?P<quarter>[1-4])(?!\d)"),
    _needing("code", rf"(?<![a-z\d])Q(?P<quarter>[1-4])(?:{_OF}{_YEAR}|\s?(?:FY\s?|['’]){_SHORT})"),
    _needing("code", rf"(?<![a-z\d])T(?P<quarter>[1-4]){_OF}{_YEAR}"),
    _needing("code", rf"(?<!\d)(?P<quarter>[1-4])[QT](?:{_OF}{_YEAR}|\s?['’]?{_SHORT})"),
    _needing(
        "year part",
        rf"{_YEAR}\s+(?P<ordinal>{_ORDINAL})[\s-]+(?:fiscal\s+)?(?:quarter|qtr|quartal|trimestre|kwartaal|kvartal)"
    ),
    _needing(
        "part",
        rf"(?<!\w)(?P<ordinal>{_ORDINAL})[\s-]+(?:fiscal\s+)?(?:quarter|qtr\.?|quartal|trimestre|kwartaal|kvartal)s?\b"
        rf"(?:{_OF}{_YEAR})?"
    ),
    _needing("code", r"(?<![a-z\d])Q(?P<quarter>[1-4])(?![a-z\d])|(?<![a-z\d])(?P<other>[1-4])Q(?![a-z\d])"),
    # halves
    _needing("year code", rf"{_YEAR}[\s-]*H(?P<half>[12])(?!\d)"),
    _needing("year code", rf"(?<![a-z\d])H(?P<half>[12])(?:{_OF}{_YEAR})"),
    _needing(
        "year part", rf"(?<!\w)(?P<ordinal>{_ORDINAL})[\s-]+(?P<halfword>half|halbjahr|semestre|semester){_OF}{_YEAR}"
    ),
    # months
    _needing("year month", rf"(?<![a-z])(?P<name>{_MONTH})\.?,?[\s-]+(?:of\s+|de\s+|del\s+)?{_YEAR}"),
    _needing("year month", rf"{_YEAR}[\s-]+(?P<name>{_MONTH})(?![a-z])"),
    # Not the 10 of a form called 10-K or 10Q.
    _needing("year", r"(?<!\d)(?P<year>(?:19|20)\d\d)[-. ]?(?P<month>0[1-9]|1[0-2])(?!\d|[a-z]|[-. ][a-z]\b)"),
    # years
    _needing(
        "year", r"(?<!\d)(?P<year>(?:19|20)\d\d)\s?(?:[-–—/]|to|bis|until|through|à|a)\s?(?P<last>(?:19|20)\d\d)(?!\d)"
    ),
    _needing("", rf"(?<![a-z]){_FISCAL}\s?(?:{_YEAR}|['’]?(?P<short>\d\d)(?!\d))"),
    _needing("year", _YEAR),
)  # fmt: skip
# Most names and many questions have neither: no pattern need be tried.
_MAY_NAME_ONE = _pattern(r"\d|quart|qtr|trimest|kvart|kwart|half|halb|semest")
_LONGEST_RANGE_YEARS = 10


@dataclass(frozen=True, slots=True, order=True)
class Period:
    """A stretch of time; 0 where a part is not said. A quarter without a year is that quarter of any year."""

    year: int = 0
    half: int = 0
    quarter: int = 0
    month: int = 0
    day: int = 0

    def __str__(self) -> str:
        if self.month:
            day = f"-{self.day:02}" if self.day else ""
            return f"{self.year}-{self.month:02}{day}"
        part = f"Q{self.quarter}" if self.quarter else f"H{self.half}" if self.half else ""
        return " ".join(one for one in (str(self.year) if self.year else "", part) if one)

    @property
    def is_year(self) -> bool:
        return not (self.half or self.quarter or self.month)

    @property
    def last_month(self) -> tuple[int, int, int]:
        """Year, month and day in which it ends, as far as its own words tell: to put periods in order."""
        month = self.month or 3 * self.quarter or 6 * self.half or 12
        return (self.year, month, self.day or 31)


@dataclass(frozen=True, slots=True)
class Mention:
    """A period and where the text says it."""

    period: Period
    start: int
    end: int


def periods(text: str) -> list[Mention]:
    """The periods of a text in its order; a quarter beside the one year of the text is of that year."""
    if not _MAY_NAME_ONE.search(text):
        return []
    text = text.replace("_", " ")
    found: list[Mention] = []
    taken = bytearray(len(text))
    for pattern in _tried(frozenset(need for need, sign in _NEEDS.items() if sign.search(text))):
        for match in pattern.finditer(text):
            if any(taken[match.start() : match.end()]):
                continue
            read = list(_read(match))
            if read:
                taken[match.start() : match.end()] = b"\1" * (match.end() - match.start())
                found += [Mention(period, *match.span()) for period in read]
    found.sort(key=lambda mention: (mention.start, mention.period))
    years = {mention.period.year for mention in found if mention.period.year}
    if len(years) == 1:
        (year,) = years
        found = [
            mention if mention.period.year else replace(mention, period=replace(mention.period, year=year))
            for mention in found
        ]
    return found


@cache
def _tried(held: frozenset[str]) -> tuple[re.Pattern[str], ...]:
    # Compiled when first needed: all of them take longer than reading the names of a small workspace.
    return tuple(_pattern(text) for needed, text in _PATTERNS if needed <= held)


def without(text: str, mentions: Iterable[Mention]) -> str:
    """The text with blanks where the mentions stand."""
    characters = list(text)
    for mention in mentions:
        characters[mention.start : mention.end] = " " * (mention.end - mention.start)
    return "".join(characters)


def _read(match: re.Match[str]) -> Iterator[Period]:
    said = {name: text for name, text in match.groupdict().items() if text}
    year = int(said["year"]) if "year" in said else 2000 + int(said["short"]) if "short" in said else 0
    if "last" in said:
        last = int(said["last"])
        if year <= last <= year + _LONGEST_RANGE_YEARS:
            yield from (Period(one) for one in range(year, last + 1))
    elif "one" in said:
        one, two = int(said["one"]), int(said["two"])
        month, day = (two, one) if one > 12 else (one, two)
        sure = (one > 12) != (two > 12)
        yield Period(year, month=month, day=day) if sure and month <= 12 and day <= 31 else Period(year)
    elif "name" in said or "month" in said:
        # A pattern takes letters for equal (ı and i) that are none of a month's name here.
        month = int(said["month"]) if "month" in said else _MONTHS.get(said["name"].casefold(), 0)
        day = int(said.get("day", 0))
        yield Period(year, month=month, day=day if month and day <= 31 else 0)
    elif "half" in said or "halfword" in said:
        half = int(said["half"]) if "half" in said else _number(said["ordinal"])
        if half <= 2:
            yield Period(year, half=half)
    elif "quarter" in said or "other" in said:
        yield Period(year, quarter=int(said.get("quarter") or said["other"]))
    elif "ordinal" in said:
        yield Period(year, quarter=_number(said["ordinal"]))
    elif year:
        yield Period(year)


def _number(ordinal: str) -> int:
    return next(number for number, pattern in enumerate(_NUMBER_OF, start=1) if pattern.match(ordinal))


def agreement(asked: Period, held: Period) -> float:
    """From 0 (another time) to 1 (the same). Less for a held period that is part of what is asked, or holds it."""
    if asked == held:
        return 1.0
    if asked.year and held.year and asked.year != held.year:
        return 0.0
    if asked.is_year:
        return 0.6  # a quarter's report, asked for the year
    if held.is_year:
        return 0.5 if held.year and asked.year else 0.0  # the year's report, asked for a quarter
    if asked.quarter or asked.half:
        if (asked.quarter, asked.half) == (held.quarter, held.half):
            return 1.0
        # Months and days lie in the quarter of the calendar, where the name says no other.
        own = (held.month + 2) // 3 if asked.quarter else (held.month + 5) // 6
        return 0.5 if held.month and own == (asked.quarter or asked.half) else 0.0
    if asked.month and held.month:
        same = asked.month == held.month
        return 0.7 if same and not (asked.day and held.day) else 0.0
    return 0.0


@dataclass(frozen=True, slots=True)
class Dated:
    """Periods by where they stand: file name, title, folders, metadata; what comes first decides."""

    levels: tuple[frozenset[Period], ...]

    def agrees(self, asked: Period) -> float:
        # The name that a person gave decides. Only a day or a month is looked up further down.
        for depth, level in enumerate(self.levels):
            fine = [one for one in level if bool(one.month) == bool(asked.month)]
            own = fine if asked.month else list(level)
            found = max((agreement(asked, one) for one in own), default=0.0)
            if found or (own and not asked.month):
                return found * (1.0 - 0.1 * depth)
        return 0.0

    @property
    def newest(self) -> tuple[int, int, int]:
        for level in self.levels:
            ends = [one.last_month for one in level if one.year]
            if ends:
                return max(ends)
        return (0, 0, 0)
