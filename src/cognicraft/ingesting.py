"""One run of ingest over one workspace: the steps of `ingest/` put together as manifest and settings say.

Takes: the manifest (how chunks are cut and encoded), the settings (how files are read), encoders and models. Returns:
the steps that `ingestion.IngestRun` goes through, and the reading of files in worker processes.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cognicraft import registry
from cognicraft.config import IngestSettings, Settings
from cognicraft.ingestion import FileRead, FileToRead, IngestSteps
from cognicraft.manifest import Manifest
from cognicraft.protocols import Embedder, LanguageModel
from cognicraft.records import Document
from cognicraft.roles import Roles

if TYPE_CHECKING:
    from cognicraft.ingest.context_llm import ChunkContexts
    from cognicraft.search.lexical import LexicalEncoder


def ingest_steps(
    manifest: Manifest,
    *,
    embedders: Mapping[str, Embedder],
    lexical: LexicalEncoder,
    contexts: ChunkContexts | None,
) -> IngestSteps:
    """The steps as the workspace was made with."""
    from cognicraft.ingest.contextualize import contextualize
    from cognicraft.ingest.language import detect

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
        embedders=embedders,
        lexical=lambda text, language: lexical.document(text, language=language),
        token_codes=manifest.late_interaction,
        revision_key=manifest.revision_key,
        contexts=contexts,
    )


def contexts_by_model(manifest: Manifest, roles: Roles, settings: Settings) -> tuple[ChunkContexts | None, Manifest]:
    """What writes contexts by a language model, where this workspace has them and there is a model.

    And the manifest, stamped with that model and its prompt.
    """
    if "llm" not in (manifest.context_dense, manifest.context_lexical):
        return None, manifest
    name = roles.name_of("context")
    if not name:
        return None, manifest  # the step that needs it says so, if there is anything to write
    from cognicraft.ingest.context_llm import ChunkContexts
    from cognicraft.ingest.context_store import ContextStore

    def open_model() -> LanguageModel:
        model = roles.model("context", meter=roles.meter(), cached=False)
        assert model is not None, "a role that has a name has a model"
        return model

    # Its own store and not the cache of replies: what was paid for is kept also where that cache is switched off.
    contexts = ChunkContexts(
        name,
        open_model,
        store=ContextStore(settings.home_folder / "contexts.sqlite"),
        concurrency=settings.model.concurrency,
    )
    return contexts, manifest.with_contexts_by(name, contexts.prompt_digest)


def context_price(roles: Roles, input_tokens: int, output_tokens: int) -> float | None:
    """US dollars for that many tokens of the model that writes contexts; None where its price is not known."""
    price = roles.catalog.resolve(roles.name_of("context")).price
    return None if price is None else price.cost_usd(input_tokens, output_tokens)


def read_files(files: Iterable[FileToRead], *, settings: IngestSettings) -> Iterator[FileRead]:
    """Read in worker processes, which are started when there is something to read."""
    from cognicraft.ingest.worker import ReaderPool

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


def root_of(target: str) -> str:
    """A target as the sources under it begin: a folder ends in a slash."""
    from cognicraft.ingest.sourcename import source_of

    path = Path(target).expanduser().absolute()
    source = source_of(os.path.abspath(path))  # noqa: PTH100  (resolves "..", keeps links as discovery does)
    return f"{source.rstrip('/')}/" if path.is_dir() else source


def read_evidence(names: Sequence[str], *, settings: IngestSettings) -> tuple[list[Document], list[str]]:
    """The documents of some files, in the order named, with the warnings of their readers.

    Raises: UsageError where there is nothing of that name; ReadError for a file that cannot be read.
    """
    from cognicraft.ingest.discover import discover

    files: list[FileToRead] = []
    for item in discover(list(names)):
        if item.error is not None:
            raise item.error
        if not item.skipped:
            files.append(FileToRead(source=item.source, path=item.path, size=item.size, mtime_ns=item.mtime_ns))
    read: dict[str, list[Document]] = {file.source: [] for file in files}
    for outcome in read_files(files, settings=settings):
        if outcome.error is not None:
            raise outcome.error
        read[outcome.file.source] += outcome.documents
    documents = [document for found in read.values() for document in found]
    return documents, [f"{one.source}: {warning}" for one in documents for warning in one.warnings]
