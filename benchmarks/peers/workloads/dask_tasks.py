"""Many trivial tasks of a Dask graph, each run singly: the graph goes to the scheduler as it is, and nothing is fused."""

from __future__ import annotations

from typing import Any, Callable, Mapping

from .. import sessions
from ..measure import expect, seconds
from ..workload import Metric, Params, Workload

LINKS = 10  # of a chain
SINGLY = {"optimization.fuse.active": False}


def increment(x: int) -> int:
    return x + 1


def _independent(n: int) -> tuple[dict[Any, Any], list[Any], list[int]]:
    """The graph, what is wanted of it, and what that is."""
    from dask.task_spec import Task

    graph = {("task", i): Task(("task", i), increment, i) for i in range(n)}
    return graph, list(graph), list(range(1, n + 1))


def _chains(n: int) -> tuple[dict[Any, Any], list[Any], list[int]]:
    from dask.task_spec import Task, TaskRef

    graph = {}
    for c in range(n // LINKS):
        for i in range(LINKS):
            graph["link", c, i] = Task(("link", c, i), increment, TaskRef(("link", c, i - 1)) if i else c)
    return graph, [("link", c, LINKS - 1) for c in range(n // LINKS)], [c + LINKS for c in range(n // LINKS)]


def _time(p: Params, get: Callable[[Any, Any], Any]) -> Mapping[str, float]:
    graph, keys, want = p["graph"](p["warm"])
    expect(list(get(graph, keys)), want)
    graph, keys, want = p["graph"](p["tasks"])
    got: list[Any] = []
    took = seconds(lambda: got.extend(get(graph, keys)))
    expect(got, want)
    return {"time": took}


def _mobula(p: Params) -> Mapping[str, float]:
    with sessions.dask_on_mobula(sessions.STORE, config=SINGLY) as get:
        return _time(p, get)


def _ray_dask(p: Params) -> Mapping[str, float]:
    with sessions.dask_on_ray(sessions.STORE, SINGLY) as get:
        return _time(p, get)


def _dask(p: Params) -> Mapping[str, float]:
    with sessions.dask(config=SINGLY) as client:
        return _time(p, client.get)


def _workload(name: str, what: str, graph: Callable[[int], Any]) -> Workload:
    return Workload(
        name, what, (Metric("time", "s", wants={"dask": 10}),), {"mobula": _mobula, "ray-dask": _ray_dask, "dask": _dask},
        {"tasks": 100_000, "warm": 1000, "graph": graph}, {"tasks": 5000, "warm": 100}, peak=Metric("", "MiB"), timeout=600)


WORKLOADS = [_workload("dask-100k", "100,000 trivial Dask tasks that need none of each other", _independent),
             _workload("dask-100k-chains", "100,000 trivial Dask tasks in chains of ten", _chains)]
