"""What to search for when statements of an answer were not borne out.

Takes: the question, its telling words, the verdicts that fell short. Returns: queries, the worst statement first.
Method: each statement as it is, with the telling words of the question that it lacks, so that the search stays on the
subject; `rewritten` has a language model put them as searches instead (`correct_queries.md`). Cost: none; one call.
What can go wrong: a wrong statement finds passages that share its mistake; they are held against it like all others.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from pydantic import BaseModel, Field

from cognicraft.answer.fence import mark_for, one_line
from cognicraft.answer.judge import of_length
from cognicraft.protocols import LanguageModel
from cognicraft.records import Message, Verdict, VerdictKind

_WORST_FIRST: tuple[VerdictKind, ...] = ("CONTRADICTED", "UNSUPPORTED", "UNVERIFIED", "PARTIALLY_SUPPORTED")
_LONGEST_QUERY = 300


class Queries(BaseModel):
    """Reply of the model."""

    queries: list[str] = Field(description="Searches, the most telling first.")


def fallen_short(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Those that are not fully supported, worst first: by kind, then by score, then in text order."""
    short = [verdict for verdict in verdicts if verdict.kind != "SUPPORTED"]
    return sorted(short, key=lambda one: (_WORST_FIRST.index(one.kind), one.score, one.claim.start))


def targeted(short: Sequence[Verdict], *, key_terms: Sequence[str] = (), limit: int = 4) -> tuple[str, ...]:
    """At most `limit` queries, no two alike."""
    queries: dict[str, str] = {}
    for verdict in short:
        text = " ".join(verdict.claim.text.split())
        has = text.casefold()
        added = [term for term in dict.fromkeys(key_terms) if term.casefold() not in has]
        if query := " ".join([text, *added])[:_LONGEST_QUERY].strip():
            queries.setdefault(query.casefold(), query)
    return tuple(queries.values())[:limit]


def rewritten(
    question: str, short: Sequence[Verdict], model: LanguageModel, *, limit: int = 4, timeout_s: float | None = None
) -> tuple[str, ...]:
    """Searches by a model, at most `limit`; none where it gave none. Raises: ModelError."""
    mark = mark_for([question, *(one.claim.text for one in short)])
    rows = [f"{number}. {one_line(one.claim.text, limit=_LONGEST_QUERY)}" for number, one in enumerate(short, start=1)]
    text = (
        f"<<question {mark}>>\n{one_line(question, limit=2_000)}\n<<end of question {mark}>>\n\n"
        f"<<statements {mark}>>\n" + "\n".join(rows) + f"\n<<end of statements {mark}>>\n\n"
        f"Give 1 to {limit} searches."
    )
    reply, _ = model.structured(
        [Message("system", _prompt(), stable=True), Message("user", text)],
        of_length(Queries, "queries", least=1, most=limit),
        timeout_s=timeout_s,
    )
    told = (" ".join(query.split())[:_LONGEST_QUERY].strip() for query in reply.queries)
    return tuple(dict.fromkeys(query for query in told if query))[:limit]


@cache
def _prompt() -> str:
    return (Path(__file__).parent / "correct_queries.md").read_text(encoding="utf-8").strip()
