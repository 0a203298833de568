"""Makes actors all at once, until each has answered a call. On Ray and Mobula each is a process, on Dask an object in a worker."""

from __future__ import annotations

from typing import Any, Mapping

from .. import sessions
from ..measure import WARM, seconds
from ..workload import Metric, Params, Workload


class Actor:
    def nothing(self) -> None:
        pass


def nothing() -> None:
    pass


def _run(session: sessions.Api, p: Params) -> Mapping[str, float]:
    with session() as api:
        task, cls = api.remote(nothing), api.remote(Actor)
        api.get([task.remote() for _ in range(WARM)])  # starts the node's workers
        actors: list[Any] = []

        def create() -> None:
            actors.extend(cls.remote() for _ in range(p["actors"]))
            api.get([a.nothing.remote() for a in actors])

        return {"rate": p["actors"] / seconds(create)}


def _dask(p: Params) -> Mapping[str, float]:
    with sessions.dask() as client:
        client.gather([client.submit(nothing, pure=False) for _ in range(WARM)])

        def create() -> None:
            actors = client.gather([client.submit(Actor, actor=True, pure=False) for _ in range(p["actors"])])
            for answer in [a.nothing() for a in actors]:
                answer.result()

        return {"rate": p["actors"] / seconds(create)}


WORKLOADS = [Workload(
    "actor-create", "16 actors made, each called once", (Metric("rate", "/s", more_is_better=True, wants={"ray": 15}),),
    {"mobula": lambda p: _run(sessions.mobula, p), "ray": lambda p: _run(sessions.ray, p), "dask": _dask},
    {"actors": 16}, {"actors": 4})]
