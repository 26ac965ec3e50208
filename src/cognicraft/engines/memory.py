"""The exact engine: everything in numpy arrays in memory, nothing on disk. Other engines are tested against it.

Takes and returns what `protocols.Engine` says. Search is a full scan in 64-bit floats: cost grows with the corpus, and
the arrays are built again at the first search after a write. Good for tests, a few ten thousand chunks, and a trial.
What can go wrong: it forgets everything on `close`.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from cognicraft.engines.boolean import satisfies
from cognicraft.engines.checks import checked, query_terms, query_vector, unit
from cognicraft.engines.filters import Fields, chunk_fields, document_fields, matches
from cognicraft.errors import EngineError
from cognicraft.records import (
    BooleanQuery,
    ByteArray,
    DocumentRecord,
    EncodedChunk,
    EncodedDocument,
    EngineInfo,
    Filter,
    FloatArray,
    Ranking,
    Scored,
    SparseVector,
    StoredChunk,
)

Scores = npt.NDArray[np.float64]


@dataclass(frozen=True)
class _Row:
    encoded: EncodedChunk
    record: DocumentRecord
    fields: Fields

    @property
    def stored(self) -> StoredChunk:
        record = self.record
        return StoredChunk(
            id=self.encoded.id,
            document_id=record.id,
            source=record.source,
            title=record.title,
            chunk=self.encoded.chunk,
            language=record.language,
            pointer=record.pointer,
            metadata=record.metadata,
        )


class _Snapshot:
    """The live set at one moment, chunks in the order of their ids. Never changed: a search keeps the one it took."""

    def __init__(self, documents: Mapping[str, EncodedDocument], dense: Mapping[str, int]) -> None:
        rows = []
        for document in documents.values():
            shared = document_fields(document.record)
            rows += [_Row(one, document.record, chunk_fields(shared, one.chunk.chunk)) for one in document.chunks]
        self.documents = documents
        self.rows = sorted(rows, key=lambda row: row.encoded.id)
        self.position = {row.encoded.id: index for index, row in enumerate(self.rows)}
        self._dense = dense

    @cached_property
    def vectors(self) -> dict[str, FloatArray]:
        return {
            arm: np.array([unit(row.encoded.dense[arm]) for row in self.rows], dtype=np.float32).reshape(-1, size)
            for arm, size in self._dense.items()
        }

    @cached_property
    def postings(self) -> dict[int, list[tuple[int, float]]]:
        postings: dict[int, list[tuple[int, float]]] = {}
        for position, row in enumerate(self.rows):
            lexical = row.encoded.lexical
            for index, weight in zip(lexical.indices.tolist(), lexical.values.tolist(), strict=True):
                postings.setdefault(index, []).append((position, weight))
        return postings

    def lexical_scores(self, query: SparseVector) -> tuple[Scores, npt.NDArray[np.bool_]]:
        """Every chunk's score, and which of them share a term with the query."""
        scores = np.zeros(len(self.rows))
        shares = np.zeros(len(self.rows), dtype=bool)
        for index, count in zip(query.indices.tolist(), query.values.tolist(), strict=True):
            posting = self.postings.get(index, [])
            idf = np.log1p((len(self.rows) - len(posting) + 0.5) / (len(posting) + 0.5))
            for position, weight in posting:
                scores[position] += count * idf * weight
                shares[position] = True
        return scores, shares

    def ranking(self, scores: Scores, candidates: Iterator[int], limit: int) -> Ranking:
        best = sorted(candidates, key=lambda position: (-scores[position], position))[: max(limit, 0)]
        return tuple(Scored(self.rows[position].encoded.id, float(scores[position])) for position in best)

    def allowed(self, where: Filter | None) -> Iterator[int]:
        return (i for i, row in enumerate(self.rows) if where is None or matches(where, row.fields))


class MemoryEngine:
    """`protocols.Engine`, exact, in memory. `dense` gives the arms as name -> dimensions."""

    name = "memory"
    exact = True

    def __init__(self, *, dense: Mapping[str, int]) -> None:
        self._dense = dict(dense)
        self._lock = threading.Lock()
        self._snapshot: _Snapshot | None = _Snapshot({}, self._dense)

    def replace(self, documents: Sequence[EncodedDocument]) -> None:
        fresh = checked(documents, dense=self._dense)
        with self._lock:
            old = self._live().documents
            new = {document.record.id: document for document in fresh}
            self._snapshot = _Snapshot({**old, **new}, self._dense)

    def delete(self, document_ids: Sequence[str]) -> int:
        with self._lock:
            old = self._live().documents
            gone = set(document_ids) & old.keys()
            if gone:
                kept = {key: document for key, document in old.items() if key not in gone}
                self._snapshot = _Snapshot(kept, self._dense)
            return len(gone)

    def document(self, document_id: str) -> DocumentRecord | None:
        found = self._live().documents.get(document_id)
        return found.record if found else None

    def documents(self) -> Iterator[DocumentRecord]:
        records = [document.record for document in self._live().documents.values()]
        return iter(sorted(records, key=lambda record: (record.source, record.pointer, record.id)))

    def document_chunks(self, document_id: str) -> list[StoredChunk]:
        stored = [row.stored for row in self._live().rows if row.record.id == document_id]
        return sorted(stored, key=lambda one: (one.chunk.chunk.start, one.chunk.chunk.end, one.id))

    def search_dense(self, arm: str, vector: FloatArray, *, limit: int, where: Filter | None = None) -> Ranking:
        live = self._live()
        query = query_vector(vector, arm=arm, dense=self._dense)
        scores = live.vectors[arm].astype(np.float64) @ query.astype(np.float64)
        return live.ranking(scores, live.allowed(where), limit)

    def search_lexical(self, query: SparseVector, *, limit: int, where: Filter | None = None) -> Ranking:
        live = self._live()
        scores, shares = live.lexical_scores(query_terms(query))
        return live.ranking(scores, (i for i in live.allowed(where) if shares[i]), limit)

    def search_boolean(
        self, query: BooleanQuery, *, rank_by: SparseVector, limit: int, where: Filter | None = None
    ) -> Ranking:
        live = self._live()
        scores, _ = live.lexical_scores(query_terms(rank_by))
        found = (i for i in live.allowed(where) if satisfies(live.rows[i].encoded.terms, query))
        return live.ranking(scores, found, limit)

    def chunks(self, ids: Sequence[str]) -> list[StoredChunk]:
        live = self._live()
        return [live.rows[live.position[one]].stored for one in ids if one in live.position]

    def token_codes(self, arm: str, ids: Sequence[str]) -> list[ByteArray | None]:
        live = self._live()
        return [
            live.rows[live.position[one]].encoded.token_codes.get(arm) if one in live.position else None for one in ids
        ]

    def languages(self) -> dict[str, int]:
        return dict(Counter(row.record.language for row in self._live().rows if row.record.language))

    def info(self) -> EngineInfo:
        live = self._live()
        return EngineInfo(
            name=self.name,
            format_version=0,
            documents=len(live.documents),
            chunks=len(live.rows),
            disk_bytes=0,
            dense_arms=tuple(self._dense),
        )

    def close(self) -> None:
        with self._lock:
            self._snapshot = None

    def _live(self) -> _Snapshot:
        snapshot = self._snapshot
        if snapshot is None:
            raise EngineError("The engine is closed.", remedy="Open the workspace again.")
        return snapshot
