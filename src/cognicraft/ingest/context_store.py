"""Replies that were paid for, by content: the context of a chunk is never asked for twice.

Takes: a file. Returns: the reply kept under a key, or keeps one. Method: SQLite in write-ahead mode, one row per reply,
committed before `put` returns, so that a killed process loses only the calls still under way; several threads and
several processes may use one file. Cost: under a millisecond per reply. What can go wrong: a file that is damaged or a
disk that is full raises, with the remedy; nothing is ever dropped in silence.
"""

from __future__ import annotations

import sqlite3
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from cognicraft.errors import EngineError

_BUSY_S = 30.0
_MAKE = """
CREATE TABLE IF NOT EXISTS replies (
    key TEXT PRIMARY KEY,
    reply TEXT NOT NULL,
    finish TEXT NOT NULL,
    model TEXT NOT NULL
) WITHOUT ROWID
"""


@dataclass(frozen=True, slots=True)
class KeptReply:
    """What a model wrote, as it wrote it: cleaning it is repeated at each use, so better cleaning costs no call."""

    text: str
    finish: Literal["stop", "length"] = "stop"
    model: str = ""


class ContextStore:
    """Thread-safe; the file is made when first needed, with the folders above it."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None

    def get(self, key: str) -> KeptReply | None:
        """Raises: EngineError for a file that cannot be read."""
        with self._lock:
            try:
                row = self._open().execute("SELECT reply, finish, model FROM replies WHERE key = ?", (key,)).fetchone()
            except sqlite3.Error as error:
                raise self._failed(error) from None
        if row is None:
            return None
        return KeptReply(text=row[0], finish="length" if row[1] == "length" else "stop", model=row[2])

    def put(self, key: str, reply: KeptReply) -> None:
        """Durable against a kill once it returns; the first reply under a key stays. Raises: EngineError."""
        # A lone surrogate, which a hostile reply may hold, has no UTF-8 form.
        text = reply.text.encode("utf-8", "replace").decode("utf-8")
        with self._lock:
            try:
                self._open().execute(
                    "INSERT OR IGNORE INTO replies VALUES (?, ?, ?, ?)", (key, text, reply.finish, reply.model)
                )
            except sqlite3.Error as error:
                raise self._failed(error) from None

    def __len__(self) -> int:
        with self._lock:
            try:
                return int(self._open().execute("SELECT count(*) FROM replies").fetchone()[0])
            except sqlite3.Error as error:
                raise self._failed(error) from None

    def close(self) -> None:
        """Idempotent; the next call opens the file again."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            try:
                self._file.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise self._failed(error) from None
            connection = sqlite3.connect(self._file, timeout=_BUSY_S, isolation_level=None, check_same_thread=False)
            try:
                connection.execute("PRAGMA journal_mode=WAL")  # on a file system without it the old mode stays
                connection.execute("PRAGMA synchronous=NORMAL")
                connection.execute(_MAKE)
            except sqlite3.Error:
                connection.close()
                raise
            self._connection = connection
        return self._connection

    def _failed(self, error: Exception) -> EngineError:
        return EngineError(
            f"The kept contexts in {self._file} cannot be used: {error}.",
            remedy="Free space on the disk, or move the file away: what is in it will be asked for again.",
        )
