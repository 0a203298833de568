"""The driver makes an array of 1 GiB and passes it to 100 tasks, each of which sums it.

A variant has tasks that also hold the GIL for a while. The time is from before the array is made to the last sum.
"""

from __future__ import annotations

import random
import time
from typing import Any, Callable, Mapping

from .. import sessions
from ..measure import expect
from ..workload import Metric, Params, Workload


def _fill(array: Any) -> None:
    array.fill(1.0)
    array[::1000] = 2.0


def _made(p: Params) -> Any:
    import numpy as np

    array = np.empty(p["bytes"] // 8)
    _fill(array)
    return array


def _sum(p: Params) -> float:
    n = p["bytes"] // 8
    return float(n + (n + 999) // 1000)


def total(array: Any, i: int) -> float:
    return float(array.sum())


def picked_total(array: Any, i: int) -> float:
    """The sum, after a loop in Python, which holds the GIL."""
    pick, n, picked = random.Random(i), len(array), 0.0
    for _ in range(10_000):
        picked += array[pick.randrange(n)]
    return float(array.sum())


def _same(x: int) -> int:
    return x


def _mobula_put(api: Any, p: Params) -> Any:
    """Writes the array in place in the store, so that there is only one copy."""
    with api.create(p["bytes"] // 8) as buffer:
        _fill(buffer.array)
        return buffer.put()


def _ray_put(api: Any, p: Params) -> Any:
    return api.put(_made(p))


def _run(session: sessions.Api, put: Callable[[Any, Params], Any], p: Params) -> Mapping[str, float]:
    with session() as api:
        task = api.remote(p["task"])
        api.get([api.remote(_same).remote(i) for i in range(20)])
        begun = time.perf_counter()
        array = put(api, p)
        expect(api.get([task.remote(array, i) for i in range(p["tasks"])]), [_sum(p)] * p["tasks"])
        return {"time": time.perf_counter() - begun}


def _ray_dask(p: Params) -> Mapping[str, float]:
    import dask

    with sessions.dask_on_ray(sessions.STORE) as get:
        begun = time.perf_counter()
        array = dask.delayed(_made, pure=False)(p)  # a literal of this size would be copied into every task
        sums = dask.compute(*[dask.delayed(p["task"], pure=False)(array, i) for i in range(p["tasks"])], scheduler=get)
        expect(sums, (_sum(p),) * p["tasks"])
        return {"time": time.perf_counter() - begun}


def _dask(p: Params) -> Mapping[str, float]:
    with sessions.dask() as client:
        client.gather(client.map(_same, range(20)))
        begun = time.perf_counter()
        array = client.scatter(_made(p), hash=False)
        sums = client.gather(client.map(p["task"], [array] * p["tasks"], range(p["tasks"]), pure=False))
        expect(sums, [_sum(p)] * p["tasks"])
        return {"time": time.perf_counter() - begun}


def _dask_threads(p: Params) -> Mapping[str, float]:
    import dask

    begun = time.perf_counter()
    array = dask.delayed(_made(p))
    sums = dask.compute(*[dask.delayed(p["task"])(array, i) for i in range(p["tasks"])], scheduler="threads",
                        num_workers=sessions.CPUS)
    expect(sums, (_sum(p),) * p["tasks"])
    return {"time": time.perf_counter() - begun}


def _workload(name: str, what: str, task: Callable[[Any, int], float]) -> Workload:
    return Workload(
        name, what, (Metric("time", "s", wants={"dask-threads": 1 / 1.1}),),
        {"mobula": lambda p: _run(sessions.mobula, _mobula_put, p), "ray": lambda p: _run(sessions.ray, _ray_put, p),
         "ray-dask": _ray_dask, "dask": _dask, "dask-threads": _dask_threads},
        {"bytes": sessions.GIB, "tasks": 100, "task": task}, {"bytes": 64 * sessions.MIB, "tasks": 20},
        peak=Metric("", "MiB", at_most=1.3 * 1024))


WORKLOADS = [_workload("broadcast", "1 GiB to 100 tasks that sum it", total),
             _workload("broadcast-gil", "the same by tasks that hold the GIL for a while", picked_total)]
