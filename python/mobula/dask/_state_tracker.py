"""The state of Dask's local scheduler, rebuilt for Dask's five callbacks while tasks run here or on the node."""

from __future__ import annotations

from typing import Any, Sequence

from dask.callbacks import unpack_callbacks
from dask.local import finish_task, start_state_from_dask
from dask.order import order
from dask.task_spec import Alias

from .._api.objects import get_all
from .._refs import ObjectRef
from ._plan import Key, Plan

WORKER = 0  # the worker's id for posttask callbacks; the node does not report it


class StateTracker:
    """Tracks the tasks that begin and end, and calls pretask and posttask."""

    def __init__(self, callbacks: Any, p: Plan, graph: Any, wanted: Sequence[Key]) -> None:
        self._plan = p
        self._graph = graph
        self._wanted = set(wanted)
        self._key = order(p.nodes).get
        _, _, self._pretask, self._posttask, _ = unpack_callbacks(callbacks)
        self.state: dict[str, Any] = start_state_from_dask({**p.nodes, **p.given}, keys=self._wanted, sortkey=self._key)
        self._ready = self.state["ready"] = _Ready(p, self.state["ready"])

    @property
    def values(self) -> bool:
        """Whether done needs the tasks' values."""
        return bool(self._posttask)

    def begin(self) -> None:
        """Before the first task: finishes the aliases of literals."""
        self._over()

    def begun(self, key: Key) -> None:
        """A task has begun."""
        state = self.state
        if key in state["running"] or key in state["finished"]:
            return  # reported before
        self._ready.pop(key, None)
        state["waiting"].pop(key, None)
        state["running"].add(key)
        for f in self._pretask:
            f(key, self._graph, state)

    def done(self, key: Key, value: Any) -> None:
        """A task has succeeded."""
        self._done(key, value)
        self._over()

    def _done(self, key: Key, value: Any) -> None:
        state = self.state
        if key in state["finished"]:
            return
        if key not in state["running"]:
            self.begun(key)
        state["cache"][key] = value
        finish_task(self._plan.nodes, key, state, self._wanted, self._key)
        for f in self._posttask:
            f(key, value, self._graph, state, WORKER)

    def _over(self) -> None:
        """Finishes the aliases whose targets have finished."""
        while self._ready.aliases:
            key = self._ready.aliases.pop()
            value = self.state["cache"].get(self._plan.nodes[key].target)
            if self.values and type(value) is ObjectRef:
                value = get_all([value])[0]
            self._done(key, value)


class _Ready(dict[Key, None]):
    """The tasks that could run. Dask's functions append to it as to a list; as a dict it removes any task in constant time."""

    def __init__(self, p: Plan, keys: Sequence[Key]) -> None:
        super().__init__()
        self._nodes = p.nodes
        self.aliases: list[Key] = []
        for key in keys:
            self.append(key)

    def append(self, key: Key) -> None:
        self[key] = None
        if isinstance(self._nodes.get(key), Alias):
            self.aliases.append(key)


__all__ = ["StateTracker"]
