"""Rules for every test: no network beyond this machine, one thread pool that does not spin, a skip that CI refuses.

COGNICRAFT_REQUIRE=all makes a skipped test a failed run: `.ci/run` sets it.
"""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from model_servers import llama_server, ollama_server  # noqa: F401  (fixtures)

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
for variable in [name for name in os.environ if name.startswith("COGNICRAFT_")]:
    # A person's own settings must not change what the tests see.
    if variable not in ("COGNICRAFT_REQUIRE", "COGNICRAFT_CACHE") and not variable.startswith("COGNICRAFT_TEST_"):
        del os.environ[variable]

# Nor may a key of theirs be spent, or a model server of theirs answer.
for variable in [name for name in os.environ if name.endswith(("_API_KEY", "_BASE_URL", "_ENDPOINT"))]:
    del os.environ[variable]
os.environ["OLLAMA_HOST"] = "http://127.0.0.1:9"

# Shared machines stall: a deadline would measure the neighbours.
settings.register_profile("tests", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tests")


class NetworkRefused(AssertionError):
    """A test reached for the network."""


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    real = socket.socket.connect

    def connect(self: socket.socket, address: Any) -> None:
        host = address[0] if isinstance(address, tuple) else ""
        if isinstance(address, tuple) and host not in ("127.0.0.1", "::1", "localhost"):
            raise NetworkRefused(f"a test tried to reach {address}")
        real(self, address)

    monkeypatch.setattr(socket.socket, "connect", connect)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own, and no settings file in sight."""
    folder = tmp_path / "home"
    monkeypatch.setenv("COGNICRAFT_HOME", str(folder))
    monkeypatch.chdir(tmp_path)
    return folder


@pytest.fixture
def ordinary_folder(tmp_path: Path) -> Iterator[Path]:
    """A folder of one's own as an ordinary user, whom permissions bind: the superuser becomes `nobody` for the test."""
    if not hasattr(os, "seteuid") or os.geteuid() != 0:
        yield tmp_path
        return
    nobody = 65534
    with tempfile.TemporaryDirectory() as folder:
        os.chown(folder, nobody, nobody)
        os.seteuid(nobody)
        try:
            yield Path(folder)
        finally:
            os.seteuid(0)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skipped = reporter.stats.get("skipped", []) if reporter is not None else []
    if os.environ.get("COGNICRAFT_REQUIRE") == "all" and skipped and exitstatus == 0:
        for report in skipped:
            reporter.write_line(f"skipped, and COGNICRAFT_REQUIRE=all: {report.nodeid}: {report.longrepr}")
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
