"""Calls of several actors, all at once: by one driver or by as many tasks, without arguments or with a reference to a value."""

from __future__ import annotations

import importlib
from typing import Any, Mapping, Sequence

from .. import sessions
from ..actors import Actor, Coroutines
from ..measure import WARM, seconds
from ..workload import Implementation, Metric, Params, Workload

MANY = 2


def call(module: str, actors: Sequence[Any], n: int, reference: bool) -> None:
    """Calls the actors in turn, n times in all."""
    api = importlib.import_module(module)
    if reference:
        x = api.put(0)
        api.get([actors[i % len(actors)].take.remote(x) for i in range(n)])
    else:
        api.get([actors[i % len(actors)].nothing.remote() for i in range(n)])


def _run(session: sessions.Api, p: Params) -> Mapping[str, float]:
    with session() as api:
        cls, task = api.remote(p["actor"]), api.remote(call)
        actors = [cls.remote() for _ in range(MANY)]

        def calls(n: int) -> None:
            if p["tasks"]:
                api.get([task.remote(api.__name__, actors, n // p["tasks"], p["reference"]) for _ in range(p["tasks"])])
            else:
                call(api.__name__, actors, n, p["reference"])

        calls(WARM)
        return {"rate": p["calls"] / seconds(lambda: calls(p["calls"]))}


def _dask_call(actors: Sequence[Any], n: int) -> None:
    for answer in [actors[i % len(actors)].nothing() for i in range(n)]:
        answer.result()


def _dask(p: Params) -> Mapping[str, float]:
    with sessions.dask() as client:
        actors = [client.submit(Actor, actor=True, pure=False).result() for _ in range(MANY)]

        def calls(n: int) -> None:
            if p["tasks"]:
                client.gather([client.submit(_dask_call, actors, n // p["tasks"], pure=False) for _ in range(p["tasks"])])
            else:
                _dask_call(actors, n)

        calls(WARM)
        return {"rate": p["calls"] / seconds(lambda: calls(p["calls"]))}


def _workload(name: str, what: str, dask: Mapping[str, Implementation] = {}, *, actor: type = Actor, tasks: int = 0,
              reference: bool = False) -> Workload:
    return Workload(name, what, (Metric("rate", "/s", more_is_better=True),),
                    {"mobula": lambda p: _run(sessions.mobula, p), "ray": lambda p: _run(sessions.ray, p), **dask},
                    {"calls": 10_000, "actor": actor, "tasks": tasks, "reference": reference}, {"calls": 1000})


WORKLOADS = [
    _workload("actor-1-to-2", "10,000 empty calls of two actors by a driver", {"dask": _dask}),
    _workload("actor-2-to-2", "10,000 empty calls of two actors by two tasks", {"dask": _dask}, tasks=MANY),
    _workload("actor-2-to-2-arg", "10,000 calls with a reference of two actors by two tasks", tasks=MANY, reference=True),
    _workload("async-actor-1-to-2", "10,000 empty calls of two actors of coroutines by a driver", actor=Coroutines),
    _workload("async-actor-2-to-2", "10,000 empty calls of two actors of coroutines by two tasks", actor=Coroutines, tasks=MANY)]
