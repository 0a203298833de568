"""Empty calls of an actor, each awaited before the next."""

from __future__ import annotations

from typing import Mapping

from .. import sessions
from ..actors import Actor, Coroutines
from ..measure import trip_metrics, trips
from ..workload import Implementation, Params, Workload


def _run(session: sessions.Api, p: Params) -> Mapping[str, float]:
    with session() as api:
        actor = api.remote(p["actor"]).remote()
        return trips(p["trips"], lambda: api.get(actor.nothing.remote()))


def _dask(p: Params) -> Mapping[str, float]:
    with sessions.dask() as client:
        actor = client.submit(p["actor"], actor=True).result()
        return trips(p["trips"], lambda: actor.nothing().result())


BOTH: Mapping[str, Implementation] = {"mobula": lambda p: _run(sessions.mobula, p), "ray": lambda p: _run(sessions.ray, p)}

WORKLOADS = [
    Workload("actor-sync", "an empty call of an actor, waited for", trip_metrics(ray=4), {**BOTH, "dask": _dask},
             {"trips": 1000, "actor": Actor}, {"trips": 100}),
    Workload("async-actor-sync", "an empty call of an actor of coroutines, waited for", trip_metrics(), BOTH,
             {"trips": 1000, "actor": Coroutines}, {"trips": 100})]
