"""Counting what calls take, and stopping where a budget is used up.

Takes: a language model. Returns: the same with every call's usage added up here. One meter counts for as many models
as share a budget. Cost: none. What can go wrong: the budget is spent, which is said before the next call is made;
a call that is under way is never cut, so the last one may go over.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from pydantic import BaseModel

from cognicraft.errors import BudgetSpent, ModelError
from cognicraft.models.wrapped import WrappedModel
from cognicraft.protocols import CompletionStream, LanguageModel
from cognicraft.records import Completion, Message, Usage

Schema = TypeVar("Schema", bound=BaseModel)


class Meter:
    """Thread-safe. budget_usd: US dollars; budget_tokens: tokens in and out. None is no limit."""

    def __init__(self, *, budget_usd: float | None = None, budget_tokens: int | None = None) -> None:
        self._budget_usd = budget_usd
        self._budget_tokens = budget_tokens
        self._lock = threading.Lock()
        self._usage = Usage()

    @property
    def usage(self) -> Usage:
        """Of all calls so far, those that failed included as far as it is known."""
        with self._lock:
            return self._usage

    def of(self, model: LanguageModel) -> LanguageModel:
        """That model with its calls counted here. Closing it closes the model."""
        return MeteredModel(model, self)

    def add(self, usage: Usage) -> None:
        with self._lock:
            self._usage = self._usage + usage

    def check(self, model: LanguageModel) -> None:
        """Raises: BudgetSpent where no further call may be made."""
        spent = self.usage
        if self._budget_usd is not None:
            # A model that does not say so may have a price: then the cost of its calls decides.
            if getattr(model, "price_known", True) is False or spent.cost_usd is None:
                raise BudgetSpent(
                    f"The price of {model.name} is not known, so a budget in US dollars cannot be kept.",
                    remedy="Add its price to a catalog file (model.catalog), or use model.budget_tokens.",
                )
            if spent.cost_usd >= self._budget_usd:
                raise BudgetSpent(
                    f"The budget of {self._budget_usd:g} US dollars for model calls is used up "
                    f"({spent.cost_usd:.4f} after {spent.calls} calls).",
                    remedy="Raise model.budget_usd; what was paid for is kept.",
                )
        tokens = spent.input_tokens + spent.output_tokens
        if self._budget_tokens is not None and tokens >= self._budget_tokens:
            raise BudgetSpent(
                f"The budget of {self._budget_tokens:,} tokens for model calls is used up "
                f"({tokens:,} after {spent.calls} calls).",
                remedy="Raise model.budget_tokens; what was paid for is kept.",
            )


class MeteredModel(WrappedModel):
    """A `LanguageModel` whose calls a `Meter` counts."""

    def __init__(self, model: LanguageModel, meter: Meter) -> None:
        super().__init__(model)
        self._meter = meter

    def complete(
        self, messages: Sequence[Message], *, max_tokens: int | None = None, timeout_s: float | None = None
    ) -> Completion:
        self._meter.check(self._model)
        with _charged(self._meter.add):
            completion = self._model.complete(messages, max_tokens=max_tokens, timeout_s=timeout_s)
        self._meter.add(completion.usage)
        return completion

    def stream(
        self, messages: Sequence[Message], *, max_tokens: int | None = None, timeout_s: float | None = None
    ) -> CompletionStream:
        self._meter.check(self._model)
        return MeteredStream(self._model.stream(messages, max_tokens=max_tokens, timeout_s=timeout_s), self._meter.add)

    def structured(
        self,
        messages: Sequence[Message],
        schema: type[Schema],
        *,
        max_tokens: int | None = None,
        timeout_s: float | None = None,
    ) -> tuple[Schema, Usage]:
        self._meter.check(self._model)
        with _charged(self._meter.add):
            value, usage = self._model.structured(messages, schema, max_tokens=max_tokens, timeout_s=timeout_s)
        self._meter.add(usage)
        return value, usage


class MeteredStream:
    """Adds the usage once: when the reply ends, breaks off, or is closed."""

    def __init__(self, stream: CompletionStream, add: Callable[[Usage], None]) -> None:
        self._stream = stream
        self._add: Callable[[Usage], None] | None = add

    def __iter__(self) -> Iterator[str]:
        try:
            yield from self._stream
        finally:
            self._count()

    def close(self) -> None:
        self._stream.close()
        self._count()

    def _count(self) -> None:
        add, self._add = self._add, None
        if add is not None:
            add(self._stream.completion.usage)

    @property
    def completion(self) -> Completion:
        return self._stream.completion


class _charged:
    """Adds what an error says was paid before it (`usage` of the error)."""

    def __init__(self, add: Callable[[Usage], None]) -> None:
        self._add = add

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        usage = getattr(error, "usage", None)
        if isinstance(error, ModelError) and isinstance(usage, Usage):
            self._add(usage)
