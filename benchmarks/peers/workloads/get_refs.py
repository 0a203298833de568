"""Gets an object with 10,000 references: to objects that this process has put, or to objects that a task has put."""

from __future__ import annotations

import importlib
from typing import Any, Mapping

from .. import sessions
from ..measure import expect, seconds
from ..workload import Metric, Params, Workload


def references(module: str, n: int) -> list[Any]:
    api = importlib.import_module(module)
    return [api.put(i) for i in range(n)]


def _run(session: sessions.Api, p: Params) -> Mapping[str, float]:
    with session() as api:
        if p["by_task"]:
            held = api.remote(references).remote(api.__name__, p["refs"])
            api.wait([held])
        else:
            refs = references(api.__name__, p["refs"])
            held = api.put(refs)
        got: list[Any] = []
        time = seconds(lambda: got.extend(api.get(held)))
        expect(len(got), p["refs"])
        expect(api.get(got[-1]), p["refs"] - 1)
        return {"time": 1e3 * time}


def _workload(name: str, what: str, by_task: bool) -> Workload:
    return Workload(name, what, (Metric("time", "ms"),),
                    {"mobula": lambda p: _run(sessions.mobula, p), "ray": lambda p: _run(sessions.ray, p)},
                    {"refs": 10_000, "by_task": by_task}, {"refs": 1000})


WORKLOADS = [_workload("get-10k-refs", "an object with 10,000 references, got where they were put", False),
             _workload("get-10k-refs-task", "an object with 10,000 references that a task has put, got", True)]
