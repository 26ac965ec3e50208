"""An answer to atomic claims, each with where it stands and what it cites.

Takes: the text of an answer with citations written `[1]`, and the numbers that exist. Returns: `Claim`s in text order,
spans exact and without overlap. Method: sentences by `cited_sentences.py`; headings, introductions and code state
nothing. A sentence is cut at semicolons and at a conjunction between clauses, only where both sides have a subject of
their own, no bare pronoun, and a finite verb that a closed list or an ending gives away; else it stays whole.
A piece cites what stands inside it; citations at the end of the sentence belong to the pieces that have none inside.
Cost: linear in the text.
What can go wrong: a sentence that should be cut stays whole, and is then judged by all that it says at once. Only
English sentences are cut.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from cognicraft.answer.citation_forms import numbers
from cognicraft.answer.cited_sentences import CitedSentence, cited_sentences
from cognicraft.records import Claim

_MARKS = re.compile(r"\[[1-9]\d{0,2}\]")
_RUN = re.compile(r"[^\S\n]*\[[1-9]\d{0,2}\](?:[^\S\n]*\[[1-9]\d{0,2}\])*")
_TAIL = re.compile(rf"(?:{_RUN.pattern})[\s.!?\"'”’)]*\Z")
_CUT = re.compile(
    rf"(?P<left>(?P<mark>[;,])(?:{_RUN.pattern})?|(?:{_RUN.pattern})?(?P<after>[;,])?)\s+"
    r"(?P<conjunction>(?:and|but|while|whereas)\s+)"
    rf"|(?P<left_alone>;(?:{_RUN.pattern})?|(?:{_RUN.pattern});)\s+"
)
_CONJUNCTION = re.compile(r"\A\s*(?:and|but|while|whereas)\s+")
_WORD = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)?|\d[\d.,]*")


def _words(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


_FINITE = _words("""
    is are was were has have had will would can could may might must should does did do isn't aren't wasn't weren't
    hasn't haven't hadn't won't wouldn't can't couldn't doesn't didn't don't cannot
    became began brought built came fell gave got grew held kept knew led left lost made met paid ran rose said saw
    sold sent stood took thought told went won wrote drew flew fought found bought caught taught broke chose drove
    shows says gives makes takes holds runs includes contains means allows requires remains becomes uses provides
    """)
_REGULAR_PAST = re.compile(r"[^\W\d_]{2,}ed")
_NOT_SUBJECTS = _words("""
    it he she they we you i this that these those which who whom whose what there then also thus not only if when
    because although though so as to by of in on at from with for than or nor either neither both
    is are was were has have had will would can could may might must should does did do
    """)
_DETERMINERS = _words("the a an its his her their our all most many some each every no another several")
_SUBORDINATES = re.compile(
    r"\b(?:if|when|because|although|though|unless|whether|since|while|after|before|that|which|who|whose|where)\b",
    re.IGNORECASE,
)
_LONGEST_TAIL = 200
_LONGEST_CUT = 1_000
_FEWEST_WORDS = 3
_SUBJECT_WORDS = 8


def claims(answer: str, *, known: Collection[int]) -> list[Claim]:
    """The claims of an answer. known: numbers of the passages; a cited number that is not among them stays cited."""
    return claims_of(cited_sentences(answer, known=known))


def claims_of(sentences: Sequence[CitedSentence]) -> list[Claim]:
    """The claims of sentences that were read already. Headings, introductions and code give none."""
    return [claim for sentence in sentences if sentence.says_something for claim in _of(sentence)]


def _of(sentence: CitedSentence) -> Iterator[Claim]:
    text = sentence.text
    cuttable = sentence.kind == "sentence" and len(text) <= _LONGEST_CUT
    spans = list(_pieces(text)) if cuttable else [(0, len(text))]
    tail = _TAIL.search(text, max(len(text) - _LONGEST_TAIL, 0))
    body_end = tail.start() if tail else len(text)
    own = [_marks(text[start : min(end, body_end)]) for start, end in spans]
    inside = frozenset(number for numbers_inside in own for number in numbers_inside)
    at_end = tuple(number for number in _all(sentence) if number not in inside) + _marks(text[body_end:])
    for index, (start, end) in enumerate(spans):
        if len(spans) == 1:
            cited = _all(sentence)
        elif index == len(spans) - 1:
            cited = (*own[index], *at_end)
        else:
            cited = own[index] or at_end or _all(sentence)
        claim = _plain(text[start:end], cut=len(spans) > 1, first=index == 0)
        yield Claim(claim, sentence.start + start, sentence.start + end, tuple(dict.fromkeys(cited)))


def _all(sentence: CitedSentence) -> tuple[int, ...]:
    return (*sentence.citations, *sentence.unknown)


def _marks(text: str) -> tuple[int, ...]:
    return tuple(dict.fromkeys(number for mark in _MARKS.findall(text) for number in numbers(mark)))


def _plain(piece: str, *, cut: bool, first: bool) -> str:
    """The words alone: without citations and, of a cut sentence, without what joined the pieces."""
    plain = re.sub(r"[^\S\n]+([.,;:!?])", r"\1", _RUN.sub("", piece)).strip()
    if cut:
        plain = plain if first else _CONJUNCTION.sub("", plain, count=1)
        plain = plain.rstrip(",; ")
    return plain


def _pieces(text: str) -> Iterator[tuple[int, int]]:
    """Spans of the statements; a conjunction belongs to the one that it begins."""
    start = 0
    for cut in _CUT.finditer(text):
        left, right = text[start : cut.start()], text[cut.end() :]
        following = _CUT.search(right)
        needs_verb = not (cut["mark"] or cut["after"] or cut["left_alone"] or "[" in cut[0])
        if _stands(_CONJUNCTION.sub("", left, count=1) if start else left, sure=needs_verb) and _stands(
            right[: following.start()] if following else right, sure=needs_verb
        ):
            yield start, cut.end("left") if cut["conjunction"] else cut.end("left_alone")
            start = cut.start("conjunction") if cut["conjunction"] else cut.end()
    yield start, len(text)


def _stands(piece: str, *, sure: bool) -> bool:
    """Whether it is a clause with a subject of its own and a finite verb; `sure`: a listed verb, no mere ending."""
    words = [match[0] for match in _WORD.finditer(_RUN.sub("", piece))]
    if len(words) < _FEWEST_WORDS or _SUBORDINATES.search(piece) or any(mark in piece for mark in '()"“”'):
        return False
    first = words[0].casefold()
    if first in _NOT_SUBJECTS or not (first in _DETERMINERS or words[0][0].isupper() or words[0][0].isdigit()):
        return False
    for index, word in enumerate(words[1 : _SUBJECT_WORDS + 1], start=1):
        plain = word.casefold().replace("\u2019", "'")
        if plain in _FINITE or (not sure and _REGULAR_PAST.fullmatch(plain)):
            # An auxiliary as the last word has nothing to say of its subject.
            return index < len(words) - 1
    return False
