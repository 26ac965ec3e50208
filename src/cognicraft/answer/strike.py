"""An answer without the sentences that did not stand the check.

Takes: the answer, the verdicts of its claims, the kinds of verdict that strike. Returns: `Struck`. Method: a sentence
goes, with the citations after it, if any of its claims has such a verdict: a part of a sentence cannot be taken out
and leave one. With it go the bullet or the row that it was, and a heading, table head or introduction all of whose
sentences went. What stays is word for word as it was, spaces mended; citations keep their numbers, which are those of
the passages. Cost: linear.
What can go wrong: a sentence that stays may lean on one that went ("It was built in 1932."); its own claim was checked
with what it stood for.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from cognicraft.answer.cited_sentences import CitedSentence, cited_sentences
from cognicraft.records import Verdict, VerdictKind

_MARK = re.compile(r"\[([1-9]\d{0,2})\]")
_MARKS_AFTER = re.compile(r"(?:[^\S\n]*\[[1-9]\d{0,2}\])+")
_LINE_HEAD = re.compile(r"[^\S\n]*(?:(?:[-*+•‣▪●–]|\(?\d{1,3}[.)])(?=\s|$)[^\S\n]*|>[^\S\n]?)*")
_BULLET = re.compile(r"[^\S\n]*(?:[-*+•‣▪●–]|\(?\d{1,3}[.)])[^\S\n]+\Z")
_TABLE_RULE = re.compile(r"[^\S\n]*\|?[\s:|-]*-{2,}[\s:|-]*\|?[^\S\n]*")
_BLANK = re.compile(r"\n[^\S\n]*\n")


@dataclass(frozen=True, slots=True)
class Struck:
    """text: "" where no statement is left. verdicts: of claims that stay, spans moved along. struck: the sentences."""

    text: str
    verdicts: tuple[Verdict, ...]
    struck: tuple[str, ...]


def strike(
    text: str, verdicts: Sequence[Verdict], *, kinds: Collection[VerdictKind], unchecked: bool = False
) -> Struck:
    """The answer without the sentences that have a verdict of these kinds.

    unchecked: statements that no verdict is about go, too.
    """
    sentences = cited_sentences(text, known={int(number) for number in _MARK.findall(text)})
    failing = [verdict for verdict in verdicts if verdict.kind in kinds]
    gone = {
        index
        for index, sentence in enumerate(sentences)
        if any(_overlap(sentence, verdict) for verdict in failing)
        or (unchecked and sentence.says_something and not any(_overlap(sentence, verdict) for verdict in verdicts))
    }
    stray = [one for one in failing if not any(_overlap(sentence, one) for sentence in sentences)]
    if not gone and not stray:
        return Struck(text, tuple(verdicts), ())
    struck = tuple(sentences[index].text for index in sorted(gone))
    statements = {index for index, sentence in enumerate(sentences) if sentence.says_something}
    if statements <= gone:
        return Struck("", (), struck)
    gone |= _empty_heads(text, sentences, gone)
    keep = [True] * len(text)
    for start, end in [
        *(_region(text, sentences[index]) for index in gone),
        *((v.claim.start, v.claim.end) for v in stray),
    ]:
        keep[start:end] = [False] * (min(end, len(text)) - start)
    _mend(text, keep)
    kept = [position for position, stays in enumerate(keep) if stays]
    places = {position: place for place, position in enumerate(kept)}
    moved = tuple(
        replace(verdict, claim=replace(verdict.claim, start=places[first], end=places[last] + 1))
        for verdict in verdicts
        for first, last in [(verdict.claim.start, verdict.claim.end - 1)]
        if verdict.kind not in kinds and first <= last and all(keep[first : last + 1]) and last < len(text)
    )
    return Struck("".join(text[position] for position in kept), moved, struck)


def _overlap(sentence: CitedSentence, verdict: Verdict) -> bool:
    return verdict.claim.start < sentence.end and sentence.start < verdict.claim.end


def _empty_heads(text: str, sentences: Sequence[CitedSentence], gone: set[int]) -> set[int]:
    """Introductions and headings all of whose sentences went; innermost first."""
    empty: set[int] = set()
    for index in reversed(range(len(sentences))):
        kind = sentences[index].kind
        if kind not in ("introduction", "heading") or index in gone:
            continue
        own = list(_own(text, sentences, index))
        if own and all(other in gone or other in empty for other in own):
            empty.add(index)
    return empty


def _own(text: str, sentences: Sequence[CitedSentence], head: int) -> Sequence[int]:
    """What stands under a heading, to the next one; or under an introduction: the paragraph or list after it."""
    own: list[int] = []
    for index in range(head + 1, len(sentences)):
        if sentences[index].kind == "heading":
            break
        if sentences[head].kind == "introduction":
            gap = text[sentences[index - 1].end : sentences[index].start]
            listed = _BULLET.search(text[text.rfind("\n", 0, sentences[index].start) + 1 : sentences[index].start])
            if sentences[index].kind == "introduction" or (own and _BLANK.search(gap) and not listed):
                break
        own.append(index)
    return own


def _region(text: str, sentence: CitedSentence) -> tuple[int, int]:
    """The sentence with the citations after it; the whole line of a row or a heading, a table's rule with its head."""
    start, end = sentence.start, sentence.end
    if sentence.kind in ("row", "heading"):
        start = text.rfind("\n", 0, start) + 1
        end = _line_end(text, end)
        following = text[end : _line_end(text, end)]
        if text[start:end].lstrip().startswith("|") and sentence.kind == "heading":
            end += len(following) if _TABLE_RULE.fullmatch(following.rstrip("\n")) else 0
        return start, end
    after = _MARKS_AFTER.match(text, end)
    return start, after.end() if after else end


def _line_end(text: str, position: int) -> int:
    """After the line's end."""
    found = text.find("\n", position)
    return len(text) if found < 0 else found + 1


def _mend(text: str, keep: list[bool]) -> None:
    """Lines of which nothing but a bullet stays go whole; no two spaces, no two blank lines, none at either end."""
    start = 0
    while start < len(text):
        end = _line_end(text, start)
        stop = end - text[start:end].endswith("\n")
        if not all(keep[start:stop]):
            head = _LINE_HEAD.match(text, start, stop)
            body = head.end() if head else start
            if not any(keep[at] and not text[at].isspace() for at in range(body, stop)):
                keep[start:end] = [False] * (end - start)
            else:
                _mend_spaces(text, keep, body, stop)
        start = end
    lines = 0
    last = -1
    seen = False
    for at, character in enumerate(text):
        if not keep[at]:
            continue
        if not character.isspace():
            lines, last, seen = 0, at, True
            continue
        lines += character == "\n"
        touched = last >= 0 and not all(keep[last : at + 1])
        if not seen or (touched and character == "\n" and lines > 2):
            keep[at] = False
    keep[last + 1 :] = [False] * (len(text) - last - 1)


def _mend_spaces(text: str, keep: list[bool], start: int, stop: int) -> None:
    """One space where a sentence went from between two, none at the line's ends."""
    previous = " "
    for at in range(start, stop):
        if not keep[at]:
            continue
        if (
            text[at].isspace()
            and previous.isspace()
            and (at == start or not keep[at - 1] or previous == " " == text[at])
        ):
            if not all(keep[start:at]):
                keep[at] = False
            continue
        previous = text[at]
    for at in range(stop - 1, start - 1, -1):
        if keep[at] and not text[at].isspace():
            break
        keep[at] = False
