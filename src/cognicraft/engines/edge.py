"""The embedded default engine: Qdrant Edge in this process, one folder a workspace, one process at a time.

Takes and returns what `protocols.Engine` says. Layout of the folder:

    engine.json      format version, dense arms, which folder is the shard; written last when the workspace is made
    lock             who holds it (`lock.py`)
    shard…/          Qdrant's files: a point a chunk, a point a document record (`edge_store.py`)
    codes/           token codes (`codes.py`), pointed to from the chunks
    statistics.npz   counts for IDF and languages; there only while the engine is closed

A write happens under the write lock of the engine, so a search sees all of a document's new revision or all of the old
one. Chunks outside the graph are compared one by one; when they are many, the graph is built anew in a process of its
own (`edge_graph.py`) at the end of the write that made them so many, or on close, while searches go on.

Cost: see docs/decisions/0003-edge-engine.md. What can go wrong: another process holds the folder (WorkspaceLocked),
another version wrote it (WorkspaceFormat), the disk is full or a file damaged (EngineError; open again to recover).
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from cognicraft.engines.checks import checked, is_id, query_terms, query_vector
from cognicraft.engines.codes import CodeFiles, Place
from cognicraft.engines.disk import disk_bytes, require_room
from cognicraft.engines.edge_graph import build_graph
from cognicraft.engines.edge_store import EdgeStore, write_groups
from cognicraft.engines.lock import WorkspaceLock
from cognicraft.engines.read_write_lock import ReadWriteLock
from cognicraft.engines.stored_json import load_chunk, load_record
from cognicraft.errors import CogniCraftError, EngineError, MissingExtra, WorkspaceFormat
from cognicraft.records import (
    BooleanQuery,
    ByteArray,
    DocumentRecord,
    EncodedDocument,
    EngineInfo,
    Filter,
    FloatArray,
    Ranking,
    Scored,
    SparseVector,
    StoredChunk,
)

FORMAT_VERSION = 1
ENGINE_FILE = "engine.json"
STATISTICS_FILE = "statistics.npz"

# Equal scores at the cut-off: how far to look for the one with the smallest id before taking any of them.
TIES_FETCHED = 4096
# Chunks outside the graph are compared one by one, about 0.15 µs each; above this many a graph pays.
TAIL_CHUNKS = 10_000

Fetch = Callable[[int], list[tuple[str, float]]]
Change = TypeVar("Change")


class EdgeEngine:
    """`protocols.Engine` over Qdrant Edge. Made by `create` or `open`, never directly."""

    name = "edge"
    exact = False

    def __init__(
        self, path: Path, *, library: ModuleType, shard: Any, lock: WorkspaceLock, stamp: dict[str, Any]
    ) -> None:
        self.lock = lock
        self._path = path
        self._library = library
        self._stamp = stamp
        self._dense: dict[str, int] = stamp["dense"]
        self._store = EdgeStore(library=library, shard=shard, codes=CodeFiles(path / "codes"))
        self._guard = ReadWriteLock()
        self._writers = threading.Lock()
        self._closed = False
        self._failed = False
        self._tail = 0
        self._tail_wanted = TAIL_CHUNKS
        self._graph_error = ""

    # ── open and close ────────────────────────────────────────────────────────────────────────────────────────

    @classmethod
    def create(cls, path: Path, *, dense: Mapping[str, int], token_codes: bool) -> EdgeEngine:
        """Make an empty engine in `path`, a folder that holds none. `dense`: arm -> dimensions.

        Raises EngineError where there is one already, WorkspaceLocked, MissingExtra.
        """
        library = _import_library()
        with _engine_errors(f"The folder {path} could not be made"):
            path.mkdir(parents=True, exist_ok=True)
        require_room(path)
        lock = WorkspaceLock(path / "lock")
        try:
            if (path / ENGINE_FILE).exists():
                raise EngineError(f"There is a workspace in {path} already.", remedy="Open it, or delete it first.")
            with _engine_errors(f"The workspace in {path} could not be made"):
                # Without engine.json this is the rest of a creation that was cut off; nothing in it was acknowledged.
                _remove_shards(path, keep="")
                shutil.rmtree(path / "codes", ignore_errors=True)
                stamp = {
                    "format": FORMAT_VERSION,
                    "engine": cls.name,
                    "dense": dict(dense),
                    "token_codes": token_codes,
                    "shard": "shard",
                }
                shard = library.Shard.create(path / "shard", dense=dense)
                engine = cls(path, library=library, shard=shard, lock=lock, stamp=stamp)
                _write_stamp(path, stamp)
        except BaseException:
            lock.release()
            raise
        return engine

    @classmethod
    def open(cls, path: Path) -> EdgeEngine:
        """Open what `create` made, finishing what a kill cut off.

        Raises WorkspaceFormat where there is none or of another version, WorkspaceLocked, MissingExtra, EngineError.
        """
        _read_stamp(path)
        library = _import_library()
        lock = WorkspaceLock(path / "lock")
        try:
            with _engine_errors(f"The workspace in {path} could not be opened"):
                # Read again under the lock: the holder may just have changed which folder is the shard.
                stamp = _read_stamp(path)
                _remove_shards(path, keep=stamp["shard"])
                shard = library.Shard.load(path / stamp["shard"], dense=stamp["dense"])
                engine = cls(path, library=library, shard=shard, lock=lock, stamp=stamp)
                engine._store.recover(path / STATISTICS_FILE)
                engine._measure_tail()
        except BaseException:
            lock.release()
            raise
        return engine

    def close(self) -> None:
        with self._writers:
            if self._closed:
                return
            if not self._failed and self._tail >= self._tail_wanted:
                self._build_graph()
            with self._guard.write():
                self._closed = True
                try:
                    with _engine_errors("The engine could not be closed"):
                        self._store.shard.close()
                        if not self._failed:
                            self._store.statistics.save(self._path / STATISTICS_FILE)
                finally:
                    self._store.codes.close()
                    self.lock.release()

    # ── write ─────────────────────────────────────────────────────────────────────────────────────────────────

    def replace(self, documents: Sequence[EncodedDocument]) -> None:
        fresh = checked(documents, dense=self._dense, token_codes=self._stamp["token_codes"])
        with self._writers, _engine_errors("The engine failed to write"):
            self._require_open()
            for group in write_groups(fresh):
                require_room(self._path)
                write = self._store.prepare(group)
                self._change(self._store.commit, write)
                self._tail += len(write.chunks)
            self._maintain()

    def delete(self, document_ids: Sequence[str]) -> int:
        with self._writers, _engine_errors("The engine failed to delete"):
            self._require_open()
            held = self._store.held(_known(dict.fromkeys(document_ids)))
            if held:
                self._change(self._store.remove, held)
                self._maintain()
            return len(held)

    def _change(self, change: Callable[[Change], None], what: Change) -> None:
        """Do it unseen by searches. Whatever cuts it off, be it Ctrl-C, is cleared up as on opening."""
        with self._guard.write():
            (self._path / STATISTICS_FILE).unlink(missing_ok=True)
            try:
                change(what)
            except BaseException:
                self._failed = True
                self._store.recover(None)
                self._failed = False
                raise

    def _maintain(self) -> None:
        """What keeps searches fast and the disk small; nothing that was acknowledged depends on it."""
        if self._tail >= max(self._tail_wanted, self._store.statistics.chunks // 3):
            self._build_graph()
        files = self._store.dead_code_files()
        if files:
            for piece in self._store.moves(files):
                self._change(self._store.move, piece)
            self._change(self._store.drop, files)

    def _build_graph(self) -> None:
        """Searches go on meanwhile, on the old shard; the new one takes its place when it is whole."""
        name = f"shard-{uuid.uuid4().hex[:8]}"
        old = self._store.shard
        try:
            with _engine_errors("The index could not be built"):
                require_room(self._path, more_bytes=disk_bytes(self._path / self._stamp["shard"]))
                old.flush()
                build_graph(self._path / self._stamp["shard"], copy=self._path / name, dense=self._dense)
                new = self._library.Shard.load(self._path / name, dense=self._dense)
        except EngineError as error:
            self._graph_error = str(error)
            self._tail_wanted = self._tail + TAIL_CHUNKS
            return
        with self._guard.write():
            self._stamp = {**self._stamp, "shard": name}
            _write_stamp(self._path, self._stamp)
            self._store.shard = new
        old.close()
        _remove_shards(self._path, keep=name)
        self._graph_error = ""
        self._tail_wanted = TAIL_CHUNKS
        self._tail = 0

    def _measure_tail(self) -> None:
        if self._dense:
            chunks = self._store.statistics.chunks
            # The shard counts the sparse vectors among the indexed ones: they always are.
            indexed = self._store.shard.indexed_vectors() - chunks
            self._tail = max(0, chunks - indexed // len(self._dense))

    # ── read ──────────────────────────────────────────────────────────────────────────────────────────────────

    def document(self, document_id: str) -> DocumentRecord | None:
        with self._reading():
            return self._records([document_id]).get(document_id)

    def documents(self) -> Iterator[DocumentRecord]:
        with self._reading():
            found = self._store.shard.scroll(self._library.is_document(), keys=["record"])
            records = [load_record(payload["record"]) for _, payload, _ in found]
        return iter(sorted(records, key=lambda record: (record.source, record.pointer, record.id)))

    def document_chunks(self, document_id: str) -> list[StoredChunk]:
        with self._reading():
            record = self._records([document_id]).get(document_id)
            if record is None:
                return []
            found = self._store.shard.scroll(self._library.chunks_of([document_id]), keys=["chunk"])
            stored = [_stored(one, payload["chunk"], record) for one, payload, _ in found]
        return sorted(stored, key=lambda one: (one.chunk.chunk.start, one.chunk.chunk.end, one.id))

    def search_dense(self, arm: str, vector: FloatArray, *, limit: int, where: Filter | None = None) -> Ranking:
        with self._reading():
            query = query_vector(vector, arm=arm, dense=self._dense)
            condition = self._condition(where)
            shard = self._store.shard
            return _ranking(lambda count: shard.search_dense(arm, query, limit=count, where=condition), limit=limit)

    def search_lexical(self, query: SparseVector, *, limit: int, where: Filter | None = None) -> Ranking:
        with self._reading():
            return self._search_lexical(query_terms(query), limit=limit, condition=self._condition(where))

    def search_boolean(
        self, query: BooleanQuery, *, rank_by: SparseVector, limit: int, where: Filter | None = None
    ) -> Ranking:
        with self._reading():
            condition = self._library.both(self._library.boolean_condition(query), self._condition(where))
            condition = self._library.both(self._library.is_chunk(), condition)
            ranked = self._search_lexical(query_terms(rank_by), limit=limit, condition=condition)
            if len(ranked) >= limit:
                return ranked
            # All that share a term are in: the rest score 0, and the shard gives them by id ascending.
            rest = self._library.without(condition, [one.chunk_id for one in ranked])
            others = self._store.shard.scroll(rest, limit=limit - len(ranked))
            return ranked + tuple(Scored(one, 0.0) for one, _, _ in others)

    def chunks(self, ids: Sequence[str]) -> list[StoredChunk]:
        with self._reading():
            found = self._store.shard.payloads(_known(ids), keys=["kind", "document_id", "chunk"])
            held = {one: payload for one, payload in found.items() if payload["kind"] == "chunk"}
            records = self._records({payload["document_id"]: None for payload in held.values()})
            return [_stored(one, held[one]["chunk"], records[held[one]["document_id"]]) for one in ids if one in held]

    def token_codes(self, arm: str, ids: Sequence[str]) -> list[ByteArray | None]:
        with self._reading():
            if not self._stamp["token_codes"]:
                return [None] * len(ids)
            found = self._store.shard.payloads(_known(ids), keys=["codes"])
            held = {one: (payload.get("codes") or {}).get(arm) for one, payload in found.items()}
            places = [held.get(one) for one in ids]
            return [self._store.codes.read(Place(*place)) if place else None for place in places]

    def languages(self) -> dict[str, int]:
        with self._reading():
            return dict(self._store.statistics.languages)

    def info(self) -> EngineInfo:
        with self._reading():
            detail: dict[str, Any] = {"segments": self._store.shard.segments(), "chunks_outside_graph": self._tail}
            if self._graph_error:
                detail["graph_error"] = self._graph_error
            return EngineInfo(
                name=self.name,
                format_version=FORMAT_VERSION,
                documents=self._store.statistics.documents,
                chunks=self._store.statistics.chunks,
                disk_bytes=disk_bytes(self._path),
                dense_arms=tuple(self._dense),
                detail=detail,
            )

    def _search_lexical(self, query: SparseVector, *, limit: int, condition: Any) -> Ranking:
        weighted = self._store.statistics.weighted(query)
        if not len(weighted.indices):
            return ()
        shard = self._store.shard
        return _ranking(lambda count: shard.search_lexical(weighted, limit=count, where=condition), limit=limit)

    def _condition(self, where: Filter | None) -> Any:
        return None if where is None else self._library.filter_condition(where)

    def _records(self, document_ids: Iterable[str]) -> dict[str, DocumentRecord]:
        found = self._store.shard.payloads(_known(document_ids), keys=["record"])
        return {one: load_record(payload["record"]) for one, payload in found.items() if "record" in payload}

    @contextlib.contextmanager
    def _reading(self) -> Iterator[None]:
        with self._guard.read(), _engine_errors("The engine failed to read"):
            self._require_open()
            yield

    def _require_open(self) -> None:
        if self._closed:
            raise EngineError("The engine is closed.", remedy="Open the workspace again.")
        if self._failed:
            raise EngineError(
                "The engine stopped at an earlier error in the middle of a write.",
                remedy="Open the workspace again; what was cut off is then finished.",
            )


def _import_library() -> ModuleType:
    try:
        from cognicraft.engines import edge_shard
    except ModuleNotFoundError as error:
        if error.name != "qdrant_edge":
            raise
        raise MissingExtra("The engine edge", extra="edge") from error
    return edge_shard


@contextlib.contextmanager
def _engine_errors(what: str) -> Iterator[None]:
    """Whatever the library or the disk raises becomes an EngineError; our own errors pass."""
    try:
        yield
    except CogniCraftError:
        raise
    except Exception as error:
        raise EngineError(f"{what}: {error}.", remedy="Check the disk, then open the workspace again.") from error


def _read_stamp(path: Path) -> dict[str, Any]:
    file = path / ENGINE_FILE
    try:
        stamp = json.loads(file.read_text("utf-8"))
        version, engine = stamp["format"], stamp["engine"]
    except FileNotFoundError:
        raise WorkspaceFormat(
            f"There is no {ENGINE_FILE} in {path}.", remedy="Check the path, or ingest into a new workspace."
        ) from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise WorkspaceFormat(
            f"The file {file} cannot be read: {error!r}.", remedy="Restore it from a backup, or ingest anew."
        ) from error
    if engine != EdgeEngine.name:
        raise WorkspaceFormat(
            f"The workspace in {path} belongs to the engine {engine!r}, not to {EdgeEngine.name!r}.",
            remedy="Open it with that engine.",
        )
    if version != FORMAT_VERSION:
        newer = isinstance(version, int) and version > FORMAT_VERSION
        raise WorkspaceFormat(
            f"The workspace in {path} has format {version}; this version reads format {FORMAT_VERSION}.",
            remedy="Install a newer cognicraft." if newer else "Ingest the documents into a new workspace.",
        )
    return dict(stamp)


def _write_stamp(path: Path, stamp: Mapping[str, Any]) -> None:
    """Whole or not at all."""
    part = path / f"{ENGINE_FILE}.part"
    with part.open("w", encoding="utf-8") as file:
        file.write(json.dumps(stamp, indent=2) + "\n")
        file.flush()
        os.fsync(file.fileno())
    part.replace(path / ENGINE_FILE)


def _remove_shards(path: Path, *, keep: str) -> None:
    """Shards that are not in use: the one before the last graph, a copy that was cut off."""
    for folder in path.glob("shard*"):
        if folder.name != keep:
            shutil.rmtree(folder, ignore_errors=True)


def _ranking(fetch: Fetch, *, limit: int) -> Ranking:
    """The best `limit`, ties by id. Looks past the cut-off for equal scores, within reason."""
    if limit <= 0:
        return ()
    count = limit + 8
    while True:
        found = fetch(count)
        ends_in_tie = len(found) == count and found[limit - 1][1] == found[-1][1]
        if not ends_in_tie or count >= limit + TIES_FETCHED:
            break
        count = min(4 * count, limit + TIES_FETCHED)
    best = sorted(found, key=lambda one: (-one[1], one[0]))[:limit]
    return tuple(Scored(chunk_id, score) for chunk_id, score in best)


def _stored(chunk_id: str, chunk: str, record: DocumentRecord) -> StoredChunk:
    return StoredChunk(
        id=chunk_id,
        document_id=record.id,
        source=record.source,
        title=record.title,
        chunk=load_chunk(chunk),
        language=record.language,
        pointer=record.pointer,
        metadata=record.metadata,
    )


def _known(ids: Iterable[str]) -> list[str]:
    """The ids that can be in a shard at all."""
    return [one for one in ids if is_id(one)]
