"""The sentences of a reply, each with the passages it cites.

Takes: the text as it is shown, citations written `[1]`, and the numbers that exist. Returns: sentences with their
spans. Method: citations are taken out, boundaries found by the rules that cut documents (`ingest.sentences`), also
where a citation follows a full stop; a citation belongs to the sentence that it stands in or after, at the beginning
of a line to the one after. A row of a table is one sentence; headings and code are told apart. Cost: linear.
What can go wrong: one citation at the end of a paragraph is that of its last sentence only, the others have none.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from cognicraft.ingest.sentences import sentences

SentenceKind = Literal["sentence", "introduction", "row", "heading", "code"]
Region = tuple[Literal["prose", "row", "heading", "code"], int, int]

_MARK = re.compile(r"\[([1-9]\d{0,2})\]")
_RUN = re.compile(r"\[[1-9]\d{0,2}\](?:[^\S\n]*\[[1-9]\d{0,2}\])*")
_LINE = re.compile(r"[^\n]*\n?")
_HEADING = re.compile(r"\s{0,3}#{1,6}\s+\S.*|\s*(\*\*|__)(?=\S)(?:(?!\1).)+\1:?\s*")
_SPACE = re.compile(r"\s*")
_RULE = re.compile(r"\s*\|?[\s:|-]*-{2,}[\s:|-]*\|?\s*")
_BULLET = re.compile(r"(?:[-*+•‣▪●–]|\(?\d{1,3}[.)])[^\S\n]+|>[^\S\n]?")
_LINE_START = re.compile(r"\s*(?:(?:[-*+•‣▪●–]|\(?\d{1,3}[.)])[^\S\n]+|>[^\S\n]?)*")
_LONGEST_LINE_START = 80
_ENDS = re.compile(r"[.!?…。！？｡।؟][\"'”’»)*_\]]*\Z")


@dataclass(frozen=True, slots=True)
class CitedSentence:
    """A sentence of an answer: `answer[start:end] == text`.

    citations: numbers of passages, each once, in order. unknown: numbers that no passage has. Those at its end stand
    after `end`, those inside it are part of the text. kind: `introduction` ends with a colon and cites nothing.
    """

    text: str
    start: int
    end: int
    citations: tuple[int, ...]
    unknown: tuple[int, ...] = ()
    kind: SentenceKind = "sentence"

    @property
    def claim(self) -> str:
        """The text without the citations inside it."""
        return re.sub(r"[^\S\n]+([.,;:!?])", r"\1", _RUN.sub("", self.text)).strip()

    @property
    def says_something(self) -> bool:
        """Whether it is a statement that wants a source."""
        return self.kind in ("sentence", "row")


def cited_sentences(text: str, *, known: Collection[int]) -> tuple[CitedSentence, ...]:
    """In text order; known: numbers of the passages that were given."""
    found: list[CitedSentence] = []
    exist = frozenset(known)
    waiting: list[int] = []
    for kind, start, end in _regions(text):
        if kind == "code":
            own = [CitedSentence(text[start:end], start, end, (), (), "code")]
        else:
            own = list(_in_region(text, kind, start, end, exist))
        if own and waiting:
            own[0], waiting = _citing(own[0], waiting, exist), []
        found.extend(own)
        if not own:  # citations alone, as after a block of code: of what stands before them, else of what follows
            alone = [int(number) for number in _MARK.findall(text, start, end)]
            if found and alone:
                found[-1] = _citing(found[-1], alone, exist)
            else:
                waiting += alone
    return tuple(found)


def _citing(sentence: CitedSentence, numbers: list[int], known: frozenset[int]) -> CitedSentence:
    """The sentence with further citations."""
    cited = dict.fromkeys([*sentence.citations, *(number for number in numbers if number in known)])
    unknown = dict.fromkeys([*sentence.unknown, *(number for number in numbers if number not in known)])
    return replace(sentence, citations=tuple(cited), unknown=tuple(unknown))


def _regions(text: str) -> Iterator[Region]:
    """Code between fences, headings, rows of tables, and the prose between them."""
    prose = 0
    fence = ""
    fence_start = 0
    lines = [(match.start(), match.end()) for match in _LINE.finditer(text) if match[0]]
    for number, (start, end) in enumerate(lines):
        line = text[start:end].rstrip()
        bare = line.strip()
        if fence:
            if bare.startswith(fence) and not bare.strip(fence[0]):
                yield "code", fence_start, start + len(line)
                fence, prose = "", end
            continue
        kind: Literal["row", "heading"] | None = None
        if bare[:3] in ("```", "~~~"):
            yield from _prose(text, prose, start)
            fence, fence_start, prose = bare[:3], start, end
            continue
        if bare.startswith("|"):
            following = text[slice(*lines[number + 1])].rstrip() if number + 1 < len(lines) else ""
            kind = "heading" if "-" in following and _RULE.fullmatch(following) else "row"
        elif _HEADING.fullmatch(line) and not _MARK.search(line):
            kind = "heading"
        if kind is not None or (bare and "-" in bare and "|" in bare and _RULE.fullmatch(line)):
            yield from _prose(text, prose, start)
            prose = end
            if kind is not None and not _RULE.fullmatch(line):
                yield kind, start, start + len(line)
    if fence:
        yield "code", fence_start, len(text.rstrip())
    else:
        yield from _prose(text, prose, len(text))


def _prose(text: str, start: int, end: int) -> Iterator[Region]:
    if text[start:end].strip():
        yield "prose", start, end


def _in_region(text: str, kind: str, start: int, end: int, known: frozenset[int]) -> Iterator[CitedSentence]:
    runs = [run for run in _RUN.finditer(text, start, end) if not _in_code(text, run.start())]
    kept, places = _without(text, start, end, runs)
    bare = "".join(text[position] for position in kept)
    if kind == "prose":
        cuts = [place for run, place in zip(runs, places, strict=True) if _cuts(text, bare, run, place)]
        borders = [0, *cuts, len(bare)]
        spans = [span for first, last in pairwise(borders) for span in _spans(bare, first, last)]
    else:
        first = len(bare) - len(bare.lstrip())
        spans = [(first, len(bare.rstrip()))] if bare.strip(" |\t\n") else []
    owned: list[list[int]] = [[] for _ in spans]
    for run, place in zip(runs, places, strict=True):
        if spans:
            owned[_owner(text, run, place, spans)] += [int(number) for number in _MARK.findall(run[0])]
    for (first, last), numbers in zip(spans, owned, strict=True):
        bullet = _BULLET.match(bare, first, last) if kind == "prose" else None
        first = bullet.end() if bullet and bullet.end() < last else first
        begin, stop = kept[first], kept[last - 1] + 1
        distinct = tuple(dict.fromkeys(numbers))
        own: SentenceKind = "row" if kind == "row" else "heading" if kind == "heading" else "sentence"
        if own == "sentence" and not distinct and text[begin:stop].rstrip("*_").endswith((":", "：")):
            own = "introduction"
        yield CitedSentence(
            text=text[begin:stop],
            start=begin,
            end=stop,
            citations=tuple(number for number in distinct if number in known),
            unknown=tuple(number for number in distinct if number not in known),
            kind=own,
        )


def _spans(bare: str, start: int, end: int) -> list[tuple[int, int]]:
    """Sentences with a word in them."""
    return [
        span for span in sentences(bare, start=start, end=end) if any(letter.isalnum() for letter in bare[slice(*span)])
    ]


def _without(text: str, start: int, end: int, runs: list[re.Match[str]]) -> tuple[list[int], list[int]]:
    """Positions of all characters but citations and the space before them; and how many of these precede each run."""
    kept: list[int] = []
    places: list[int] = []
    done = start
    for run in runs:
        kept.extend(range(done, run.start()))
        done = run.end()
        if _begins_line(text, run.start()):
            while done < end and text[done] in " \t":
                done += 1
        else:
            while kept and text[kept[-1]] in " \t":
                kept.pop()
        places.append(len(kept))
    kept.extend(range(done, end))
    return kept, places


def _begins_line(text: str, position: int) -> bool:
    line = text[text.rfind("\n", 0, position) + 1 : position]
    if len(line) > _LONGEST_LINE_START:
        return False
    return _LINE_START.fullmatch(_RUN.sub("", line)) is not None


def _cuts(text: str, bare: str, run: re.Match[str], place: int) -> bool:
    """Whether a sentence ends at a citation: after a stop, or at a line's end where the next does not go on."""
    following = _SPACE.match(text, run.end())
    after = following.end() if following else run.end()
    if after == len(text) or text[after].islower() or _begins_line(text, run.start()):
        return False
    return "\n" in text[run.end() : after] or _ENDS.search(bare[max(place - 12, 0) : place]) is not None


def _owner(text: str, run: re.Match[str], place: int, spans: list[tuple[int, int]]) -> int:
    """Which sentence a citation belongs to."""
    before = bisect_left(spans, (place, 0))
    previous = max(before - 1, 0)
    if place < spans[previous][1]:
        return previous
    line_end = text.find("\n", run.end())
    follows = text[run.end() : line_end if line_end >= 0 else len(text)].strip()
    if _begins_line(text, run.start()) and any(letter.isalnum() for letter in _RUN.sub("", follows)):
        return min(previous + 1 if before else 0, len(spans) - 1)
    return previous


def _in_code(text: str, position: int) -> bool:
    """Whether it stands between backticks of its line."""
    return text.count("`", text.rfind("\n", 0, position) + 1, position) % 2 == 1
