"""Empty tasks, each submitted and awaited before the next."""

from __future__ import annotations

from typing import Mapping

from .. import sessions
from ..measure import trip_metrics, trips
from ..workload import Params, Workload


def nothing() -> None:
    pass


def _run(session: sessions.Api, p: Params) -> Mapping[str, float]:
    with session() as api:
        task = api.remote(nothing)
        return trips(p["trips"], lambda: api.get(task.remote()))


def _dask(p: Params) -> Mapping[str, float]:
    with sessions.dask() as client:
        return trips(p["trips"], lambda: client.submit(nothing, pure=False).result())


WORKLOADS = [Workload(
    "task-sync", "an empty task, submitted and waited for", trip_metrics(ray=8),
    {"mobula": lambda p: _run(sessions.mobula, p), "ray": lambda p: _run(sessions.ray, p), "dask": _dask},
    {"trips": 1000}, {"trips": 100})]
