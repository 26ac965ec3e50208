"""The only file that knows Qdrant Edge: its points, conditions and requests, in the words of our records.

Our 32 hex digits are the UUID of the same 128 bits, which is what a point's id is; both sort alike.

Takes point payloads and conditions, returns scored ids and payloads. `edge.py` decides what is written when.
"""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import qdrant_edge as qdrant

from cognicraft.engines.boolean import not_boolean
from cognicraft.engines.filters import kind_of, not_a_filter, range_number
from cognicraft.errors import EngineError
from cognicraft.records import (
    AllOf,
    And,
    AnyOf,
    BooleanQuery,
    Equals,
    Exists,
    Filter,
    FloatArray,
    In,
    NoneOf,
    Not,
    Or,
    Phrase,
    Range,
    Scalar,
    SparseVector,
    Term,
    digest,
)

LEXICAL = "lexical"
"""The name of the sparse vector; dense vectors are named `dense:` and the arm, so that no arm can take its place."""

# Above this many number fields a range is answered from the payloads: slower, never wrong.
MAX_NUMBER_INDEXES = 32
PAGE_SIZE = 1000
# With m = 24: recall@100 .986 where 128 gives .956 (20,000 clustered vectors).
MIN_HNSW_EF, MAX_HNSW_EF = 256, 4096
RESTORE = "Restore the workspace from a backup, or delete it and ingest the documents again."

Condition = Any  # qdrant_edge.ConditionType is a name of the stub file only

_NEVER: Condition = qdrant.HasIdCondition(set())
_LONGEST_PLAIN = 200


class Shard:
    """One open shard. Not locked against other threads; `edge.py` does that."""

    def __init__(self, shard: qdrant.EdgeShard) -> None:
        self._shard = shard
        self._number_indexes = {key for key in shard.info().payload_schema if key.startswith("numbers.")}

    @classmethod
    def create(cls, path: Path, *, dense: Mapping[str, int]) -> Shard:
        path.mkdir(parents=True, exist_ok=True)
        shard = qdrant.EdgeShard.create(str(path), _config(dense))
        keyword = qdrant.KeywordIndexParams(enable_hnsw=False)
        for field in ("kind", "document_id", "tokens"):
            shard.update(qdrant.UpdateOperation.create_field_index(field, keyword))
        terms = qdrant.TextIndexParams(
            tokenizer=qdrant.TokenizerType.Whitespace,
            lowercase=False,
            phrase_matching=True,
            enable_hnsw=False,
        )
        shard.update(qdrant.UpdateOperation.create_field_index("terms", terms))
        return cls(shard)

    @classmethod
    def load(cls, path: Path, *, dense: Mapping[str, int]) -> Shard:
        # Qdrant makes an empty shard where it finds no segments: a loss must not look like an empty workspace.
        if not (path / "edge_config.json").is_file() or not any(path.glob("segments/*/segment.json")):
            raise EngineError(f"Files of {path} are missing.", remedy=RESTORE)
        return cls(qdrant.EdgeShard.load(str(path), _config(dense)))

    # ── write ─────────────────────────────────────────────────────────────────────────────────────────────────

    def upsert(self, points: Sequence[Any]) -> None:
        """One entry of the write-ahead log: all of these points or none of them survive a kill."""
        if points:
            self._shard.update(qdrant.UpdateOperation.upsert_points(list(points)))

    def delete(self, ids: Sequence[str]) -> None:
        """One entry of the write-ahead log, as `upsert`."""
        if ids:
            self._shard.update(qdrant.UpdateOperation.delete_points(list(ids)))

    def set_payload(self, ids: Sequence[str], payload: Mapping[str, Any]) -> None:
        if ids:
            operation = qdrant.UpdateOperation.set_payload(list(ids), dict(payload))
            self._shard.update(operation)

    def index_numbers(self, fields: set[str]) -> None:
        """Make ranges over these number fields fast; fields beyond the limit stay without an index."""
        for key in sorted({_number_key(field) for field in fields} - self._number_indexes):
            if len(self._number_indexes) >= MAX_NUMBER_INDEXES:
                return
            index = qdrant.FloatIndexParams(enable_hnsw=False)
            self._shard.update(qdrant.UpdateOperation.create_field_index(key, index))
            self._number_indexes.add(key)

    def flush(self) -> None:
        self._shard.flush()

    def optimize(self) -> None:
        self._shard.optimize()

    def close(self) -> None:
        self._shard.close()

    # ── read ──────────────────────────────────────────────────────────────────────────────────────────────────

    def payloads(self, ids: Sequence[str], *, keys: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Payload by id; unknown ids are absent."""
        wanted: list[Any] = list(ids)
        records = self._shard.retrieve(wanted, with_payload=list(keys), with_vector=False)
        return {record_id(record): record.payload or {} for record in records}

    def scroll(
        self, where: Condition | None, *, keys: Sequence[str] = (), limit: int | None = None, terms: bool = False
    ) -> Iterator[tuple[str, dict[str, Any], Any]]:
        """(id, payload, term indices or None) of all points that satisfy the condition, by id ascending."""
        offset: Any = None
        left = limit
        while left is None or left > 0:
            request = qdrant.ScrollRequest(
                offset=offset,
                limit=PAGE_SIZE if left is None else min(left, PAGE_SIZE),
                filter=None if where is None else _filter(where),
                with_payload=list(keys) if keys else False,
                with_vector=[LEXICAL] if terms else False,
            )
            records, offset = self._shard.scroll(request)
            for record in records:
                yield record_id(record), record.payload or {}, _indices(record) if terms else None
            if left is not None:
                left -= len(records)
            if offset is None:
                return

    def count(self, where: Condition) -> int:
        return self._shard.count(qdrant.CountRequest(filter=_filter(where), exact=True))

    def search_dense(
        self, arm: str, vector: FloatArray, *, limit: int, where: Condition | None
    ) -> list[tuple[str, float]]:
        ef = min(max(MIN_HNSW_EF, 2 * limit), MAX_HNSW_EF)
        return self._search(
            qdrant.Query.Nearest(vector.tolist(), using=_dense_name(arm)),
            limit=limit,
            where=where,
            params=qdrant.SearchParams(hnsw_ef=ef),
        )

    def search_lexical(self, query: SparseVector, *, limit: int, where: Condition | None) -> list[tuple[str, float]]:
        sparse = qdrant.SparseVector(query.indices.tolist(), query.values.tolist())
        return self._search(qdrant.Query.Nearest(sparse, using=LEXICAL), limit=limit, where=where, params=None)

    def _search(
        self, query: qdrant.Query, *, limit: int, where: Condition | None, params: qdrant.SearchParams | None
    ) -> list[tuple[str, float]]:
        request = qdrant.SearchRequest(query, limit, filter=None if where is None else _filter(where), params=params)
        return [(record_id(point), point.score) for point in self._shard.search(request)]

    def indexed_vectors(self) -> int:
        return self._shard.info().indexed_vectors_count

    def segments(self) -> int:
        return self._shard.info().segments_count


# ── points ────────────────────────────────────────────────────────────────────────────────────────────────────


def record_id(record: Any) -> str:
    identifier: uuid.UUID = record.id
    return identifier.hex


def document_point(identifier: str, payload: Mapping[str, Any]) -> Any:
    return qdrant.Point(identifier, {}, {"kind": "document", "document_id": identifier, **payload})


def chunk_point(
    identifier: str, *, dense: Mapping[str, FloatArray], lexical: SparseVector, payload: Mapping[str, Any]
) -> Any:
    vectors: dict[str, Any] = {_dense_name(arm): vector.tolist() for arm, vector in dense.items()}
    vectors[LEXICAL] = qdrant.SparseVector(lexical.indices.tolist(), lexical.values.tolist())
    return qdrant.Point(identifier, vectors, {"kind": "chunk", **payload})


def filter_tokens(fields: Mapping[str, tuple[Scalar, ...]]) -> list[str]:
    """One keyword for each field, and one for each field and value: a single index answers every equality."""
    tokens = {_exists_token(field): None for field, values in fields.items() if values}
    for field, values in fields.items():
        for value in values:
            token = _equals_token(field, value)
            if token is not None:
                tokens[token] = None
    return list(tokens)


def filter_numbers(fields: Mapping[str, tuple[Scalar, ...]]) -> dict[str, list[float]]:
    """The numbers of each field that has any, under a key that is a safe JSON path."""
    numbers: dict[str, list[float]] = {}
    for field, values in fields.items():
        held = [number for number in map(range_number, values) if number is not None]
        if held:
            numbers[_number_key(field).partition(".")[2]] = held
    return numbers


def terms_text(terms: Sequence[str]) -> str:
    """The terms as the text that the index takes apart again at white space."""
    return " ".join(map(_indexable, terms))


# ── conditions ────────────────────────────────────────────────────────────────────────────────────────────────


def both(first: Condition | None, second: Condition | None) -> Condition | None:
    if first is None or second is None:
        return second if first is None else first
    return qdrant.Filter(must=[first, second])


def without(condition: Condition | None, ids: Sequence[str]) -> Condition:
    """The condition, less these points."""
    points: set[Any] = set(ids)
    return qdrant.Filter(
        must=[] if condition is None else [condition],
        must_not=[qdrant.HasIdCondition(points)] if points else [],
    )


def is_chunk() -> Condition:
    return _keyword("kind", "chunk")


def is_document() -> Condition:
    return _keyword("kind", "document")


def chunks_of(document_ids: Sequence[str]) -> Condition:
    match = qdrant.FieldCondition("document_id", match=qdrant.MatchAny(list(document_ids)))
    return qdrant.Filter(must=[is_chunk(), match])


def is_pending() -> Condition:
    """Document records that a write did not come to the end of."""
    return qdrant.Filter(must=[is_document()], must_not=[_keyword("state", "done")])


def filter_condition(where: Filter) -> Condition:
    """The filter in Qdrant's words. Raises FilterError for something that is not a filter."""
    match where:
        case Equals(field, value):
            return _token_condition([_equals_token(field, value)])
        case In(field, values):
            return _token_condition([_equals_token(field, value) for value in values])
        case Exists(field):
            return _token_condition([_exists_token(field)])
        case Range():
            return _range_condition(where)
        case And(parts):
            return _all([filter_condition(part) for part in parts])
        case Or(parts):
            return _any([filter_condition(part) for part in parts])
        case Not(part):
            return _not(filter_condition(part))
    raise not_a_filter(where)


def boolean_condition(query: BooleanQuery) -> Condition:
    """The query in Qdrant's words. Raises FilterError for something that is not a Boolean query."""
    match query:
        case Term(forms):
            return _any([_text(qdrant.MatchText(_indexable(form))) for form in forms])
        case Phrase((term,)):
            return _text(qdrant.MatchText(_indexable(term)))
        case Phrase(terms):
            return _text(qdrant.MatchPhrase(terms_text(terms))) if terms else _NEVER
        case AllOf(parts):
            return _all([boolean_condition(part) for part in parts])
        case AnyOf(parts):
            return _any([boolean_condition(part) for part in parts])
        case NoneOf(part):
            return _not(boolean_condition(part))
    raise not_boolean(query)


def _filter(condition: Condition) -> qdrant.Filter:
    return condition if isinstance(condition, qdrant.Filter) else qdrant.Filter(must=[condition])


def _all(parts: list[Condition]) -> Condition:
    return qdrant.Filter(must=parts)


def _any(parts: list[Condition]) -> Condition:
    # An empty `should` holds everywhere in Qdrant; nothing to choose from must hold nowhere.
    return qdrant.Filter(should=parts) if parts else _NEVER


def _not(part: Condition) -> Condition:
    return qdrant.Filter(must_not=[part])


def _keyword(key: str, value: str) -> Condition:
    return qdrant.FieldCondition(key, match=qdrant.MatchValue(value))


def _text(match: Any) -> Condition:
    return qdrant.FieldCondition("terms", match=match)


def _token_condition(tokens: Sequence[str | None]) -> Condition:
    held = [token for token in tokens if token is not None]
    return qdrant.FieldCondition("tokens", match=qdrant.MatchAny(held)) if held else _NEVER


def _range_condition(where: Range) -> Condition:
    """At most one bound a side: given `lt` and `lte` together, an index of Qdrant's heeds only one of them."""
    given = [(where.gte, "gte"), (where.gt, "gt"), (where.lte, "lte"), (where.lt, "lt")]
    bounds = [(range_number(bound), name) for bound, name in given if bound is not None]
    if any(number is None for number, _ in bounds):
        return _NEVER
    known = [(number, name) for number, name in bounds if number is not None]
    # Of two equal bounds the one that excludes is the narrower.
    low = max((one for one in known if one[1] in ("gte", "gt")), key=lambda one: (one[0], one[1] == "gt"), default=None)
    high = min(
        (one for one in known if one[1] in ("lte", "lt")), key=lambda one: (one[0], one[1] != "lt"), default=None
    )
    if low and high and (low[0] > high[0] or (low[0] == high[0] and (low[1], high[1]) != ("gte", "lte"))):
        return _NEVER
    narrow = {name: number for number, name in filter(None, (low, high))} or {"gte": -sys.float_info.max}
    return qdrant.FieldCondition(_number_key(where.field), range=qdrant.RangeFloat(**narrow))


def _number_key(field: str) -> str:
    return f"numbers.n{digest(field, size=8)}"


def _exists_token(field: str) -> str:
    return _plain(f"{field}\x1f")


def _equals_token(field: str, value: Scalar) -> str | None:
    """None for what equals nothing, not even itself."""
    kind = kind_of(value)
    if isinstance(value, float):
        if value != value:
            return None
        value = int(value) if value.is_integer() else value
    return _plain(f"{field}\x1f{kind}\x1f{value!r}" if kind == "number" else f"{field}\x1f{kind}\x1f{value}")


def _plain(token: str) -> str:
    """The token itself where it is short and valid Unicode, else its digest."""
    if len(token) <= _LONGEST_PLAIN and _encodable(token):
        return token
    return f"\x1e{digest(token)}"


def _indexable(term: str) -> str:
    """A term that the index's tokenizer keeps in one piece, else its digest."""
    if 0 < len(term) <= _LONGEST_PLAIN and not any(map(str.isspace, term)) and _encodable(term):
        return term
    return f"\x1e{digest(term)}"


def _encodable(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _dense_name(arm: str) -> str:
    return f"dense:{arm}"


def _indices(record: Any) -> list[int]:
    vectors = record.vector
    sparse = vectors.get(LEXICAL) if isinstance(vectors, dict) else None
    indices: list[int] = sparse.indices if sparse is not None else []
    return indices


def _config(dense: Mapping[str, int]) -> qdrant.EdgeConfig:
    # The cores that this process may use, which in a container are fewer than the machine has.
    threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return qdrant.EdgeConfig(
        vectors={
            _dense_name(arm): qdrant.EdgeVectorParams(size=size, distance=qdrant.Distance.Dot)
            for arm, size in dense.items()
        },
        sparse_vectors={LEXICAL: qdrant.EdgeSparseVectorParams()},
        hnsw_config=qdrant.HnswIndexConfig(
            m=24, ef_construct=128, full_scan_threshold=10_000, max_indexing_threads=threads
        ),
        max_search_threads=threads,
    )
