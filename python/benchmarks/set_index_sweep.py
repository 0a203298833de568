"""Sorts one data frame with several numbers of partitions and workers and sizes of the store. It must work with all of them.

    make set-index-sweep ARGS="--size 2GiB"

Each run is samples/python/set_index.py in a process of its own, which verifies the order. The memory of all processes and the segment may be at
most the store, 256 MiB, and 300 MiB per worker. The exit code is 1 if a run failed or took more.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import subprocess
import sys
from typing import Any, Optional

SAMPLES = pathlib.Path(__file__).resolve().parents[2] / "samples" / "python"
SHAPES = ((10, 3), (100, 5), (500, 5))  # partitions, and the size of the data in multiples of the store
WORKERS = (1, 2, 4)
MIB = 1 << 20


def run(size: int, partitions: int, times: int, workers: int, more: list[str], timeout: float) -> Optional[dict[str, Any]]:
    flags = ["--size", str(size), "--store", str(size // times), "--partitions", str(partitions), "--workers", str(workers), "--json", *more]
    try:
        done = subprocess.run([sys.executable, SAMPLES / "set_index.py", *flags], capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        print(f"{partitions} partitions, {workers} workers: not done in {timeout:.0f} s", file=sys.stderr)
        return None
    if done.returncode:
        print(f"{partitions} partitions, {workers} workers: {(done.stderr + done.stdout).strip()}", file=sys.stderr)
        return None
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def main() -> int:
    sys.path.insert(0, os.fspath(SAMPLES))
    import memory

    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--size", type=memory.parsed, default="2GiB", help="of the data (%(default)s)")
    flags.add_argument("--timeout", type=float, default=600, help="seconds that a run may take (%(default)s)")
    flags.add_argument("--one-stage", action="store_true", help="as the sample's")
    a = flags.parse_args()
    bad = 0
    print(f"{'partitions':>10} {'store':>9} {'workers':>7} {'time':>8} {'PSS+segment':>12} {'limit':>9} {'spilled':>9} {'restored':>9}")
    for partitions, times in SHAPES:
        for workers in WORKERS:
            r = run(a.size, partitions, times, workers, ["--one-stage"] if a.one_stage else [], a.timeout)
            head = f"{partitions:>10} {a.size // times // MIB:>5} MiB {workers:>7} "
            if r is None:
                print(head + "failed")
                bad += 1
                continue
            over = r["peak"] > r["limit"]
            bad += over
            print(head + f"{r['seconds']:>6.1f} s {r['peak'] // MIB:>8} MiB {r['limit'] // MIB:>5} MiB {r['spilled'] // MIB:>5} MiB "
                  f"{r['restored'] // MIB:>5} MiB{'  too much' if over else ''}", flush=True)
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
