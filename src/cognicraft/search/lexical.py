"""Text to terms, and terms to BM25 weights: the one tokenizer of every engine.

Takes: the lexical text of a chunk with its language, or a question with the languages of the workspace.
Returns: a `SparseVector` (for a document also its term sequence, for phrases and Boolean search).
Method: Okapi BM25 (Robertson et al., TREC-3, 1994), split in two: the document side,
    tf·(k1+1) / (tf + k1·(1 - b + b·length/average_length)), is stored; the engine multiplies by idf and by the count
    of the term in the question. Pairs of neighbouring terms are weighed in the same way and count a fifth of a term
    (ordered pairs of the sequential dependence model: Metzler and Croft, SIGIR 2005). Terms: Unicode words (NFKC, case
    folded), Snowball stems by language, stop words dropped, bigrams where a script has no spaces, identifiers
    (`fooBar`, `foo_bar`, `foo.bar`, `foo-bar`) in parts and joined, numbers in one spelling (`19,604` is `19604`).
Cost: one pass of a regular expression and one dictionary look-up a word; a new word is analysed once a process.
What can go wrong: two terms may share a 32-bit index and then count as one: of a million different terms, one in 4,000
    meets another. A text in a language without a stemmer matches by whole words only.

The average length is a constant, because weights are stored: see docs/decisions/0008-lexical-arm.md.
"""

from __future__ import annotations

import hashlib
import re
import threading
import unicodedata
from collections.abc import Collection, Sequence

import numpy as np
import Stemmer

from cognicraft.records import IndexArray, SparseVector
from cognicraft.search.stopwords import STOP_WORDS

STEMMERS = {
    "ar": "arabic",
    "ca": "catalan",
    "cs": "czech",
    "da": "danish",
    "de": "german",
    "el": "greek",
    "en": "english",
    "eo": "esperanto",
    "es": "spanish",
    "et": "estonian",
    "eu": "basque",
    "fa": "persian",
    "fi": "finnish",
    "fr": "french",
    "ga": "irish",
    "hi": "hindi",
    "hu": "hungarian",
    "hy": "armenian",
    "id": "indonesian",
    "it": "italian",
    "lt": "lithuanian",
    "nb": "norwegian",
    "ne": "nepali",
    "nl": "dutch",
    "nn": "norwegian",
    "no": "norwegian",
    "pl": "polish",
    "pt": "portuguese",
    "ro": "romanian",
    "ru": "russian",
    "sr": "serbian",
    "st": "sesotho",
    "sv": "swedish",
    "ta": "tamil",
    "tr": "turkish",
    "yi": "yiddish",
}
"""ISO 639-1 code -> Snowball algorithm."""

# Languages that write 1.234,5 for what is 1,234.5 in English.
_DECIMAL_COMMA = frozenset({
    "ca", "cs", "da", "de", "el", "es", "et", "eu", "fi", "fr", "hu", "id", "it", "lt", "nb", "nl", "nn", "no", "pl",
    "pt", "ro", "ru", "sr", "sv", "tr",
})  # fmt: skip

# Scripts written without spaces (Korean has them, but its endings make bigrams the better key).
_UNSPACED = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ece\u1000-\u1049\u1050-\u109f\u1780-\u17d3"
    "\u3005-\u3007\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff"
)
# Python's \w has no combining marks, without which Indic words fall to pieces.
_MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    "\u0900-\u0903\u093a-\u094f\u0951-\u0963\u0981-\u0983\u09bc-\u09d7\u0a01-\u0a03\u0a3c-\u0a51\u0a81-\u0a83"
    "\u0abc-\u0acd\u0b01-\u0b03\u0b3c-\u0b57\u0b82\u0bbe-\u0bcd\u0c00-\u0c04\u0c3e-\u0c56\u0c81-\u0c83"
    "\u0cbc-\u0cd6\u0d00-\u0d03\u0d3b-\u0d57\u0d81-\u0d83\u0dca-\u0df3\u0f71-\u0f84"
)
_W = rf"[\w{_MARKS}]"

_UNSPACED_RUN = re.compile(f"[{_UNSPACED}]+")
_TOKEN = re.compile(
    rf"\b[a-zA-Z](?:\+\+|\#)(?!\w)|\d+(?:[.,]\d+)+(?!\w)|{_W}+(?:[.\-\u2010\u2011]{_W}+)*",
)
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*\Z")
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?\Z")
_THOUSANDS_WITH_POINTS = re.compile(r"\d{1,3}(?:\.\d{3})+(?:,\d+)?\Z")
_SEPARATORS = re.compile(r"[._\-\u2010\u2011]+")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[^\W\d_])(?=\d)|(?<=\d)(?=[^\W\d_])")
_DIACRITICS = re.compile("[\u0640\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u064b-\u065f\u0670]+")
_LATIN_OR_GREEK = re.compile("[\u00c0-\u024f\u0370-\u03ff\u1e00-\u1fff]")

_CACHE_ENTRIES = 500_000

PAIR_WEIGHT = 0.2
"""What a pair of neighbouring terms counts in a question, where a term counts 1."""
# Odd 64-bit constants for multiply-shift hashing of a pair of term indices.
_FIRST, _SECOND = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)


class LexicalEncoder:
    """BM25 weights and term sequences. Thread-safe; one per process is enough.

    k1: how slowly repetition of a term stops counting; b: how much a long text is discounted (0..1);
    average_length: in terms, the length that is discounted by nothing.
    """

    def __init__(self, *, k1: float = 1.2, b: float = 0.75, average_length: float = 60.0) -> None:
        if not (k1 >= 0 and 0 <= b <= 1 and average_length > 0):
            raise ValueError(f"BM25 needs k1 >= 0, 0 <= b <= 1 and average_length > 0, not {k1}, {b}, {average_length}")
        self.k1 = k1
        self.b = b
        self.average_length = average_length
        self._languages: dict[str, _Language] = {}
        self._indices: dict[str, int] = {}
        self._lock = threading.Lock()

    def terms(self, text: str, *, language: str, without: Collection[str] = ()) -> list[str]:
        """The analysed terms in text order; stop words are left out, an identifier's parts stand before the whole.

        without: casefolded words to leave out as well.
        """
        analysed = self._language(language)
        found: list[str] = []
        for token in _tokens(text):
            if not (without and _is_plain(token) and token.casefold() in without):
                found += analysed[token]
        return found

    def function_words(self, question: str, *, languages: Collection[str]) -> frozenset[str]:
        """The words of a question that are stop words in its own language, as far as these languages can tell.

        In a workspace of several languages "the" would else be a rare and weighty word of the German texts. The
        question's language is the one in which most of its words are stop words; on a tie all of those.
        """
        stopped = self._stop_words(question, languages)
        most = max(map(len, stopped.values()), default=0)
        return frozenset(word for found in stopped.values() if len(found) == most for word in found)

    def reads_as(self, question: str, *, languages: Collection[str], rather_than: str) -> bool:
        """Whether more of the question's words are stop words in one of the languages than in `rather_than`."""
        stopped = self._stop_words(question, {*languages, rather_than})
        own = len(stopped.get(rather_than, ()))
        return any(len(words) > own for code, words in stopped.items() if code in languages)

    def language_by_function_words(self, question: str) -> str:
        """The one language in which at least two of the question's words, and most of them, are stop words; else ""."""
        counts = sorted(((len(words), code) for code, words in self._stop_words(question, STOP_WORDS).items()))
        (second, _), (most, code) = counts[-2:]
        return code if most >= 2 and most > second else ""

    @staticmethod
    def _stop_words(question: str, languages: Collection[str]) -> dict[str, list[str]]:
        words = [token.casefold() for token in _tokens(question) if _is_plain(token)]
        return {
            code: [word for word in words if word in STOP_WORDS[code]] for code in set(languages) if code in STOP_WORDS
        }

    def document(self, text: str, *, language: str) -> tuple[SparseVector, tuple[str, ...]]:
        """BM25 document weights without idf, and the term sequence. A text without terms gives an empty vector."""
        terms = tuple(self.terms(text, language=language))
        if not terms:
            return SparseVector(np.empty(0, np.uint32), np.empty(0, np.float32)), terms
        single = self._hashes(terms)
        indices, counts = np.unique(np.concatenate((single, _pairs(single))), return_counts=True)
        norm = self.k1 * (1.0 - self.b + self.b * len(terms) / self.average_length)
        weights = counts * (self.k1 + 1.0) / (counts + norm)
        return SparseVector(indices, weights.astype(np.float32)), terms

    def query(self, text: str, *, languages: Collection[str]) -> SparseVector:
        """Term counts: every word in the form of each language, a form that languages share counted once.

        Pairs of neighbouring terms count `PAIR_WEIGHT`, however often they stand there. An empty `languages` means that
        nothing is known: the words count as they stand. A question of stop words only gives an empty vector.
        """
        weights: dict[int, float] = {}
        without = self.function_words(text, languages=languages)
        for language in sorted(set(languages)) or [""]:
            single = self._hashes(self.terms(text, language=language, without=without))
            indices, counts = np.unique(single, return_counts=True)
            own = dict.fromkeys(_pairs(single).tolist(), PAIR_WEIGHT)
            own.update(zip(indices.tolist(), counts.tolist(), strict=True))
            for index, weight in own.items():
                weights[index] = max(weight, weights.get(index, 0.0))
        ordered = sorted(weights)
        values = np.array([weights[index] for index in ordered], dtype=np.float32)
        return SparseVector(np.array(ordered, dtype=np.uint32), values)

    def _language(self, language: str) -> _Language:
        found = self._languages.get(language)
        if found is None:
            with self._lock:
                found = self._languages.setdefault(language, _Language(language))
        return found

    def _hashes(self, terms: Sequence[str]) -> IndexArray:
        known = self._indices
        return np.array([known.get(term) or self._index(term) for term in terms], dtype=np.uint32)

    def _index(self, term: str) -> int:
        if len(self._indices) > _CACHE_ENTRIES:
            self._indices.clear()
        index = term_index(term)
        self._indices[term] = index
        return index


def term_index(term: str) -> int:
    """The 32-bit index of a term, the same on every machine and in every version; never 0."""
    return int.from_bytes(hashlib.blake2b(term.encode("utf-8", "surrogatepass"), digest_size=4).digest(), "little") or 1


def _pairs(terms: IndexArray) -> IndexArray:
    """Indices of the pairs of neighbours; order counts. Wraps around in 64 bits by intent; the upper half is taken."""
    wide = terms.astype(np.uint64)
    return ((wide[:-1] * _FIRST + wide[1:] * _SECOND) >> np.uint64(32)).astype(np.uint32)


def _tokens(text: str) -> list[str]:
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
        if _UNSPACED_RUN.search(text):
            text = _UNSPACED_RUN.sub(r" \g<0> ", text)
    return _TOKEN.findall(text)


def _is_plain(token: str) -> bool:
    """In one case, or with a capital at its head: not an identifier such as `isA`, which no stop word hides."""
    return token.islower() or token.istitle() or token.isupper()


class _Language(dict[str, tuple[str, ...]]):
    """Raw token -> its terms in one language; a missing token is analysed and kept."""

    def __init__(self, code: str) -> None:
        super().__init__()
        self._stop_words = STOP_WORDS.get(code, frozenset())
        self._decimal_comma = code in _DECIMAL_COMMA
        algorithm = STEMMERS.get(code)
        # The stemmer object is not thread-safe; its own cache is off because this dictionary is one.
        self._stemmer = Stemmer.Stemmer(algorithm, 0) if algorithm else None
        self._lock = threading.Lock()

    def __missing__(self, token: str) -> tuple[str, ...]:
        if len(self) > _CACHE_ENTRIES:
            self.clear()
        terms = tuple(self._analyse(token))
        self[token] = terms
        return terms

    def _analyse(self, token: str) -> list[str]:
        if _UNSPACED_RUN.match(token):
            return [token] if len(token) == 1 else [token[i : i + 2] for i in range(len(token) - 1)]
        if _NUMBER.match(token):
            return [_number(token, decimal_comma=self._decimal_comma)]
        parts = [part for piece in _SEPARATORS.split(token) if piece for part in _CAMEL.split(piece)]
        if not parts:
            return []
        if len(parts) == 1:
            return self._word(parts[0])
        terms = [term for part in parts if len(part) > 1 or part.isdigit() for term in self._word(part)]
        whole = self._form("".join(parts).casefold())
        return [*terms, whole] if whole else terms

    def _word(self, word: str) -> list[str]:
        word = word.casefold()
        if word in self._stop_words:
            return []
        form = self._form(word)
        return [form] if form else []

    def _form(self, word: str) -> str:
        if not word.isascii():
            word = _DIACRITICS.sub("", word)
        if self._stemmer is not None and not any(map(str.isdigit, word)):
            with self._lock:
                word = self._stemmer.stemWord(word)
        return word if word.isascii() else _fold(word)


def _number(text: str, *, decimal_comma: bool) -> str:
    """One spelling: no separators between thousands, a point before decimals."""
    if decimal_comma and _THOUSANDS_WITH_POINTS.match(text):
        return text.replace(".", "").replace(",", ".")
    if _THOUSANDS.match(text):
        return text.replace(",", "")
    if decimal_comma and text.count(",") == 1 and "." not in text:
        return text.replace(",", ".")
    return text


def _fold(word: str) -> str:
    """Accents off Latin and Greek letters only: in Cyrillic or Indic scripts a mark makes another letter."""
    if not _LATIN_OR_GREEK.search(word):
        return word
    kept: list[str] = []
    for character in word:
        if _LATIN_OR_GREEK.match(character):
            kept += [c for c in unicodedata.normalize("NFD", character) if not unicodedata.combining(c)]
        else:
            kept.append(character)
    return "".join(kept)
