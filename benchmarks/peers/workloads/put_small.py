"""Small values made objects, one after another."""

from __future__ import annotations

from typing import Mapping

from .. import sessions
from ..measure import WARM, seconds
from ..workload import Metric, Params, Workload

DATA = bytes(1024)


def _run(session: sessions.Api, p: Params) -> Mapping[str, float]:
    with session() as api:
        kept = [api.put(DATA) for _ in range(WARM)]
        return {"rate": p["puts"] / seconds(lambda: kept.extend(api.put(DATA) for _ in range(p["puts"])))}


def _dask(p: Params) -> Mapping[str, float]:
    n = p["puts"] // p["dask_share"]
    with sessions.dask() as client:
        kept = [client.scatter(DATA, hash=False) for _ in range(min(n, WARM))]
        return {"rate": n / seconds(lambda: kept.extend(client.scatter(DATA, hash=False) for _ in range(n)))}


WORKLOADS = [Workload(
    "put-1k", "values of 1 KB, put", (Metric("rate", "/s", more_is_better=True, wants={"ray": 10}),),
    {"mobula": lambda p: _run(sessions.mobula, p), "ray": lambda p: _run(sessions.ray, p), "dask": _dask},
    {"puts": 5000, "dask_share": 10}, {"puts": 500})]
