"""Arrays from one node to others.

transfer: an array that a task on one node has made is the argument of a task on another. broadcast: an array that the driver has put is the
argument of a task on each of three nodes. First is into fresh memory; again is into memory that held one before.
"""

from __future__ import annotations

import statistics
import time
from typing import Any, Callable, Mapping, Sequence

from .. import clusters, sessions
from ..measure import expect, seconds
from ..workload import Metric, Params, Workload

PAUSE = 0.5  # seconds for a system to free a released object


def made(n: int, mark: float) -> Any:
    import numpy as np

    return np.full(n // 8, mark)


def ends(array: Any) -> tuple[int, float, float]:
    return array.nbytes, float(array[0]), float(array[-1])


def _rates(p: Params, bring: Callable[[float], Any], take: Callable[[Any], Sequence[Any]]) -> Mapping[str, float]:
    """bring has an object where it is to come from, take has tasks read it elsewhere."""
    def once(mark: float) -> float:
        there = bring(mark)
        got: list[Any] = []
        took = seconds(lambda: got.extend(take(there)))
        expect(got, [(p["bytes"], mark, mark)] * p["to"])
        return float(p["bytes"] / sessions.GIB / took)

    out: list[float] = []
    for i in range(p["times"]):
        out.append(once(float(i + 1)))
        time.sleep(PAUSE)  # what it was read from goes
    return {"first": out[0], "again": statistics.median(out[1:])}


def _transfer(start: clusters.Start, p: Params) -> Mapping[str, float]:
    with start(3, p["store"]) as c:
        make, read = c.api.remote(made), c.api.remote(ends)

        def bring(mark: float) -> Any:
            ref = make.options(**clusters.on(1)).remote(p["bytes"], mark)
            c.api.get(read.options(**clusters.on(1)).remote(ref))  # by then it is there
            return ref

        c.api.get(read.options(**clusters.on(2)).remote(c.api.put(made(8, 0))))  # its worker is up, and has NumPy
        return _rates(p, bring, lambda ref: [c.api.get(read.options(**clusters.on(2)).remote(ref))])


def _transfer_dask(p: Params) -> Mapping[str, float]:
    with clusters.dask(3) as c:
        def bring(mark: float) -> Any:
            future = c.api.submit(made, p["bytes"], mark, pure=False, **clusters.on(1))
            c.api.submit(ends, future, pure=False, **clusters.on(1)).result()
            return future

        c.api.submit(ends, made(8, 0), pure=False, **clusters.on(2)).result()
        return _rates(p, bring, lambda f: [c.api.submit(ends, f, pure=False, **clusters.on(2)).result()])


def _broadcast(start: clusters.Start, p: Params) -> Mapping[str, float]:
    with start(1 + p["to"], p["store"]) as c:
        tasks = [c.api.remote(ends).options(**clusters.on(1 + i)) for i in range(p["to"])]
        c.api.get([t.remote(made(8, 0)) for t in tasks])
        return _rates(p, lambda mark: c.api.put(made(p["bytes"], mark)), lambda ref: c.api.get([t.remote(ref) for t in tasks]))


def _broadcast_dask(p: Params) -> Mapping[str, float]:
    with clusters.dask(1 + p["to"]) as c:
        first = next(a for a, w in c.api.scheduler_info()["workers"].items() if "node0" in w["resources"])

        def take(future: Any) -> Sequence[Any]:
            return list(c.api.gather([c.api.submit(ends, future, pure=False, **clusters.on(1 + i)) for i in range(p["to"])]))

        take(made(8, 0))
        return _rates(p, lambda mark: c.api.scatter(made(p["bytes"], mark), workers=[first], hash=False), take)


METRICS = (Metric("first", "GiB/s", more_is_better=True, wants={"ray": 1, "dask": 1}),
           Metric("again", "GiB/s", more_is_better=True, wants={"ray": 1, "dask": 1}))

WORKLOADS = [
    Workload("transfer-1g", "1 GiB from one node to another", METRICS,
             {"mobula": lambda p: _transfer(clusters.mobula, p), "ray": lambda p: _transfer(clusters.ray, p), "dask": _transfer_dask},
             {"bytes": sessions.GIB, "to": 1, "times": 4, "store": 3 * sessions.GIB // 2}, {"bytes": 16 * sessions.MIB, "store": 256 * sessions.MIB}),
    Workload("broadcast-256m-3", "256 MiB from the driver to three nodes", METRICS,
             {"mobula": lambda p: _broadcast(clusters.mobula, p), "ray": lambda p: _broadcast(clusters.ray, p), "dask": _broadcast_dask},
             {"bytes": 256 * sessions.MIB, "to": 3, "times": 4, "store": 640 * sessions.MIB}, {"bytes": 16 * sessions.MIB, "store": 256 * sessions.MIB})]
