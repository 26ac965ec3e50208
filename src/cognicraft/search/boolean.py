"""A rule typed by a person to a Boolean query over analysed terms.

    query  := all ( OR all )*            OR or ||
    all    := one ( [AND] one )*         AND, && or nothing between
    one    := ( NOT | ! | - ) one  |  "(" query ")"  |  "a phrase"  |  word

Takes: the text, the lexical encoder, the languages of the workspace. Returns: the query, and the vector to rank by (its
    words outside NOT). Operators are upper case, so that a plain question is the AND of its content words.
Method: a word is looked for in its form of each language; a word that gives several terms (an identifier, a hyphenated
    word, a run of Chinese) is a phrase of them. Stop words are dropped, as they are from the documents.
Cost: linear in the text.
What can go wrong: brackets or quotes that do not close, an operator without its word, nothing but stop words: each is
    a `FilterError`.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from cognicraft.errors import FilterError
from cognicraft.records import AllOf, AnyOf, BooleanQuery, NoneOf, Phrase, SparseVector, Term
from cognicraft.search.lexical import LexicalEncoder

_NESTING = 50
_LEXEME = re.compile(
    r"""\s+
    | (?P<bracket>[()])
    | (?P<phrase>["\u201c\u201d](?P<inside>[^"\u201c\u201d]*)(?P<close>["\u201c\u201d])?)
    | (?P<operator>&&|\|\||(?:AND|OR|NOT)(?=[\s()"\u201c]|$))
    | (?P<prefix>(?<![^\s(!-])[!-](?=[^\s)]))
    | (?P<word>[^\s()"\u201c\u201d]+?(?=&&|\|\||[\s()"\u201c\u201d]|$))
    """,
    re.VERBOSE,
)
_OPERATORS = {"AND": "AND", "&&": "AND", "OR": "OR", "||": "OR", "NOT": "NOT"}
_REMEDY = 'Write words, "phrases", AND, OR, NOT and brackets, for example: (cat OR dog) AND NOT "guinea pig".'


@dataclass(frozen=True, slots=True)
class _Lexeme:
    kind: str  # "word", "phrase", "(", ")", "AND", "OR", "NOT", "end"
    text: str
    position: int


def parse(query: str, *, encoder: LexicalEncoder, languages: Collection[str]) -> tuple[BooleanQuery, SparseVector]:
    """The query as a tree, and the vector to rank by.

    Raises: FilterError with the position (from 1) and what was expected.
    """
    parser = _Parser(query, encoder, sorted(set(languages)) or [""])
    tree = parser.query(0)
    parser.expect("end")
    if tree is None:
        raise FilterError(f"The Boolean query {query!r} has no word to search for.", remedy=_REMEDY)
    return tree, encoder.query(" ".join(parser.positive), languages=languages)


class _Parser:
    """Recursive descent. A part that holds stop words only is None, and what joins it goes on without it."""

    def __init__(self, text: str, encoder: LexicalEncoder, languages: list[str]) -> None:
        self._text = text
        self._encoder = encoder
        self._languages = languages
        self._lexemes = _lexemes(text)
        self._at = 0
        self._negations = 0
        self._without = encoder.function_words(text, languages=languages)
        self.positive: list[str] = []

    def query(self, depth: int) -> BooleanQuery | None:
        if depth > _NESTING:
            raise self._error(f"fewer than {_NESTING} brackets inside each other")
        parts = [self._all(depth)]
        while self._take("OR"):
            parts.append(self._all(depth))
        return _joined(parts, AnyOf)

    def _all(self, depth: int) -> BooleanQuery | None:
        parts = [self._one(depth)]
        while self._take("AND") or self._next.kind not in ("OR", ")", "end"):
            parts.append(self._one(depth))
        return _joined(parts, AllOf)

    def _one(self, depth: int) -> BooleanQuery | None:
        if depth > _NESTING:
            raise self._error(f"fewer than {_NESTING} parts inside each other")
        if self._take("NOT"):
            self._negations += 1
            part = self._one(depth + 1)
            self._negations -= 1
            return None if part is None else NoneOf(part)
        if self._take("("):
            part = self.query(depth + 1)
            self.expect(")")
            return part
        lexeme = self._next
        if lexeme.kind not in ("word", "phrase"):
            raise self._error('a word, a "phrase", NOT or "("')
        self._at += 1
        if self._negations % 2 == 0:
            self.positive.append(lexeme.text)
        return self._words(lexeme.text)

    def _words(self, text: str) -> BooleanQuery | None:
        sequences = dict.fromkeys(
            tuple(self._encoder.terms(text, language=language, without=self._without)) for language in self._languages
        )
        forms = tuple(dict.fromkeys(terms[0] for terms in sequences if len(terms) == 1))
        parts: list[BooleanQuery | None] = [Term(forms)] if forms else []
        parts += [Phrase(terms) for terms in sequences if len(terms) > 1]
        return _joined(parts, AnyOf)

    def expect(self, kind: str) -> None:
        if not self._take(kind):
            raise self._error("the end of the query" if kind == "end" else f'"{kind}"')

    @property
    def _next(self) -> _Lexeme:
        return self._lexemes[self._at]

    def _take(self, kind: str) -> bool:
        if self._next.kind != kind:
            return False
        if kind != "end":
            self._at += 1
        return True

    def _error(self, expected: str) -> FilterError:
        found = "the end" if self._next.kind == "end" else repr(self._next.text)
        return FilterError(
            f"The Boolean query {self._text!r} does not parse at character {self._next.position + 1}: "
            f"expected {expected}, found {found}.",
            remedy=_REMEDY,
        )


def _joined(parts: list[BooleanQuery | None], kind: type[AllOf] | type[AnyOf]) -> BooleanQuery | None:
    kept = tuple(part for part in parts if part is not None)
    if len(kept) < 2:
        return kept[0] if kept else None
    return kind(kept)


def _lexemes(text: str) -> list[_Lexeme]:
    found: list[_Lexeme] = []
    position = 0
    while position < len(text):
        match = _LEXEME.match(text, position)
        if match is None:  # pragma: no cover - the pattern covers every character
            raise FilterError(f"The Boolean query {text!r} does not parse at character {position + 1}.")
        kind, start, position = match.lastgroup, position, match.end()
        if match["bracket"]:
            found.append(_Lexeme(match["bracket"], match["bracket"], start))
        elif match["operator"]:
            found.append(_Lexeme(_OPERATORS[match["operator"]], match["operator"], start))
        elif match["prefix"]:
            found.append(_Lexeme("NOT", match["prefix"], start))
        elif match["phrase"]:
            if match["close"] is None:
                raise FilterError(
                    f"The Boolean query {text!r} does not parse at character {start + 1}: the quote is not closed.",
                    remedy=_REMEDY,
                )
            found.append(_Lexeme("phrase", match["inside"], start))
        elif kind is not None:
            found.append(_Lexeme("word", match["word"], start))
    found.append(_Lexeme("end", "", len(text)))
    return found
