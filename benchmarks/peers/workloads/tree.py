"""A binary tree of tasks: leaves return 1, all others the sum of two."""

from __future__ import annotations

from typing import Any, Callable, Mapping

from .. import sessions
from ..measure import WARM, expect, seconds
from ..workload import Metric, Params, Workload


def one() -> int:
    return 1


def add(x: int, y: int) -> int:
    return x + y


def _reduced(level: list[Any], joined: Callable[[Any, Any], Any]) -> Any:
    while len(level) > 1:
        odd = level[-1:] if len(level) % 2 else []
        level = [joined(level[i], level[i + 1]) for i in range(0, len(level) - 1, 2)] + odd
    return level[0]


def _run(session: sessions.Api, p: Params) -> Mapping[str, float]:
    with session() as api:
        leaf, inner = api.remote(one), api.remote(add)
        api.get([leaf.remote() for _ in range(WARM)])

        def tree() -> None:
            root = _reduced([leaf.remote() for _ in range(p["leaves"])], inner.remote)
            expect(api.get(root), p["leaves"])

        return {"time": seconds(tree)}


def _dask(p: Params) -> Mapping[str, float]:
    from dask.task_spec import Task, TaskRef

    graph: dict[Any, Any] = {}

    def leaf(i: int) -> Any:
        graph["leaf", i] = Task(("leaf", i), one)
        return "leaf", i

    def inner(x: Any, y: Any) -> Any:
        key = "inner", len(graph)
        graph[key] = Task(key, add, TaskRef(x), TaskRef(y))
        return key

    def tree() -> None:  # as one graph: it is even slower if tasks are submitted one by one
        root = _reduced([leaf(i) for i in range(p["leaves"])], inner)
        expect(client.get(graph, root), p["leaves"])

    with sessions.dask() as client:
        client.gather([client.submit(one, pure=False) for _ in range(WARM)])
        return {"time": seconds(tree)}


WORKLOADS = [Workload(
    "tree", "9,999 tasks in a tree that adds 5,000 ones", (Metric("time", "s"),),
    {"mobula": lambda p: _run(sessions.mobula, p), "ray": lambda p: _run(sessions.ray, p), "dask": _dask},
    {"leaves": 5000}, {"leaves": 200})]
