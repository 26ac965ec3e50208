"""The questions of one document: one per chunk, each with the part of the document that fits the model's window.

Takes: a document, its chunks, the template, the window. Returns: the messages of each question. Method: what the
template, the longest chunk and the reply take comes off the window; the document gets the rest. Where a model says that
a prompt is too long after all, the caller goes on with the next smaller share of the window (a level).
Cost: as `context_prompt`. What can go wrong: a window smaller than the chunk leaves no room, and nothing is shown.
"""

from __future__ import annotations

from collections.abc import Sequence

from cognicraft.ingest.context_prompt import ContextPrompt, Shown, estimated_tokens, shown_parts
from cognicraft.records import Chunk, Document, Message

REPLY_TOKENS = 300
"""Most that a reply may hold; four sentences are about a hundred."""
WINDOW_SHARES = (1.0, 0.6, 0.35, 0.15)
"""Of the model's window, by level: tried in turn where the model says that the prompt is too long."""
SPARE_TOKENS = 64


class DocumentQuestions:
    """Threads may share it."""

    def __init__(
        self,
        document: Document,
        chunks: Sequence[Chunk],
        *,
        prompt: ContextPrompt,
        window: int,
        document_tokens: int | None,
    ) -> None:
        self.document = document
        self.chunks = chunks
        self._prompt = prompt
        self.tokens = estimated_tokens(document.text) if chunks else 0
        longest = max((estimated_tokens(chunk.text) for chunk in chunks), default=0)
        self._taken = prompt.own_tokens + longest + REPLY_TOKENS + SPARE_TOKENS
        self._window = window
        self._document_tokens = document_tokens
        self._shown: dict[int, list[Shown]] = {}
        self._latest: tuple[Shown, tuple[Message, ...], str] | None = None

    def room_tokens(self, level: int) -> int:
        room = int(self._window * WINDOW_SHARES[level]) - self._taken
        return max(min(room, self._document_tokens or room), 0)

    def shown(self, level: int) -> list[Shown]:
        if level not in self._shown:
            self._shown[level] = shown_parts(
                self.document, self.chunks, room_tokens=self.room_tokens(level), tokens=self.tokens
            )
        return self._shown[level]

    def shown_tokens(self, level: int) -> int:
        return min(self.tokens, self.room_tokens(level))

    def messages(self, number: int, level: int) -> tuple[Message, ...]:
        shown = self.shown(level)[number]
        latest = self._latest  # of the chunk before, most often the same; replaced as one, so threads may share it
        if latest is None or latest[0] != shown:
            latest = self._latest = (shown, self._prompt.stable(self.document, shown), shown.text_of(self.document))
        return (*latest[1], self._prompt.asking(self.document, self.chunks[number], latest[2]))
