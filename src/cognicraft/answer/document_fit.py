"""Which of the documents found is the one that the question names: by title, file name or period.

Takes: a question and the passages found. Returns: a number from 0 to 1 for each passage's document.
Method: the words of the question that stand in the names of some of the documents but not of all tell the documents
    apart; each counts by how rare it is among them. "First quarter" is read as "Q1". A question for the
    latest report prefers, of the documents whose names fit best otherwise, those whose name bears the newest
    period. Where no such word is a number or a period, the whole counts a third.
Cost: linear in the names of the documents.
What can go wrong: a file named after a common word of the question; the number then leans towards it, by
    little where it is the only such word.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from pathlib import PurePosixPath

from cognicraft.records import StoredChunk

LexicalTerms = Callable[[str], list[str]]

_QUARTERS = tuple(
    (
        re.compile(rf"\b(?:{words})[ -]quarter\b|\b{number}Q(?=\d\d|\b)|\bQ{number}(?=\d\d|\b)", re.IGNORECASE),
        f" Q{number} ",
    )
    for number, words in ((1, "first|1st"), (2, "second|2nd"), (3, "third|3rd"), (4, "fourth|4th"))
)
_LATEST = re.compile(
    r"\b(?:latest|most recent|newest|current|neueste[nrms]?|letzte[nrms]?|aktuelle[nrms]?|dernière?s?|último|última)\b",
    re.IGNORECASE,
)
_WITHOUT_EDITION = 1 / 3
_YEAR = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")
_PART = re.compile(r"\bQ([1-4])\b")
_DATE = re.compile(r"(?<!\d)((?:19|20)\d\d)[-_. ]?(0[1-9]|1[0-2])(?:[-_. ]?(0[1-9]|[12]\d|3[01]))?(?!\d)")


def document_fit(question: str, stored: Sequence[StoredChunk], *, lexical_terms: LexicalTerms) -> list[float]:
    """(passages,) in [0, 1]: how much better the document's name fits than others'; 0 where none is named."""
    names = {one.document_id: document_name(one) for one in stored}
    held = {document: frozenset(lexical_terms(name)) for document, name in names.items()}
    asked = frozenset(lexical_terms(_with_quarters(question)))
    telling = [term for term in asked if 0 < sum(term in terms for terms in held.values()) < len(held)]
    rarity = {term: _rarity(sum(term in terms for terms in held.values()), len(held)) for term in telling}
    scores = {
        document: math.fsum(rarity[term] for term in telling if term in terms) for document, terms in held.items()
    }
    total, words = math.fsum(rarity.values()), len(telling)
    edition = any(character.isdigit() for term in telling for character in term)
    if _LATEST.search(question):
        best = max(scores.values(), default=0.0)
        periods = {document: _period(name) for document, name in names.items() if scores[document] == best}
        newest = max(periods.values(), default=())
        if newest and any(period != newest for period in periods.values()):
            total, words, edition = total + 1.0, words + 1, True
            for document, period in periods.items():
                scores[document] += float(period == newest)
    if not total:
        return [0.0] * len(stored)
    # One word may be chance; the name of a company with year and quarter is none. Without a number the words may
    # name one of several things asked about ("Which is older, A or B?"), and the answer may stand elsewhere.
    trust = words / (words + 1) * (1.0 if edition else _WITHOUT_EDITION)
    return [trust * scores[one.document_id] / total for one in stored]


def _rarity(held: int, count: int) -> float:
    return math.log1p((count - held + 0.5) / (held + 0.5))


def document_name(stored: StoredChunk) -> str:
    """Title and file name, with "first quarter" and its like as "Q1"."""
    stem = PurePosixPath(stored.source.replace("\\", "/").partition("#")[0]).stem
    return _with_quarters(f"{stored.title} {stem.replace('_', ' ').replace('-', ' ')}")


def _with_quarters(text: str) -> str:
    for pattern, name in _QUARTERS:
        text = pattern.sub(name, text)
    return text


def _period(name: str) -> tuple[int, ...]:
    """Year, then quarter or month and day, as far as the name bears them; () without a year."""
    date = _DATE.search(name)
    if date:
        return tuple(int(part) for part in date.groups() if part)
    year = _YEAR.search(name)
    if not year:
        return ()
    part = _PART.search(name)
    # A quarter as its last month, so that it can be compared with a date.
    return (int(year[0]), 3 * int(part[1])) if part else (int(year[0]),)
