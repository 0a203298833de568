"""Waiting for many results that are there already."""

from __future__ import annotations

from typing import Mapping

from .. import sessions
from ..measure import expect, seconds
from ..workload import Metric, Params, Workload


def one() -> int:
    return 1


def _run(session: sessions.Api, p: Params) -> Mapping[str, float]:
    with session() as api:
        task = api.remote(one)
        refs = [task.remote() for _ in range(p["refs"])]
        expect(sum(api.get(refs)), p["refs"])
        return {"time": 1e3 * seconds(lambda: expect(len(api.wait(refs, num_returns=len(refs))[0]), len(refs)))}


def _dask(p: Params) -> Mapping[str, float]:
    from distributed import wait

    with sessions.dask() as client:
        futures = [client.submit(one, pure=False) for _ in range(p["refs"])]
        expect(sum(client.gather(futures)), p["refs"])
        return {"time": 1e3 * seconds(lambda: expect(len(wait(futures).done), len(futures)))}


WORKLOADS = [Workload(
    "wait-1000", "a wait for 1,000 results that are there", (Metric("time", "ms"),),
    {"mobula": lambda p: _run(sessions.mobula, p), "ray": lambda p: _run(sessions.ray, p), "dask": _dask},
    {"refs": 1000}, {"refs": 100})]
