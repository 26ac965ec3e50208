"""Whether a question asks what something is, and how plainly a sentence says it.

Takes: a question; a candidate sentence with the text, the title and the headings of its passage.
Returns: the thing asked about, or None; and a number from 0 to 1.
Method: rules. A thing is defined by a line keyed `definition:` under its name, by `X is …`, `X: …`, or by
    the sentence that opens the passage which bears its name. Names are compared as sets of analysed terms, so
    that "chunks" is "a chunk" and "5.2 Chunks" as well.
Cost: a few regular expressions a sentence, for definitional questions only.
What can go wrong: "What is the matter with X?" asks for no definition of "the matter with X"; nothing bears
    that name then, and every sentence gets 0.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

LexicalTerms = Callable[[str], list[str]]

_ASKS = re.compile(
    r"\s*(?:(?:please|can you|could you)\s+)?(?:"
    r"what(?:\s+exactly)?(?:\s+(?:is|are|was|were)|['’]s)(?:\s+meant\s+by)?\s+(?P<is>.+?)(?:\s+(?:exactly|about))?"
    r"|who(?:\s+(?:is|are|was|were)|['’]s)\s+(?P<who>.+?)"
    r"|what\s+(?:does|do|did)\s+(?P<means>.+?)\s+(?:mean|stand\s+for|refer\s+to)"
    r"|(?:define|explain)\s+(?P<define>.+?)"
    r"|(?:what(?:\s+is|['’]s)\s+)?(?:the\s+)?(?:definition|meaning)\s+of\s+(?P<of>.+?)"
    r"|was\s+(?:ist|sind|bedeutet|heißt)\s+(?P<de>.+?)"
    r"|qu['’]est-ce\s+(?:que\s+(?:c['’]est\s+que\s+)?|qu['’])(?P<fr>.+?)"
    r"|¿?qué\s+(?:es|son|significa)\s+(?P<es>.+?)"
    r"|(?:che\s+)?cos['’]è\s+(?P<it>.+?)"
    r"|wat\s+(?:is|zijn|betekent)\s+(?P<nl>.+?)"
    r"|o\s+que\s+(?:é|são|significa)\s+(?P<pt>.+?)"
    r")\s*[?.!]*\s*\Z",
    re.IGNORECASE,
)
_KEYED = re.compile(
    r"(?:definition|meaning|description|explanation|bedeutung|beschreibung|définition|definición|significado"
    r"|descripción|definizione|definição|betekenis)\s*:\s",
    re.IGNORECASE,
)
_LIST_LIKE = re.compile(r"(?P<name>[^\n:|–—]{1,80}?)\s*(?::|\s[–—-])\s")
_IS = re.compile(
    r"(?P<name>[^\n|]{1,120}?)(?:,[^,\n]{1,60},)?\s(?:(?P<noun>(?:is|are|was|were)\s+(?:an?|the|one|any)|means|refers\s+to"
    r"|stands\s+for|denotes|ist\s+(?:eine?|der|die|das)|bedeutet|bezeichnet|est\s+(?:une?|la|le)|désigne|es\s+(?:una?|el|la)"
    r"|significa|è\s+(?:una?|il|la)|is\s+een)|is|are|was|were)\s",
    re.IGNORECASE,
)
_BRACKETED = re.compile(r"\(([^()]{1,60})\)")
_SECTION_NUMBER = re.compile(r"\s*(?:\d{1,3}(?:\.\d{1,3})*\.?|#{1,6})\s+")


def thing_asked(question: str) -> str | None:
    """What the question asks to have defined; None for a question of another form."""
    match = _ASKS.match(question)
    return next(filter(None, match.groups()), None) if match else None


def defines(
    sentence: str, *, thing: frozenset[str], names: Iterable[str], opens: bool, lexical_terms: LexicalTerms
) -> float:
    """From 0 to 1: how plainly the sentence says what the thing is.

    thing: its terms; without any the number is 0. names: title and last heading of the passage; opens: whether
    the sentence is the first under them.
    """
    if not thing:
        return 0.0
    named = any(_terms(_SECTION_NUMBER.sub("", name, count=1), lexical_terms) == thing for name in names)
    if named and _KEYED.match(sentence):
        return 1.0
    match = _IS.match(sentence)
    if match and _is_name(match["name"], thing, lexical_terms):
        return 1.0 if match["noun"] else 0.6
    match = _LIST_LIKE.match(sentence)
    if match and _is_name(match["name"], thing, lexical_terms):
        return 0.8
    return 0.5 if named and opens else 0.0


def _is_name(text: str, thing: frozenset[str], lexical_terms: LexicalTerms) -> bool:
    """Whether a text is the name, "reciprocal rank fusion (RRF)" for either."""
    names = [_BRACKETED.sub(" ", text), *_BRACKETED.findall(text)]
    return any(_terms(name, lexical_terms) == thing for name in names)


def _terms(text: str, lexical_terms: LexicalTerms) -> frozenset[str]:
    return frozenset(lexical_terms(text))
