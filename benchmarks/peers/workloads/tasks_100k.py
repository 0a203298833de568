"""Very many empty tasks: the driver's time to submit them, and the time until all are done."""

from __future__ import annotations

import time
from typing import Mapping

from .. import sessions
from ..measure import WARM
from ..workload import Metric, Params, Workload


def nothing() -> None:
    pass


def _ignore(_: int) -> None:
    pass


def _run(session: sessions.Api, p: Params) -> Mapping[str, float]:
    with session() as api:
        task = api.remote(nothing)
        api.get([task.remote() for _ in range(WARM)])
        begun = time.perf_counter()
        refs = [task.remote() for _ in range(p["tasks"])]
        submitted = time.perf_counter()
        api.get(refs)
        return {"submitted": submitted - begun, "done": time.perf_counter() - begun}


def _dask(p: Params) -> Mapping[str, float]:
    with sessions.dask() as client:
        client.gather(client.map(_ignore, range(WARM), pure=False))
        begun = time.perf_counter()
        futures = client.map(_ignore, range(p["tasks"]), pure=False)
        submitted = time.perf_counter()
        client.gather(futures)
        return {"submitted": submitted - begun, "done": time.perf_counter() - begun}


WORKLOADS = [Workload(
    "tasks-100k", "100,000 empty tasks", (Metric("submitted", "s"), Metric("done", "s")),
    {"mobula": lambda p: _run(sessions.mobula, p), "ray": lambda p: _run(sessions.ray, p), "dask": _dask},
    {"tasks": 100_000}, {"tasks": 5000}, peak=Metric("", "MiB"), timeout=600)]
