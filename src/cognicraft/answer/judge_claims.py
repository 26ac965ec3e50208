"""The statements of an answer, taken apart by a language model, each held to the words of the answer.

Takes: an answer with its citations written `[1]`; the model is given. Returns: `ModelClaims`: claims with their spans
in the answer, in text order, and notes. Method: sentences as everywhere (`cited_sentences.py`), in batches, one
structured call each; the model gives for each statement its sentence, the words that make it and how it reads alone
(`judge_claims.md`). The words are looked up in that sentence (`judge_quote.py`), citations passed over. A statement
whose words do not stand there, or that says what the answer does not say, is dropped, and its sentence is one claim,
whole; so is a sentence of which the statements leave out a figure or more than one telling word, so that nothing can
escape the check by not being named. Cost: the tokens of the answer, about twice.
What can go wrong: a call that fails leaves its sentences whole, with a note. Nothing is raised but `Cancelled`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from cognicraft.answer.cited_sentences import CitedSentence, cited_sentences
from cognicraft.answer.fence import mark_for, one_line
from cognicraft.answer.judge import of_length
from cognicraft.answer.judge_quote import find_quote
from cognicraft.errors import Cancelled, CogniCraftError
from cognicraft.protocols import LanguageModel
from cognicraft.records import Claim, Message

_SENTENCES_PER_CALL = 8
_CLAIMS_PER_SENTENCE = 4
_MOST_SIDE_BY_SIDE = 4
_LONGEST_SENTENCE = 1_500
_LONGEST_STATEMENT = 300
_MARKS = r"[^\S\n]*\[[1-9]\d{0,2}\]"
_MARK = re.compile(r"\[([1-9]\d{0,2})\]")
_TOKEN = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+")
_STEM_CHARACTERS = 5
_MOST_LEFT_OUT = 1
_MOST_ADDED_SHARE = 0.5


class Stated(BaseModel):
    """One statement as the model gives it."""

    model_config = ConfigDict(extra="ignore")

    sentence: int = Field(description="Number of the sentence.")
    words: str = Field(
        description="Words of the sentence that make the statement, copied exactly.",
        json_schema_extra={"maxLength": _LONGEST_STATEMENT},
    )
    statement: str = Field(
        description="The statement so that it can be understood alone.",
        json_schema_extra={"maxLength": _LONGEST_STATEMENT},
    )


class Statements(BaseModel):
    """Reply to one batch of sentences."""

    statements: list[Stated] = Field(description="The statements, in order.")


@dataclass(frozen=True, slots=True)
class ModelClaims:
    """claims: in text order. notes: what could not be taken apart, in sentences."""

    claims: tuple[Claim, ...]
    notes: tuple[str, ...] = ()


def model_claims(
    answer: str, model: LanguageModel, *, known: Collection[int] | None = None, timeout_s: float | None = None
) -> ModelClaims:
    """Claims of every sentence that says something; `answer[claim.start:claim.end]` are the words that make each.

    known: numbers of the passages that exist; None takes every citation for one. timeout_s: longest wait for each
    call, in seconds; None is the model's own. Raises: Cancelled.
    """
    numbers = {int(found) for found in _MARK.findall(answer)} if known is None else known
    sentences = [one for one in cited_sentences(answer, known=numbers) if one.says_something]
    batches = [
        sentences[start : start + _SENTENCES_PER_CALL] for start in range(0, len(sentences), _SENTENCES_PER_CALL)
    ]
    calls = [partial(_taken_apart, answer, batch, model, timeout_s) for batch in batches]
    if len(calls) <= 1:
        outcomes = [call() for call in calls]
    else:
        with ThreadPoolExecutor(min(len(calls), _MOST_SIDE_BY_SIDE), thread_name_prefix="claims") as pool:
            outcomes = [future.result() for future in [pool.submit(call) for call in calls]]
    notes = dict.fromkeys(note for _, note in outcomes if note)
    return ModelClaims(tuple(claim for claims, _ in outcomes for claim in claims), tuple(notes))


def _taken_apart(
    answer: str, sentences: Sequence[CitedSentence], model: LanguageModel, timeout_s: float | None
) -> tuple[list[Claim], str]:
    try:
        reply, _ = model.structured(
            _messages(sentences),
            of_length(Statements, "statements", least=len(sentences), most=_CLAIMS_PER_SENTENCE * len(sentences)),
            timeout_s=timeout_s,
        )
    except Cancelled:
        raise
    except Exception as error:
        said = str(error) if isinstance(error, CogniCraftError) else f"{type(error).__name__}: {error}"
        return [_as_a_whole(one) for one in sentences], f"Sentences were checked whole: {said}"
    claims: list[Claim] = []
    whole = 0
    for number, sentence in enumerate(sentences, start=1):
        own = [stated for stated in reply.statements if stated.sentence == number]
        parts = _mapped(answer, sentence, own)
        whole += parts is None
        claims.extend([_as_a_whole(sentence)] if parts is None else parts)
    if not whole:
        return claims, ""
    what = "1 sentence was" if whole == 1 else f"{whole} sentences were"
    return claims, f"{what} checked whole: what {model.name} made of it does not fit its words."


def _mapped(answer: str, sentence: CitedSentence, own: Sequence[Stated]) -> list[Claim] | None:
    """The statements of a sentence at their places; None where one has none, or they leave something out."""
    if not own or len(sentence.text) > _LONGEST_SENTENCE:
        return None
    claims: dict[Claim, None] = {}
    said = _terms(answer)
    for stated in own:
        span = find_quote(stated.words, answer, start=sentence.start, end=sentence.end, skip=_MARKS)
        text = " ".join(_MARK.sub("", stated.statement).split())
        if span is None or not _only_says(text, said):
            return None
        claims[Claim(text, *span, _cited(sentence))] = None
    # What a statement says must stand in its words or be said about them: both count as checked.
    checked = set[str]().union(*(_terms(claim.text) for claim in claims))
    missing = _terms(sentence.claim) - checked
    if any(term[0].isdigit() for term in missing) or len(missing) > _MOST_LEFT_OUT or _lost_negation(sentence, claims):
        return None
    return sorted(claims, key=lambda claim: (claim.start, claim.end))


def _only_says(statement: str, said: frozenset[str]) -> bool:
    """Whether the figures of a statement, and most of its words, are those of the answer."""
    terms = _terms(statement)
    added = terms - said
    return bool(terms) and not any(term[0].isdigit() for term in added) and len(added) <= _MOST_ADDED_SHARE * len(terms)


_NEGATION = re.compile(
    r"\b(?:not|no|never|none|neither|nor|without|cannot|nicht|kein\w*|nie|ohne|ne|pas|jamais|sans|nunca|sin|non|mai"
    r"|senza|não|nem|sem)\b|n['’]t\b",
    re.IGNORECASE,
)


def _lost_negation(sentence: CitedSentence, claims: Collection[Claim]) -> bool:
    return bool(_NEGATION.search(sentence.claim)) and not any(_NEGATION.search(claim.text) for claim in claims)


def _terms(text: str) -> frozenset[str]:
    """Figures whole, and the beginnings of words of four letters or more, or of other scripts."""
    found = set()
    for token in _TOKEN.findall(text.casefold()):
        if token[0].isdigit():
            found.add(token)
        elif len(token) > 3 or not token.isascii():
            found.add(token[:_STEM_CHARACTERS])
    return frozenset(found)


def _as_a_whole(sentence: CitedSentence) -> Claim:
    return Claim(" ".join(sentence.claim.split()), sentence.start, sentence.end, _cited(sentence))


def _cited(sentence: CitedSentence) -> tuple[int, ...]:
    """A number that no passage has stays cited: that is what the check is to find."""
    return (*sentence.citations, *sentence.unknown)


def _messages(sentences: Sequence[CitedSentence]) -> list[Message]:
    mark = mark_for([one.text for one in sentences])
    rows = [
        f"{number}. {one_line(one.claim, limit=_LONGEST_SENTENCE)}" for number, one in enumerate(sentences, start=1)
    ]
    text = f"<<sentences {mark}>>\n" + "\n".join(rows) + f"\n<<end of sentences {mark}>>\n\n"
    return [
        Message("system", _prompt(), stable=True),
        Message("user", f"{text}Take sentences 1 to {len(sentences)} apart."),
    ]


@cache
def _prompt() -> str:
    return (Path(__file__).parent / "judge_claims.md").read_text(encoding="utf-8").strip()
