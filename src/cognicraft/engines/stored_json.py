"""Records as the JSON text that an engine stores, and back: nothing is lost, tuples stay tuples, 1 stays 1 and not 1.0.

Text that is not valid Unicode (a lone surrogate from a JSON file) is escaped, so that any store can hold it.
"""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

from cognicraft.records import Chunk, ContextualChunk, DocumentRecord, Page

_PLAIN_FIELDS = tuple(one.name for one in fields(DocumentRecord) if one.name not in {"pages", "metadata", "warnings"})
_CHUNK_FIELDS = tuple(one.name for one in fields(Chunk) if one.name != "heading_path")


def dump_record(record: DocumentRecord) -> str:
    data: dict[str, Any] = {name: getattr(record, name) for name in _PLAIN_FIELDS}
    data["pages"] = [(page.number, page.start, page.end) for page in record.pages]
    data["metadata"] = dict(record.metadata)
    data["warnings"] = record.warnings
    return _dump(data)


def load_record(text: str) -> DocumentRecord:
    data = json.loads(text)
    data["pages"] = tuple(Page(*page) for page in data["pages"])
    data["metadata"] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in data["metadata"].items()
    }
    data["warnings"] = tuple(data["warnings"])
    return DocumentRecord(**data)


def dump_chunk(one: ContextualChunk) -> str:
    data: dict[str, Any] = {name: getattr(one.chunk, name) for name in _CHUNK_FIELDS}
    data["heading_path"] = one.chunk.heading_path
    if one.dense_context:
        data["dense_context"] = one.dense_context
    if one.lexical_context:
        data["lexical_context"] = one.lexical_context
    return _dump(data)


def load_chunk(text: str) -> ContextualChunk:
    data = json.loads(text)
    dense_context, lexical_context = data.pop("dense_context", ""), data.pop("lexical_context", "")
    data["heading_path"] = tuple(data["heading_path"])
    return ContextualChunk(Chunk(**data), dense_context, lexical_context)


def _dump(data: dict[str, Any]) -> str:
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        text = json.dumps(data, separators=(",", ":"))
    return text
