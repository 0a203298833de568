"""Empty calls from many to many: of several actors by one driver, of each by several tasks, and of an actor of coroutines."""

from __future__ import annotations

import importlib
from typing import Any, Mapping, Sequence

from .. import sessions
from ..measure import WARM, seconds
from ..workload import Metric, Params, Workload

RATE = (Metric("rate", "/s", more_is_better=True),)
SIZES = {"calls": 10_000, "many": 2}, {"calls": 1000}


class Actor:
    def nothing(self) -> None:
        pass


class Coroutines:
    async def nothing(self) -> None:
        pass


def call(module: str, actors: Sequence[Any], n: int) -> None:
    """Calls the actors in turn, n times in all."""
    api = importlib.import_module(module)
    api.get([actors[i % len(actors)].nothing.remote() for i in range(n)])


def _one_to_many(session: sessions.Api, p: Params) -> Mapping[str, float]:
    with session() as api:
        actors = [api.remote(Actor).remote() for _ in range(p["many"])]
        call(api.__name__, actors, WARM)
        return {"rate": p["calls"] / seconds(lambda: call(api.__name__, actors, p["calls"]))}


def _many_to_many(session: sessions.Api, p: Params) -> Mapping[str, float]:
    with session() as api:
        actors = [api.remote(Actor).remote() for _ in range(p["many"])]
        caller = api.remote(call)

        def calls(n: int) -> None:
            api.get([caller.remote(api.__name__, actors, n // p["many"]) for _ in range(p["many"])])

        calls(WARM)
        return {"rate": p["calls"] / seconds(lambda: calls(p["calls"]))}


def _coroutines(session: sessions.Api, p: Params) -> Mapping[str, float]:
    with session() as api:
        actors = [api.remote(Coroutines).remote()]
        call(api.__name__, actors, WARM)
        return {"rate": p["calls"] / seconds(lambda: call(api.__name__, actors, p["calls"]))}


def _dask_call(actors: Sequence[Any], n: int) -> None:
    for answer in [actors[i % len(actors)].nothing() for i in range(n)]:
        answer.result()


def _dask_one_to_many(p: Params) -> Mapping[str, float]:
    with sessions.dask() as client:
        actors = [client.submit(Actor, actor=True, pure=False).result() for _ in range(p["many"])]
        _dask_call(actors, WARM)
        return {"rate": p["calls"] / seconds(lambda: _dask_call(actors, p["calls"]))}


def _dask_many_to_many(p: Params) -> Mapping[str, float]:
    with sessions.dask() as client:
        actors = [client.submit(Actor, actor=True, pure=False).result() for _ in range(p["many"])]

        def calls(n: int) -> None:
            client.gather([client.submit(_dask_call, actors, n // p["many"], pure=False) for _ in range(p["many"])])

        calls(WARM)
        return {"rate": p["calls"] / seconds(lambda: calls(p["calls"]))}


WORKLOADS = [
    Workload("actor-1-to-2", "10,000 empty calls of two actors by a driver", RATE,
             {"mobula": lambda p: _one_to_many(sessions.mobula, p), "ray": lambda p: _one_to_many(sessions.ray, p),
              "dask": _dask_one_to_many}, *SIZES),
    Workload("actor-2-to-2", "10,000 empty calls of two actors by two tasks", RATE,
             {"mobula": lambda p: _many_to_many(sessions.mobula, p), "ray": lambda p: _many_to_many(sessions.ray, p),
              "dask": _dask_many_to_many}, *SIZES),
    Workload("async-actor", "10,000 empty calls of an actor of coroutines at once", RATE,
             {"mobula": lambda p: _coroutines(sessions.mobula, p), "ray": lambda p: _coroutines(sessions.ray, p)}, *SIZES)]
