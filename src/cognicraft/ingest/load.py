"""The bytes of one file, or why they cannot be had.

Takes a path and a limit; returns the bytes. Cost: one stat and one read. What can go wrong: `Unreadable` (gone, no
permission, a link loop, not a regular file: opening a named pipe would wait for ever), `EmptyFile`, `FileTooLarge`
(told before reading).
"""

from __future__ import annotations

import errno
import stat
from pathlib import Path

from cognicraft.errors import EmptyFile, FileTooLarge, ReadError, Unreadable
from cognicraft.ingest.sourcename import source_of


def check_file(path: str, *, max_bytes: int) -> int:
    """The size of the regular file at `path` in bytes.

    Raises: Unreadable, EmptyFile, FileTooLarge.
    """
    name = source_of(path)
    try:
        status = Path(path).stat()
    except (OSError, ValueError) as error:
        raise cannot_open(path, error) from error
    if not stat.S_ISREG(status.st_mode):
        raise Unreadable(f"{name} is not a file but a {_kind(status.st_mode)}.", remedy="Name a file or a folder.")
    if status.st_size == 0:
        raise EmptyFile(f"{name} is empty: it holds no bytes.", remedy="Check that it was saved, or leave it out.")
    if status.st_size > max_bytes:
        raise FileTooLarge(
            f"{name} has {status.st_size / 1e6:,.1f} MB, and the limit is {max_bytes / 1e6:,.0f} MB.",
            remedy="Split it into smaller files, or raise max_file_mb.",
        )
    return status.st_size


def load(path: str, *, max_bytes: int) -> bytes:
    """All bytes of the file.

    Raises: Unreadable, EmptyFile, FileTooLarge.
    """
    check_file(path, max_bytes=max_bytes)
    try:
        with Path(path).open("rb") as stream:
            # A file that grows while it is read must not get round the limit.
            data = stream.read(max_bytes + 1)
    except OSError as error:
        raise cannot_open(path, error) from error
    if len(data) > max_bytes:
        raise FileTooLarge(
            f"{source_of(path)} grew beyond {max_bytes / 1e6:,.0f} MB while it was read.",
            remedy="Wait until it is complete, or raise max_file_mb.",
        )
    return data


def cannot_open(path: str, error: OSError | ValueError) -> ReadError:
    """The error to raise for a failed stat, open or read."""
    name = source_of(path)
    number = error.errno if isinstance(error, OSError) else None
    if number == errno.ENOENT:
        return Unreadable(f"{name} does not exist.", remedy="Check the spelling of the path.")
    if number in (errno.EACCES, errno.EPERM):
        return Unreadable(f"{name} cannot be opened: no permission.", remedy="Grant read permission, or leave it out.")
    if number == errno.ELOOP:
        return Unreadable(f"{name} is a symbolic link that leads back to itself.", remedy="Remove or mend the link.")
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return Unreadable(f"{name} cannot be opened: {reason}.", remedy="Check the file and the disk.")


def _kind(mode: int) -> str:
    if stat.S_ISDIR(mode):
        return "folder"
    if stat.S_ISFIFO(mode):
        return "named pipe"
    if stat.S_ISSOCK(mode):
        return "socket"
    return "device"
