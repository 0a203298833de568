"""Workloads that compute one Dask collection, with the same Dask on Mobula, on Dask's own cluster and on Ray.

First a collection of the size in the parameter "warm" is computed, so that the workers have imported what they need.
"""

from __future__ import annotations

import time
from typing import Any, Callable, Mapping

from . import sessions
from .workload import Implementation, Metric, Params, Workload

SATURATION = "distributed.scheduler.worker-saturation"
DEFAULT_SATURATION = 1.1
TOLERANCE = 1.05

# Makes the collection, and a function that checks its result.
Build = Callable[[Params], tuple[Any, Callable[[Any], None]]]


def _timed(build: Build, p: Params) -> Mapping[str, float]:
    for params in ({**p, **p["warm"]}, p):
        begun = time.perf_counter()
        collection, check = build(params)
        result = collection.compute()
        took = time.perf_counter() - begun
        check(result)
    return {"time": took}


def imports() -> None:
    """Imports what a program with Dask collections imports before it starts anything."""
    import dask.array
    import dask.dataframe  # noqa: F401


def on_mobula(build: Build, config: Mapping[str, Any] = {}) -> Implementation:
    def run(p: Params) -> Mapping[str, float]:
        imports()
        with sessions.dask_on_mobula(p["store"], p.get("memory_limit", 0), config):
            return _timed(build, p)

    return run


def on_ray(build: Build, config: Mapping[str, Any] = {}) -> Implementation:
    def run(p: Params) -> Mapping[str, float]:
        imports()
        with sessions.dask_on_ray(p["store"], config):
            return _timed(build, p)

    return run


def on_dask(build: Build, config: Mapping[str, Any] = {}) -> Implementation:
    def run(p: Params) -> Mapping[str, float]:
        imports()
        with sessions.dask(p.get("memory_limit", 0), config):
            return _timed(build, p)

    return run


def queuing(name: str, what: str, build: Build, full: Params, quick: Params) -> Workload:
    """A workload that measures the effect of withholding root tasks, with memory limits at which nothing spills."""
    default, off = {SATURATION: DEFAULT_SATURATION}, {SATURATION: float("inf")}
    return Workload(
        name, what, (Metric("time", "s", wants={"dask": 1 / TOLERANCE, "dask-inf": 1 / TOLERANCE}),),
        {"mobula": on_mobula(build, default), "mobula-inf": on_mobula(build, off), "dask": on_dask(build, default),
         "dask-inf": on_dask(build, off), "ray-dask": on_ray(build)},
        {"store": 6 * sessions.GIB, "warm": quick, **full}, quick, peak=Metric("", "MiB", wants={"dask": 1 / TOLERANCE}))


class DevNull:
    """A store that drops the arrays written to it."""

    def __setitem__(self, key: Any, value: Any) -> None:
        pass


def stored(array: Any) -> tuple[Any, Callable[[Any], None]]:
    """A collection that stores an array into DevNull."""
    import dask.array as da

    return da.store(array, DevNull(), lock=False, compute=False), lambda result: None
