"""The corrective loop: what it asks, what it keeps, where it stops, and what striking leaves."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cognicraft.answer.claims import claims
from cognicraft.answer.correct import Corrected, correct
from cognicraft.answer.correct_queries import fallen_short, rewritten, targeted
from cognicraft.answer.judge import ModelVerifier
from cognicraft.answer.standing import Standing
from cognicraft.answer.strike import strike
from cognicraft.errors import Cancelled, ModelUnavailable, UsageError
from cognicraft.models.llm import open_language_model
from cognicraft.protocols import LanguageModel
from cognicraft.records import Claim, EvidenceText, Verdict, VerdictKind
from provider_servers import ProviderServer, Reply, provider_server

S: VerdictKind = "SUPPORTED"
P: VerdictKind = "PARTIALLY_SUPPORTED"
U: VerdictKind = "UNSUPPORTED"
C: VerdictKind = "CONTRADICTED"
N: VerdictKind = "UNVERIFIED"
FIRST = EvidenceText(1, "The hut is at 2,100 m.")
MORE = EvidenceText(1, "The fee is 5 euro.")
ANSWER = "The hut is at 2,100 m. [1] The fee is 5 euro. [1]"
QUESTION = "What about the hut?"


def by_words(text: str, evidence: Sequence[EvidenceText]) -> list[Verdict]:
    """A check that can be seen through: supported if the very sentence stands in a passage; `!` is contradicted."""
    found = []
    for claim in claims(text, known=[one.number for one in evidence]):
        passage = next((one.number for one in evidence if claim.text in one.text), 0)
        kind = C if "!" in claim.text else N if "?" in claim.text else S if passage else U
        found.append(Verdict(claim, kind, 0.9 if passage else 0.1, passage, reason="Looked up."))
    return found


@dataclass
class Desk:
    """Callables that count. found: what each search brings; written: what each writing gives; errors are raised."""

    found: list[object] = field(default_factory=list)
    written: list[object] = field(default_factory=list)
    check: Callable[[str, Sequence[EvidenceText]], list[Verdict]] = by_words
    asked: list[Sequence[str]] = field(default_factory=list)
    told: list[tuple[list[int], list[str]]] = field(default_factory=list)
    checks: int = 0

    def verify(self, text: str, evidence: Sequence[EvidenceText]) -> list[Verdict]:
        self.checks += 1
        return self.check(text, evidence)

    def retrieve_more(self, queries: Sequence[str]) -> list[EvidenceText]:
        self.asked.append(queries)
        made = self.found[min(len(self.asked), len(self.found)) - 1] if self.found else []
        return given_or_raised(made)  # type: ignore[return-value]

    def regenerate(self, evidence: Sequence[EvidenceText], short: Sequence[Verdict]) -> str:
        self.told.append(([one.number for one in evidence], [one.claim.text for one in short]))
        return given_or_raised(self.written[min(len(self.told), len(self.written)) - 1])  # type: ignore[return-value]

    def correct(self, answer: str = ANSWER, **options: object) -> Corrected[EvidenceText]:
        options.setdefault("regenerate", self.regenerate if self.written else None)
        options.setdefault("evidence", [FIRST])
        return correct(
            QUESTION,
            answer,
            verify=self.verify,
            retrieve_more=self.retrieve_more,
            **options,  # type: ignore[arg-type]
        )


def given_or_raised(made: object) -> object:
    if isinstance(made, float):
        time.sleep(made)
        return []
    if isinstance(made, BaseException):
        raise made
    return made


# ── rounds ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_answer_that_stands_is_left_alone() -> None:
    desk = Desk()
    made = desk.correct("The hut is at 2,100 m. [1]")
    assert (made.text, made.answered, made.confidence, made.corrections) == (
        "The hut is at 2,100 m. [1]",
        True,
        1.0,
        (),
    )
    assert (desk.checks, desk.asked) == (1, [])


def test_more_evidence_can_be_all_that_was_missing() -> None:
    desk = Desk(found=[[FIRST, MORE, MORE]], written=["never used"])
    made = desk.correct()
    assert made.text == ANSWER
    assert made.confidence == 1.0
    assert made.evidence == (FIRST, EvidenceText(2, MORE.text))
    (round_,) = made.corrections
    assert (round_.round, round_.action, round_.found, round_.error) == (1, "checked again", (2,), "")
    assert round_.changed == ("The fee is 5 euro.",)
    assert (round_.before, round_.after) == (pytest.approx(0.4), 1.0)
    assert desk.told == []


def test_the_searches_are_the_statements_that_failed_with_the_words_of_the_question() -> None:
    desk = Desk()
    desk.correct("The hut is at 2,100 m. [1] The fee is 5 euro. [1] It closes in May! [1]", key_terms=["hut", "fee"])
    assert desk.asked[0] == ("It closes in May! hut fee", "The fee is 5 euro. hut")
    made = Desk()
    made.correct()
    assert made.asked[0] == (f"The fee is 5 euro. {QUESTION}",)


def test_what_stays_unsupported_is_written_again() -> None:
    desk = Desk(found=[[MORE]], written=["The hut is at 2,100 m. [1] The fee is 5 euro. [2]"])
    made = desk.correct("The hut is in Chile! [1] The fee is 9 euro. [1]")
    assert made.text == desk.written[0]
    assert desk.told == [([1, 2], ["The hut is in Chile!", "The fee is 9 euro."])]
    (round_,) = made.corrections
    assert (round_.action, round_.kept, round_.after) == ("written again", "new", 1.0)
    assert round_.changed == ("The hut is at 2,100 m.", "The fee is 5 euro.")
    assert "it has 0 statements contradicted, the other 1" in round_.reason


@pytest.mark.parametrize(
    ("old", "new", "kept"),
    [
        ((C, S, S), (U, U, S), "new"),  # fewer contradicted before anything else
        ((U, S, S), (C, S, S, S, S), "earlier"),
        ((U, U, S), (U, S, S), "new"),
        ((S, U, N), (S, U, U), "earlier"),
        ((S, U, U), (S, U, U), "earlier"),  # no better: the earlier one
        ((U,), (), "new"),  # nothing supported: no answer is better
        ((S, U), (), "earlier"),
        ((N, U), (N,), "earlier"),
    ],
)
def test_the_better_of_the_two_is_kept_by_its_verdicts(
    old: tuple[VerdictKind, ...], new: tuple[VerdictKind, ...], kept: str
) -> None:
    def standing(kinds: tuple[VerdictKind, ...]) -> Standing[EvidenceText]:
        verdicts = tuple(Verdict(Claim("It is.", at, at + 1), kind) for at, kind in enumerate(kinds))
        return Standing("It is." if kinds else "", verdicts, ())

    assert ("new" if standing(new).rank > standing(old).rank else "earlier") == kept


def test_a_worse_answer_is_not_kept() -> None:
    desk = Desk(found=[[EvidenceText(1, "Nothing about it.")], []], written=["The hut is in Chile! [1]"])
    made = desk.correct()
    assert made.text == ANSWER
    assert [one.kept for one in made.corrections] == ["earlier"]
    assert "it has 0 statements contradicted, the other 1" in made.corrections[0].reason


def test_of_two_that_are_alike_the_earlier_is_kept() -> None:
    made = Desk(written=["The hut is at 2,100 m. [1] It has gold. [1]"]).correct()
    assert made.text == ANSWER
    assert made.corrections[0].reason == "The earlier answer was kept: the new one is no better."


def test_not_told_after_more_evidence_replaces_an_answer_of_which_nothing_is_supported() -> None:
    wrong = Desk(written=[" \n"]).correct("The hut is in Chile. [1]")
    assert (wrong.text, wrong.answered, wrong.confidence, wrong.verdicts) == ("", False, None, ())
    partly = Desk(written=[""]).correct()
    assert partly.text == ANSWER


def test_a_new_answer_that_states_nothing_is_not_kept() -> None:
    made = Desk(written=["## Overview"]).correct("The hut is in Chile! [1]")
    assert made.text == "The hut is in Chile! [1]"
    assert "states nothing" in made.corrections[0].reason


def test_a_contradiction_that_more_evidence_brings_is_not_hidden() -> None:
    def check(text: str, evidence: Sequence[EvidenceText]) -> list[Verdict]:
        kinds = [S, C if len(evidence) > 1 else U]
        return [Verdict(claim, kind) for claim, kind in zip(claims(text, known=[1]), kinds, strict=True)]

    made = Desk(found=[[MORE]], check=check, written=["The hut is in Chile! It is! [1]"]).correct()
    assert [verdict.kind for verdict in made.verdicts] == [S, C]
    assert made.evidence[1].text == MORE.text


def test_no_search_is_made_twice_and_the_rounds_end_where_nothing_is_left_to_ask() -> None:
    desk = Desk(found=[[]])
    made = desk.correct(max_rounds=9)
    assert len(desk.asked) == 1
    assert "Nothing new was found." in made.corrections[0].reason


def test_without_anything_checked_nothing_is_corrected() -> None:
    desk = Desk(written=["x"])
    made = desk.correct("Is it? [1] Or not? [1]")
    assert (made.corrections, desk.asked) == ((), [])
    assert made.notes[0].startswith("Nothing was corrected, because nothing could be checked.")


def test_verdicts_that_exist_are_not_made_again() -> None:
    desk = Desk()
    desk.correct(verdicts=by_words(ANSWER, [FIRST]), max_rounds=0)
    assert desk.checks == 0


@pytest.mark.parametrize("options", [{"threshold": 1.1}, {"max_rounds": -1}, {"deadline_s": 0}])
def test_bounds_that_cannot_be_meant_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(UsageError):
        Desk().correct(**options)


# ── failures and bounds ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("error", [ModelUnavailable("The model is gone."), ValueError("broken")])
@pytest.mark.parametrize("step", ["search", "write", "check"])
def test_a_round_that_fails_keeps_the_earlier_answer_and_says_what_failed(error: Exception, step: str) -> None:
    def check(text: str, evidence: Sequence[EvidenceText]) -> list[Verdict]:
        if len(evidence) > 1 and step == "check":
            raise error
        return by_words(text, evidence)

    desk = Desk(
        found=[error if step == "search" else [EvidenceText(1, "Nothing about it.")]],
        written=[error if step == "write" else "The hut is at 2,100 m. [1]"],
        check=check,
    )
    made = desk.correct()
    assert made.text == ANSWER
    (round_,) = made.corrections
    assert (round_.action, round_.kept) == ("failed", "earlier")
    assert ("The model is gone." if isinstance(error, ModelUnavailable) else "ValueError: broken") in round_.error


def test_a_check_that_breaks_down_in_between_is_a_failure_and_no_verdict() -> None:
    def check(text: str, evidence: Sequence[EvidenceText]) -> list[Verdict]:
        if len(evidence) == 1:
            return by_words(text, evidence)
        return [Verdict(claim, N, reason="Not checked: down.") for claim in claims(text, known=[1])]

    made = Desk(found=[[MORE]], check=check, written=["x"]).correct()
    assert [verdict.kind for verdict in made.verdicts] == [S, U]
    assert "Not checked: down." in made.corrections[0].error


def test_a_first_check_that_fails_is_no_support() -> None:
    def broken(text: str, evidence: Sequence[EvidenceText]) -> list[Verdict]:
        raise ValueError("broken")

    made = Desk(check=broken).correct()
    assert (made.text, made.confidence, made.verdicts) == (ANSWER, None, ())
    assert made.notes == ("The answer was not checked: ValueError: broken",)
    strict = Desk(check=broken).correct(strict=True)
    assert (strict.text, strict.answered) == ("", False)


@pytest.mark.parametrize("desk", [Desk(found=[9.0]), Desk(written=[9.0])])
def test_a_step_that_hangs_is_given_up_at_the_deadline(desk: Desk) -> None:
    begun = time.monotonic()
    made = desk.correct(deadline_s=0.3)
    assert time.monotonic() - begun < 3
    assert made.corrections[0].error == "There was no time left."
    assert "The hut is at 2,100 m. [1]" in made.text


def test_a_person_who_stops_it_is_obeyed() -> None:
    with pytest.raises(Cancelled):
        Desk(found=[Cancelled("Stopped.")]).correct()


sentence = st.sampled_from(
    [
        "The hut is at 2,100 m. [1]",
        "The fee is 5 euro. [1]",
        "The hut is in Chile! [1]",
        "Who knows? [1]",
        "It has beds.",
        "## Fees",
        "They are:\n- The fee is 5 euro. [2]\n- It snows! [1]",
    ]
)
answers = st.lists(sentence, min_size=1, max_size=6).map("\n\n".join)


@given(
    answers,
    st.lists(st.one_of(answers, st.just(""), st.just(ValueError("broken"))), max_size=4),
    st.lists(st.one_of(st.lists(st.sampled_from([FIRST, MORE])), st.just(ValueError("broken"))), max_size=3),
    st.integers(0, 3),
    st.booleans(),
    st.floats(0, 1),
)
def test_it_is_never_worse_and_never_more_than_allowed(
    answer: str, written: list[object], found: list[object], rounds: int, strict: bool, threshold: float
) -> None:
    # What the check says must not depend on the evidence here, so that first and last can be compared.
    def check(text: str, evidence: Sequence[EvidenceText]) -> list[Verdict]:
        return by_words(text, [FIRST])

    desk = Desk(found=found, written=written, check=check)
    made = desk.correct(answer, max_rounds=rounds, strict=strict, threshold=threshold)
    assert len(desk.asked) <= rounds
    assert len(desk.told) <= rounds
    assert desk.checks <= 1 + 2 * rounds
    assert sum(one.action != "struck" for one in made.corrections) <= rounds
    assert sum(one.action == "struck" for one in made.corrections) <= 1
    assert made.answered == bool(made.text.strip())
    for verdict in made.verdicts:
        assert made.text[verdict.claim.start : verdict.claim.end].strip()
    if strict:
        assert all(verdict.kind in (S, P) for verdict in made.verdicts)
    else:
        first = Standing(answer, tuple(check(answer, [])), (FIRST,))
        assert Standing(made.text, made.verdicts, (FIRST,)).rank >= first.rank


# ── striking ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_without_a_model_what_stays_unsupported_is_struck() -> None:
    made = Desk(found=[[EvidenceText(1, "Nothing about it.")]]).correct()
    assert made.text == "The hut is at 2,100 m. [1]"
    assert made.confidence == 1.0
    first, struck = made.corrections
    assert (struck.action, struck.changed, struck.round) == ("struck", ("The fee is 5 euro.",), 1)
    assert first.action == "checked again"


def test_of_an_answer_of_which_nothing_stays_there_is_none() -> None:
    made = Desk().correct("It is made of gold. [1] It snows! [1]")
    assert (made.text, made.answered, made.confidence) == ("", False, None)
    assert "the documents do not tell" in made.corrections[-1].reason


def test_strict_strikes_also_above_the_threshold_and_what_was_not_checked() -> None:
    long = " ".join(["The hut is at 2,100 m. [1]"] * 9) + " Who knows? [1] It has gold. [1]"
    desk = Desk()
    assert desk.correct(long, max_rounds=0).text == long
    made = desk.correct(long, strict=True, threshold=0.5)
    assert made.text == " ".join(["The hut is at 2,100 m. [1]"] * 9)
    assert [one.action for one in made.corrections] == ["struck"]
    assert {verdict.kind for verdict in made.verdicts} == {S}


def test_strict_strikes_a_statement_that_no_verdict_is_about() -> None:
    made = Desk(check=lambda text, evidence: by_words(text, evidence)[:1]).correct(strict=True, max_rounds=0)
    assert made.text == "The hut is at 2,100 m. [1]"


def struck(text: str, *failing: str) -> str:
    verdicts = [
        Verdict(claim, U if any(words in claim.text for words in failing) else S)
        for claim in claims(text, known=range(1, 10))
    ]
    return strike(text, verdicts, kinds={U, C}).text


@pytest.mark.parametrize(
    ("text", "failing", "left"),
    [
        ("A was built. [1] B was sold. [2][3] C was lost. [1]", ["B was"], "A was built. [1] C was lost. [1]"),
        ("A was built. [1] B was sold. [2]", ["A was"], "B was sold. [2]"),
        ("A was built. [1]\n\nB was sold. [2]\n\nC was lost.", ["B was"], "A was built. [1]\n\nC was lost."),
        ("They are:\n- A was built. [1]\n- B was sold. [2]", ["A was"], "They are:\n- B was sold. [2]"),
        ("It stands. [1]\n\nThey are:\n- A was built. [1]\n- B was sold. [2]", ["A was", "B was"], "It stands. [1]"),
        ("1. A was built. [1]\n2. B was sold. [2]\n", ["A was"], "2. B was sold. [2]"),
        ("## Past\nA was built. [1]\n\n## Now\nB was sold. [2]", ["A was"], "## Now\nB was sold. [2]"),
        (
            "It stands.\n\n| a | b |\n| --- | --- |\n| x | 5 [1] |\n| y | 6 [2] |",
            ["x"],
            "It stands.\n\n| a | b |\n| --- | --- |\n| y | 6 [2] |",
        ),
        ("It stands.\n\n| a | b |\n| --- | --- |\n| x | 5 [1] |", ["x"], "It stands."),
        ("> A was built. [1]\n> B was sold. [2]", ["A was"], "> B was sold. [2]"),
        ("A was built [1]. B was sold [2].", ["B was"], "A was built [1]."),
        ("A was built. [1]", ["A was"], ""),
        ("## Past\nA was built. [1]", ["A was"], ""),
        ("A was built. [1]\n\n```\nx = 1\n```", ["A was"], ""),
    ],
)
def test_what_striking_leaves(text: str, failing: list[str], left: str) -> None:
    assert struck(text, *failing) == left


@given(answers, st.data())
def test_what_stays_is_word_for_word_where_its_verdict_says(text: str, data: st.DataObject) -> None:
    found = claims(text, known=[1, 2])
    kinds = data.draw(st.lists(st.sampled_from([S, P, U, C, N]), min_size=len(found), max_size=len(found)))
    verdicts = [Verdict(claim, kind) for claim, kind in zip(found, kinds, strict=True)]
    made = strike(text, verdicts, kinds={U, C})
    assert not any(verdict.kind in (U, C) for verdict in made.verdicts)
    assert "\n\n\n" not in made.text
    if made.struck:
        assert made.text == made.text.strip()
    places = {(verdict.claim.text, verdict.kind) for verdict in verdicts}
    for verdict in made.verdicts:
        assert (verdict.claim.text, verdict.kind) in places
        words = made.text[verdict.claim.start : verdict.claim.end]
        assert words in text
        assert re.sub(r"\s*\[\d\]", "", words) == verdict.claim.text
    again = strike(made.text, made.verdicts, kinds={U, C})
    assert (again.text, again.struck) == (made.text, ())


# ── searches by a model, and the loop over a provider's wire ──────────────────────────────────────────────────


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    with provider_server("openai") as server:
        yield server


@pytest.fixture
def model(server: ProviderServer) -> Iterator[LanguageModel]:
    with closing(
        open_language_model("compatible:test", base_url=server.base_url, api_key="test-key", retries=0, timeout_s=20.0)
    ) as model:
        yield model


def test_a_model_words_the_searches(server: ProviderServer, model: LanguageModel) -> None:
    server.respond = lambda request: Reply(
        text=json.dumps({"queries": [" fee of\nthe hut ", "", "fee of the hut", "b"]})
    )
    short = fallen_short(by_words(ANSWER, [FIRST]))
    assert rewritten(QUESTION, short, model, limit=2) == ("fee of the hut", "b")
    (request,) = server.requests
    assert "1. The fee is 5 euro." in request.text
    assert request.schema is not None
    assert request.schema["properties"]["queries"]["maxItems"] == 2
    desk = Desk()
    desk.correct(rewrite=lambda found: rewritten(QUESTION, found, model), key_terms=["fee"])
    assert desk.asked[0] == ("fee of the hut", "b", "The fee is 5 euro.")


def test_searches_that_no_model_words_are_the_plain_ones_and_it_is_said(
    server: ProviderServer, model: LanguageModel
) -> None:
    server.respond = lambda request: Reply(status=500)
    desk = Desk()
    made = desk.correct(rewrite=lambda short: rewritten(QUESTION, short, model))
    assert desk.asked[0] == targeted(fallen_short(by_words(ANSWER, [FIRST])), key_terms=[QUESTION])
    assert made.corrections[0].reason.startswith("The searches are the statements as they stand:")


@pytest.mark.parametrize("reply", [Reply(status=500), Reply(text="nonsense"), Reply(hang_s=20)])
def test_a_model_that_fails_as_judge_corrects_nothing_and_supports_nothing(
    server: ProviderServer, model: LanguageModel, reply: Reply
) -> None:
    server.respond = lambda request: reply
    judge = ModelVerifier(model, timeout_s=0.3)
    made = Desk(
        check=lambda text, evidence: judge.verify(claims(text, known=[1]), evidence), written=["never"]
    ).correct()
    assert made.text == ANSWER
    assert made.confidence == 0.0
    assert {verdict.kind for verdict in made.verdicts} == {N}
    assert made.notes
