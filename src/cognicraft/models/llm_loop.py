"""One background event loop for every language model of the process.

The core is synchronous; calls that fan out from many threads run side by side here. The thread is a daemon and is
made at the first call; a process that was forked makes its own.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

Value = TypeVar("Value")

_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None
_owner = 0  # process id of the thread's process: threads do not survive a fork


def event_loop() -> asyncio.AbstractEventLoop:
    """The running loop, started if need be."""
    global _loop, _owner
    with _lock:
        if _loop is None or _owner != os.getpid():
            loop = asyncio.new_event_loop()
            threading.Thread(target=loop.run_forever, name="cognicraft-models", daemon=True).start()
            _loop, _owner = loop, os.getpid()
        return _loop


def start(work: Coroutine[Any, Any, Value]) -> Future[Value]:
    """Begin on the loop. Cancelling the future cancels the work, down to its HTTP request."""
    return asyncio.run_coroutine_threadsafe(work, event_loop())


def run(future: Future[Value]) -> Value:
    """Wait for it. An interrupt of the waiting thread (Ctrl-C) cancels the work and goes on up.

    Raises: concurrent.futures.CancelledError where the work was cancelled from elsewhere.
    """
    try:
        while True:
            try:
                # In steps: a wait without end cannot be interrupted on Windows.
                return future.result(timeout=1.0)
            except TimeoutError:
                if future.done():
                    return future.result()
    except BaseException:
        future.cancel()
        raise
