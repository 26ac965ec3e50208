"""Where in a passage the sentences stand that bear a statement out best.

Takes: a statement and the text of a passage. Returns: a span of the passage. Method: sentences of the passage are
scored by the words and figures that they share with the statement, rare ones of the passage and figures more; the
best, and its neighbours while they add what it lacks, at most three. Words count by their beginnings, so that
inflections meet. Deterministic. Cost: linear in the passage.
What can go wrong: a statement in another language than the passage shares only names and figures with it; where
nothing is shared the whole passage is given. That sentences share words does not mean that one follows from the other.
"""

from __future__ import annotations

import re
from collections import Counter

from cognicraft.ingest.sentences import sentences

MOST_SENTENCES = 3
_STEM_CHARACTERS = 5
_FIGURE_WEIGHT = 2.0
_WORTH_ADDING = 0.15
_TOKEN = re.compile(r"\d+(?:[.,'\u00a0\u202f]\d+)*|[^\W\d_]+")
_UNSPACED = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")


def quote_span(statement: str, passage: str) -> tuple[int, int]:
    """Span in `passage` of the one to three sentences next to each other that share most with the statement."""
    spans = sentences(passage)
    if not spans:
        return 0, len(passage)
    wanted = _terms(statement)
    shared = [_terms(passage[start:end]) & wanted for start, end in spans]
    frequency = Counter(term for terms in shared for term in terms)
    if not frequency:
        return 0, len(passage)

    def weight(terms: frozenset[str]) -> float:
        return sum((_FIGURE_WEIGHT if term[0].isdigit() else 1.0) / frequency[term] for term in sorted(terms))

    def density(index: int) -> float:
        start, end = spans[index]
        return weight(shared[index]) - 0.001 * (end - start) / 100

    best = max(range(len(spans)), key=lambda index: (density(index), -index))
    first = last = best
    covered = shared[best]
    full = weight(frozenset(frequency))
    while last - first + 1 < MOST_SENTENCES:
        sides = [index for index in (first - 1, last + 1) if 0 <= index < len(spans)]
        gains = [(weight(shared[index] - covered), -index) for index in sides]
        if not gains or max(gains)[0] < _WORTH_ADDING * full:
            break
        added = -max(gains)[1]
        covered |= shared[added]
        first, last = min(first, added), max(last, added)
    return spans[first][0], spans[last][1]


def _terms(text: str) -> frozenset[str]:
    """Beginnings of words, figures without separators of thousands, pairs of letters of scripts without spaces."""
    found: set[str] = set()
    for match in _TOKEN.finditer(text.casefold()):
        token = match[0]
        if token[0].isdigit():
            found.add(_figure(token))
        elif _UNSPACED.match(token):
            found.update(token[at : at + 2] for at in range(max(len(token) - 1, 1)))
        elif len(token) > 2:
            found.add(token[:_STEM_CHARACTERS])
    return frozenset(found)


def _figure(text: str) -> str:
    """`12,345.60` as `12345.60`, `3,5` as `3.5`."""
    groups = re.split(r"[.,'\u00a0\u202f]", text)
    if len(groups) > 1 and all(len(group) == 3 for group in groups[1:]):
        return "".join(groups)
    return "".join(groups[:-1]) + "." + groups[-1] if len(groups) > 1 else text
