"""Kill ingest at random moments and count what is lost, left over or doubled.

usage: crash.py [--kills 50] [--files 120] [--seed 0]

Each round changes, adds and removes some files, starts a real ingest in a process of its own, and kills it (SIGKILL) at
a random moment. The parent then opens the workspace and compares every chunk in it with the files. At the end one run
goes through. Lost: a file that was reported as done, or was there before the run, and is not found. Ghost: text that is
neither the file's present one nor what was held before the run. Duplicate: the same span of a document stored twice.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from cognicraft import Workspace

CHILD = """
import sys
from cognicraft import Workspace
home, folder = sys.argv[1:]
def show(now):
    print(now.files_done, flush=True)
with Workspace("crash", home=home, settings={"ingest.workers": 1}) as workspace:
    print("start", flush=True)
    report = workspace.ingest(folder, prune=True, progress=show)
    print("end", report.unchanged + report.added + report.changed, flush=True)
"""


@dataclass
class Counts:
    """Faults found, and at what step the kills fell."""

    lost: int = 0
    ghosts: int = 0
    duplicates: int = 0
    half: int = 0
    moments: Counter[str] = field(default_factory=Counter)


def text_of(name: str, version: int, generator: random.Random) -> str:
    paragraphs = generator.randint(1, 12)
    return "\n\n".join(
        f"File {name} in version {version}, paragraph {number}: "
        + " ".join(generator.choice(WORDS) for _ in range(generator.randint(20, 90)))
        + "."
        for number in range(paragraphs)
    )


WORDS = [
    "lamp",
    "repair",
    "river",
    "stone",
    "copper",
    "ledger",
    "signal",
    "harbour",
    "winter",
    "motor",
    "glass",
    "field",
]


def mutate(folder: Path, versions: dict[str, int], generator: random.Random, wanted: int) -> None:
    """Change a third of the files, drop a few, add up to the wanted number."""
    for name in sorted(versions):
        draw = generator.random()
        if draw < 0.05:
            (folder / name).unlink()
            del versions[name]
        elif draw < 0.35:
            versions[name] += 1
            write(folder, name, versions[name], generator)
    number = 0
    while len(versions) < wanted:
        name = f"{generator.randrange(10**6):06}.txt"
        if name not in versions:
            versions[name] = number
            write(folder, name, number, generator)


def write(folder: Path, name: str, version: int, generator: random.Random) -> None:
    temporary = folder / f".{name}.tmp"
    temporary.write_text(text_of(name, version, generator), encoding="utf-8")
    temporary.replace(folder / name)


def check(
    home: Path, folder: Path, before: dict[str, str], done: int, counts: Counts, *, final: bool
) -> dict[str, str]:
    """Compare the workspace with the files and with what it held before the run; return what it holds now."""
    now = {str(path): path.read_text(encoding="utf-8") for path in folder.glob("*.txt")}
    held: dict[str, str] = {}
    with Workspace("crash", home=home) as workspace:
        if not workspace.exists():
            return held
        current = chunk_total = 0
        for info in workspace.documents(failed=False):
            chunks = workspace.chunks_of(info.id)
            chunk_total += len(chunks)
            counts.half += len(chunks) != info.chunks
            spans = Counter((chunk.start, chunk.end) for chunk in chunks)
            counts.duplicates += sum(count - 1 for count in spans.values())
            text = workspace.document(info.id).text
            held[info.file] = text
            if text.split() == now.get(info.file, "").split():
                current += 1
            elif final or text != before.get(info.file):
                counts.ghosts += 1
        # Chunks that belong to no document record would be found by search alone.
        counts.ghosts += max(0, workspace.info().chunks - chunk_total)
    counts.lost += sum(1 for name in now if name not in held and (final or name in before))
    counts.lost += max(0, done - current)
    return held


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--files", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, default=Path("benchmarks/results/crash.json"))
    arguments = parser.parse_args()
    generator = random.Random(arguments.seed)
    counts = Counts()
    started = time.time()
    with tempfile.TemporaryDirectory() as temporary:
        home, folder = Path(temporary, "home"), Path(temporary, "files")
        folder.mkdir()
        versions: dict[str, int] = {}
        mutate(folder, versions, generator, arguments.files)
        _, _, whole_run_s = run_child(home, folder, kill_after_s=None)
        before = check(home, folder, {}, 0, counts, final=True)
        kills = 0
        while kills < arguments.kills:
            mutate(folder, versions, generator, arguments.files)
            done, ended, seconds = run_child(home, folder, kill_after_s=generator.uniform(0.0, whole_run_s))
            if ended:
                # Too late to kill anything: aim earlier next time.
                whole_run_s = seconds
            else:
                kills += 1
                counts.moments["before the first batch" if done == 0 else "between or in batches"] += 1
            before = check(home, folder, before, done, counts, final=ended)
            print(f"\r{kills} kills, {time.time() - started:.0f} s", end="", file=sys.stderr, flush=True)
        run_child(home, folder, kill_after_s=None)
        check(home, folder, before, 0, counts, final=True)
    result = {
        "kills": kills,
        "lost": counts.lost,
        "ghosts": counts.ghosts,
        "duplicates": counts.duplicates,
        "half_written_documents": counts.half,
        "moments": dict(counts.moments),
        "seed": arguments.seed,
        "seconds": round(time.time() - started),
    }
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    arguments.json.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    print(f"\r{json.dumps(result)}")
    return 1 if counts.lost or counts.ghosts or counts.duplicates or counts.half else 0


def run_child(home: Path, folder: Path, *, kill_after_s: float | None) -> tuple[int, bool, float]:
    """Files reported as done, whether it came to its end, and its seconds after the start."""
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(home), str(folder)], stdout=subprocess.PIPE, text=True, env=os.environ
    )
    assert child.stdout is not None
    assert child.stdout.readline().strip() == "start"
    started = time.monotonic()
    if kill_after_s is not None:
        time.sleep(kill_after_s)
        child.send_signal(signal.SIGKILL)
    lines = [line.strip() for line in child.stdout]
    child.wait()
    done = max((int(line) for line in lines if line.isdigit()), default=0)
    return done, any(line.startswith("end") for line in lines), time.monotonic() - started


if __name__ == "__main__":
    sys.exit(main())
