"""A reply that fits a schema: how it is asked for in words, read with tolerance, and asked for again.

Takes: the reply's text and a pydantic model. Returns: an instance, or a sentence on what was wrong. Method: the first
JSON value in the text that fits; code fences, words around it and a wrapping object of one key are forgiven.
Cost: none worth counting.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from cognicraft.records import Message

Schema = TypeVar("Schema", bound=BaseModel)

_SHOWN_CHARACTERS = 2_000  # of a bad reply when it is shown to the model again
_MOST_STARTS = 50  # places where a JSON value may begin


def with_schema(messages: Sequence[Message], schema: type[BaseModel]) -> list[Message]:
    """The messages with a request for JSON at the end of the last one, for servers that keep no schema themselves."""
    words = "Reply with one JSON object that fits this JSON schema, and with nothing else:\n" + json.dumps(
        schema.model_json_schema(), ensure_ascii=False
    )
    last = messages[-1] if messages else Message("user", "")
    if last.role != "user" or last.stable:
        return [*messages, Message("user", words)]
    return [*messages[:-1], Message("user", f"{last.text}\n\n{words}".strip())]


def ask_again(messages: Sequence[Message], reply: str, wrong: str, schema: type[BaseModel]) -> list[Message]:
    """The conversation with the bad reply and what was wrong with it."""
    shown = reply if len(reply) <= _SHOWN_CHARACTERS else reply[:_SHOWN_CHARACTERS] + " …"
    words = (
        f"That reply cannot be used: {wrong}. Reply again with one JSON object that fits this JSON schema, and with "
        f"nothing else:\n{json.dumps(schema.model_json_schema(), ensure_ascii=False)}"
    )
    return [*messages, Message("assistant", shown or "(nothing)"), Message("user", words)]


def read_reply(text: str, schema: type[Schema]) -> Schema | str:
    """An instance, or what was wrong, as part of a sentence."""
    wrong = "it was empty" if not text.strip() else "it holds no JSON object"
    judged = False
    for value in _values(text):
        for candidate in (value, *_unwrapped(value)):
            try:
                return schema.model_validate(candidate)
            except ValidationError as error:
                if not judged:  # the first value is the one that was meant
                    wrong, judged = _said(error), True
    return wrong


def _values(text: str) -> Iterator[Any]:
    """JSON objects and arrays in the text, in order, none inside another."""
    decoder = json.JSONDecoder(strict=False)  # models write line ends into strings
    position = 0
    for _ in range(_MOST_STARTS):
        starts = [start for start in (text.find("{", position), text.find("[", position)) if start >= 0]
        if not starts:
            return
        try:
            value, position = decoder.raw_decode(text, min(starts))
        except (ValueError, RecursionError):
            position = min(starts) + 1
            continue
        yield value


def _unwrapped(value: Any) -> list[Any]:
    if isinstance(value, dict) and len(value) == 1:
        return [inner for inner in value.values() if isinstance(inner, dict)]
    if isinstance(value, list) and len(value) == 1:
        return value
    return []


def _said(error: ValidationError) -> str:
    problems = []
    for problem in error.errors(include_url=False, include_input=False, include_context=False):
        where = ".".join(str(part) for part in problem["loc"]) or "the whole"
        problems.append(f"{where}: {problem['msg'][:1].lower()}{problem['msg'][1:]}")
    more = f" and {len(problems) - 4} more" if len(problems) > 4 else ""
    return "; ".join(problems[:4]) + more
