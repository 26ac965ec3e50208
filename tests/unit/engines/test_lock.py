from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cognicraft.engines.lock import WorkspaceLock, lock_holder
from cognicraft.errors import EngineError, WorkspaceLocked

HOLD = """
import sys, time
from pathlib import Path
from cognicraft.engines.lock import WorkspaceLock
lock = WorkspaceLock(Path(sys.argv[1]), command="holder --of the lock")
lock.announce("http://127.0.0.1:8000")
print("held", flush=True)
time.sleep(60)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    folder = tmp_path / "papers"
    folder.mkdir()
    return folder / "lock"


def test_a_second_lock_names_the_holder(path: Path) -> None:
    first = WorkspaceLock(path, command="cognicraft ingest papers")
    with pytest.raises(WorkspaceLocked) as caught:
        WorkspaceLock(path)
    assert f"papers is in use by process {os.getpid()} (cognicraft ingest papers) since {first.holder.started}" in str(
        caught.value
    )
    first.release()
    WorkspaceLock(path).release()


def test_the_holder_can_be_read_while_it_holds_and_only_then(path: Path) -> None:
    assert lock_holder(path) is None
    lock = WorkspaceLock(path, command="serve")
    lock.announce("http://127.0.0.1:8000")
    holder = lock_holder(path)
    assert holder == lock.holder
    assert holder is not None
    assert (holder.pid, holder.command, holder.url) == (os.getpid(), "serve", "http://127.0.0.1:8000")
    lock.announce(None)
    assert lock_holder(path) == lock.holder
    lock.release()
    assert lock_holder(path) is None


def test_a_lock_goes_with_a_killed_process(path: Path) -> None:
    source = Path(__file__).parents[3] / "src"
    child = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(source)}
    )
    assert child.stdout is not None
    assert child.stdout.readline() == b"held\n"
    with pytest.raises(WorkspaceLocked, match="Ask the server at http://127") as caught:
        WorkspaceLock(path)
    assert str(child.pid) in str(caught.value)
    child.kill()
    child.wait()
    child.stdout.close()
    assert lock_holder(path) is None
    WorkspaceLock(path).release()


def test_releasing_twice_is_no_error_and_announcing_after_it_is_one(path: Path) -> None:
    lock = WorkspaceLock(path)
    lock.release()
    lock.release()
    with pytest.raises(EngineError):
        lock.announce("http://127.0.0.1:1")


def test_a_folder_that_is_not_there_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="nowhere"):
        WorkspaceLock(tmp_path / "nowhere" / "lock")
