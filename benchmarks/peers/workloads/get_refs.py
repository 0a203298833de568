"""An object that holds 10,000 references, got."""

from __future__ import annotations

from typing import Any, Mapping

from .. import sessions
from ..measure import expect, seconds
from ..workload import Metric, Params, Workload


def _run(session: sessions.Api, p: Params) -> Mapping[str, float]:
    with session() as api:
        refs = [api.put(i) for i in range(p["refs"])]
        held = api.put(refs)
        got: list[Any] = []
        time = seconds(lambda: got.extend(api.get(held)))
        expect(len(got), p["refs"])
        expect(api.get(got[-1]), p["refs"] - 1)
        return {"time": 1e3 * time}


WORKLOADS = [Workload(
    "get-10k-refs", "an object with 10,000 references, got", (Metric("time", "ms"),),
    {"mobula": lambda p: _run(sessions.mobula, p), "ray": lambda p: _run(sessions.ray, p)},
    {"refs": 10_000}, {"refs": 1000})]
