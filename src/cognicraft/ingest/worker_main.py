"""The child of the reader pool: `python -m cognicraft.ingest.worker_main`, never called by a person.

Takes: frames on standard input (`worker_wire`). Returns: frames on what was standard output at the start.
Method: a thread listens for jobs and ends the process as soon as the parent is gone, even in the middle of a file;
the main thread reads one file at a time under a memory limit (RLIMIT_DATA: libraries reserve address space that they
never touch, which RLIMIT_AS would count). Cost: about 0.2 s to start.
What can go wrong: anything that a file can do to a process; the parent sees it as the end of the stream.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import BinaryIO

from cognicraft.errors import CogniCraftError, CorruptFile, ReadError
from cognicraft.ingest.load import cannot_open
from cognicraft.ingest.sourcename import source_of
from cognicraft.ingest.worker_wire import (
    Batch,
    Finished,
    Job,
    Setup,
    Started,
    out_of_memory,
    read_frame,
    write_frame,
)
from cognicraft.records import Document

BATCH_DOCUMENTS = 256
BATCH_CHARACTERS = 1_000_000

ReadFunction = Callable[..., Iterator[Document]]


def main() -> None:
    """Serve jobs until the parent closes the pipe."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which then ends us
    incoming, outgoing = _private_streams()
    setup: Setup | None = read_frame(incoming)
    if setup is None:
        return
    jobs: queue.SimpleQueue[Job] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(incoming, jobs), daemon=True).start()
    read = _load(setup.reader)
    _limit_memory(setup.memory_limit_mb)
    while True:
        job = jobs.get()
        try:
            write_frame(outgoing, Started())
            write_frame(outgoing, _read(read, job, outgoing))
        except OSError:  # the parent is gone
            return


def _private_streams() -> tuple[BinaryIO, BinaryIO]:
    """Both ends of the wire, moved away from the numbers 0 and 1 where a library might print or read."""
    incoming, outgoing = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(2, 1)
    return os.fdopen(incoming, "rb"), os.fdopen(outgoing, "wb")


def _listen(incoming: BinaryIO, jobs: queue.SimpleQueue[Job]) -> None:
    while (job := read_frame(incoming)) is not None:
        jobs.put(job)
    os._exit(0)


def _load(name: str) -> ReadFunction:
    module, _, function = name.partition(":")
    loaded: ReadFunction = getattr(importlib.import_module(module), function)
    return loaded


def _limit_memory(limit_mb: int) -> None:
    if limit_mb <= 0 or sys.platform == "win32":
        return
    import resource

    limit = limit_mb * 1024 * 1024
    with contextlib.suppress(ValueError, OSError):  # a lower hard limit is already in force
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def _read(read: ReadFunction, job: Job, outgoing: BinaryIO) -> Finished:
    begun = time.perf_counter()
    batch: list[Document] = []
    size = 0
    error: CogniCraftError | None = None
    exhausted = False
    try:
        for document in read(job.path, options=job.options):
            batch.append(document)
            size += len(document.text)
            if len(batch) >= BATCH_DOCUMENTS or size >= BATCH_CHARACTERS:
                write_frame(outgoing, Batch(tuple(batch)))
                batch, size = [], 0
    except BrokenPipeError:
        raise  # the parent is gone
    except CogniCraftError as known:
        error = known
    except MemoryError:
        batch, exhausted = [], True
        error = out_of_memory(source_of(job.path))
    except Exception as problem:
        error = _unforeseen(job.path, problem)
    return Finished(tuple(batch), error, time.perf_counter() - begun, exhausted)


def _unforeseen(path: str, problem: Exception) -> ReadError:
    """What a library raised, as an error of ours: one file must not end the run."""
    if isinstance(problem, OSError):
        return cannot_open(path, problem)
    if isinstance(problem, RecursionError):
        return CorruptFile(
            f"{source_of(path)} is nested too deeply to be read.", remedy="Save it again in its own program."
        )
    return CorruptFile(
        f"{source_of(path)} could not be read: {type(problem).__name__}: {problem}.",
        remedy="If other programs open it, please report it as a defect.",
    )


if __name__ == "__main__":
    main()
