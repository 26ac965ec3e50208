"""One process at a time: a lock file that says who holds it.

The lock is the operating system's on the open file, so it goes with its process, however that ends; the text in the
file (JSON: pid, command, started, url) only says who it is. A text without a lock behind it means nothing.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from cognicraft.errors import EngineError, WorkspaceLocked

# Windows locks a range of bytes, and nobody else can read a locked byte: lock one that the text never reaches.
_FAR_BYTE = 1 << 30


@dataclass(frozen=True, slots=True)
class LockHolder:
    """Who holds the lock. `started` is local time in ISO 8601; `url` is where a server can be asked instead."""

    pid: int
    command: str
    started: str
    url: str | None = None


class WorkspaceLock:
    """A lock that is held from construction until `release`. Raises WorkspaceLocked naming the holder."""

    def __init__(self, path: Path, *, command: str | None = None) -> None:
        self._path = path
        try:
            self._descriptor: int | None = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise EngineError(
                f"The lock file {path} cannot be opened: {error.strerror}.",
                remedy="Check that you may write in this folder.",
            ) from error
        if not _try_lock(self._descriptor):
            os.close(self._descriptor)
            self._descriptor = None
            raise _locked(path, read_holder(path))
        self._holder = LockHolder(
            pid=os.getpid(),
            command=command or " ".join([Path(sys.argv[0]).name or "python", *sys.argv[1:]])[:200],
            started=time.strftime("%Y-%m-%dT%H:%M:%S"),
        )
        self._write()

    @property
    def holder(self) -> LockHolder:
        return self._holder

    def announce(self, url: str | None) -> None:
        """Write in the file where this process can be asked; others read it with `lock_holder`."""
        held = self._holder
        self._holder = LockHolder(held.pid, held.command, held.started, url)
        self._write()

    def release(self) -> None:
        """Idempotent. The file stays: removing it would let two processes lock two files of one name."""
        if self._descriptor is not None:
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, 0)
            os.close(self._descriptor)
            self._descriptor = None

    def _write(self) -> None:
        if self._descriptor is None:
            raise EngineError("The lock was released.", remedy="Open the workspace again.")
        data = json.dumps(asdict(self._holder)).encode("ascii")
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        os.write(self._descriptor, data)
        os.ftruncate(self._descriptor, len(data))


def lock_holder(path: Path) -> LockHolder | None:
    """Who holds the lock at `path` now; None where nobody does. Takes the lock for a moment to find out."""
    try:
        descriptor = os.open(path, os.O_RDWR)
    except OSError:
        return None
    try:
        if _try_lock(descriptor):
            return None
    finally:
        os.close(descriptor)
    return read_holder(path) or LockHolder(pid=0, command="", started="")


def read_holder(path: Path) -> LockHolder | None:
    """What the file says, held or not; None where it cannot be read."""
    # The holder may be writing at this moment: look again before giving up.
    for _ in range(5):
        with contextlib.suppress(OSError, ValueError, TypeError):
            return LockHolder(**json.loads(path.read_text("ascii")))
        time.sleep(0.01)
    return None


def _locked(path: Path, holder: LockHolder | None) -> WorkspaceLocked:
    name = path.parent.name
    if holder is None:
        return WorkspaceLocked(
            f"The workspace {name} is in use by another process.", remedy="Wait until it ends, or end it."
        )
    where = f", serving {holder.url}" if holder.url else ""
    return WorkspaceLocked(
        f"The workspace {name} is in use by process {holder.pid} ({holder.command}) since {holder.started}{where}.",
        remedy=f"Ask the server at {holder.url}, or end it." if holder.url else "Wait until it ends, or end it.",
    )


if sys.platform == "win32":
    import msvcrt

    def _try_lock(descriptor: int) -> bool:
        os.lseek(descriptor, _FAR_BYTE, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def _try_lock(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
