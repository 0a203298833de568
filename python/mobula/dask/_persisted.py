"""Collections that persist has made: graphs of nodes that refer to objects.

Mobula's schedulers take the reference out of a node. Any other scheduler of Dask runs the node, and gets the value. The values of a collection's
graph are the references themselves, as with Dask-on-Ray: a dict that a program makes of the graph is for Mobula's schedulers alone.
"""

from __future__ import annotations

from typing import Any, Hashable, Iterator, Sequence

from dask.delayed import Delayed
from dask.highlevelgraph import HighLevelGraph, MaterializedLayer
from dask.task_spec import DataNode

from .. import _value
from .._refs import ObjectRef
from ..exceptions import MobulaError, ObjectFreedError, ObjectLostError, ShutdownError
from ._nested_refs import fetched


class Persisted(DataNode):  # type: ignore[misc]
    """A node whose value is an object of the store, or is still being made."""

    __slots__ = ("object_ref",)

    def __init__(self, key: Hashable, ref: ObjectRef[Any]) -> None:
        super().__init__(key, None)
        self.object_ref = ref

    @property
    def value(self) -> Any:  # of a node that any other scheduler runs
        check(self.key, self.object_ref)
        try:
            return fetched(self.object_ref)
        except (ShutdownError, ObjectFreedError, ObjectLostError) as x:
            raise lost(self.key, x) from x

    @value.setter
    def value(self, value: Any) -> None:
        """The base class sets it."""

    def __call__(self, values: Any = ()) -> Any:
        return self.value

    def copy(self) -> Persisted:
        return Persisted(self.key, self.object_ref)

    def substitute(self, subs: Any, key: Any = None) -> Persisted:
        return self if key is None or key == self.key else Persisted(key, self.object_ref)

    def __dask_tokenize__(self) -> Any:
        return type(self).__name__, self.object_ref.hex()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Persisted) and (self.key, self.object_ref) == (other.key, other.object_ref)

    def __hash__(self) -> int:
        return hash((self.key, self.object_ref))

    def __sizeof__(self) -> int:
        return object.__sizeof__(self)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.value)

    def __repr__(self) -> str:
        return f"Persisted({self.object_ref!r})"

    def __copy__(self) -> Persisted:
        return self

    def __deepcopy__(self, memo: Any) -> Persisted:
        return self

    def __reduce__(self) -> Any:
        """In an argument or a result of a task it is a reference. In any other pickle, such as those for the processes of Dask's own scheduler, it is
        the value: a reference would not keep the object, and is of no use in a process without a connection."""
        check(self.key, self.object_ref)
        return restore, (self.key, self.object_ref if _value.local.refs is not None else self.value)


def restore(key: Hashable, x: Any) -> DataNode:
    """Unpickles a node; pickles name this function. In a task of a graph x is the value that stands in for the reference."""
    return Persisted(key, x) if type(x) is ObjectRef else DataNode(key, x)


def check(key: Hashable, ref: ObjectRef[Any]) -> None:
    """ShutdownError if the connection to the node that has an object has ended."""
    why = ref._c.dead
    if why is not None:
        raise lost(key, why)


def lost(key: Hashable, why: MobulaError) -> MobulaError:
    """The error of a graph that needs a persisted object which is gone."""
    return type(why)(f"the value of {key!r}, which was persisted, is gone ({why.message}): persist it again")


class _Shown(HighLevelGraph):  # type: ignore[misc]
    """A graph of nodes that shows references as its values, and in a dict of it. Dask takes the layers or the items, which are the nodes."""

    def __getitem__(self, key: Any) -> Any:
        return _shown(super().__getitem__(key))

    def values(self) -> Any:
        return {k: _shown(x) for k, x in self.items()}.values()


def _shown(x: Any) -> Any:
    return x.object_ref if isinstance(x, Persisted) else x


def nodes(keys: Any, results: Any) -> Any:
    """The results of a scheduler function, with nodes for references."""
    if isinstance(keys, list):
        return tuple(nodes(k, r) for k, r in zip(keys, results))
    return Persisted(keys, results) if type(results) is ObjectRef else results


def shown(collections: Sequence[Any]) -> tuple[Any, ...]:
    """Collections that show references as the values of their graphs. Those of an expression, as dataframes, and of a plain dict
    show nodes."""
    return tuple(_shown_collection(x) for x in collections)


def _shown_collection(x: Any) -> Any:
    graph: Any = getattr(x, "dask", None)
    if isinstance(x, Delayed):  # it says yes to any attribute
        if type(graph) is dict:
            graph = HighLevelGraph({x.key: MaterializedLayer(graph)}, {x.key: set()})
    elif hasattr(x, "expr"):
        return x
    if type(graph) is not HighLevelGraph:
        return x
    rebuild, state = x.__dask_postpersist__()
    return rebuild(_Shown(graph.layers, graph.dependencies), *state)


__all__ = ["Persisted", "check", "nodes", "restore", "shown"]
