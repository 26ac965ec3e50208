"""A reranker's scores and a ranking become one: no hit is lost, and the order is the one that was promised."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cognicraft.errors import ModelUnavailable, UsageError
from cognicraft.records import Ranking, Scored
from cognicraft.search.blend import Blended, Judgement, blend
from cognicraft.search.fuse import ranked


class Table:
    """A reranker that scores by a table, text by text, and counts what it is asked."""

    name = "table"

    def __init__(self, scores: dict[str, float | None], *, takes: Callable[[int], None] = lambda count: None) -> None:
        self.table = scores
        self.asked: list[list[str]] = []
        self._takes = takes

    def scores(self, question: str, passages: Sequence[str]) -> list[float | None]:
        self.asked.append(list(passages))
        self._takes(len(passages))
        return [self.table[passage] for passage in passages]

    def close(self) -> None:
        pass


class Talking(Table):
    def judge(self, question: str, passages: Sequence[str]) -> Judgement:
        return Judgement(tuple(self.scores(question, passages)), ("Something was cut.",))


class Failing(Table):
    def scores(self, question: str, passages: Sequence[str]) -> list[float | None]:
        raise ModelUnavailable("The model is gone.", remedy="Start it.")


def _hits(*scores: tuple[str, float]) -> Ranking:
    return ranked(dict(scores))


HITS = _hits(("a", 9.0), ("b", 7.0), ("c", 6.0), ("d", 5.0), ("e", 1.0))
TEXTS = {letter: letter for letter in "abcde"}


def _order(blended: Blended) -> str:
    return "".join(hit.chunk_id for hit in blended.ranking)


def _blend(table: Table, **options: object) -> Blended:
    return blend(HITS, TEXTS, question="?", reranker=table, **options)  # type: ignore[arg-type]


def test_without_a_share_the_rerankers_order_counts_alone() -> None:
    blended = _blend(Table({"a": -3.0, "b": 8.0, "c": -11.0, "d": 2.5, "e": 0.0}))
    assert _order(blended) == "bdeac"
    assert [hit.score for hit in blended.ranking] == [8.0, 2.5, 0.0, -3.0, -11.0]
    assert blended.judged == blended.ranking
    assert blended.asked == 5
    assert blended.notes == ()


def test_with_a_share_the_new_score_is_thirty_and_seventy_percent() -> None:
    blended = _blend(Table({"a": 0.0, "b": 10.0, "c": 5.0, "d": 10.0, "e": 7.0}), share=0.7)
    # original (9, 7, 6, 5, 1) by min-max: 1, 0.75, 0.625, 0.5, 0
    expected = {"b": 0.3 * 0.75 + 0.7, "d": 0.3 * 0.5 + 0.7, "c": 0.3 * 0.625 + 0.35, "e": 0.49, "a": 0.3}
    assert {hit.chunk_id: hit.score for hit in blended.ranking} == pytest.approx(expected)
    assert _order(blended) == "bdcea"
    assert [hit.score for hit in blended.judged] == [10.0, 10.0, 7.0, 5.0, 0.0]


def test_a_share_of_nothing_keeps_the_order_and_one_of_all_forgets_it() -> None:
    table = Table({"a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0, "e": 5.0})
    assert _order(_blend(table, share=0.0)) == "abcde"
    assert _order(_blend(table, share=1.0)) == "edcba"


def test_a_judgement_out_of_range_counts_as_the_nearest() -> None:
    blended = _blend(Table({"a": -5.0, "b": 99.0, "c": 10.0, "d": 0.0, "e": 0.0}), share=1.0)
    assert {hit.chunk_id: hit.score for hit in blended.ranking}["b"] == pytest.approx(1.0)
    assert blended.ranking[-1].score == pytest.approx(0.0)


def test_equal_scores_leave_the_decision_to_the_judgement() -> None:
    same = _hits(("a", 2.0), ("b", 2.0), ("c", 2.0))
    blended = blend(same, TEXTS, question="?", reranker=Table({"a": 1.0, "b": 9.0, "c": 5.0}), share=0.7)
    assert _order(blended) == "bca"
    assert blended.ranking[0].score == pytest.approx(0.3 + 0.7 * 0.9)


def test_equal_judgements_go_by_chunk_id() -> None:
    blended = _blend(Table(dict.fromkeys("abcde", 1.0)))
    assert _order(blended) == "abcde"
    backwards = blend(
        tuple(Scored(letter, float(score)) for score, letter in enumerate("abcde"))[::-1],
        TEXTS,
        question="?",
        reranker=Table(dict.fromkeys("abcde", 1.0)),
    )
    assert _order(backwards) == "abcde"


def test_hits_beyond_the_candidates_stay_behind_them_in_their_order() -> None:
    table = Table({"a": -100.0, "b": -50.0, "c": 0.0})
    blended = _blend(table, candidates=3)
    assert _order(blended) == "cbade"
    assert table.asked == [["a", "b", "c"]]
    scores = [hit.score for hit in blended.ranking]
    assert scores == sorted(scores, reverse=True)
    assert scores[3] - scores[4] == pytest.approx(4.0)
    assert blended.asked == 3


def test_a_candidate_without_a_score_keeps_its_place() -> None:
    blended = _blend(Table({"a": 1.0, "b": None, "c": 2.0, "d": None, "e": 3.0}))
    assert _order(blended) == "ebcda"
    assert blended.notes == ("table gave 2 passages of 5 no score: they kept their place.",)
    assert [hit.chunk_id for hit in blended.judged] == ["e", "c", "a"]


def test_a_candidate_without_a_text_is_not_asked_about_and_keeps_its_place() -> None:
    table = Table({"a": 1.0, "b": 9.0})
    blended = blend(HITS[:3], {"a": "a", "b": "b"}, question="?", reranker=table)
    assert _order(blended) == "bac"
    assert table.asked == [["a", "b"]]
    assert "1 passage without a text" in blended.notes[0]


@pytest.mark.parametrize("share", [None, 0.7])
def test_where_nothing_was_scored_the_ranking_stays_as_it_was(share: float | None) -> None:
    blended = _blend(Table(dict.fromkeys("abcde")), share=share)
    assert blended.ranking == HITS
    assert blended.judged == ()
    assert "5 passages of 5 no score" in blended.notes[0]


def test_a_score_that_is_no_number_counts_as_none() -> None:
    blended = _blend(Table({"a": math.nan, "b": 1.0, "c": math.inf, "d": 2.0, "e": -math.inf}))
    assert _order(blended) == "adcbe"


def test_a_reranker_that_fails_leaves_the_order_and_says_why() -> None:
    blended = _blend(Failing({}))
    assert blended.ranking == HITS
    assert blended.notes == ("The hits kept their order, for table failed. The model is gone. Start it.",)


def test_what_a_judge_has_to_say_is_passed_on() -> None:
    blended = _blend(Talking(dict.fromkeys("abcde", 1.0)))
    assert blended.notes == ("Something was cut.",)


def test_no_hits_ask_nobody() -> None:
    table = Table({})
    assert blend((), {}, question="?", reranker=table).ranking == ()
    assert table.asked == []


class Clock:
    """Time that passes only while passages are read."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s

    def reading(self, ms_each: float) -> Callable[[int], None]:
        def takes(count: int) -> None:
            self.now_s += count * ms_each / 1000.0

        return takes


MANY = _hits(*((f"{number:03d}", 100.0 - number) for number in range(50)))


def _timed(ms_each: float, budget_ms: float, candidates: int = 50) -> tuple[Blended, Table]:
    clock = Clock()
    table = Table({hit.chunk_id: float(hit.chunk_id) for hit in MANY}, takes=clock.reading(ms_each))
    texts = {hit.chunk_id: hit.chunk_id for hit in MANY}
    blended = blend(MANY, texts, question="?", reranker=table, candidates=candidates, budget_ms=budget_ms, clock=clock)
    return blended, table


def test_the_time_decides_how_deep_it_reads_and_a_note_says_it() -> None:
    blended, table = _timed(ms_each=10.0, budget_ms=200.0)
    assert sum(map(len, table.asked)) == 20
    assert [hit.chunk_id for hit in blended.ranking[:20]] == [f"{number:03d}" for number in range(19, -1, -1)]
    assert [hit.chunk_id for hit in blended.ranking[20:]] == [f"{number:03d}" for number in range(20, 50)]
    assert blended.notes == ("table read 20 of 50 candidates in its 200 ms.",)


def test_a_slow_reranker_reads_its_first_slice_and_a_quick_one_all() -> None:
    _, slow = _timed(ms_each=1000.0, budget_ms=50.0)
    assert sum(map(len, slow.asked)) == 4
    blended, quick = _timed(ms_each=0.0, budget_ms=50.0)
    assert sum(map(len, quick.asked)) == 50
    assert blended.notes == ()


def test_without_a_budget_it_is_asked_once() -> None:
    table = Table(dict.fromkeys("abcde", 1.0))
    _blend(table)
    assert len(table.asked) == 1


@pytest.mark.parametrize(
    "wrong", [{"candidates": 0}, {"share": 1.1}, {"share": -0.1}, {"full_marks": 0.0}, {"budget_ms": 0.0}]
)
def test_numbers_that_cannot_be_meant_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(UsageError):
        _blend(Table(dict.fromkeys("abcde", 1.0)), **wrong)


_numbers = st.floats(-1e9, 1e9) | st.sampled_from([0.0, 1.0, 10.0])


@given(
    hits=st.dictionaries(st.text("abcdef", min_size=1, max_size=3), _numbers, max_size=30),
    judgements=st.lists(st.none() | _numbers, min_size=30, max_size=30),
    candidates=st.integers(1, 30),
    share=st.none() | st.floats(0, 1),
)
def test_whatever_comes_it_stays_a_ranking_of_the_same_hits(
    hits: dict[str, float], judgements: list[float | None], candidates: int, share: float | None
) -> None:
    ranking = ranked(hits)
    table = dict(zip((hit.chunk_id for hit in ranking), judgements, strict=False))
    texts = {hit.chunk_id: hit.chunk_id for hit in ranking}
    blended = blend(ranking, texts, question="?", reranker=Table(table), candidates=candidates, share=share)
    old, new = [hit.chunk_id for hit in ranking], [hit.chunk_id for hit in blended.ranking]
    # The same hits; best first, ties by chunk id.
    assert sorted(new) == sorted(old)
    assert blended.ranking == ranked({hit.chunk_id: hit.score for hit in blended.ranking})
    # Beyond the candidates nothing moves; a candidate without a score keeps its rank.
    assert new[candidates:] == old[candidates:]
    assert all(new[rank] == old[rank] for rank in range(min(candidates, len(old))) if table[old[rank]] is None)
    # Among those that were judged, larger is better.
    judged = [
        (place, table[chunk_id]) for place, chunk_id in enumerate(new[:candidates]) if table[chunk_id] is not None
    ]
    if share is None or share == 1.0:
        clamp = (lambda value: value) if share is None else (lambda value: min(10.0, max(0.0, value)))
        values = [clamp(value) for _, value in judged]
        assert values == sorted(values, reverse=True)
