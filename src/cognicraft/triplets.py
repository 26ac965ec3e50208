"""Saved conversations as training lines: (question, context, ideal answer), verified answers only.

Takes: chat turns. Returns: dictionaries in the chat fine-tuning shape, `{"messages": [system, user, assistant]}`.
Method: an answer by a model counts as verified where it was checked and every claim is SUPPORTED; quotes are the
documents' own words. The context is the quotes of the sources, numbered as they are cited.
What can go wrong: a turn that another version wrote has no record to judge by; it is left out and counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from cognicraft.results import Answer
from cognicraft.sessions import ChatTurn

SYSTEM = "Answer from the passages alone. Cite the passage after each sentence. Say so where they do not tell."


def verified(answer: Answer | None) -> bool:
    """Whether everything that an answer states is borne out."""
    if answer is None or not answer.answered:
        return False
    if not answer.model:
        return bool(answer.sources)
    return bool(answer.claims) and all(claim.verdict == "SUPPORTED" for claim in answer.claims)


def triplets(turns: Iterable[ChatTurn]) -> Iterator[dict[str, Any]]:
    """One line for each turn whose answer is verified."""
    for turn in turns:
        if turn.answer is None or not verified(turn.answer):
            continue
        context = "\n\n".join(f"[{source.n}] {source.quote.strip()}" for source in turn.answer.sources)
        yield {
            "messages": [
                {"role": "system", "content": SYSTEM},
                {"role": "user", "content": f"{context}\n\nQuestion: {turn.stand_alone}"},
                {"role": "assistant", "content": turn.answer.answer},
            ]
        }
