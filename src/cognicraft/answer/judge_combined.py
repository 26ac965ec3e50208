"""A model's judgement and the check that needs none, together; and a check that may fail in any way, made safe.

Takes: two verifiers, or one; claims and passages. Returns: one `Verdict` per claim, in order.
Method, `Combined`, claim by claim:
    1. The model could not tell (UNVERIFIED): the offline verdict, whose reason says why.
    2. The model says SUPPORTED or PARTIALLY_SUPPORTED, and the offline check found a contradiction (another figure, a
       negation): CONTRADICTED where the model quotes the passage that contradicts; PARTIALLY_SUPPORTED where it quotes
       another one, because then the passages disagree. A small model reads over a changed digit; counting does not.
    3. Everything else: the model's verdict. The offline check knows words, so it may miss a paraphrase: that it finds
       no support takes nothing away, and that it finds some adds nothing.
    The score is the mean of the two where both could be given.
`fail_closed` runs any verifier: whatever it raises, however long it takes, whatever it returns, there is one verdict
    for each claim, and UNVERIFIED where there was none to use.
Cost: that of the verifiers, one after the other.
What can go wrong: a check that was given up for time runs on in its thread until it ends by itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import get_args

from cognicraft.answer.time_limit import OutOfTime, within
from cognicraft.errors import Cancelled, CogniCraftError
from cognicraft.protocols import Verifier
from cognicraft.records import Claim, EvidenceText, Verdict, VerdictKind

_KINDS = frozenset(get_args(VerdictKind))
_SUPPORTING = ("SUPPORTED", "PARTIALLY_SUPPORTED")


class Combined:
    """A `Verifier` of two. Thread-safe if they are. Neither can make it raise, but for `Cancelled`."""

    def __init__(self, offline: Verifier, model: Verifier) -> None:
        self._offline = offline
        self._model = model

    @property
    def name(self) -> str:
        return f"{self._offline.name}+{self._model.name}"

    def verify(self, claims: Sequence[Claim], evidence: Sequence[EvidenceText]) -> list[Verdict]:
        """One verdict per claim, in order, by the rules above."""
        counted = fail_closed(self._offline, claims, evidence)
        judged = fail_closed(self._model, claims, evidence)
        return [_combined(one, other) for one, other in zip(counted, judged, strict=True)]


def _combined(offline: Verdict, model: Verdict) -> Verdict:
    if model.kind == "UNVERIFIED":
        why = model.reason.removeprefix("Not checked: ")
        return replace(offline, reason=_joined(offline.reason, f"Checked without a model, because: {why}"))
    if offline.kind == "UNVERIFIED":
        return replace(model, reason=_joined(model.reason, f"By the model alone: {offline.reason}"))
    score = (offline.score + model.score) / 2
    if offline.kind != "CONTRADICTED" or model.kind not in _SUPPORTING:
        return replace(model, score=score)
    if model.passage == offline.passage or not model.passage:
        found = _joined(offline.reason, f"The model had judged {model.kind}.")
        return replace(offline, score=min(score, offline.score), reason=found)
    reason = _joined(model.reason, f"But passage {offline.passage} says otherwise: {offline.reason}")
    return replace(model, kind="PARTIALLY_SUPPORTED", score=min(score, 0.5), reason=reason)


def fail_closed(
    verifier: Verifier, claims: Sequence[Claim], evidence: Sequence[EvidenceText], *, timeout_s: float | None = None
) -> list[Verdict]:
    """What the verifier says, one verdict per claim; UNVERIFIED, with the reason, for each that cannot be used.

    timeout_s: longest wait for all of it, in seconds; None waits. Raises: Cancelled.
    """
    if not claims:
        return []
    try:
        given = within(timeout_s, lambda: list(verifier.verify(claims, evidence)))
    except Cancelled:
        raise
    except OutOfTime:
        return _none(claims, f"the check took longer than {timeout_s:g} s.")
    except Exception as error:
        return _none(claims, str(error) if isinstance(error, CogniCraftError) else f"{type(error).__name__}: {error}")
    if len(given) != len(claims):
        return _none(claims, f"{len(claims)} claims were checked and {len(given)} verdicts came.")
    texts = {passage.number: passage.text for passage in evidence}
    return [
        verdict if _usable(verdict, claim, texts) else _none([claim], "the verdict that came cannot be used.")[0]
        for claim, verdict in zip(claims, given, strict=True)
    ]


def _usable(verdict: object, claim: Claim, texts: dict[int, str]) -> bool:
    """Whether it is a verdict of this claim, in range, with a quote that exists."""
    if not isinstance(verdict, Verdict) or verdict.claim != claim or verdict.kind not in _KINDS:
        return False
    if not (math.isfinite(verdict.score) and 0 <= verdict.score <= 1):
        return False
    if not verdict.passage:
        return verdict.quote_start == verdict.quote_end == 0
    text = texts.get(verdict.passage)
    return text is not None and 0 <= verdict.quote_start <= verdict.quote_end <= len(text)


def _none(claims: Sequence[Claim], why: str) -> list[Verdict]:
    return [Verdict(claim, "UNVERIFIED", reason=f"Not checked: {why}") for claim in claims]


def _joined(*sentences: str) -> str:
    return " ".join(sentence for sentence in sentences if sentence)
