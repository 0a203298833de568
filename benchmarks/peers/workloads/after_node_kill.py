"""The time from the kill of all processes of a node until the task that ran there runs on another one.

Both nodes have run a task before, so that no system starts a process for this one.
"""

from __future__ import annotations

import os
import tempfile
import time
from typing import Any, Callable, Mapping

from .. import clusters, sessions
from ..measure import expect
from ..workload import Metric, Params, Workload

LOOK = 0.002  # seconds between looks
SPARES = (1, 2)  # the nodes that may run the task


def here() -> int:
    return os.getpid()


def held(folder: str) -> int:
    """Notes its process, and ends once it may."""
    with open(os.path.join(folder, str(os.getpid())), "w"):
        pass
    while not os.path.exists(os.path.join(folder, "go")):
        time.sleep(LOOK)
    return os.getpid()


def _noted(folder: str, processes: int) -> set[int]:
    """Waits until so many have noted themselves."""
    while len(found := {int(f) for f in os.listdir(folder)}) < processes:
        time.sleep(LOOK)
    return found


def _lose(c: clusters.Cluster, submit: Callable[[str], Any], result: Callable[[Any], int]) -> Mapping[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        ref = submit(folder)
        (first,) = _noted(folder, 1)
        begun = time.perf_counter()
        c.kill(c.node_of(first))
        (second,) = _noted(folder, 2) - {first}
        took = time.perf_counter() - begun
        with open(os.path.join(folder, "go"), "w"):
            pass
        expect(result(ref), second)
        return {"time": took}


def _run(start: clusters.Start, p: Params) -> Mapping[str, float]:
    with start(3, p["store"]) as c:
        c.api.get([c.api.remote(here).options(num_cpus=0, **clusters.on(node)).remote() for node in SPARES])
        task = c.api.remote(held).options(num_cpus=0, **clusters.SPARE)
        return _lose(c, task.remote, c.api.get)


def _dask(p: Params) -> Mapping[str, float]:
    with clusters.dask(3) as c:
        for node in SPARES:
            c.api.submit(here, pure=False, **clusters.on(node)).result()
        return _lose(c, lambda folder: c.api.submit(held, folder, pure=False, **clusters.SPARE), lambda f: int(f.result()))


WORKLOADS = [Workload(
    "after-node-kill", "the kill of a node, until its task runs on another", (Metric("time", "s", wants={"ray": 1, "dask": 1}),),
    {"mobula": lambda p: _run(clusters.mobula, p), "ray": lambda p: _run(clusters.ray, p), "dask": _dask},
    {"store": 256 * sessions.MIB})]
