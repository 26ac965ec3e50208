"""Verdicts without a model: what decides, what is said of it, and that a failed check never counts as support."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import pytest

from cognicraft.answer.verify import PARTLY_AT, SUPPORTED_AT, OfflineVerifier
from cognicraft.answer.verify_model import read_model, shipped_model
from cognicraft.answer.verify_signals import ENCODED, NAMES
from cognicraft.errors import Cancelled
from cognicraft.models.minilm import MiniLM
from cognicraft.protocols import Embedder
from cognicraft.records import Claim, Encoding, EvidenceText, Verdict

EVIDENCE = (
    EvidenceText(1, "The survey counted 4,806 burrows on twelve plots. It was led by Ada Holm."),
    EvidenceText(
        2, "Acme acquired Initech in 2019 for 58 million euros. The deal did not need the consent of the state."
    ),
    EvidenceText(4, "Revenue rose by 12 percent in the third quarter of 2023, while costs fell to 31 million dollars."),
)


@pytest.fixture(scope="module")
def minilm() -> MiniLM:
    return MiniLM(threads=1)


@pytest.fixture(params=["signals", "signals+minilm"])
def verifier(request: pytest.FixtureRequest, minilm: MiniLM) -> OfflineVerifier:
    return OfflineVerifier(minilm if request.param == "signals+minilm" else None)


def judged(verifier: OfflineVerifier, text: str, *cited: int, evidence: Sequence[EvidenceText] = EVIDENCE) -> Verdict:
    (found,) = verifier.verify([Claim(text, 0, len(text), cited)], evidence)
    return found


def quote(found: Verdict) -> str:
    return next(one.text for one in EVIDENCE if one.number == found.passage)[found.quote_start : found.quote_end]


@pytest.mark.parametrize(
    ("text", "number", "said", "not_said"),
    [
        ("The survey counted 4,810 burrows.", 1, "4,806", "4,810"),
        ("Acme acquired Initech in 2017.", 2, "2019", "2017"),
        ("Acme acquired Initech for 58 million dollars.", 2, "58 million euros", "58 million dollars"),
        ("Initech acquired Acme in 2019.", 2, "“Acme acquired Initech”", "“Initech acquired Acme”"),
        ("The deal needed the consent of the state.", 2, "“not need”", "“need”"),
        ("Revenue fell by 12 percent in the third quarter of 2023.", 4, "“rose”", "“fell”"),
        ("Revenue rose by 12 percent in the second quarter of 2023.", 4, "“third quarter”", "“second quarter”"),
        ("The survey was led by Ada Lund.", 1, "“Holm”", "“Lund”"),
    ],
)
def test_what_is_contradicted_says_what_stands_there(
    verifier: OfflineVerifier, text: str, number: int, said: str, not_said: str
) -> None:
    found = judged(verifier, text, number)
    assert found.kind == "CONTRADICTED"
    assert found.reason == f"The passage says {said}, not {not_said}."
    assert found.passage == number
    assert found.score < PARTLY_AT


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("The survey counted 4806 burrows on 12 plots.", 1),
        ("Initech was acquired by Acme in 2019.", 2),
        ("The consent of the state wasn't needed for the deal.", 2),
        ("Costs fell to 31 million dollars in the third quarter of 2023.", 4),
        ("Revenue rose 12% in Q3 2023.", 4),
    ],
)
def test_what_is_said_in_other_words_or_figures_is_no_contradiction(
    verifier: OfflineVerifier, text: str, said: int
) -> None:
    found = judged(verifier, text, said)
    assert found.kind in ("SUPPORTED", "PARTIALLY_SUPPORTED"), found
    assert found.passage == said


def test_a_verbatim_sentence_is_supported_with_its_quote(verifier: OfflineVerifier) -> None:
    found = judged(verifier, "The survey counted 4,806 burrows on twelve plots.", 1)
    assert found.kind == "SUPPORTED"
    assert found.score >= SUPPORTED_AT
    assert quote(found) == "The survey counted 4,806 burrows on twelve plots."


def test_a_claim_that_cites_nothing_is_held_against_all(verifier: OfflineVerifier) -> None:
    found = judged(verifier, "Acme acquired Initech in 2019 for 58 million euros.")
    assert (found.kind, found.passage) == ("SUPPORTED", 2)


def test_another_passage_than_the_cited_one_is_named(verifier: OfflineVerifier) -> None:
    found = judged(verifier, "Acme acquired Initech in 2019 for 58 million euros.", 1)
    assert found.kind == "PARTIALLY_SUPPORTED"
    assert found.reason == "Another passage says it, [2], not the cited [1]."
    assert found.passage == 2
    assert found.score < SUPPORTED_AT


def test_a_citation_of_no_passage_is_unsupported_and_says_so(verifier: OfflineVerifier) -> None:
    found = judged(verifier, "Acme acquired Initech in 2019 for 58 million euros.", 3)
    assert found.kind == "UNSUPPORTED"
    assert found.reason == "It cites [3], and there is no such passage; [2] says it."


def test_one_citation_of_no_passage_beside_a_good_one_shows(verifier: OfflineVerifier) -> None:
    found = judged(verifier, "Acme acquired Initech in 2019 for 58 million euros.", 2, 9)
    assert found.kind == "PARTIALLY_SUPPORTED"
    assert "[9]" in found.reason


def test_a_claim_whose_parts_stand_in_two_cited_passages_is_no_contradiction(verifier: OfflineVerifier) -> None:
    found = judged(verifier, "Acme acquired Initech in 2019, and its revenue rose by 12 percent in 2023.", 2, 4)
    assert found.kind in ("SUPPORTED", "PARTIALLY_SUPPORTED")


def test_a_late_passage_is_read_to_its_end(verifier: OfflineVerifier) -> None:
    filler = "The weather of the valley is mild and the roads are dry. " * 400
    evidence = [EvidenceText(1, f"{filler}The toll on the pass is 17 crowns a cart.")]
    assert judged(verifier, "The toll on the pass is 17 crowns a cart.", 1, evidence=evidence).kind == "SUPPORTED"


def test_a_claim_without_content_is_unverified(verifier: OfflineVerifier) -> None:
    assert judged(verifier, "It is what it is.").kind == "UNVERIFIED"


def test_the_same_claim_has_the_same_verdict_in_any_company(verifier: OfflineVerifier) -> None:
    claims = [Claim("Acme acquired Initech in 2019.", 0, 30, (2,)), Claim("Costs fell by half.", 31, 50, (4,))]
    together = verifier.verify(claims, EVIDENCE)
    for claim, found in zip(claims, together, strict=True):
        (alone,) = verifier.verify([claim], EVIDENCE)
        assert alone.kind == found.kind
        assert alone.score == pytest.approx(found.score, abs=1e-3)


class _Broken:
    """An encoder that fails in a way of its own."""

    name = "broken"

    def __init__(self, fault: Exception | list[Encoding]) -> None:
        self.fault = fault

    def token_offsets(self, text: str) -> list[tuple[int, int]]:
        return [(0, len(text))]

    def encode_documents(self, texts: Sequence[str], *, token_codes: bool = False) -> list[Encoding]:
        if isinstance(self.fault, Exception):
            raise self.fault
        return self.fault


@pytest.mark.parametrize("fault", [RuntimeError("the session is gone"), MemoryError(), TimeoutError("late"), []])
def test_a_failing_encoder_leaves_every_claim_unverified(fault: Exception | list[Encoding]) -> None:
    verifier = OfflineVerifier(cast(Embedder, _Broken(fault)))
    claims = [Claim("Acme acquired Initech in 2019.", 0, 30, (2,)), Claim("Costs fell.", 31, 42)]
    found = verifier.verify(claims, EVIDENCE)
    assert [verdict.claim for verdict in found] == claims
    assert {verdict.kind for verdict in found} == {"UNVERIFIED"}
    assert all(verdict.score == 0.0 and "failed" in verdict.reason for verdict in found)


def test_a_person_who_stops_it_is_heard() -> None:
    with pytest.raises(Cancelled):
        OfflineVerifier(cast(Embedder, _Broken(Cancelled("stopped")))).verify([Claim("Acme fell.", 0, 10)], EVIDENCE)


def test_weights_that_give_no_number_leave_the_claim_unverified() -> None:
    model = read_model({"bias": float("nan"), "weights": {"coverage": 1.0}})
    assert judged(OfflineVerifier(model=model), "Acme acquired Initech in 2019.", 2).kind == "UNVERIFIED"


def test_a_signal_that_does_not_exist_is_refused() -> None:
    with pytest.raises(KeyError):
        read_model({"bias": 0.0, "weights": {"nonsense": 1.0}})


def test_the_shipped_weights_have_the_sign_of_their_meaning() -> None:
    lowers = {"uncovered", "quantities_missing", "names_missing", "names_elsewhere", "quantities_elsewhere"}
    lowers |= {"negation", "opposite", "swap", "personal"}
    for encoder in (True, False):
        weights = dict(zip(NAMES, shipped_model(encoder=encoder).weights.tolist(), strict=True))
        assert all(weight <= 0 for name, weight in weights.items() if name in lowers)
        assert all(weight >= 0 for name, weight in weights.items() if name not in lowers)
        assert any(weights[name] for name in ENCODED) == encoder
