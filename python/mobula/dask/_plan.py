"""The part of a Dask graph that has to run: the nodes reached from the wanted keys, dependencies first.

A key stands for a task, for a literal of the graph, for a reference to a persisted object, or, as an alias, for another key.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any, Callable, Hashable, Iterable, Iterator

from dask.core import flatten
from dask.task_spec import Alias, DataNode, GraphNode, Task, TaskRef

from .._refs import ObjectRef
from ._nodes import nodes_of
from ._persisted import Persisted, check

Key = Hashable
Alike = Callable[[Key, Key], bool]  # whether two tasks have the same options
_NONE: set[Key] = set()


def _any(a: Key, b: Key) -> bool:
    return True


class Plan:
    """The tasks of a graph that have to run, in order."""

    def __init__(self, nodes: dict[Key, GraphNode], given: dict[Key, ObjectRef[Any]]) -> None:
        self.nodes = nodes
        self.given = given  # keys that are references
        self.literals: dict[Key, Any] = {}
        self.tasks: list[Key] = []  # dependencies first
        self.parts: dict[Key, tuple[Key, int]] = {}  # keys that are one result of a task with several: the task, and which result
        self.split: dict[Key, list[Any]] = {}  # tasks with several results: the indices of these in the value
        self._target: dict[Key, Key] = {}

    def find(self, key: Key) -> Key:
        """Resolves aliases: the key that a key finally stands for."""
        return self._target.get(key, key)

    def source(self, key: Key) -> Key:
        """The task that makes the result that a key stands for."""
        key = self.find(key)
        part = self.parts.get(key)
        return part[0] if part is not None else key

    def reach(self, keys: Iterable[Key]) -> None:
        """Adds the tasks that keys need, by a depth-first search. RuntimeError if the graph has a cycle."""
        done: set[Key] = set()
        for wanted in keys:
            stack: list[tuple[Key, Iterator[Key]]] = []
            path: dict[Key, None] = {}
            self._enter(wanted, None, done, path, stack)
            while stack:
                key, deps = stack[-1]
                for d in deps:
                    if d in path:
                        loop = list(path)
                        loop = loop[loop.index(d):] + [d]
                        raise RuntimeError("Cycle detected in Dask: " + " -> ".join(map(str, loop)))
                    if d not in done:
                        self._enter(d, key, done, path, stack)
                        break
                else:
                    stack.pop()
                    path.pop(key)
                    done.add(key)
                    self._leave(key)

    def split_up(self, wanted: Iterable[Key], alike: Alike = _any) -> None:
        """Replaces a task and the tasks that only take items of its result by one task with several results. A shuffle then splits a partition
        into P parts in one task with P results, and not in one task and P tasks that each take one part. Only alike tasks are merged."""
        taking = {k: i for k in self.tasks if (i := _item(self.nodes[k])) is not None}
        users: dict[Key, list[Key]] = {self.find(d): [] for k in taking for d in self.nodes[k].dependencies}
        if not users:
            return
        wanted = {self.find(k) for k in wanted}
        for key in self.tasks:
            for d in self.nodes[key].dependencies:
                if (t := self.find(d)) in users:
                    users[t].append(key)
        gone: set[Key] = set()
        for key in self.tasks:
            items = users.get(key, ())
            if key in wanted or key in gone or len(items) < 2:
                continue
            indices = [taking.get(u) if u not in wanted and alike(key, u) else None for u in items]
            if None in indices:
                continue
            order = {i: n for n, i in enumerate(dict.fromkeys(indices))}
            self.split[key] = list(order)
            for u, i in zip(items, indices):
                self.parts[u] = (key, order[i])
            gone.update(items)
        if gone:
            self.tasks = [k for k in self.tasks if k not in gone]

    def chains(self, wanted: Iterable[Key], alike: Alike = _any) -> list[list[Key]]:
        """The tasks as linear chains: in a chain each task but the first depends on the one before and on no other task, and each but the last
        is needed by the next alone and is not wanted. A chain of alike tasks runs as one task, since nothing else could run in between."""
        known = set(self.tasks)
        direct = not self._target and not self.parts  # every key is its own source

        def taken_by(key: Key) -> set[Key]:
            deps = self.nodes[key].dependencies
            return known.intersection(deps if direct else map(self.source, deps)) if deps else _NONE

        wanted = {self.find(k) for k in wanted}
        after: dict[Key, Key] = {}  # by task: the task that it may be chained to
        for key in self.tasks:
            mine = taken_by(key)
            if len(mine) == 1 and not self.nodes[key].block_fusion:
                (before,) = mine
                if before not in wanted and before not in self.split and not self.nodes[before].block_fusion and alike(before, key):
                    after[key] = before
        if not after:
            return [[key] for key in self.tasks]
        users = dict.fromkeys(after.values(), 0)
        for key in self.tasks:
            for t in taken_by(key):
                if t in users:
                    users[t] += 1
        after = {key: before for key, before in after.items() if users[before] == 1}
        inside = set(after.values())
        return [self._chain(key, after) for key in self.tasks if key not in inside]

    @staticmethod
    def _chain(last: Key, after: Mapping[Key, Key]) -> list[Key]:
        out = [last]
        while last in after:
            out.append(last := after[last])
        return out[::-1]

    def forget(self, wanted: Iterable[Key]) -> None:
        """Drops everything but the wanted keys: the rest of a large graph is many megabytes, and the node has it now."""
        self._target = {k: t for k in wanted if (t := self.find(k)) != k}
        keep = {self.find(k) for k in wanted}
        self.given = {k: r for k, r in self.given.items() if k in keep}
        self.literals = {k: v for k, v in self.literals.items() if k in keep}
        self.nodes, self.tasks, self.parts, self.split = {}, [], {}, {}

    def _enter(self, key: Key, by: Key, done: set[Key], path: dict[Key, None], stack: list[tuple[Key, Iterator[Key]]]) -> None:
        if key in done:
            return
        if key in self.given:
            check(key, self.given[key])
            done.add(key)
            return
        node = self.nodes.get(key)
        if node is None:
            where = f" that {by!r} depends on" if by is not None else ""
            raise KeyError(f"the key {key!r}{where} is not in the graph")
        if isinstance(node, DataNode):
            done.add(key)
            self.literals[key] = node.value
            return
        deps = node.dependencies
        if not deps:
            done.add(key)
            self._leave(key)
            return
        path[key] = None
        stack.append((key, iter(deps)))

    def _leave(self, key: Key) -> None:
        node = self.nodes[key]
        if isinstance(node, Alias):
            self._target[key] = self.find(node.target)
        else:
            self.tasks.append(key)


def _item(node: GraphNode) -> Any:
    """The index, if a task only takes an item of another task's result; else None."""
    if not isinstance(node, Task) or node.func is not operator.getitem or node.kwargs or len(node.args) != 2:
        return None
    of, index = node.args
    if not isinstance(of, (TaskRef, Alias)) or len(node.dependencies) != 1:
        return None
    if isinstance(index, DataNode):
        index = index.value
    if type(index) in (int, str) or (type(index) is tuple and all(type(i) in (int, str) for i in index)):
        return index
    return None


def flat_keys(keys: Any) -> list[Key]:
    """The keys in nested lists of keys."""
    return list(flatten(keys)) if isinstance(keys, list) else [keys]


def normal(dsk: Any) -> dict[Key, Any]:
    """Converts a graph, in any form that Dask passes to a scheduler, to nodes by key."""
    if not isinstance(dsk, Mapping):
        dsk = dsk.__dask_graph__()
    return nodes_of(dict(dsk))


def plan(dsk: Any, keys: Any) -> Plan:
    """Plans a graph for the wanted keys. KeyError if a key is missing; RuntimeError if the graph has a cycle."""
    dsk = normal(dsk)
    given: dict[Key, ObjectRef[Any]] = {}
    for k, v in dsk.items():
        if isinstance(v, Persisted):
            given[k] = v.object_ref
        elif isinstance(v, DataNode) and type(v.value) is ObjectRef:
            given[k] = v.value
    p = Plan(dsk, given)
    p.reach(flat_keys(keys))
    return p


def nested(keys: Any, results: Mapping[Key, Any]) -> Any:
    """The results in the shape of the keys, with tuples for lists, as Dask's schedulers return them."""
    if isinstance(keys, list):
        return tuple(nested(k, results) for k in keys)
    return results[keys]
