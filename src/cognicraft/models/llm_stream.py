"""The reading end of a streamed reply: what the event loop puts in, a thread takes out.

Closing the stream, dropping it half read, or an interrupt while it is read cancels the work at the other end, and
with it the HTTP request.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Literal

from cognicraft.errors import ModelError
from cognicraft.records import Completion, Usage

CANCELLED_WITHIN_S = 0.5


@dataclass(slots=True)
class Feed:
    """Shared by both ends. The writer keeps `text` and `usage` up to date and ends with `finished`."""

    model: str
    pieces: SimpleQueue[str | ModelError | None] = field(default_factory=SimpleQueue)
    text: list[str] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    finish: Literal["stop", "length"] = "stop"

    def put(self, piece: str) -> None:
        self.text.append(piece)
        self.pieces.put(piece)

    def finished(self, error: ModelError | None = None) -> None:
        self.pieces.put(error)


class ReplyStream:
    """Pieces of a reply as they come; see `protocols.CompletionStream`. Iterated once, by one thread at a time."""

    def __init__(self, feed: Feed, work: Future[None]) -> None:
        self._feed = feed
        self._ended = False
        # Neither the feed nor the work knows this object, so that dropping it is noticed.
        self._cancel = weakref.finalize(self, work.cancel)

    def __iter__(self) -> Iterator[str]:
        try:
            while not self._ended:
                try:
                    # In steps: a wait without end cannot be interrupted on Windows.
                    piece = self._feed.pieces.get(timeout=1.0)
                except Empty:
                    continue
                if isinstance(piece, str):
                    yield piece
                    continue
                self._ended = True
                self._cancel.detach()
                if piece is not None:
                    raise piece
        except ModelError:
            raise
        except BaseException:  # an interrupt, or the reader went away
            self.close()
            raise

    def close(self) -> None:
        """Idempotent. What came so far stays in `completion`, with its usage."""
        ended, self._ended = self._ended, True
        if ended:
            return
        self._cancel()
        with contextlib.suppress(Empty):
            # The other end counts what the call took before it says that it ended; this takes milliseconds.
            while isinstance(self._feed.pieces.get(timeout=CANCELLED_WITHIN_S), str):
                pass

    @property
    def completion(self) -> Completion:
        feed = self._feed
        return Completion("".join(feed.text), feed.usage, feed.model, feed.finish)
