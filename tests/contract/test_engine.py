"""Every engine that is installed passes the suite that third parties get, and the state machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from cognicraft.engines.edge import EdgeEngine
from cognicraft.engines.memory import MemoryEngine
from cognicraft.errors import EngineError
from cognicraft.protocols import Engine
from cognicraft.testing.engine import EngineConformance, empty, engine_machine
from cognicraft.testing.engine_samples import ARMS

STEPS = settings(max_examples=10, stateful_step_count=12, deadline=None)


class TestMemoryEngine(EngineConformance):
    @pytest.fixture
    def engine(self) -> Iterator[Engine]:
        engine = MemoryEngine(dense=ARMS)
        yield engine
        engine.close()

    def test_any_order_of_operations(self) -> None:
        machine = engine_machine(lambda: MemoryEngine(dense=ARMS))
        run_state_machine_as_test(machine, settings=STEPS)


class OneEdgeEngine:
    """One open engine for many tests, emptied in between: making one and closing one waits for the disk.

    What a test leaves behind in spite of the emptying fails the next one, as it should.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / "workspace"
        self._engine = EdgeEngine.create(self._path, dense=ARMS, token_codes=True)

    def give(self) -> Engine:
        try:
            empty(self._engine)
        except EngineError:
            self._engine = EdgeEngine.open(self._path)
            empty(self._engine)
        return self._engine

    def reopen(self, engine: Engine) -> Engine:
        engine.close()
        self._engine = EdgeEngine.open(self._path)
        return self._engine

    def close(self) -> None:
        self._engine.close()


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OneEdgeEngine]:
    one = OneEdgeEngine(tmp_path_factory.mktemp("edge"))
    yield one
    one.close()


class TestEdgeEngine(EngineConformance):
    @pytest.fixture
    def engine(self, one: OneEdgeEngine) -> Engine:
        self.one = one
        return one.give()

    def reopen(self, engine: Engine) -> Engine:
        return self.one.reopen(engine)

    def test_any_order_of_operations(self, one: OneEdgeEngine) -> None:
        machine = engine_machine(one.give, one.reopen, finish=lambda engine: None)
        run_state_machine_as_test(machine, settings=STEPS)
