"""Converts graphs whose tasks are tuples, Dask's older form, to nodes.

Dask's node classes are public, but its conversion is not. In such a graph a tuple that begins with a callable is a task. A string, number or
tuple that is a key stands for that key's result: as an argument, inside lists, tuples and sets, and inside tasks that are arguments of tasks.
Nodes stay as they are, and anything else is a literal.
"""

from __future__ import annotations

from typing import Any, Container, Hashable, Mapping, Optional

from dask.task_spec import Alias, DataNode, GraphNode, Task, TaskRef
from dask.utils import is_namedtuple_instance

_REFER = (GraphNode, TaskRef)  # types of arguments that stand for a result


def nodes_of(dsk: Mapping[Hashable, Any]) -> dict[Hashable, Any]:
    """The graph's nodes by key, without keys that are aliases of themselves."""
    nodes: dict[Hashable, Any] = {}
    for key, value in dsk.items():
        node = value if isinstance(value, GraphNode) else _node(key, value, dsk)
        if isinstance(node, TaskRef):
            node = Alias(key, node)
        if isinstance(node, Alias) and node.target == key:
            continue
        nodes[key] = node if isinstance(node, GraphNode) else DataNode(key, node)
    return nodes


def _node(key: Optional[Hashable], x: Any, keys: Container[Any]) -> Any:
    """Converts x to a node or a reference to a key, or returns x itself. key is None for a part of a task."""
    if isinstance(x, _REFER):
        return x
    if type(x) is tuple and x and callable(x[0]):
        return Task(key, x[0], *[_mapping(a) if isinstance(a, dict) else _node(None, a, keys) for a in x[1:]])
    if isinstance(x, (str, int, float, tuple)) and _among(keys, x):
        return TaskRef(x)
    if isinstance(x, (list, tuple, set, frozenset)):
        return _collection(key, x, keys)
    if getattr(x, "__dask_future__", False):  # the mark of a scheduler's futures
        return TaskRef(x.key)
    return x


def _collection(key: Optional[Hashable], x: Any, keys: Container[Any]) -> Any:
    kind, args, named = type(x), x, {}
    fields = is_namedtuple_instance(x)
    if fields and hasattr(x, "__getnewargs_ex__"):
        args, named = x.__getnewargs_ex__()
    elif fields:
        args = x.__getnewargs__()
    parts = [_node(None, p, keys) for p in args]
    named = {name: _node(None, p, keys) for name, p in named.items()}
    if not any(isinstance(p, _REFER) for p in (*parts, *named.values())):
        return x
    return Task(key, kind, *parts, **named) if fields else Task(key, _gather, kind, *parts)


def _mapping(x: dict[Any, Any]) -> Any:
    """Converts a dict whose values include nodes. Other dicts stay as they are."""
    if not any(isinstance(v, _REFER) for v in x.values()):
        return x
    return Task(None, _pair, tuple(x), *x.values())


def _among(keys: Container[Any], x: Any) -> bool:
    try:
        return x in keys
    except TypeError:
        return False  # x is not hashable


def _gather(kind: Any, *parts: Any) -> Any:
    return kind(parts)


def _pair(names: tuple[Any, ...], *values: Any) -> Any:
    return dict(zip(names, values))
