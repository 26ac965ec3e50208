"""From what a person names to the files to read.

Takes paths of files and folders, patterns, and a list on standard input; returns the files, each once, in the order
of the targets, in a folder sorted by name. Folders are walked to the bottom; hidden files and folders, and folders of
installed code, are passed over; links to folders are followed, but never in a circle. What cannot be read is an entry
with its reason, so that the run goes on. Cost: one scan of each folder, one stat of each file.
What can go wrong with one entry: `Unreadable` (absent, no permission, a link to nothing), `UnsupportedFile` where
the person named the file itself; the same kind of file inside a folder is only `skipped`.
"""

from __future__ import annotations

import errno
import glob
import os
import stat
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from cognicraft.errors import ReadError, Unreadable
from cognicraft.ingest.load import cannot_open
from cognicraft.ingest.read import media_type_of, unsupported
from cognicraft.ingest.sourcename import source_of

_PASSED_OVER = frozenset({"node_modules", "__pycache__", "site-packages"})
_IN_OFFICE_USE = "~$"  # the lock files that Word leaves beside an open document


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file to read; or, with `error`, one that cannot be; or, with `skipped`, one that is passed over and why.

    path: absolute, for `open`. source: the same as records carry it (`sourcename.source_of`). size in bytes.
    """

    path: str
    source: str
    size: int = 0
    mtime_ns: int = 0
    error: ReadError | None = None
    skipped: str = ""


def discover(targets: Sequence[str], *, stdin_list: bool = False, stdin: BinaryIO | None = None) -> Iterator[FoundFile]:
    """The files that `targets` mean.

    targets: files, folders, or patterns with `*`, `**`, `?` and `[…]`; a path that exists is never a pattern.
    stdin_list: also take paths from standard input, one a line, or separated by zero bytes (`find -print0`).
    stdin: read the list from there instead.
    """
    walk = _Discovery()
    for target in targets:
        yield from walk.target(target)
    if stdin_list:
        for target in listed_paths(stdin or sys.stdin.buffer):
            yield from walk.target(target)


def listed_paths(stream: BinaryIO) -> Iterator[str]:
    """Paths one a line, or separated by zero bytes; read as bytes, since a name need not be UTF-8."""
    data = stream.read()
    separator = b"\x00" if b"\x00" in data else b"\n"
    for name in data.split(separator):
        if separator == b"\n":
            name = name.removesuffix(b"\r")
        if name:
            yield os.fsdecode(name)


class _Discovery:
    """Remembers what was given already: files and folders by where their links lead."""

    def __init__(self) -> None:
        self._files: set[str] = set()
        self._folders: set[str] = set()

    def target(self, target: str) -> Iterator[FoundFile]:
        # Not resolved: a link keeps its own name, which is the one that the person knows.
        path = os.path.abspath(Path(target).expanduser()) if target else ""  # noqa: PTH100
        if not path or "\x00" in target:
            yield _failed(target, Unreadable(f"{source_of(target)!r} is not a path.", remedy="Name a file or folder."))
        elif os.path.lexists(path):
            yield from self._path(path, named=True)
        elif glob.has_magic(target):
            matches = sorted(glob.glob(path, recursive=True), key=os.fsencode)
            if not matches:
                error = Unreadable(f"No file matches {source_of(target)}.", remedy="Check the pattern and the folder.")
                yield _failed(path, error)
            for match in matches:
                yield from self._path(match, named=False)
        else:
            yield _failed(path, cannot_open(path, FileNotFoundError(errno.ENOENT, "")))

    def _path(self, path: str, *, named: bool) -> Iterator[FoundFile]:
        try:
            status = Path(path).stat()
        except OSError as error:
            yield _failed(path, _link_error(path, error))
            return
        if stat.S_ISDIR(status.st_mode):
            yield from self._folder(path)
        else:
            yield from self._file(path, status, named=named)

    def _file(self, path: str, status: os.stat_result, *, named: bool) -> Iterator[FoundFile]:
        real = os.path.realpath(path)
        if real in self._files:
            return
        self._files.add(real)
        if not stat.S_ISREG(status.st_mode):
            reason = "not a regular file"
            error = Unreadable(f"{source_of(path)} is {reason}.", remedy="Name a file or a folder.")
            yield _failed(path, error) if named else _skipped(path, reason)
        elif named:
            # A file without an extension may be text; one with a strange extension is refused by name.
            if Path(path).suffix and not media_type_of(path):
                yield _failed(path, unsupported(path))
            else:
                yield FoundFile(path, source_of(path), status.st_size, status.st_mtime_ns)
        elif not media_type_of(path):
            suffix = Path(path).suffix
            yield _skipped(path, f"no reader for *{source_of(suffix.lower())}" if suffix else "no extension")
        else:
            yield FoundFile(path, source_of(path), status.st_size, status.st_mtime_ns)

    def _folder(self, top: str) -> Iterator[FoundFile]:
        """Everything below `top`, depth first, by name. Iterative: folders can be nested deeper than Python calls."""
        stack: list[tuple[str, bool]] = [(top, False)]
        while stack:
            path, inside = stack.pop()
            if not inside or Path(path).is_dir():
                entries = self._enter(path)
                if isinstance(entries, FoundFile):
                    yield entries
                else:
                    stack.extend((str(Path(path, name)), True) for name in reversed(entries))
            elif os.path.lexists(path):
                yield from self._path(path, named=False)

    def _enter(self, folder: str) -> list[str] | FoundFile:
        """The names in a folder that are to be looked at, sorted; or why it is not entered."""
        real = os.path.realpath(folder)
        if real in self._folders:
            if Path(folder).is_symlink():
                around = Path(os.path.realpath(Path(folder).parent)).is_relative_to(real)
                return _skipped(folder, "a link back to a folder above it" if around else "a folder read already")
            return []
        self._folders.add(real)
        try:
            names = [entry.name for entry in Path(folder).iterdir()]
        except OSError as error:
            return _failed(folder, cannot_open(folder, error))
        wanted = (name for name in names if not name.startswith((".", _IN_OFFICE_USE)) and name not in _PASSED_OVER)
        return sorted(wanted, key=os.fsencode)


def count_skipped(files: Iterable[FoundFile]) -> dict[str, int]:
    """Reason -> how many were skipped for it, most first: what a summary prints."""
    counts: dict[str, int] = {}
    for file in files:
        if file.skipped:
            counts[file.skipped] = counts.get(file.skipped, 0) + 1
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _failed(path: str, error: ReadError) -> FoundFile:
    return FoundFile(path, source_of(path), error=error)


def _skipped(path: str, reason: str) -> FoundFile:
    return FoundFile(path, source_of(path), skipped=reason)


def _link_error(path: str, error: OSError) -> ReadError:
    if error.errno == errno.ENOENT and Path(path).is_symlink():
        return Unreadable(
            f"{source_of(path)} is a symbolic link to a file that does not exist.", remedy="Remove or mend the link."
        )
    return cannot_open(path, error)
