"""A workspace: your documents, searchable and quotable. THE FILE TO READ FIRST.

    ingest:  discover ─▶ read (worker processes) ─▶ split ─▶ contextualize ─▶ encode ─▶ engine      (ingestion.py)
    search:  retrieve (arms side by side) ─▶ fuse and rerank ─▶ hits                                (search/)
    ask:     search ─▶ a model writes from the evidence ─▶ claims are checked, corrected               (answer/)
             or, without a model, search ─▶ the sentences that answer, word for word; or "not told"

This module only composes: every step is a plain function or class elsewhere that knows nothing of settings or of
the other steps. On disk a workspace is a folder `HOME/workspaces/NAME` with `manifest.json` (what it was made with) and
the files of its engine (everything else). It is made by the first `ingest`.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache, partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from cognicraft import registry
from cognicraft.asking import ask, rounded
from cognicraft.config import Resolved, Settings, resolve
from cognicraft.encoders import canonical_name, embedder_named, keeps_token_codes
from cognicraft.engines.read_write_lock import ReadWriteLock
from cognicraft.errors import (
    CogniCraftError,
    DocumentNotFound,
    EmbedderMismatch,
    EngineError,
    ReadError,
    SettingsError,
    UsageError,
    WorkspaceFormat,
    WorkspaceLocked,
    WorkspaceNotFound,
)
from cognicraft.ingesting import context_price, contexts_by_model, ingest_steps, read_evidence, read_files, root_of
from cognicraft.ingestion import FileToRead, IngestRun, Progress, nothing_found
from cognicraft.manifest import (
    EncoderStamp,
    Manifest,
    kept_settings,
    read_manifest,
    refuse_other_settings,
)
from cognicraft.presenting import document_info, file_of, model_usage, search_hit, text_of, understood
from cognicraft.protocols import Embedder, Engine, Verifier
from cognicraft.records import Chunk, Document, DocumentRecord, EngineInfo, Filter
from cognicraft.results import (
    Answer,
    AnswerEvent,
    AskEvent,
    DocumentInfo,
    DocumentText,
    IngestReport,
    ModelListing,
    ReindexReport,
    SearchResult,
    Verification,
    WorkspaceInfo,
)
from cognicraft.roles import OpenModels, Roles, listing
from cognicraft.searching import Opened, Rankings, find
from cognicraft.sessions import Sessions
from cognicraft.verifying import verifier_of, verify_text

if TYPE_CHECKING:
    from cognicraft.chat import Chat
    from cognicraft.ingest.context_estimate import ContextEstimate
    from cognicraft.ingest.encode import LexicalDocument
    from cognicraft.reindexing import ReindexProgress
    from cognicraft.search.lexical import LexicalEncoder
    from cognicraft.search.names import Names


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
        # Changes share it; the switch of a reindex has it alone, so that nothing written to the old engine is lost.
        self._changes = ReadWriteLock()
        # Questions over the open engine share it; one per engine: the old one is closed when its last question ends.
        self._asked = ReadWriteLock()
        self._models = OpenModels()
        self._learned: Names | None = None
        self._learning = threading.Lock()
        self._changing = 0

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

    def release(self) -> None:
        """Let go of the engine, so that another process may have it; models stay open. The next call opens it again."""
        with self._opening:
            if self._engine is not None:
                self._engine.close()
                self._engine = None
                self._learned = None

    def close(self) -> None:
        """Let go of engine and models. Idempotent; the next call opens them again (a memory engine is empty then)."""
        self.release()
        self._models.close()

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
        confirm: Callable[[ContextEstimate], bool] | None = None,
    ) -> IngestReport:
        """Bring the workspace up to these files, folders and globs: new ones in, changed ones replaced.

        prune: remove documents whose file has vanished from the folders given. retry_failed: read files on the
        quarantine list again although they have not changed. progress: called after each batch. cancelled: asked
        between steps. confirm: where a language model writes contexts, asked before it is paid, with what it will take;
        False raises Cancelled. A file that cannot be read is in `report.failed`, not an error.
        Raises: UsageError, Cancelled, WorkspaceLocked, EmbedderMismatch, EngineError, ModelError.
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
        with self._changes.read(), self._run(progress, cancelled, confirm) as run:
            return run.files(
                found,
                failures,
                read=partial(read_files, settings=self.settings.ingest),
                skipped=skipped,
                roots=[root_of(name) for name in names],
                prune=prune,
                retry_failed=retry_failed,
            )

    def ingest_documents(
        self,
        documents: Iterable[Document],
        *,
        progress: ProgressCallback | None = None,
        cancelled: Callable[[], bool] | None = None,
        confirm: Callable[[ContextEstimate], bool] | None = None,
    ) -> IngestReport:
        """Bring documents in that are in memory already; `source` and `pointer` tell them apart."""
        with self._changes.read(), self._run(progress, cancelled, confirm) as run:
            return run.documents(documents)

    def reindex(
        self,
        *encoders: str,
        progress: Callable[[ReindexProgress], None] | None = None,
        cancelled: Callable[[], bool] | None = None,
    ) -> ReindexReport:
        """Encode the whole workspace again with these encoders, from the text it holds; no file is read.

        It answers with the old encoders until the end, in this process and in others. Cut off, it goes on from there
        when called again. Raises: WorkspaceNotFound, UsageError, MissingExtra, ModelError, WorkspaceLocked,
        EngineError, Cancelled.
        """
        from cognicraft.reindexing import ReindexSteps, reindex

        names = tuple(dict.fromkeys(map(canonical_name, encoders)))
        if not names:
            raise UsageError("No encoder was named.", remedy="Name one or more, such as multilingual-e5.")
        if self.settings.engine == "memory":
            raise UsageError(
                "A workspace in memory cannot change its encoders.", remedy="Ingest into a new one with the others."
            )
        if not self.exists():
            raise self._not_found()
        steps = ReindexSteps(
            embedders={name: self._embedder(name) for name in names},
            lexical=_document_terms,
            old=self._lent,
            new=lambda manifest: self._open_engine(manifest, make=True),
            changes=self._changes.write,
            switched=self._switched,
        )
        return reindex(self.path, steps, workspace=self.name, progress=progress, cancelled=cancelled)

    @contextmanager
    def _lent(self, manifest: Manifest) -> Iterator[Engine]:
        """The engine of this manifest: the open one, or opened only as long as it is needed."""
        with self._opening:
            own = self._engine if self._manifest and self._manifest.folder == manifest.folder else None
        if own is not None:
            yield own
            return
        engine = self._open_engine(manifest, make=False)
        try:
            yield engine
        finally:
            engine.close()

    def _switched(self, manifest: Manifest) -> None:
        """The manifest names another generation now: later calls open that one; the old engine is let go of."""
        with self._opening:
            old, asked = self._engine, self._asked
            self._engine, self._manifest, self._asked = None, manifest, ReadWriteLock()
        self._forget_names()  # they are learned with the vectors of the first encoder
        if old is not None:
            with asked.write():  # the last question that it was asked ends first
                old.close()

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
                **_search_keys(arms, fusion, weights, rerank, depth),
            },
            settings,
        )
        roles = self._roles(own)
        meter = roles.meter()
        with self._opened() as opened:
            found = find(opened, query, own.search, where=where, limit=own.search.limit, roles=roles, meter=meter)
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
            understood=understood(found.understanding, found.plan),
            usage=model_usage(meter.usage),
            warnings=list(retrieved.warnings),
            timings_ms=rounded(retrieved.timings_ms, started),
        )

    def ask(
        self,
        question: str,
        *,
        model: str | None = None,
        arms: Sequence[str] | None = None,
        fusion: str | None = None,
        weights: Mapping[str, float] | None = None,
        rerank: str | None = None,
        depth: int | None = None,
        where: str | Filter | None = None,
        max_sentences: int | None = None,
        threshold: float | None = None,
        history: Sequence[tuple[str, str]] = (),
        settings: Mapping[str, object] | None = None,
    ) -> Answer:
        """What the documents say to a question, each sentence with its sources; or that they do not tell.

        model: `provider:model` that writes the answer; without one (`none`, or nothing set) the sentences that answer
        are quoted word for word. max_sentences, threshold: of quotes; below that confidence (0..1) nothing is quoted.
        history: (question, answer) before this one. settings: any other `search.…`, `answer.…` or `model.…` setting.
        A model that cannot be reached or breaks off is replaced by quotes, and `warnings` say so.
        Raises: as `search`; ModelAuthentication, ModelNotFound, BudgetSpent.
        """
        events = self.ask_stream(
            question,
            model=model,
            arms=arms,
            fusion=fusion,
            weights=weights,
            rerank=rerank,
            depth=depth,
            where=where,
            max_sentences=max_sentences,
            threshold=threshold,
            history=history,
            settings=settings,
        )
        return next(event.answer for event in events if isinstance(event, AnswerEvent))

    def ask_stream(
        self,
        question: str,
        *,
        model: str | None = None,
        arms: Sequence[str] | None = None,
        fusion: str | None = None,
        weights: Mapping[str, float] | None = None,
        rerank: str | None = None,
        depth: int | None = None,
        where: str | Filter | None = None,
        max_sentences: int | None = None,
        threshold: float | None = None,
        history: Sequence[tuple[str, str]] = (),
        settings: Mapping[str, object] | None = None,
    ) -> Iterator[AskEvent]:
        """As `ask`, with events while the answer is made, the answer last. Closing the iterator stops the model."""
        own = self._settings_of_call(
            {
                **_search_keys(arms, fusion, weights, rerank, depth),
                "model.answer": model,
                "answer.max_sentences": max_sentences,
                "answer.threshold": threshold,
            },
            settings,
        )
        return self._events(question, own, where=where, history=history)

    def _events(
        self, question: str, own: Settings, *, where: str | Filter | None, history: Sequence[tuple[str, str]]
    ) -> Iterator[AskEvent]:
        with self._opened() as opened:
            yield from ask(opened, question, own, where=where, roles=self._roles(own), history=history)

    def verify(
        self, text: str, evidence: Sequence[str | os.PathLike[str]], *, settings: Mapping[str, object] | None = None
    ) -> Verification:
        """Hold the claims of any text against any files; `[n]` in the text cites the n-th document read.

        The files are read, not ingested. Raises: UsageError; ReadError for a file that cannot be read; ModelError.
        """
        own = self._settings_of_call({}, settings)
        roles = self._roles(own)
        meter = roles.meter()
        documents, warnings = read_evidence([os.fspath(name) for name in evidence], settings=own.ingest)
        verifier = verifier_of(own.answer, roles=roles, meter=meter)
        return verify_text(text, documents, verifier=verifier, meter=meter, warnings=warnings)

    def verifier(self) -> Verifier:
        """What checks the claims of answers here, for tools that measure it."""
        roles = self._roles(self.settings)
        return verifier_of(self.settings.answer, roles=roles, meter=roles.meter())

    def chat(
        self,
        session: str | None = None,
        *,
        where: str | Filter | None = None,
        settings: Mapping[str, object] | None = None,
    ) -> Chat:
        """A conversation: follow-ups are put so that they stand alone, every turn is kept under this home.

        session: id (or its first characters) of one to go on with, or `last`; left out, a new one. where, settings: for
        every question, as in `ask`. Raises: NotFound, UsageError, SettingsError.
        """
        from cognicraft.answer.followup import FollowUp, stand_alone
        from cognicraft.chat import Chat
        from cognicraft.search.stopwords import STOP_WORDS

        own = self._settings_of_call({}, settings)

        def rewrite(question: str, history: Sequence[tuple[str, str]]) -> FollowUp:
            roles = self._roles(own)
            return stand_alone(
                question,
                history,
                model=roles.model("rewrite", meter=roles.meter()),
                timeout_s=own.search.plan_timeout_s,
                stop_words=STOP_WORDS,
            )

        def answered(question: str, history: Sequence[tuple[str, str]]) -> Iterator[AskEvent]:
            return self.ask_stream(question, where=where, history=history, settings=settings)

        kept = self.sessions.new() if session is None else self.sessions.open(session)
        return Chat(kept, rewrite=rewrite, ask_stream=answered)

    @property
    def sessions(self) -> Sessions:
        """The conversations of this workspace: `list()`, `open(ID)`, `delete(ID)`."""
        return Sessions(self.settings.home_folder / "sessions" / self.name, workspace=self.name)

    def answering(self) -> tuple[str, str]:
        """The model that writes answers, "" where they are quoted; and one line on it where the person chose none.

        Raises: UsageError.
        """
        roles = self._roles(self.settings)
        return roles.answering, roles.note

    def models(self, *, provider: str | None = None) -> ModelListing:
        """The language models that can be named, and which does which work. Raises: UsageError."""
        return listing(self._roles(self.settings), provider=provider)

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
        own = self._settings_of_call(_search_keys(arms, fusion, weights, rerank, depth), settings)
        roles = self._roles(own)
        with self._opened() as opened:
            found = find(opened, question, own.search, where=where, limit=None, roles=roles, meter=roles.meter())
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
        with self._changes.read():
            record = self._find(document)
            with self._changed_names():
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
        manifest = read_manifest(self.path)
        held = [self.path / (manifest.folder if manifest else "") / "lock", self.path / "reindex.lock"]
        for lock in held:
            if lock.parent.is_dir():
                WorkspaceLock(lock).release()  # refuses while another process works in it
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
                # From the disk each time: another process may have switched it to other encoders.
                manifest = read_manifest(self.path) or self._manifest
                if manifest is None and not make:
                    raise self._not_found()
                if manifest is None:
                    self._manifest, self._engine = self._make()
                else:
                    self._manifest, self._engine = self._open_current(manifest, make=make)
            if make:
                assert self._manifest is not None
                refuse_other_settings(self._manifest, self.settings.ingest, self._resolved.origins, workspace=self.name)
            return self._engine

    def _open_current(self, manifest: Manifest, *, make: bool) -> tuple[Manifest, Engine]:
        """Open what the manifest names; a reindex may switch it between reading the one and opening the other."""
        from cognicraft.generations import clear_old_generations

        while True:
            self._check_encoders(manifest)
            try:
                engine = self._open_engine(manifest, make=make)
            except (WorkspaceFormat, EngineError):
                now = read_manifest(self.path)
                if now is None or now == manifest:
                    raise
            else:
                now = read_manifest(self.path)
                if now is None or now == manifest:
                    if now is not None:
                        clear_old_generations(self.path, manifest)
                    return manifest, engine
                engine.close()
            manifest = now

    def _make(self) -> tuple[Manifest, Engine]:
        settings = self.settings
        registry.load("engines", settings.engine)  # a name that nothing has leaves nothing behind
        stamps = []
        for name in map(canonical_name, settings.ingest.encoders):
            embedder = self._embedder(name)
            stamps.append(EncoderStamp(name=name, dimensions=embedder.dimensions, fingerprint=embedder.fingerprint))
        lexical = _new_lexical()
        late_interaction = settings.ingest.late_interaction and any(keeps_token_codes(stamp.name) for stamp in stamps)
        manifest = Manifest(
            engine=settings.engine,
            encoders=tuple(stamps),
            bm25_k1=lexical.k1,
            bm25_b=lexical.b,
            bm25_average_length=lexical.average_length,
            **{**kept_settings(settings.ingest), "late_interaction": late_interaction},
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
        folder = self.path / manifest.folder
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
            fingerprint = self._embedder(stamp.name).fingerprint
            if fingerprint != stamp.fingerprint:
                raise EmbedderMismatch(
                    f"The workspace {self.name} was made with another version of the encoder {stamp.name} "
                    f"({stamp.fingerprint}; installed is {fingerprint}).",
                    remedy=f"Encode it again: cognicraft reindex --embedder {stamp.name} -w {self.name}; or install "
                    "the version it was made with.",
                )

    def _not_found(self) -> WorkspaceNotFound:
        return WorkspaceNotFound(
            f"There is no workspace {self.name} under {self.settings.home_folder}.",
            remedy=f"Make it with: cognicraft ingest FOLDER -w {self.name}",
        )

    def _embedder(self, name: str) -> Embedder:
        own = self.settings.model
        return embedder_named(
            name, base_url=own.base_url, api_key=own.api_key.get_secret_value() if own.api_key else None
        )

    def _embedders(self) -> dict[str, Embedder]:
        return {name: self._embedder(name) for name in self.manifest.encoder_names}

    def _lexical(self) -> LexicalEncoder:
        manifest = self.manifest
        return _lexical(manifest.bm25_k1, manifest.bm25_b, manifest.bm25_average_length)

    @contextmanager
    def _run(
        self,
        progress: ProgressCallback | None,
        cancelled: Callable[[], bool] | None,
        confirm: Callable[[ContextEstimate], bool] | None,
    ) -> Iterator[IngestRun]:
        """One run of ingest over the open workspace, which is made where there is none."""
        new = not self.exists()
        engine = self._open(make=True)
        assert self._manifest is not None
        roles = self._roles(self.settings)
        contexts, stamped = contexts_by_model(self._manifest, roles, self.settings)
        if stamped != self._manifest and stamped.engine != "memory":
            stamped.write(self.path)
        self._manifest = stamped
        try:
            with self._changed_names():
                yield IngestRun(
                    engine,
                    ingest_steps(stamped, embedders=self._embedders(), lexical=self._lexical(), contexts=contexts),
                    workspace=self.name,
                    progress=progress,
                    cancelled=cancelled,
                    confirm=confirm,
                    price=partial(context_price, roles),
                )
        except CogniCraftError:
            # A run that brought nothing in would hold the person to the settings of an empty workspace.
            if new and self.settings.engine != "memory" and next(engine.documents(), None) is None:
                self.delete_workspace()
            raise
        finally:
            if contexts is not None:
                contexts.close()

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

    def _roles(self, settings: Settings) -> Roles:
        return Roles(settings.model, models=self._models, cache_folder=self.settings.home_folder / "replies")

    @contextmanager
    def _opened(self) -> Iterator[Opened]:
        """The workspace as it is now, for one question: a reindex that ends meanwhile leaves it open till then."""
        with ExitStack() as stack:
            while True:
                self._open()
                with self._opening:
                    engine, manifest = self._engine, self._manifest
                    if engine is not None and manifest is not None:
                        stack.enter_context(self._asked.read())
                        break
            yield Opened(
                name=self.name,
                manifest=manifest,
                engine=engine,
                embedders={name: self._embedder(name) for name in manifest.encoder_names},
                lexical=_lexical(manifest.bm25_k1, manifest.bm25_b, manifest.bm25_average_length),
                names=self._names,
            )

    def _names(self) -> Names:
        """What the documents' names teach: learned once for as long as the documents stay the same, kept in a file."""
        from cognicraft import __version__
        from cognicraft.search import names_file
        from cognicraft.search.aliases import early_chunks
        from cognicraft.search.names import Names

        with self._learning:
            if self._learned is None:
                engine, stamp = self._open(), self.manifest.encoders[0]
                languages = engine.languages()
                language = max(languages, key=languages.__getitem__, default="")
                terms = partial(self._lexical().terms, language=language)
                cut = f"{__version__} {language}"
                kept = self.settings.engine != "memory"
                names = names_file.load(self._names_file, terms=terms, stamp=cut) if kept else None
                if names is None:
                    names = Names.learn(
                        engine.documents(),
                        terms=terms,
                        first_chunks_of=partial(early_chunks, engine, arm=stamp.name, dimensions=stamp.dimensions),
                    )
                    if kept and not self._changing:
                        names_file.save(names, self._names_file, stamp=cut)
                self._learned = names
            return self._learned

    @property
    def _names_file(self) -> Path:
        return self.path / "names.json"

    def _forget_names(self) -> None:
        with self._learning:
            self._learned = None
            self._names_file.unlink(missing_ok=True)

    @contextmanager
    def _changed_names(self) -> Iterator[None]:
        """Around every change of the documents: no file may ever be older than they are, also after a kill."""
        with self._learning:
            self._changing += 1
        self._forget_names()
        try:
            yield
        finally:
            self._forget_names()
            with self._learning:
                self._changing -= 1

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


def _search_keys(
    arms: Sequence[str] | None,
    fusion: str | None,
    weights: Mapping[str, float] | None,
    rerank: str | None,
    depth: int | None,
) -> dict[str, object]:
    """What `search`, `ask` and `rankings` are given, by the keys of the settings; None for what is left out."""
    return {
        "search.arms": None if arms is None else tuple(arms),
        "search.fusion": fusion,
        "search.weights": None if weights is None else dict(weights),
        "search.rerank": rerank,
        "search.depth": depth,
    }


def _new_lexical() -> LexicalEncoder:
    from cognicraft.search.lexical import LexicalEncoder

    return LexicalEncoder()


def _document_terms(manifest: Manifest) -> LexicalDocument:
    lexical = _lexical(manifest.bm25_k1, manifest.bm25_b, manifest.bm25_average_length)
    return lambda text, language: lexical.document(text, language=language)


@cache
def _lexical(k1: float, b: float, average_length: float) -> LexicalEncoder:
    from cognicraft.search.lexical import LexicalEncoder

    return LexicalEncoder(k1=k1, b=b, average_length=average_length)
