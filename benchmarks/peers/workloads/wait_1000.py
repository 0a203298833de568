"""Submits tasks, then waits for their results one by one, in the order in which they come."""

from __future__ import annotations

from typing import Any, Mapping

from .. import sessions
from ..measure import WARM, expect, seconds
from ..workload import Metric, Params, Workload


def one() -> int:
    return 1


def _run(session: sessions.Api, p: Params) -> Mapping[str, float]:
    with session() as api:
        task = api.remote(one)
        came: list[Any] = []

        def each() -> None:
            rest = [task.remote() for _ in range(p["refs"])]
            fetch = True  # the first wait fetches all of them; doing so in every wait would only cost Ray time
            while rest:
                ready, rest = api.wait(rest, fetch_local=fetch)
                fetch = False
                came.extend(ready)

        api.get([task.remote() for _ in range(WARM)])
        time = seconds(each)
        expect(sum(api.get(came)), p["refs"])
        return {"time": 1e3 * time}


def _dask(p: Params) -> Mapping[str, float]:
    from distributed import wait

    with sessions.dask() as client:
        came: list[Any] = []

        def each() -> None:
            rest = [client.submit(one, pure=False) for _ in range(p["refs"])]
            while rest:  # a wait returns all results that are ready
                ready, rest = wait(rest, return_when="FIRST_COMPLETED")
                came.extend(ready)

        client.gather([client.submit(one, pure=False) for _ in range(WARM)])
        time = seconds(each)
        expect(sum(client.gather(came)), p["refs"])
        return {"time": 1e3 * time}


WORKLOADS = [Workload(
    "wait-1000", "1,000 tasks, and waits for one after another", (Metric("time", "ms"),),
    {"mobula": lambda p: _run(sessions.mobula, p), "ray": lambda p: _run(sessions.ray, p), "dask": _dask},
    {"refs": 1000}, {"refs": 100})]
