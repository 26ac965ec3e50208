"""Room on the disk: what files take, and whether there is enough left to write safely."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

from cognicraft.errors import EngineError

# The shard's files are memory maps: a write into one on a full disk ends the process (SIGBUS) instead of failing.
MIN_FREE_BYTES = 256 * 1024 * 1024


def require_room(path: Path, *, more_bytes: int = 0) -> None:
    """Raises: EngineError where the disk has too little left to write safely."""
    free = shutil.disk_usage(path).free
    if free < MIN_FREE_BYTES + more_bytes:
        raise EngineError(
            f"The disk of {path} is nearly full: {free // 1_000_000} MB are free, and "
            f"{(MIN_FREE_BYTES + more_bytes) // 1_000_000} MB are needed.",
            remedy="Free some space and run the same command again; what was reported as done is kept.",
        )


def disk_bytes(path: Path) -> int:
    """Bytes that the files take on the disk; sparse ones take less than their length."""
    total = 0
    for folder, _, names in os.walk(path):
        for name in names:
            with contextlib.suppress(OSError):
                status = Path(folder, name).stat()
                total += getattr(status, "st_blocks", 0) * 512 or status.st_size
    return total
