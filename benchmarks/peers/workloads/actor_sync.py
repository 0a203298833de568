"""An empty call of an actor, waited for, one after another."""

from __future__ import annotations

from typing import Mapping

from .. import sessions
from ..measure import trip_metrics, trips
from ..workload import Params, Workload


class Actor:
    def nothing(self) -> None:
        pass


def _run(session: sessions.Api, p: Params) -> Mapping[str, float]:
    with session() as api:
        actor = api.remote(Actor).remote()
        return trips(p["trips"], lambda: api.get(actor.nothing.remote()))


def _dask(p: Params) -> Mapping[str, float]:
    with sessions.dask() as client:
        actor = client.submit(Actor, actor=True).result()
        return trips(p["trips"], lambda: actor.nothing().result())


WORKLOADS = [Workload(
    "actor-sync", "an empty call of an actor, waited for", trip_metrics(ray=4),
    {"mobula": lambda p: _run(sessions.mobula, p), "ray": lambda p: _run(sessions.ray, p), "dask": _dask},
    {"trips": 1000}, {"trips": 100})]
