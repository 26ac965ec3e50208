"""What holds for a language model whoever serves it: slots, retries, deadlines, cancelling, usage, our errors.

Takes: a wire (`llm_wire.py`) and plain settings. Returns: a `protocols.LanguageModel`. Method: each call is a
coroutine on the one event loop (`llm_loop.py`), which a thread waits for.

Asked again, after a pause that doubles and is part random, or as long as the provider says: too many requests,
5xx, broken connections. Never: a wrong key, an unknown model, a request that was rejected. A stream is asked for
again only before its first piece.
"""

from __future__ import annotations

import asyncio
import random
import threading
import weakref
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from concurrent.futures import CancelledError, Future
from typing import TYPE_CHECKING, Any, TypeVar

from cognicraft.errors import ModelAuthentication, ModelError, ModelReplyInvalid
from cognicraft.models.llm_faults import (
    Rejected,
    Subject,
    broken_by,
    broken_off,
    charge,
    closed,
    explain,
    refused,
    timed_out,
    too_long,
)
from cognicraft.models.llm_loop import run, start
from cognicraft.models.llm_prices import Cost
from cognicraft.models.llm_stream import Feed, ReplyStream
from cognicraft.models.llm_structured import Schema, ask_again, read_reply, with_schema
from cognicraft.records import Completion, Message, Usage

if TYPE_CHECKING:
    from cognicraft.models.llm_wire import Wire

Value = TypeVar("Value")

REASKS = 2
FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 20.0
MOST_CHARACTERS = 12  # that a token of any ordinary text stands for


class ProviderModel:
    """A `LanguageModel` over one wire. Made by `open_language_model`."""

    def __init__(
        self,
        subject: Subject,
        wire: Wire,
        *,
        cost: Cost | None,
        context_tokens: int,
        timeout_s: float,
        retries: int,
        concurrency: int,
        max_output_tokens: int,
        on_close: Callable[[], None] | None = None,
    ) -> None:
        self._subject = subject
        self._wire = wire
        self._cost = cost
        self._context_tokens = context_tokens
        self._timeout_s = timeout_s
        self._retries = retries
        self._max_output_tokens = max_output_tokens
        self._on_close = on_close
        self._is_ollama = subject.name.provider.protocol == "ollama"
        self._slots = asyncio.Semaphore(concurrency)
        self._lock = threading.Lock()
        self._closed = False
        self._work: weakref.WeakSet[Future[Any]] = weakref.WeakSet()

    @property
    def name(self) -> str:
        return str(self._subject.name)

    @property
    def context_tokens(self) -> int:
        return self._context_tokens

    @property
    def price_known(self) -> bool:
        """Whether costs can be told."""
        return self._cost is not None

    @property
    def temperature(self) -> float:
        """Randomness that replies are asked for with."""
        return self._wire.temperature

    @property
    def max_output_tokens(self) -> int:
        """Tokens of a reply where a call names no limit."""
        return self._max_output_tokens

    def complete(
        self, messages: Sequence[Message], *, max_tokens: int | None = None, timeout_s: float | None = None
    ) -> Completion:
        """See `LanguageModel`. A timeout_s given here counts from now on, waiting for a free slot included."""
        return self._run(self._within(timeout_s, lambda deadline: self._complete(messages, max_tokens, deadline)))

    def stream(
        self, messages: Sequence[Message], *, max_tokens: int | None = None, timeout_s: float | None = None
    ) -> ReplyStream:
        """See `LanguageModel`. The call begins at once; timeout_s is the longest wait for the next piece."""
        feed = Feed(self.name)
        return ReplyStream(feed, self._start(self._pump(feed, list(messages), max_tokens, timeout_s)))

    def structured(
        self,
        messages: Sequence[Message],
        schema: type[Schema],
        *,
        max_tokens: int | None = None,
        timeout_s: float | None = None,
    ) -> tuple[Schema, Usage]:
        """See `LanguageModel`. A bad reply is asked for again twice at most, all within timeout_s."""
        return self._run(
            self._within(timeout_s, lambda deadline: self._structured(messages, schema, max_tokens, deadline))
        )

    def close(self) -> None:
        """Idempotent. Calls that are under way are cancelled, and say that the model was closed."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            work = list(self._work)
        for future in work:
            future.cancel()
        run(start(self._wire.close()))
        if self._on_close is not None:
            self._on_close()

    # ── on the calling thread ─────────────────────────────────────────────────────────────────────────────────

    def _start(self, work: Coroutine[Any, Any, Value]) -> Future[Value]:
        with self._lock:
            if self._closed:
                work.close()
                raise closed(self._subject)
            future = start(work)
            self._work.add(future)
            return future

    def _run(self, work: Coroutine[Any, Any, Value]) -> Value:
        try:
            return run(self._start(work))
        except CancelledError:
            raise closed(self._subject) from None

    # ── on the event loop ─────────────────────────────────────────────────────────────────────────────────────

    async def _within(self, timeout_s: float | None, call: Callable[[float], Awaitable[Value]]) -> Value:
        """Wait for a slot, then the call, with its deadline on the loop's clock."""
        loop = asyncio.get_running_loop()
        allowed_s = self._timeout_s if timeout_s is None else timeout_s
        # The model's own limit begins with the call: many callers may wait for a slot. The caller's begins now.
        deadline = None if timeout_s is None else loop.time() + timeout_s
        timer = asyncio.timeout_at(deadline)
        try:
            async with timer, self._slots:
                if deadline is None:
                    timer.reschedule(loop.time() + allowed_s)
                return await call(timer.when() or 0.0)
        except TimeoutError:
            raise timed_out(self._subject, allowed_s) from None

    async def _complete(
        self,
        messages: Sequence[Message],
        max_tokens: int | None,
        deadline: float,
        schema: Any = None,
    ) -> Completion:
        self._check_length(messages)
        limit = max_tokens or self._max_output_tokens
        left_s = max(0.1, deadline - asyncio.get_running_loop().time())

        async def ask() -> Any:
            return await self._wire.request(messages, max_tokens=limit, timeout_s=left_s, schema=schema)

        response = await self._tried(ask, deadline)
        self._check_read(response.usage, messages)
        text = _text_of(response.parts)
        usage = self._usage(response.usage, messages, text)
        if response.finish_reason == "content_filter":
            raise charge(refused(self._subject, _refusal(response)), usage)
        return Completion(text, usage, self.name, "length" if response.finish_reason == "length" else "stop")

    async def _structured(
        self, messages: Sequence[Message], schema: type[Schema], max_tokens: int | None, deadline: float
    ) -> tuple[Schema, Usage]:
        spent = Usage()
        asked = list(messages)
        wrong = ""
        try:
            for _ in range(1 + REASKS):
                reply = await self._shaped(asked, schema, max_tokens, deadline)
                spent += reply.usage
                value = read_reply(reply.text, schema)
                if not isinstance(value, str):
                    return value, spent
                wrong = value if reply.finish == "stop" else f"it was cut at its token limit ({value})"
                asked = ask_again(messages, reply.text, wrong, schema)
        except ModelError as error:
            raise charge(error, spent) from error.__cause__
        raise charge(
            ModelReplyInvalid(
                f"{self.name} gave no usable reply, asked {1 + REASKS} times: {wrong}.",
                remedy="Choose a larger model.",
            ),
            spent,
        )

    async def _shaped(
        self, messages: Sequence[Message], schema: Any, max_tokens: int | None, deadline: float
    ) -> Completion:
        """One reply for a schema, kept to it by the server where it can do that."""
        if self._wire.native_schema:
            try:
                return await self._complete(messages, max_tokens, deadline, schema)
            except Rejected:
                # Not every server that speaks the protocol knows schemas: from now on it is asked in words.
                reply = await self._complete(with_schema(messages, schema), max_tokens, deadline)
                self._wire.native_schema = False
                return reply
        return await self._complete(with_schema(messages, schema), max_tokens, deadline)

    async def _tried(self, ask: Callable[[], Awaitable[Value]], deadline: float) -> Value:
        """The call, tried again where that can help and the deadline leaves time."""
        for tries in range(1, 2 + self._retries):
            try:
                return await ask()
            except Exception as error:
                await self._pause_or_raise(error, tries, deadline)
        raise AssertionError("the last try raises")

    async def _pause_or_raise(self, error: Exception, tries: int, deadline: float | None) -> None:
        fault = explain(error, self._subject)
        pause_s = fault.retry_after_s
        if pause_s is None:
            pause_s = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** (tries - 1)) * random.uniform(0.5, 1.0)
        too_late = deadline is not None and asyncio.get_running_loop().time() + pause_s >= deadline
        if fault.retry and tries <= self._retries and not too_late:
            await asyncio.sleep(pause_s)
            return
        if fault.retry and too_late and tries <= self._retries:
            fault.error.remedy = f"Wait {pause_s:.0f} s. {fault.error.remedy}".strip()
        if fault.retry and tries > 1:
            fault.error.message = f"{fault.error.message.rstrip('.')} ({tries} tries)."
        # The chain of a wrong key may quote it.
        raise fault.error from (None if isinstance(fault.error, ModelAuthentication) else error)

    async def _pump(self, feed: Feed, messages: list[Message], max_tokens: int | None, timeout_s: float | None) -> None:
        """Feed a stream until it ends; the reader's cancelling ends it early."""
        outcome: ModelError | None = closed(self._subject)
        try:
            async with self._slots:
                await self._streamed(
                    feed, messages, max_tokens or self._max_output_tokens, timeout_s or self._timeout_s
                )
            outcome = None
        except ModelError as error:
            outcome = error
        finally:
            feed.finished(outcome)

    async def _streamed(self, feed: Feed, messages: list[Message], max_tokens: int, timeout_s: float) -> None:
        self._check_length(messages)
        loop = asyncio.get_running_loop()
        for tries in range(1, 2 + self._retries):
            stream: Any = None
            timer = asyncio.timeout(timeout_s)
            try:
                async with timer, self._wire.stream(messages, max_tokens=max_tokens, timeout_s=timeout_s) as stream:
                    async for event in stream:
                        if piece := _piece_of(event):
                            feed.put(piece)
                            timer.reschedule(loop.time() + timeout_s)
                self._settle(feed, stream, messages)
                return
            except Exception as error:
                if feed.text:
                    feed.usage = self._usage(stream.usage if stream else None, messages, "".join(feed.text))
                if timer.expired():
                    raise timed_out(self._subject, timeout_s, piece=bool(feed.text)) from None
                if feed.text or isinstance(error, ModelError):
                    raise broken_by(error, self._subject) from error
                await self._pause_or_raise(error, tries, None)
            except asyncio.CancelledError:
                feed.usage = self._usage(stream.usage if stream else None, messages, "".join(feed.text))
                raise

    def _settle(self, feed: Feed, stream: Any, messages: Sequence[Message]) -> None:
        response = stream.get()
        self._check_read(response.usage, messages)
        feed.usage = self._usage(response.usage, messages, "".join(feed.text))
        if response.finish_reason == "content_filter":
            raise charge(refused(self._subject, _refusal(response)), feed.usage)
        cut = self._wire.says_finish and not (response.provider_details or {}).get("finish_reason")
        if cut or response.state != "complete" or response.finish_reason is None:
            raise broken_off(self._subject, "the connection ended before the reply did")
        feed.finish = "length" if response.finish_reason == "length" else "stop"

    # Ollama cuts off the front of a prompt that is too long and says nothing, so it is said here: before the call by
    # an estimate, after it where far fewer tokens were read than the text can have.

    def _check_length(self, messages: Sequence[Message]) -> None:
        if self._is_ollama and _estimated(messages) > self._context_tokens:
            raise too_long(self._subject, self._context_tokens)

    def _check_read(self, reported: Any, messages: Sequence[Message]) -> None:
        read = getattr(reported, "input_tokens", 0)
        if self._is_ollama and read and sum(len(message.text) for message in messages) > MOST_CHARACTERS * read:
            raise too_long(self._subject, None)

    def _usage(self, reported: Any, messages: Sequence[Message], text: str) -> Usage:
        """What the provider counted; where it did not, four characters to a token."""
        asked = getattr(reported, "input_tokens", 0) or _estimated(messages)
        said = getattr(reported, "output_tokens", 0) or (len(text) + 3) // 4
        cached = getattr(reported, "cache_read_tokens", 0)
        writes = getattr(reported, "cache_write_tokens", 0)
        cost = None if self._cost is None else self._cost(asked, said, cached, writes)
        return Usage(calls=1, input_tokens=asked, output_tokens=said, cost_usd=cost)


def _estimated(messages: Sequence[Message]) -> int:
    """Tokens, at four characters each; of other scripts than Latin three make two."""
    text = "".join(message.text for message in messages)
    latin = len(text.encode("ascii", "ignore"))
    return latin // 4 + (len(text) - latin) * 2 // 3 + 1


def _text_of(parts: Sequence[Any]) -> str:
    return "".join(part.content for part in parts if part.part_kind == "text")


def _piece_of(event: Any) -> str:
    """Text that an event of the library brings, "" for none (thinking, bookkeeping)."""
    if event.event_kind == "part_start":
        return event.part.content if event.part.part_kind == "text" else ""
    if event.event_kind == "part_delta":
        return event.delta.content_delta or "" if event.delta.part_delta_kind == "text" else ""
    return ""


def _refusal(response: Any) -> str:
    details = response.provider_details or {}
    return str(details.get("refusal") or details.get("block_reason") or "")
