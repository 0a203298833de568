"""Empty tasks on another node than the driver's, submitted all at once and then awaited together."""

from __future__ import annotations

from typing import Mapping

from .. import clusters, sessions
from ..measure import WARM, seconds
from ..workload import Metric, Params, Workload


def nothing() -> None:
    pass


def _ignore(_: int) -> None:  # Dask's map needs an iterable
    pass


def _run(start: clusters.Start, p: Params) -> Mapping[str, float]:
    with start(2, p["store"]) as c:
        task = c.api.remote(nothing).options(**clusters.on(1))
        c.api.get([task.remote() for _ in range(WARM)])
        return {"rate": p["tasks"] / seconds(lambda: c.api.get([task.remote() for _ in range(p["tasks"])]))}


def _dask(p: Params) -> Mapping[str, float]:
    with clusters.dask(2) as c:
        def burst(n: int) -> None:
            c.api.gather(c.api.map(_ignore, range(n), pure=False, **clusters.on(1)))

        burst(WARM)
        return {"rate": p["tasks"] / seconds(lambda: burst(p["tasks"]))}


WORKLOADS = [Workload(
    "remote-task-async", "10,000 empty tasks at once on another node", (Metric("rate", "/s", more_is_better=True, wants={"ray": 1, "dask": 1}),),
    {"mobula": lambda p: _run(clusters.mobula, p), "ray": lambda p: _run(clusters.ray, p), "dask": _dask},
    {"tasks": 10_000, "store": 256 * sessions.MIB}, {"tasks": 1000})]
