"""Refusing measured: by hand on a few questions, and what must hold for any."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from cognicraft.evaluate.abstention import Asked, abstention_figures, risk_coverage, threshold_for


def asked(confidence: float, *, answerable: bool, right: bool | None = None, answered: bool = True) -> Asked:
    return Asked("", confidence, answered, answerable, answerable if right is None else right)


def test_figures_by_hand() -> None:
    figures = abstention_figures(
        [
            asked(0.9, answerable=True),
            asked(0.8, answerable=False),
            asked(0.3, answerable=True, answered=False),
            asked(0.1, answerable=False, answered=False),
        ]
    )
    assert figures.auroc == 0.75  # three of the four pairs are in order
    assert figures.refusal_precision == 0.5
    assert figures.refusal_recall == 0.5


def test_without_refusals_their_precision_is_not_defined() -> None:
    assert abstention_figures([asked(0.9, answerable=True)]).refusal_precision is None
    assert abstention_figures([]).curve == ()


def test_the_curve_counts_what_is_wrong_among_the_most_confident() -> None:
    questions = [asked(0.9, answerable=True), asked(0.8, answerable=True, right=False), asked(0.7, answerable=False)]
    assert [(round(p.coverage, 2), round(p.risk, 2)) for p in risk_coverage(questions)] == [
        (0.33, 0.0),
        (0.67, 0.5),
        (1.0, 0.67),
    ]


def test_the_threshold_answers_most_within_the_share_that_may_be_wrong() -> None:
    questions = [asked(0.9, answerable=True), asked(0.8, answerable=True), asked(0.7, answerable=False)]
    found = threshold_for(risk_coverage(questions), most_wrong=0.1)
    assert found is not None
    assert (found.threshold, found.risk) == (0.8, 0.0)
    assert threshold_for(risk_coverage([asked(0.9, answerable=False)]), most_wrong=0.1) is None


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=60))
def test_the_curve_ends_with_all_questions_and_never_goes_back(rows: list[tuple[float, bool]]) -> None:
    questions = [asked(confidence, answerable=answerable) for confidence, answerable in rows]
    curve = risk_coverage(questions)
    assert curve[-1].coverage == 1.0
    assert curve[-1].risk == sum(not one.right for one in questions) / len(questions)
    assert all(a.coverage < b.coverage and a.threshold > b.threshold for a, b in pairwise(curve))
