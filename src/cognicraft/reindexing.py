"""Encode a workspace again with other encoders, from the text that it holds: no file is read.

Takes: the workspace's folder, the encoders to become, ways to open the old engine and a new one. Returns: a
`ReindexReport`; progress while it goes.
Method: documents are copied a batch at a time. The old engine is open only while a batch is read, so that other
processes can ask it meanwhile; what is encoded is durable in the new one before the next batch. A run that was cut off
goes on from there: a document that is there as it should be is left alone. At the end the old engine is held while what
changed meanwhile is brought over; then the manifest is written, in one step, and the old files go. A kill before the
manifest leaves the old generation served, a kill after it the new one; `generations.py` says where the
files lie and clears what is left.
Chunks stay as they were cut: the first encoder's tokens decided that when the file was read. A document's revision
gets the key of the new manifest, so that the next ingest finds its file unchanged.
Cost: that of encoding; twice the disk until the end. What can go wrong: another process holds the workspace (waited
for, once the run has begun), the disk fills up (EngineError; run again), a provider stops answering (ModelError; same).
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from cognicraft.engines.lock import WorkspaceLock
from cognicraft.errors import Cancelled, EngineError, ModelError, WorkspaceFormat, WorkspaceLocked
from cognicraft.generations import (
    LOCK_FILE,
    UNFINISHED_FILE,
    durable,
    remove_generation,
    remove_leftovers,
    target_manifest,
)
from cognicraft.ingest.encode import DocumentToEncode, LexicalDocument, cut_texts, encode
from cognicraft.manifest import FILE_NAME, EncoderStamp, Manifest, read_manifest
from cognicraft.protocols import Embedder, Engine
from cognicraft.records import ContextualChunk, DocumentRecord
from cognicraft.results import ReindexReport

# Chunks read at one opening of the old engine, and chunks encoded and written as one.
READ_CHUNKS = 1024
WRITE_CHUNKS = 256
# Rounds over what changed meanwhile before the last one, which holds the old engine.
_ROUNDS = 5

# What ingest says of a record because of its encoders; said anew for the new ones.
_CUT = re.compile(r"(\d+) chunks are longer than the \d+ tokens that (.+) reads; ")
_FOREIGN = re.compile(r"in a language \((.+?)\) that no encoder of this workspace knows; ")


@dataclass(frozen=True, slots=True)
class ReindexProgress:
    """Where a run stands; what is done is durable in the new generation. current: a file, or what is waited for.

    Where documents change meanwhile, both totals grow.
    """

    documents_total: int
    documents_done: int
    chunks_total: int
    chunks_done: int
    current: str


@dataclass(frozen=True, slots=True)
class ReindexSteps:
    """What the workspace lends to a run.

    old: opens the engine of a manifest for reading and lets go of it again. new: opens or makes the engine of a
    manifest. changes: held while nothing else in this process may change the workspace. switched: called once the
    manifest is written; the old engine must be closed when it returns.
    """

    embedders: Mapping[str, Embedder]
    lexical: Callable[[Manifest], LexicalDocument]
    old: Callable[[Manifest], AbstractContextManager[Engine]]
    new: Callable[[Manifest], Engine]
    changes: Callable[[], AbstractContextManager[None]]
    switched: Callable[[Manifest], None]


def reindex(
    folder: Path,
    steps: ReindexSteps,
    *,
    workspace: str,
    progress: Callable[[ReindexProgress], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> ReindexReport:
    """Bring the workspace in `folder` over to these encoders; nothing is done where it has them already.

    Raises: Cancelled, WorkspaceLocked, WorkspaceFormat, EngineError, ModelError. What was done is kept, but for
    WorkspaceFormat.
    """
    stamps = tuple(_stamp(name, embedder) for name, embedder in steps.embedders.items())
    lock = WorkspaceLock(folder / LOCK_FILE)
    try:
        manifest = read_manifest(folder)
        if manifest is None:
            raise WorkspaceFormat(f"There is no workspace in {folder}.", remedy="Ingest first.")
        target = target_manifest(manifest, stamps)
        dropped = remove_leftovers(folder, manifest, keep=target.folder)
        run = _Run(folder, steps, manifest, target, workspace=workspace, progress=progress, cancelled=cancelled)
        if stamps == manifest.encoders:
            return run.report(switched=False, dropped=dropped)
        return run.go(dropped)
    finally:
        lock.release()


class _Run:
    """One run over one workspace. Use once."""

    def __init__(
        self,
        folder: Path,
        steps: ReindexSteps,
        manifest: Manifest,
        target: Manifest,
        *,
        workspace: str,
        progress: Callable[[ReindexProgress], None] | None,
        cancelled: Callable[[], bool] | None,
    ) -> None:
        self._folder = folder
        self._steps = steps
        self._manifest = manifest
        self._target = target
        self._workspace = workspace
        self._progress = progress
        self._cancelled = cancelled
        self._lexical = steps.lexical(manifest)
        self._same_tokens = manifest.encoders[0] == target.encoders[0]
        self._keys = {f"-{manifest.revision_key[:8]}": f"-{target.revision_key[:8]}"}
        self._new: Engine | None = None
        self._total = self._kept = self._documents = 0
        self._chunks_total = self._chunks_kept = self._chunks = 0
        self._current = ""
        self._warnings: list[str] = []
        self._timings = {"read": 0.0, "encode": 0.0, "write": 0.0}
        self._started = time.perf_counter()

    def go(self, dropped: list[str]) -> ReindexReport:
        try:
            wanted = self._wanted(patient=False)
            self._new = self._open_new()
            held = {record.id: record for record in self._new.documents()}
            todo = [one for one, record in wanted.items() if not _same(held.get(one), record)]
            self._total, self._kept = len(wanted), len(wanted) - len(todo)
            self._chunks_total = sum(record.chunk_count for record in wanted.values())
            self._chunks_kept = self._chunks_total - sum(wanted[one].chunk_count for one in todo)
            self._tell()
            for _ in range(_ROUNDS):
                self._copy(todo)
                wanted = self._wanted()
                held = {record.id: record for record in self._new.documents()}
                todo = [one for one, record in wanted.items() if not _same(held.get(one), record)]
                if not todo:
                    break
            self._new.close()  # a graph that is due is built here, while others still ask the old engine
            self._new = self._steps.new(self._target)
            self._stop_if_cancelled()
            counts = self._switch()
        finally:
            if self._new is not None:
                self._new.close()
        (self._folder / self._target.folder / UNFINISHED_FILE).unlink(missing_ok=True)
        try:
            remove_generation(self._folder, self._manifest.folder)
        except WorkspaceLocked:
            self._warnings.append("The old files are still held by another process; a later opening removes them.")
        return self.report(switched=True, dropped=dropped, counts=counts)

    def report(
        self, *, switched: bool, dropped: list[str], counts: tuple[int, int, int] | None = None
    ) -> ReindexReport:
        if counts is None:
            with ExitStack() as stack:
                old = self._borrow(stack, patient=False)
                counts = _counts(list(old.documents()))
        for names in dropped:
            self._warnings.append(f"What an earlier reindex to {names} had done and not finished was removed.")
        documents, failed, chunks = counts
        timings = {**self._timings, "total": time.perf_counter() - self._started}
        return ReindexReport(
            workspace=self._workspace,
            encoders_before=list(self._manifest.encoder_names),
            encoders=list(self._target.encoder_names),
            switched=switched,
            documents=documents,
            failed=failed,
            chunks=chunks,
            kept=self._kept,
            encoded_chunks=self._chunks,
            warnings=self._warnings,
            timings_ms={name: round(seconds * 1000, 1) for name, seconds in timings.items()},
        )

    # ── the old engine ────────────────────────────────────────────────────────────────────────────────────────

    def _borrow(self, stack: ExitStack, *, patient: bool = True) -> Engine:
        """The old engine until the stack is left. Whoever holds it is waited for: an ingest may take long."""
        while True:
            try:
                return stack.enter_context(self._steps.old(self._manifest))
            except WorkspaceLocked as error:
                if not patient:
                    raise
                self._current = f"waiting: {error.message}"
                self._tell()
                self._stop_if_cancelled()

    def _wanted(self, *, patient: bool = True) -> dict[str, DocumentRecord]:
        """Every record as it has to be in the new generation, but for what it says of the encoders."""
        with ExitStack() as stack:
            old = self._borrow(stack, patient=patient)
            self._follow()
            return self._restamped(old.documents())

    def _restamped(self, records: Iterable[DocumentRecord]) -> dict[str, DocumentRecord]:
        return {record.id: self._restamp(record) for record in records}

    def _restamp(self, record: DocumentRecord) -> DocumentRecord:
        """A record made under the old manifest as made under the new one; an older one stays old."""
        for old, new in self._keys.items():
            if record.revision.endswith(old):
                return replace(record, revision=record.revision.removesuffix(old) + new)
        return record

    def _follow(self) -> None:
        """Take over what an ingest changed of the manifest meanwhile (the model that writes contexts)."""
        manifest = read_manifest(self._folder)
        if manifest is not None and manifest != self._manifest:
            own = ("encoders", "late_interaction", "folder")
            target = manifest.model_copy(update={name: getattr(self._target, name) for name in own})
            self._manifest, self._target = manifest, target
            self._keys[f"-{manifest.revision_key[:8]}"] = f"-{target.revision_key[:8]}"

    # ── from the old engine to the new one ────────────────────────────────────────────────────────────────────

    def _open_new(self) -> Engine:
        path = self._folder / self._target.folder
        try:
            self._mark(path)
            return self._steps.new(self._target)
        except WorkspaceFormat:  # begun by another version: not worth more than beginning again
            remove_generation(self._folder, path.name)
            self._mark(path)
            return self._steps.new(self._target)

    def _mark(self, path: Path) -> None:
        path.mkdir(exist_ok=True)
        (path / UNFINISHED_FILE).write_text(self._target.model_dump_json(indent=2) + "\n", encoding="utf-8")

    def _copy(self, ids: Sequence[str], *, old: Engine | None = None) -> None:
        """Copy documents by id. old: where it is held anyway; else it is borrowed for a batch at a time."""
        position = 0
        while position < len(ids):
            started = time.perf_counter()
            batch: list[DocumentToEncode] = []
            chunks = 0
            with ExitStack() as stack:
                source = old if old is not None else self._borrow(stack)
                while position < len(ids) and chunks < READ_CHUNKS and len(batch) < READ_CHUNKS:
                    document = _read(source, ids[position])
                    position += 1
                    if document is not None:
                        batch.append(document)
                        chunks += len(document.chunks)
            self._timings["read"] += time.perf_counter() - started
            for part in _parts(batch):
                self._stop_if_cancelled()
                self._write(part)

    def _write(self, documents: Sequence[DocumentToEncode]) -> None:
        assert self._new is not None
        started = time.perf_counter()
        encoded = encode(
            [self._fresh(document) for document in documents],
            embedders=self._steps.embedders,
            lexical=self._lexical,
            token_codes=self._target.late_interaction,
        )
        self._timings["encode"] += time.perf_counter() - started
        started = time.perf_counter()
        self._new.replace(encoded)
        self._timings["write"] += time.perf_counter() - started
        self._documents += len(documents)
        self._chunks += sum(len(document.chunks) for document in documents)
        self._current = documents[-1].record.source
        self._tell()

    def _fresh(self, document: DocumentToEncode) -> DocumentToEncode:
        """The document as the new encoders see it: revision, tokens of its chunks, what ingest would say of it."""
        chunks, record = document.chunks, document.record
        embedders = self._steps.embedders
        if not self._same_tokens:
            first = next(iter(embedders.values()))
            chunks = tuple(_counted(contextual, first) for contextual in chunks)
        warnings = [text for text in record.warnings if not _CUT.match(text) and not _FOREIGN.match(text)]
        for name, embedder in embedders.items():
            cut = cut_texts(chunks, embedder=embedder)
            if cut:
                warnings.append(
                    f"{cut} chunks are longer than the {embedder.max_text_tokens} tokens that {name} reads; "
                    "their ends are found by words only."
                )
        language = record.language
        if language and not any(e.languages is None or language in e.languages for e in embedders.values()):
            warnings.append(
                f"in a language ({language}) that no encoder of this workspace knows; they are found by words only. "
                "For search by meaning ingest them with --encoder multilingual-e5 into a workspace of their own."
            )
        return DocumentToEncode(replace(self._restamp(record), warnings=tuple(warnings)), chunks)

    # ── the switch ────────────────────────────────────────────────────────────────────────────────────────────

    def _switch(self) -> tuple[int, int, int]:
        """Hold the old engine, bring over what changed meanwhile, write the manifest; the counts of what is there."""
        assert self._new is not None
        with ExitStack() as stack:
            stack.enter_context(self._steps.changes())
            old = self._borrow(stack)
            self._follow()
            wanted = self._restamped(old.documents())
            held = {record.id: record for record in self._new.documents()}
            self._copy([one for one, record in wanted.items() if not _same(held.get(one), record)], old=old)
            gone = [one for one in held if one not in wanted]
            if gone:
                self._new.delete(gone)
            records = list(self._new.documents())
            counts = _counts(records)
            if counts != _counts(list(wanted.values())):
                raise EngineError(
                    f"The new generation holds {counts[0]} documents with {counts[2]} chunks, the workspace "
                    f"{self._workspace} {_counts(list(wanted.values()))[0]} with {_counts(list(wanted.values()))[2]}.",
                    remedy="Run it again; the workspace is as it was.",
                )
            self._warn(records)
            self._new.close()
            self._new = None
            durable(self._folder / self._target.folder)
            self._target.write(self._folder)
            durable(self._folder / FILE_NAME, self._folder)
            self._steps.switched(self._target)
        return counts

    def _warn(self, records: Iterable[DocumentRecord]) -> None:
        """What ingest says at its end of all documents together."""
        cut: Counter[str] = Counter()
        foreign: Counter[str] = Counter()
        for record in records:
            for text in record.warnings:
                if found := _CUT.match(text):
                    cut[found[2]] += int(found[1])
                elif found := _FOREIGN.match(text):
                    foreign[found[1]] += 1
        for name, count in sorted(cut.items()):
            self._warnings.append(f"{count} chunks are longer than {name} reads; their ends are found by words only.")
        for language, count in foreign.most_common():
            self._warnings.append(
                f"{count} documents are in a language ({language}) that none of these encoders knows; they are found "
                "by words only."
            )

    # ── telling ───────────────────────────────────────────────────────────────────────────────────────────────

    def _tell(self) -> None:
        if self._progress is not None:
            done, chunks = self._kept + self._documents, self._chunks_kept + self._chunks
            self._progress(
                ReindexProgress(
                    documents_total=max(self._total, done),
                    documents_done=done,
                    chunks_total=max(self._chunks_total, chunks),
                    chunks_done=chunks,
                    current=self._current,
                )
            )

    def _stop_if_cancelled(self) -> None:
        if self._cancelled is not None and self._cancelled():
            raise Cancelled(
                f"Stopped: {self._kept + self._documents} of {self._total} documents are encoded and kept; the "
                f"workspace {self._workspace} answers with {', '.join(self._manifest.encoder_names)} as before.",
                remedy="Run the same command again to go on from there.",
            )


def _stamp(name: str, embedder: Embedder) -> EncoderStamp:
    """Ask it once before anything is made: a wrong key, a stopped server and a wrong size show here."""
    size = len(embedder.encode_documents(["reindex"])[0].vector)
    if size != embedder.dimensions:
        raise ModelError(
            f"The encoder {name} gives vectors of {size} dimensions, not of {embedder.dimensions}.",
            remedy="Check the name and its @dimensions.",
        )
    return EncoderStamp(name=name, dimensions=embedder.dimensions, fingerprint=embedder.fingerprint)


def _read(engine: Engine, document_id: str) -> DocumentToEncode | None:
    """A record with its chunks, both of one revision; None for one that vanished."""
    while (record := engine.document(document_id)) is not None:
        chunks = tuple(stored.chunk for stored in engine.document_chunks(document_id))
        if engine.document(document_id) == record:
            return DocumentToEncode(record, chunks)
    return None


def _parts(documents: Sequence[DocumentToEncode]) -> Iterator[list[DocumentToEncode]]:
    part: list[DocumentToEncode] = []
    chunks = 0
    for document in documents:
        part.append(document)
        chunks += len(document.chunks)
        if chunks >= WRITE_CHUNKS or len(part) >= WRITE_CHUNKS:
            yield part
            part, chunks = [], 0
    if part:
        yield part


def _counted(contextual: ContextualChunk, embedder: Embedder) -> ContextualChunk:
    tokens = len(embedder.token_offsets(contextual.chunk.text))
    return replace(contextual, chunk=replace(contextual.chunk, tokens=tokens))


def _same(held: DocumentRecord | None, wanted: DocumentRecord) -> bool:
    return held is not None and replace(held, warnings=()) == replace(wanted, warnings=())


def _counts(records: Sequence[DocumentRecord]) -> tuple[int, int, int]:
    """Documents, files on the quarantine list, chunks."""
    failed = sum(record.status == "failed" for record in records)
    return len(records) - failed, failed, sum(record.chunk_count for record in records)
