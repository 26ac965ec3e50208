"""JSON values as documents use them: parsed without surprises, addressed by JSON pointers, matched by field names.

Takes text; returns Python values in which a number is kept as it is written (`1.10` stays `1.10`). Pointers are
RFC 6901. Cost: the parser of the standard library. What can go wrong: `JsonProblem` with line and column.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

MAX_DEPTH = 100
"""Levels of nesting that are followed. Deeper JSON is an attack or a mistake, not a document."""


class Written(float):
    """A number with a fraction or an exponent; `literal` is how the file writes it."""

    literal: str

    def __new__(cls, literal: str) -> Written:
        number = super().__new__(cls, literal)
        number.literal = literal
        return number


class JsonProblem(ValueError):
    """Why a text is not JSON. Lines and columns count from 1; `position` from 0."""

    def __init__(self, reason: str, *, line: int = 0, column: int = 0, position: int = 0) -> None:
        self.reason, self.line, self.column, self.position = reason, line, column, position
        super().__init__(reason)


class JsonParser:
    """Parses texts and remembers in `repeated` the keys that one object gave twice (the last value counts)."""

    def __init__(self) -> None:
        self.repeated: set[str] = set()
        self._decoder = json.JSONDecoder(
            object_pairs_hook=self._object, parse_float=Written, parse_int=_whole, parse_constant=_nothing
        )

    def parse(self, text: str) -> Any:
        """Raises: JsonProblem."""
        try:
            return self._decoder.decode(text)
        except json.JSONDecodeError as error:
            reason = error.msg[:1].lower() + error.msg[1:]
            raise JsonProblem(reason, line=error.lineno, column=error.colno, position=error.pos) from error
        except RecursionError as error:
            raise too_deep() from error

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        if len(result) < len(pairs):
            seen: set[str] = set()
            for key, _ in pairs:
                if key in seen:
                    self.repeated.add(key)
                seen.add(key)
        return result


def too_deep() -> JsonProblem:
    return JsonProblem(f"it is nested more than {MAX_DEPTH} levels deep")


def _whole(literal: str) -> int | str:
    # More digits than 64 bits hold: an identifier. As text it stays exact, in every engine.
    return int(literal) if len(literal) <= 18 else literal


def _nothing(_: str) -> None:
    """NaN and Infinity, which are not JSON but are written by many programs: no value."""


def pointer_step(key: str | int) -> str:
    """One step of a JSON pointer, escaped."""
    return "/" + str(key).replace("~", "~0").replace("/", "~1")


def leaves(value: Any, *, pointer: str = "") -> Iterator[tuple[str, tuple[str | int, ...], Any]]:
    """Every scalar below `value` in order: its pointer, its keys and itself. Null is left out.

    Raises: JsonProblem where it is nested too deep.
    """
    stack: list[tuple[str, tuple[str | int, ...], Any]] = [(pointer, (), value)]
    while stack:
        where, keys, item = stack.pop()
        if len(keys) > MAX_DEPTH:
            raise too_deep()
        if isinstance(item, dict):
            children: Sequence[tuple[str | int, Any]] = list(item.items())
        elif isinstance(item, list):
            children = list(enumerate(item))
        else:
            if item is not None:
                yield where, keys, item
            continue
        stack.extend((where + pointer_step(key), (*keys, key), child) for key, child in reversed(children))


class FieldMatcher:
    """Whether a field is meant by one name or pointer.

    A name means that key at any depth; a pointer (it begins with `/`) means that place, `*` standing for any one
    step. Both mean all that lies below as well.
    """

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self._steps = (
            [step.replace("~1", "/").replace("~0", "~") for step in pattern[1:].split("/")]
            if pattern.startswith("/")
            else None
        )

    def matches(self, keys: Sequence[str | int]) -> bool:
        """`keys` lead from the document to the field; list positions are numbers."""
        if self._steps is None:
            return self.pattern in keys
        return len(keys) >= len(self._steps) and all(
            step == "*" or step == str(key) for step, key in zip(self._steps, keys, strict=False)
        )
