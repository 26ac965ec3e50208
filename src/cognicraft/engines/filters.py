"""What a metadata filter means, once for every engine.

Takes a `records.Filter` and the fields of a chunk; says whether it holds. An engine that has its own filter language
translates to it and is held to this file by `tests/congruence`.

The built-in fields are `document_id`, `source`, `file`, `title`, `language`, `media_type` and `page`. One that is empty
is absent, so that `Exists("title")` is of use; a metadata key of the same name counts only then. `page` is every page
that the chunk touches. Numbers are compared in ranges as 64-bit floats, beyond whose reach they stand at its end.
"""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Mapping
from typing import Literal

from cognicraft.errors import FilterError
from cognicraft.records import And, Chunk, DocumentRecord, Equals, Exists, Filter, In, Not, Or, Range, Scalar

Fields = Mapping[str, tuple[Scalar, ...]]
Kind = Literal["bool", "number", "text"]

_LARGEST = sys.float_info.max


def document_fields(record: DocumentRecord) -> dict[str, tuple[Scalar, ...]]:
    """The filterable fields that all chunks of a document share. A field without a value is left out."""
    fields: dict[str, tuple[Scalar, ...]] = {}
    for key, value in record.metadata.items():
        values = tuple(value) if isinstance(value, (tuple, list)) else (value,)
        if values:
            fields[key] = values
    built_in = {
        "document_id": record.id,
        "source": record.source,
        "file": record.source.rstrip("/").rpartition("/")[2],
        "title": record.title,
        "language": record.language,
        "media_type": record.media_type,
    }
    fields.update({name: (value,) for name, value in built_in.items() if value})
    return fields


def chunk_fields(shared: Fields, chunk: Chunk) -> Fields:
    """The fields of one chunk: those of its document and the pages it touches."""
    if chunk.page <= 0:
        return shared
    return {**shared, "page": tuple(range(chunk.page, max(chunk.page, chunk.page_end) + 1))}


def kind_of(value: Scalar) -> Kind:
    """Equality never mixes these three. Raises FilterError for anything else."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, (int, float)):
        return "number"
    if isinstance(value, str):
        return "text"
    raise FilterError(
        f"A value of type {type(value).__name__} cannot be stored or compared as metadata.",
        remedy="Use text, a number, true or false, or a list of these.",
    )


def range_number(value: Scalar) -> float | None:
    """The value as a range compares it; None for what no range can hold: text, true, false, not-a-number."""
    if kind_of(value) != "number":
        return None
    try:
        number = float(value)
    except OverflowError:
        number = math.inf if int(value) > 0 else -math.inf
    if math.isnan(number):
        return None
    return min(max(number, -_LARGEST), _LARGEST)


def matches(where: Filter, fields: Fields) -> bool:
    """Whether the filter holds. Raises FilterError for something that is not a filter."""
    match where:
        case Equals(field, value):
            return _any_equal(fields.get(field, ()), value)
        case In(field, values):
            return any(_any_equal(fields.get(field, ()), value) for value in values)
        case Range():
            return any(_in_range(value, where) for value in fields.get(where.field, ()))
        case Exists(field):
            return bool(fields.get(field))
        case And(parts):
            return all(matches(part, fields) for part in parts)
        case Or(parts):
            return any(matches(part, fields) for part in parts)
        case Not(part):
            return not matches(part, fields)
    raise not_a_filter(where)


def not_a_filter(thing: object) -> FilterError:
    return FilterError(
        f"{type(thing).__name__} is not a filter.", remedy="Use Equals, In, Range, Exists, And, Or or Not."
    )


def _any_equal(held: tuple[Scalar, ...], value: Scalar) -> bool:
    kind = kind_of(value)
    return any(kind_of(one) == kind and one == value for one in held)


def _in_range(value: Scalar, where: Range) -> bool:
    number = range_number(value)
    if number is None:
        return False
    for bound, holds in (
        (where.gte, operator.ge),
        (where.gt, operator.gt),
        (where.lte, operator.le),
        (where.lt, operator.lt),
    ):
        if bound is not None:
            limit = range_number(bound)
            if limit is None or not holds(number, limit):
                return False
    return True
