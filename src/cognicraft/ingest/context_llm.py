"""A few sentences by a language model that place each chunk in its whole document, for encoding only.

Takes: documents with their chunks, a language model. Returns: for each chunk its sentences, "" where the model gave
nothing of use (the chunk then has its outline alone), and what was cut or fell back, in sentences.
Method: contextual retrieval (Anthropic, 2024): the model sees the document, or of a long one its beginning and the
part around the chunk (`context_prompt`), then the chunk. Every reply is kept under the digest of what was asked, and
of whom, before it is used (`context_store`): a run that is killed pays again for the calls under way at most, and an
unchanged chunk in an unchanged document never costs anything again, in whichever workspace.
Cost: one call per chunk, which reads the document each time; providers take a tenth to a half for a prompt that they
still hold. What can go wrong: a model that is gone, refuses its key or has spent its budget ends the run: `place`
gives back what is whole, with the error. A reply of no use, a refusal for one chunk, or a chunk that fits no window
falls back to the outline, counted.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from cognicraft.errors import ContextOverflow, ModelRefused, ModelReplyInvalid
from cognicraft.ingest.context_calls import Ending, Group, side_by_side
from cognicraft.ingest.context_prompt import ContextPrompt, Shown, estimated_tokens
from cognicraft.ingest.context_questions import REPLY_TOKENS, SPARE_TOKENS, WINDOW_SHARES, DocumentQuestions
from cognicraft.ingest.context_reply import clean_reply
from cognicraft.ingest.context_store import ContextStore, KeptReply
from cognicraft.protocols import LanguageModel
from cognicraft.records import Chunk, Document, Message, Usage, digest

USUAL_REPLY_TOKENS = 110
"""What a reply is taken to hold when the cost is estimated."""
PROMPT_CACHE_TOKENS = 1024
"""Shorter beginnings are kept by no provider, so nothing is won by sending one call ahead."""


@dataclass(frozen=True, slots=True)
class PlacedDocument:
    """Sentences by chunk, in order, "" where there are none; warnings are for the document's record."""

    sentences: tuple[str, ...]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Placing:
    """Documents in the order given, None for one that is not whole; then `ending` says why."""

    documents: tuple[PlacedDocument | None, ...]
    ending: Ending = field(default_factory=Ending)


@dataclass(frozen=True, slots=True)
class Expected:
    """What one document will take: contexts in all, of these kept from before, and tokens of the calls left.

    all_input_tokens: as if none were kept. document_tokens: of the document's text, estimated.
    """

    contexts: int
    kept: int
    input_tokens: int
    all_input_tokens: int
    output_tokens: int
    document_tokens: int


@dataclass(slots=True)
class Tally:
    """Over all documents so far. made: replies asked for; kept: taken from earlier runs; unusable, refused and
    too_long: chunks left with their outline; shortened: documents not shown whole."""

    made: int = 0
    kept: int = 0
    unusable: int = 0
    refused: int = 0
    too_long: int = 0
    shortened: int = 0
    usage: Usage = field(default_factory=Usage)

    @property
    def done(self) -> int:
        return self.made + self.kept


@dataclass(frozen=True, slots=True)
class _Outcome:
    """Of one call. fallback: why there are no sentences, "" where there are."""

    sentences: str = ""
    usage: Usage | None = None
    kept: bool = False
    fallback: str = ""


@dataclass(slots=True)
class _Call:
    """One question, and the chunks that wait for its reply: (document, chunk) by number."""

    asked: DocumentQuestions
    chunk: int
    slots: list[tuple[int, int]] = field(default_factory=list)


class ChunkContexts:
    """The step, for one run.

    model: its full name; open_model: called when the first context is wanted, so that a run over unchanged files needs
    neither key nor network. concurrency: calls under way at once. document_tokens: most that is shown of a document,
    where less than the model reads is wanted.
    """

    def __init__(
        self,
        model: str,
        open_model: Callable[[], LanguageModel],
        *,
        store: ContextStore,
        prompt: ContextPrompt | None = None,
        concurrency: int = 4,
        document_tokens: int | None = None,
    ) -> None:
        self._name = model
        self._open_model = open_model
        self._opened: LanguageModel | None = None
        self._store = store
        self._prompt = prompt or ContextPrompt()
        self._concurrency = concurrency
        self._document_tokens = document_tokens
        self._level = 0
        self._level_lock = threading.Lock()
        self.tally = Tally()

    @property
    def model_name(self) -> str:
        return self._name

    @property
    def prompt_digest(self) -> str:
        return self._prompt.digest

    def close(self) -> None:
        """Let go of the store; the model belongs to whoever opened it."""
        self._store.close()

    def expected(self, document: Document, chunks: Sequence[Chunk]) -> Expected:
        """Without any call. Raises: EngineError for a store that cannot be read; ModelError where there is no key."""
        asked = self._asked(document, chunks)
        kept = tokens = all_tokens = 0
        seen: set[str] = set()
        stable_tokens: dict[Shown, int] = {}
        for number in range(len(chunks)):
            messages = asked.messages(number, self._level)
            shown = asked.shown(self._level)[number]
            if shown not in stable_tokens:
                stable_tokens[shown] = sum(estimated_tokens(message.text) for message in messages[:-1])
            taken = stable_tokens[shown] + estimated_tokens(messages[-1].text)
            all_tokens += taken
            key = self._key(messages)
            if key in seen or self._store.get(key) is not None:
                kept += 1
            else:
                seen.add(key)
                tokens += taken
        return Expected(
            contexts=len(chunks),
            kept=kept,
            input_tokens=tokens,
            all_input_tokens=all_tokens,
            output_tokens=(len(chunks) - kept) * USUAL_REPLY_TOKENS,
            document_tokens=asked.tokens,
        )

    def input_tokens_per_call(self, document_tokens: float, *, chunk_tokens: float) -> float:
        """For a document of which only the size is known."""
        taken = self._prompt.own_tokens + chunk_tokens
        room = self._model.context_tokens - taken - REPLY_TOKENS - SPARE_TOKENS
        return taken + max(min(document_tokens, room, self._document_tokens or room), 0)

    def place(
        self,
        documents: Sequence[tuple[Document, Sequence[Chunk]]],
        *,
        stop: Callable[[], bool] | None = None,
        progress: Callable[[], None] | None = None,
    ) -> Placing:
        """The sentences for every chunk of these documents, calls of all of them side by side.

        stop: asked while waiting; True begins no further call. progress: called after each reply.
        A model that fails for good is in `ending.error`, beside the documents that were whole by then.
        Raises: EngineError for a store that cannot be read.
        """
        outcomes: list[list[_Outcome | None]] = [[None] * len(chunks) for _, chunks in documents]
        groups: dict[str, list[_Call]] = {}
        by_key: dict[str, _Call] = {}
        long_groups: set[str] = set()
        plans = [self._asked(document, chunks) for document, chunks in documents]
        for place, asked in enumerate(plans):
            for number in range(len(asked.chunks)):
                messages = asked.messages(number, self._level)
                key = self._key(messages)
                if key in by_key:
                    by_key[key].slots.append((place, number))
                    continue
                kept = self._store.get(key)
                if kept is not None:
                    outcomes[place][number] = self._kept(kept, asked.chunks[number])
                    self.tally.kept += 1
                    continue
                call = _Call(asked, number, [(place, number)])
                by_key[key] = call
                beginning = digest(*(message.text for message in messages[:-1]))
                if beginning not in groups and asked.shown_tokens(self._level) >= PROMPT_CACHE_TOKENS:
                    long_groups.add(beginning)
                groups.setdefault(beginning, []).append(call)
        if self.tally.kept and progress is not None:
            progress()

        def finished(call: _Call, outcome: _Outcome) -> None:
            for slot in call.slots:
                outcomes[slot[0]][slot[1]] = outcome
            self._count(outcome, others=len(call.slots) - 1)
            if progress is not None:
                progress()

        ending = side_by_side(
            [
                Group(calls, first_alone=beginning in long_groups and len(calls) > 2)
                for beginning, calls in groups.items()
            ],
            self._make,
            concurrency=self._concurrency,
            finished=finished,
            stop=stop or (lambda: False),
        )
        return Placing(
            documents=tuple(self._placed(asked, done) for asked, done in zip(plans, outcomes, strict=True)),
            ending=ending,
        )

    @property
    def _model(self) -> LanguageModel:
        """Opened by the thread that runs the step, before any other needs it."""
        if self._opened is None:
            self._opened = self._open_model()
        return self._opened

    # ── one call ──────────────────────────────────────────────────────────────────────────────────────────────

    def _make(self, call: _Call) -> _Outcome:
        """Runs in a thread of its own; what came back is kept before anything else happens to it."""
        chunk = call.asked.chunks[call.chunk]
        level = self._level
        while True:
            messages = call.asked.messages(call.chunk, level)
            key = self._key(messages)
            kept = self._store.get(key)
            if kept is not None:
                return self._kept(kept, chunk)
            try:
                completion = self._model.complete(messages, max_tokens=REPLY_TOKENS)
            except ContextOverflow:
                if level + 1 == len(WINDOW_SHARES):
                    return _Outcome(fallback="too long")
                level += 1
                with self._level_lock:  # what is too long for one chunk is too long for the next
                    self._level = max(self._level, level)
                continue
            except ModelRefused:
                return _Outcome(fallback="refused")
            except ModelReplyInvalid:
                return _Outcome(fallback="unusable")
            reply = KeptReply(text=completion.text, finish=completion.finish, model=completion.model)
            self._store.put(key, reply)
            sentences = clean_reply(reply.text, cut=reply.finish == "length", chunk_text=chunk.text)
            return _Outcome(sentences, usage=completion.usage, fallback="" if sentences else "unusable")

    def _kept(self, kept: KeptReply, chunk: Chunk) -> _Outcome:
        sentences = clean_reply(kept.text, cut=kept.finish == "length", chunk_text=chunk.text)
        return _Outcome(sentences, kept=True, fallback="" if sentences else "unusable")

    def _key(self, messages: Sequence[Message]) -> str:
        return digest("context", self._name, *(part for m in messages for part in (m.role, m.text)))

    # ── a document ────────────────────────────────────────────────────────────────────────────────────────────

    def _asked(self, document: Document, chunks: Sequence[Chunk]) -> DocumentQuestions:
        return DocumentQuestions(
            document,
            chunks,
            prompt=self._prompt,
            window=self._model.context_tokens,
            document_tokens=self._document_tokens,
        )

    def _placed(self, asked: DocumentQuestions, outcomes: Sequence[_Outcome | None]) -> PlacedDocument | None:
        done = [outcome for outcome in outcomes if outcome is not None]
        if len(done) < len(outcomes):
            return None
        warnings = []
        shown = asked.shown(self._level)
        if shown and not shown[0].whole:
            self.tally.shortened += 1
            share = len(shown[0].text_of(asked.document)) / max(len(asked.document.text), 1)
            warnings.append(
                f"It is longer than {self._name} was given at once: each context was made from its beginning and "
                f"the part around the chunk, about {share:.0%} of it."
            )
        counts = Counter(outcome.fallback for outcome in done)
        self.tally.unusable += counts["unusable"]
        self.tally.refused += counts["refused"]
        self.tally.too_long += counts["too long"]
        warnings += [_fallback(counts[why], self._name, said) for why, said in _FALLBACKS.items() if counts[why]]
        return PlacedDocument(tuple(outcome.sentences for outcome in done), tuple(warnings))

    def _count(self, outcome: _Outcome, *, others: int) -> None:
        """others: further chunks that the same reply serves."""
        tally = self.tally
        tally.made += not outcome.kept
        tally.kept += outcome.kept + others
        if outcome.usage is not None:
            tally.usage += outcome.usage

    def notes(self) -> list[str]:
        """What the run took and what fell back, in sentences for the person; none where nothing was asked."""
        tally, name = self.tally, self._name
        if not tally.done:
            return []
        usage = tally.usage
        cost = "at a price not known" if usage.cost_usd is None else f"{usage.cost_usd:.4f} USD"
        said = [
            f"Contexts by {name}: {tally.made} asked for, {tally.kept} kept from before; "
            f"{usage.input_tokens} tokens in, {usage.output_tokens} out, {cost}."
        ]
        if tally.shortened:
            said.append(
                f"{tally.shortened} documents are longer than {name} was given at once: their contexts were made from "
                "the beginning and the part around each chunk."
            )
        counts = {"unusable": tally.unusable, "refused": tally.refused, "too long": tally.too_long}
        said += [_fallback(count, name, _FALLBACKS[why]) for why, count in counts.items() if count]
        return said


def _fallback(count: int, model: str, why: str) -> str:
    chunks = "1 chunk has" if count == 1 else f"{count} chunks have"
    return f"{chunks} no context by {model} but the outline: {why}."


_FALLBACKS = {
    "unusable": "the reply was of no use",
    "refused": "the model refused",
    "too long": "the prompt was longer than the model reads",
}
