"""Empty tasks, submitted all at once and then awaited together."""

from __future__ import annotations

from typing import Mapping

from .. import sessions
from ..measure import WARM, seconds
from ..workload import Metric, Params, Workload


def nothing() -> None:
    pass


def _run(session: sessions.Api, p: Params) -> Mapping[str, float]:
    with session() as api:
        task = api.remote(nothing)
        api.get([task.remote() for _ in range(WARM)])
        return {"rate": p["tasks"] / seconds(lambda: api.get([task.remote() for _ in range(p["tasks"])]))}


def _dask(p: Params) -> Mapping[str, float]:
    with sessions.dask() as client:
        client.gather(client.map(_ignore, range(WARM), pure=False))
        return {"rate": p["tasks"] / seconds(lambda: client.gather(client.map(_ignore, range(p["tasks"]), pure=False)))}


def _ignore(_: int) -> None:  # Dask's map needs an iterable
    pass


WORKLOADS = [Workload(
    "task-async", "10,000 empty tasks at once", (Metric("rate", "/s", more_is_better=True, wants={"ray": 10}),),
    {"mobula": lambda p: _run(sessions.mobula, p), "ray": lambda p: _run(sessions.ray, p), "dask": _dask},
    {"tasks": 10_000}, {"tasks": 1000})]
