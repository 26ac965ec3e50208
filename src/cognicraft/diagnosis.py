"""What `doctor` looks at: each check says what it found, and the remedy where something is wrong."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from cognicraft import registry
from cognicraft.encoders import embedder_named
from cognicraft.errors import CogniCraftError, MissingExtra
from cognicraft.records import Message
from cognicraft.results import Check, DoctorReport
from cognicraft.roles import ROLES, OpenModels, Role, Roles
from cognicraft.workspace import Workspace

_LOW_DISK_MB = 500
_TRY_MODEL_S = 30.0


def diagnose(*, home: Path | None = None, config_file: Path | None = None) -> DoctorReport:
    """Run every check; none of them changes a workspace."""
    from cognicraft import __version__

    checks: list[Check] = []
    try:
        workspace = Workspace(home=home, config_file=config_file)
    except CogniCraftError as error:
        checks.append(Check(name="settings", ok=False, detail=error.message, remedy=error.remedy))
        return DoctorReport(version=__version__, checks=checks)
    file = workspace.resolved.file
    checks.append(Check(name="settings", ok=True, detail=str(file) if file else "defaults, no file", remedy=""))
    checks.append(_home(workspace.settings.home_folder))
    checks += [_package(name) for name in ("qdrant-edge-py", "onnxruntime", "pypdfium2", "tokenizers")]
    checks += [_encoder(name) for name in registry.names("embedders")]
    checks += list(_models(workspace))
    checks += list(_workspaces(workspace))
    return DoctorReport(version=__version__, checks=checks)


def _guarded(name: str, work: Callable[[], str]) -> Check:
    try:
        return Check(name=name, ok=True, detail=work(), remedy="")
    except MissingExtra as error:  # optional: said, not failed
        return Check(name=name, ok=True, detail="not installed (optional)", remedy=error.remedy)
    except CogniCraftError as error:
        return Check(name=name, ok=False, detail=error.message, remedy=error.remedy)


def _home(folder: Path) -> Check:
    existing = folder
    while not existing.exists():
        existing = existing.parent
    if not os.access(existing, os.W_OK):
        return Check(
            name="home",
            ok=False,
            detail=f"{folder} cannot be written",
            remedy="Give another folder with --home or COGNICRAFT_HOME.",
        )
    try:
        with tempfile.TemporaryFile(dir=existing):
            pass
    except OSError as error:
        return Check(name="home", ok=False, detail=f"{folder}: {error.strerror}", remedy="Free or change the disk.")
    free_mb = shutil.disk_usage(existing).free // 1_000_000
    low = free_mb < _LOW_DISK_MB
    return Check(
        name="home",
        ok=not low,
        detail=f"{folder}, {free_mb} MB free",
        remedy="Free some disk space, or give another folder with --home." if low else "",
    )


def _package(name: str) -> Check:
    try:
        return Check(name=name, ok=True, detail=version(name), remedy="")
    except PackageNotFoundError:
        return Check(name=name, ok=False, detail="not installed", remedy="Install again: pip install cognicraft")


def _encoder(name: str) -> Check:
    def work() -> str:
        started = time.perf_counter()
        embedder = embedder_named(name)
        verify = getattr(sys.modules[type(embedder).__module__], "verify", None)
        if verify is not None:
            verify()
        embedder.encode_query("Does it work?")
        seconds = time.perf_counter() - started
        return f"{embedder.dimensions} dimensions, {embedder.max_tokens} tokens, first question in {seconds:.2f} s"

    try:
        return _guarded(f"encoder {name}", work)
    except Exception as error:  # a third party's encoder may raise anything: name it instead of a traceback
        return Check(name=f"encoder {name}", ok=False, detail=repr(error), remedy="Report it to its package.")


def _models(workspace: Workspace) -> Iterator[Check]:
    """Every language model that some work would be given to, tried with a few tokens."""
    models = OpenModels()
    replies = workspace.settings.home_folder / "replies"
    roles = Roles(workspace.settings.model, models=models, cache_folder=replies)
    work: dict[str, list[Role]] = {}
    try:
        for role in ROLES:
            work.setdefault(roles.name_of(role), []).append(role)
    except CogniCraftError as error:
        yield Check(name="language model", ok=False, detail=error.message, remedy=error.remedy)
        return
    if not any(work):
        how = "set model.answer, or start Ollama, for answers in a model's own words"
        yield Check(name="language model", ok=True, detail=f"none: answers quote the documents ({how})", remedy="")
    for name, names in work.items():
        if name:
            yield _guarded(f"language model {name}", partial(_try_model, roles, names))
    models.close()


def _try_model(roles: Roles, work: list[Role]) -> str:
    started = time.perf_counter()
    meter = roles.meter()
    model = roles.model(work[0], meter=meter, cached=False)
    assert model is not None
    reply = model.complete([Message("user", "Reply with the word: ready")], max_tokens=16, timeout_s=_TRY_MODEL_S)
    seconds = time.perf_counter() - started
    return (
        f"replied {reply.text.strip()[:30]!r} in {seconds:.2f} s, reads {model.context_tokens:,} tokens, "
        f"used for: {', '.join(work)}"
    )


def _workspaces(workspace: Workspace) -> Iterator[Check]:
    for found in workspace.list_workspaces():
        held = found.documents is None
        yield Check(
            name=f"workspace {found.name}",
            ok=not held or "process" in found.note,
            detail=found.note if held else f"{found.documents} documents, {found.chunks} chunks",
            remedy="",
        )
