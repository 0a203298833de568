"""Another process gets a large array that the driver has put, until it has read the first element."""

from __future__ import annotations

import time
from typing import Any, Mapping

from .. import sessions
from ..measure import expect
from ..workload import Metric, Params, Workload


class Reader:
    def __init__(self, module: str) -> None:
        import importlib

        self.api = importlib.import_module(module)

    def milliseconds(self, refs: list[Any]) -> float:
        begun = time.perf_counter()
        first = self.api.get(refs[0])[0]
        took = (time.perf_counter() - begun) * 1e3
        expect(float(first), 1.0)
        return took


def _first(array: Any) -> float:
    return float(array[0])


def _run(session: sessions.Api, p: Params) -> Mapping[str, float]:
    import numpy as np

    with session() as api:
        reader = api.remote(Reader).remote(api.__name__)
        small, large = api.put(np.ones(1 << 17)), api.put(np.ones(p["bytes"] // 8))
        api.get(reader.milliseconds.remote([small]))
        return {"time": api.get(reader.milliseconds.remote([large]))}


def _dask(p: Params) -> Mapping[str, float]:
    import numpy as np

    with sessions.dask() as client:
        here, there = client.scheduler_info()["workers"]
        array = client.scatter(np.ones(p["bytes"] // 8), workers=[here], hash=False)
        client.submit(_first, np.ones(1), workers=[there]).result()
        begun = time.perf_counter()
        expect(client.submit(_first, array, workers=[there]).result(), 1.0)
        return {"time": (time.perf_counter() - begun) * 1e3}


WORKLOADS = [Workload(
    "get-1g", "an array of 1 GiB, got in another process", (Metric("time", "ms"),),
    {"mobula": lambda p: _run(sessions.mobula, p), "ray": lambda p: _run(sessions.ray, p), "dask": _dask},
    {"bytes": sessions.GIB}, {"bytes": 64 * sessions.MIB})]
