"""Many calls of a model side by side: a few threads, prompt caches warmed first, a stop that keeps what is paid.

Takes: groups of calls, the function that makes one, how many may be under way. Returns: the first error, or none; each
result is handed over in the caller's own thread as it arrives. Method: a group that asks for it sends its first call
alone, for a provider keeps a prompt only once it has read it, and the others after that; meanwhile other groups go on.
A group that was begun comes before a new one, so that its cached prompt is still warm. After an error or a stop no
call is begun, and those under way are waited for, because they are paid already. Cost: none beside the calls.
What can go wrong: a call that hangs after an error is waited for 30 seconds at most; its thread dies with the process.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

Call = TypeVar("Call")
Result = TypeVar("Result")

DRAIN_S = 30.0
_POLL_S = 0.1


@dataclass(frozen=True, slots=True)
class Group(Generic[Call]):
    """Calls that share a long beginning. first_alone: the others wait until the first has come back."""

    calls: Sequence[Call]
    first_alone: bool = False


@dataclass(frozen=True, slots=True)
class Ending:
    """How the calls ended: an error, a stop asked for, or neither: then all are done."""

    error: Exception | None = None
    stopped: bool = False


def side_by_side(
    groups: Sequence[Group[Call]],
    work: Callable[[Call], Result],
    *,
    concurrency: int,
    finished: Callable[[Call, Result], None],
    stop: Callable[[], bool],
) -> Ending:
    """Make all calls. `finished` and `stop` run in this thread; an exception of `work` ends the run and is returned."""
    todo: queue.SimpleQueue[tuple[int, Call] | None] = queue.SimpleQueue()
    done: queue.SimpleQueue[tuple[int, Call, Result | None, Exception | None]] = queue.SimpleQueue()

    def serve() -> None:
        while (task := todo.get()) is not None:
            number, call = task
            try:
                done.put((number, call, work(call), None))
            except Exception as error:  # handed to the caller, who knows what it means
                done.put((number, call, None, error))

    begun: deque[tuple[int, Call]] = deque()
    fresh = deque(number for number, group in enumerate(groups) if group.calls)
    total = sum(len(group.calls) for group in groups)
    # Not a pool of concurrent.futures: that one keeps the interpreter alive until a hanging call has ended.
    threads = [
        threading.Thread(target=serve, name=f"context-{number}", daemon=True)
        for number in range(min(max(concurrency, 1), total))
    ]
    for thread in threads:
        thread.start()
    under_way, error, stopped, give_up = 0, None, False, float("inf")
    try:
        while True:
            stopped = stopped or (error is None and stop())
            while under_way < len(threads) and error is None and not stopped:
                if not begun:
                    if not fresh:
                        break
                    number = fresh.popleft()
                    group = groups[number]
                    begun.extend((number, call) for call in (group.calls[:1] if group.first_alone else group.calls))
                todo.put(begun.popleft())
                under_way += 1
            if not under_way or time.monotonic() > give_up:
                return Ending(error=error, stopped=stopped)
            try:
                number, call, result, failure = done.get(timeout=_POLL_S)
            except queue.Empty:
                continue
            under_way -= 1
            if failure is not None:
                error = error or failure
                give_up = min(give_up, time.monotonic() + DRAIN_S)
                continue
            finished(call, result)  # type: ignore[arg-type]
            group = groups[number]
            if group.first_alone and call is group.calls[0]:
                begun.extend((number, other) for other in group.calls[1:])
    finally:
        for _ in threads:
            todo.put(None)
