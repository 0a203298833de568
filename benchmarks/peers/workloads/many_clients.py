"""Two processes submit tasks, or put values, at the same time."""

from __future__ import annotations

import importlib
from typing import Any, Callable, Mapping

from .. import sessions
from ..measure import WARM, seconds
from ..workload import Metric, Params, Workload

CLIENTS = 2
LARGE = 80 * sessions.MIB


def nothing() -> None:
    pass


def kilobyte() -> Any:
    return bytes(1024)


def array() -> Any:
    import numpy as np

    return np.ones(LARGE // 8)


class Client:
    """An actor without a CPU of its own: the tasks that it submits take them."""

    def __init__(self, module: str, make: Callable[[], Any]) -> None:
        self.api = importlib.import_module(module)
        self.task = self.api.remote(nothing)
        self.value = make()

    def tasks(self, n: int) -> None:
        self.api.get([self.task.remote() for _ in range(n)])

    def puts(self, n: int) -> None:
        """Puts values and releases each at once. Its result is sent after the puts on the same connection: with it they are done."""
        for _ in range(n):
            self.api.put(self.value)


def _run(session: sessions.Api, p: Params) -> Mapping[str, float]:
    with session() as api:
        clients = [api.remote(Client).options(num_cpus=0).remote(api.__name__, p["value"]) for _ in range(CLIENTS)]

        def all_of(n: int) -> None:
            api.get([getattr(c, p["method"]).remote(n // CLIENTS) for c in clients])

        all_of(p["warm"])
        return {"rate": p["n"] * p["each"] / seconds(lambda: all_of(p["n"]))}


def _workload(name: str, what: str, unit: str, quick: Params, **full: Any) -> Workload:
    return Workload(name, what, (Metric("rate", unit, more_is_better=True),),
                    {"mobula": lambda p: _run(sessions.mobula, p), "ray": lambda p: _run(sessions.ray, p)},
                    {"warm": WARM, "value": kilobyte, "each": 1, **full}, quick)


WORKLOADS = [
    _workload("tasks-2-clients", "10,000 empty tasks of two processes, each waiting for its own", "/s", {"n": 1000},
              method="tasks", n=10_000),
    _workload("put-2-clients", "10,000 values of 1 KB put by two processes", "/s", {"n": 1000}, method="puts", n=10_000),
    _workload("put-2-clients-80m", "100 arrays of 80 MiB put by two processes, each let go at once", "GiB/s", {"n": 4, "warm": 2},
              method="puts", n=100, warm=40, value=array, each=LARGE / sessions.GIB)]
