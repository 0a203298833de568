"""Calls of one actor, submitted all at once and then awaited together. The actor runs them one by one, in threads, or as coroutines."""

from __future__ import annotations

from typing import Any, Mapping

from .. import sessions
from ..actors import Actor, Coroutines
from ..measure import WARM, seconds
from ..workload import Implementation, Metric, Params, Workload

THREADS = 16


def empty(actor: Any, n: int) -> list[Any]:
    return [actor.nothing.remote() for _ in range(n)]


def numbered(actor: Any, n: int) -> list[Any]:
    return [actor.take.remote(i) for i in range(n)]


def _run(session: sessions.Api, p: Params) -> Mapping[str, float]:
    call = p["call"]
    with session() as api:
        actor = api.remote(p["actor"]).options(**p["options"]).remote()
        api.get(call(actor, WARM))
        return {"rate": p["calls"] / seconds(lambda: api.get(call(actor, p["calls"])))}


def _dask(p: Params) -> Mapping[str, float]:
    with sessions.dask() as client:
        actor = client.submit(Actor, actor=True).result()

        def calls(n: int) -> None:
            for answer in [actor.nothing() for _ in range(n)]:
                answer.result()

        calls(WARM)
        return {"rate": p["calls"] / seconds(lambda: calls(p["calls"]))}


BOTH: Mapping[str, Implementation] = {"mobula": lambda p: _run(sessions.mobula, p), "ray": lambda p: _run(sessions.ray, p)}
FULL = {"calls": 10_000, "call": empty, "actor": Actor, "options": {}}
QUICK = {"calls": 1000}
RATE = (Metric("rate", "/s", more_is_better=True),)

WORKLOADS = [
    Workload("actor-async", "10,000 empty calls of an actor at once", (Metric("rate", "/s", more_is_better=True, wants={"ray": 6}),),
             {**BOTH, "dask": _dask}, FULL, QUICK),
    Workload("actor-concurrent", "10,000 empty calls at once of an actor that runs 16 of them", RATE, BOTH,
             {**FULL, "options": {"max_concurrency": THREADS}}, QUICK),
    Workload("async-actor", "10,000 empty calls of an actor of coroutines at once", RATE, BOTH, {**FULL, "actor": Coroutines}, QUICK),
    Workload("async-actor-arg", "10,000 calls with a number of an actor of coroutines at once", RATE, BOTH,
             {**FULL, "actor": Coroutines, "call": numbered}, QUICK)]
