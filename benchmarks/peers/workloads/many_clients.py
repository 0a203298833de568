"""Two processes that each submit tasks, and put values, at the same time."""

from __future__ import annotations

import importlib
from typing import Mapping

from .. import sessions
from ..measure import WARM, seconds
from ..workload import Metric, Params, Workload

RATE = (Metric("rate", "/s", more_is_better=True),)
CLIENTS = 2
DATA = bytes(1024)


def nothing() -> None:
    pass


class Client:
    """Takes no CPU: the tasks that it submits do."""

    def __init__(self, module: str) -> None:
        self.api = importlib.import_module(module)
        self.task = self.api.remote(nothing)

    def tasks(self, n: int) -> None:
        self.api.get([self.task.remote() for _ in range(n)])

    def puts(self, n: int) -> None:
        for _ in range(n):
            self.api.put(DATA)


def _run(session: sessions.Api, p: Params, method: str) -> Mapping[str, float]:
    with session() as api:
        clients = [api.remote(Client).options(num_cpus=0).remote(api.__name__) for _ in range(CLIENTS)]

        def all_of(n: int) -> None:
            api.get([getattr(c, method).remote(n // CLIENTS) for c in clients])

        all_of(WARM)
        return {"rate": p["n"] / seconds(lambda: all_of(p["n"]))}


def _workload(name: str, what: str, method: str) -> Workload:
    return Workload(name, what, RATE, {"mobula": lambda p: _run(sessions.mobula, p, method), "ray": lambda p: _run(sessions.ray, p, method)},
                    {"n": 10_000}, {"n": 1000})


WORKLOADS = [_workload("tasks-2-clients", "10,000 empty tasks of two processes, each waiting for its own", "tasks"),
             _workload("put-2-clients", "10,000 values of 1 KB put by two processes", "puts")]
