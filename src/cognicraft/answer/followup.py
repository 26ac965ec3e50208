"""A question of a conversation, so that it stands alone: "and in 2021?" with what the question before was about.

Takes: the question, the turns before it, a language model or None, function words by language.
Returns: `FollowUp`: the question to search and to answer, and notes that say how it came about where no model did it.
Method: with a model one structured call rewrites it; conversation and question are fenced as data. Without one, or
    where it fails, a rule of our own: a question that opens as a follow-up ("what about", "und"), holds a pronoun
    before anything it could point at, or only a number or an ordinal, follows up. A year, quarter, ordinal or name that
    the last question has one of too takes its place there; a pronoun is the one name of the last question; else the
    terms of the last question are added. Lists for seven languages; a question in another one is left as it is.
Cost: one call of a few hundred tokens; the rule is linear in the question.
What can go wrong: the rule sees words, not meaning: Spanish and Italian leave pronouns out, and nothing tells it that
    "When was she born?" means someone of the answer. The notes show what was searched: the person can ask again.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict

from cognicraft.answer.fence import harmless, mark_for
from cognicraft.answer.followup_words import LANGUAGES
from cognicraft.errors import BudgetSpent, ModelAuthentication, ModelError, ModelNotFound
from cognicraft.protocols import LanguageModel
from cognicraft.records import Message, Usage

StopWords = Mapping[str, Collection[str]]
"""ISO 639-1 code -> casefolded function words."""

_TURNS = 6
_QUESTION_CHARACTERS = 400
_ANSWER_CHARACTERS = 800
_REPLY_TOKENS = 200


class Turn(NamedTuple):
    """A question as it stood alone, and the text of its answer."""

    question: str
    answer: str


@dataclass(frozen=True, slots=True)
class FollowUp:
    """The question to search and answer; the very one that was asked where it stands alone."""

    question: str
    notes: tuple[str, ...] = ()
    usage: Usage = field(default_factory=Usage)


class StandAlone(BaseModel):
    """What the model is asked for."""

    model_config = ConfigDict(extra="ignore")

    follow_up: bool
    question: str


def stand_alone(
    question: str,
    history: Sequence[tuple[str, str]],
    *,
    model: LanguageModel | None,
    timeout_s: float = 15.0,
    stop_words: StopWords,
) -> FollowUp:
    """The question so that it can be understood without the conversation.

    history: (question as it stood alone, answer), oldest first. timeout_s: longest wait for the model, in seconds;
    after it the rule does it, and a note says so.
    Raises: ModelAuthentication, ModelNotFound, BudgetSpent: the answer itself would fare no better.
    """
    if not history or not question.strip():
        return FollowUp(question)
    notes: list[str] = []
    usage = Usage()
    if model is not None:
        try:
            made = _rewritten(question, history, model=model, timeout_s=timeout_s)
        except (ModelAuthentication, ModelNotFound, BudgetSpent):
            raise
        except ModelError as error:
            notes.append(f"No model put the question so that it stands alone: {error.message}")
        else:
            if made.question:
                return made
            notes, usage = list(made.notes), made.usage
    by_rule = follow_up_by_rule(question, history[-1][0], stop_words=stop_words)
    if by_rule != question:
        notes.append(f'Taken as a follow-up, with the terms of the last question: "{by_rule}"')
    return FollowUp(by_rule, tuple(notes), usage)


# ── with a model ──────────────────────────────────────────────────────────────────────────────────────────────


def _rewritten(
    question: str, history: Sequence[tuple[str, str]], *, model: LanguageModel, timeout_s: float
) -> FollowUp:
    """The question by the model; an empty one where what it wrote is of no use."""
    turns = [(_cut(asked, _QUESTION_CHARACTERS), _cut(answered, _ANSWER_CHARACTERS)) for asked, answered in history]
    turns = turns[-_TURNS:]
    mark = mark_for([question, *(text for turn in turns for text in turn)])
    told = "\n".join(f"Person: {asked}\nAnswer: {answered}" for asked, answered in turns)
    text = (
        f"<conversation {mark}>\n{harmless(told)}\n</conversation {mark}>\n\n"
        f"<question {mark}>\n{harmless(question)}\n</question {mark}>"
    )
    reply, usage = model.structured(
        [Message("system", _prompt(), stable=True), Message("user", text)],
        StandAlone,
        max_tokens=_REPLY_TOKENS,
        timeout_s=timeout_s,
    )
    if not reply.follow_up:
        return FollowUp(question, usage=usage)
    rewritten = " ".join(reply.question.split())
    if not rewritten:
        return FollowUp("", (f"The question that {model.name} put was not used: it is empty.",), usage)
    if len(rewritten) > len(question) + 2 * _QUESTION_CHARACTERS:
        note = f"The question that {model.name} put was not used: it has {len(rewritten)} characters."
        return FollowUp("", (note,), usage)
    return FollowUp(rewritten, usage=usage)


def _cut(text: str, characters: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= characters else f"{text[:characters].rstrip()}…"


@cache
def _prompt() -> str:
    return (Path(__file__).parent / "followup.md").read_text(encoding="utf-8")


# ── without a model ───────────────────────────────────────────────────────────────────────────────────────────


_WORD = re.compile(r"[^\W_]+(?:['’.&-][^\W_]+)*")
_YEAR = re.compile(r"(?:19|20)\d\d")
_QUARTER = re.compile(r"q[1-4]|[1-4]q|h[12]", re.IGNORECASE)
_NUMBER = re.compile(r"\d[\d.,]*(?:st|nd|rd|th|er|e|º|ª)?", re.IGNORECASE)
_POSSESSIVE = re.compile(r"['’]s$")
_ENDS = re.compile(r"[\s?!.…。？]+$")
_SHORT_WORDS = 5
# Words with a meaning of their own before a pronoun: then it points at them.
_ANTECEDENT_WORDS = 2


def follow_up_by_rule(question: str, last: str, *, stop_words: StopWords) -> str:
    """The question with what it takes from the last one; the question itself where it stands alone."""
    language = _language(question, last, stop_words)
    if not language:
        return question
    known = _Lists(language, stop_words)
    words = _WORD.findall(question)
    kind = _kind(words, last, known) if words else ""
    if not kind:
        return question
    own, taken = _without_opening(words, known), _WORD.findall(last)
    if kind == "pronoun":
        named = _one_name(taken, known)
        put = _pronoun_put(question, words, named, known)
        return put or _with_terms(question, own, taken, known)
    return _in_its_place(last, own, taken, known) or _with_terms(question, own, taken, known)


class _Lists:
    """The lists of one language as sets."""

    def __init__(self, language: str, stop_words: StopWords) -> None:
        words = LANGUAGES[language]
        self.words = words
        self.asking = frozenset(words.asking.split())
        self.weak = frozenset(words.weak.split())
        self.things = frozenset(words.things.split())
        self.pronouns = self.things | frozenset(words.persons.split())
        self.ordinals = frozenset(words.ordinals.split())
        self._empty = frozenset(stop_words.get(language, ())) | self.asking | self.weak | self.pronouns

    def content(self, words: Sequence[str]) -> list[str]:
        """Those with a meaning of their own, ordinals and numbers among them."""
        return [word for word in words if word.casefold() in self.ordinals or not self._is_empty(word)]

    def _is_empty(self, word: str) -> bool:
        folded = word.casefold()
        # l'état, a-t-il: what stands around the apostrophe or hyphen decides.
        return folded in self._empty or all(part in self._empty or part == "t" for part in re.split("['’-]", folded))

    def kind(self, word: str) -> str:
        """What a word can be put in the place of: "" for nothing."""
        if _YEAR.fullmatch(word):
            return "year"
        if _QUARTER.fullmatch(word):
            return "quarter"
        if word.casefold() in self.ordinals:
            return "ordinal"
        return "number" if _NUMBER.fullmatch(word) else ""


def _language(question: str, last: str, stop_words: StopWords) -> str:
    """Of those with lists: the one that most function words of both questions are of, those of the new one first."""

    def fits(text: str) -> dict[str, int]:
        words = [part for word in _WORD.findall(text.casefold()) for part in (word, *re.split("['’-]", word))]
        return {code: sum(word in stop_words.get(code, ()) for word in words) for code in LANGUAGES}

    own, before = fits(question), fits(last)
    best = max(LANGUAGES, key=lambda code: (2 * own[code] + before[code], code == "en"))
    return best if own[best] + before[best] or question.isascii() else ""


def _kind(words: Sequence[str], last: str, known: _Lists) -> str:
    """`opening`, `pronoun`, `ellipsis`, or "" for a question that stands alone."""
    folded = [word.casefold() for word in words]
    plain = " ".join(folded)
    content = known.content(words)
    if any(f"{plain} ".startswith(f"{opening} ") for opening in known.words.strong):
        return "opening"
    pronoun = _pronoun(words, known)
    if pronoun is not None and not any(phrase in plain for phrase in known.words.idle):
        return "pronoun"
    if not content:
        return "ellipsis"
    if folded and folded[0] in known.weak:
        asks = any(word in known.asking for word in folded[1:])
        if not asks or len(content) < 2:
            return "opening"
    telling = [word for word in content if not known.kind(word) and word.casefold() not in last.casefold()]
    asks = any(word in known.asking for word in folded)
    relative = any(known.kind(word) for word in content)
    if relative and not asks and len(words) <= _SHORT_WORDS and len(telling) < 2:
        return "ellipsis"
    return ""


def _pronoun(words: Sequence[str], known: _Lists) -> int | None:
    """Position of the first pronoun, if nothing stands before it that it could point at."""
    for position, word in enumerate(words):
        inner = word.casefold().split("-")[-1]  # a-t-il
        if word.casefold() in known.pronouns or inner in known.pronouns:
            return position if len(known.content(words[:position])) < _ANTECEDENT_WORDS else None
    return None


def _without_opening(words: Sequence[str], known: _Lists) -> list[str]:
    folded = [word.casefold() for word in words]
    for opening in sorted(known.words.strong, key=len, reverse=True):
        count = len(_WORD.findall(opening))
        if " ".join(folded[:count]) == opening:
            return list(words[count:])
    return list(words[1:] if folded and folded[0] in known.weak else words)


def _names(words: Sequence[str], known: _Lists) -> list[list[str]]:
    """Runs of capitalised words; the first word of a sentence only where it is no function word."""
    if not known.words.capitals_are_names:
        return []
    runs: list[list[str]] = []
    inside = False
    for whole in words:
        word = _POSSESSIVE.sub("", whole)
        if word[0].isupper() and not _QUARTER.fullmatch(word) and known.content([word]):
            if inside:
                runs[-1].append(word)
            else:
                runs.append([word])
            inside = True
        else:
            inside = False
    return runs


def _one_name(words: Sequence[str], known: _Lists) -> str:
    names = {" ".join(run): None for run in _names(words, known)}
    return next(iter(names)) if len(names) == 1 else ""


def _pronoun_put(question: str, words: Sequence[str], name: str, known: _Lists) -> str:
    """The question with the name where the pronoun was; "" where there is no one name, or it is a person's pronoun."""
    position = _pronoun(words, known)
    if not name or position is None or words[position].casefold() not in known.things:
        return ""
    pronoun = re.compile(rf"(?<![\w-]){re.escape(words[position])}(?![\w-])")
    return pronoun.sub(name, question, count=1)


def _in_its_place(last: str, own: Sequence[str], taken: Sequence[str], known: _Lists) -> str:
    """The last question with the year, quarter, ordinal or name of this one; "" where not all of it finds a place."""
    text = last
    names = _names(own, known)
    named = {word for run in names for word in run}
    for word in known.content(own):
        kind = known.kind(word)
        if kind:
            places = [other for other in dict.fromkeys(taken) if known.kind(other) == kind]
            if len(places) != 1:
                return ""
            text = _put(text, places[0], word)
        elif word not in named and word.casefold() not in last.casefold():
            return ""
    if names:
        before = _one_name(taken, known)
        if len(names) != 1 or not before:
            return ""
        text = _put(text, before, " ".join(names[0]))
    return text if text != last else ""


def _put(text: str, old: str, new: str) -> str:
    words = r"[\s,]+".join(re.escape(word) for word in old.split())
    return re.sub(rf"(?<!\w){words}(?!\w)", lambda _: new, text)


def _with_terms(question: str, own: Sequence[str], taken: Sequence[str], known: _Lists) -> str:
    """The question with the telling words of the last one, less those that it says itself or says otherwise."""
    kinds = {known.kind(word) for word in own} - {""}
    said = {word.casefold() for word in own}
    terms = [
        word
        for word in dict.fromkeys(known.content(taken))
        if word.casefold() not in said and known.kind(word) not in kinds
    ]
    return f"{_ENDS.sub('', question)} ({', '.join(terms)})?" if terms else question
