"""Claims held against the passages, without a language model.

Takes: claims and whole passages with their numbers, and an encoder or none. Returns: a `Verdict` for each claim, with
the deciding quote and one sentence of why. Method: the passages that the claim cites are read first, all of them only
where these do not bear it out. Signals (`verify_signals.py`) give a probability (`verify_model.py`); a conflict in the
deciding window (`verify_conflicts.py`) or a figure that stands nowhere lowers it. What another passage says, or one
that does not exist, is no support by the passage cited.
Cost: 5 sentences over 10 passages of 800 characters: under 150 ms on one core, most of it encoding the claims and the
few sentences that share most with them; a text is encoded once (the last 2,000 are remembered).
What can go wrong: whatever fails gives UNVERIFIED with the reason, never support. A claim in another language than
its evidence shares only figures and names with it, and is not borne out.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from cognicraft.answer.verify_conflicts import Conflict
from cognicraft.answer.verify_model import VerifyModel, shipped_model
from cognicraft.answer.verify_numbers import agrees, missing
from cognicraft.answer.verify_signals import Choice, Piece, Signals, Statement, choose, pieces, signals, statement
from cognicraft.answer.verify_words import Stem, english_stem
from cognicraft.errors import Cancelled
from cognicraft.protocols import Embedder
from cognicraft.records import Claim, Encoding, EvidenceText, Verdict, VerdictKind

SUPPORTED_AT = 0.45
"""Scores from here on count as supported."""
PARTLY_AT = 0.3
"""Scores from here on, up to `SUPPORTED_AT`, count as partially supported."""

_CONTRADICTED = 0.25
"""What is left of the probability where the passage says otherwise, or what is cited does not exist."""
_LACKING_FIGURE = 0.5
_WRONG_CITATION = 0.5
_STRONG = {"quantity": 0.75, "name": 0.75, "negation": 0.7, "opposite": 0.65, "swap": 0.85}
_ALSO_THERE = 0.5
_REMEMBERED = 2_000
_SHOWN_WORDS = 3


@dataclass(frozen=True, slots=True)
class _Judged:
    """What some passages say to a claim, before citations are looked at."""

    kind: VerdictKind
    score: float
    signals: Signals
    reason: str

    @property
    def passage(self) -> int:
        return self.signals.window[0].passage if self.signals.window else 0


class OfflineVerifier:
    """`Verifier` without a model. Thread-safe.

    embedder: for late interaction; None does without. stem: of the language of the texts, else English.
    model: other weights than those shipped, for measuring.
    """

    def __init__(
        self, embedder: Embedder | None = None, *, stem: Stem | None = None, model: VerifyModel | None = None
    ) -> None:
        self._embedder = embedder
        self._stem = stem or english_stem()
        self._model = model or shipped_model(encoder=embedder is not None)
        self._encoded: OrderedDict[str, Encoding] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        return f"signals+{self._embedder.name}" if self._embedder is not None else "signals"

    def verify(self, claims: Sequence[Claim], evidence: Sequence[EvidenceText]) -> list[Verdict]:
        """One verdict per claim, in order. Fails closed: what cannot be checked is UNVERIFIED, with the reason.

        Raises: Cancelled, and nothing else.
        """
        try:
            return self._verify(claims, evidence)
        except Cancelled:
            raise
        except Exception as error:  # whatever it is, it must not count as support
            reason = f"The check failed: {type(error).__name__}: {error}"[:300]
            return [Verdict(claim, "UNVERIFIED", reason=reason) for claim in claims]

    def signals(self, claim: str, evidence: Sequence[EvidenceText]) -> Signals:
        """The signals of one statement against all of the evidence, for training and measuring."""
        said = statement(claim, stem=self._stem)
        choice = choose(said, [piece for one in evidence for piece in pieces(one.number, one.text, stem=self._stem)])
        return self._signals([(said, choice)])[0]

    def _verify(self, claims: Sequence[Claim], evidence: Sequence[EvidenceText]) -> list[Verdict]:
        read = {one.number: pieces(one.number, one.text, stem=self._stem) for one in evidence}
        everything = [piece for found in read.values() for piece in found]
        said = [statement(claim.text, stem=self._stem) for claim in claims]
        cited = [[piece for number in claim.cited for piece in read.get(number, ())] for claim in claims]
        first = self._judge([(one, own or everything) for one, own in zip(said, cited, strict=True)])
        again = [
            index
            for index, judged in enumerate(first)
            if cited[index] and judged.score < SUPPORTED_AT and said[index].keys
        ]
        second = dict(zip(again, self._judge([(said[index], everything) for index in again]), strict=True))
        return [
            self._verdict(claim, said[index], first[index], second.get(index), known=frozenset(read), evidence=evidence)
            for index, claim in enumerate(claims)
        ]

    def _verdict(
        self,
        claim: Claim,
        said: Statement,
        own: _Judged,
        other: _Judged | None,
        *,
        known: frozenset[int],
        evidence: Sequence[EvidenceText],
    ) -> Verdict:
        if not evidence or not any(one.text.strip() for one in evidence):
            return Verdict(claim, "UNSUPPORTED", reason="There is no passage to hold it against.")
        if not said.keys:
            return Verdict(claim, "UNVERIFIED", reason="It states nothing that could be looked up.")
        absent = [number for number in dict.fromkeys(claim.cited) if number not in known]
        present = [number for number in dict.fromkeys(claim.cited) if number in known]
        if absent and not present:
            what = f"It cites {_listed(absent)}, and there is no such passage"
            elsewhere = f"; {_listed([own.passage])} says it" if own.kind == "SUPPORTED" else ""
            kind: VerdictKind = own.kind if own.kind == "CONTRADICTED" else "UNSUPPORTED"
            return _built(claim, kind, own.score * _CONTRADICTED, own, f"{what}{elsewhere}.")
        if other is not None and other.kind == "SUPPORTED" and other.passage not in present:
            reason = f"Another passage says it, {_listed([other.passage])}, not the cited {_listed(present)}."
            return _built(claim, "PARTIALLY_SUPPORTED", other.score * _WRONG_CITATION, other, reason)
        if other is not None and other.kind == "SUPPORTED" and own.kind in ("UNSUPPORTED", "PARTIALLY_SUPPORTED"):
            beyond = "Only together with passages that it does not cite is it borne out."
            return _built(claim, "PARTIALLY_SUPPORTED", other.score * _WRONG_CITATION, other, beyond)
        if absent and own.kind == "SUPPORTED":
            reason = f"{_listed([own.passage])} says it, but {_listed(absent)}, cited as well, is no passage."
            return _built(claim, "PARTIALLY_SUPPORTED", own.score * _WRONG_CITATION, own, reason)
        return _built(claim, own.kind, own.score, own, own.reason)

    def _judge(self, asked: Sequence[tuple[Statement, Sequence[Piece]]]) -> list[_Judged]:
        chosen = [(said, choose(said, evidence)) for said, evidence in asked]
        return [
            self._judgement(said, choice, found)
            for (said, choice), found in zip(chosen, self._signals(chosen), strict=True)
        ]

    def _judgement(self, said: Statement, choice: Choice, found: Signals) -> _Judged:
        probability = self._model.probability(found.values) if choice.pieces else 0.0
        conflict = next((one for one in found.conflicts if _holds(one, said, choice)), None)
        if conflict is not None:
            return _Judged("CONTRADICTED", probability * _CONTRADICTED, found, _contrary(conflict))
        lacking = missing(said.quantities, [one for piece in choice.pieces for one in piece.quantities])
        if lacking:
            score = probability * _LACKING_FIGURE
            return _Judged(_kind(score), score, found, f"The passages do not say {_quoted([lacking[0].text])}.")
        kind = _kind(probability)
        number = _listed([found.window[0].passage]) if found.window else ""
        if kind == "SUPPORTED":
            reason = f"{number} says it."
        elif found.lacking:
            reason = f"The passages do not speak of {_quoted(found.lacking[:_SHOWN_WORDS])}."
        else:
            reason = f"{number} has its words, but hardly says it."
        return _Judged(kind, probability, found, reason)

    def _signals(self, chosen: Sequence[tuple[Statement, Choice]]) -> list[Signals]:
        if self._embedder is None:
            return [signals(said, choice, stem=self._stem) for said, choice in chosen]
        wanted = [said.text for said, choice in chosen if choice.read]
        wanted += [piece.text for _, choice in chosen for piece in choice.read]
        encodings = self._encodings(wanted)
        return [
            signals(
                said,
                choice,
                claim_encoding=encodings.get(said.text),
                content_rows=self._content_rows(said) if choice.read else (),
                encodings=encodings,
                stem=self._stem,
            )
            for said, choice in chosen
        ]

    def _content_rows(self, said: Statement) -> list[int]:
        assert self._embedder is not None
        content = [(token.start, token.end) for token in said.tokens if token.content]
        return [
            row
            for row, (start, end) in enumerate(self._embedder.token_offsets(said.text))
            if any(first < end and start < last for first, last in content)
        ]

    def _encodings(self, texts: Sequence[str]) -> Mapping[str, Encoding]:
        assert self._embedder is not None
        distinct = list(dict.fromkeys(texts))
        with self._lock:
            found = {text: self._encoded[text] for text in distinct if text in self._encoded}
        new = [text for text in distinct if text not in found]
        if new:
            encoded = self._embedder.encode_documents(new, token_codes=True)
            if len(encoded) != len(new) or any(one.token_codes is None for one in encoded):
                raise ValueError(f"the encoder {self._embedder.name} gave no token codes for each text")
            found.update(zip(new, encoded, strict=True))
            with self._lock:
                self._encoded.update(zip(new, encoded, strict=True))
                while len(self._encoded) > _REMEMBERED:
                    self._encoded.popitem(last=False)
        return found


def _kind(score: float) -> VerdictKind:
    return "SUPPORTED" if score >= SUPPORTED_AT else "PARTIALLY_SUPPORTED" if score >= PARTLY_AT else "UNSUPPORTED"


def _holds(conflict: Conflict, said: Statement, choice: Choice) -> bool:
    """Whether a conflict is strong, and no other sentence says what the window does not."""
    if conflict.strength < _STRONG[conflict.kind]:
        return False
    if conflict.kind not in ("quantity", "name"):
        return True
    wanted = frozenset(said.keys)
    for piece in choice.pieces:
        if piece in choice.window or len(piece.keys & wanted) < _ALSO_THERE * len(wanted):
            continue
        if conflict.kind == "name" and any(token.text == conflict.claimed for token in piece.tokens):
            return False
        if conflict.kind == "quantity":
            meant = [one for one in said.quantities if one.text == conflict.claimed]
            if any(agrees(one, there) for one in meant for there in piece.quantities):
                return False
    return True


def _contrary(conflict: Conflict) -> str:
    return f"The passage says {_quoted([conflict.said])}, not {_quoted([conflict.claimed])}."


def _quoted(words: Sequence[str]) -> str:
    """Figures as they are, words in quotation marks."""
    return ", ".join(word if any(letter.isdigit() for letter in word) else f"“{word}”" for word in words)


def _listed(passages: Sequence[int]) -> str:
    return "".join(f"[{number}]" for number in passages)


def _built(claim: Claim, kind: VerdictKind, score: float, judged: _Judged, reason: str) -> Verdict:
    window = judged.signals.window
    verdict = Verdict(claim, kind, score=float(min(max(score, 0.0), 1.0)), reason=reason)
    if not window:
        return verdict
    return replace(verdict, passage=window[0].passage, quote_start=window[0].start, quote_end=window[-1].end)
