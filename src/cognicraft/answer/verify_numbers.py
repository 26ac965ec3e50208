"""Quantities in a text, and whether one text bears out the quantities of another.

Takes: a text. Returns: `Quantity`s with value, kind, unit, precision and span. Method: digits with separators of
thousands and decimals (`1,234.5`, `1.234,5`), words (`three`, `twenty-one`, `two hundred`), scales (`1.2 million`,
`$3bn`), percent, currencies, years, quarters, months with days, units of a closed list brought to one unit of their
dimension. Two quantities agree where kind and unit do not contradict each other and the one of the evidence, rounded
as the claim writes it, is the claim's.
Cost: regular expressions. What can go wrong: `3,125` is three thousand, never three and an eighth; "one" and ordinals
in words are ordinary words; words are read in English only.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

_SMALL = {
    word: value
    for value, word in enumerate(
        [
            "zero",
            "one",
            "two",
            "three",
            "four",
            "five",
            "six",
            "seven",
            "eight",
            "nine",
            "ten",
            "eleven",
            "twelve",
            "thirteen",
            "fourteen",
            "fifteen",
            "sixteen",
            "seventeen",
            "eighteen",
            "nineteen",
        ]
    )
}
_TENS = {
    word: value * 10
    for value, word in enumerate(
        ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"], start=2
    )
}
_SCALES = {
    "hundred": 1e2, "thousand": 1e3, "k": 1e3, "million": 1e6, "mn": 1e6, "m": 1e6, "billion": 1e9, "bn": 1e9,
    "b": 1e9, "trillion": 1e12, "tn": 1e12, "dozen": 12.0,
}  # fmt: skip
_CURRENCIES = {
    "$": "dollar", "us$": "dollar", "usd": "dollar", "dollar": "dollar", "dollars": "dollar", "€": "euro",
    "eur": "euro", "euro": "euro", "euros": "euro", "£": "pound", "gbp": "pound", "pounds": "pound", "¥": "yen",
    "yen": "yen", "jpy": "yen", "rupees": "rupee", "₹": "rupee", "francs": "franc", "chf": "franc", "yuan": "yuan",
}  # fmt: skip
_PERCENT = {"%": "percent", "percent": "percent", "percentage": "percent", "pct": "percent"}


def _unit_table() -> dict[str, tuple[str, float]]:
    listed = {
        "length": "mm millimetre millimeter:0.001 cm centimetre centimeter:0.01 m metre meter:1 km kilometre "
        "kilometer:1000 mile mi:1609.344 foot feet ft:0.3048 inch inches:0.0254 yard:0.9144",
        "mass": "µg mcg microgram:0.000001 mg milligram:0.001 g gram:1 kg kilogram:1000 tonne ton:1000000 lb:453.592",
        "volume": "ml millilitre milliliter:0.001 l litre liter:1 gallon:3.785",
        "time": "ms millisecond:0.001 second sec:1 minute min:60 hour hr:3600 day:86400 week:604800 month:2629800 "
        "year yr:31557600 decade:315576000 century centuries:3155760000",
        "data": "byte:1 kb kilobyte:1e3 mb megabyte:1e6 gb gigabyte:1e9 tb terabyte:1e12",
        "power": "w watt:1 kw kilowatt:1e3 mw megawatt:1e6 gw gigawatt:1e9",
        "energy": "kwh:1 mwh:1e3 gwh:1e6",
        "area": "hectare ha:10000 acre:4046.86",
        "celsius": "°c celsius:1",
        "fahrenheit": "°f fahrenheit:1",
    }
    table: dict[str, tuple[str, float]] = {}
    for dimension, units in listed.items():
        waiting: list[str] = []
        for entry in units.split():
            name, _, factor = entry.partition(":")
            waiting.append(name)
            if factor:
                for one in waiting:
                    table[one] = (dimension, float(factor))
                    if len(one) > 2:
                        table[one + "s"] = (dimension, float(factor))
                waiting = []
    return table


_UNITS = _unit_table()
_MONTHS = {
    name: number
    for number, names in enumerate(
        [
            "january/jan",
            "february/feb",
            "march/mar",
            "april/apr",
            "may",
            "june/jun",
            "july/jul",
            "august/aug",
            "september/sep/sept",
            "october/oct",
            "november/nov",
            "december/dec",
        ],
        start=1,
    )
    for name in names.split("/")
}
_WORDS = "|".join([*_SMALL, *_TENS])
_NUMBER_WORDS = rf"(?:{_WORDS})(?:[\s-]+(?:and\s+)?(?:{_WORDS}|hundred|thousand)\b)*"
_QUANTITY = re.compile(
    r"(?P<currency>us\$|[$€£¥₹])?\s?"
    r"(?P<sign>(?<![\w)])[-\u2212])?"
    r"(?P<digits>(?<![\w./])(?<![A-Za-z]-)\d+(?:[.,·]\d+)*(?!/\d)(?![.,·]?\d)|(?<=[qQ])[1-4](?!\w))"
    r"(?P<ordinal>st\b|nd\b|rd\b|th\b)?"
    rf"|\b(?P<words>{_NUMBER_WORDS})\b",
    re.IGNORECASE,
)
_AFTER = re.compile(r"[\s-]*(?P<word>%|°[cf]\b|[^\W\d_]+)", re.IGNORECASE)
_QUARTER_WORD = re.compile(r"\b(first|second|third|fourth)[\s-]quarter\b", re.IGNORECASE)
_HALF_WORD = re.compile(r"\b(first|second)[\s-]half\b", re.IGNORECASE)
_ISO = re.compile(r"\b(1\d{3}|20\d\d)-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])\b")
_MONTH_NAMES = "|".join(_MONTHS)
_MONTH = re.compile(
    rf"\b({_MONTH_NAMES})\b\.?(?=\s+\d)|(?<=\d\s)({_MONTH_NAMES})\b"
    rf"|\b(?:in|since|until|by|of|on|early|late|mid)[\s-]({_MONTH_NAMES})\b",
    re.IGNORECASE,
)
_PARTED = re.compile(r"(?<![\d.])(?:(?P<thousands>\d{1,3}), (?P<hundreds>\d{3})(?!\d)|(?P<whole>\d+)\. (?P<part>\d+))")
_ABOUT = re.compile(
    r"\b(?:about|around|nearly|almost|roughly|approximately|some|over|more than|under|less than|up to|at least)\s*"
    r"(?:us\$|[$€£¥₹])?\s?\Z",
    re.IGNORECASE,
)
_LOOSE = 0.06


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number with what it measures: `text[start:end]`.

    kind: plain, percent, money, measure, year, month or quarter. unit: currency or dimension, else "".
    value: with scale, in the first unit of its dimension. step: what the last digit written is worth.
    loose: introduced by a word such as "about".
    """

    value: float
    kind: str
    unit: str
    step: float
    start: int
    end: int
    text: str
    loose: bool = False
    noun: str = ""


def quantities(text: str, *, both_readings: bool = False) -> tuple[Quantity, ...]:
    """In text order. both_readings: `3, 800` is 3, 800 and also 3,800, `2. 4` also 2.4 (text that a tokenizer cut)."""
    if both_readings and _PARTED.search(text):
        # Of equal length, so that positions stay what they are.
        joined = quantities(_PARTED.sub(_joined, text))
        plain = quantities(text)
        known = {(one.start, one.end, one.value) for one in plain}
        return (*plain, *(one for one in joined if (one.start, one.end, one.value) not in known))
    found: list[Quantity] = []
    taken: list[tuple[int, int]] = []
    for match in _ISO.finditer(text):
        taken.append(match.span())
        for kind, group in (("year", 1), ("month", 2), ("plain", 3)):
            found.append(Quantity(float(match[group]), kind, "", 1.0, *match.span(group), match[0]))
    for match in _QUARTER_WORD.finditer(text):
        value = ("first", "second", "third", "fourth").index(match[1].casefold()) + 1.0
        found.append(Quantity(value, "quarter", "", 1.0, *match.span(), match[0]))
    for match in _HALF_WORD.finditer(text):
        value = ("first", "second").index(match[1].casefold()) + 1.0
        found.append(Quantity(value, "half", "", 1.0, *match.span(), match[0]))
    for match in _MONTH.finditer(text):
        name = match[1] or match[2] or match[3]
        at = match.start() + match[0].casefold().rindex(name.casefold())
        if name[0].isupper() or name.casefold() not in ("may", "march", "mar", "dec", "sep", "jan"):
            found.append(
                Quantity(float(_MONTHS[name.casefold()]), "month", "", 1.0, at, at + len(name), name.capitalize())
            )
    for match in _QUANTITY.finditer(text):
        start = match.start("currency") if match["currency"] else match.start("digits" if match["digits"] else "words")
        if any(first <= start < last for first, last in taken):
            continue
        quantity = _read(text, match, start)
        if quantity is not None:
            found.append(quantity)
    found.sort(key=lambda quantity: (quantity.start, quantity.end))
    return tuple(found)


def _joined(match: re.Match[str]) -> str:
    if match["hundreds"]:
        return f" {match['thousands']},{match['hundreds']}"
    return f" {match['whole']}.{match['part']}"


def _read(text: str, match: re.Match[str], start: int) -> Quantity | None:
    end = match.end()
    if match["digits"]:
        value, step = _digits(match["digits"])
        if match.start("digits") and text[match.start("digits") - 1] in "qQ":
            return Quantity(value, "quarter", "", 1.0, start - 1, end, text[start - 1 : end])
        if match["sign"]:
            value = -value
    else:
        value, step = _in_words(match["words"]), 1.0
        if match["words"].casefold() in ("one", "zero") and not _measures(text, end):
            return None
    whole = bool(match["digits"]) and match["digits"].isdigit()
    kind, unit = "plain", ""
    scaled = False
    after = _AFTER.match(text, end)
    word = after["word"].casefold() if after else ""
    direct = bool(after) and after is not None and after.start("word") == end
    if word in _SCALES and (len(word) > 2 or match["currency"] or (direct and word in ("bn", "mn", "k"))):
        value, step, scaled = value * _SCALES[word], step * _SCALES[word], True
        end = after.end() if after else end
        after = _AFTER.match(text, end)
        word = after["word"].casefold() if after else ""
    if match["currency"]:
        kind, unit = "money", _CURRENCIES[match["currency"].casefold()]
    elif word in _CURRENCIES and not match["ordinal"]:
        kind, unit, end = "money", _CURRENCIES[word], after.end() if after else end
    elif word in _PERCENT or (word == "per" and text[end:].lstrip().casefold().startswith("per cent")):
        cent = text[end:].find("cent") if word == "per" else -1
        kind, end = "percent", end + cent + len("cent") if cent >= 0 else after.end() if after else end
    elif match["ordinal"]:
        kind = "ordinal" if word in ("century", "centuries") else "plain"
    elif whole and not scaled and len(match["digits"]) == 4 and 1000 <= value < 2100 and word not in _UNITS:
        kind = "year"
    elif word in _UNITS and (len(word) > 1 or direct or word in "glm"):
        unit, factor = _UNITS[word]
        kind, value, step, end = "measure", value * factor, step * factor, after.end() if after else end
    if not (math.isfinite(value) and math.isfinite(step)):
        return None
    noun = word if kind == "plain" and after is not None else ""
    loose = _ABOUT.search(text, max(start - 20, 0), start) is not None
    return Quantity(value, kind, unit, step, start, end, text[start:end].strip(), loose, noun)


def _measures(text: str, end: int) -> bool:
    after = _AFTER.match(text, end)
    word = after["word"].casefold() if after else ""
    return word in _UNITS or word in _PERCENT or word in _CURRENCIES or (word in _SCALES and len(word) > 2)


def _digits(written: str) -> tuple[float, float]:
    """Value, and what the last digit is worth."""
    written = written.replace("·", ".")
    if re.fullmatch(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?", written):
        plain = written.replace(",", "")
    elif re.fullmatch(r"\d{1,3}(?:\.\d{3})+,\d+|\d{1,3}(?:\.\d{3}){2,}", written):
        plain = written.replace(".", "").replace(",", ".")
    elif re.fullmatch(r"\d+,\d+", written):
        plain = written.replace(",", ".")
    else:
        plain = written.replace(",", "")
        if plain.count(".") > 1:  # a version, a section: the first two parts stand for it
            plain = ".".join(plain.split(".")[:2])
    plain = plain[:300]
    decimals = len(plain.partition(".")[2])
    return float(plain), 10.0 ** -min(decimals, 300)


def _in_words(written: str) -> float:
    total = group = 0.0
    for word in re.split(r"[\s-]+", written.casefold()):
        if word in _SMALL:
            group += _SMALL[word]
        elif word in _TENS:
            group += _TENS[word]
        elif word == "hundred":
            group = max(group, 1.0) * 100
        elif word == "thousand":
            total, group = total + max(group, 1.0) * 1000, 0.0
    return total + group


def comparable(claim: Quantity, other: Quantity) -> bool:
    """Whether both can say the same kind of thing."""
    if claim.kind == other.kind:
        return claim.unit == other.unit
    return "plain" in (claim.kind, other.kind) and not {claim.kind, other.kind} & {
        "month", "quarter", "half", "year", "percent"
    }  # fmt: skip


def agrees(claim: Quantity, other: Quantity) -> bool:
    """Whether the quantity of the evidence bears the claim's out."""
    if not comparable(claim, other):
        return False
    if claim.kind in ("year", "month", "quarter", "half", "ordinal"):
        return claim.value == other.value
    difference = abs(claim.value - other.value)
    if difference <= 1e-9 * max(abs(claim.value), abs(other.value)):
        return True
    rounded = claim.step >= 1e3 or claim.step < 1 or claim.kind == "measure"
    if rounded and other.step < claim.step and difference <= claim.step / 2 * (1 + 1e-9):
        return True
    return claim.loose and difference <= _LOOSE * abs(other.value)


def missing(claim: Sequence[Quantity], evidence: Sequence[Quantity]) -> list[Quantity]:
    """Quantities of the claim that nothing in the evidence agrees with."""
    return [one for one in claim if not any(agrees(one, other) for other in evidence)]


def rival(
    one: Quantity,
    evidence: Sequence[Quantity],
    *,
    claim: Sequence[Quantity] = (),
    likeness: Callable[[Quantity], float] | None = None,
) -> Quantity | None:
    """What the evidence says in the place of `one`: comparable, of another value, and not said by the claim as well.

    Of the same noun first, then the most alike by `likeness`, then the nearest in size.
    """
    others = [
        other
        for other in evidence
        if not agrees(one, other)
        and (comparable(one, other) or _same_figure(one, other) or _other_unit(one, other))
        and not any(agrees(said, other) for said in claim)
    ]
    if not others:
        return None
    return min(
        others,
        key=lambda other: (
            not (one.noun and other.noun == one.noun),
            other.kind != one.kind,
            -likeness(other) if likeness is not None else 0.0,
            abs(one.value - other.value) / (abs(one.value) + abs(other.value) + 1e-9),
        ),
    )


def _same_figure(one: Quantity, other: Quantity) -> bool:
    """The same figures with another unit or scale."""
    first, second = re.match(r"\D*([\d.,]*\d)", one.text), re.match(r"\D*([\d.,]*\d)", other.text)
    return first is not None and second is not None and first[1] == second[1]


def _other_unit(one: Quantity, other: Quantity) -> bool:
    return one.kind == other.kind and one.kind in ("money", "measure") and one.value == other.value
