"""Replaces references inside a task's arguments by their values, wherever pickle finds them. For shipped tasks the worker does this."""

from __future__ import annotations

import copyreg
import io
import operator
import pickle
import types
from typing import Any

import cloudpickle
from dask.task_spec import GraphNode

from .._api.objects import get_all
from .._containers import VIEWS
from .._refs import ObjectRef
from ..exceptions import MobulaError, TaskError

_OURS = (types.FunctionType, types.BuiltinFunctionType, type, types.ModuleType)  # types that a copy of a task shares with the original

_KEPT = -1  # the persistent id of the list itself


def with_values(node: GraphNode) -> GraphNode:
    """A copy of the task with values in place of references; the task itself, if it has none. The copy shares with it what cannot be pickled, and
    large buffers."""
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
    """The value of a reference, with writable arrays. If its task failed, it raises the task's own exception."""
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
        self.refs: set[int] = set()  # indices in kept

    def persistent_id(self, x: Any) -> Any:
        if type(x) is ObjectRef:
            self.refs.add(len(self.kept))
        elif x is self.kept:
            return _KEPT
        elif not isinstance(x, _OURS):
            return None
        self.kept.append(x)
        return len(self.kept) - 1

    def reducer_override(self, x: Any) -> Any:
        reduce = (cloudpickle.Pickler if type(x) in VIEWS else copyreg).dispatch_table.get(type(x))
        try:
            parts = reduce(x) if reduce is not None else x.__reduce_ex__(5)
        except Exception:
            parts = ""  # a lock, a file, or a generator
        if type(parts) is tuple:
            return parts
        self.kept.append(x)
        return operator.getitem, (self.kept, len(self.kept) - 1)


class _Puts(pickle.Unpickler):
    def __init__(self, data: io.BytesIO, kept: list[Any], buffers: list[pickle.PickleBuffer]) -> None:
        super().__init__(data, buffers=buffers)
        self._kept = kept

    def persistent_load(self, i: Any) -> Any:
        return self._kept if i == _KEPT else self._kept[i]


__all__ = ["fetched", "with_values"]
