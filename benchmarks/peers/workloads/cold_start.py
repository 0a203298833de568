"""The time from the start of a fresh interpreter, imports included, to the first result."""

from __future__ import annotations

import os
import time
from typing import Mapping

from .. import sessions
from ..guard import STARTED
from ..measure import expect
from ..workload import Metric, Params, Workload


def one() -> int:
    return 1


def _since_start() -> Mapping[str, float]:
    return {"time": time.monotonic() - float(os.environ[STARTED])}


def _run(session: sessions.Api) -> Mapping[str, float]:
    with session() as api:
        expect(api.get(api.remote(one).remote()), 1)
        return _since_start()


def _dask(p: Params) -> Mapping[str, float]:
    with sessions.dask() as client:
        expect(client.submit(one).result(), 1)
        return _since_start()


WORKLOADS = [Workload(
    "cold-start", "from a fresh interpreter to the first result", (Metric("time", "s"),),
    {"mobula": lambda p: _run(sessions.mobula), "ray": lambda p: _run(sessions.ray), "dask": _dask})]
