"""References inside a task: in its arguments, wherever pickle would find them. Where a task is shipped the worker has their values in their place."""

from __future__ import annotations

import io
import pickle
import types
from typing import Any

from dask.task_spec import GraphNode

from .._api.objects import get_all
from .._refs import ObjectRef
from ..exceptions import MobulaError, TaskError

_OURS = (types.FunctionType, types.BuiltinFunctionType, type, types.ModuleType)  # what a copy of a task shares with it


def with_values(node: GraphNode) -> GraphNode:
    """The task with the values of what it refers to; the task itself if it does not, or cannot be pickled. Large buffers are not copied."""
    out = io.BytesIO()
    finds = _Finds(out)
    try:
        finds.dump(node)
    except Exception:
        return node
    if not finds.refs:
        return node
    kept = [fetched(x) if i in finds.refs else x for i, x in enumerate(finds.kept)]
    out.seek(0)
    found: GraphNode = _Puts(out, kept, finds.buffers).load()
    return found


def fetched(ref: ObjectRef[Any]) -> Any:
    """The value, arrays the caller's own; the error of a task is raised as it was raised there."""
    try:
        return get_all([ref], own=True)[0]
    except TaskError as x:
        if x.cause is None or isinstance(x.cause, MobulaError):
            raise
        raise x.cause from x


class _Finds(pickle.Pickler):
    def __init__(self, out: io.BytesIO) -> None:
        self.buffers: list[pickle.PickleBuffer] = []
        super().__init__(out, 5, buffer_callback=self.buffers.append)
        self.kept: list[Any] = []
        self.refs: set[int] = set()  # places in kept

    def persistent_id(self, x: Any) -> Any:
        if type(x) is ObjectRef:
            self.refs.add(len(self.kept))
        elif not isinstance(x, _OURS):
            return None
        self.kept.append(x)
        return len(self.kept) - 1


class _Puts(pickle.Unpickler):
    def __init__(self, data: io.BytesIO, kept: list[Any], buffers: list[pickle.PickleBuffer]) -> None:
        super().__init__(data, buffers=buffers)
        self._kept = kept

    def persistent_load(self, i: Any) -> Any:
        return self._kept[i]


__all__ = ["fetched", "with_values"]
