"""A workspace: your documents, searchable and quotable. THE FILE TO READ FIRST.

    ingest:  discover ─▶ read (worker processes) ─▶ split ─▶ contextualize ─▶ encode ─▶ engine      (ingestion.py)
    search:  retrieve (arms side by side) ─▶ fuse and rerank ─▶ hits                                (search/)
    ask:     search ─▶ extract the sentences that answer ─▶ sentences with citations, or "not told" (answer/)

This module only composes: every step is a plain function or class elsewhere that knows nothing of settings or of
the other steps. On disk a workspace is a folder `HOME/workspaces/NAME` with `manifest.json` (what it was made with) and
the files of its engine (everything else). It is made by the first `ingest`.
"""

from __future__ import annotations

import inspect
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from cognicraft import registry
from cognicraft.asking import ask, rounded
from cognicraft.config import Resolved, Settings, resolve
from cognicraft.errors import (
    CogniCraftError,
    DocumentNotFound,
    EmbedderMismatch,
    ReadError,
    SettingsError,
    UsageError,
    WorkspaceFormat,
    WorkspaceLocked,
    WorkspaceNotFound,
)
from cognicraft.ingestion import FileRead, FileToRead, IngestRun, IngestSteps, Progress, nothing_found
from cognicraft.manifest import (
    EncoderStamp,
    Manifest,
    kept_settings,
    read_manifest,
    refuse_other_settings,
)
from cognicraft.presenting import document_info, file_of, search_hit, text_of
from cognicraft.protocols import Embedder, Engine
from cognicraft.records import Chunk, Document, DocumentRecord, EngineInfo, Filter
from cognicraft.results import (
    Answer,
    DocumentInfo,
    DocumentText,
    IngestReport,
    SearchResult,
    WorkspaceInfo,
)
from cognicraft.searching import Opened, find

if TYPE_CHECKING:
    from cognicraft.search.lexical import LexicalEncoder


@dataclass(frozen=True, slots=True)
class Rankings:
    """Chunk ids best first: of each arm, and of all fused and reranked."""

    fused: list[str]
    arms: dict[str, list[str]]
    warnings: list[str]
    config: dict[str, Any]


ProgressCallback = Callable[[Progress], None]


class Workspace:
    """One named collection of documents.

    name: letters, digits, `.`, `_`, `-`; by default the one that the settings name.
    home: folder of all workspaces. settings: dotted key -> value, as in `cognicraft.toml`; they win over the
    environment and the file. A context manager; the engine is opened when first needed and held until `close`.
    Raises: SettingsError.
    """

    def __init__(
        self,
        name: str | None = None,
        *,
        home: str | os.PathLike[str] | None = None,
        settings: Mapping[str, object] | None = None,
        config_file: str | os.PathLike[str] | None = None,
    ) -> None:
        arguments = {**(settings or {}), "workspace": name, "home": None if home is None else Path(home)}
        self._resolved: Resolved = resolve(arguments, config_file=None if config_file is None else Path(config_file))
        self._manifest: Manifest | None = None
        self._engine: Engine | None = None
        self._opening = threading.Lock()

    @property
    def name(self) -> str:
        return self.settings.workspace

    @property
    def settings(self) -> Settings:
        return self._resolved.settings

    @property
    def resolved(self) -> Resolved:
        """The settings with the origin of each."""
        return self._resolved

    @property
    def path(self) -> Path:
        return self.settings.home_folder / "workspaces" / self.name

    @property
    def manifest(self) -> Manifest:
        """What the workspace was made with. Raises: WorkspaceNotFound; WorkspaceFormat."""
        self._open()
        assert self._manifest is not None
        return self._manifest

    @property
    def engine(self) -> Engine:
        """The open engine, for tools that measure or migrate. Raises: WorkspaceNotFound, WorkspaceLocked."""
        return self._open()

    def exists(self) -> bool:
        return self._manifest is not None or (self.path / "manifest.json").is_file()

    def close(self) -> None:
        """Let go of the engine. Idempotent; the next call opens it again (a memory engine is empty then)."""
        with self._opening:
            if self._engine is not None:
                self._engine.close()
                self._engine = None

    def __enter__(self) -> Workspace:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # ── ingest ────────────────────────────────────────────────────────────────────────────────────────────────

    def ingest(
        self,
        *targets: str | os.PathLike[str],
        prune: bool = False,
        retry_failed: bool = False,
        progress: ProgressCallback | None = None,
        cancelled: Callable[[], bool] | None = None,
    ) -> IngestReport:
        """Bring the workspace up to these files, folders and globs: new ones in, changed ones replaced.

        prune: remove documents whose file has vanished from the folders given. retry_failed: read files on the
        quarantine list again although they have not changed. progress: called after each batch. cancelled: asked
        between steps. A file that cannot be read is in `report.failed`, not an error.
        Raises: UsageError, Cancelled, WorkspaceLocked, EmbedderMismatch, EngineError.
        """
        from cognicraft.ingest.discover import count_skipped, discover

        found: list[FileToRead] = []
        failures: list[tuple[FileToRead, ReadError]] = []
        names = [os.fspath(target) for target in targets]
        items = list(discover(names))
        skipped = count_skipped(items)
        for item in items:
            file = FileToRead(source=item.source, path=item.path, size=item.size, mtime_ns=item.mtime_ns)
            if item.error is not None:
                failures.append((file, item.error))
            elif not item.skipped:
                found.append(file)
        if not found and not any(os.path.lexists(file.path) for file, _ in failures) and not self.exists():
            return nothing_found(self.name, failures, skipped)  # a path mistyped makes no workspace
        engine = self._open(make=True)
        run = IngestRun(engine, self._steps(), workspace=self.name, progress=progress, cancelled=cancelled)
        return run.files(
            found,
            failures,
            read=self._read,
            skipped=skipped,
            roots=[_root(name) for name in names],
            prune=prune,
            retry_failed=retry_failed,
        )

    def ingest_documents(
        self,
        documents: Iterable[Document],
        *,
        progress: ProgressCallback | None = None,
        cancelled: Callable[[], bool] | None = None,
    ) -> IngestReport:
        """Bring documents in that are in memory already; `source` and `pointer` tell them apart."""
        engine = self._open(make=True)
        run = IngestRun(engine, self._steps(), workspace=self.name, progress=progress, cancelled=cancelled)
        return run.documents(documents)

    # ── search ────────────────────────────────────────────────────────────────────────────────────────────────

    def search(
        self,
        query: str,
        *,
        limit: int | None = None,
        arms: Sequence[str] | None = None,
        fusion: str | None = None,
        weights: Mapping[str, float] | None = None,
        rerank: str | None = None,
        depth: int | None = None,
        where: str | Filter | None = None,
        settings: Mapping[str, object] | None = None,
    ) -> SearchResult:
        """The passages that fit best, best first, each with its rank and score in every arm.

        Arguments left out come from the settings. where: a filter such as `year >= 2022 and file = "a.pdf"`.
        settings: any other `search.…` setting for this call alone, by its dotted key.
        Raises: WorkspaceNotFound, UsageError, FilterError, WorkspaceLocked, EngineError.
        """
        started = time.perf_counter()
        own = self._settings_of_call(
            {
                "search.limit": limit,
                "search.arms": None if arms is None else tuple(arms),
                "search.fusion": fusion,
                "search.weights": None if weights is None else dict(weights),
                "search.rerank": rerank,
                "search.depth": depth,
            },
            settings,
        )
        opened = self._opened()
        found = find(opened, query, own.search, where=where, limit=own.search.limit)
        retrieved = found.retrieved
        by_id = {chunk.id: chunk for chunk in opened.engine.chunks([hit.chunk_id for hit in retrieved.ranking])}
        hits = [
            search_hit(
                rank,
                by_id[scored.chunk_id],
                scored.score,
                {opened.public_arm(name): place for name, place in retrieved.places[scored.chunk_id].items()},
            )
            for rank, scored in enumerate(retrieved.ranking, start=1)
            if scored.chunk_id in by_id
        ]
        return SearchResult(
            query=query,
            hits=hits,
            warnings=list(retrieved.warnings),
            timings_ms=rounded(retrieved.timings_ms, started),
        )

    def ask(
        self,
        question: str,
        *,
        arms: Sequence[str] | None = None,
        fusion: str | None = None,
        weights: Mapping[str, float] | None = None,
        rerank: str | None = None,
        depth: int | None = None,
        where: str | Filter | None = None,
        max_sentences: int | None = None,
        threshold: float | None = None,
        settings: Mapping[str, object] | None = None,
    ) -> Answer:
        """The sentences of the documents that answer, word for word, each with its source; or that they do not tell.

        threshold: confidence in 0..1 below which nothing is answered; left out, the measured default.
        Raises: as `search`.
        """
        own = self._settings_of_call(
            {
                "search.arms": None if arms is None else tuple(arms),
                "search.fusion": fusion,
                "search.weights": None if weights is None else dict(weights),
                "search.rerank": rerank,
                "search.depth": depth,
                "answer.max_sentences": max_sentences,
                "answer.threshold": threshold,
            },
            settings,
        )
        return ask(self._opened(), question, own, where=where)

    def rankings(
        self,
        question: str,
        *,
        arms: Sequence[str] | None = None,
        fusion: str | None = None,
        weights: Mapping[str, float] | None = None,
        rerank: str | None = None,
        depth: int | None = None,
        where: str | Filter | None = None,
        settings: Mapping[str, object] | None = None,
    ) -> Rankings:
        """The chunk ids of every arm and of the whole, as deep as the arms go, without the texts: for measuring."""
        own = self._settings_of_call(
            {
                "search.arms": None if arms is None else tuple(arms),
                "search.fusion": fusion,
                "search.weights": None if weights is None else dict(weights),
                "search.rerank": rerank,
                "search.depth": depth,
            },
            settings,
        )
        opened = self._opened()
        found = find(opened, question, own.search, where=where, limit=None)
        rankings = found.arms.rankings
        return Rankings(
            fused=[hit.chunk_id for hit in found.retrieved.ranking],
            arms={opened.public_arm(arm): [hit.chunk_id for hit in ranking] for arm, ranking in rankings.items()},
            warnings=list(found.retrieved.warnings),
            config=own.search.model_dump(mode="json"),
        )

    def chunk_sources(self) -> dict[str, str]:
        """Chunk id -> source of its document, for the whole workspace."""
        engine = self._open()
        return {chunk.id: chunk.source for record in engine.documents() for chunk in engine.document_chunks(record.id)}

    # ── documents ─────────────────────────────────────────────────────────────────────────────────────────────

    def documents(self, *, failed: bool | None = None) -> list[DocumentInfo]:
        """All documents by file name; `failed=True` only the quarantine list, `False` only what is searchable."""
        records = self._open().documents()
        return [document_info(r) for r in records if failed is None or (r.status == "failed") == failed]

    def document(self, document: str) -> DocumentText:
        """A document with its text, by id, by the first characters of an id, or by its file.

        Raises: DocumentNotFound; UsageError where more than one fits.
        """
        record = self._find(document)
        chunks = self._open().document_chunks(record.id)
        return DocumentText(document=document_info(record), text=text_of(chunks, record.characters))

    def chunks_of(self, document: str) -> list[Chunk]:
        """The chunks of a document in text order. Found as in `document`."""
        return [stored.chunk.chunk for stored in self._open().document_chunks(self._find(document).id)]

    def delete(self, document: str) -> DocumentInfo:
        """Remove a document, or a file from the quarantine list, for good. Found as in `document`."""
        record = self._find(document)
        self._open().delete([record.id])
        return document_info(record)

    def info(self) -> EngineInfo:
        """What the engine says of itself."""
        return self._open().info()

    # ── all workspaces of a home ──────────────────────────────────────────────────────────────────────────────

    def list_workspaces(self) -> list[WorkspaceInfo]:
        """Every workspace under this home; one that another process holds is listed without its counts."""
        folder = self.settings.home_folder / "workspaces"
        names = sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
        return [self._workspace_info(folder / name) for name in names]

    def delete_workspace(self) -> None:
        """Remove this workspace and all that is in it. Raises: WorkspaceNotFound, WorkspaceLocked."""
        from cognicraft.engines.lock import WorkspaceLock

        self.close()
        if not self.path.is_dir():
            raise self._not_found()
        WorkspaceLock(self.path / "lock").release()  # refuses while another process works in it
        # Out of sight at once, then removed: a kill in between leaves no half a workspace.
        gone = self.path.with_name(f".{self.name}.deleted-{os.getpid()}")
        self.path.rename(gone)
        shutil.rmtree(gone)
        self._manifest = None

    def _workspace_info(self, folder: Path) -> WorkspaceInfo:
        from cognicraft.engines.disk import disk_bytes

        size = disk_bytes(folder)
        engine, encoders, note = "?", [], ""
        documents = chunks = None
        try:
            manifest = read_manifest(folder)
            if manifest is not None:
                engine, encoders = manifest.engine, list(manifest.encoder_names)
                with Workspace(folder.name, home=self.settings.home, settings={"lock_wait_s": 0}) as workspace:
                    documents, chunks = len(workspace.documents(failed=False)), workspace.info().chunks
        except CogniCraftError as error:
            note = error.message
        return WorkspaceInfo(
            name=folder.name,
            path=str(folder),
            engine=engine,
            encoders=encoders,
            documents=documents,
            chunks=chunks,
            disk_bytes=size,
            note=note,
        )

    # ── composing ─────────────────────────────────────────────────────────────────────────────────────────────

    def _open(self, *, make: bool = False) -> Engine:
        with self._opening:
            if self._engine is None:
                manifest = self._manifest or read_manifest(self.path)
                if manifest is None and not make:
                    raise self._not_found()
                if manifest is None:
                    self._manifest, self._engine = self._make()
                else:
                    self._check_encoders(manifest)
                    self._manifest, self._engine = manifest, self._open_engine(manifest, make=make)
            if make:
                assert self._manifest is not None
                refuse_other_settings(self._manifest, self.settings.ingest, self._resolved.origins, workspace=self.name)
            return self._engine

    def _make(self) -> tuple[Manifest, Engine]:
        settings = self.settings
        registry.load("engines", settings.engine)  # a name that nothing has leaves nothing behind
        stamps = []
        for name in settings.ingest.encoders:
            embedder = embedder_named(name)
            stamps.append(EncoderStamp(name=name, dimensions=embedder.dimensions, fingerprint=embedder.fingerprint))
        lexical = _new_lexical()
        manifest = Manifest(
            engine=settings.engine,
            encoders=tuple(stamps),
            bm25_k1=lexical.k1,
            bm25_b=lexical.b,
            bm25_average_length=lexical.average_length,
            **kept_settings(settings.ingest),
        )
        if settings.engine == "memory":
            return manifest, self._open_engine(manifest, make=True)
        self.path.mkdir(parents=True, exist_ok=True)
        # First: a kill after it leaves an empty workspace, whose engine the next opening makes.
        manifest.write(self.path)
        return manifest, self._open_engine(manifest, make=True)

    def _open_engine(self, manifest: Manifest, *, make: bool) -> Engine:
        dense = {stamp.name: stamp.dimensions for stamp in manifest.encoders}
        kind: Any = registry.load("engines", manifest.engine)
        if manifest.engine == "memory":
            engine: Engine = kind(dense=dense)
            return engine
        folder = self.path
        if not make and not (folder / "engine.json").is_file():
            raise WorkspaceFormat(
                f"The workspace {self.name} has no engine files in {folder}.",
                remedy=f"Ingest again with -w {self.name}, or restore the folder from a backup.",
            )
        give_up = time.monotonic() + self.settings.lock_wait_s
        while True:
            try:
                if (folder / "engine.json").is_file():  # another process may just have made it
                    engine = kind.open(folder)
                else:
                    engine = kind.create(folder, dense=dense, token_codes=manifest.late_interaction)
                return engine
            except WorkspaceLocked:
                # A question holds it for a second: wait for that, not for an ingest.
                if time.monotonic() > give_up:
                    raise
                time.sleep(0.05)

    def _check_encoders(self, manifest: Manifest) -> None:
        for stamp in manifest.encoders:
            fingerprint = embedder_named(stamp.name).fingerprint
            if fingerprint != stamp.fingerprint:
                raise EmbedderMismatch(
                    f"The workspace {self.name} was made with another version of the encoder {stamp.name} "
                    f"({stamp.fingerprint}; installed is {fingerprint}).",
                    remedy="Ingest again into a new workspace, or install the version it was made with.",
                )

    def _not_found(self) -> WorkspaceNotFound:
        return WorkspaceNotFound(
            f"There is no workspace {self.name} under {self.settings.home_folder}.",
            remedy=f"Make it with: cognicraft ingest FOLDER -w {self.name}",
        )

    def _embedders(self) -> dict[str, Embedder]:
        return {name: embedder_named(name) for name in self.manifest.encoder_names}

    def _lexical(self) -> LexicalEncoder:
        manifest = self.manifest
        return _lexical(manifest.bm25_k1, manifest.bm25_b, manifest.bm25_average_length)

    def _steps(self) -> IngestSteps:
        from cognicraft.ingest.contextualize import contextualize
        from cognicraft.ingest.language import detect

        assert self._manifest is not None
        manifest, lexical = self._manifest, self._lexical()
        splitter: Any = registry.load("splitters", manifest.splitter)
        if manifest.splitter == "structure":
            split = splitter(max_tokens=manifest.chunk_tokens, overlap_tokens=manifest.overlap_tokens)
        else:
            split = splitter(
                max_characters=manifest.chunk_characters,
                overlap_characters=manifest.overlap_characters,
                separators=manifest.separators,
            )
        return IngestSteps(
            split=split,
            contextualize=partial(contextualize, dense=manifest.context_dense, lexical=manifest.context_lexical),
            detect_language=lambda document: detect(document.text, hint=document.language).code,
            embedders=self._embedders(),
            lexical=lambda text, language: lexical.document(text, language=language),
            token_codes=manifest.late_interaction,
            revision_key=manifest.revision_key,
        )

    def _read(self, files: Iterable[FileToRead]) -> Iterator[FileRead]:
        """Read in worker processes, which are started when there is something to read."""
        from cognicraft.ingest.worker import ReaderPool

        settings = self.settings.ingest
        options: dict[str, object] = {"max_file_mb": settings.max_file_mb}
        if settings.json_text:
            options["json_text"] = settings.json_text
        if settings.json_metadata:
            options["json_metadata"] = settings.json_metadata
        by_path: dict[str, FileToRead] = {}

        def named() -> Iterator[tuple[str, dict[str, object]]]:
            for file in files:
                by_path[file.path] = file
                yield file.path, options

        with ReaderPool(
            workers=settings.workers or min(4, os.cpu_count() or 1),
            memory_limit_mb=settings.memory_limit_mb,
            deadline_s=settings.deadline_s,
            recycle_after=200,
        ) as pool:
            for outcome in pool.read(named()):
                yield FileRead(
                    file=by_path[outcome.path],
                    documents=outcome.documents,
                    error=outcome.error,
                    done=outcome.done,
                )

    def _settings_of_call(self, given: Mapping[str, object], more: Mapping[str, object] | None) -> Settings:
        """The settings with what this call changes, checked as settings are. Raises: SettingsError."""
        changed = {**(more or {}), **{key: value for key, value in given.items() if value is not None}}
        for key in changed:
            if key.partition(".")[0] not in ("search", "answer", "model"):
                raise SettingsError(
                    f"The setting {key} cannot change from one question to the next.",
                    remedy="Give it to Workspace(settings=...), or put it into cognicraft.toml.",
                )
        return self._resolved.changed(changed) if changed else self.settings

    def _opened(self) -> Opened:
        engine = self._open()
        return Opened(
            name=self.name,
            manifest=self.manifest,
            engine=engine,
            embedders=self._embedders(),
            lexical=self._lexical(),
        )

    def _find(self, document: str) -> DocumentRecord:
        engine = self._open()
        record = engine.document(document)
        if record is not None:
            return record
        records = list(engine.documents())
        # A path as `documents list` shows it: relative to where the person stands, with the pointer inside the file.
        absolute = os.path.abspath(document)  # noqa: PTH100  (a name, which need not be a path)
        ways: tuple[Callable[[DocumentRecord], bool], ...] = (
            lambda r: document in (r.source, file_of(r)) or absolute in (r.source, file_of(r)),
            lambda r: len(document) >= 6 and r.id.startswith(document),
            lambda r: document in (r.source.rsplit("/", 1)[-1], file_of(r).rsplit("/", 1 + r.pointer.count("/"))[-1]),
        )
        fits = next((found for way in ways if (found := [r for r in records if way(r)])), [])
        if not fits:
            raise DocumentNotFound(
                f"There is no document {document} in the workspace {self.name}.",
                remedy="`cognicraft documents list` shows their ids and files.",
            )
        if len(fits) > 1:
            raise UsageError(
                f"{len(fits)} documents fit {document}.",
                remedy="Give the id of one: " + ", ".join(record.id for record in fits[:5]),
            )
        return fits[0]


@cache
def embedder_named(name: str) -> Embedder:
    """The encoder of that name, loaded once in a process. Raises: UsageError, MissingExtra, ModelFileError."""
    kind = registry.load("embedders", name)
    # A model that is converted once on its first use takes half a minute: say so.
    wants_progress = "progress" in inspect.signature(kind).parameters
    embedder: Embedder = kind(progress=lambda line: print(line, file=sys.stderr)) if wants_progress else kind()
    return embedder


def _new_lexical() -> LexicalEncoder:
    from cognicraft.search.lexical import LexicalEncoder

    return LexicalEncoder()


@cache
def _lexical(k1: float, b: float, average_length: float) -> LexicalEncoder:
    from cognicraft.search.lexical import LexicalEncoder

    return LexicalEncoder(k1=k1, b=b, average_length=average_length)


def _root(target: str) -> str:
    """A target as the sources under it begin: a folder ends in a slash."""
    from cognicraft.ingest.sourcename import source_of

    path = Path(target).expanduser().absolute()
    source = source_of(os.path.abspath(path))  # noqa: PTH100  (resolves "..", keeps links as discovery does)
    return f"{source.rstrip('/')}/" if path.is_dir() else source
