"""Empty calls of one actor, all at once, then waited for together."""

from __future__ import annotations

from typing import Mapping

from .. import sessions
from ..measure import WARM, seconds
from ..workload import Metric, Params, Workload


class Actor:
    def nothing(self) -> None:
        pass


def _run(session: sessions.Api, p: Params) -> Mapping[str, float]:
    with session() as api:
        actor = api.remote(Actor).remote()
        api.get([actor.nothing.remote() for _ in range(WARM)])
        return {"rate": p["calls"] / seconds(lambda: api.get([actor.nothing.remote() for _ in range(p["calls"])]))}


def _dask(p: Params) -> Mapping[str, float]:
    with sessions.dask() as client:
        actor = client.submit(Actor, actor=True).result()

        def calls(n: int) -> None:
            for answer in [actor.nothing() for _ in range(n)]:
                answer.result()

        calls(WARM)
        return {"rate": p["calls"] / seconds(lambda: calls(p["calls"]))}


WORKLOADS = [Workload(
    "actor-async", "10,000 empty calls of an actor at once", (Metric("rate", "/s", more_is_better=True, wants={"ray": 6}),),
    {"mobula": lambda p: _run(sessions.mobula, p), "ray": lambda p: _run(sessions.ray, p), "dask": _dask},
    {"calls": 10_000}, {"calls": 1000})]
