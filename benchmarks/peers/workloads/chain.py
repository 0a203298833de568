"""A chain of tasks: each takes the reference to the result of the one before, and only the last is awaited."""

from __future__ import annotations

from typing import Mapping

from .. import sessions
from ..measure import WARM, expect, seconds
from ..workload import Metric, Params, Workload


def increment(x: int) -> int:
    return x + 1


def _run(session: sessions.Api, p: Params) -> Mapping[str, float]:
    with session() as api:
        task = api.remote(increment)

        def chain() -> None:
            last = task.remote(0)
            for _ in range(p["tasks"] - 1):
                last = task.remote(last)
            expect(api.get(last), p["tasks"])

        api.get([task.remote(0) for _ in range(WARM)])
        return {"time": seconds(chain)}


def _dask(p: Params) -> Mapping[str, float]:
    with sessions.dask() as client:

        def chain() -> None:
            last = client.submit(increment, 0, pure=False)
            for _ in range(p["tasks"] - 1):
                last = client.submit(increment, last, pure=False)
            expect(last.result(), p["tasks"])

        client.gather(client.map(increment, range(WARM), pure=False))
        return {"time": seconds(chain)}


WORKLOADS = [Workload(
    "chain", "1,000 tasks in a chain", (Metric("time", "s"),),
    {"mobula": lambda p: _run(sessions.mobula, p), "ray": lambda p: _run(sessions.ray, p), "dask": _dask},
    {"tasks": 1000}, {"tasks": 100})]
