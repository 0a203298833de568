"""Gets small values that this process has put, one after another."""

from __future__ import annotations

from typing import Any, Mapping

from .. import sessions
from ..measure import expect, seconds
from ..workload import Metric, Params, Workload

DATA = bytes(1024)


def _run(session: sessions.Api, p: Params) -> Mapping[str, float]:
    with session() as api:
        refs = [api.put(DATA) for _ in range(p["gets"])]
        got: list[Any] = []
        rate = p["gets"] / seconds(lambda: got.extend(api.get(r) for r in refs))
        expect(got, [DATA] * p["gets"])
        return {"rate": rate}


def _dask(p: Params) -> Mapping[str, float]:
    n = p["gets"] // p["dask_share"]
    with sessions.dask() as client:
        futures = [client.scatter(DATA, hash=False) for _ in range(n)]
        got: list[Any] = []
        rate = n / seconds(lambda: got.extend(f.result() for f in futures))
        expect(got, [DATA] * n)
        return {"rate": rate}


WORKLOADS = [Workload(
    "get-1k", "values of 1 KB, got where they were put", (Metric("rate", "/s", more_is_better=True),),
    {"mobula": lambda p: _run(sessions.mobula, p), "ray": lambda p: _run(sessions.ray, p), "dask": _dask},
    {"gets": 5000, "dask_share": 10}, {"gets": 500})]
