"""The memory of all idle processes, the driver included, after a first task has run."""

from __future__ import annotations

import os
import time
from typing import Mapping

from .. import memory, sessions
from ..guard import GUARD
from ..measure import expect
from ..workload import Metric, Params, Workload


def one() -> int:
    return 1


def _held(p: Params) -> Mapping[str, float]:
    time.sleep(p["pause"])
    guard = int(os.environ[GUARD])
    return {"memory": memory.usage(guard, without=guard).total / sessions.MIB}


def _run(session: sessions.Api, p: Params) -> Mapping[str, float]:
    with session() as api:
        expect(api.get(api.remote(one).remote()), 1)
        return _held(p)


def _dask(p: Params) -> Mapping[str, float]:
    with sessions.dask() as client:
        expect(client.submit(one).result(), 1)
        return _held(p)


WORKLOADS = [Workload(
    "idle-memory", "what is held when idle", (Metric("memory", "MiB"),),
    {"mobula": lambda p: _run(sessions.mobula, p), "ray": lambda p: _run(sessions.ray, p), "dask": _dask},
    {"pause": 3.0}, {"pause": 0.5})]
