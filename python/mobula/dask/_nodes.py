"""Graphs whose tasks are tuples, Dask's older form, as nodes.

Dask's classes of nodes are public, what it converts with is not. In such a graph a tuple that begins with something callable is a task, and a
string, a number or a tuple that is a key stands for that key's result: as an argument, in lists, tuples and sets, and in tasks that are
arguments of tasks. Whatever is a node already stays what it is, and anything else is itself.
"""

from __future__ import annotations

from typing import Any, Container, Hashable, Mapping, Optional

from dask.task_spec import Alias, DataNode, GraphNode, Task, TaskRef
from dask.utils import is_namedtuple_instance

_REFER = (GraphNode, TaskRef)  # what a task does not take as it is


def nodes_of(dsk: Mapping[Hashable, Any]) -> dict[Hashable, Any]:
    """The graph's nodes by key. A key that only stands for itself is not in it."""
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
    """What x says: a node, a reference to a key, or x itself. Parts of a task have no key."""
    if isinstance(x, _REFER):
        return x
    if type(x) is tuple and x and callable(x[0]):
        return Task(key, x[0], *[_mapping(a) if isinstance(a, dict) else _node(None, a, keys) for a in x[1:]])
    if isinstance(x, (str, int, float, tuple)) and _among(keys, x):
        return TaskRef(x)
    if isinstance(x, (list, tuple, set, frozenset)):
        return _collection(key, x, keys)
    if getattr(x, "__dask_future__", False):  # so Dask knows a future of whatever scheduler
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
    """A dict, which is read only as far as its values are nodes."""
    if not any(isinstance(v, _REFER) for v in x.values()):
        return x
    return Task(None, _pair, tuple(x), *x.values())


def _among(keys: Container[Any], x: Any) -> bool:
    try:
        return x in keys
    except TypeError:
        return False  # it has no hash


def _gather(kind: Any, *parts: Any) -> Any:
    return kind(parts)


def _pair(names: tuple[Any, ...], *values: Any) -> Any:
    return dict(zip(names, values))
