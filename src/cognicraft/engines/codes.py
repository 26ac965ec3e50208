"""Token codes beside the shard: append-only files of raw bytes, pointed to from the chunks' payloads.

Takes packed codes, returns where they lie; takes that place, returns the codes as an array. The shard is what is true:
bytes that no chunk points to are waste, so a crash between the two writes leaves nothing wrong. A place is
(file number, offset, rows, bytes a row). Files end at about 256 MiB; one of which nothing is used any more is removed.

Cost: one read of about 10 kB a chunk. (As payload of the shard 200 chunks cost 12 ms, as a multivector 95 ms.)
What can go wrong: a file that was removed or cut gives EngineError naming it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from cognicraft.errors import EngineError
from cognicraft.records import ByteArray

FILE_BYTES = 256 * 1024 * 1024


class Place(NamedTuple):
    """Where codes lie."""

    file: int
    offset: int
    rows: int
    width: int

    @property
    def size(self) -> int:
        return self.rows * self.width


class CodeFiles:
    """The files `NUMBER.codes` of one folder. Reads may run beside each other; writes are the caller's to order."""

    def __init__(self, folder: Path, *, file_bytes: int = FILE_BYTES) -> None:
        self._folder = folder
        self._file_bytes = file_bytes
        folder.mkdir(parents=True, exist_ok=True)
        self._opening = threading.Lock()
        self._readers: dict[int, int] = {}
        self._last = max(self.sizes(), default=0)

    def sizes(self) -> dict[int, int]:
        """File number -> bytes."""
        return {int(path.stem): path.stat().st_size for path in self._folder.glob("*.codes")}

    def append(self, codes: Iterable[ByteArray]) -> list[Place]:
        """Write the codes behind the last ones and to the disk; where each of them lies, in order."""
        places: list[Place] = []
        arrays = [np.ascontiguousarray(one) for one in codes]
        if not arrays:
            return places
        with self._path(self._last).open("ab") as file:
            offset = file.tell()
            if offset >= self._file_bytes:
                self._last += 1
                return self.append(arrays)
            for array in arrays:
                places.append(Place(self._last, offset, *array.shape))
                offset += array.nbytes
                file.write(array.data)
            file.flush()
            os.fdatasync(file.fileno()) if hasattr(os, "fdatasync") else os.fsync(file.fileno())
        return places

    def read(self, place: Place) -> ByteArray:
        """(rows, width) uint8. Raises EngineError where the bytes are not there."""
        data = self._pread(place)
        if len(data) != place.size:
            raise EngineError(
                f"Token codes are missing from {self._path(place.file)}.",
                remedy="Ingest the documents again with --force, or restore the file.",
            )
        return np.frombuffer(data, dtype=np.uint8).reshape(place.rows, place.width)

    def remove(self, number: int) -> None:
        """Remove a file that nothing points to. The last one stays, so that no number is ever given twice."""
        if number == self._last:
            return
        with self._opening:
            descriptor = self._readers.pop(number, None)
        if descriptor is not None:
            os.close(descriptor)
        self._path(number).unlink(missing_ok=True)

    def start_file(self) -> None:
        """Let the next `append` begin a new file."""
        if self.sizes().get(self._last, 0):
            self._last += 1
            self._path(self._last).touch()

    def close(self) -> None:
        with self._opening:
            for descriptor in self._readers.values():
                os.close(descriptor)
            self._readers.clear()

    def _path(self, number: int) -> Path:
        return self._folder / f"{number:06d}.codes"

    def _pread(self, place: Place) -> bytes:
        descriptor = self._readers.get(place.file)
        if descriptor is None:
            with self._opening:
                descriptor = self._readers.get(place.file)
                if descriptor is None:
                    try:
                        descriptor = os.open(self._path(place.file), os.O_RDONLY)
                    except FileNotFoundError:
                        return b""
                    self._readers[place.file] = descriptor
        return os.pread(descriptor, place.size, place.offset)
