"""Text to tokens for holding one statement against another: stems, names, negated words, words of opposite direction.

Takes: a text. Returns: `Token`s in order. Method: Unicode words, Snowball stems (English unless another stemmer is
given), closed lists of function words, negators and opposites. A word is negated where a negator stands up to three
tokens before it in the same clause. Pairs of characters stand for words in scripts without spaces.
Cost: one pass of a regular expression; stems are remembered.
What can go wrong: text without capital letters has no names; lists are English, in other languages negation and
direction are not seen, and function words count as content.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import Stemmer

Stem = Callable[[str], str]

_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3"
_TOKEN = re.compile(
    rf"[{_UNSPACED}]{{1,2}}|\d+(?:[.,]\d+)*|[^\W\d_{_UNSPACED}]+(?:['\u2019][^\W\d_]{{1,3}})?|[;:!?.,()\u2014]"
)
_STOPS = frozenset(
    [
        "a",
        "an",
        "the",
        "this",
        "that",
        "these",
        "those",
        "and",
        "or",
        "but",
        "nor",
        "if",
        "then",
        "than",
        "so",
        "as",
        "at",
        "by",
        "for",
        "from",
        "in",
        "into",
        "of",
        "off",
        "on",
        "onto",
        "out",
        "over",
        "to",
        "with",
        "about",
        "between",
        "through",
        "during",
        "i",
        "me",
        "my",
        "we",
        "our",
        "ours",
        "us",
        "you",
        "your",
        "yours",
        "he",
        "him",
        "his",
        "she",
        "her",
        "hers",
        "it",
        "its",
        "they",
        "them",
        "their",
        "theirs",
        "am",
        "is",
        "are",
        "was",
        "were",
        "be",
        "been",
        "being",
        "do",
        "does",
        "did",
        "doing",
        "done",
        "have",
        "has",
        "had",
        "having",
        "can",
        "could",
        "will",
        "would",
        "shall",
        "should",
        "may",
        "might",
        "must",
        "what",
        "which",
        "who",
        "whom",
        "whose",
        "when",
        "where",
        "why",
        "how",
        "there",
        "here",
        "all",
        "any",
        "both",
        "each",
        "some",
        "such",
        "also",
        "very",
        "just",
        "s",
        "t",
        "d",
        "m",
        "ll",
        "re",
        "ve",
        "too",
        "yet",
        "still",
        "even",
        "only",
        "own",
        "same",
        "other",
        "such",
        "upon",
        "via",
        "per",
        "within",
        "among",
        "well",
        "don",
        "doesn",
        "didn",
        "isn",
        "aren",
        "wasn",
        "weren",
        "hasn",
        "haven",
        "hadn",
        "won",
        "wouldn",
        "couldn",
        "shouldn",
        "not",
        "no",
        "n",
        "according",
        "said",
        "says",
        "say",
    ]
)
_NEGATORS = frozenset(
    [
        "not",
        "no",
        "never",
        "none",
        "neither",
        "nor",
        "without",
        "cannot",
        "nobody",
        "nothing",
        "nowhere",
        "hardly",
        "barely",
        "fail",
        "failed",
        "fails",
        "failing",
        "unable",
        "lack",
        "lacked",
        "lacks",
        "lacking",
        "n't",
        "refuse",
        "refused",
        "refuses",
        "deny",
        "denied",
        "denies",
        "absent",
        "ceased",
    ]
)


# Negate what follows, whatever it is; the others above (fail, lack, deny) say something of their own.
def _words(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


_PLAIN_NEGATORS = _words("not no never neither nor cannot n't without")
_PERSONAL = frozenset(["i", "me", "my", "mine", "myself", "you", "your", "yours", "we"])
_OPPOSITES = (
    (
        "rise rose risen increase grow grew grown gain climb climbed up higher more greater raise above "
        "exceed surge jump upward expand widen improve strengthen",
        "fall fell fallen decrease decline drop shrink shrank down lower less fewer reduce below loss dip "
        "slump downward contract narrow worsen weaken lose diminish",
    ),
    ("before precede prior earlier until", "after follow subsequent later since"),
    ("first earliest initial", "last latest final"),
    ("minimum least smallest lowest fewest", "maximum most largest highest greatest biggest"),
    (
        "accept approve grant uphold upheld affirm allow permit agree",
        "reject dismiss overturn prohibit forbid forbidden ban disagree reverse block",
    ),
    ("win won victory victorious beat", "lose lost defeat"),
    ("buy bought purchase acquire", "sell sold sale divest"),
    ("open launch start begin began begun commence", "close shut end finish stop cease terminate"),
    ("include including", "exclude excluding except"),
    ("always", "never rarely seldom"),
    ("north northern northward", "south southern southward"),
    ("east eastern eastward", "west western westward"),
    ("left", "right"),
    ("early", "late"),
    ("enable enabled", "disable disabled"),
    ("import", "export"),
    ("mandatory required compulsory must obligatory", "optional voluntary"),
    ("guilty convict convicted", "innocent acquit acquitted"),
    ("positive", "negative"),
    ("male man men boy father son husband brother", "female woman women girl mother daughter wife sister"),
    ("majority", "minority"),
    ("hot warm warmer", "cold cool colder"),
    ("upstream", "downstream"),
    ("cause promote induce activate stimulate trigger", "prevent inhibit suppress"),
    ("synchronous", "asynchronous"),
    ("ascending", "descending"),
    ("true", "false"),
    ("longer", "shorter"),
    ("profit", "loss"),
    ("faster", "slower"),
    ("safe", "unsafe dangerous"),
)


@dataclass(frozen=True, slots=True)
class Token:
    """A word or a figure. key: what it is compared by. name: written like a name. rank: its number in the text."""

    text: str
    key: str
    start: int
    end: int
    content: bool
    name: bool
    figure: bool
    negated: bool
    rank: int


@lru_cache(maxsize=8)
def english_stem() -> Stem:
    """Snowball's English stemmer, remembering what it has seen."""
    stemmer = Stemmer.Stemmer("english")
    return lru_cache(maxsize=100_000)(stemmer.stemWord)


@lru_cache(maxsize=8)
def opposites(stem: Stem) -> dict[str, tuple[tuple[int, int], ...]]:
    """Stem -> the (pair, pole) that it belongs to."""
    found: dict[str, list[tuple[int, int]]] = {}
    for pair, poles in enumerate(_OPPOSITES):
        for pole, words in enumerate(poles):
            for key in {stem(word) for word in words.split()} | set(words.split()):
                found.setdefault(key, []).append((pair, pole))
    return {key: tuple(places) for key, places in found.items()}


def tokens(text: str, *, stem: Stem) -> tuple[Token, ...]:
    """Words and figures of a text; punctuation is left out, but ends the reach of a negator."""
    found: list[Token] = []
    negated_until = -1
    opens = True
    for match in _TOKEN.finditer(text):
        word = match[0]
        if not word[0].isalnum():
            if word != "," or negated_until - len(found) > 0:
                negated_until = -1
            opens = opens or word in ".!?:"
            continue
        plain = word.casefold().replace("\u2019", "'")
        negative = plain.endswith("n't") or plain in _NEGATORS
        base = re.sub(r"(?:n't|'\w{1,3})$", "", plain)
        figure = word[0].isdigit()
        content = base not in _STOPS and not negative and not (len(base) == 1 and base.isascii() and not figure)
        name = content and not figure and word[0].isupper() and not opens
        name = name or (content and len(word) > 1 and not figure and any(letter.isupper() for letter in word[1:]))
        key = re.sub(r",(?=\d{3})", "", base) if figure else stem(base)
        found.append(
            Token(word, key, match.start(), match.end(), content, name, figure, len(found) <= negated_until, len(found))
        )
        if negative:
            negated_until = len(found) - 1 + 3
        opens = False
    return tuple(found)


def is_negator(token: Token) -> bool:
    plain = token.text.casefold().replace("\u2019", "'")
    return plain.endswith("n't") or plain in _NEGATORS


def is_plain_negator(token: Token) -> bool:
    plain = token.text.casefold().replace("\u2019", "'")
    return plain.endswith("n't") or plain in _PLAIN_NEGATORS


def is_personal(token: Token) -> bool:
    """Speaks of who speaks or of who listens."""
    return token.text.casefold().partition("'")[0].partition("\u2019")[0] in _PERSONAL
