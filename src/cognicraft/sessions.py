"""Conversations kept on disk: one file a session, one JSON line a turn.

Takes: a folder (`HOME/sessions/WORKSPACE`). Returns: sessions that can be listed, gone on with and deleted.
Method: a turn is one line, appended and on the disk before `append` returns; the file is made by the first turn, so
that a chat nobody wrote in leaves nothing. Ids begin with the UTC time, so their order is that of their beginnings.
What can go wrong: a kill or a power cut may leave half a last line: it is left out, said, and cut off before the next
turn is written. A turn that another version wrote differently keeps its question and the text of its answer.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from cognicraft.errors import EngineError, NotFound, UsageError
from cognicraft.results import Answer, Result

LAST = "last"
_FORMAT = 1
_SUFFIX = ".jsonl"


class ChatTurn(Result):
    """A question of a conversation with its answer."""

    at: str = Field(description="UTC time of the answer, ISO 8601.")
    question: str = Field(description="As it was asked.")
    stand_alone: str = Field(description="As it was searched and answered, to be understood alone.")
    text: str = Field(description="The text of the answer.")
    answer: Answer | None = Field(description="The answer; null where another version wrote it in a form of its own.")


class SessionInfo(Result):
    """A session as it is listed."""

    id: str
    workspace: str
    started: str = Field(description="UTC time, ISO 8601.")
    turns: int
    first_question: str
    last_question: str


@dataclass(slots=True)
class Session:
    """One conversation. `notes` say what of its file could not be read."""

    id: str
    workspace: str
    path: Path
    started: str
    turns: list[ChatTurn] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def append(self, turn: ChatTurn) -> None:
        """Write a turn; on the disk when it returns. Raises: EngineError where it cannot be written."""
        try:
            self._write(turn)
        except OSError as error:
            raise EngineError(
                f"The session {self.id} cannot be written: {error.strerror}.",
                remedy=f"Check {self.path.parent} and the space on its disk; what was written before is kept.",
            ) from error
        self.turns.append(turn)

    def info(self) -> SessionInfo:
        return SessionInfo(
            id=self.id,
            workspace=self.workspace,
            started=self.started,
            turns=len(self.turns),
            first_question=self.turns[0].question if self.turns else "",
            last_question=self.turns[-1].question if self.turns else "",
        )

    def _write(self, turn: ChatTurn) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # Conversations are nobody else's business.
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            size = os.fstat(descriptor).st_size
            lines = [] if size else [{"format": _FORMAT, "workspace": self.workspace, "started": self.started}]
            data = b"".join(_line(tree) for tree in [*lines, turn.model_dump(mode="json")])
            if size and not _ends_in_a_line(self.path, size):
                os.ftruncate(descriptor, _whole_lines(self.path))
            while data:
                data = data[os.write(descriptor, data) :]
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        if not size:
            _sync_folder(self.path.parent)


class Sessions:
    """The sessions of one workspace."""

    def __init__(self, folder: Path, *, workspace: str) -> None:
        self._folder = folder
        self._workspace = workspace

    def new(self) -> Session:
        """A session without turns; its file is made by the first."""
        now = datetime.now(UTC)
        identifier = f"{now:%Y%m%d-%H%M%S}-{now.microsecond // 1000:03d}-{secrets.token_hex(2)}"
        return Session(
            id=identifier,
            workspace=self._workspace,
            path=self._folder / f"{identifier}{_SUFFIX}",
            started=now.isoformat(timespec="seconds"),
        )

    def ids(self) -> list[str]:
        """Oldest first."""
        return sorted(path.name.removesuffix(_SUFFIX) for path in self._folder.glob(f"*{_SUFFIX}"))

    def list(self) -> Iterator[SessionInfo]:
        """The latest first."""
        for identifier in reversed(self.ids()):
            yield self._read(identifier).info()

    def open(self, session: str) -> Session:
        """By id, by the first characters of one, or `last`. Raises: NotFound; UsageError where more than one fits."""
        return self._read(self._find(session))

    def delete(self, session: str) -> SessionInfo:
        """Remove one for good. Found as in `open`."""
        found = self.open(session)
        found.path.unlink(missing_ok=True)
        return found.info()

    def _find(self, session: str) -> str:
        ids = self.ids()
        if session == LAST and ids:
            return ids[-1]
        fits = [one for one in ids if one == session] or [one for one in ids if session and one.startswith(session)]
        if not fits:
            raise NotFound(
                f"There is no session {session} in the workspace {self._workspace}."
                if session != LAST
                else f"There is no session in the workspace {self._workspace} yet.",
                remedy=f"`cognicraft chat --list -w {self._workspace}` shows those there are.",
            )
        if len(fits) > 1:
            raise UsageError(
                f"{len(fits)} sessions begin with {session}.", remedy="Give the id of one: " + ", ".join(fits[:5])
            )
        return fits[0]

    def _read(self, identifier: str) -> Session:
        path = self._folder / f"{identifier}{_SUFFIX}"
        session = Session(id=identifier, workspace=self._workspace, path=path, started="")
        try:
            data = path.read_bytes()
        except OSError as error:
            raise NotFound(
                f"The session {identifier} cannot be read: {error.strerror}.", remedy="Begin a new one."
            ) from error
        whole, _, rest = data.rpartition(b"\n")
        broken = 0
        for line in whole.split(b"\n"):
            tree = _tree(line)
            if tree is None:
                broken += bool(line.strip())
            elif "question" in tree:
                session.turns.append(_turn(tree))
            else:
                session.started = str(tree.get("started", ""))
        if rest.strip():
            session.notes.append("The last turn of this session was cut off while it was written; it is left out.")
        if broken:
            session.notes.append(f"{broken} damaged lines of this session are left out.")
        return session


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _line(tree: dict[str, Any]) -> bytes:
    return json.dumps(tree, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n"


def _tree(line: bytes) -> dict[str, Any] | None:
    with contextlib.suppress(ValueError):
        tree = json.loads(line)
        if isinstance(tree, dict):
            return tree
    return None


def _turn(tree: dict[str, Any]) -> ChatTurn:
    own = {name: str(tree.get(name) or "") for name in ("at", "question", "stand_alone", "text")}
    answer = None
    with contextlib.suppress(ValidationError):
        answer = Answer.model_validate(tree.get("answer"))
    return ChatTurn(**{**own, "stand_alone": own["stand_alone"] or own["question"]}, answer=answer)


def _ends_in_a_line(path: Path, size: int) -> bool:
    with path.open("rb") as file:
        file.seek(size - 1)
        return file.read(1) == b"\n"


def _whole_lines(path: Path) -> int:
    """Bytes up to the end of the last whole line."""
    return path.read_bytes().rfind(b"\n") + 1


def _sync_folder(folder: Path) -> None:
    with contextlib.suppress(OSError):  # a folder cannot be opened everywhere
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
