"""Which language is a text in?

Takes a text; returns an ISO 639-1 code and a confidence from 0 to 1, with code "" where the text is too short or the
model is not sure. Method: scripts that one language alone writes (kana, Hangul, Thai …) decide; else py3langid (naive
Bayes over byte n-grams, a fork of langid.py; Lui and Baldwin, ACL 2012) on samples from the beginning, the middle and
the end. Cost: loading the model, once in a process, is worth ten thousand questions; then any length costs the same.
What can go wrong: short texts of names and numbers, and texts in several languages, of which only the main one is
given. Among all of its languages the model finds rare ones in short texts (Venetian, Latin, Nigerian Pidgin), so
short ones are held against the widespread languages and those that are there.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from typing import Any

_SAMPLE_CHARACTERS = 1_500
_SHORT_LETTERS = 200
_MIN_LETTERS = 20
_MIN_CONFIDENCE = 0.5
_NOT_WORDS = re.compile(r"\S*[\d@/\\_<>{}=|]\S*")

WIDESPREAD = frozenset({
    "ar", "bg", "bn", "ca", "cs", "da", "de", "el", "en", "es", "et", "fa", "fi", "fr", "gu", "he", "hi", "hr",
    "hu", "id", "it", "ja", "kn", "ko", "lt", "lv", "ml", "mr", "nl", "no", "pa", "pl", "pt", "ro", "ru", "sk",
    "sl", "sv", "sw", "ta", "te", "th", "tr", "uk", "ur", "vi", "zh",
})  # fmt: skip
"""Languages that a short text is taken to be in, besides those that the caller knows of."""

# First word of a character's Unicode name -> the language that alone, or nearly so, is written with it.
_SCRIPTS = {
    "HIRAGANA": "ja", "KATAKANA": "ja", "HANGUL": "ko", "THAI": "th", "LAO": "lo", "GREEK": "el", "HEBREW": "he",
    "ARMENIAN": "hy", "GEORGIAN": "ka", "TAMIL": "ta", "TELUGU": "te", "KANNADA": "kn", "MALAYALAM": "ml",
    "GUJARATI": "gu", "GURMUKHI": "pa", "KHMER": "km", "SINHALA": "si",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Detected:
    """`code` is ISO 639-1 (ISO 639-3 where there is none), "" for unsure; `confidence` is a probability."""

    code: str
    confidence: float


def detect(text: str, *, hint: str = "") -> Detected:
    """The main language of a document.

    hint: a code that the document states of itself; it decides only where the text does not.
    """
    sample = _sample(text)
    letters = _letters(sample)
    if letters < _MIN_LETTERS:
        return Detected(hint, 0.0)
    found = _by_script(sample) or _classify(sample, WIDESPREAD | {hint} if letters < _SHORT_LETTERS else None)
    return found if found.confidence >= _MIN_CONFIDENCE else Detected(hint, found.confidence)


def detect_question(text: str, *, among: Collection[str]) -> Detected:
    """The language of a question.

    among: the languages that there are documents in. One of them is preferred unless the model is sure of another,
    which is then given: a caller sees by `code not in among` that question and documents do not share a language.
    """
    sample = _NOT_WORDS.sub(" ", text[:_SAMPLE_CHARACTERS])
    if not _letters(sample):
        return Detected("", 0.0)
    by_script = _by_script(sample)
    if by_script is not None:
        return by_script
    found = _classify(sample, WIDESPREAD | frozenset(among))
    if found.code in among or found.confidence >= _MIN_CONFIDENCE:
        return found
    known = frozenset(among) & labels()
    if not known:
        return Detected("", found.confidence)
    return _classify(sample, known) if len(known) > 1 else Detected(next(iter(known)), _MIN_CONFIDENCE)


@cache
def labels() -> frozenset[str]:
    """The codes that the model can give."""
    return frozenset(_identifier(None).labels)


def _classify(sample: str, among: frozenset[str] | None) -> Detected:
    code, confidence = _identifier(among & labels() if among else None).classify(sample)
    return Detected(code, confidence)


@cache
def _identifier(among: frozenset[str] | None) -> Any:
    from py3langid import langid

    if among is None:
        return langid.LanguageIdentifier.from_model_file(langid.MODEL_FILE, norm_probs=True)
    # The tables are shared with the full model; only the columns of these languages are copied.
    everything = _identifier(None)
    part = langid.LanguageIdentifier.__new__(langid.LanguageIdentifier)
    for name in langid.LanguageIdentifier.__slots__:
        setattr(part, name, getattr(everything, name))
    part.set_languages(sorted(among))
    return part


def _by_script(sample: str) -> Detected | None:
    """The language whose own script the text is in. Japanese is mostly ideographs; a tenth of kana settles it."""
    letters = [character for character in sample[:600] if character > "\u02ff" and character.isalpha()]
    if len(letters) * 2 < sum(character.isalpha() for character in sample[:600]):
        return None
    names = (re.split("[ -]", unicodedata.name(character, ""), maxsplit=1)[0] for character in letters)
    scripts = Counter(_SCRIPTS.get(name, "") for name in names)
    for code, count in scripts.items():
        if code and count >= len(letters) * (0.1 if code == "ja" else 0.5):
            return Detected(code, 1.0)
    return None


def _sample(text: str) -> str:
    """Beginning, middle and end, without what is in no language: numbers, addresses, code."""
    if len(text) > 3 * _SAMPLE_CHARACTERS:
        middle = len(text) // 2
        text = "\n".join(
            (text[:_SAMPLE_CHARACTERS], text[middle : middle + _SAMPLE_CHARACTERS], text[-_SAMPLE_CHARACTERS:])
        )
    return _NOT_WORDS.sub(" ", text)


def _letters(sample: str) -> int:
    """How many letters; an ideograph says as much as a short word."""
    return sum((3 if character > "\u2e7f" else 1) for character in sample if character.isalpha())
