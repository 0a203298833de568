"""What of a Dask graph is to be run: nodes reached from the wanted keys, dependencies before dependents.

A key stands for a task, for a value that is there (a literal of the graph), for an object of the cluster (a reference, of what was
persisted), or, as an alias, for another key.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any, Callable, Hashable, Iterable, Iterator

from dask.core import flatten
from dask.task_spec import Alias, DataNode, GraphNode, Task, TaskRef

from .._refs import ObjectRef
from ._nodes import nodes_of

Key = Hashable
Alike = Callable[[Key, Key], bool]  # whether the same is said of two tasks
_NONE: set[Key] = set()


def _any(a: Key, b: Key) -> bool:
    return True


class Plan:
    """A graph that was looked through."""

    def __init__(self, nodes: dict[Key, GraphNode], given: dict[Key, ObjectRef[Any]]) -> None:
        self.nodes = nodes
        self.given = given  # keys that are objects of the cluster
        self.literals: dict[Key, Any] = {}
        self.tasks: list[Key] = []  # dependencies first
        self.parts: dict[Key, tuple[Key, int]] = {}  # keys that are single results of a task which gives several
        self.split: dict[Key, list[Any]] = {}  # such tasks, and under which indices their results are taken
        self._target: dict[Key, Key] = {}

    def find(self, key: Key) -> Key:
        """The key that an alias stands for in the end, or the key itself."""
        return self._target.get(key, key)

    def source(self, key: Key) -> Key:
        """What makes the result that a key stands for."""
        key = self.find(key)
        part = self.parts.get(key)
        return part[0] if part is not None else key

    def reach(self, keys: Iterable[Key]) -> None:
        """Takes in what keys need. The stack is a depth-first walk: a key on the way down that is met again is a cycle."""
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
        """Lets tasks of which others only take items give these items themselves: a shuffle's split of a partition into P parts then is one task with
        P results, and not one result and P tasks that each take a part of it. Only tasks that are alike become one."""
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
        """The tasks again, those that follow one another alone in one list: each but the first takes the one before it and no other task, each
        but the last is taken by nothing else and is not wanted. Such tasks, where they are alike, are best run as one: nothing else could
        run between them."""
        known = set(self.tasks)
        direct = not self._target and not self.parts  # a key is its own source

        def taken_by(key: Key) -> set[Key]:
            deps = self.nodes[key].dependencies
            return known.intersection(deps if direct else map(self.source, deps)) if deps else _NONE

        wanted = {self.find(k) for k in wanted}
        after: dict[Key, Key] = {}  # tasks that may follow another at once: that one
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
        """Keeps only what wanted keys stand for: of a large graph the rest is many megabytes, and it runs elsewhere now."""
        self._target = {k: t for k in wanted if (t := self.find(k)) != k}
        keep = {self.find(k) for k in wanted}
        self.given = {k: r for k, r in self.given.items() if k in keep}
        self.literals = {k: v for k, v in self.literals.items() if k in keep}
        self.nodes, self.tasks, self.parts, self.split = {}, [], {}, {}

    def _enter(self, key: Key, by: Key, done: set[Key], path: dict[Key, None], stack: list[tuple[Key, Iterator[Key]]]) -> None:
        if key in done:
            return
        if key in self.given:
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
    """The index, if a task takes an item out of another's result, and does nothing else; else None."""
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
    """A graph, of any of the forms that Dask gives a scheduler, as nodes by key; references stay as they are."""
    if not isinstance(dsk, Mapping):
        dsk = dsk.__dask_graph__()
    return nodes_of(dict(dsk))


def plan(dsk: Any, keys: Any) -> Plan:
    """Looks through a graph."""
    dsk = normal(dsk)
    given: dict[Key, ObjectRef[Any]] = {}
    for k, v in dsk.items():
        if isinstance(v, DataNode) and type(v.value) is ObjectRef:
            given[k] = v.value
    p = Plan(dsk, given)
    p.reach(flat_keys(keys))
    return p


def nested(keys: Any, results: Mapping[Key, Any]) -> Any:
    """The results in the shape of the keys, lists as tuples, as Dask's schedulers give them."""
    if isinstance(keys, list):
        return tuple(nested(k, results) for k in keys)
    return results[keys]
