"""The kill test of a durable engine: a child process writes, is killed at a random moment, and its folder is looked at.

Run as `python -m cognicraft.testing.engine_kill FOLDER SEED [NAME=NUMBER ...]` it is the child: it opens the engine in
FOLDER and goes through the operations of SEED for as long as it lives, saying on standard output what it begins and
what was acknowledged. `kill_once` is the parent.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cognicraft.engines import edge, edge_store
from cognicraft.engines.edge import EdgeEngine
from cognicraft.engines.memory import MemoryEngine
from cognicraft.records import AllOf, EncodedDocument
from cognicraft.testing.engine import assert_same, assert_same_search
from cognicraft.testing.engine_samples import ARMS, document_id, sample_document

NAMES = tuple(f"document {number}" for number in range(12))
_WORDS = ("red", "blue", "fox", "bear", "runs", "sleeps", "old", "new")
_SOURCE_ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Operation:
    """Documents to put in, or names to take out."""

    put: Sequence[EncodedDocument] = ()
    remove: Sequence[str] = ()

    @property
    def after(self) -> dict[str, EncodedDocument | None]:
        """What each document that it touches is afterwards; None for gone."""
        return dict.fromkeys(map(document_id, self.remove)) | {one.record.id: one for one in self.put}


@dataclass(frozen=True, slots=True)
class KillReport:
    """What one kill did: operations acknowledged, whether one was cut off, and the live set that was found."""

    acknowledged: int
    cut_off: bool
    live: Mapping[str, EncodedDocument]


def operation(seed: int, number: int) -> Operation:
    """The operation of that number in the run of that seed: parent and child make the same."""
    chance = random.Random(f"{seed} {number}")
    names = chance.sample(NAMES, chance.randint(1, 4))
    if chance.random() < 0.25:
        return Operation(remove=names)
    return Operation(
        put=[
            sample_document(
                name,
                [" ".join(chance.choices(_WORDS, k=chance.randint(1, 6))) for _ in range(chance.randint(0, 30))],
                # Now and then the same revision again, with other chunks.
                revision=str(chance.randint(0, 3)),
                language=chance.choice(("en", "de", "")),
                metadata={"number": number},
            )
            for name in names
        ]
    )


def kill_once(
    folder: Path, *, seed: int, live: Mapping[str, EncodedDocument], delay_s: float, constants: Mapping[str, int]
) -> KillReport:
    """Let a child write, kill it `delay_s` after it began, open what it left and hold it against the exact engine.

    `live` is what the folder holds before. Raises AssertionError for a lost, torn, ghost or duplicate document.
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(_SOURCE_ROOT), os.environ.get("PYTHONPATH", "")])}
    child = subprocess.Popen(
        [sys.executable, "-m", "cognicraft.testing.engine_kill", str(folder), str(seed)]
        + [f"{name}={number}" for name, number in constants.items()],
        stdout=subprocess.PIPE,
        env=environment,
        text=True,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "open\n", "the child could not open the engine"
    time.sleep(delay_s)
    os.kill(child.pid, signal.SIGKILL)
    lines = child.stdout.read().splitlines()
    child.stdout.close()
    child.wait()
    begun = [int(line.split()[1]) for line in lines if line.startswith("begin ") and line.endswith(" .")]
    done = [int(line.split()[1]) for line in lines if line.startswith("done ") and line.endswith(" .")]
    before = dict(live)
    for number in done:
        _apply(before, operation(seed, number).after)
    cut_off = operation(seed, begun[-1]).after if len(begun) > len(done) else {}
    with contextlib.closing(EdgeEngine.open(folder)) as engine:
        # Each document of the operation that was cut off is as it was before, or as it is after: nothing in between.
        found = dict(before)
        for identifier, document in cut_off.items():
            if engine.document(identifier) == (document.record if document else None):
                _apply(found, {identifier: document})
        oracle = MemoryEngine(dense=ARMS)
        oracle.replace(list(found.values()))
        assert_same(engine, oracle)
        for text in ("red fox", "old bear runs"):
            for limit in (5, 10_000):
                assert_same_search(engine, oracle, text=text, boolean=AllOf(()), where=None, limit=limit)
    return KillReport(acknowledged=len(done), cut_off=bool(cut_off), live=found)


def _apply(live: dict[str, EncodedDocument], changes: Mapping[str, EncodedDocument | None]) -> None:
    for identifier, document in changes.items():
        if document is None:
            live.pop(identifier, None)
        else:
            live[identifier] = document


def _child(folder: str, seed: str, *constants: str) -> None:
    for constant in constants:
        name, _, value = constant.partition("=")
        module = edge_store if hasattr(edge_store, name) else edge
        setattr(module, name, int(value))
    engine = EdgeEngine.open(Path(folder))
    print("open", flush=True)
    number = 0
    while True:
        what = operation(int(seed), number)
        print(f"begin {number} .", flush=True)
        if what.put:
            engine.replace(what.put)
        else:
            engine.delete([document_id(name) for name in what.remove])
        print(f"done {number} .", flush=True)
        number += 1


if __name__ == "__main__":
    _child(*sys.argv[1:])
