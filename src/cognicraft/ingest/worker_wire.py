"""Frames on the pipe between the reader pool and its children: a length in eight bytes, then a pickle.

Takes: any picklable value and a binary stream. Returns: the same value at the other end, in order, None at the end.
Method: both ends are the same program on the same machine, so a pickle is trusted as much as the process itself.
Cost: one copy of the value on each side. What can go wrong: the other end dies in mid-frame: that reads as the end.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Any, BinaryIO

from cognicraft.errors import CogniCraftError, ReadMemory
from cognicraft.records import Document


@dataclass(frozen=True, slots=True)
class Setup:
    """First frame to a child. `reader` is "module:function", called with a path and `options=`."""

    reader: str
    memory_limit_mb: int


@dataclass(frozen=True, slots=True)
class Job:
    """One file for a child."""

    path: str
    options: dict[str, object]


@dataclass(frozen=True, slots=True)
class Started:
    """The child is up and begins with the file: from here the deadline counts."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Some of the documents of the file."""

    documents: tuple[Document, ...]


@dataclass(frozen=True, slots=True)
class Finished:
    """The file is through, with its last documents or with the reason why it could not be read.

    exhausted: the child ran out of memory and should not be given another file.
    """

    documents: tuple[Document, ...] = ()
    error: CogniCraftError | None = None
    seconds: float = 0.0
    exhausted: bool = False


def write_frame(stream: BinaryIO, value: object) -> None:
    """Send a value. Raises: OSError where the other end is gone."""
    payload = pickle.dumps(value, protocol=5)
    stream.write(len(payload).to_bytes(8, "little"))
    stream.write(payload)
    stream.flush()


def read_frame(stream: BinaryIO) -> Any | None:
    """The next value, or None where the other end has closed or died."""
    header = stream.read(8)
    if len(header) < 8:
        return None
    size = int.from_bytes(header, "little")
    payload = stream.read(size)
    return pickle.loads(payload) if len(payload) == size else None


def out_of_memory(name: str, ending: str = "") -> ReadMemory:
    """The error for a file that needed more than a reader may take. ending: how the process ended, if it did."""
    how = f"; the reader process ended ({ending})" if ending else ""
    return ReadMemory(
        f"Reading {name} needed more memory than one document may take{how}.",
        remedy="Raise the memory limit of the readers, or split the file.",
    )
