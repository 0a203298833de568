"""Sorts a data frame by a column, out of core: it may be many times larger than the object store.

    python set_index.py --size 512MiB --store 128MiB --partitions 50 --workers 2

Sorting moves every row: each of P partitions is split into P parts, and each new partition takes one part of every old one. Data that does not
fit into the store is on disk meanwhile. The number of partitions, workers and the store's size change only how long it takes.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd

import memory
import mobula
import mobula.dask

COLUMNS = 12
UPSAMPLE = 8.0  # by how much more samples Dask takes to find the partitions' limits; by default the largest of ten would be a third too large
ROW = 8 * (1 + COLUMNS)  # bytes: a key and as many numbers, about what a record of the sort benchmarks has


def made(i: int, rows: int) -> pd.DataFrame:
    """One partition, unsorted."""
    rng = np.random.default_rng(i)
    frame = pd.DataFrame(rng.random((COLUMNS, rows)).T, columns=[f"x{n}" for n in range(COLUMNS)], copy=False)
    frame.insert(0, "key", rng.integers(0, 1 << 62, rows))
    return frame


def summary(part: pd.DataFrame, by: str = "") -> pd.DataFrame:
    """One row about a partition, for verified. Sums of keys may overflow; they wrap around before and after sorting alike."""
    keys = (part[by] if by else part.index).to_numpy()
    n = len(keys)
    return pd.DataFrame({
        "rows": [n], "ordered": [by != "" or bool((keys[1:] >= keys[:-1]).all())], "first": [keys[0] if n else 0], "last": [keys[-1] if n else 0],
        "keys": [int(keys.sum())], "values": [float(part["x0"].sum())]})


def verified(before: pd.DataFrame, after: pd.DataFrame) -> None:
    """Verifies that the sorted partitions are in order and have the same rows as before."""
    full = after[after["rows"] > 0]
    if not full["ordered"].all():
        raise SystemExit("a partition is not in order")
    if not (full["first"].to_numpy()[1:] >= full["last"].to_numpy()[:-1]).all():
        raise SystemExit("partitions overlap")
    kept = before["rows"].sum() == after["rows"].sum() and before["keys"].sum() == after["keys"].sum()
    if not kept or not np.isclose(before["values"].sum(), after["values"].sum()):
        raise SystemExit("rows were lost or changed")


def connected(a: argparse.Namespace, limit: int) -> Any:
    """A node of this program's own, or the one at an address, which may be of a cluster."""
    if a.address:
        return mobula.init(a.address)
    settings = {"memory-limit": a.memory or limit, **({"store-spill": a.spill} if a.spill else {})}
    return mobula.init(num_cpus=a.workers, object_store_memory=a.store, settings=settings)


def run(a: argparse.Namespace) -> dict[str, Any]:
    rows = a.size // ROW // a.partitions
    frame = dd.from_map(made, range(a.partitions), rows=rows, meta=made(0, 0), enforce_metadata=False)
    limit = a.store + (256 << 20) + a.workers * (300 << 20)
    with memory.Watch() as used, connected(a, limit), mobula.dask.enable():
        begun = time.perf_counter()
        ordered = frame.set_index("key", upsample=UPSAMPLE, **({"max_branch": float("inf")} if a.one_stage else {}))
        after = ordered.map_partitions(summary, meta=summary(made(0, 0).set_index("key")), enforce_metadata=False).compute()
        done = time.perf_counter()
        store = memory.counted(mobula.status)
        before = frame.map_partitions(summary, by="key", meta=summary(made(0, 0), by="key"), enforce_metadata=False).compute()
    verified(before, after)
    moved = {"rows": int(after["rows"].sum()), "bytes": rows * a.partitions * ROW, "partitions": a.partitions, "seconds": done - begun}
    if a.address:
        return moved
    return {**moved, "store": a.store, "workers": a.workers, "spilled": store["spilled_ever"], "restored": store["restored_ever"], "peak": used.peak,
            "segment": used.segment, "limit": limit}


def main() -> None:
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--size", type=memory.parsed, default="256MiB", help="of the data (%(default)s)")
    flags.add_argument("--store", type=memory.parsed, default="64MiB", help="of the object store, in shared memory (%(default)s)")
    flags.add_argument("--partitions", type=memory.at_least(1), default=20, help="that the data is in (%(default)s)")
    flags.add_argument("--workers", type=memory.at_least(1), default=2, help="processes, one task each at a time (%(default)s)")
    flags.add_argument("--address", default="", help="of a node that runs, as mobula start prints it: it and the others of its cluster have stores and "
                       "workers of their own, which say how large they are and how much memory they take")
    flags.add_argument("--one-stage", action="store_true", help="split each partition into all parts at once (max_branch=inf) and not in stages")
    flags.add_argument("--spill", default="", help="directory for what the store has no room for; the node's own is for temporary files")
    flags.add_argument("--memory", type=memory.parsed, default=0, help="that all processes and the store may take together: with larger heaps the "
                       "store makes do with less (the store's size, 256 MiB, and 300 MiB a worker)")
    flags.add_argument("--json", action="store_true", help="print one JSON object; sizes are bytes, and with --address it has what was sorted alone")
    a = flags.parse_args()
    if a.size < a.partitions * ROW:
        flags.error(f"argument --size: {a.partitions} partitions of a row each are {memory.size(a.partitions * ROW)}: give that or more")
    r = run(a)
    if a.json:
        print(json.dumps(r))
        return
    size = memory.size
    own = "" if a.address else f", a store of {size(a.store)}, {a.workers} workers"
    print(f"{r['rows']} rows, {size(r['bytes'])}, sorted and verified in {r['seconds']:.1f} s: {a.partitions} partitions{own}")
    if not a.address:
        print(f"spilled {size(r['spilled'])}, read back {size(r['restored'])}; memory at most {size(r['peak'])}, {size(r['segment'])} of it shared")


if __name__ == "__main__":
    main()
