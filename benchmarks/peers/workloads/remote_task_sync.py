"""Empty tasks on another node than the driver's, each submitted and awaited before the next."""

from __future__ import annotations

from typing import Mapping

from .. import clusters, sessions
from ..measure import trip_metrics, trips
from ..workload import Params, Workload


def nothing() -> None:
    pass


def _run(start: clusters.Start, p: Params) -> Mapping[str, float]:
    with start(2, p["store"]) as c:
        task = c.api.remote(nothing).options(**clusters.on(1))
        return trips(p["trips"], lambda: c.api.get(task.remote()))


def _dask(p: Params) -> Mapping[str, float]:
    with clusters.dask(2) as c:
        return trips(p["trips"], lambda: c.api.submit(nothing, pure=False, **clusters.on(1)).result())


WORKLOADS = [Workload(
    "remote-task-sync", "an empty task on another node, submitted and waited for", trip_metrics(ray=1, dask=1),
    {"mobula": lambda p: _run(clusters.mobula, p), "ray": lambda p: _run(clusters.ray, p), "dask": _dask},
    {"trips": 1000, "store": 256 * sessions.MIB}, {"trips": 100})]
