"""The reader pool: one bad file costs that file, nothing is left behind, memory stays flat."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cognicraft.errors import CorruptFile, ReadError, ReadMemory, ReadTimeout, Unreadable, UsageError
from cognicraft.ingest.worker import ReaderPool, ReadOutcome

CASES = "reader_cases:read_case"


def make_pool(
    *, workers: int = 1, deadline_s: float = 30, recycle_after: int = 100, limit_mb: int = 1000
) -> ReaderPool:
    return ReaderPool(
        workers=workers, memory_limit_mb=limit_mb, deadline_s=deadline_s, recycle_after=recycle_after, reader=CASES
    )


@pytest.fixture(scope="module")
def pool() -> Iterator[ReaderPool]:
    with make_pool(workers=2) as shared:
        yield shared


def read(pool: ReaderPool, *names: str) -> dict[str, ReadOutcome]:
    outcomes = list(pool.read((name, {}) for name in names))
    assert sorted(outcome.path for outcome in outcomes) == sorted(names)
    return {outcome.path: outcome for outcome in outcomes}


def alive(process_id: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{process_id}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def wait_until_gone(process_id: int) -> bool:
    until = time.monotonic() + 10
    while alive(process_id) and time.monotonic() < until:
        time.sleep(0.02)
    return not alive(process_id)


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("abort", ReadMemory),
        ("vanish", ReadMemory),
        ("greedy", ReadMemory),
        ("segfault", CorruptFile),
        ("broken", CorruptFile),
        ("deep", CorruptFile),
        ("gone", Unreadable),
    ],
)
def test_a_file_that_breaks_its_reader_costs_that_file_only(
    pool: ReaderPool, name: str, error: type[ReadError]
) -> None:
    outcomes = read(pool, "before", name, "after")
    assert type(outcomes[name].error) is error
    assert name in str(outcomes[name].error)
    assert outcomes[name].error.remedy  # type: ignore[union-attr]
    assert outcomes["before"].error is None
    assert len(outcomes["after"].documents) == 1


def test_a_file_over_the_deadline_is_given_up_and_the_others_are_read() -> None:
    with make_pool(workers=2, deadline_s=1) as pool:
        outcomes = read(pool, "hang", "one", "two", "three")
    assert isinstance(outcomes["hang"].error, ReadTimeout)
    assert "1 s" in str(outcomes["hang"].error)
    assert 0.9 < outcomes["hang"].seconds < 10
    assert all(outcomes[name].error is None for name in ("one", "two", "three"))


def test_time_that_the_caller_takes_counts_for_no_deadline() -> None:
    with make_pool(deadline_s=0.6) as pool:
        errors = []
        for outcome in pool.read((name, {}) for name in ("one", "many", "three")):
            errors.append(outcome.error)
            time.sleep(0.3)
    assert len(errors) >= 6
    assert errors == [None] * len(errors)


def test_what_a_library_prints_does_not_reach_the_results(pool: ReaderPool) -> None:
    assert read(pool, "noisy")["noisy"].documents


def test_many_documents_come_in_batches_and_in_order(pool: ReaderPool) -> None:
    outcomes = list(pool.read([("many", {})]))
    assert [outcome.done for outcome in outcomes] == [False] * (len(outcomes) - 1) + [True]
    assert len(outcomes) > 2
    texts = [document.text for outcome in outcomes for document in outcome.documents]
    assert texts == [f"document {number}" for number in range(1000)]


def test_paths_are_taken_only_as_results_are(pool: ReaderPool) -> None:
    taken: list[str] = []

    def endless() -> Iterator[tuple[str, dict[str, object]]]:
        while True:
            taken.append(f"file {len(taken)}")
            yield taken[-1], {}

    stream = pool.read(endless())
    for count in range(1, 20):
        next(stream)
        assert len(taken) <= count + 2
    stream.close()  # type: ignore[attr-defined]
    assert read(pool, "later")["later"].error is None


def test_a_process_is_replaced_after_its_files() -> None:
    with make_pool(recycle_after=2) as pool:
        ids = [outcome.documents[0].text for outcome in pool.read((str(number), {}) for number in range(5))]
    assert ids[0] == ids[1] != ids[2] == ids[3] != ids[4]


def test_closing_leaves_no_process_behind() -> None:
    with make_pool() as pool:
        process_id = int(read(pool, "one")["one"].documents[0].text)
        stream = pool.read([("two", {}), ("hang", {})])
        next(stream)
        assert alive(process_id)
    assert not alive(process_id)
    with pytest.raises(UsageError, match="closed"):
        next(pool.read([]))


def test_a_pool_reads_for_one_caller_at_a_time(pool: ReaderPool) -> None:
    stream = pool.read([("one", {}), ("two", {})])
    next(stream)
    with pytest.raises(UsageError, match="already reading"):
        next(pool.read([("three", {})]))
    list(stream)


def test_a_wrong_option_is_the_callers_error_not_the_files(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("text")
    with ReaderPool(workers=1, memory_limit_mb=1000, deadline_s=30, recycle_after=10) as pool:
        with pytest.raises(UsageError, match="max_file_mb"):
            list(pool.read([(str(path), {"max_file_mb": "many"})]))
        assert [outcome.documents[0].text for outcome in pool.read([(str(path), {})])] == ["text"]


def test_readers_that_cannot_start_end_the_run_with_the_remedy() -> None:
    pool = ReaderPool(workers=1, memory_limit_mb=1000, deadline_s=30, recycle_after=9, reader="no_such_module:read")
    with pool, pytest.raises(UsageError, match="do not start") as caught:
        list(pool.read([("one", {})]))
    assert "worker_main" in caught.value.remedy


@pytest.mark.parametrize("bounds", [{"workers": 0}, {"deadline_s": 0}, {"recycle_after": 0}, {"limit_mb": -1}])
def test_bounds_that_cannot_be_meant_are_refused(bounds: dict[str, int]) -> None:
    with pytest.raises(UsageError):
        make_pool(**bounds)  # type: ignore[arg-type]


SCRIPT = """
print("main runs", flush=True)
from cognicraft.ingest.worker import ReaderPool
pool = ReaderPool(workers=1, memory_limit_mb=1000, deadline_s=300, recycle_after=9, reader="reader_cases:read_case")
with pool:
    for outcome in pool.read([("one", {}), ("hang", {})]):
        print(outcome.documents[0].text, flush=True)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_no_reader_outlives_its_parent_and_the_main_module_runs_once(tmp_path: Path, ending: signal.Signals) -> None:
    script = tmp_path / "program.py"
    script.write_text(SCRIPT)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, str(script)], env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "main runs\n"
        reader = int(program.stdout.readline())
        assert alive(reader)
        program.send_signal(ending)
        assert program.stdout.read() == ""
    assert wait_until_gone(reader)
