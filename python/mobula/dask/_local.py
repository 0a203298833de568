"""Runs a plan in this process, one task after the other."""

from __future__ import annotations

from typing import Any, Optional, Sequence

from .._api import put
from .._functions import calls_user_code
from .._refs import ObjectRef
from ._nested_refs import fetched, with_values
from ._payload import watched
from ._plan import Key, Plan
from ._state_tracker import StateTracker
from .callbacks import Active

_NOBODY = Active(())


def run_local(p: Plan, graph: Any, wanted: Sequence[Key], ours: Active = _NOBODY, tracker: Optional[StateTracker] = None) -> dict[Key, Any]:
    """Runs a plan and returns the values of the wanted keys. Other values are dropped as soon as nothing needs them."""
    uses: dict[Key, int] = {}
    for key in p.tasks:
        for t in {p.find(d) for d in p.nodes[key].dependencies}:
            uses[t] = uses.get(t, 0) + 1
    for k in wanted:
        uses[p.find(k)] = uses.get(p.find(k), 0) + 1
    run = _Run(p, ours)
    if tracker is not None:
        tracker.begin()
    for key in p.tasks:
        if tracker is not None:
            tracker.begun(key)
        value = run.task(key)
        if tracker is not None:
            tracker.done(key, value)
        for t in {p.find(d) for d in p.nodes[key].dependencies}:
            uses[t] -= 1
            if not uses[t]:
                run.values.pop(t, None)
    for f in ours.of("postsubmit_all"):
        f([r for k in wanted if type(r := run.ref(k)) is ObjectRef], graph)
    return {k: run.value(k) for k in wanted}


class _Run:
    def __init__(self, p: Plan, ours: Active) -> None:
        self._plan = p
        self.values: dict[Key, Any] = {}
        self._refs: dict[Key, Any] = {}
        self._presubmit, self._postsubmit = ours.of("presubmit"), ours.of("postsubmit")
        self._around = ours.around()

    @calls_user_code
    def task(self, key: Key) -> Any:
        """Runs a task, or takes the result that a presubmit hook returns."""
        node = self._plan.nodes[key]
        deps = [self.ref(d) for d in node.dependencies] if self._presubmit or self._postsubmit else []
        said = [f(node, key, deps) for f in self._presubmit]  # call every hook, even if one has returned a result
        for value in said:
            if value is not None:
                self.values[key] = self._refs[key] = value
                return value
        data = {d: self.value(d) for d in node.dependencies}
        full = with_values(node)
        self.values[key] = value = watched(self._around, full, data) if self._around else full(data)
        for f in self._postsubmit:
            f(node, key, deps, self.ref(key))
        return value

    def value(self, key: Key) -> Any:
        key = self._plan.find(key)
        if key in self.values:
            return self.values[key]
        return fetched(self._plan.given[key]) if key in self._plan.given else self._plan.literals[key]

    def ref(self, key: Key) -> Any:
        """What hooks get for a key: a reference, or the value of a literal."""
        p, key = self._plan, self._plan.find(key)
        if key in p.given:
            return p.given[key]
        if key in p.literals:
            return p.literals[key]
        r = self._refs.get(key)
        if r is None:
            value = self.values[key]
            r = self._refs[key] = value if type(value) is ObjectRef else put(value)
        return r


__all__ = ["run_local"]
