"""Computations with callbacks: Dask's own five, and the six of callbacks.py.

Dask's callbacks are called when the node's scheduler starts a task and when its result is ready. The state that they get is that of Dask's
local scheduler, rebuilt from the node's events (_state_tracker).
"""

from __future__ import annotations

from typing import Any, Callable, Mapping, Optional, Sequence

from dask.callbacks import local_callbacks

from .._api import get as fetch
from .._refs import ObjectRef
from ._plan import Key, Plan, flat_keys, nested, normal, plan
from ._rerun import failures_rerun_locally, rerunning
from ._ship import Shipped, collect, fusing, ship, stopping
from ._state_tracker import StateTracker
from .callbacks import Active, given, taken

# Runs a plan: gets the plan, its graph, the wanted keys, the six hooks, and the state for Dask's callbacks; returns the wanted values.
Run = Callable[[Plan, Any, Sequence[Key], Active, Optional[StateTracker]], dict[Key, Any]]


def observed(dsk: Any, keys: Any, kwargs: Mapping[str, Any], run: Run) -> tuple[bool, Any]:
    """Computes the keys if any callback is active and returns (True, results); else returns (False, None)."""
    with local_callbacks(kwargs.get("callbacks")) as theirs, taken(given(kwargs)) as ours:
        if not theirs and not ours:
            return False, None
        return True, _compute(dsk, keys, theirs or (), ours, run)


def _compute(dsk: Any, keys: Any, theirs: Any, ours: Active, run: Run) -> Any:
    graph = normal(dsk)
    wanted = flat_keys(keys)
    tracker: Optional[StateTracker] = None
    begun = []
    failed = True
    try:
        for cb in theirs:
            if cb[0]:
                cb[0](graph)
            begun.append(cb)
        p = plan(graph, keys)
        if theirs:
            tracker = StateTracker(theirs, p, graph, wanted)
            for cb in theirs:
                if cb[1]:
                    cb[1](graph, tracker.state)
        result = nested(keys, run(p, graph, wanted, ours, tracker))
        for f in ours.of("finish"):
            f(result)
        failed = False
        return result
    finally:
        for cb in begun:
            if cb[4]:
                cb[4](graph, tracker.state if tracker is not None else {}, failed)


def on_node(kwargs: Mapping[str, Any], notes: Any) -> Run:
    """Returns the function that runs plans on the node."""
    again = rerunning(kwargs)
    fuse = fusing(kwargs) and not again

    def run(p: Plan, graph: Any, wanted: Sequence[Key], ours: Active, tracker: Optional[StateTracker]) -> dict[Key, Any]:
        everything = tracker is not None and tracker.values
        s = submitted(p, graph, wanted, ours, fuse=fuse, notes=notes, everything=everything, events=tracker is not None)
        with failures_rerun_locally(again, s, graph):
            if tracker is not None and s.graph is not None:
                with stopping(s):
                    _follow(s, tracker)
            return collect(s, wanted)

    return run


def submitted(p: Plan, graph: Any, wanted: Sequence[Key], ours: Active, *, fuse: bool, notes: Any, everything: bool = False,
              events: bool = False) -> Shipped:
    """Ships a plan and calls the submit hooks."""
    everything = everything or bool(ours.of("postsubmit") or ours.of("presubmit"))
    s = ship(p, wanted, fuse=fuse, everything=everything, events=events, notes=notes, watch=ours)
    refs = [r for k in wanted if type(r := s.result(k)) is ObjectRef]
    for f in ours.of("postsubmit_all"):
        f(refs, graph)
    return s


def _follow(s: Shipped, tracker: StateTracker) -> None:
    """Reports the node's events to Dask's callbacks until the graph has ended or a task has failed; collect raises its error."""
    assert s.graph is not None
    parts: dict[Key, list[Key]] = {}  # by task with several results: the keys of its single results
    for part, (key, _) in s.plan.parts.items():
        parts.setdefault(key, []).append(part)
    tracker.begin()
    for e in s.graph.events():
        for n in e.done:
            value = fetch(s.graph.refs[n]) if tracker.values else None
            chain = s.chains[n]
            for key in (*chain, *parts.get(chain[-1], ())):
                tracker.done(key, value)
        for n in e.started:
            tracker.begun(s.chains[n][0])
        if e.failed:
            return
