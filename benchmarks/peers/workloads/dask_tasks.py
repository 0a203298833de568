"""Many trivial tasks of a Dask graph, each run singly: the graph goes to the scheduler as it is, and nothing is fused.

What get does is done in its two halves: the graph is given to the scheduler, as by persist, and then the results are waited for.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any, Callable, Mapping

from .. import sessions
from ..measure import expect
from ..workload import Metric, Params, Workload

LINKS = 10  # of a chain
SUBMITTED = 2.0  # seconds that the driver may be busy with it
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


def _time(p: Params, submit: Callable[[Any, Any], Any], results: Callable[[list[Any]], Any]) -> Mapping[str, float]:
    """submit does not wait: it gives what stands for the results."""
    for n in (p["warm"], p["tasks"]):
        graph, keys, want = p["graph"](n)
        begun = time.perf_counter()
        awaited = list(submit(graph, keys))
        submitted = time.perf_counter()
        got = list(results(awaited))
        del awaited  # get lets go of them too before it is back
        done = time.perf_counter()
        expect(got, want)
    return {"time": done - begun, "submitted": submitted - begun}


def _mobula(p: Params) -> Mapping[str, float]:
    with sessions.dask_on_mobula(sessions.STORE, config=SINGLY):
        import mobula
        from mobula.dask._get import references  # get, as it is called by persist

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
