"""Killing the process at a random moment loses nothing that was acknowledged and leaves nothing half done."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path

import pytest

from cognicraft.engines.edge import EdgeEngine
from cognicraft.records import EncodedDocument
from cognicraft.testing.engine_kill import kill_once
from cognicraft.testing.engine_samples import ARMS


@pytest.mark.slow
@pytest.mark.parametrize(
    "constants",
    [{}, {"POINTS_AT_ONCE": 4}],
    ids=["one log entry a document", "several log entries a document"],
)
def test_a_kill_at_a_random_moment_leaves_every_document_whole(tmp_path: Path, constants: Mapping[str, int]) -> None:
    folder = tmp_path / "workspace"
    EdgeEngine.create(folder, dense=ARMS, token_codes=True).close()
    chance = random.Random(0)
    live: Mapping[str, EncodedDocument] = {}
    acknowledged = 0
    for seed in range(3):
        report = kill_once(folder, seed=seed, live=live, delay_s=chance.uniform(0.02, 0.3), constants=constants)
        live = report.live
        acknowledged += report.acknowledged
    assert acknowledged > 0
