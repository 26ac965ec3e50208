"""A call that is waited for only so long.

Takes: seconds and a call. Returns: what it returns. Method: the call runs in a thread of its own. Cost: a thread.
What can go wrong: a call that is given up runs on until it ends by itself; what it returns then is thrown away.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class OutOfTime(Exception):
    """The call was not done in time."""


def within(seconds: float | None, call: Callable[[], T]) -> T:
    """What the call returns or raises. seconds: longest wait; None waits, in this very thread.

    Raises: OutOfTime.
    """
    if seconds is None:
        return call()
    if seconds <= 0:
        raise OutOfTime
    returned: list[T] = []
    raised: list[BaseException] = []
    context = contextvars.copy_context()

    def run() -> None:
        try:
            returned.append(context.run(call))
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run, name="time-limit", daemon=True)
    thread.start()
    thread.join(seconds)
    if raised:
        raise raised[0]
    if not returned:
        raise OutOfTime
    return returned[0]
