"""get: Dask's scheduler interface, on the cluster."""

from __future__ import annotations

import contextlib
from typing import Any, Optional, Sequence

import dask

from .. import _functions, _runtime
from .._api import get as fetch
from .._client import Client
from .._graphs import Builder, Graph, Note, check_saturation
from .._refs import ObjectRef
from ..exceptions import MobulaError, TaskError
from . import _payload
from ._plan import Key, Plan, flat_keys, nested, plan

_runner = _functions.Exported(_payload.run)
_ALLOWED_FAILURES = 3  # Dask's distributed.scheduler.allowed-failures


class Shipped:
    """A plan on its way: which of its keys are tasks of a graph on the node, and under which number."""

    def __init__(self, p: Plan, graph: Optional[Graph], numbers: dict[Key, int]) -> None:
        self.plan = p
        self.graph = graph
        self.numbers = numbers
        self.keys = list(numbers)

    def result(self, key: Key) -> Any:
        """The literal, or the reference, that a wanted key stands for."""
        key = self.plan.find(key)
        if key in self.plan.given:
            return self.plan.given[key]
        n = self.numbers.get(key)
        if n is None:
            return self.plan.literals[key]
        assert self.graph is not None
        return self.graph.refs[n]


def ship(p: Plan, wanted: Sequence[Key], *, everything: bool = False, events: bool = False, notes: Optional[dict[Key, Note]] = None) -> Shipped:
    """Sends a plan to the node. everything: all results can be referred to, not only the wanted ones."""
    client = _runtime.client()
    builder = Builder(client, _runner)
    writer = _payload.Writer(builder, client)
    numbers: dict[Key, int] = {}
    literals: dict[Key, int] = {}
    nodes, find = p.nodes, p.find
    for key in p.tasks:
        node = nodes[key]
        deps: list[int] = []
        names: list[Key] = []
        outer: list[int] = []
        late: list[Key] = []
        small: Optional[dict[Key, Any]] = None
        for d in node.dependencies:
            t = find(d)
            n = numbers.get(t)
            if n is not None:
                names.append(d)
                deps.append(n)
            elif t in p.given:
                late.append(d)
                outer.append(builder.outer(p.given[t]))
            elif _payload.is_small(value := p.literals[t]):
                small = small or {}
                small[d] = value
            else:
                o = literals.get(t)
                if o is None:
                    o = literals[t] = builder.outer(_put(client, value))
                late.append(d)
                outer.append(o)
        data, more = writer.payload(node, tuple(names + late), small)
        name = str(key)
        numbers[key] = builder.task(name, _group(key), data, deps, outer + more, producer=bool(node.data_producer), note=notes.get(key) if notes else None)
    if not numbers:
        return Shipped(p, None, numbers)
    if everything:
        asked = list(range(len(numbers)))
    else:
        asked = sorted({numbers[t] for k in wanted if (t := find(k)) in numbers})
    if not asked:
        return Shipped(p, None, {})
    saturation = check_saturation(dask.config.get("distributed.scheduler.worker-saturation", 1.1))
    failures = int(dask.config.get("distributed.scheduler.allowed-failures", _ALLOWED_FAILURES))
    return Shipped(p, builder.submit(asked, saturation=saturation, failures=failures, events=events), numbers)


def _put(client: Client, value: Any) -> "ObjectRef[Any]":
    from .._api import put

    return put(value)


def _group(key: Key) -> str:
    """The name that Dask groups tasks under."""
    return str(key[0]) if isinstance(key, tuple) and key else ""


class Scheduler:
    """Dask's scheduler function. It also answers dask.persist, which asks a scheduler that can for references."""

    __name__ = "mobula.dask.get"

    def __call__(self, dsk: Any, keys: Any, **kwargs: Any) -> Any:
        """Computes keys of a graph: a key, or nested lists of keys. What is not known here of kwargs is for other schedulers."""
        from ._observe import observed

        p = plan(dsk, keys)
        wanted = flat_keys(keys)
        watch = observed(p, wanted, kwargs)
        if watch is not None:
            return nested(keys, watch)
        return nested(keys, collect(ship(p, wanted), wanted))

    def persist(self, collections: Sequence[Any], optimize_graph: bool = True, **kwargs: Any) -> Any:
        """Starts what collections need and gives collections whose graphs hold references to the results."""
        return dask.persist(*collections, scheduler=references, optimize_graph=optimize_graph, **kwargs)

    def __repr__(self) -> str:
        return "<mobula.dask.get>"

    def __reduce__(self) -> str:
        return "get"


get = Scheduler()


def references(dsk: Any, keys: Any, **kwargs: Any) -> Any:
    """A scheduler that does not wait: results are references, of literals the literals."""
    p = plan(dsk, keys)
    wanted = flat_keys(keys)
    s = ship(p, wanted)
    return nested(keys, {k: s.result(k) for k in wanted})


def collect(s: Shipped, wanted: Sequence[Key]) -> dict[Key, Any]:
    """Waits for what was asked. An error of a task is raised as it was raised there; what still runs is stopped."""
    results = {k: s.result(k) for k in wanted}
    asked = [(k, r) for k, r in results.items() if type(r) is ObjectRef]
    try:
        for (k, _), v in zip(asked, fetch([r for _, r in asked])):
            results[k] = v
    except BaseException as x:
        if s.graph is not None:
            s.graph.cancel()
        if isinstance(x, MobulaError):
            raise unwrapped(x)
        raise
    return results


def unwrapped(x: MobulaError) -> BaseException:
    """The exception of the task's own type, with the error that brought it as its cause."""
    at: Optional[BaseException] = x
    seen = 0
    while isinstance(at, MobulaError) and seen < 1000:
        seen += 1
        inner = at.cause if isinstance(at, TaskError) else None
        if inner is not None and not isinstance(inner, MobulaError):
            inner.__cause__ = x
            return inner
        causes = getattr(at, "causes", ())
        at = inner if inner is not None else causes[0] if causes else None
    return x


def get_sync(dsk: Any, keys: Any, **kwargs: Any) -> Any:
    """Computes in this process, one task after the other: for a debugger. References in the graph are fetched."""
    p = plan(dsk, keys)
    wanted = flat_keys(keys)
    uses: dict[Key, int] = {}
    for key in p.tasks:
        for d in {p.find(d) for d in p.nodes[key].dependencies}:
            uses[d] = uses.get(d, 0) + 1
    for k in wanted:
        uses[p.find(k)] = uses.get(p.find(k), 0) + 1
    values: dict[Key, Any] = {}

    def value(key: Key) -> Any:
        t = p.find(key)
        if t in values:
            return values[t]
        return fetch(p.given[t]) if t in p.given else p.literals[t]

    for key in p.tasks:
        node = p.nodes[key]
        values[key] = node({d: value(d) for d in node.dependencies})
        for d in {p.find(d) for d in node.dependencies}:
            uses[d] -= 1
            if not uses[d]:
                values.pop(d, None)
    return nested(keys, {k: value(k) for k in wanted})


_enabled: list[contextlib.ExitStack] = []


def enable(shuffle: Optional[str] = "tasks", use_shuffle_optimization: bool = True) -> "contextlib.AbstractContextManager[None]":
    """Makes the cluster Dask's scheduler, until disable or, in a with statement, until its end.

    shuffle is the method of dataframes' shuffles; None leaves it. use_shuffle_optimization: a partition is split into the parts of its
    destinations at once, one task with as many results.
    """
    stack = contextlib.ExitStack()
    settings: dict[str, Any] = {"scheduler": get, "mobula.shuffle-optimization": use_shuffle_optimization}
    if shuffle is not None:
        settings["dataframe.shuffle.method"] = shuffle
    stack.enter_context(dask.config.set(settings))
    _enabled.append(stack)
    return _Enabled(stack)


class _Enabled(contextlib.AbstractContextManager[None]):
    def __init__(self, stack: contextlib.ExitStack) -> None:
        self._stack = stack

    def __exit__(self, *_: Any) -> None:
        if self._stack in _enabled:
            _enabled.remove(self._stack)
            self._stack.close()


def disable() -> None:
    """Ends the latest enable."""
    if _enabled:
        _enabled.pop().close()
