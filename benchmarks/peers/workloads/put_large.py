"""Puts a large array several times, each after the one before was released: first into fresh memory, then into used memory."""

from __future__ import annotations

import statistics
import time
from typing import Any, Callable, Mapping

from .. import sessions
from ..measure import seconds
from ..workload import Metric, Params, Workload

PAUSE = 0.5  # seconds for a system to free a released object


def _times(p: Params, put: Callable[[Any], Any]) -> Mapping[str, float]:
    import numpy as np

    array = np.ones(p["bytes"] // 8)
    out: list[float] = []
    kept: list[Any] = []
    for _ in range(p["puts"]):
        kept.clear()
        time.sleep(PAUSE)
        out.append(seconds(lambda: kept.append(put(array))))
    return {"first": out[0], "again": statistics.median(out[1:])}


def _run(session: sessions.Api, p: Params) -> Mapping[str, float]:
    with session() as api:
        return _times(p, api.put)


def _dask(p: Params) -> Mapping[str, float]:
    with sessions.dask() as client:
        return _times(p, lambda array: client.scatter(array, hash=False))


WORKLOADS = [Workload(
    "put-1g", "an array of 1 GiB, put", (Metric("first", "s"), Metric("again", "s")),
    {"mobula": lambda p: _run(sessions.mobula, p), "ray": lambda p: _run(sessions.ray, p), "dask": _dask},
    {"bytes": sessions.GIB, "puts": 4}, {"bytes": 64 * sessions.MIB})]
