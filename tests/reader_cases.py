"""Readers that behave as hostile files make a real one behave; the pool is given them by name."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from cognicraft.records import Document


def read_case(path: str, *, options: Mapping[str, object]) -> Iterator[Document]:
    """Do what the name of the file says; any other name gives one document with this process's id as its text."""
    match Path(path).stem:
        case "hang":
            time.sleep(600)
        case "abort":
            os.abort()
        case "segfault":
            ctypes.string_at(0)
        case "vanish":
            os.kill(os.getpid(), signal.SIGKILL)
        case "greedy":
            bytearray(4_000_000_000)
        case "broken":
            raise ValueError("no such thing as a third half")
        case "deep":
            raise RecursionError
        case "gone":
            Path(path).read_bytes()
        case "noisy":
            os.write(1, b"a library prints this")
            print("and so does Python")
        case "many":
            for number in range(1000):
                yield Document(path, f"document {number}", pointer=f"/{number}")
            return
    yield Document(path, str(os.getpid()))
