"""Dask's option rerun_exceptions_locally: a task that failed runs once more, in the process that computes, where a debugger sees its frames.

Nobody kept what the task took: what it depends on is computed here too, and only that. To know which task it was, none is run as one with another.
"""

from __future__ import annotations

from typing import Any, Mapping, Optional

import dask
from dask.task_spec import DataNode

from ..exceptions import MobulaError, TaskError
from ._here import here
from ._plan import Key, normal, plan
from ._ship import Shipped

NAME = "rerun_exceptions_locally"
_DEEP = 1000  # causes of causes


def rerunning(kwargs: Mapping[str, Any]) -> bool:
    """Whether it is asked for: by an argument of get, or else in Dask's configuration."""
    said = kwargs.get(NAME)
    return bool(dask.config.get(NAME, False) if said is None else said)


class failures_here:
    """A task's error within becomes that of its run here. What ends well here fails as it did there."""

    def __init__(self, on: bool, s: Shipped, dsk: Any) -> None:
        self._on = on
        self._s = s
        self._dsk = dsk

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, x: Optional[BaseException], tb: Any) -> None:
        key = _failed(self._s, x) if self._on and isinstance(x, Exception) else None
        if key is not None:
            said = {k: DataNode(k, v) for k, v in self._s.plan.literals.items()}  # by a callback too, in place of a task's result
            graph = {**normal(self._dsk), **said}
            here(plan(graph, key[0]), graph, key)


def _failed(s: Shipped, x: BaseException) -> Optional[tuple[Key]]:
    """The key of the task that raised what became x; None: none of this graph did."""
    keys = {s.graph.id(n): chain[-1] for n, chain in enumerate(s.chains)} if s.graph is not None else {}
    at = x if isinstance(x, MobulaError) else x.__cause__
    found: Optional[tuple[Key]] = None
    for _ in range(_DEEP):
        if not isinstance(at, MobulaError):
            break
        if at.task in keys:  # the deepest is where it began; deeper yet are other graphs
            found = (keys[at.task],) if isinstance(at, TaskError) else None
        at = at.causes[0] if at.causes else at.cause if isinstance(at, TaskError) else None
    return found


__all__ = ["NAME", "failures_here", "rerunning"]
