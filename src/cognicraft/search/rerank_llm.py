"""A language model as a reranker: a grade from 0 to 10 for each passage, or an order of all of them.

Takes: a question and passages; the model is given. Returns: scores from 0 to 10, larger is better.
Method: grades: passages in batches, one structured call each, side by side. Listwise: all passages in one call, the
    model names their numbers, best first (Sun et al. 2023, "Is ChatGPT good at search?", arXiv:2304.09542); the first
    gets 10, the last 0, evenly between. The instructions are `rerank_prompt.md` and `rerank_prompt_listwise.md`.
Cost: the tokens of all passages once, and some twenty for each grade; a call more for each bad reply.
What can go wrong: a bad reply leaves its batch without scores (None), the others keep theirs; only where every call
    failed is that an error. Passages too long for the model's window are cut. `judge` says all of it in notes.
    A passage cannot give orders: it stands in a fence that it cannot close.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pydantic import BaseModel, Field, create_model

from cognicraft.errors import ContextOverflow, ModelError, ModelReplyInvalid, UsageError
from cognicraft.protocols import LanguageModel, Schema
from cognicraft.records import Message, digest
from cognicraft.search.blend import Judgement

BEST_GRADE = 10.0
_REPLY_TOKENS_FIXED, _REPLY_TOKENS_EACH = 100, 30
# Three bytes a token is on the safe side for prose in any script; a prompt that is too long all the same is halved.
_BYTES_PER_TOKEN = 3
_LEAST_PASSAGE_BYTES = 300
_SURROGATES = re.compile("[\ud800-\udfff]")


class Grade(BaseModel):
    """What the model says of one passage. Grades out of range are mended here, not asked for again."""

    passage: int = Field(description="Number of the passage.")
    grade: float = Field(description="0 (nothing to do with the question) to 10 (answers it fully).")


class Grades(BaseModel):
    """Reply of the graded form."""

    grades: list[Grade] = Field(description="One entry for each passage.")


class Order(BaseModel):
    """Reply of the listwise form."""

    order: list[int] = Field(description="Numbers of all passages, best first.")


def _of_length(schema: type[Schema], field: str, count: int) -> type[Schema]:
    """The schema with the number of entries in it: a small model that is held to it cannot run on without end.

    For the model only: a reply of another length is read all the same.
    """
    known = schema.model_fields[field]
    bounded = Field(description=known.description, json_schema_extra={"minItems": count, "maxItems": count})
    return create_model(schema.__name__, __base__=schema, **{field: (known.annotation, bounded)})  # type: ignore[call-overload, no-any-return]


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What came of one call, by the number of the passage among all."""

    scores: dict[int, float]
    out_of_range: int = 0
    unknown: int = 0
    unlisted: int = 0
    error: ModelError | None = None


class LlmReranker:
    """A `Reranker` that asks a language model. Thread-safe. The model stays the caller's: `close` does not close it.

    listwise: one call that orders all passages, in place of a grade for each. batch: passages in one call of the graded
    form. timeout_s: longest wait for each call, in seconds; None is the model's own. instructions: in place of the
    prompt file.

    Raises: UsageError for `batch` below 1 or `timeout_s` not above 0.
    """

    def __init__(
        self,
        model: LanguageModel,
        *,
        listwise: bool = False,
        batch: int = 10,
        timeout_s: float | None = None,
        instructions: str = "",
    ) -> None:
        if batch < 1 or (timeout_s is not None and not timeout_s > 0):
            raise UsageError(
                f"batch is {batch}, timeout_s {timeout_s}.", remedy="A batch has at least 1 passage; time is above 0 s."
            )
        self._model = model
        self._listwise = listwise
        self._batch = batch
        self._timeout_s = timeout_s
        file = "rerank_prompt_listwise.md" if listwise else "rerank_prompt.md"
        self._instructions = instructions or (Path(__file__).parent / file).read_text(encoding="utf-8").strip()

    @property
    def name(self) -> str:
        return f"{'llm-listwise' if self._listwise else 'llm'}({self._model.name})"

    def scores(self, question: str, passages: Sequence[str]) -> list[float | None]:
        """0 to 10 for each passage, in order, larger is better; None where the model gave no usable grade.

        Raises: ModelError where every call failed.
        """
        return list(self.judge(question, passages).scores)

    def judge(self, question: str, passages: Sequence[str]) -> Judgement:
        """The scores with notes: grades out of range, passages that were cut, calls that failed. Raises as `scores`."""
        if not passages:
            return Judgement(())
        texts, cut = self._fitted(question, passages)
        ask = self._order if self._listwise else self._grades
        outcomes = _side_by_side(
            [partial(self._asked, ask, question, texts, numbers) for numbers in self._batches(question, texts)]
        )
        errors = [outcome.error for outcome in outcomes if outcome.error is not None]
        scores = {number: score for outcome in outcomes for number, score in outcome.scores.items()}
        if errors and not scores:
            raise errors[0]
        return Judgement(
            tuple(scores.get(number) for number in range(len(passages))), self._notes(outcomes, cut, len(passages))
        )

    def close(self) -> None:
        """Nothing to end; the model belongs to the caller."""

    # ── what fits ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _room_bytes(self, question: str, passages: int) -> int:
        """Bytes of passages that one call may carry beside instructions, question and reply."""
        reply = _REPLY_TOKENS_FIXED + _REPLY_TOKENS_EACH * passages
        tokens = self._model.context_tokens - reply
        fences = 60 * passages
        return tokens * _BYTES_PER_TOKEN - _bytes(self._instructions) - _bytes(question) - fences

    def _fitted(self, question: str, passages: Sequence[str]) -> tuple[list[str], int]:
        """Passages cut to what one call can carry (listwise: to an equal share of it), and how many were."""
        together = len(passages) if self._listwise else 1
        most = max(_LEAST_PASSAGE_BYTES, self._room_bytes(question, together) // together)
        texts = [_cut(text, most) for text in passages]
        return texts, sum(1 for old, new in zip(passages, texts, strict=True) if len(new) < len(old))

    def _batches(self, question: str, texts: Sequence[str]) -> list[list[int]]:
        if self._listwise:
            return [list(range(len(texts)))]
        batches: list[list[int]] = [[]]
        filled = 0
        room = self._room_bytes(question, self._batch)
        for number, text in enumerate(texts):
            if batches[-1] and (len(batches[-1]) == self._batch or filled + _bytes(text) > room):
                batches.append([])
                filled = 0
            batches[-1].append(number)
            filled += _bytes(text)
        return batches

    # ── one call ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _asked(
        self,
        ask: Callable[[str, Sequence[str], Sequence[int]], _Outcome],
        question: str,
        texts: Sequence[str],
        numbers: Sequence[int],
    ) -> _Outcome:
        try:
            return ask(question, texts, numbers)
        except ContextOverflow as error:
            if len(numbers) == 1 or self._listwise:
                return _Outcome({}, error=error)
            half = len(numbers) // 2
            return _joined([self._asked(ask, question, texts, part) for part in (numbers[:half], numbers[half:])])
        except ModelError as error:
            return _Outcome({}, error=error)

    def _grades(self, question: str, texts: Sequence[str], numbers: Sequence[int]) -> _Outcome:
        schema = _of_length(Grades, "grades", len(numbers))
        reply, _ = self._model.structured(self._messages(question, texts, numbers), schema, timeout_s=self._timeout_s)
        scores: dict[int, float] = {}
        out_of_range = unknown = 0
        for given in reply.grades:
            if not 1 <= given.passage <= len(numbers) or math.isnan(given.grade):
                unknown += 1
                continue
            number = numbers[given.passage - 1]
            # The first grade counts where a passage is given two.
            if number in scores:
                continue
            scores[number] = min(BEST_GRADE, max(0.0, given.grade))
            out_of_range += scores[number] != given.grade
        error = (
            None if scores else ModelReplyInvalid(f"{self._model.name} graded none of the passages that it was given.")
        )
        return _Outcome(scores, out_of_range, unknown, error=error)

    def _order(self, question: str, texts: Sequence[str], numbers: Sequence[int]) -> _Outcome:
        schema = _of_length(Order, "order", len(numbers))
        reply, _ = self._model.structured(self._messages(question, texts, numbers), schema, timeout_s=self._timeout_s)
        known = [given for given in dict.fromkeys(reply.order) if 1 <= given <= len(numbers)]
        unknown = sum(1 for given in reply.order if not 1 <= given <= len(numbers))
        if not known:
            error = ModelReplyInvalid(f"{self._model.name} listed none of the passages that it was given.")
            return _Outcome({}, unknown=unknown, error=error)
        listed = set(known)
        order = known + [given for given in range(1, len(numbers) + 1) if given not in listed]
        last = max(1, len(order) - 1)
        scores = {numbers[given - 1]: BEST_GRADE * (1 - place / last) for place, given in enumerate(order)}
        return _Outcome(scores, unknown=unknown, unlisted=len(order) - len(known))

    def _messages(self, question: str, texts: Sequence[str], numbers: Sequence[int]) -> list[Message]:
        chosen = [_sendable(texts[number]) for number in numbers]
        question = _sendable(question.strip())
        fence = _fence(question, chosen)
        passages = "\n".join(
            f'<{fence} number="{number}">\n{text}\n</{fence}>' for number, text in enumerate(chosen, start=1)
        )
        request = (
            f"Question: {question}\n\n"
            f"Passages 1 to {len(chosen)}, each between <{fence}> and </{fence}>:\n\n{passages}\n\n"
            f"Question again: {question}"
        )
        return [Message("system", self._instructions, stable=True), Message("user", request)]

    def _notes(self, outcomes: Sequence[_Outcome], cut: int, passages: int) -> tuple[str, ...]:
        notes = []
        name = self._model.name
        if cut:
            notes.append(f"{_counted(cut, 'passage was', 'passages were')} cut to fit what {name} reads at once.")
        if out := sum(outcome.out_of_range for outcome in outcomes):
            notes.append(f"{name} gave {_counted(out, 'grade', 'grades')} outside 0 to 10: taken as the nearest.")
        if unknown := sum(outcome.unknown for outcome in outcomes):
            notes.append(f"{name} named {_counted(unknown, 'passage', 'passages')} that it was not given.")
        if unlisted := sum(outcome.unlisted for outcome in outcomes):
            notes.append(
                f"{name} left {unlisted} of {passages} passages out of its order: they come last, as they were."
            )
        notes += dict.fromkeys(f"Some passages got no grade. {outcome.error}" for outcome in outcomes if outcome.error)
        return tuple(notes)


def _side_by_side(calls: Sequence[Callable[[], _Outcome]]) -> list[_Outcome]:
    if len(calls) == 1:
        return [calls[0]()]
    with ThreadPoolExecutor(len(calls), thread_name_prefix="rerank") as pool:
        running = [pool.submit(call) for call in calls]
        return [future.result() for future in running]


def _joined(parts: Sequence[_Outcome]) -> _Outcome:
    return _Outcome(
        {number: score for part in parts for number, score in part.scores.items()},
        sum(part.out_of_range for part in parts),
        sum(part.unknown for part in parts),
        sum(part.unlisted for part in parts),
        next((part.error for part in parts if part.error is not None), None),
    )


def _fence(question: str, texts: Sequence[str]) -> str:
    """A tag that stands in none of the texts, so that none can close it; the same for the same call (for caches)."""
    fence = f"passage-{digest(question, *texts, size=4)}"
    while any(fence in text for text in (question, *texts)):
        fence = f"passage-{digest(fence, size=4)}"
    return fence


def _sendable(text: str) -> str:
    """Lone surrogates replaced: they have no bytes to send."""
    return text if text.isascii() else _SURROGATES.sub("\ufffd", text)


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _cut(text: str, most_bytes: int) -> str:
    data = text.encode("utf-8", "surrogatepass")
    return text if len(data) <= most_bytes else data[:most_bytes].decode("utf-8", "ignore")


def _counted(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"
