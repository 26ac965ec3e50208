"""A metadata filter typed by a person to a `Filter`, and back.

    filter    := all ( or all )*
    all       := one ( and one )*
    one       := not one  |  "(" filter ")"  |  condition
    condition := field = value | field != value | field < number (also <= > >=) | number <= field < number
               | field in (value, …) | field not in (value, …) | field exists
    value     := "text" or 'text' | number | true | false          field := name or `any name`

Takes and returns: `year >= 2022 and company in ("AAPL", "MSFT") and not draft = true`. Words are in any case.
Cost: linear in the text.
What can go wrong: anything else is a `FilterError` with the position (from 1) and what was expected.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from cognicraft.errors import FilterError
from cognicraft.records import And, Equals, Exists, Filter, In, Not, Or, Range, Scalar

_NESTING = 50
_LEXEME = re.compile(
    r"""(?P<space>\s+)
    | (?P<mark>==|!=|>=|<=|[()=<>,])
    | (?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    | (?P<field>`[^`]+`)
    | (?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\w.]))
    | (?P<name>[^\W\d][\w.\-/]*)
    """,
    re.VERBOSE | re.DOTALL,
)
_NAME = re.compile(r"[^\W\d][\w.\-/]*")
_WORDS = frozenset({"and", "or", "not", "in", "exists", "true", "false"})
_BOUNDS = {">=": "gte", ">": "gt", "<=": "lte", "<": "lt"}
_TURNED = {">=": "<=", ">": "<", "<=": ">=", "<": ">"}
_REMEDY = 'For example: year >= 2022 and company in ("AAPL", "MSFT") and not draft = true.'


@dataclass(frozen=True, slots=True)
class _Lexeme:
    kind: str  # "mark", "text", "field", "number", "name", "word", "end"
    text: str
    position: int


def parse_filter(text: str) -> Filter:
    """Raises: FilterError with the position (from 1) and what was expected."""
    parser = _Parser(text)
    tree = parser.any(0)
    parser.end()
    return tree


def format_filter(tree: Filter) -> str:
    """The filter as `parse_filter` reads it back to the same tree.

    Raises: FilterError for one that cannot be written: no parts or values, a range without bounds or two of a side.
    """
    match tree:
        case Equals(field, value):
            return f"{_field(field)} = {_value(value)}"
        case In(field, values) if values:
            return f"{_field(field)} in ({', '.join(map(_value, values))})"
        case Exists(field):
            return f"{_field(field)} exists"
        case Range():
            return _range(tree)
        case Not(part):
            return f"not {_bracketed(part)}"
        case And(parts) if len(parts) > 1:
            return " and ".join(map(_bracketed, parts))
        case Or(parts) if len(parts) > 1:
            return " or ".join(map(_bracketed, parts))
    raise FilterError(f"The filter {tree!r} has nothing to be written as text.", remedy=_REMEDY)


def _bracketed(tree: Filter) -> str:
    written = format_filter(tree)
    return f"({written})" if isinstance(tree, And | Or) else written


def _range(tree: Range) -> str:
    lower = [(sign, value) for sign, value in ((">=", tree.gte), (">", tree.gt)) if value is not None]
    upper = [(sign, value) for sign, value in (("<=", tree.lte), ("<", tree.lt)) if value is not None]
    if len(lower) > 1 or len(upper) > 1 or not lower + upper:
        raise FilterError(f"The range {tree!r} has no bound or two of a side.", remedy=_REMEDY)
    if lower and upper:
        (low_sign, low), (high_sign, high) = lower[0], upper[0]
        return f"{_value(low)} {_TURNED[low_sign]} {_field(tree.field)} {high_sign} {_value(high)}"
    sign, bound = (lower + upper)[0]
    return f"{_field(tree.field)} {sign} {_value(bound)}"


def _field(name: str) -> str:
    if _NAME.fullmatch(name) and name.lower() not in _WORDS:
        return name
    if not name or "`" in name:
        raise FilterError(f"The field {name!r} cannot be written in a filter.", remedy=_REMEDY)
    return f"`{name}`"


def _value(value: Scalar) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    if not math.isfinite(value):
        raise FilterError(f"{value} cannot be compared with.", remedy=_REMEDY)
    return repr(value)


class _Parser:
    """Recursive descent, one method a rule."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._lexemes = self._read()
        self._at = 0

    def any(self, depth: int) -> Filter:
        parts = [self._all(depth)]
        while self._take("word", "or"):
            parts.append(self._all(depth))
        return parts[0] if len(parts) == 1 else Or(tuple(parts))

    def _all(self, depth: int) -> Filter:
        parts = [self._one(depth)]
        while self._take("word", "and"):
            parts.append(self._one(depth))
        return parts[0] if len(parts) == 1 else And(tuple(parts))

    def _one(self, depth: int) -> Filter:
        if depth > _NESTING:
            raise self._error(f"fewer than {_NESTING} parts inside each other")
        if self._take("word", "not"):
            return Not(self._one(depth + 1))
        if self._take("mark", "("):
            tree = self.any(depth + 1)
            self._expect(")")
            return tree
        if self._next.kind == "number":
            return self._between()
        return self._condition()

    def _between(self) -> Filter:
        low = self._number()
        sign = self._sign("<", "<=")
        field = self._name()
        bounds: dict[str, float] = {_BOUNDS[_TURNED[sign]]: low}
        if self._next.kind == "mark" and self._next.text in ("<", "<="):
            upper = self._sign("<", "<=")
            bounds[_BOUNDS[upper]] = self._number()
        return Range(field, **bounds)

    def _condition(self) -> Filter:
        field = self._name()
        if self._take("word", "exists"):
            return Exists(field)
        if self._take("word", "not"):
            self._expect("in")
            return Not(self._values(field))
        if self._take("word", "in"):
            return self._values(field)
        sign = self._sign("=", "==", "!=", "<", "<=", ">", ">=")
        if sign in _BOUNDS:
            return Range(field, **{_BOUNDS[sign]: self._number()})
        equals = Equals(field, self._scalar())
        return Not(equals) if sign == "!=" else equals

    def _values(self, field: str) -> In:
        self._expect("(")
        values = [self._scalar()]
        while self._take("mark", ","):
            values.append(self._scalar())
        self._expect(")")
        return In(field, tuple(values))

    def _name(self) -> str:
        lexeme = self._next
        if lexeme.kind not in ("name", "field"):
            raise self._error("the name of a field")
        self._at += 1
        return lexeme.text

    def _sign(self, *signs: str) -> str:
        lexeme = self._next
        if lexeme.kind != "mark" or lexeme.text not in signs:
            raise self._error(" or ".join((*signs, "in", "exists") if "=" in signs else signs))
        self._at += 1
        return lexeme.text

    def _number(self) -> float:
        lexeme = self._next
        if lexeme.kind != "number":
            raise self._error("a number")
        value = float(lexeme.text) if set(lexeme.text) & set(".eE") else int(lexeme.text)
        if not math.isfinite(value):
            raise self._error("a finite number")
        self._at += 1
        return value

    def _scalar(self) -> Scalar:
        lexeme = self._next
        if lexeme.kind == "number":
            return self._number()
        if lexeme.kind == "text":
            self._at += 1
            return lexeme.text
        if lexeme.kind == "word" and lexeme.text in ("true", "false"):
            self._at += 1
            return lexeme.text == "true"
        raise self._error('a value: "text" in quotes, a number, true or false')

    def _expect(self, text: str) -> None:
        if not (self._take("mark", text) or self._take("word", text)):
            raise self._error(f'"{text}"')

    def end(self) -> None:
        if self._next.kind != "end":
            raise self._error("and, or, or the end")

    @property
    def _next(self) -> _Lexeme:
        return self._lexemes[self._at]

    def _take(self, kind: str, text: str) -> bool:
        if self._next.kind != kind or self._next.text != text:
            return False
        self._at += 1
        return True

    def _error(self, expected: str) -> FilterError:
        found = "the end" if self._next.kind == "end" else repr(self._next.text)
        return self._at_fault(self._next.position, f"expected {expected}, found {found}")

    def _at_fault(self, position: int, reason: str) -> FilterError:
        return FilterError(
            f"The filter {self._text!r} does not parse at character {position + 1}: {reason}.", remedy=_REMEDY
        )

    def _read(self) -> list[_Lexeme]:
        found: list[_Lexeme] = []
        position = 0
        while position < len(self._text):
            match = _LEXEME.match(self._text, position)
            if match is None:
                character = self._text[position]
                reason = "the quote is not closed" if character in "\"'`" else f"{character!r} means nothing here"
                raise self._at_fault(position, reason)
            kind, text = str(match.lastgroup), match.group()
            if kind == "text":
                text = re.sub(r"\\(.)", r"\1", text[1:-1], flags=re.DOTALL)
            elif kind == "field":
                text = text[1:-1]
            elif kind == "name" and text.lower() in _WORDS:
                kind, text = "word", text.lower()
            if kind != "space":
                found.append(_Lexeme(kind, text, position))
            position = match.end()
        found.append(_Lexeme("end", "", len(self._text)))
        return found
