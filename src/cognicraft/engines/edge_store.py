"""How documents lie in an Edge shard, and how they get in and out of it without a kill leaving half of one.

Takes checked documents, changes shard, code files and counts together. A document is a point without vectors (its
record as JSON, `write`, `expected` chunks, `state`); a chunk is a point with its vectors, terms and filter tokens,
`write` naming the write that put it there. Steps of a write, each one entry of the shard's write-ahead log:

    1. the records, `updating`, with all chunks      (in several entries where there are more than POINTS_AT_ONCE)
    2. removal of the chunks that the new revision has not
    3. the records, `done`

`recover` finishes what stands at 1 or 2: forward if all chunks of that write are there, else back. Not locked against
other threads: `edge.py` does that, and calls `prepare` outside of its write lock and `commit` inside.
"""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from cognicraft.engines.checks import unit
from cognicraft.engines.codes import CodeFiles, Place
from cognicraft.engines.filters import chunk_fields, document_fields, range_number
from cognicraft.engines.statistics import Statistics
from cognicraft.engines.stored_json import dump_chunk, dump_record, load_record
from cognicraft.errors import EngineError
from cognicraft.records import EncodedChunk, EncodedDocument

POINTS_AT_ONCE = 2000
# Dead bytes of token codes are given back when they are more than the live ones and more than this.
RECLAIM_BYTES = 64 * 1024 * 1024
# A kill does not need it: it bounds the log, and what a power cut can take. It waits 30 to 400 ms for the disk.
FLUSH_EVERY_S = 5.0

_DONE: Mapping[str, Any] = {"state": "done", "previous": None}


@dataclass(slots=True)
class HeldDocument:
    """What is there of a document: its payload and, by chunk id, `write`, `codes` and `terms` of each chunk."""

    payload: Mapping[str, Any]
    chunks: dict[str, dict[str, Any]] = field(default_factory=dict)


@dataclass(slots=True)
class PreparedWrite:
    """A group of documents as points, ready to go in."""

    documents: Sequence[EncodedDocument]
    held: Mapping[str, HeldDocument]
    places: Mapping[tuple[str, str], Place]
    records: list[Any]
    chunks: list[Any]
    stale: list[str]
    number_fields: set[str]
    updating: bool


class EdgeStore:
    """Shard, code files and counts of one workspace, changed together."""

    def __init__(self, *, library: ModuleType, shard: Any, codes: CodeFiles) -> None:
        self._library = library
        self.shard = shard
        self.codes = codes
        self.statistics = Statistics()
        self._flushed = time.monotonic()

    def held(self, document_ids: Sequence[str]) -> dict[str, HeldDocument]:
        """Those of the documents that are there."""
        found = self.shard.payloads(document_ids, keys=["kind", "record", "write", "expected"])
        held = {one: HeldDocument(payload) for one, payload in found.items() if payload["kind"] == "document"}
        if held:
            where = self._library.chunks_of(list(held))
            for one, payload, terms in self.shard.scroll(where, keys=["document_id", "write", "codes"], terms=True):
                held[payload["document_id"]].chunks[one] = {**payload, "terms": terms}
        return held

    def prepare(self, group: Sequence[EncodedDocument]) -> PreparedWrite:
        """All that can be done while searches go on. Token codes are on the disk when it returns."""
        write = uuid.uuid4().hex
        held = self.held([document.record.id for document in group])
        places = self._write_codes(group)
        chunks: list[Any] = []
        numbers: set[str] = set()
        for document in group:
            before = held.get(document.record.id)
            shared = document_fields(document.record)
            numbers |= {name for name, values in shared.items() if any(range_number(v) is not None for v in values)}
            for chunk in document.chunks:
                fields = chunk_fields(shared, chunk.chunk.chunk)
                numbers |= {"page"} & fields.keys()
                payload = {
                    "document_id": document.record.id,
                    "write": write,
                    "tokens": self._library.filter_tokens(fields),
                    "numbers": self._library.filter_numbers(fields),
                    **self._chunk_payload(chunk, places),
                }
                if before and chunk.id in before.chunks:
                    payload["replaces"] = before.chunks[chunk.id]["write"]
                dense = {arm: unit(vector) for arm, vector in chunk.dense.items()}
                point = self._library.chunk_point(chunk.id, dense=dense, lexical=chunk.lexical, payload=payload)
                chunks.append(point)
        live = {chunk.id for document in group for chunk in document.chunks}
        stale = [one for before in held.values() for one in before.chunks if one not in live]
        updating = bool(stale) or len(chunks) > POINTS_AT_ONCE
        records = [self._record_point(one, write, updating, held.get(one.record.id)) for one in group]
        return PreparedWrite(group, held, places, records, chunks, stale, numbers, updating)

    def commit(self, write: PreparedWrite) -> None:
        """Put it in place of what is there. No kill loses it once this returns."""
        self.shard.index_numbers(write.number_fields)
        if len(write.chunks) > POINTS_AT_ONCE:
            self.shard.upsert(write.records)
            for piece in _pieces(write.chunks):
                self.shard.upsert(piece)
        else:
            self.shard.upsert([*write.records, *write.chunks])
        for ids in _pieces(write.stale):
            self.shard.delete(ids)
        if write.updating:
            self.shard.set_payload([document.record.id for document in write.documents], _DONE)
        self._flush_if_due()
        self._uncount(write.held)
        self._count(write)

    def remove(self, held: Mapping[str, HeldDocument]) -> None:
        """Remove these documents. No kill brings them back once this returns."""
        ids = [one for document in held.values() for one in document.chunks]
        if len(ids) > POINTS_AT_ONCE:
            # The records go last: until then `recover` finds what was begun.
            self.shard.set_payload(list(held), {"state": "deleting"})
            for piece in _pieces(ids):
                self.shard.delete(piece)
            ids = []
        self.shard.delete([*ids, *held])
        self._flush_if_due()
        self._uncount(held)

    def _flush_if_due(self) -> None:
        now = time.monotonic()
        if now - self._flushed >= FLUSH_EVERY_S:
            self.shard.flush()
            self._flushed = time.monotonic()

    # ── recover ───────────────────────────────────────────────────────────────────────────────────────────────

    def recover(self, saved: Path | None) -> None:
        """Finish what was cut off, then have the counts: the saved ones if they are right, else counted anew."""
        keys = ["document_id", "write", "expected", "state", "previous"]
        pending = list(self.shard.scroll(self._library.is_pending(), keys=keys))
        for document_id, payload, _ in pending:
            self._recover_document(document_id, payload)
        if pending:
            self.shard.flush()
        statistics = None if pending or saved is None else Statistics.load(saved)
        if statistics is None:
            statistics = self._count_anew()
        elif statistics.chunks != (found := self.shard.count(self._library.is_chunk())):
            # They are saved after the last write and removed before the next: nothing but damage parts the two.
            raise EngineError(
                f"The workspace holds {found} chunks where {statistics.chunks} were stored: its files are damaged.",
                remedy=self._library.RESTORE,
            )
        self.statistics = statistics

    def _recover_document(self, document_id: str, payload: Mapping[str, Any]) -> None:
        write, previous = payload["write"], payload.get("previous")
        where = self._library.chunks_of([document_id])
        chunks = {one: found for one, found, _ in self.shard.scroll(where, keys=["write", "replaces"])}
        new = [one for one, found in chunks.items() if found["write"] == write]
        if payload["state"] == "deleting":
            for piece in _pieces(list(chunks)):
                self.shard.delete(piece)
            self.shard.delete([document_id])
        elif len(new) == payload["expected"]:
            self.shard.delete([one for one, found in chunks.items() if found["write"] != write])
            self.shard.set_payload([document_id], _DONE)
        else:
            # Not all of the new chunks came through. One with the id of an old one stands for it: the id is made
            # from the content.
            again = [one for one in new if chunks[one].get("replaces")]
            self.shard.delete([one for one in new if not chunks[one].get("replaces")])
            if previous:
                self.shard.set_payload(again, {"write": previous["write"]})
                self.shard.upsert([self._library.document_point(document_id, {**previous, **_DONE})])
            else:
                self.shard.delete([document_id])

    # ── counts ────────────────────────────────────────────────────────────────────────────────────────────────

    def _count(self, write: PreparedWrite) -> None:
        counts = self.statistics
        for document in write.documents:
            counts.documents += 1
            counts.chunks += len(document.chunks)
            counts.count_languages(document.record.language, len(document.chunks))
        counts.count_terms((one.lexical.indices for document in write.documents for one in document.chunks), sign=1)
        counts.code_bytes.update(_bytes_by_file(write.places.values()))

    def _uncount(self, held: Mapping[str, HeldDocument]) -> None:
        counts = self.statistics
        for document in held.values():
            counts.documents -= 1
            counts.chunks -= len(document.chunks)
            counts.count_languages(load_record(document.payload["record"]).language, -len(document.chunks))
        chunks = [one for document in held.values() for one in document.chunks.values()]
        counts.count_terms((one["terms"] for one in chunks), sign=-1)
        counts.code_bytes.subtract(_bytes_by_file(_places(chunks)))

    def _count_anew(self) -> Statistics:
        counts = Statistics()
        languages: dict[str, str] = {}
        chunks: Counter[str] = Counter()
        batch: list[Any] = []
        # One way through all points: with a condition each page would look through all that satisfy it.
        for one, payload, terms in self.shard.scroll(None, keys=["kind", "document_id", "record", "codes"], terms=True):
            if payload["kind"] == "document":
                languages[one] = load_record(payload["record"]).language
                continue
            chunks[payload["document_id"]] += 1
            counts.code_bytes.update(_bytes_by_file(_places([payload])))
            batch.append(terms)
            if len(batch) == POINTS_AT_ONCE:
                counts.count_terms(batch, sign=1)
                batch = []
        counts.count_terms(batch, sign=1)
        counts.documents, counts.chunks = len(languages), chunks.total()
        for one, language in languages.items():
            counts.count_languages(language, chunks[one])
        return counts

    # ── token codes ───────────────────────────────────────────────────────────────────────────────────────────

    def dead_code_files(self) -> list[int]:
        """Files that hold more dead bytes than live ones, where that is worth the work of moving the live ones."""
        sizes, live = self.codes.sizes(), self.statistics.code_bytes
        if sum(sizes.values()) - live.total() < max(RECLAIM_BYTES, live.total()):
            return []
        return [number for number, size in sizes.items() if size - live[number] > live[number]]

    def moves(self, files: Sequence[int]) -> Iterator[list[tuple[str, dict[str, list[int]]]]]:
        """Copy the live codes of these files to new ones; in pieces, (chunk id, its new places)."""
        self.codes.start_file()
        held: list[tuple[str, dict[str, Place]]] = []
        for one, payload, _ in self.shard.scroll(None, keys=["codes"]):
            places = {arm: Place(*place) for arm, place in (payload.get("codes") or {}).items()}
            if any(place.file in files for place in places.values()):
                held.append((one, places))
            if len(held) >= POINTS_AT_ONCE:
                yield self._copied(held)
                held = []
        if held:
            yield self._copied(held)

    def _copied(self, held: Sequence[tuple[str, dict[str, Place]]]) -> list[tuple[str, dict[str, list[int]]]]:
        copies = iter(self.codes.append([self.codes.read(place) for _, places in held for place in places.values()]))
        return [(one, {arm: list(next(copies)) for arm in places}) for one, places in held]

    def move(self, piece: Sequence[tuple[str, dict[str, list[int]]]]) -> None:
        """Point these chunks to the copies."""
        for one, places in piece:
            self.shard.set_payload([one], {"codes": places})

    def drop(self, files: Sequence[int]) -> None:
        """Remove the files from which everything was moved."""
        self.shard.flush()
        for number in files:
            self.codes.remove(number)
        self.statistics = self._count_anew()

    # ── payloads ──────────────────────────────────────────────────────────────────────────────────────────────

    def _write_codes(self, group: Sequence[EncodedDocument]) -> dict[tuple[str, str], Place]:
        given = [
            ((chunk.id, arm), codes)
            for document in group
            for chunk in document.chunks
            for arm, codes in chunk.token_codes.items()
        ]
        places = self.codes.append([codes for _, codes in given])
        return {key: place for (key, _), place in zip(given, places, strict=True)}

    def _chunk_payload(self, chunk: EncodedChunk, places: Mapping[tuple[str, str], Place]) -> dict[str, Any]:
        payload: dict[str, Any] = {
            "chunk": dump_chunk(chunk.chunk),
            "terms": self._library.terms_text(chunk.terms),
        }
        if chunk.token_codes:
            payload["codes"] = {arm: list(places[chunk.id, arm]) for arm in chunk.token_codes}
        return payload

    def _record_point(self, document: EncodedDocument, write: str, updating: bool, held: HeldDocument | None) -> Any:
        previous = None
        if held and updating:
            previous = {key: held.payload[key] for key in ("record", "write", "expected")}
        payload = {
            "record": dump_record(document.record),
            "write": write,
            "expected": len(document.chunks),
            "state": "updating" if updating else "done",
            "previous": previous,
        }
        return self._library.document_point(document.record.id, payload)


def write_groups(documents: Sequence[EncodedDocument]) -> Iterator[list[EncodedDocument]]:
    """Documents that are written together; one with more chunks than an entry of the log takes goes alone."""
    group: list[EncodedDocument] = []
    points = 0
    for document in documents:
        size = len(document.chunks) + 1
        if group and points + size > POINTS_AT_ONCE:
            yield group
            group, points = [], 0
        group.append(document)
        points += size
    if group:
        yield group


def _pieces(items: Sequence[Any]) -> Iterator[Sequence[Any]]:
    for start in range(0, len(items), POINTS_AT_ONCE):
        yield items[start : start + POINTS_AT_ONCE]


def _places(chunks: Sequence[Mapping[str, Any]]) -> Iterator[Place]:
    for chunk in chunks:
        for place in (chunk.get("codes") or {}).values():
            yield Place(*place)


def _bytes_by_file(places: Any) -> Counter[int]:
    total: Counter[int] = Counter()
    for place in places:
        total[place.file] += place.size
    return total
