"""Confidence and probability: the formula by hand, its bounds, its direction."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cognicraft.answer.confidence import Weights, confidence, features, probability, shipped_weights
from cognicraft.records import Claim, Verdict, VerdictKind

S, P, U, C, N = "SUPPORTED", "PARTIALLY_SUPPORTED", "UNSUPPORTED", "CONTRADICTED", "UNVERIFIED"
KINDS = (S, P, U, C, N)


def verdicts(*kinds: str, score: float = 0.5) -> list[Verdict]:
    return [Verdict(Claim("It is.", at, at + 1), kind, score) for at, kind in enumerate(kinds)]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        ((S,), 1.0),
        ((P,), 0.6),
        ((U,), 0.0),
        ((C,), 0.0),
        ((N,), 0.0),
        ((N, N, N), 0.0),
        ((S, S, S, U), 0.65),
        ((S, S, S, C), 0.65),
        ((S, S, S, N), 0.85),
        ((S, P), 0.85),
        ((S, N), 0.6),
        ((S, P, U, C), 0.175),
        ((S, S, U, U, U), 0.1),
        ((S, S, S, S, U), 0.7),
    ],
)
def test_the_formula_as_worked_out_by_hand(kinds: tuple[str, ...], expected: float) -> None:
    assert confidence(verdicts(*kinds)) == pytest.approx(expected)


def test_at_a_threshold_is_not_a_hair_below_it() -> None:
    assert confidence(verdicts(S, S, S, S, U)) == 0.7


def test_no_claims_are_no_confidence() -> None:
    assert confidence([]) is None
    assert probability([]) is None
    assert features([]) is None


def test_what_was_not_checked_has_no_probability() -> None:
    assert probability(verdicts(N, N)) is None
    assert probability(verdicts(S, N)) is not None


any_verdicts = st.lists(
    st.builds(
        lambda kind, score: Verdict(Claim("It is.", 0, 1), kind, score),
        st.sampled_from(KINDS),
        st.floats(0, 1),
    ),
    min_size=1,
    max_size=30,
)


@given(any_verdicts)
def test_both_stay_in_their_bounds(given_verdicts: list[Verdict]) -> None:
    value, chance = confidence(given_verdicts), probability(given_verdicts)
    assert value is not None
    assert 0 <= value <= 1
    assert chance is None or 0 <= chance <= 1


@given(any_verdicts, st.data(), st.sampled_from([U, C, N, P]))
def test_a_better_verdict_never_lowers_it(
    given_verdicts: list[Verdict], data: st.DataObject, worse: VerdictKind
) -> None:
    at = data.draw(st.integers(0, len(given_verdicts) - 1))
    before, after = list(given_verdicts), list(given_verdicts)
    before[at] = replace(before[at], kind=worse)
    after[at] = replace(after[at], kind="SUPPORTED")
    assert (confidence(after) or 0) >= (confidence(before) or 0)
    chance = probability(before)
    assert chance is None or (probability(after) or 0) >= chance


@given(any_verdicts)
def test_what_was_not_checked_never_counts_as_support(given_verdicts: list[Verdict]) -> None:
    more = [*given_verdicts, *verdicts(N)]
    assert (confidence(more) or 0) <= (confidence(given_verdicts) or 0)


@given(any_verdicts, st.data())
def test_a_higher_score_never_lowers_the_probability(given_verdicts: list[Verdict], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(given_verdicts) - 1))
    higher = list(given_verdicts)
    higher[at] = replace(higher[at], score=data.draw(st.floats(higher[at].score, 1)))
    before, after = probability(given_verdicts), probability(higher)
    assert before is None or (after is not None and after >= before - 1e-12)


def test_a_score_of_something_unchecked_is_not_believed() -> None:
    described = features([*verdicts(S, score=0.9), *verdicts(N, score=0.9)])
    assert described is not None
    assert described[1:] == (0.0, 0.45)


def test_the_shipped_weights_can_be_replaced_and_point_upwards() -> None:
    shipped = shipped_weights()
    assert min(shipped.confidence, shipped.least_score, shipped.mean_score) >= 0
    assert shipped.confidence + shipped.least_score + shipped.mean_score > 0
    flat = Weights(0.0, 0.0, 0.0, 0.0)
    assert probability(verdicts(S, score=0.9), weights=flat) == 0.5
    sure, unsure = (probability(verdicts(kind, score=score)) for kind, score in ((S, 0.95), (U, 0.05)))
    assert sure is not None
    assert unsure is not None
    assert sure > 0.5 > unsure
