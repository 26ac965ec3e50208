"""One run of ingest: which files are new, read, cut, encode, write; each file either done or as before.

Takes: found files (or documents in memory). Returns: an `IngestReport`; progress while it goes.
Method: a file is known by the hash of its bytes, kept on the last of its documents. That document is written after
all others of the file, and after what the file no longer holds was removed: so the hash is the mark that the file is
whole, and a run that was cut off at any point reads the file again. Files are counted as done only when the engine
has them durably. Memory: one batch of chunks. What can go wrong: a file that cannot be read goes on the quarantine list
with its reason and is left alone until it changes; an older version that was read before stays searchable. A language
model that fails while it writes contexts ends the run with its error; documents that were whole by then are written,
and every reply is kept, so that the next run asks only for what is missing.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from cognicraft.errors import Cancelled, ModelError, ReadError
from cognicraft.ingest.context_batch import Contextualize, ready_to_encode
from cognicraft.ingest.encode import DocumentToEncode, LexicalDocument, encode
from cognicraft.protocols import Embedder, Engine, Splitter
from cognicraft.records import Chunk, Document, DocumentRecord, Usage, digest
from cognicraft.results import FailedFile, IngestReport

if TYPE_CHECKING:
    from cognicraft.ingest.context_estimate import ContextEstimate, SizedFile
    from cognicraft.ingest.context_llm import ChunkContexts, Expected, PlacedDocument


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a run stands. `files_done` are durable; a kill loses none of them.

    contexts: by a language model, kept ones included; contexts_expected: as estimated, None without an estimate.
    usage: what the calls of this run took so far.
    """

    files_total: int
    files_done: int
    documents: int
    chunks: int
    current: str
    contexts: int = 0
    contexts_expected: int | None = None
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True)
class FileToRead:
    """A file on disk: `source` is its name in records, `path` is what the operating system is given."""

    source: str
    path: str
    size: int
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class FileRead:
    """What a reader gave of one file, or a part of it; the last part has `done`, or an error."""

    file: FileToRead
    documents: tuple[Document, ...] = ()
    error: ReadError | None = None
    done: bool = True


@dataclass(frozen=True, slots=True)
class IngestSteps:
    """The steps a run is made of, chosen by the workspace. contexts: by a language model, where they are wanted."""

    split: Splitter
    contextualize: Contextualize
    detect_language: Callable[[Document], str]
    embedders: Mapping[str, Embedder]
    lexical: LexicalDocument
    token_codes: bool
    revision_key: str
    batch_chunks: int = 256
    contexts: ChunkContexts | None = None


@dataclass(slots=True)
class _Pending:
    """A document waiting for its batch; a failed record has no document. `seals` is the file that it completes."""

    record: DocumentRecord
    document: Document | None = None
    chunks: tuple[Chunk, ...] = ()
    seals: FileToRead | None = None
    stale_ids: tuple[str, ...] = ()


@dataclass(slots=True)
class _OpenFile:
    """A file of which a part was read: the last document is held back until it is known to be the last."""

    hash: str
    held: Document | None = None
    ids: set[str] = field(default_factory=set)


class IngestRun:
    """One run over one workspace. Use once."""

    def __init__(
        self,
        engine: Engine,
        steps: IngestSteps,
        *,
        workspace: str,
        progress: Callable[[Progress], None] | None = None,
        cancelled: Callable[[], bool] | None = None,
        confirm: Callable[[ContextEstimate], bool] | None = None,
        price: Callable[[int, int], float | None] | None = None,
    ) -> None:
        """confirm: asked before a language model is, with what its contexts will take; False ends the run.

        price: (tokens in, tokens out) -> US dollars, for that estimate.
        """
        self._engine = engine
        self._steps = steps
        self._workspace = workspace
        self._progress = progress
        self._cancelled = cancelled
        self._confirm = confirm
        self._price = price or (lambda _tokens_in, _tokens_out: None)
        self._contexts_expected: int | None = None
        self._pending: list[_Pending] = []
        self._pending_chunks = 0
        self._open: dict[str, _OpenFile] = {}
        self._known: dict[str, list[DocumentRecord]] = {}
        self._files = self._files_done = self._documents = self._chunks = 0
        self._added = self._changed = self._unchanged = self._pruned = 0
        self._failed: list[FailedFile] = []
        self._warnings: list[str] = []
        self._foreign: Counter[str] = Counter()
        self._cut: Counter[str] = Counter()
        self._shortened = 0
        self._timings = {"read": 0.0, "split": 0.0, "encode": 0.0, "write": 0.0}
        if steps.contexts is not None:
            self._timings["contexts"] = 0.0
        self._current = ""

    # ── the two ways in ───────────────────────────────────────────────────────────────────────────────────────

    def files(
        self,
        found: Sequence[FileToRead],
        failures: Sequence[tuple[FileToRead, ReadError]],
        *,
        read: Callable[[Iterable[FileToRead]], Iterator[FileRead]],
        skipped: Mapping[str, int],
        roots: Collection[str],
        prune: bool,
        retry_failed: bool,
    ) -> IngestReport:
        """Bring the workspace up to these files.

        roots: sources or folders (ending in "/") that were asked for: known files under them that were not found have
        vanished. Raises: Cancelled; EngineError; ModelError where a language model that writes contexts fails.
        """
        started = time.perf_counter()
        for record in self._engine.documents():
            self._known.setdefault(record.source, []).append(record)
        self._files = len(found) + len(failures)
        for file, error in failures:
            if os.path.lexists(file.path):
                self._fail(file, error, file_hash="")
            else:  # a path mistyped: said, but nothing to remember
                self._failed.append(FailedFile(file=file.source, code=error.code, error=str(error)))
        to_read = [file for file in found if not self._is_unchanged(file, retry_failed=retry_failed)]
        self._estimate_files(to_read, read)
        self._report()
        waiting = time.perf_counter()
        for outcome in read(self._hashed(to_read)):
            self._timings["read"] += time.perf_counter() - waiting
            self._take(outcome)
            self._stop_if_cancelled()
            waiting = time.perf_counter()
        self._flush()
        present = {file.source for file in found} | {file.source for file, _ in failures}
        vanished = sorted(
            source
            for source, records in self._known.items()
            if source not in present and any(source == root or _under(source, root) for root in roots) and records
        )
        if prune and vanished:
            self._pruned = self._engine.delete([r.id for source in vanished for r in self._known[source]])
        return self._finish(started, vanished=vanished, skipped=skipped)

    def documents(self, documents: Iterable[Document]) -> IngestReport:
        """Bring documents that are already in memory in; each is a source of its own."""
        started = time.perf_counter()
        known = {record.id: record for record in self._engine.documents()}
        if self._wants_estimate:
            documents = list(documents)
            self._estimate_documents(documents, known)
        for document in documents:
            self._files += 1
            self._current = document.source
            revision = self._revision(document)
            record = known.get(document.id)
            if record is not None and record.status == "ready" and record.revision == revision:
                self._unchanged += 1
                self._files_done += 1
                continue
            self._added += record is None
            self._changed += record is not None
            size = len(document.text)
            file = FileToRead(source=document.source, path="", size=size, mtime_ns=0)
            self._add(document, file=file, file_hash=document.content_hash, seals=True, stale_ids=())
            self._stop_if_cancelled()
        self._flush()
        return self._finish(started, vanished=[], skipped={})

    # ── what is read already ──────────────────────────────────────────────────────────────────────────────────

    def _is_unchanged(self, file: FileToRead, *, retry_failed: bool) -> bool:
        for record in self._known.get(file.source, ()):
            if not record.file_hash or not record.revision.endswith(self._steps.revision_key[:8]):
                continue
            if record.status == "failed" and retry_failed:
                continue
            same = record.file_size == file.size and (
                record.file_mtime_ns == file.mtime_ns or record.file_hash == _hash_file(file.path)
            )
            if not same:
                continue
            self._files_done += 1
            if record.status == "failed":
                self._failed.append(FailedFile(file=file.source, code=record.error_code, error=record.error))
            else:
                self._unchanged += 1
            return True
        return False

    def _hashed(self, files: Iterable[FileToRead]) -> Iterator[FileToRead]:
        """Hash each file just before a reader gets it: one that changes meanwhile is read again by the next run."""
        for file in files:
            self._open[file.source] = _OpenFile(hash=_hash_file(file.path))
            yield file

    # ── from a reader to pending documents ────────────────────────────────────────────────────────────────────

    def _take(self, outcome: FileRead) -> None:
        source = outcome.file.source
        self._current = source
        state = self._open[source]
        for document in outcome.documents:
            if state.held is not None:
                self._add(state.held, file=outcome.file, file_hash="", seals=False, stale_ids=())
            state.held = document
            state.ids.add(document.id)
        if outcome.error is not None:
            del self._open[source]
            if state.held is not None:
                self._add(state.held, file=outcome.file, file_hash="", seals=False, stale_ids=())
            self._fail(outcome.file, outcome.error, file_hash=state.hash)
        elif outcome.done:
            del self._open[source]
            known = self._known.get(source, [])
            stale = tuple(record.id for record in known if record.id not in state.ids)
            if state.held is None:  # a file of no documents has no place for its mark: readers refuse it instead
                return
            self._changed += any(record.status == "ready" for record in known)
            self._added += not any(record.status == "ready" for record in known)
            self._add(state.held, file=outcome.file, file_hash=state.hash, seals=True, stale_ids=stale)

    def _add(
        self, document: Document, *, file: FileToRead, file_hash: str, seals: bool, stale_ids: tuple[str, ...]
    ) -> None:
        revision = self._revision(document)
        if not seals:
            known = self._known.get(document.source, ())
            if any(r.id == document.id and r.revision == revision and r.status == "ready" for r in known):
                return
        started = time.perf_counter()
        language = self._steps.detect_language(document)
        first = next(iter(self._steps.embedders.values()))
        chunks = self._steps.split(document, offsets=first.token_offsets)
        warnings = list(document.warnings)
        if language and not any(e.languages is None or language in e.languages for e in self._steps.embedders.values()):
            self._foreign[language] += 1
            warnings.append(_language_warning(language))
        record = DocumentRecord(
            id=document.id,
            source=document.source,
            revision=revision,
            title=document.title,
            media_type=document.media_type,
            pointer=document.pointer,
            language=language,
            pages=document.pages,
            characters=len(document.text),
            chunk_count=len(chunks),
            file_hash=file_hash,
            file_size=file.size,
            file_mtime_ns=file.mtime_ns,
            ingested_at=_now(),
            metadata=dict(document.metadata),
            warnings=tuple(warnings),
        )
        self._warnings += [f"{document.source}: {warning}" for warning in document.warnings]
        self._timings["split"] += time.perf_counter() - started
        self._pending.append(
            _Pending(record, document, tuple(chunks), seals=file if seals else None, stale_ids=stale_ids)
        )
        self._pending_chunks += len(chunks)
        if self._pending_chunks >= self._steps.batch_chunks or len(self._pending) >= self._steps.batch_chunks:
            self._flush()

    def _fail(self, file: FileToRead, error: ReadError, *, file_hash: str) -> None:
        """On the quarantine list, beside whatever was read of the file before."""
        self._failed.append(FailedFile(file=file.source, code=error.code, error=str(error)))
        if any(r.status == "ready" for r in self._known.get(file.source, ())):
            self._warnings.append(f"{file.source}: the version that was read before is still searched.")
        record = DocumentRecord(
            id=digest(file.source, "failed"),
            source=file.source,
            revision=self._stamp(digest(error.code, file_hash)),
            status="failed",
            file_hash=file_hash,
            file_size=file.size,
            file_mtime_ns=file.mtime_ns,
            ingested_at=_now(),
            error_code=error.code,
            error=str(error),
        )
        self._pending.append(_Pending(record, seals=file))
        if len(self._pending) >= self._steps.batch_chunks:
            self._flush()

    # ── from pending documents to the engine ──────────────────────────────────────────────────────────────────

    def _flush(self) -> None:
        pending, self._pending, self._pending_chunks = self._pending, [], 0
        if not pending:
            return
        placed, error = self._place(pending)
        # What a failed model leaves whole is written in the order of arrival: no file is sealed before its parts.
        lacking = (n for n, item in enumerate(pending) if item.document is not None and placed[n] is None)
        whole = next(lacking, None) if self._steps.contexts is not None else None
        self._write(pending[:whole], placed[:whole])
        if isinstance(error, ModelError):
            error.remedy = f"{error.remedy} What was paid for is kept; the same command goes on from there.".lstrip()
        if error is not None:
            raise error
        self._stop_if_cancelled(always=whole is not None)

    def _place(self, pending: Sequence[_Pending]) -> tuple[list[PlacedDocument | None], Exception | None]:
        """The sentences of a language model for each, None where there are none; and what ended its work."""
        contexts = self._steps.contexts
        placed: list[PlacedDocument | None] = [None] * len(pending)
        if contexts is None:
            return placed, None
        started = time.perf_counter()
        places = [place for place, item in enumerate(pending) if item.document is not None]
        placing = contexts.place(
            [(item.document, item.chunks) for item in pending if item.document is not None],
            stop=self._cancelled,
            progress=self._report,
        )
        for place, found in zip(places, placing.documents, strict=True):
            placed[place] = found
        self._timings["contexts"] += time.perf_counter() - started
        return placed, placing.ending.error

    def _ready(self, item: _Pending, placed: PlacedDocument | None) -> DocumentToEncode:
        if item.document is None:
            return DocumentToEncode(item.record)
        ready = ready_to_encode(
            item.record,
            item.document,
            item.chunks,
            placed=placed,
            contextualize=self._steps.contextualize,
            embedders=self._steps.embedders,
        )
        self._cut.update(ready.cut)
        self._shortened += ready.shortened
        return ready.document

    def _write(self, pending: Sequence[_Pending], placed: Sequence[PlacedDocument | None]) -> None:
        if not pending:
            return
        started = time.perf_counter()
        encoded = encode(
            [self._ready(item, found) for item, found in zip(pending, placed, strict=True)],
            embedders=self._steps.embedders,
            lexical=self._steps.lexical,
            token_codes=self._steps.token_codes,
        )
        self._timings["encode"] += time.perf_counter() - started
        started = time.perf_counter()
        parts = [document for item, document in zip(pending, encoded, strict=True) if item.seals is None]
        sealing = [document for item, document in zip(pending, encoded, strict=True) if item.seals is not None]
        stale = [identifier for item in pending for identifier in item.stale_ids]
        if parts:
            self._engine.replace(parts)
        if stale:
            self._engine.delete(stale)
        if sealing:
            self._engine.replace(sealing)
        self._timings["write"] += time.perf_counter() - started
        self._documents += sum(document.record.status == "ready" for document in encoded)
        self._chunks += sum(len(document.chunks) for document in encoded)
        self._files_done += len(sealing)
        self._report()

    # ── what a language model will cost ───────────────────────────────────────────────────────────────────────────

    @property
    def _wants_estimate(self) -> bool:
        return self._confirm is not None and self._steps.contexts is not None

    def _estimate_files(
        self, to_read: Sequence[FileToRead], read: Callable[[Iterable[FileToRead]], Iterator[FileRead]]
    ) -> None:
        """Read some of the files, all if there are few, and ask whether to go on."""
        if not self._wants_estimate or not to_read:
            return
        from cognicraft.ingest.context_estimate import SizedFile, spread_sample

        sized = [SizedFile(file.source, file.size) for file in to_read]
        taken: dict[str, list[Expected]] = {file.source: [] for file in spread_sample(sized)}
        for outcome in read(file for file in to_read if file.source in taken):
            source = self._current = outcome.file.source
            known = {record.id: record for record in self._known.get(source, ())}
            taken[source] += self._expected_of(outcome.documents, known)
            self._report()
            self._stop_if_cancelled()
        self._go_on(sized, taken)

    def _estimate_documents(self, documents: Sequence[Document], known: Mapping[str, DocumentRecord]) -> None:
        from cognicraft.ingest.context_estimate import SizedFile

        expected = list(self._expected_of(documents, known))
        if expected:
            self._go_on([SizedFile("", 0)], {"": expected})

    def _expected_of(self, documents: Iterable[Document], known: Mapping[str, DocumentRecord]) -> Iterator[Expected]:
        """Of the documents that are not there yet in this revision."""
        assert self._steps.contexts is not None
        offsets = next(iter(self._steps.embedders.values())).token_offsets
        for document in documents:
            record = known.get(document.id)
            if record is None or record.status != "ready" or record.revision != self._revision(document):
                yield self._steps.contexts.expected(document, self._steps.split(document, offsets=offsets))

    def _go_on(self, files: Sequence[SizedFile], taken: Mapping[str, Sequence[Expected]]) -> None:
        from cognicraft.ingest.context_estimate import estimate

        assert self._steps.contexts is not None
        assert self._confirm is not None
        found = estimate(files, taken=taken, contexts=self._steps.contexts, price=self._price)
        self._contexts_expected = found.chunks + found.kept
        # What is kept from before costs nothing: nobody need be asked.
        if found.chunks and not self._confirm(found):
            raise Cancelled(
                "Nothing was ingested: the contexts by a language model were not wanted.",
                remedy="Without --context llm the chunks have their outline as context, which costs nothing.",
            )

    # ── telling ───────────────────────────────────────────────────────────────────────────────────────────────

    def _stop_if_cancelled(self, *, always: bool = False) -> None:
        if always or (self._cancelled is not None and self._cancelled()):
            # What is encoded already is worth keeping; a second Ctrl-C does not wait for it.
            raise Cancelled(
                f"Stopped: {self._files_done} of {self._files} files are done and kept.",
                remedy="Run the same command again to go on from there.",
            )

    def _report(self) -> None:
        contexts = self._steps.contexts
        if self._progress is not None:
            self._progress(
                Progress(
                    files_total=self._files,
                    files_done=self._files_done,
                    documents=self._documents,
                    chunks=self._chunks,
                    current=self._current,
                    contexts=contexts.tally.done if contexts else 0,
                    contexts_expected=self._contexts_expected,
                    usage=contexts.tally.usage if contexts else Usage(),
                )
            )

    def _finish(self, started: float, *, vanished: list[str], skipped: Mapping[str, int]) -> IngestReport:
        if self._steps.contexts is not None:
            self._warnings += self._steps.contexts.notes()
        if self._shortened:
            self._warnings.append(
                f"{self._shortened} contexts were shortened for the dense encoders, which read no more of them before "
                "the chunk; smaller chunks (--chunk-tokens 100) leave them more room."
            )
        for name, count in sorted((+self._cut).items()):
            self._warnings.append(f"{count} chunks are longer than {name} reads; their ends are found by words only.")
        for language, count in self._foreign.most_common():
            self._warnings.append(f"{count} documents: {_language_warning(language)}")
        self._timings["total"] = time.perf_counter() - started
        return IngestReport(
            workspace=self._workspace,
            files=self._files,
            added=self._added,
            changed=self._changed,
            unchanged=self._unchanged,
            vanished=vanished,
            pruned=self._pruned,
            skipped=dict(skipped),
            failed=sorted(self._failed, key=lambda failed: failed.file),
            documents=self._documents,
            chunks=self._chunks,
            warnings=self._warnings,
            timings_ms={name: round(seconds * 1000, 1) for name, seconds in self._timings.items()},
        )

    def _revision(self, document: Document) -> str:
        return self._stamp(document.content_hash)

    def _stamp(self, content: str) -> str:
        """Content, then how it was cut and encoded: either one changed makes another revision."""
        return f"{content}-{self._steps.revision_key[:8]}"


def nothing_found(
    workspace: str, failures: Sequence[tuple[FileToRead, ReadError]], skipped: Mapping[str, int]
) -> IngestReport:
    """The report of a run that had nothing to read."""
    return IngestReport(
        workspace=workspace,
        files=len(failures),
        added=0,
        changed=0,
        unchanged=0,
        vanished=[],
        pruned=0,
        skipped=dict(skipped),
        failed=[FailedFile(file=file.source, code=error.code, error=str(error)) for file, error in failures],
        documents=0,
        chunks=0,
        warnings=[],
        timings_ms={"total": 0.0},
    )


def _language_warning(language: str) -> str:
    return (
        f"in a language ({language}) that no encoder of this workspace knows; they are found by words only. "
        "For search by meaning ingest them with --encoder multilingual-e5 into a workspace of their own."
    )


def _under(source: str, root: str) -> bool:
    return root.endswith("/") and source.startswith(root)


def _hash_file(path: str) -> str:
    """Hash of the bytes; "" for a file that is gone or cannot be opened."""
    hasher = hashlib.blake2b(digest_size=16)
    try:
        with open(path, "rb") as stream:  # noqa: PTH123  (names that are not valid UTF-8)
            while block := stream.read(1 << 20):
                hasher.update(block)
    except OSError:
        return ""
    return hasher.hexdigest()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
