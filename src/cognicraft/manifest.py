"""What a workspace was made with: one small file beside its engine, written once.

Encoders, splitter, context and BM25 constants shape what is stored; a workspace that is opened with others would mix
what cannot be compared. The manifest keeps them, and the format version of the workspace.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from cognicraft.config import ContextMode, IngestSettings
from cognicraft.encoders import canonical_name
from cognicraft.errors import EmbedderMismatch, SettingsError, WorkspaceFormat
from cognicraft.records import digest

FORMAT_VERSION = 1
FILE_NAME = "manifest.json"


class EncoderStamp(BaseModel):
    """An encoder as it was when the workspace was made."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    dimensions: int
    fingerprint: str


class Manifest(BaseModel):
    """The settings that shape what is stored."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format_version: int = FORMAT_VERSION
    engine: str
    folder: str = ""
    """Where the engine's files lie in the workspace: "" for its own folder, else a generation that `reindex` made."""
    encoders: tuple[EncoderStamp, ...]
    splitter: Literal["structure", "recursive"]
    chunk_tokens: int
    overlap_tokens: int
    chunk_characters: int
    overlap_characters: int
    separators: tuple[str, ...]
    context_dense: ContextMode
    context_lexical: ContextMode
    late_interaction: bool
    bm25_k1: float
    bm25_b: float
    bm25_average_length: float
    context_model: str = ""
    """Language model that wrote the contexts, "" where none did."""
    context_prompt: str = ""
    """Digest of the template that it was asked with."""

    @property
    def encoder_names(self) -> tuple[str, ...]:
        return tuple(stamp.name for stamp in self.encoders)

    @property
    def revision_key(self) -> str:
        """Part of every document's revision: a document cut or encoded otherwise is another revision."""
        shapes = self.model_dump_json(exclude={"format_version", "engine", "folder", "context_model", "context_prompt"})
        return digest(shapes, self.context_model, self.context_prompt) if self.context_model else digest(shapes)

    def with_contexts_by(self, model: str, prompt: str) -> Manifest:
        """For contexts by another model or template: documents that have older ones are another revision then."""
        return self.model_copy(update={"context_model": model, "context_prompt": prompt})

    def write(self, folder: Path) -> None:
        """Atomically: a kill leaves the old file or the new one."""
        temporary = folder / f"{FILE_NAME}.{os.getpid()}.tmp"
        temporary.write_text(self.model_dump_json(indent=2) + "\n", encoding="utf-8")
        temporary.replace(folder / FILE_NAME)


def read_manifest(folder: Path) -> Manifest | None:
    """None where there is no workspace. Raises: WorkspaceFormat."""
    file = folder / FILE_NAME
    try:
        tree = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (ValueError, OSError) as error:
        raise WorkspaceFormat(
            f"The workspace file {file} cannot be read: {error}.",
            remedy="Restore it from a backup, or delete the workspace and ingest again.",
        ) from None
    version = tree.get("format_version") if isinstance(tree, dict) else None
    if version != FORMAT_VERSION:
        raise WorkspaceFormat(
            f"The workspace in {folder} has format {version}; this version reads format {FORMAT_VERSION}.",
            remedy="Use the CogniCraft version that wrote it, or ingest again into a new workspace.",
        )
    try:
        return Manifest.model_validate(tree)
    except ValidationError as error:
        raise WorkspaceFormat(
            f"The workspace file {file} is not whole: {error.errors()[0]['msg']}.",
            remedy="Restore it from a backup, or delete the workspace and ingest again.",
        ) from None


# Settings of `ingest` that the manifest keeps under the same name.
_KEPT = (
    "splitter",
    "chunk_tokens",
    "overlap_tokens",
    "chunk_characters",
    "overlap_characters",
    "separators",
    "context_dense",
    "context_lexical",
    "late_interaction",
)


def kept_settings(settings: IngestSettings) -> dict[str, Any]:
    return {name: getattr(settings, name) for name in _KEPT}


def refuse_other_settings(
    manifest: Manifest, settings: IngestSettings, origins: Mapping[str, str], *, workspace: str
) -> None:
    """Refuse to add documents under settings that were asked for and differ from the workspace's own.

    Raises: EmbedderMismatch for encoders; SettingsError for the rest. Settings nobody asked for are not compared.
    """
    remedy = f"Leave it out, or use another workspace (-w NAME); `workspaces delete {workspace}` starts afresh."
    asked = tuple(map(canonical_name, settings.encoders))
    if "ingest.encoders" in origins and asked != manifest.encoder_names:
        raise EmbedderMismatch(
            f"The workspace {workspace} was made with the encoders {', '.join(manifest.encoder_names)}, "
            f"not {', '.join(settings.encoders)}.",
            remedy="Leave it out, or encode the workspace again: cognicraft reindex "
            f"{' '.join(f'--embedder {name}' for name in asked)} -w {workspace}",
        )
    for name, value in kept_settings(settings).items():
        own = getattr(manifest, name)
        if f"ingest.{name}" in origins and value != own:
            raise SettingsError(
                f"The workspace {workspace} was made with ingest.{name} = {own!r}, not {value!r} "
                f"({origins[f'ingest.{name}']}).",
                remedy=remedy,
            )
