"""Where a sentence says something else than a claim that is about the same: another figure, name, sign, side or order.

Takes: an analysed claim and the one to three sentences that share most with it. Returns: `Conflict`s, each with what
the evidence says and what the claim says. Method: a quantity of the claim that the window lacks while it has another
comparable one beside the same words; another name between the same words; a shared word that is negated in one alone,
where the other negates nothing; words of opposite direction beside the same words; the same words on the other side of
a shared pivot (A acquired B, B acquired A), unless one of both is passive.
Cost: linear in the window, but for swaps: pivots times words around them.
What can go wrong: a window about something else has other figures too: strength is how much else of the claim it has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from cognicraft.answer.verify_numbers import Quantity, comparable, missing, rival
from cognicraft.answer.verify_words import Stem, Token, is_negator, is_plain_negator, opposites

if TYPE_CHECKING:
    from cognicraft.answer.verify_signals import Piece, Statement

ConflictKind = Literal["quantity", "name", "negation", "opposite", "swap"]
_REACH = 8
_NEARLY_ALL = 0.9
_LOOSELY = 0.6
_MOSTLY = 0.7


def _words(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


_MONTHS = _words(
    "january february march april may june july august september october november december monday tuesday wednesday "
    "thursday friday saturday sunday"
)
# Both sides of these may change places, or they lead nowhere.
_NO_PIVOTS = _words(
    "and or nor with the a an of in on at as is are was were be been has have had by for that which who it its this"
)
_BE = _words("is are was were be been being")
_BESIDE = 5
_CLOSE = 3


@dataclass(frozen=True, slots=True)
class Conflict:
    """strength: 0 to 1, how much of the rest of the claim the sentence has. said, claimed: as both are written."""

    kind: ConflictKind
    strength: float
    said: str
    claimed: str


def conflicts(claim: Statement, window: Sequence[Piece], *, stem: Stem) -> list[Conflict]:
    """The strongest first."""
    if not window or not claim.keys:
        return []
    found = [*_of_quantities(claim, window), *_of_names(claim, window)]
    for piece in window:
        rest = _share(claim, piece.keys)
        if rest < 0.4:
            continue
        found += _of_negation(claim, piece, rest)
        found += _of_opposites(claim, piece, rest, stem=stem)
        found += _of_order(claim, piece)
    return sorted(found, key=lambda one: -one.strength)


def _share(claim: Statement, keys: frozenset[str], *, without: frozenset[str] = frozenset()) -> float:
    rest = [key for key in claim.keys if key not in without]
    return sum(key in keys for key in rest) / len(rest) if rest else 0.0


def _of_quantities(claim: Statement, window: Sequence[Piece]) -> list[Conflict]:
    around = {id(one): _around(one, piece.tokens) for piece in window for one in piece.quantities}
    there = [one for piece in window for one in piece.quantities]
    keys = frozenset().union(*(piece.keys for piece in window))
    figures = frozenset(token.key for token in claim.tokens if _in_quantity(claim, token))
    rest = _share(claim, keys, without=figures)
    found = []
    for one in missing(claim.quantities, there):
        near = _around(one, claim.tokens)
        other = rival(one, there, claim=claim.quantities, likeness=lambda its: len(near & around[id(its)]))  # noqa: B023
        if other is not None:
            alike = (
                near & around[id(other)] or (one.noun and one.noun == other.noun) or one.kind == other.kind == "year"
            )
            strength = rest if alike or rest >= _NEARLY_ALL else _LOOSELY * rest
            strength = strength if comparable(one, other) else 0.9 * strength
            found.append(Conflict("quantity", strength, other.text, one.text))
    return found


def _around(one: Quantity, words: Sequence[Token]) -> set[str]:
    """Content words beside a quantity."""
    beside = [token.rank for token in words if one.start < token.end and token.start < one.end]
    if not beside:
        return set()
    near = words[max(beside[0] - _BESIDE, 0) : beside[-1] + _BESIDE + 1]
    return {token.key for token in near if token.content and token.rank not in beside}


def _in_quantity(claim: Statement, token: Token) -> bool:
    return any(one.start < token.end and token.start < one.end for one in claim.quantities)


def _of_names(claim: Statement, window: Sequence[Piece]) -> list[Conflict]:
    """A name of the claim whose place another has: the same words before and after it, or one of both if it is absent.

    In the same place the claim's own name is no conflict, wherever else it stands.
    """
    keys = frozenset().union(*(piece.keys for piece in window))
    said = frozenset(token.key for token in claim.tokens)
    found = []
    for one in claim.names:
        if not _proper(one):
            continue
        rest = _share(claim, keys, without=frozenset((one.key,)))
        before, after = _beside_it(one, claim.tokens)
        own = [_beside_it(token, piece.tokens) for piece in window for token in piece.tokens if token.key == one.key]
        for piece in window:
            for other in piece.tokens:
                if not (_proper(other) and other.name) or other.key in said:
                    continue
                its_before, its_after = _beside_it(other, piece.tokens)
                both = bool(before and after) and (before, after) == (its_before, its_after)
                one_side = (before != "" and before == its_before) or (after != "" and after == its_after)
                if (both and (before, after) not in own) or (one_side and not own):
                    found.append(Conflict("name", rest, other.text, one.text))
    return found[:1]


def _proper(token: Token) -> bool:
    """Written like a person's or a place's name, not like an abbreviation."""
    word = token.text
    return len(word) > 2 and word[0].isupper() and word[1:].islower() and word.casefold() not in _MONTHS


def _beside_it(token: Token, words: Sequence[Token]) -> tuple[str, str]:
    """The words next to it; before it, an article or a preposition together with the one before that."""
    at = token.rank
    before = words[at - 1].key if at else ""
    if at and not words[at - 1].content:
        before = f"{words[at - 2].key} {before}" if at > 1 and words[at - 2].content else ""
    after = words[at + 1] if at + 1 < len(words) else None
    return before, after.key if after is not None and after.content else ""


def _of_negation(claim: Statement, piece: Piece, rest: float) -> list[Conflict]:
    """What both have, negated in one, where the other negates nothing at all."""
    mine, theirs = _denied(claim.tokens), _denied(piece.tokens)
    if any(map(is_negator, claim.tokens)) == any(map(is_negator, piece.tokens)):
        return []
    denied, denying, other = (mine, claim.tokens, piece.tokens) if mine else (theirs, piece.tokens, claim.tokens)
    plain = {token.key for token in other if token.content}
    twice = {token.key for token in denying if token.content and not token.negated}
    for token in denied:
        if token.key in plain - twice:
            yes, no = token.text, f"not {token.text}"
            return [Conflict("negation", rest, yes if mine else no, no if mine else yes)]
    return []


def _denied(words: Sequence[Token]) -> list[Token]:
    """The first two content words in the reach of each plain negator; no names, which are not what is denied."""
    found: list[Token] = []
    for negator in words:
        if is_plain_negator(negator):
            following = [
                token for token in words[negator.rank + 1 : negator.rank + 4] if token.content and token.negated
            ]
            found += [token for token in following[:2] if not token.name]
    return found


def _of_opposites(claim: Statement, piece: Piece, rest: float, *, stem: Stem) -> list[Conflict]:
    """A word whose opposite stands beside more of the claim's words than the word itself does."""
    table = opposites(stem)
    theirs = [(token, place) for token in piece.tokens for place in _poles(token, table)]
    for token in claim.tokens:
        near = _beside(token, claim.tokens)
        for pair, pole in _poles(token, table):
            same = [len(near & _beside(its, piece.tokens)) for its, place in theirs if place == (pair, pole)]
            other = [
                (len(near & _beside(its, piece.tokens)), its)
                for its, place in theirs
                if place == (pair, 1 - pole) and its.negated == token.negated
            ]
            if not other:
                continue
            most, said = max(other, key=lambda one: one[0])
            # Where the claim's own word stands there too, it must stand beside something else.
            if most >= (2 if same else 1) and not any(same):
                return [Conflict("opposite", rest, said.text, token.text)]
    return []


def _poles(token: Token, table: dict[str, tuple[tuple[int, int], ...]]) -> tuple[tuple[int, int], ...]:
    return table.get(token.text.casefold()) or table.get(token.key, ())


def _beside(token: Token, tokens: Sequence[Token]) -> set[str]:
    near = tokens[max(token.rank - _CLOSE, 0) : token.rank + _CLOSE + 1]
    return {one.key for one in near if one.content and one.rank != token.rank}


def _of_order(claim: Statement, piece: Piece) -> list[Conflict]:
    """The same words on the other side of a pivot."""
    places: dict[str, list[int]] = {}
    for token in piece.tokens:
        places.setdefault(token.key, []).append(token.rank)
    counts: dict[str, int] = {}
    for token in claim.tokens:
        counts[token.key] = counts.get(token.key, 0) + 1
    single = {key for key, ranks in places.items() if len(ranks) == 1 and counts.get(key) == 1}
    shared = [token for token in claim.tokens if token.content and not token.figure and token.key in single]
    best: Conflict | None = None
    for pivot in claim.tokens:
        if pivot.text.casefold() in _NO_PIVOTS or pivot.name or pivot.figure:
            continue
        if pivot.key not in places or counts[pivot.key] != 1 or len(places[pivot.key]) != 1:
            continue
        at = places[pivot.key][0]
        left = [one for one in shared if 0 < pivot.rank - one.rank <= _REACH]
        right = [one for one in shared if 0 < one.rank - pivot.rank <= _REACH]
        swapped_left = [one for one in left if 0 < places[one.key][0] - at <= _REACH]
        swapped_right = [one for one in right if 0 < at - places[one.key][0] <= _REACH]
        kept = len(left) + len(right) - len(swapped_left) - len(swapped_right)
        if not swapped_left or not swapped_right:
            continue
        if _passive(pivot, claim.tokens) != _passive(piece.tokens[at], piece.tokens):
            continue
        moved = len(swapped_left) + len(swapped_right)
        if moved < _MOSTLY * (moved + kept):
            continue
        strength = _share(claim, piece.keys)
        if best is None or strength > best.strength:
            first, second = swapped_left[-1].text, swapped_right[0].text
            best = Conflict("swap", strength, f"{second} {pivot.text} {first}", f"{first} {pivot.text} {second}")
    return [best] if best is not None else []


def _passive(pivot: Token, tokens: Sequence[Token]) -> bool:
    """Whether the pivot turns its sides around: "was … by", "by" after it, or a form of "be" before it."""
    after = any(one.text.casefold() == "by" for one in tokens[pivot.rank + 1 : pivot.rank + 4])
    return after or any(
        one.text.casefold().removesuffix("n't") in _BE for one in tokens[max(pivot.rank - 2, 0) : pivot.rank]
    )
