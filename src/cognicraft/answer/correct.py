"""Corrective retrieval: an answer that did not stand the check gets more evidence, and the better answer is kept.

Takes: a question, an answer, its evidence, and what to check, search and write with, as callables. Returns:
    `Corrected`: the answer kept, with its verdicts and evidence, and one `Correction` for each round.
Method: our own loop after corrective RAG (Yan et al. 2024, arXiv:2401.15884). While the confidence is below the
    threshold: search for the statements that fell short; add what is new to the evidence, under the next numbers, so
    that citations stay right; check the same answer again with all of it; if that is not enough, have it written again
    and keep the better of the two. Better is, in this order: fewer contradicted statements; higher confidence; fewer
    that could not be checked; the earlier one. Giving no answer ranks as confidence 0, above an answer of which
    something fell through and nothing is supported. At last, where nothing can be written again, or `strict`, what
    stays unsupported is struck (`strike.py`); an answer of which nothing stays is none.
Cost: per round at most one search, two checks, one call that writes (and one that words the searches).
What can go wrong: whatever a callable raises, or takes too long for, ends the rounds: the earlier answer is kept and
    the record says why. A callable that is given up for time runs on in its thread. If nothing could be checked there
    is nothing to correct, and no round. The second check may find a contradiction that the first did not see: it
    counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Generic, TypeVar

from cognicraft.answer.confidence import FAILING
from cognicraft.answer.correct_queries import fallen_short, targeted
from cognicraft.answer.standing import Corrected, Correction, P, Standing, came_to_be_supported, why
from cognicraft.answer.strike import strike
from cognicraft.answer.time_limit import OutOfTime, within
from cognicraft.errors import Cancelled, CogniCraftError, UsageError
from cognicraft.records import Verdict, VerdictKind

DEFAULT_THRESHOLD = 0.7
DEFAULT_ROUNDS = 2
DEFAULT_DEADLINE_S = 60.0

T = TypeVar("T")

Verify = Callable[[str, Sequence[P]], Sequence[Verdict]]
RetrieveMore = Callable[[Sequence[str]], Sequence[P]]
Regenerate = Callable[[Sequence[P], Sequence[Verdict]], str]
Rewrite = Callable[[Sequence[Verdict]], Sequence[str]]


def correct(
    question: str,
    answer: str,
    *,
    evidence: Sequence[P],
    verify: Verify[P],
    retrieve_more: RetrieveMore[P],
    regenerate: Regenerate[P] | None = None,
    rewrite: Rewrite | None = None,
    verdicts: Sequence[Verdict] | None = None,
    key_terms: Sequence[str] = (),
    threshold: float = DEFAULT_THRESHOLD,
    max_rounds: int = DEFAULT_ROUNDS,
    deadline_s: float = DEFAULT_DEADLINE_S,
    max_queries: int = 4,
    max_new_passages: int = 8,
    strict: bool = False,
) -> Corrected[P]:
    """The better answer, after at most `max_rounds` rounds and about `deadline_s` seconds in all.

    verify: verdicts of a text's claims, spans in that text. retrieve_more: passages for queries, best first; their
    numbers do not count. regenerate: the answer from all evidence, told what fell short; "" if the documents do not
    tell; None where no model is. rewrite: searches to put before the plain ones. verdicts: of `answer`, if checked.
    key_terms: telling words of the question. threshold: confidence, 0..1, from which on no round is made.
    strict: strike every sentence that is unsupported, contradicted or was not checked.

    Raises: UsageError for bounds that cannot be meant; Cancelled.
    """
    if not 0 <= threshold <= 1 or max_rounds < 0 or not deadline_s > 0:
        raise UsageError(
            f"threshold is {threshold}, max_rounds {max_rounds}, deadline_s {deadline_s}.",
            remedy="The threshold is 0 to 1, rounds are 0 or more, the deadline is above 0 seconds.",
        )
    loop = _Loop(
        verify,
        retrieve_more,
        regenerate,
        rewrite,
        # Without terms of its own the whole question keeps a search on its subject.
        key_terms=tuple(key_terms) or (question,),
        max_queries=max_queries,
        max_new_passages=max_new_passages,
        ends_at=time.monotonic() + deadline_s,
    )
    notes: list[str] = []
    first = tuple(verdicts) if verdicts is not None else ()
    if verdicts is None:
        try:
            first = tuple(loop.timed(lambda: verify(answer, tuple(evidence))))
        except Cancelled:
            raise
        except Exception as error:
            notes.append(f"The answer was not checked: {_said(error)}")
    kept = Standing(answer, first, tuple(evidence))
    corrections: list[Correction] = []
    if kept.unchecked:
        notes.append(f"Nothing was corrected, because nothing could be checked. {kept.verdicts[0].reason}".rstrip())
    else:
        while len(corrections) < max_rounds and kept.text and _below(kept, threshold):
            made = loop.round(len(corrections) + 1, kept, threshold)
            if made is None:
                break
            kept, correction = made
            corrections.append(correction)
            if correction.error:
                break
    struck = _struck(kept, len(corrections), strict=strict, offline=regenerate is None)
    if struck is not None:
        kept, correction = struck
        corrections.append(correction)
    return Corrected(
        text=kept.text,
        answered=bool(kept.text.strip()),
        verdicts=kept.verdicts,
        evidence=kept.evidence,
        confidence=kept.confidence,
        corrections=tuple(corrections),
        notes=tuple(notes),
    )


def _below(standing: Standing[P], threshold: float) -> bool:
    value = standing.confidence
    return value is not None and value < threshold and bool(fallen_short(standing.verdicts))


class _Loop(Generic[P]):
    """What the rounds share: the callables, the bounds, what was asked already."""

    def __init__(
        self,
        verify: Verify[P],
        retrieve_more: RetrieveMore[P],
        regenerate: Regenerate[P] | None,
        rewrite: Rewrite | None,
        *,
        key_terms: tuple[str, ...],
        max_queries: int,
        max_new_passages: int,
        ends_at: float,
    ) -> None:
        self._verify = verify
        self._retrieve_more = retrieve_more
        self._regenerate = regenerate
        self._rewrite = rewrite
        self._key_terms = key_terms
        self._max_queries = max_queries
        self._max_new_passages = max_new_passages
        self._ends_at = ends_at
        self._asked: set[str] = set()

    def timed(self, call: Callable[[], T]) -> T:
        """Raises: OutOfTime once the deadline of all rounds has passed."""
        return within(self._ends_at - time.monotonic(), call)

    def round(self, number: int, before: Standing[P], threshold: float) -> tuple[Standing[P], Correction] | None:
        """What stands after a round, and its record; None where there is nothing more to ask."""
        now = before
        record = Correction(number, "failed", before=before.confidence)
        try:
            queries, note = self._queries(before)
            if not queries:
                return None
            new = self._more(queries, before.evidence)
            record = replace(record, queries=queries, found=tuple(passage.number for passage in new))
            if new:
                now = self._checked(before.text, (*before.evidence, *new))
            changed = came_to_be_supported(now.verdicts, before.verdicts)
            record = replace(record, action="checked again", after=now.confidence, changed=changed)
            if self._regenerate is None or not _below(now, threshold) or (number > 1 and not new):
                told = "The same answer was checked with more evidence." if new else "Nothing new was found."
                return now, replace(record, reason=f"{note}{told}")
            return self._written_again(self._regenerate, now, record, note)
        except Cancelled:
            raise
        except Exception as error:
            reason = "The earlier answer was kept: the round could not be made to its end."
            return now, replace(record, action="failed", after=now.confidence, reason=reason, error=_said(error))

    def _written_again(
        self, regenerate: Regenerate[P], now: Standing[P], record: Correction, note: str
    ) -> tuple[Standing[P], Correction]:
        short = fallen_short(now.verdicts)
        text = self.timed(lambda: regenerate(now.evidence, short))
        new = self._checked(text, now.evidence) if text.strip() else Standing("", (), now.evidence)
        record = replace(record, action="written again", after=new.confidence)
        if new.text and not new.verdicts:
            return now, replace(
                record, reason=f"{note}The earlier answer was kept: the new one states nothing that can be checked."
            )
        record = replace(record, reason=note + why(new, now))
        if new.rank <= now.rank:
            return now, record
        changed = came_to_be_supported(new.verdicts, now.verdicts)
        return new, replace(record, changed=(*record.changed, *changed), kept="new")

    def _queries(self, before: Standing[P]) -> tuple[tuple[str, ...], str]:
        """Those that were not asked yet, and a note."""
        short = fallen_short(before.verdicts)
        plain = targeted(short, key_terms=self._key_terms, limit=len(short))
        chosen, note = plain, ""
        if self._rewrite is not None:
            rewrite = self._rewrite
            try:
                chosen = (*self.timed(lambda: rewrite(short)), *plain)
            except (Cancelled, OutOfTime):
                raise
            except Exception as error:
                note = f"The searches are the statements as they stand: {_said(error)} "
        fresh = dict.fromkeys(query for query in chosen if query.strip() and query.casefold() not in self._asked)
        queries = tuple(fresh)[: self._max_queries]
        self._asked.update(query.casefold() for query in queries)
        return queries, note

    def _more(self, queries: Sequence[str], evidence: Sequence[P]) -> tuple[P, ...]:
        """Passages that are not in the evidence yet, under the numbers after its last."""
        found = self.timed(lambda: list(self._retrieve_more(queries)))
        known = [_plain(passage.text) for passage in evidence]
        next_number = max((passage.number for passage in evidence), default=0) + 1
        new: list[P] = []
        for passage in found:
            text = _plain(passage.text)
            if len(new) == self._max_new_passages:
                break
            if text and not any(text in other for other in known):
                known.append(text)
                new.append(replace(passage, number=next_number + len(new)))  # type: ignore[type-var]
        return tuple(new)

    def _checked(self, text: str, evidence: tuple[P, ...]) -> Standing[P]:
        """Raises: CogniCraftError where nothing could be checked: that must not stand for a check."""
        made = Standing(text, tuple(self.timed(lambda: self._verify(text, evidence))), evidence)
        if made.unchecked:
            raise CogniCraftError(f"The check could not be made. {made.verdicts[0].reason}".rstrip())
        return made


def _struck(kept: Standing[P], rounds: int, *, strict: bool, offline: bool) -> tuple[Standing[P], Correction] | None:
    """The answer without what did not stand the check; None where nothing is to be struck."""
    if not kept.text or not (strict or (offline and rounds)):
        return None
    kinds: frozenset[VerdictKind] = FAILING | {"UNVERIFIED"} if strict else FAILING
    left = strike(kept.text, kept.verdicts, kinds=kinds, unchecked=strict)
    if not left.struck and left.text == kept.text:
        return None
    now = Standing(left.text, left.verdicts, kept.evidence)
    if not strict and now.rank <= kept.rank:
        return None
    count = len(left.struck)
    reason = f"{count} {'sentence was' if count == 1 else 'sentences were'} struck."
    if not left.text:
        reason += " Nothing is left: the documents do not tell."
    record = Correction(
        rounds, "struck", before=kept.confidence, after=now.confidence, changed=left.struck, kept="new", reason=reason
    )
    return now, record


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()


def _said(error: Exception) -> str:
    if isinstance(error, OutOfTime):
        return "There was no time left."
    return str(error) if isinstance(error, CogniCraftError) else f"{type(error).__name__}: {error}"
