"""A conversation over one workspace: follow-ups put so that they stand alone, every turn kept.

Takes: a session (`sessions.py`), and two things of the workspace: how a question is put so that it stands alone
(`answer/followup.py`) and how it is answered (`asking.py`). Returns: answers, or events while they are made.
Method: the question is rewritten with the turns before it, answered as any other, and the turn is on the disk before
the answer is given out. An answer that is stopped (the iterator closed, Ctrl-C) leaves no turn; the session goes on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence

from cognicraft.answer.followup import FollowUp, Turn
from cognicraft.errors import UsageError
from cognicraft.records import Usage
from cognicraft.results import Answer, AnswerEvent, AskEvent, ModelUsage, StepEvent
from cognicraft.sessions import ChatTurn, Session, now

Rewrite = Callable[[str, Sequence[Turn]], FollowUp]
"""(question, turns before it) -> the question so that it stands alone."""

AskStream = Callable[[str, Sequence[Turn]], Iterator[AskEvent]]
"""(question that stands alone, turns before it) -> events, the answer last."""

# Turns that a follow-up may point at; older ones stay in the session.
HISTORY_TURNS = 6
# Of each answer: a whole document that was shown must not crowd out the evidence.
HISTORY_CHARACTERS = 2000


class Chat:
    """A conversation. Made by `Workspace.chat`; not to be shared between threads."""

    def __init__(self, session: Session, *, rewrite: Rewrite, ask_stream: AskStream) -> None:
        self._session = session
        self._rewrite = rewrite
        self._ask_stream = ask_stream

    @property
    def id(self) -> str:
        """Give it to `Workspace.chat` to go on with it later."""
        return self._session.id

    @property
    def turns(self) -> list[ChatTurn]:
        """Oldest first."""
        return list(self._session.turns)

    @property
    def notes(self) -> list[str]:
        """What of the session could not be read."""
        return list(self._session.notes)

    def ask(self, question: str) -> Answer:
        """The answer to a question, which may point back at the turns before it.

        `answer.question` is the question as it was asked, `answer.understood.query` as it was searched.
        Raises: as `Workspace.ask`.
        """
        return next(event.answer for event in self.ask_stream(question) if isinstance(event, AnswerEvent))

    def ask_stream(self, question: str) -> Iterator[AskEvent]:
        """As `ask`, with events while the answer is made, the answer last. Closing it stops the model; no turn is kept.

        Raises: UsageError at once; the rest as `Workspace.ask` while it goes.
        """
        question = " ".join(question.encode("utf-8", "replace").decode("utf-8").split())
        if not question:
            raise UsageError("The question is empty.", remedy="Ask something.")
        return self._events(question)

    def _events(self, question: str) -> Iterator[AskEvent]:
        turns = self._session.turns[-HISTORY_TURNS:]
        history = [Turn(turn.stand_alone, turn.text[:HISTORY_CHARACTERS]) for turn in turns]
        started = time.perf_counter()
        follow_up = FollowUp(question)
        rewriting_ms = 0.0
        if history:
            yield StepEvent(step="rewrite")
            follow_up = self._rewrite(question, history)
            rewriting_ms = (time.perf_counter() - started) * 1000
        events = self._ask_stream(follow_up.question, history)
        try:
            for event in events:
                if isinstance(event, AnswerEvent):
                    event = AnswerEvent(answer=_in_conversation(event.answer, question, follow_up, rewriting_ms))
                    self._keep(question, follow_up, event.answer)
                yield event
        finally:
            if isinstance(events, Generator):
                events.close()  # now, not when it is collected: a model may be writing

    def _keep(self, question: str, follow_up: FollowUp, answer: Answer) -> None:
        self._session.append(
            ChatTurn(at=now(), question=question, stand_alone=follow_up.question, text=answer.answer, answer=answer)
        )


def _in_conversation(answer: Answer, question: str, follow_up: FollowUp, rewriting_ms: float) -> Answer:
    """The answer with what it took to put the question so that it stands alone."""
    timings = answer.timings_ms
    if rewriting_ms:
        total = timings.get("total", 0.0) + rewriting_ms
        timings = {"rewrite": round(rewriting_ms, 3), **timings, "total": round(total, 3)}
    return answer.model_copy(
        update={
            "question": question,
            "warnings": [*follow_up.notes, *answer.warnings],
            "timings_ms": timings,
            "usage": _added(answer.usage, follow_up.usage),
        }
    )


def _added(usage: ModelUsage, more: Usage) -> ModelUsage:
    unknown = usage.cost_usd is None or more.cost_usd is None
    return ModelUsage(
        calls=usage.calls + more.calls,
        cached_calls=usage.cached_calls + more.cached_calls,
        input_tokens=usage.input_tokens + more.input_tokens,
        output_tokens=usage.output_tokens + more.output_tokens,
        cost_usd=None if unknown else (usage.cost_usd or 0.0) + (more.cost_usd or 0.0),
    )
