"""Generations of a workspace: where the engine's files lie, and clearing away those that are served no longer.

    manifest.json            names the folder of the generation that is served
    engine.json, shard/ …    that generation, in the workspace's own folder or in generation-KEY/
    generation-KEY/          one in the making, with reindex.json until it is the one that is served
    reindex.lock             one reindex at a time

Takes: the workspace's folder and its manifest. Returns: the manifest of another generation, what was cleared away.
A generation without `reindex.json` that the manifest does not name is what a kill just after a switch left.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from cognicraft.encoders import keeps_token_codes
from cognicraft.engines.lock import WorkspaceLock
from cognicraft.errors import EngineError, WorkspaceLocked
from cognicraft.manifest import EncoderStamp, Manifest, read_manifest

LOCK_FILE = "reindex.lock"
UNFINISHED_FILE = "reindex.json"
_GENERATION = "generation-"
# What an engine keeps in the workspace's own folder. The lock file stays: another process may be waiting for it.
_ENGINE_FILES = ("engine.json", "engine.json.part", "statistics.npz", "codes", "shard*")


def target_manifest(manifest: Manifest, encoders: Sequence[EncoderStamp]) -> Manifest:
    """The manifest with other encoders, and the folder that belongs to them.

    Token codes are kept where an encoder gives some, unless the workspace was made without them by choice.
    """
    gives = any(keeps_token_codes(stamp.name) for stamp in encoders)
    gave = any(keeps_token_codes(name) for name in manifest.encoder_names)
    late_interaction = gives and (manifest.late_interaction or not gave)
    fresh = manifest.model_copy(update={"encoders": tuple(encoders), "late_interaction": late_interaction})
    return fresh.model_copy(update={"folder": f"{_GENERATION}{fresh.revision_key[:12]}"})


def remove_leftovers(folder: Path, manifest: Manifest, *, keep: str = "") -> list[str]:
    """Clear away generations that are not served; the names of the encoders of unfinished ones.

    keep: a generation that is to be gone on with. Only to be called by who holds the lock `reindex.lock`.
    """
    (folder / manifest.folder / UNFINISHED_FILE).unlink(missing_ok=True)
    dropped = []
    for path in sorted(folder.glob(f"{_GENERATION}*")):
        if path.name in (manifest.folder, keep) or not path.is_dir():
            continue
        unfinished = _unfinished(path)
        remove_generation(folder, path.name)
        if unfinished:
            dropped.append(", ".join(unfinished.encoder_names))
    if manifest.folder and (folder / _ENGINE_FILES[0]).exists():
        remove_generation(folder, "")
    return dropped


def clear_old_generations(folder: Path, manifest: Manifest) -> None:
    """What a kill just after a switch left behind. Cheap where there is nothing; for whoever opens the workspace."""
    old = [
        path
        for path in folder.glob(f"{_GENERATION}*")
        if path.name != manifest.folder and not (path / UNFINISHED_FILE).exists()
    ]
    if not old and not (manifest.folder and (folder / _ENGINE_FILES[0]).exists()):
        return
    with contextlib.suppress(WorkspaceLocked, EngineError):
        lock = WorkspaceLock(folder / LOCK_FILE)
        try:
            if read_manifest(folder) == manifest:
                for name in (*(path.name for path in old), *([""] if manifest.folder else [])):
                    remove_generation(folder, name, wait_s=0)
        finally:
            lock.release()


def _unfinished(generation: Path) -> Manifest | None:
    with contextlib.suppress(OSError, ValueError):
        return Manifest.model_validate_json((generation / UNFINISHED_FILE).read_text(encoding="utf-8"))
    return None


def remove_generation(folder: Path, name: str, *, wait_s: float = 10.0) -> None:
    """Remove the files of a generation that is not served; whoever is just opening it is waited for.

    Raises: WorkspaceLocked after `wait_s`.
    """
    path = folder / name
    if not path.is_dir():
        return
    with _locked(path, wait_s=wait_s):
        # First what makes it an engine: a kill in between leaves nothing that opens.
        for pattern in (*_ENGINE_FILES, *(["*"] if name else [])):
            for item in path.glob(pattern):
                if item.is_dir() and not item.is_symlink():
                    shutil.rmtree(item, ignore_errors=True)
                elif item.name != "lock":
                    item.unlink(missing_ok=True)
    if name:
        shutil.rmtree(path, ignore_errors=True)


@contextmanager
def _locked(path: Path, *, wait_s: float) -> Iterator[None]:
    give_up = time.monotonic() + wait_s
    while True:
        try:
            lock = WorkspaceLock(path / "lock")
            break
        except WorkspaceLocked:
            if time.monotonic() > give_up:
                raise
            time.sleep(0.05)
    try:
        yield
    finally:
        lock.release()


def durable(*paths: Path) -> None:
    """On the disk before what follows: a power cut must not find the old files gone and the new ones not there."""
    for path in paths:
        with contextlib.suppress(OSError):  # a folder cannot be opened everywhere
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
