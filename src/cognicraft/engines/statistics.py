"""Counts over the live chunks that a search needs: how many, in which languages, and in how many each term stands.

Qdrant's own IDF counts deleted points until they are vacuumed (measured: ln 2 in place of 1.25 after deletes), and its
corpus filter costs time that grows with the corpus; so the engine keeps exact counts and weights the query itself.

Cost: 8 bytes a distinct term, a look-up of microseconds a query. Saved on close; after a kill they are counted anew.
"""

from __future__ import annotations

import json
import zipfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cognicraft.records import SparseVector

_MERGE_AT = 50_000


class Statistics:
    """Mutable counts. Not locked; the engine does that."""

    def __init__(self) -> None:
        self.documents = 0
        self.chunks = 0
        self.languages: Counter[str] = Counter()
        self.code_bytes: Counter[int] = Counter()
        """File number -> bytes of token codes in it that a live chunk points to."""
        # Sorted arrays hold the bulk at 8 bytes a term, the dictionary what changed since they were merged.
        self._terms: npt.NDArray[np.uint32] = np.empty(0, dtype=np.uint32)
        self._counts: npt.NDArray[np.int32] = np.empty(0, dtype=np.int32)
        self._changes: dict[int, int] = {}

    def count_terms(self, chunks: Iterable[Any], *, sign: int) -> None:
        """Add (sign 1) or take away (sign -1) the term indices of these chunks."""
        arrays = [np.asarray(one, dtype=np.uint32) for one in chunks]
        if not arrays:
            return
        terms, counts = np.unique(np.concatenate(arrays), return_counts=True)
        changes = self._changes
        for term, count in zip(terms.tolist(), counts.tolist(), strict=True):
            changes[term] = changes.get(term, 0) + sign * count
        if len(changes) > _MERGE_AT:
            self._merge()

    def count_languages(self, language: str, chunks: int) -> None:
        if language and chunks:
            self.languages[language] += chunks
            if self.languages[language] <= 0:
                del self.languages[language]

    def document_frequencies(self, terms: npt.NDArray[np.uint32]) -> npt.NDArray[np.float64]:
        """In how many live chunks each of these terms stands."""
        found = np.zeros(len(terms))
        if self._terms.size:
            at = np.minimum(np.searchsorted(self._terms, terms), self._terms.size - 1)
            found += np.where(self._terms[at] == terms, self._counts[at], 0)
        found += [self._changes.get(term, 0) for term in terms.tolist()]
        return found

    def weighted(self, query: SparseVector) -> SparseVector:
        """Query counts times idf = ln(1 + (N - n + .5)/(n + .5)); terms that no live chunk has are left out."""
        terms = np.asarray(query.indices, dtype=np.uint32)
        frequencies = self.document_frequencies(terms)
        idf = np.log1p((self.chunks - frequencies + 0.5) / (frequencies + 0.5))
        known = frequencies > 0
        values = (np.asarray(query.values, dtype=np.float64) * idf)[known]
        return SparseVector(indices=terms[known], values=values.astype(np.float32))

    def save(self, path: Path) -> None:
        """Whole or not at all."""
        self._merge()
        head = {
            "documents": self.documents,
            "chunks": self.chunks,
            "languages": dict(self.languages),
            "code_bytes": dict(self.code_bytes),
        }
        part = path.with_suffix(".part")
        with part.open("wb") as file:
            np.savez(file, head=np.array(json.dumps(head)), terms=self._terms, counts=self._counts)
        part.replace(path)

    @classmethod
    def load(cls, path: Path) -> Statistics | None:
        """None where there are none or they cannot be read."""
        statistics = cls()
        try:
            with path.open("rb") as file, np.load(file, allow_pickle=False) as data:
                head = json.loads(str(data["head"]))
                statistics._terms = data["terms"].astype(np.uint32)
                statistics._counts = data["counts"].astype(np.int32)
            statistics.documents, statistics.chunks = head["documents"], head["chunks"]
            statistics.languages = Counter(head["languages"])
            statistics.code_bytes = Counter({int(key): value for key, value in head["code_bytes"].items()})
        except (OSError, EOFError, zipfile.BadZipFile, ValueError, KeyError, TypeError):
            return None
        return statistics

    def _merge(self) -> None:
        if not self._changes:
            return
        changed = np.fromiter(self._changes.keys(), dtype=np.uint32, count=len(self._changes))
        amounts = np.fromiter(self._changes.values(), dtype=np.int32, count=len(self._changes))
        terms, places = np.unique(np.concatenate([self._terms, changed]), return_inverse=True)
        counts = np.bincount(places, weights=np.concatenate([self._counts, amounts]), minlength=len(terms))
        live = counts > 0
        self._terms, self._counts, self._changes = terms[live], counts[live].astype(np.int32), {}
