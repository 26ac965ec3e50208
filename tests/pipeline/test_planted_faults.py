"""Forty faults planted by hand, and their clean twins: what verification without a model catches."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from cognicraft.answer.claims import claims
from cognicraft.answer.verify import OfflineVerifier
from cognicraft.models.minilm import MiniLM
from cognicraft.records import EvidenceText, Verdict

TABLE: dict[str, Any] = json.loads(
    (Path(__file__).resolve().parents[1] / "planted_faults.json").read_text(encoding="utf-8")
)
FLAGGED = ("UNSUPPORTED", "CONTRADICTED")


@pytest.fixture(scope="module", params=["signals", "signals+minilm"])
def verifier(request: pytest.FixtureRequest) -> OfflineVerifier:
    return OfflineVerifier(MiniLM(threads=1) if request.param == "signals+minilm" else None)


def verdicts(verifier: OfflineVerifier, pair: dict[str, str], which: str) -> list[Verdict]:
    evidence = [EvidenceText(at, text) for at, text in enumerate(TABLE["documents"][pair["document"]], start=1)]
    found = verifier.verify(claims(pair[which], known=[one.number for one in evidence]), evidence)
    assert found
    return found


def test_there_are_forty_of_ten_kinds() -> None:
    kinds = Counter(pair["kind"] for pair in TABLE["pairs"])
    assert len(TABLE["pairs"]) == 40
    assert set(kinds.values()) == {4}
    assert len(kinds) == 10


def test_at_least_34_faults_are_not_taken_for_supported(verifier: OfflineVerifier) -> None:
    missed = [
        pair["fault"]
        for pair in TABLE["pairs"]
        if all(one.kind == "SUPPORTED" for one in verdicts(verifier, pair, "fault"))
    ]
    assert len(missed) <= 6, missed


def test_at_most_3_clean_twins_are_flagged(verifier: OfflineVerifier) -> None:
    flagged = [
        pair["twin"]
        for pair in TABLE["pairs"]
        if any(one.kind in FLAGGED or one.kind == "UNVERIFIED" for one in verdicts(verifier, pair, "twin"))
    ]
    assert len(flagged) <= 3, flagged


def test_clean_twins_are_mostly_supported(verifier: OfflineVerifier) -> None:
    supported = sum(all(one.kind == "SUPPORTED" for one in verdicts(verifier, pair, "twin")) for pair in TABLE["pairs"])
    assert supported >= 34


@pytest.mark.parametrize("kind", ["number", "year", "unit", "negation", "wrong citation", "missing citation"])
def test_every_fault_of_a_plain_kind_is_caught(verifier: OfflineVerifier, kind: str) -> None:
    for pair in TABLE["pairs"]:
        if pair["kind"] == kind:
            assert any(one.kind != "SUPPORTED" for one in verdicts(verifier, pair, "fault")), pair["fault"]
