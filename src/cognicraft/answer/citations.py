"""A model's reply as sentences with the passages that each cites, while the reply comes in.

Takes: pieces of a reply, cut anywhere, and the numbers of the passages that were given. Returns: the text to show, as
soon as it is certain, and at the end its sentences (`cited_sentences.py`). Method: one character at a time, so that
where pieces are cut changes nothing; held back is only what may still become a citation or the end of a sentence
before one. Citations in any usual form (`[1, 2]`, `[1-3]`, `【1】`, `[Source 1]`, `[^1]`) are written `[1][2]`, after
the full stop. Code is left alone. Cost: linear.
What can go wrong: an interval such as `[5, 95]` in the reply is read as citations, and shown as unknown ones.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from cognicraft.answer.citation_forms import CITATION, LONGEST, numbers
from cognicraft.answer.cited_sentences import CitedSentence, cited_sentences
from cognicraft.answer.quoting import quote_span

__all__ = ["CitationReader", "CitedSentence", "quote_span"]

_OPEN = re.compile(rf"[\[【][^\[\]【】\n]{{0,{LONGEST}}}")
_STOPS = ".!?…。！？｡।؟"
_CLOSERS = "\"'”’»)*_"
_RUN = re.compile(rf"([^\S\n]*)((?:\[\d{{1,3}}\][^\S\n]*)+)([{re.escape(_STOPS)}]+[{re.escape(_CLOSERS)}]*)?")
_MARKS = re.compile(r"(?:\[\d{1,3}\][^\S\n]*)*\[\d{1,3}\]")


class CitationReader:
    """Feed it pieces; it gives back the text to show. `close` gives the rest; then `text` and `sentences` are whole.

    known: numbers of the passages that were given.
    """

    def __init__(self, *, known: Collection[int]) -> None:
        self._known = frozenset(known)
        self._shown: list[str] = []
        self._held = ""
        self._open = ""
        self._line = ""
        self._fence = ""
        self._in_code = False
        self._closed = False

    @property
    def text(self) -> str:
        """All that was given back so far."""
        return "".join(self._shown)

    @property
    def sentences(self) -> tuple[CitedSentence, ...]:
        return cited_sentences(self.text, known=self._known)

    def feed(self, piece: str) -> str:
        before = len(self._shown)
        for character in piece:
            self._take(character)
        return "".join(self._shown[before:])

    def close(self) -> str:
        """What was held back. Nothing may be fed after it."""
        before = len(self._shown)
        if not self._closed:
            self._closed = True
            self._settle("")
        return "".join(self._shown[before:])

    def _take(self, character: str) -> None:
        code = self._follow_code(character)
        if code and not self._open:
            self._settle(character)
            self._show(character)
            return
        if self._open:
            bracket = self._open + character
            if character in "]】":
                self._open = ""
                if CITATION.fullmatch(bracket):
                    self._held += "".join(f"[{number}]" for number in numbers(bracket))
                else:
                    self._settle(bracket)
                    self._show(bracket)
                return
            if _OPEN.fullmatch(bracket):
                self._open = bracket
                return
            # No citation after all: what was taken for its beginning is text, and this character may begin one.
            literal, self._open = self._open, ""
            self._settle(literal)
            self._show(literal)
        if character in "[【":
            self._open = character
        elif character.isspace() or (self._held and character in _STOPS + _CLOSERS and "[" in self._held):
            self._held += character
        else:
            self._settle(character)
            self._show(character)

    def _follow_code(self, character: str) -> bool:
        """Whether this character is part of code, which is shown as it is."""
        if character == "\n":
            bare = self._line.strip()
            marks = bare[:3] if bare[:3] in ("```", "~~~") else ""
            ends = self._fence and bare.startswith(self._fence) and not bare.strip(self._fence[0])
            inside = bool(self._fence)
            if ends:
                self._fence = ""
                inside = False
            elif marks and not self._fence:
                self._fence = marks
                inside = True
            self._line = ""
            self._in_code = False
            return inside
        self._line += character
        if self._fence:
            return True
        if character == "`":
            self._in_code = not self._in_code
            return True
        return self._in_code

    def _settle(self, following: str) -> None:
        """Show what was held, citations put after the stop that they stood before; `following` comes next."""
        held, self._held = self._held, ""
        if not following:
            held = (held + self._open).rstrip()
            self._open = ""
        if not held:
            return
        last = self._shown[-1][-1] if self._shown else ""
        self._show(_arranged(held, before=last, following=following[:1]))

    def _show(self, text: str) -> None:
        if not self._shown:
            text = text.lstrip()
        if text:
            self._shown.append(text)


def _arranged(held: str, *, before: str, following: str) -> str:
    """White space, citations and stops: each citation once, after the stop, with a space before it."""

    def place(run: re.Match[str]) -> str:
        space, marks, stop = run[1], run[2], run[3] or ""
        previous = held[run.start() - 1] if run.start() else before
        begins_line = previous in ("", "\n")
        if not space and not begins_line and not previous.isspace() and previous not in "([{":
            space = " "
        bare = marks.rstrip()
        # `[1].5` and `[1].pdf` end nothing.
        ends = bool(stop) and not (run.end() == len(held) and following.isalnum() and stop[-1] in ".!?")
        if ends and not begins_line:
            return f"{stop} {bare}"
        return f"{space[:1]}{marks}{stop}" if not begins_line else f"{space}{marks}{stop}"

    return _MARKS.sub(_each_once, _RUN.sub(place, held))


def _each_once(marks: re.Match[str]) -> str:
    return "".join(f"[{number}]" for number in dict.fromkeys(re.findall(r"\d+", marks[0])))
