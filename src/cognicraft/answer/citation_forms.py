"""The forms in which models write citations, as one pattern: what replies are read by and passages are cleared of.

Returns: `CITATION`, which matches `[1]`, `[1, 2]`, `[1-3]`, `[2 and 4]`, `[Source 1]`, `[^1]`, `【1】`, `【1†source】`
whole, and `numbers`. Method: numbers of one to three digits from 1, so `[2021]`, `[0]` and `[1.5, 2]` are none.
Cost: linear. What can go wrong: an interval of whole numbers, `[5, 95]`, looks the same.
"""

from __future__ import annotations

import re

LONGEST = 60
"""Characters between the brackets of a citation, at most."""

_WIDEST_RANGE = 20
_LABEL = r"(?:(?:sources?|passages?|refs?|references?|quellen?|fuentes?|pasajes?|fontes?|fonti|bron|nos?|nr)[ .:#]*)?"
_NUMBER = rf"{_LABEL}[#^]?[1-9]\d{{0,2}}"
_BODY = rf"[ ]*{_NUMBER}(?:[ ]*(?:,|;|&|-|–|—|and\b|und\b|y\b|et\b)[ ]*{_NUMBER})*[ ]*"
CITATION = re.compile(
    rf"\[(?=[^\]\n]{{1,{LONGEST}}}\]){_BODY}\]|【(?=[^】\n]{{1,{LONGEST}}}】){_BODY}(?:[†:][^】\n]*)?】", re.IGNORECASE
)
_RANGE = re.compile(r"([1-9]\d{0,2})\s*[-–—]\s*\D*?([1-9]\d{0,2})|([1-9]\d{0,2})")


def numbers(citation: str) -> list[int]:
    """`[Sources 1, 3-5]` gives 1, 3, 4, 5; of a range wider than any list of passages only the ends count."""
    body = re.split("[†:](?=[^†:]*】)", citation)[0] if citation.startswith("【") else citation
    found: list[int] = []
    for first, last, single in _RANGE.findall(body):
        if single:
            found.append(int(single))
        elif int(first) <= int(last) <= int(first) + _WIDEST_RANGE:
            found.extend(range(int(first), int(last) + 1))
        else:
            found.extend((int(first), int(last)))
    return list(dict.fromkeys(found))
