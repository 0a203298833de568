"""Puts small values one after another, until a task has got the last one."""

from __future__ import annotations

from typing import Any, Mapping

from .. import sessions
from ..measure import WARM, expect, seconds
from ..workload import Metric, Params, Workload

DATA = bytes(1024)


def size(value: bytes) -> int:
    return len(value)


def _run(session: sessions.Api, p: Params) -> Mapping[str, float]:
    with session() as api:
        task = api.remote(size)
        kept: list[Any] = []

        def puts(n: int) -> None:
            """A put may still be under way when it returns. Puts keep their order, so all are done once a task has got the last one."""
            kept.extend(api.put(DATA) for _ in range(n))
            expect(api.get(task.remote(kept[-1])), len(DATA))

        puts(WARM)
        return {"rate": p["puts"] / seconds(lambda: puts(p["puts"]))}


def _dask(p: Params) -> Mapping[str, float]:
    n = p["puts"] // p["dask_share"]
    with sessions.dask() as client:
        kept: list[Any] = []

        def puts(n: int) -> None:
            kept.extend(client.scatter(DATA, hash=False) for _ in range(n))
            expect(client.submit(size, kept[-1]).result(), len(DATA))

        puts(min(n, WARM))
        return {"rate": n / seconds(lambda: puts(n))}


WORKLOADS = [Workload(
    "put-1k", "values of 1 KB, put, until a task has had the last", (Metric("rate", "/s", more_is_better=True, wants={"ray": 10}),),
    {"mobula": lambda p: _run(sessions.mobula, p), "ray": lambda p: _run(sessions.ray, p), "dask": _dask},
    {"puts": 5000, "dask_share": 10}, {"puts": 500})]
