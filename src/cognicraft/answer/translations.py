"""Pairs of a text and its translation, as glossaries and translation memories hold them.

Takes: passages. Returns: pairs with the number of the passage that each stands in, in its order. Method: rules for the
shapes in which readers give them: a row `Sign in | target: Anmelden | status: approved`, lines `EN: …` and `DE: …`
after one another, `"Sign in" → "Anmelden"`. A pair counts as approved unless it says otherwise (rejected, draft, …).
Cost: linear. What can go wrong: a table with columns named `English` and `German` that hold no translations of each
other is taken for pairs; pairs in other shapes are seen by the model only as part of their passage.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cognicraft.answer.passages import EvidencePassage

_SOURCE = "source original source_text source_language src msgid"
_TARGET = "target translation translated target_text target_language tgt trans approved_translation msgstr"
_LANGUAGES = (
    "en english de german deutsch fr french français es spanish español it italian italiano pt portuguese português nl "
    "dutch nederlands sv swedish svenska da danish dansk no nb norwegian norsk fi finnish suomi pl polish polski cs "
    "czech čeština ru russian русский uk ukrainian zh chinese 中文 ja japanese 日本語 ko korean 한국어 "
    "ar arabic tr turkish türkçe el greek hu hungarian magyar ro romanian he hebrew hi hindi vi vietnamese th thai id"
)
_LABELS = frozenset(f"{_SOURCE} {_TARGET} {_LANGUAGES}".split())
_TARGETS = frozenset(_TARGET.split())
_STATUS = frozenset({"status", "approved", "state", "approval"})
_NOT_APPROVED = frozenset({"rejected", "draft", "deprecated", "obsolete", "false", "no", "pending", "forbidden", "0"})
_LABELLED = re.compile(r"\s*(?P<label>[^\W\d][\w .-]{0,30}?)\s*(?:\((?P<note>[^)]{1,12})\))?\s*:\s+(?P<value>\S.*)")
_ARROW = re.compile(r"\s*(?:[-*•]\s+)?(?P<source>\S.{0,300}?)\s+(?:→|⇒|=>|->|⟶)\s+(?P<target>\S.{0,300})")
_QUOTES = "\"'“”„«»‘’`"


@dataclass(frozen=True, slots=True)
class TranslationPair:
    """A text with its approved translation; both word for word, from the passage of that number."""

    source: str
    target: str
    number: int


def translation_pairs(passages: Sequence[EvidencePassage], *, limit: int = 40) -> tuple[TranslationPair, ...]:
    """The approved pairs of the passages, each once, the first `limit` of them."""
    found: dict[tuple[str, str], TranslationPair] = {}
    for passage in passages:
        for source, target in _pairs(passage.text):
            source, target = source.strip().strip(_QUOTES), target.strip().strip(_QUOTES)
            if source and target and len(found) < limit:
                found.setdefault((source, target), TranslationPair(source, target, passage.number))
    return tuple(found.values())


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    lines: list[tuple[str, str]] = []
    for line in [*text.splitlines(), ""]:
        if " | " in line:
            yield from _of_row(line)
            continue
        labelled = _LABELLED.fullmatch(line)
        label = _label(labelled["label"]) if labelled else ""
        if labelled and (label in _LABELS or label in _STATUS):
            if label in {known for known, _ in lines}:
                yield from _of_lines(lines)
                lines = []
            lines.append((label, labelled["value"]))
            continue
        yield from _of_lines(lines)
        lines = []
        if arrow := _ARROW.fullmatch(line):
            yield arrow["source"], arrow["target"]


def _of_row(line: str) -> Iterator[tuple[str, str]]:
    """`Sign in | target: Anmelden | status: approved`, or with a label before the first cell as well."""
    first, *rest = line.split(" | ")
    cells = [(_label(cell["label"]), cell["value"]) for cell in map(_LABELLED.fullmatch, rest) if cell]
    head = _LABELLED.fullmatch(first)
    if head and _label(head["label"]) in _LABELS:
        yield from _of_lines([(_label(head["label"]), head["value"]), *cells])
    else:
        yield from _of_lines([("source", first), *cells])


def _of_lines(lines: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """The first of the texts with each of the others."""
    if any(label in _STATUS and value.strip().casefold() in _NOT_APPROVED for label, value in lines):
        return
    texts = [(label, value) for label, value in lines if label in _LABELS]
    if len(texts) < 2:
        return
    # `target` before `source` happens in tables; the text that is called source comes first.
    texts.sort(key=lambda one: one[0] in _TARGETS)
    for _, target in texts[1:]:
        yield texts[0][1], target


def _label(text: str) -> str:
    """`de-AT` and `DE` are `de`, `Source text` is `source_text`."""
    bare = re.sub(r"[\s.]+", "_", text.strip()).casefold()
    short = re.fullmatch(r"([a-z]{2})[-_][a-z]{2,4}", bare)
    return short[1] if short else bare
