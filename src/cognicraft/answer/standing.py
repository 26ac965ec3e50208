"""What a correction works on and what it tells: an answer as it stands, the order of two, the record of a round.

Takes: a text, its verdicts, its evidence. Returns: `Standing`, which ranks; `why` in words. Method: see `correct.py`.
Cost: none. What can go wrong: the order knows verdicts, not truth: of two answers it takes the one that says less
that cannot be shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Literal, Protocol, TypeVar

from cognicraft.answer.confidence import confidence
from cognicraft.records import Verdict


class NumberedText(Protocol):
    """What evidence needs to be: a frozen dataclass with these (`EvidenceText`, `EvidencePassage`)."""

    @property
    def number(self) -> int: ...
    @property
    def text(self) -> str: ...


P = TypeVar("P", bound=NumberedText)
Action = Literal["checked again", "written again", "struck", "failed"]
Kept = Literal["earlier", "new"]


@dataclass(frozen=True, slots=True)
class Correction:
    """One round; or, with `action` "struck", the striking after the last (round: how many there were).

    queries: what was searched for. found: numbers of the passages that were new. before, after: confidence of the
    answer before the round and of what the round made. changed: statements that came to be supported, or the sentences
    that were struck. kept: which of the two goes on. reason: why, in a sentence. error: what failed, "" for nothing.
    """

    round: int
    action: Action
    queries: tuple[str, ...] = ()
    found: tuple[int, ...] = ()
    before: float | None = None
    after: float | None = None
    changed: tuple[str, ...] = ()
    kept: Kept = "earlier"
    reason: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True)
class Standing(Generic[P]):
    """An answer as it stands after its check. text: "" for no answer, which ranks as confidence 0: above an answer of
    which nothing is supported.
    """

    text: str
    verdicts: tuple[Verdict, ...]
    evidence: tuple[P, ...]

    @property
    def confidence(self) -> float | None:
        return confidence(self.verdicts)

    def count(self, *kinds: str) -> int:
        return sum(verdict.kind in kinds for verdict in self.verdicts)

    @property
    def unchecked(self) -> bool:
        """Whether it has verdicts, and none of them says anything."""
        return bool(self.verdicts) and self.count("UNVERIFIED") == len(self.verdicts)

    @property
    def rank(self) -> tuple[int, float, int]:
        """Larger is better."""
        worth = self.confidence or 0.0
        if self.verdicts and not self.count("SUPPORTED", "PARTIALLY_SUPPORTED"):
            worth = -1.0
        return -self.count("CONTRADICTED"), worth, -self.count("UNVERIFIED")


@dataclass(frozen=True, slots=True)
class Corrected(Generic[P]):
    """text: "" where `answered` is false: the documents do not tell. evidence: what `text` cites, by number."""

    text: str
    answered: bool
    verdicts: tuple[Verdict, ...]
    evidence: tuple[P, ...]
    confidence: float | None
    corrections: tuple[Correction, ...] = ()
    notes: tuple[str, ...] = ()


def why(new: Standing[P], old: Standing[P]) -> str:
    """Which of the two is better, and by what, in a sentence."""
    better, worse = (new, old) if new.rank > old.rank else (old, new)
    kept = "The new answer was kept" if better is new else "The earlier answer was kept"
    if better is new and not new.text:
        return "No answer was kept: of the earlier one nothing is supported, or more is contradicted."
    if not worse.text:
        return f"{kept}: written again, the documents were said not to tell."
    for name, own, other in (
        ("contradicted", better.count("CONTRADICTED"), worse.count("CONTRADICTED")),
        ("confidence", better.confidence or 0.0, worse.confidence or 0.0),
        ("that could not be checked", better.count("UNVERIFIED"), worse.count("UNVERIFIED")),
    ):
        if own == other:
            continue
        if name == "confidence":
            return f"{kept}: its confidence is {own:.2f}, that of the other {other:.2f}."
        return f"{kept}: it has {own} statements {name}, the other {other}."
    return f"{kept}: the new one is no better."


def came_to_be_supported(new: Sequence[Verdict], old: Sequence[Verdict]) -> tuple[str, ...]:
    """Texts of claims that are supported in the new check and were not in the old."""
    before = {verdict.claim.text for verdict in old if verdict.kind == "SUPPORTED"}
    now = (verdict.claim.text for verdict in new if verdict.kind == "SUPPORTED")
    return tuple(text for text in dict.fromkeys(now) if text not in before)
