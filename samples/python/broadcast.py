"""Passes one large array to many tasks. There is a single copy of it, which every task reads in place.

    python broadcast.py --size 1GiB --tasks 100 --workers 2

There are four runs: two kinds of tasks, each as plain tasks and as a Dask graph. The first kind sums the array by NumPy, which releases the
GIL. The second picks 10,000 items in a Python loop, which holds the GIL: in threads such tasks would wait for each other.
"""

from __future__ import annotations

import argparse
import random
import time
from typing import Any, Callable

import dask
import numpy as np
from dask.delayed import Delayed

import memory
import mobula
import mobula.dask

PICKS = 10_000
RANGE = 1000  # item i is i % RANGE


def made(n: int) -> Any:
    return np.arange(n, dtype=np.float64) % RANGE


def total(array: Any, i: int) -> float:
    """Sums by NumPy, without the GIL."""
    return float(array.sum())


def picked(array: Any, i: int) -> float:
    """Sums in a Python loop, which holds the GIL."""
    pick = random.Random(i)
    return float(sum(array[pick.randrange(len(array))] for _ in range(PICKS)))


def plain(array: Any, task: Callable[[Any, int], float], tasks: int) -> list[float]:
    remote = mobula.remote(task)
    return list(mobula.get([remote.remote(array, i) for i in range(tasks)]))


def graph(array: Any, task: Callable[[Any, int], float], tasks: int) -> list[float]:
    delayed = dask.delayed(task)
    return list(dask.compute(*[delayed(array, i) for i in range(tasks)]))


def expected(task: Callable[[Any, int], float], n: int, tasks: int) -> list[float]:
    if task is total:
        return [float(n // RANGE * (RANGE * (RANGE - 1) // 2) + sum(range(n % RANGE)))] * tasks
    picks = [random.Random(i) for i in range(tasks)]
    return [float(sum(pick.randrange(n) % RANGE for _ in range(PICKS))) for pick in picks]


def main() -> None:
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--size", type=memory.parsed, default="256MiB", help="of the array (%(default)s)")
    flags.add_argument("--tasks", type=memory.at_least(1), default=100, help="that read it (%(default)s)")
    flags.add_argument("--workers", type=memory.at_least(1), default=2, help="processes, one task each at a time (%(default)s)")
    a = flags.parse_args()
    if a.size < 8:
        flags.error("argument --size: a number has 8 bytes: give that or more")
    n = a.size // 8
    with mobula.init(num_cpus=a.workers, object_store_memory=a.size + (64 << 20)), mobula.dask.enable():
        begun = time.perf_counter()
        ref = mobula.put(made(n))  # the only copy: the original is deleted
        print(f"array of {memory.size(a.size)} made and put in {time.perf_counter() - begun:.2f} s")
        for task, what in (total, "sum it"), (picked, f"pick {PICKS} items, holding the GIL"):
            want = expected(task, n, a.tasks)
            for how, run in ("plain", plain), ("Dask", graph):
                with memory.Watch() as used:
                    begun = time.perf_counter()
                    got = run(ref if run is plain else persisted(ref), task, a.tasks)
                    took = time.perf_counter() - begun
                if got != want:
                    raise SystemExit(f"{how} tasks that {what}: wrong results")
                print(f"{a.tasks} {how} tasks {what}: {took:.2f} s, memory of all processes at most {memory.size(used.peak)}")
        held = memory.counted(mobula.status)["held"]
    print(f"all results are right; the object store holds {memory.size(held)}: one copy of the array")
    if held > 1.1 * a.size:
        raise SystemExit("that is more than one copy")


def persisted(ref: Any) -> Any:
    """The array as a persisted Dask collection: a graph with a reference in it."""
    return Delayed("array", {"array": ref})


if __name__ == "__main__":
    main()
