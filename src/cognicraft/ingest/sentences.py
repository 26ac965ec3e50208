"""Where sentences begin and end, in any of the scripts that the product reads.

Takes a text (or a span of one); returns half-open character spans in text order. They do not overlap, are
free of white space at both ends, and together hold every non-white character, so a sentence can be quoted
word for word. Method: rules, our own. A stop ends a sentence when white space and something that can begin
a sentence follow, and what stands before it is no abbreviation, initial, list number or German ordinal.
Full-width and Indic stops need no white space. Line structure counts as well: a blank line, a bullet or
numbered line, a row of a table (`a | b`), a line `key: value` after another and a line that stops far short of its
neighbours all end what came before; other line ends are taken for soft wraps. Cost: linear, a few MB per CPU-second.
What can go wrong: a capitalised word after an abbreviation that may end a sentence ("Apple Inc. Reports") is read as
one sentence; Thai and other scripts without stops are cut at lines only.
"""

from __future__ import annotations

import re

# Closing marks that belong to the sentence before them, and footnote numbers as in `end.[12]`.
_CLOSERS = "\"'”’»›)\\]}」』）】》〉"
_OPENERS = "\"'“‘«‹([{「『（【《〈¿¡*_-–—•#"
_WIDE_STOPS = "。！？｡।॥۔؟։።។။"
_BOUNDARY = re.compile(
    rf"(?P<wide>[{_WIDE_STOPS}]+[{_CLOSERS}]*)"
    rf"|(?P<stop>[.!?…]+[{_CLOSERS}]*(?:\[\d{{1,3}}\])*)(?=\s|$|[{_WIDE_STOPS}])"
    r"|(?P<line>[^\S\n]*\n\s*)"
)
_BULLET = re.compile(r"(?:[-*+•‣▪●○◦·–—]|\(?(?:\d{1,3}|[A-Za-z]|[ivxIVX]{1,5})[.)])[ \t]+\S")
_LIST_NUMBER = re.compile(r"[ \t]*\(?(?:\d{1,3}(?:\.\d{1,3})*|[A-Za-z]|[ivxIVX]{1,5})\Z")
_WORD_BEFORE = re.compile(r"[\w.&'’]*\w\Z")
_WORD_AFTER = re.compile(r"[^\W\d_]+")
_TABLE_CELL = " | "
# `price: 12`, one field a line: a line of such lines is no wrapped text.
_FIELD = re.compile(r"[ \t]*[^\W\d_][\w .'/-]{0,40}:[ \t]+\S")


def _words(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


# Never the end of a sentence: something has to follow.
_NEVER_LAST = _words(
    "mr mrs ms mx dr prof hon rev gen col lt capt sgt gov sen rep pres messrs mme mlle st mt ft "
    "fig figs eq eqs sect ch chap vol vols pp ed eds "
    "e.g i.e eg ie cf viz vs v resp approx ca incl esp viz dept univ "
    "z.b d.h u.a bzw vgl sog usw.f bspw hr fr zb "
    "sr.a sra srta dña ud uds p.ej ej pág págs núm м.б т.е т.д см рис табл стр"
)
# Before a number only (`No. 5`), else an ordinary word (`He said no.`).
_BEFORE_NUMBER = _words("no nos p n art sec ref refs app para tab abs nr núm item ver")
# May end a sentence: only where the next word is one that begins sentences.
_MAYBE_LAST = _words(
    "inc corp ltd co llc plc bros jr sr esq al etc est ext ave blvd rd dept assn ph.d m.d b.a m.a m.sc b.sc "
    "a.m p.m b.c a.d jan feb mar apr jun jul aug sep sept oct nov dec mon tue wed thu fri sat sun "
    "usw evtl ggf ggü inkl mio mrd tsd sog ee.uu s.a s.l"
)
# What commonly begins a sentence and hardly ever a name.
_STARTERS = _words(
    "the a an this that these those it its he she they we you i his her their our my in on at as for from by with "
    "to if when while where since after before during although though because however moreover furthermore thus "
    "therefore hence so but and or yet also there here what who why how which once under over about according each "
    "every all some many most more both no not one two another other such then now today unlike despite based "
    "der die das ein eine er sie es wir ich in im am auf mit für von nach bei wenn als und aber doch auch dies diese "
    "el la los las un una en es se su con por para como cuando pero y no este esta "
    "le les une il elle on nous dans sur avec pour par ce cette mais et"
)
_GERMAN_MONTHS = _words(
    "januar jänner februar märz april mai juni juli august september oktober november dezember jahrhundert jahrhunderts"
)


def sentences(text: str, *, start: int = 0, end: int | None = None) -> list[tuple[int, int]]:
    """Spans of the sentences of `text[start:end]`, in positions of `text`; none for blank text."""
    stop = len(text) if end is None else min(end, len(text))
    begin = max(start, 0)
    spans: list[tuple[int, int]] = []
    for match in _BOUNDARY.finditer(text, begin, stop):
        if match.start() < begin:
            continue
        if match["line"] is not None:
            boundary = _line_ends(text, match, start=max(start, 0), end=stop)
        elif match["wide"] is not None:
            boundary = True
        else:
            boundary = _stop_ends(text, match, start=max(start, 0), end=stop)
        if boundary:
            _add(text, begin, match.end(), spans)
            begin = match.end()
    _add(text, begin, stop, spans)
    return spans


def _add(text: str, begin: int, end: int, spans: list[tuple[int, int]]) -> None:
    piece = text[begin:end]
    bare = piece.strip()
    if bare:
        first = begin + len(piece) - len(piece.lstrip())
        spans.append((first, first + len(bare)))


def _line_ends(text: str, match: re.Match[str], *, start: int, end: int) -> bool:
    """Whether a line end is also the end of a sentence."""
    if match[0].count("\n") > 1:
        return True
    line_start = max(text.rfind("\n", start, match.start()) + 1, start)
    after = match.end()
    if after >= end:
        return True
    next_end = text.find("\n", after, end)
    next_end = end if next_end < 0 else next_end
    if _BULLET.match(text, after, end):
        return True
    if text.find(_TABLE_CELL, line_start, match.start()) >= 0 or text.find(_TABLE_CELL, after, next_end) >= 0:
        return True
    if _FIELD.match(text, after, next_end) and (
        text[match.start() - 1] in ".!?" or _FIELD.match(text, line_start, match.start())
    ):
        return True
    # A line that stops far short of its neighbours was not wrapped: a heading, a verse, an address, a label.
    before_start = max(text.rfind("\n", start, max(line_start - 1, start)) + 1, start)
    length = match.start() - line_start
    neighbour = max(next_end - after, line_start - 1 - before_start)
    first = text[after]
    return (
        length < 0.6 * neighbour
        and text[match.start() - 1] not in ",;-–—("
        and (first.isupper() or first.isdigit() or first in _OPENERS)
    )


def _stop_ends(text: str, match: re.Match[str], *, start: int, end: int) -> bool:
    """Whether a full stop, question or exclamation mark (with its closing marks) ends a sentence."""
    after = match.end()
    while after < end and (text[after].isspace() or text[after] in _OPENERS):
        after += 1
    if after >= end:
        return True
    line_end = text.find("\n", match.end(), after) >= 0
    follower = _WORD_AFTER.match(text, after, min(after + 40, end))
    word_after = follower[0] if follower else ""
    # A small letter goes on with the sentence (`Yahoo! is`), but for a name (`iPhone`) and a text without capitals.
    if (
        text[after].islower()
        and not any(letter.isupper() for letter in word_after[1:3])
        and _has_capitals(text, max(start, after - 300), min(end, after + 300))
    ):
        return False
    if not match[0].startswith(".") or match[0].startswith(".."):
        return True
    return not _is_abbreviation(text, match, start, word_after, text[after], line_end)


def _has_capitals(text: str, start: int, end: int) -> bool:
    window = text[start:end]
    return window != window.lower()


def _is_abbreviation(
    text: str, match: re.Match[str], start: int, word_after: str, first_after: str, line_end: bool
) -> bool:
    dot = match.start()
    if match[0] != "." and not match[0].startswith((".)", ".]")):
        return False
    # No further back than a word can reach: a text of one line must not be read again at each of its stops.
    window = max(dot - 24, start)
    line_start = text.rfind("\n", window, dot) + 1
    at_line_start = line_start > 0 or window == start
    before = _WORD_BEFORE.search(text, max(window, line_start), dot)
    if before is None:
        return False
    if at_line_start and not line_end and _LIST_NUMBER.match(text, max(window, line_start), dot):
        return True
    word = before[0]
    lower = word.lower()
    starter = word_after.lower() in _STARTERS
    if lower in _BEFORE_NUMBER and first_after.isdigit():
        return True
    if lower in _NEVER_LAST:
        return True
    if word.isdigit():
        return len(word) <= 2 and word_after.lower() in _GERMAN_MONTHS
    if len(word) == 1 and word.isalpha():
        # An initial (`J. Smith`), else the last word of a sentence (`vitamin C. The …`).
        return word.isupper() and not starter
    if "." in word and all(len(part) <= 2 for part in word.split(".")):
        return not starter
    return lower in _MAYBE_LAST and not starter and first_after != "\n"
