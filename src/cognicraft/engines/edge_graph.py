"""Brings chunks into the graph of a shard (HNSW) without stopping searches: on a copy, in a process of its own.

Takes the folder of a shard that nobody writes to meanwhile and the place for a copy; leaves the copy optimized.
`EdgeShard.optimize` holds Python's interpreter lock for as long as it works (measured: no other thread moved in 4.3 s),
so it may not run in the process that answers questions, shows progress and has to hear Ctrl-C.

Cost: 0.5 to 1 CPU-ms for a chunk outside the graph, and the size of the shard on the disk while it runs.
What can go wrong: no room for the copy, the process is ended; then the old shard stays as it is.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from cognicraft.errors import EngineError

_BLOCK = 64 * 1024
_SOURCE_ROOT = Path(__file__).resolve().parents[2]


def build_graph(shard: Path, *, copy: Path, dense: Mapping[str, int]) -> None:
    """Raises EngineError, with nothing left behind, where it did not come to its end."""
    try:
        _copy(shard, copy)
        path = os.pathsep.join(filter(None, [str(_SOURCE_ROOT), os.environ.get("PYTHONPATH", "")]))
        arguments = [str(copy), json.dumps(dict(dense)), str(os.getpid())]
        done = subprocess.run(
            [sys.executable, "-m", "cognicraft.engines.edge_graph", *arguments],
            env={**os.environ, "PYTHONPATH": path},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            check=False,
        )
        if done.returncode != 0:
            reason = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
            raise EngineError(
                f"The index could not be built: {reason or f'its process ended with {done.returncode}'}.",
                remedy="Searches go on, slower. Check memory and disk; the next write tries again.",
            )
    except BaseException as error:
        shutil.rmtree(copy, ignore_errors=True)
        if isinstance(error, OSError):
            raise EngineError(
                f"The index could not be built: {error}.",
                remedy="Searches go on, slower. Check memory and disk; the next write tries again.",
            ) from error
        raise


def _copy(shard: Path, copy: Path) -> None:
    """A shard makes the next file of its log in the background and renames it: one may vanish from the copy."""
    for attempt in range(5):
        try:
            shutil.copytree(shard, copy, copy_function=_copy_file)
        except (FileNotFoundError, shutil.Error):
            if attempt == 4:
                raise
            shutil.rmtree(copy, ignore_errors=True)
            time.sleep(0.1 * 2**attempt)
        else:
            return


def _copy_file(source: str, target: str) -> None:
    """Keeps holes: the shard's files are long and mostly empty."""
    zeros = bytes(_BLOCK)
    with Path(source).open("rb") as reader, Path(target).open("wb") as writer:
        while block := reader.read(_BLOCK):
            if block == zeros[: len(block)]:
                writer.seek(len(block), os.SEEK_CUR)
            else:
                writer.write(block)
        writer.truncate()


def _main(folder: str, dense: str, parent: str) -> None:
    from cognicraft.engines.edge_shard import Shard

    _end_with_parent(int(parent))
    shard = Shard.load(Path(folder), dense=json.loads(dense))
    shard.optimize()
    shard.flush()
    shard.close()


def _end_with_parent(parent: int) -> None:
    """On Linux: do not go on working for a process that was killed. Elsewhere the copy is swept at the next open."""
    if sys.platform == "linux":
        import ctypes
        import signal

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # 1 is PR_SET_PDEATHSIG
        if os.getppid() != parent:
            sys.exit(1)


if __name__ == "__main__":
    _main(*sys.argv[1:])
