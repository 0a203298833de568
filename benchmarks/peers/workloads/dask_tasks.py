"""Many trivial tasks of a Dask graph, without optimization: nothing is fused.

get is timed in two halves: submitting the graph, as persist does, and waiting for the results.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any, Callable, Mapping

from .. import sessions
from ..measure import expect
from ..workload import Metric, Params, Workload

LINKS = 10  # tasks in a chain
SUBMITTED = 2.0  # target for the driver's time to submit, in seconds
SINGLY = {"optimization.fuse.active": False}


def increment(x: int) -> int:
    return x + 1


def _independent(n: int) -> tuple[dict[Any, Any], list[Any], list[int]]:
    """The graph, the wanted keys, and their expected values."""
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


def _time(p: Params, submit: Callable[[Any, Any], Any], results: Callable[[list[Any]], Any]) -> Mapping[str, float]:
    """Times both halves. submit must not wait: it returns references or futures."""
    for n in (p["warm"], p["tasks"]):
        graph, keys, want = p["graph"](n)
        begun = time.perf_counter()
        awaited = list(submit(graph, keys))
        submitted = time.perf_counter()
        got = list(results(awaited))
        del awaited  # get releases them too before it returns
        done = time.perf_counter()
        expect(got, want)
    return {"time": done - begun, "submitted": submitted - begun}


def _mobula(p: Params) -> Mapping[str, float]:
    with sessions.dask_on_mobula(sessions.STORE, config=SINGLY):
        import mobula
        from mobula.dask._get import references  # what persist calls

        return _time(p, references, mobula.get)


def _ray_dask(p: Params) -> Mapping[str, float]:
    with sessions.dask_on_ray(sessions.STORE, SINGLY) as get:
        import ray

        return _time(p, partial(get, ray_persist=True), ray.get)


def _dask(p: Params) -> Mapping[str, float]:
    with sessions.dask(config=SINGLY) as client:
        return _time(p, partial(client.get, sync=False), client.gather)


def _workload(name: str, what: str, graph: Callable[[int], Any]) -> Workload:
    return Workload(
        name, what, (Metric("time", "s", wants={"dask": 10}), Metric("submitted", "s", at_most=SUBMITTED)),
        {"mobula": _mobula, "ray-dask": _ray_dask, "dask": _dask},
        {"tasks": 100_000, "warm": 1000, "graph": graph}, {"tasks": 5000, "warm": 100}, peak=Metric("", "MiB"), timeout=600)


WORKLOADS = [_workload("dask-100k", "100,000 trivial Dask tasks that need none of each other", _independent),
             _workload("dask-100k-chains", "100,000 trivial Dask tasks in chains of ten", _chains)]
