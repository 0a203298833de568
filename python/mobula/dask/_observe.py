"""A computation that somebody watches: Dask's five callbacks and the six around tasks (callbacks.py).

Dask's callbacks hear of a task when the node's scheduler lets it go and when its result is there; the state they are given is the one of
Dask's local scheduler, kept up from what the node tells.
"""

from __future__ import annotations

from typing import Any, Mapping, Sequence

from dask.callbacks import local_callbacks, unpack_callbacks
from dask.local import finish_task, start_state_from_dask
from dask.order import order
from dask.task_spec import Alias

from .._api import get as fetch
from .._refs import ObjectRef
from ._plan import Key, Plan, flat_keys, nested, normal, plan
from ._rerun import failures_here, rerunning
from ._ship import Shipped, collect, fusing, ship, stopping
from .callbacks import Active, given, taken

WORKER = 0  # which of the node's workers ran a task is not told


def observed(dsk: Any, keys: Any, kwargs: Mapping[str, Any], notes: Any) -> tuple[bool, Any]:
    """Computes if anybody watches; else (False, None)."""
    with local_callbacks(kwargs.get("callbacks")) as theirs, taken(given(kwargs)) as ours:
        if not theirs and not ours:
            return False, None
        return True, _Observed(theirs or (), ours, fusing(kwargs), rerunning(kwargs)).compute(dsk, keys, notes)


def submitted(p: Plan, graph: Any, wanted: Sequence[Key], ours: Active, *, fuse: bool, notes: Any, everything: bool = False,
            events: bool = False) -> Shipped:
    """Ships a plan, and tells the hooks of that."""
    everything = everything or bool(ours.of("postsubmit") or ours.of("presubmit"))
    s = ship(p, wanted, fuse=fuse, everything=everything, events=events, notes=notes, watch=ours)
    refs = [r for k in wanted if type(r := s.result(k)) is ObjectRef]
    for f in ours.of("postsubmit_all"):
        f(refs, graph)
    return s


class _Observed:
    def __init__(self, theirs: Any, ours: Active, fuse: bool, again: bool) -> None:
        self._theirs = theirs
        self._ours = ours
        self._fuse = fuse and not again
        self._again = again

    def compute(self, dsk: Any, keys: Any, notes: Any) -> Any:
        graph = normal(dsk)
        wanted = flat_keys(keys)
        state: dict[str, Any] = {}
        started = []
        failed = True
        try:
            for cb in self._theirs:
                if cb[0]:
                    cb[0](graph)
                started.append(cb)
            p = plan(graph, keys)
            if self._theirs:
                state = start_state_from_dask({**p.nodes, **{k: v for k, v in p.given.items()}}, keys=set(wanted), sortkey=order(p.nodes).get)
                for cb in self._theirs:
                    if cb[1]:
                        cb[1](graph, state)
            result = nested(keys, self._run(p, graph, wanted, state, notes))
            for f in self._ours.of("finish"):
                f(result)
            failed = False
            return result
        finally:
            for cb in started:
                if cb[4]:
                    cb[4](graph, state, failed)

    def _run(self, p: Plan, graph: Any, wanted: Sequence[Key], state: dict[str, Any], notes: Any) -> dict[Key, Any]:
        _, _, pretask, posttask, _ = unpack_callbacks(self._theirs) if self._theirs else ((), (), (), (), ())
        s = submitted(p, graph, wanted, self._ours, fuse=self._fuse, notes=notes, everything=bool(posttask), events=bool(self._theirs))
        with failures_here(self._again, s, graph):
            if self._theirs and s.graph is not None:
                with stopping(s):
                    _Follow(s, graph, state, set(wanted), pretask, posttask).follow()
            return collect(s, wanted)


class _Follow:
    """Keeps the local scheduler's state up to date and calls what wants to hear of tasks."""

    def __init__(self, s: Shipped, dsk: Any, state: dict[str, Any], wanted: set[Key], pretask: Any, posttask: Any) -> None:
        self._s = s
        self._dsk = dsk
        self._state = state
        self._wanted = wanted
        self._pretask = pretask
        self._posttask = posttask
        self._key = order(s.plan.nodes).get
        self._parts: dict[Key, list[Key]] = {}  # of a task that gives several results, the tasks that would take them out
        for part, (key, _) in s.plan.parts.items():
            self._parts.setdefault(key, []).append(part)

    def follow(self) -> None:
        s = self._s
        assert s.graph is not None
        self._aliases()
        for e in s.graph.events():
            for n in e.done:
                chain = s.chains[n]
                for key in (*chain, *self._parts.get(chain[-1], ())):
                    if self._state["waiting"].get(key):
                        self._aliases()  # it takes what is before it by another name
                    self._done(key, fetch(s.graph.refs[n]) if self._posttask else None)
            self._aliases()
            for n in e.started:
                self._begun(s.chains[n][0])

    def _begun(self, key: Key) -> None:
        state = self._state
        if key in state["ready"]:
            state["ready"].remove(key)
        state["waiting"].pop(key, None)
        state["running"].add(key)
        for f in self._pretask:
            f(key, self._dsk, state)

    def _done(self, key: Key, value: Any) -> None:
        state = self._state
        if key in state["finished"]:
            return  # told again
        if key not in state["running"]:
            self._begun(key)
        state["cache"][key] = value
        finish_task(self._s.plan.nodes, key, state, self._wanted, self._key)
        for f in self._posttask:
            f(key, value, self._dsk, state, WORKER)

    def _aliases(self) -> None:
        """Aliases are not run on the node: they are over when their targets are."""
        nodes = self._s.plan.nodes
        while True:
            ready = [k for k in self._state["ready"] if isinstance(nodes.get(k), Alias)]
            if not ready:
                return
            for k in ready:
                self._done(k, self._state["cache"].get(nodes[k].target))
