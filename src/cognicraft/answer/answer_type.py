"""What kind of thing a question asks for, and whether a sentence holds one: a number, a date, a name.

Takes: a question or a sentence. Returns: the kinds, by rules in a few European languages.
Cost: regular expressions over the text. What can go wrong: a question in another language, or one that asks
    without such a word, has no kind, and then nothing is preferred; a rule never excludes a sentence.
"""

from __future__ import annotations

import re
from typing import Literal

Kind = Literal["number", "date", "name"]

_ASKS_NUMBER = re.compile(
    r"\bhow (?:many|much|old|long|far|tall|high|large|big|deep|fast|often|wide|heavy)\b"
    r"|\b(?:what|which)(?: [\w’'.&-]+){0,5} (?:percent|percentage|number|amount|proportion|fraction|rate"
    r"|population|age|price|costs?|sales|revenues?|income|total|margin|profits?|loss|earnings|expenses?"
    r"|expenditures?|spending|cash flow|net cash|budget|salary|fees?|turnover|balance|dividends?|score|speed|size"
    r"|weight|height|length|distance|temperature)\b"
    r"|\bwie ?viele?n?\b|\bcuánt[oa]s?\b|\bcombien\b|\bquant[oiae]\b|\bhoeveel\b",
    re.IGNORECASE,
)
_ASKS_DATE = re.compile(
    r"\bwhen\b|\b(?:what|which)(?: \w+){0,2} (?:year|date|day|month|century|decade|time)\b"
    r"|\bwann\b|\bin welchem (?:jahr|monat)\b|\bcuándo\b|\bqué (?:año|fecha|día)\b|\bquand\b|\bquando\b"
    r"|\bwanneer\b",
    re.IGNORECASE,
)
_ASKS_NAME = re.compile(
    r"\bwho(?:m|se)?\b|\bwhere\b"
    r"|\b(?:what|which)(?: \w+)? (?:country|city|person|state|company|king|president|place|name|region|nation)\b"
    r"|\bwer\b|\bwen\b|\bwem\b|\bwo\b|\bquién(?:es)?\b|\bdónde\b|\bqui\b|\boù\b|\bchi\b|\bdove\b",
    re.IGNORECASE,
)
_FIGURE = re.compile(r"\d(?:[\d.,]*\d)?")
_AMOUNT = re.compile(
    r"\d(?:[\d.,]*\d)?|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozen|hundreds?"
    r"|thousands?|millions?|billions?|half|twice|once|double)\b",
    re.IGNORECASE,
)
_MONTH = (
    r"(?:January|February|March|April|May|June|July|August|September|October|November|December"
    r"|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\b\.?"
)
_NO_AMOUNT = re.compile(
    rf"\b{_MONTH} \d{{1,2}}\b|\b\d{{1,2}} {_MONTH}|\b(?:1[5-9]|20)\d\ds?\b(?![.,]\d)"
    r"|\(\d{1,2}\)|\[\d{1,3}\]|\b(?:Item|Note|Table|Figure|Section|Page|Chapter|Form) \d+\w*"
    r"|\b(?:three|six|nine|twelve)(?:-(?= and)|[ -]months?\b)|\bQ[1-4]\b"
)
_DATE = re.compile(
    r"\b1\d{3}s?\b|\b20\d\ds?\b|\bcentur(?:y|ies)\b|\bBCE?\b|\b\d{1,2}(?::\d\d)? ?[ap]\.?m\b"
    r"|\b(?:January|February|March|April|May|June|July|August|September|October|November|December)\b"
    r"|\b(?:Januar|Februar|März|Mai|Juni|Juli|Oktober|Dezember|Jahrhundert)"
    r"|\b(?:enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|octubre|noviembre|diciembre|siglo)\b"
)
_NAME = re.compile(r"(?<=[\w,;:)'\"”’] )[A-ZÀ-ÖØ-ÞА-Я][\w’'-]*")


def asked_for(question: str) -> Kind | None:
    """The kind that the question asks for, None where no rule tells."""
    if _ASKS_NUMBER.search(question):
        return "number"
    if _ASKS_DATE.search(question):
        return "date"
    if _ASKS_NAME.search(question):
        return "name"
    return None


def holds(sentence: str, kind: Kind | None, *, question: str) -> bool:
    """Whether the sentence holds something of that kind that the question does not say itself.

    A year, a day of a month or a mark such as (3) is no number: who asks for an amount is not told a date.
    """
    if kind == "number":
        known = set(_FIGURE.findall(question))
        return any(match[0] not in known for match in _AMOUNT.finditer(_NO_AMOUNT.sub(" ", sentence)))
    if kind == "date":
        return any(match[0] not in question for match in _DATE.finditer(sentence))
    if kind == "name":
        said = question.casefold()
        return any(match[0].casefold() not in said for match in _NAME.finditer(sentence))
    return False
