"""The answer that a model writes, piece by piece, and at the end as a record.

Takes: messages (`prompting.py`), the evidence they hold, a model. Returns: an iterator of pieces of text as they are to
be shown, then one `GeneratedAnswer`. Method: the reply is watched for the word that says that the documents do not tell
(`sentinel.py`) and read for citations (`citations.py`) while it comes; the pieces together are the answer's text.
Without passages no model is asked. Cost: one call.
What can go wrong: `ModelError` as the model raises it, also in the middle (what was shown before is no answer then);
a reply that is empty, cut at its limit, or cites nothing is a value, and `notes` say so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from cognicraft.answer.citations import CitationReader, CitedSentence
from cognicraft.answer.ground import Evidence
from cognicraft.answer.sentinel import SentinelWatch
from cognicraft.protocols import LanguageModel
from cognicraft.records import Message, Usage

READ_AFTER_NOT_TOLD = 200
"""Characters of a reply that are read after it said that the documents do not tell; then it is broken off."""

Outcome = Literal["answered", "not_told", "empty", "no_evidence"]


@dataclass(frozen=True, slots=True)
class GeneratedAnswer:
    """What a model made of the evidence.

    text: as shown, citations written `[1]` after the full stop; "" where nothing is answered. outcome: `not_told` the
    model says that the passages do not tell; `empty` it said nothing; `no_evidence` it was not asked. finish: `length`
    for a reply cut at its limit. notes: for the person, in sentences.
    """

    text: str
    sentences: tuple[CitedSentence, ...]
    outcome: Outcome
    usage: Usage = field(default_factory=Usage)
    model: str = ""
    finish: Literal["stop", "length"] = "stop"
    notes: tuple[str, ...] = ()

    @property
    def answered(self) -> bool:
        return self.outcome == "answered"

    @property
    def cited(self) -> tuple[int, ...]:
        """Numbers of the passages that are cited, in the order of the answer."""
        return tuple(dict.fromkeys(number for sentence in self.sentences for number in sentence.citations))


def generate(
    messages: Sequence[Message],
    *,
    evidence: Evidence,
    model: LanguageModel,
    max_tokens: int | None = None,
    timeout_s: float | None = None,
) -> Iterator[str | GeneratedAnswer]:
    """Pieces of the answer, then the answer. Closing the iterator cancels the call.

    max_tokens: of the reply. timeout_s: longest wait for the next piece. Left out: the model's own. Where nothing is
    answered after all, the pieces shown before are void. Raises: ModelError.
    """
    if not evidence.passages:
        yield GeneratedAnswer("", (), "no_evidence", notes=("No passage was found, so no model was asked.",))
        return
    watch = SentinelWatch()
    reader = CitationReader(known={passage.number for passage in evidence.passages})
    stream = model.stream(messages, max_tokens=max_tokens, timeout_s=timeout_s)
    broken_off = False
    try:
        after = 0
        for piece in stream:
            if watch.leading:
                after += len(piece)
                if after > READ_AFTER_NOT_TOLD:
                    broken_off = True
                    break
            elif shown := reader.feed(watch.feed(piece)):
                yield shown
    finally:
        stream.close()
    if rest := reader.feed(watch.close()) + reader.close():
        yield rest
    completion = stream.completion
    finish = "stop" if broken_off else completion.finish
    outcome = _outcome(watch, reader)
    sentences = reader.sentences if outcome == "answered" else ()
    yield GeneratedAnswer(
        text=reader.text if outcome == "answered" else "",
        sentences=sentences,
        outcome=outcome,
        usage=completion.usage,
        model=completion.model or model.name,
        finish=finish,
        notes=_notes(outcome, sentences, partly=watch.seen, cut=finish == "length", limit=max_tokens),
    )


def _outcome(watch: SentinelWatch, reader: CitationReader) -> Outcome:
    if not any(character.isalnum() for character in reader.text) or not reader.sentences:
        return "not_told" if watch.seen else "empty"
    if watch.seen and not any(sentence.citations for sentence in reader.sentences):
        return "not_told"
    return "answered"


def _notes(
    outcome: Outcome, sentences: Sequence[CitedSentence], *, partly: bool, cut: bool, limit: int | None
) -> tuple[str, ...]:
    notes = []
    if outcome == "empty":
        reason = ": its limit was used up before it said anything" if cut else ""
        notes.append(f"The model gave an empty reply{reason}.")
    if outcome != "answered":
        return tuple(notes)
    if partly:
        notes.append("The model says that the documents do not tell all that was asked.")
    if cut:
        tokens = f" of {limit:,} tokens" if limit else ""
        notes.append(f"The answer was cut at its limit{tokens}; its last sentence may not be whole.")
    statements = [sentence for sentence in sentences if sentence.says_something]
    without = sum(not sentence.citations for sentence in statements)
    if without and without == len(statements):
        notes.append("The answer cites no passage: nothing shows that the documents say it.")
    elif without:
        cite = "sentence cites" if without == 1 else "sentences cite"
        notes.append(f"{without} {cite} no passage.")
    unknown = sorted({number for sentence in sentences for number in sentence.unknown})
    if unknown:
        notes.append(f"Cited, but never given: {', '.join(f'[{number}]' for number in unknown)}.")
    return tuple(notes)
