"""Kills a process that writes to the Edge engine at random moments and looks at what it left.

    python benchmarks/crash_engine.py [--kills 50] [--seed 0]

After each kill the folder is opened and every document, chunk, token code, count and search is held against the exact
engine holding what was acknowledged; the operation that was cut off must be wholly in or wholly out, a document at a
time. Prints one line a kill and the totals; exit code 1 at the first difference. Three ways of writing take turns:
as it comes, documents larger than one entry of the write-ahead log, and with graph and code files rebuilt all the time.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from cognicraft.engines.edge import EdgeEngine
from cognicraft.records import EncodedDocument
from cognicraft.testing.engine_kill import kill_once
from cognicraft.testing.engine_samples import ARMS

WAYS: Mapping[str, Mapping[str, int]] = {
    "as it comes": {},
    "several log entries": {"POINTS_AT_ONCE": 4},
    "rebuilding": {"TAIL_CHUNKS": 150, "RECLAIM_BYTES": 1000},
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    chance = random.Random(arguments.seed)
    acknowledged = cut_off = 0
    with tempfile.TemporaryDirectory() as folder:
        live: dict[str, Mapping[str, EncodedDocument]] = {}
        for way in WAYS:
            EdgeEngine.create(Path(folder, way), dense=ARMS, token_codes=True).close()
            live[way] = {}
        for number in range(arguments.kills):
            way = list(WAYS)[number % len(WAYS)]
            delay_s = chance.uniform(0.0, 3.0 if way == "rebuilding" else 0.5)
            began = time.perf_counter()
            try:
                report = kill_once(
                    Path(folder, way),
                    seed=arguments.seed * 1000 + number,
                    live=live[way],
                    delay_s=delay_s,
                    constants=WAYS[way],
                )
            except AssertionError as error:
                print(f"kill {number + 1} ({way}, {delay_s:.3f} s): {error}", file=sys.stderr)
                return 1
            live[way] = report.live
            acknowledged += report.acknowledged
            cut_off += report.cut_off
            print(
                f"kill {number + 1:3d}  {way:20s} after {delay_s:5.3f} s  acknowledged {report.acknowledged:4d}  "
                f"cut off {'yes' if report.cut_off else 'no ':3s}  documents {len(report.live):2d}  "
                f"{time.perf_counter() - began:.1f} s",
                flush=True,
            )
    print(
        f"{arguments.kills} kills, {acknowledged} operations acknowledged, {cut_off} cut off: 0 lost, 0 torn, "
        "0 ghosts, 0 duplicates"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
