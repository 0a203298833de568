"""Dask's option rerun_exceptions_locally: runs a failed task once more in this process, where a debugger sees its frames.

The task's inputs were not kept, so the tasks that it depends on run here too, and no others. With this option no tasks are chained, so that it
is known which task failed.
"""

from __future__ import annotations

from typing import Any, Mapping, Optional

import dask
from dask.task_spec import DataNode

from ..exceptions import MobulaError, TaskError
from ._local import run_local
from ._plan import Key, normal, plan
from ._ship import Shipped

NAME = "rerun_exceptions_locally"
_DEEP = 1000  # most causes of causes to follow


def rerunning(kwargs: Mapping[str, Any]) -> bool:
    """Whether the option is set, by an argument of get or else in Dask's configuration."""
    said = kwargs.get(NAME)
    return bool(dask.config.get(NAME, False) if said is None else said)


class failures_rerun_locally:
    """Runs the task whose error leaves the block once more here, and raises its error here. If it succeeds here, the first error is raised."""

    def __init__(self, on: bool, s: Shipped, dsk: Any) -> None:
        self._on = on
        self._s = s
        self._dsk = dsk

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, x: Optional[BaseException], tb: Any) -> None:
        key = _failed(self._s, x) if self._on and isinstance(x, Exception) else None
        if key is not None:
            said = {k: DataNode(k, v) for k, v in self._s.plan.literals.items()}  # also results that a presubmit hook has returned
            graph = {**normal(self._dsk), **said}
            run_local(plan(graph, key[0]), graph, key)


def _failed(s: Shipped, x: BaseException) -> Optional[tuple[Key]]:
    """The key of this graph's task that raised the error behind x; None if there is none."""
    keys = {s.graph.id(n): chain[-1] for n, chain in enumerate(s.chains)} if s.graph is not None else {}
    at = x if isinstance(x, MobulaError) else x.__cause__
    found: Optional[tuple[Key]] = None
    for _ in range(_DEEP):
        if not isinstance(at, MobulaError):
            break
        if at.task in keys:  # the innermost task of this graph; errors further inside are of other graphs
            found = (keys[at.task],) if isinstance(at, TaskError) else None
        at = at.causes[0] if at.causes else at.cause if isinstance(at, TaskError) else None
    return found


__all__ = ["NAME", "failures_rerun_locally", "rerunning"]
