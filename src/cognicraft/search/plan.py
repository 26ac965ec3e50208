"""Question to `Plan`, by a language model: what is wanted, in which files, and further texts to search with.

Takes: the question, what it was taken to mean without a model, a model, the names of the workspace's files.
Returns: `Plan`: the question itself first, then its parts, its variations and, if asked for, a passage such as might
    answer. File hints are names that exist, whatever the model wrote.
Method: one structured call; the passage (HyDE: Gao, Ma, Lin, Callan, "Precise zero-shot dense retrieval without
    relevance labels", ACL 2023) is a second call side by side with it. Question and file names are fenced as data.
Cost: one call, or two at the same time, at most `timeout_s` together; linear in the file names (about 3 us each).
What can go wrong: no reply in time, a reply that is no plan, a failure at the provider: the plan is then the question
    alone, and `notes` says what was left out and why. A wrong key, an unknown model and a spent budget are raised: no
    later step would fare better.
"""

from __future__ import annotations

import re
import threading
import time
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, TypeVar, cast, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, create_model, model_validator

from cognicraft.errors import BudgetSpent, ModelAuthentication, ModelError, ModelNotFound, ModelTimeout, UsageError
from cognicraft.protocols import LanguageModel
from cognicraft.records import Message, Plan, PlannedQuery, QueryKind, Understanding, digest
from cognicraft.search.plan_files import FileNames

Complexity = Literal["simple", "moderate", "complex"]
Strategy = Literal["full_document", "chunks", "hybrid"]
Result = TypeVar("Result")

_PASSED_ON = (ModelAuthentication, ModelNotFound, BudgetSpent)
_MOST_VARIATIONS = 12
_MOST_PARTS = 6
_MOST_FILES = 50
_QUERY_CHARACTERS = 400
_PASSAGE_CHARACTERS = 1500
_PLAN_TOKENS = 500
_VARIATION_TOKENS = 100
_PASSAGE_TOKENS = 250


def _strings(value: object) -> list[str]:
    """A list of texts out of whatever a model put there: one text, nulls, numbers."""
    items = value if isinstance(value, list) else [value]
    return [str(item) for item in items if isinstance(item, str | int | float) and str(item).strip()]


def _text(value: object) -> str:
    return " ".join(_strings(value))


def _as_variations(value: object) -> list[object]:
    items = value if isinstance(value, list) else [value]
    return [{"query": item} if isinstance(item, str) else item for item in items if isinstance(item, str | dict)]


def _demanding(schema: dict[str, Any]) -> None:
    """The schema that the model sees asks for every field; what is read back may lack some."""
    schema["required"] = list(schema["properties"])
    for field in schema["properties"].values():
        field.pop("default", None)


def _shown(**limits: object) -> Any:
    """Limits in the schema only: a server that keeps to a schema ends there, a reply that breaks them is cut.

    `each` is the longest text in a list, in characters.
    """

    def change(schema: dict[str, Any]) -> None:
        schema.update({name: value for name, value in limits.items() if name != "each"})
        if "each" in limits:
            schema["items"]["maxLength"] = limits["each"]

    return Field(json_schema_extra=change)


Text = Annotated[str, BeforeValidator(_text)]
Texts = Annotated[list[str], BeforeValidator(_strings)]


class Variation(BaseModel):
    """Another text to search with."""

    model_config = ConfigDict(json_schema_extra=_demanding)

    query: Annotated[Text, _shown(maxLength=200)] = ""
    entities: Annotated[Texts, _shown(maxItems=5, each=60)] = []
    file_patterns: Annotated[Texts, _shown(maxItems=3, each=80)] = []


Variations = Annotated[list[Variation], BeforeValidator(_as_variations)]


class PlanReply(BaseModel):
    """What the model is asked for."""

    model_config = ConfigDict(json_schema_extra=_demanding)

    intent: Annotated[Text, _shown(maxLength=200)] = ""
    complexity: Annotated[Text, _shown(enum=list(get_args(Complexity)))] = ""
    strategy: Annotated[Text, _shown(enum=list(get_args(Strategy)))] = ""
    file_hints: Annotated[Texts, _shown(maxItems=8, each=120)] = []
    answer_style: Annotated[Text, _shown(maxLength=100)] = ""
    parts: Annotated[Texts, _shown(maxItems=_MOST_PARTS, each=200)] = []
    variations: Variations = []

    @model_validator(mode="before")
    @classmethod
    def _some_field(cls, value: object) -> object:
        if not isinstance(value, dict) or not set(value) & set(cls.model_fields):
            raise ValueError(f"an object with the fields {', '.join(cls.model_fields)} is wanted")
        return value


@cache
def _reply_with(variations: int) -> type[PlanReply]:
    """The reply with that many variations at most."""
    field: Any = (Annotated[Variations, _shown(maxItems=max(1, variations))], [])
    return create_model("PlanReply", __base__=PlanReply, variations=field)


def plan(
    question: str,
    *,
    model: LanguageModel,
    understanding: Understanding,
    file_names: Sequence[str],
    variations: int = 5,
    hyde: bool = False,
    timeout_s: float = 15.0,
    passage_only: bool = False,
) -> Plan:
    """Plan the search for a question.

    file_names: names or paths of the workspace's files; with thousands the model sees those that fit best.
    variations: how many other wordings, 0 to 12. timeout_s: for all calls together, in seconds.
    hyde: whether a passage such as might answer is asked for besides; passage_only: nothing but that.
    Raises: ModelAuthentication, ModelNotFound, BudgetSpent; UsageError for an empty question or numbers out of bounds.
    """
    _check(question, variations, timeout_s)
    deadline = time.monotonic() + timeout_s
    names = FileNames(file_names)
    planning = writing = None
    if hyde or passage_only:
        passage_prompt = [_system("passage"), Message("user", _fenced("question", question))]
        writing = _Call(lambda: model.complete(passage_prompt, max_tokens=_PASSAGE_TOKENS, timeout_s=timeout_s).text)
    if not passage_only:
        prompt = _plan_prompt(question, understanding, names, variations, room=min(6000, model.context_tokens))
        reply_type, tokens = _reply_with(variations), _PLAN_TOKENS + variations * _VARIATION_TOKENS
        planning = _Call(lambda: model.structured(prompt, reply_type, max_tokens=tokens, timeout_s=timeout_s)[0])
    made = Plan(queries=(PlannedQuery(question),))
    notes: list[str] = []
    try:
        if planning is not None:
            made = _read(planning.result(deadline), question, understanding, names, variations)
    except _PASSED_ON:
        raise
    except ModelError as error:
        notes.append(f"The search went on without a plan, with the question as it stands: {_reason(error, timeout_s)}")
    passage = ""
    without = "The search went on without a passage that might answer"
    try:
        if writing is not None:
            passage = _one_line(writing.result(deadline))[:_PASSAGE_CHARACTERS]
            if _normalised(passage) in ("", _normalised(question)):
                passage = ""
                notes.append(f"{without}: the model wrote none.")
    except _PASSED_ON:
        raise
    except ModelError as error:
        notes.append(f"{without}: {_reason(error, timeout_s)}")
    queries = (*made.queries, PlannedQuery(passage, "hyde")) if passage else made.queries
    return replace(made, queries=queries, notes=(*made.notes, *notes))


def _check(question: str, variations: int, timeout_s: float) -> None:
    if not question.strip():
        raise UsageError("The question is empty.", remedy="Ask something.")
    if not 0 <= variations <= _MOST_VARIATIONS:
        raise UsageError(f"{variations} variations cannot be asked for.", remedy=f"Ask for 0 to {_MOST_VARIATIONS}.")
    if not timeout_s > 0:
        raise UsageError(f"A plan cannot be made in {timeout_s} s.", remedy="Give it some seconds, or leave it out.")


# ── the prompt ────────────────────────────────────────────────────────────────────────────────────────────────


@cache
def _template(name: str) -> str:
    return (Path(__file__).parent / "plan_prompts" / f"{name}.md").read_text(encoding="utf-8").strip()


def _system(name: str) -> Message:
    return Message("system", _template(name), stable=True)


def _fenced(name: str, text: str) -> str:
    """Between tags that carry a digest of the text: no text can hold its own closing tag."""
    tag = f"{name}-{digest(text, size=4)}"
    return f"<{tag}>\n{text}\n</{tag}>"


def _plan_prompt(
    question: str, understanding: Understanding, names: FileNames, variations: int, *, room: int
) -> list[Message]:
    fitting = names.best_fitting(question, first=[hint.source for hint in understanding.hints], room_characters=room)
    sections = [_fenced("question", question)]
    if understanding.key_terms:
        sections.append("Its telling words:\n" + _fenced("words", ", ".join(understanding.key_terms)))
    if fitting:
        more = len(names.names) - len(fitting)
        head = "Files" + (
            f" (those that fit best; {more} more are not shown, name them by a pattern):" if more else ":"
        )
        sections.append(head + "\n" + _fenced("files", "\n".join(fitting)))
    sections.append(f"Variations wanted: {variations or 'none'}.")
    return [_system("plan"), Message("user", "\n\n".join(sections))]


# ── the reply ─────────────────────────────────────────────────────────────────────────────────────────────────


def _read(reply: PlanReply, question: str, understanding: Understanding, names: FileNames, wanted: int) -> Plan:
    """What of the reply can be used, and what could not."""
    notes: list[str] = []
    texts = _Texts(question, understanding.query)
    # One part is the question again.
    parts = texts.new(reply.parts if len(reply.parts) > 1 else [])
    if len(parts) > _MOST_PARTS:
        notes.append(f"The plan held {len(parts)} parts of the question; the first {_MOST_PARTS} are searched for.")
    others = texts.new([_with_entities(variation) for variation in reply.variations])[:wanted]
    if wanted and not others:
        notes.append("The plan held no other wording of the question.")
    files = names.existing(reply.file_hints, most=_MOST_FILES)
    # Where a variation may stand is a guess: one that fits nothing is no loss to report.
    guesses = [name for each in reply.variations[:wanted] for name in each.file_patterns]
    likely = names.existing(guesses, most=_MOST_FILES).names
    hints = tuple(dict.fromkeys((*files.names, *likely)))[:_MOST_FILES]
    if files.unknown:
        listed = ", ".join(repr(_cut(name, 60)) for name in files.unknown[:3])
        more = f" and {len(files.unknown) - 3} more" if len(files.unknown) > 3 else ""
        notes.append(f"The plan named files that are not here: {listed}{more}.")
    if files.too_many:
        listed = ", ".join(repr(_cut(name, 60)) for name in files.too_many[:3])
        notes.append(f"The plan named too many files to prefer any (more than {_MOST_FILES}): {listed}.")
    complexity = _choice("complexity", reply.complexity, get_args(Complexity), "simple", notes)
    strategy = _choice("strategy", reply.strategy, get_args(Strategy), "chunks", notes)
    if strategy == "full_document" and not (hints or understanding.whole_document or understanding.hints):
        strategy = "chunks"
        notes.append("The plan wanted a whole document but named none that is here: passages are searched.")
    kinds: list[tuple[QueryKind, Sequence[str]]] = [("part", parts[:_MOST_PARTS]), ("variation", others)]
    return Plan(
        queries=(PlannedQuery(question), *(PlannedQuery(text, kind) for kind, found in kinds for text in found)),
        intent=_cut(_one_line(reply.intent), 300),
        complexity=cast(Complexity, complexity),
        strategy=cast(Strategy, strategy),
        file_hints=hints,
        answer_style=_cut(_one_line(reply.answer_style), 200),
        notes=tuple(notes),
    )


class _Texts:
    """Lets through each text once: not empty, not over-long, not the question again."""

    def __init__(self, *known: str) -> None:
        self._seen = {"", *map(_normalised, known)}
        self._longest = max(_QUERY_CHARACTERS, *map(len, known))

    def new(self, texts: Sequence[str]) -> list[str]:
        found = []
        for text in map(_one_line, texts):
            key = _normalised(text)
            if key not in self._seen and len(text) <= self._longest:
                self._seen.add(key)
                found.append(text)
        return found


def _with_entities(variation: Variation) -> str:
    """The names that a variation is about belong into its text: the lexical arm finds them nowhere else."""
    text = _one_line(variation.query)
    if not text:
        return ""
    longer = text
    for name in map(_one_line, variation.entities):
        if _normalised(name) and f" {_normalised(name)} " not in f" {_normalised(longer)} ":
            longer = f"{longer} {name}"
    return longer if len(longer) <= _QUERY_CHARACTERS else text


def _choice(field: str, value: str, known: Sequence[str], default: str, notes: list[str]) -> str:
    given = value.strip().lower().replace(" ", "_").replace("-", "_")
    if given in known:
        return given
    said = f"has the unknown {field} {_cut(_one_line(value), 40)!r}" if value else f"names no {field}"
    notes.append(f"The plan {said}: taken as {default!r}.")
    return default


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _cut(text: str, characters: int) -> str:
    return text if len(text) <= characters else text[: characters - 3].rstrip() + "..."


def _normalised(text: str) -> str:
    """What makes two texts the same search: words alone, in small letters and compatible forms."""
    return " ".join(re.findall(r"\w+", unicodedata.normalize("NFKC", text).casefold()))


def _reason(error: ModelError, timeout_s: float) -> str:
    if isinstance(error, ModelTimeout):
        return f"no reply came within {timeout_s:g} s."
    return _one_line(error.message)


# ── calls side by side ────────────────────────────────────────────────────────────────────────────────────────


class _Call(Generic[Result]):
    """A call in a thread of its own, waited for until a deadline; a daemon, so that a stuck one holds up nobody."""

    def __init__(self, work: Callable[[], Result]) -> None:
        self._work = work
        self._outcome: list[Result] = []
        self._failure: BaseException | None = None
        self._done = threading.Event()
        threading.Thread(target=self._run, name="plan", daemon=True).start()

    def _run(self) -> None:
        try:
            self._outcome.append(self._work())
        except BaseException as error:
            self._failure = error
        finally:
            self._done.set()

    def result(self, deadline: float) -> Result:
        """What the call gave. Raises: what it raised; ModelTimeout where it is still running at the deadline."""
        if not self._done.wait(max(0.0, deadline - time.monotonic())):
            raise ModelTimeout("The model did not reply in time.")
        if self._failure is not None:
            raise self._failure
        return self._outcome[0]
