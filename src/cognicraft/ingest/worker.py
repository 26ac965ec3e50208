"""The reader pool: files are read in processes of their own, so that no file can stop, hang or fill the run.

Takes: an iterable of (path, options), taken lazily. Returns: `ReadOutcome`s as they are done, order not kept.
Method: children are started with `python -m cognicraft.ingest.worker_main` when first needed (not through
multiprocessing, which would import the user's main module again), each under a memory limit; the parent ends a child
whose file takes longer than the deadline, and gives the next file to a new one. A child ends itself when the parent
is gone. Cost: 0.2 s per child start; results wait in the pipe, at most a few at a time, so memory does not grow with
the number of files. What can go wrong: a file that ends its process costs that file only and becomes `ReadMemory`,
`CorruptFile` or `ReadTimeout`; the memory limit holds on Linux (elsewhere the system's own limits do).
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, cast

from cognicraft.errors import CorruptFile, ReadError, ReadTimeout, UsageError
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

READ_FILE = "cognicraft.ingest.read:read_file"
START_DEADLINE_S = 60.0
_DAMAGE = {"SIGSEGV", "SIGBUS", "SIGFPE"}


@dataclass(frozen=True, slots=True)
class ReadOutcome:
    """What reading one file gave, or a part of it.

    Of one path there are any number of outcomes with `done` false, each with some documents, then one with `done`
    true, with the last documents (maybe none) or with `error`; documents that came before an error are what could be
    read. `seconds` is the wall-clock time of the whole file, on the last outcome.
    """

    path: str
    documents: tuple[Document, ...] = ()
    error: ReadError | None = None
    seconds: float = 0.0
    done: bool = True


class ReaderPool:
    """Reads files side by side in processes of their own. A context manager; one `read` at a time.

    workers: processes, at least 1. memory_limit_mb: per process, its libraries included (about 80 MB); 0 = none.
    deadline_s: per file, wall clock. recycle_after: files after which a process is replaced by a fresh one.
    reader: "module:function" called with a path and `options=`, giving documents.
    """

    def __init__(
        self,
        *,
        workers: int,
        memory_limit_mb: int,
        deadline_s: float,
        recycle_after: int,
        reader: str = READ_FILE,
    ) -> None:
        """Raises: UsageError for a bound that cannot be meant."""
        if workers < 1 or recycle_after < 1 or deadline_s <= 0 or memory_limit_mb < 0:
            raise UsageError(
                "A reader pool needs at least one worker, one file per process, and a deadline above zero.",
                remedy="Give larger numbers.",
            )
        self._workers = workers
        self._deadline_s = deadline_s
        self._recycle_after = recycle_after
        self._setup = Setup(reader, memory_limit_mb)
        self._children: list[_Child] = []
        self._frames: queue.SimpleQueue[tuple[_Child, object]] = queue.SimpleQueue()
        self._reading = False
        self._closed = False

    def __enter__(self) -> ReaderPool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End all processes, in the middle of a file if need be. Idempotent."""
        self._closed = True
        for child in self._children:
            child.end()
        self._children = []

    def read(self, paths: Iterable[tuple[str, Mapping[str, object]]]) -> Iterator[ReadOutcome]:
        """Read every path once. Take outcomes slowly and reading waits; time that you take counts for no deadline.

        Raises: UsageError where the pool is closed, already reading, its processes cannot start, or an option of a file
            is wrong.
        """
        if self._reading or self._closed:
            state = "closed" if self._closed else "already reading"
            raise UsageError(f"The reader pool is {state}.", remedy="Use one pool for one run at a time.")
        self._reading = True
        remaining = iter(paths)
        try:
            self._assign(remaining)
            while any(child.job is not None for child in self._children):
                outcome = self._next()
                self._assign(remaining)
                if outcome is not None:
                    away_since = time.monotonic()
                    yield outcome
                    away_s = time.monotonic() - away_since
                    for child in self._children:
                        child.must_end_by += away_s
        finally:
            self._reading = False
            for child in [child for child in self._children if child.job is not None]:
                self._discard(child)  # the caller stopped half-way

    def _assign(self, remaining: Iterator[tuple[str, Mapping[str, object]]]) -> None:
        """Give a file to every idle process, starting processes while there are files and room."""
        while True:
            idle = next((child for child in self._children if child.job is None), None)
            if idle is None and len(self._children) >= self._workers:
                return
            following = next(remaining, None)
            if following is None:
                return
            if idle is not None and idle.files >= self._recycle_after:
                self._discard(idle)
                idle = None
            if idle is None:
                idle = _Child(self._setup, self._frames)
                self._children.append(idle)
            path, options = following
            idle.give(Job(path, dict(options)))

    def _next(self) -> ReadOutcome | None:
        """Wait for the next frame or the next deadline; None where there is nothing to hand over yet."""
        busy = [child for child in self._children if child.job is not None]
        first = min(child.must_end_by for child in busy)
        try:
            # What is already here comes before any deadline.
            child, frame = self._frames.get(timeout=max(0.0, first - time.monotonic()))
        except queue.Empty:
            late = [child for child in busy if child.must_end_by <= time.monotonic()]
            return self._too_slow(late[0]) if late else None
        child.room.release()
        if child.ended or child.job is None:
            return None  # from a process that was ended while this was on its way
        match frame:
            case Started():
                child.started_at = time.monotonic()
                child.must_end_by = child.started_at + self._deadline_s
                return None
            case Batch(documents):
                return ReadOutcome(child.job.path, documents, done=False)
            case Finished(documents, error, seconds, exhausted):
                path = child.job.path
                child.job = None
                if exhausted:
                    self._discard(child)
                if error is not None and not isinstance(error, ReadError):
                    raise error  # of the call, not of the file: a wrong option
                return ReadOutcome(path, documents, error, seconds)
            case _:
                return self._died(child)

    def _too_slow(self, child: _Child) -> ReadOutcome:
        job = cast(Job, child.job)
        started = child.started_at
        self._discard(child)
        if started is None:
            raise _cannot_start(self._setup)
        error = ReadTimeout(
            f"Reading {source_of(job.path)} took longer than {self._deadline_s:g} s.",
            remedy="Raise the deadline for one document, or split the file.",
        )
        return ReadOutcome(job.path, error=error, seconds=time.monotonic() - started)

    def _died(self, child: _Child) -> ReadOutcome:
        job = cast(Job, child.job)
        started = child.started_at
        how = _ending(_exit_code(child.process))
        self._discard(child)
        if started is None:
            raise _cannot_start(self._setup)
        name = source_of(job.path)
        error: ReadError = out_of_memory(name, how)
        if how in _DAMAGE:
            error = CorruptFile(
                f"{name} is damaged in a way that ended the reader process ({how}).",
                remedy="Open it in its own program and save it again.",
            )
        return ReadOutcome(job.path, error=error, seconds=time.monotonic() - started)

    def _discard(self, child: _Child) -> None:
        child.end()
        self._children.remove(child)


class _Child:
    """One process with the thread that takes its frames off the pipe, never more than two ahead of the caller."""

    def __init__(self, setup: Setup, frames: queue.SimpleQueue[tuple[_Child, object]]) -> None:
        self.job: Job | None = None
        self.files = 0
        self.started_at: float | None = None
        self.must_end_by = 0.0
        self.ended = False
        self.room = threading.Semaphore(2)
        self.process = subprocess.Popen(
            # -P: a file named like a library in the working folder is not imported.
            [sys.executable, "-P", "-m", "cognicraft.ingest.worker_main"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=_environment(),
        )
        self._jobs = cast(BinaryIO, self.process.stdin)
        self._results = cast(BinaryIO, self.process.stdout)
        threading.Thread(target=self._listen, args=(frames,), daemon=True).start()
        self._send(setup)

    def give(self, job: Job) -> None:
        self.job = job
        self.files += 1
        self.started_at = None
        self.must_end_by = time.monotonic() + START_DEADLINE_S
        self._send(job)

    def end(self) -> None:
        """End the process now and wait for it, so that nothing is left behind."""
        self.ended = True
        self.room.release()
        self.process.kill()
        self.process.wait()
        with contextlib.suppress(OSError):
            self._jobs.close()

    def _send(self, value: object) -> None:
        with contextlib.suppress(OSError):  # it has died, and the end of its frames will say so
            write_frame(self._jobs, value)

    def _listen(self, frames: queue.SimpleQueue[tuple[_Child, object]]) -> None:
        with self._results:
            while True:
                self.room.acquire()
                frame = None if self.ended else read_frame(self._results)
                frames.put((self, frame))
                if frame is None:
                    return


def _environment() -> dict[str, str]:
    """The parent's own, with its import path, and one thread for numeric libraries: a reader has no use for more."""
    package = str(Path(__file__).resolve().parents[2])
    folders = [package, *(folder for folder in sys.path if folder and folder != package)]
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    return {**os.environ, **threads, "PYTHONPATH": os.pathsep.join(folders)}


def _exit_code(process: subprocess.Popen[bytes]) -> int | None:
    """Of a process whose pipe has ended: it is gone, or about to be."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=5)
    return process.returncode


def _ending(code: int | None) -> str:
    """How a process ended, in a word: a signal's name or an exit code."""
    if code is not None and code < 0:
        with contextlib.suppress(ValueError):
            return signal.Signals(-code).name
    return f"exit code {code}"


def _cannot_start(setup: Setup) -> UsageError:
    return UsageError(
        f"The reader processes do not start; their memory limit is {setup.memory_limit_mb} MB.",
        remedy="Raise the limit if it is low; `python -m cognicraft.ingest.worker_main </dev/null` shows why.",
    )
