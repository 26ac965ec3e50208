"""Verification without a model passes the conformance suite, with an encoder and without."""

from __future__ import annotations

import pytest

from cognicraft.answer.verify import OfflineVerifier
from cognicraft.models.minilm import MiniLM
from cognicraft.testing.verifier import VerifierConformance


class TestWithoutAnEncoder(VerifierConformance):
    @pytest.fixture
    def verifier(self) -> OfflineVerifier:
        return OfflineVerifier()


@pytest.fixture(scope="module")
def minilm() -> MiniLM:
    return MiniLM(threads=1)


class TestWithTheShippedEncoder(VerifierConformance):
    @pytest.fixture
    def verifier(self, minilm: MiniLM) -> OfflineVerifier:
        return OfflineVerifier(minilm)
