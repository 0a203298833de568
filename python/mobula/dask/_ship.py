"""Ships a plan to the node as a graph, and collects its results."""

from __future__ import annotations

from typing import Any, Callable, Mapping, Optional, Sequence

import dask

from .. import _exception_parts, _functions, _runtime
from .._api import put
from .._api.objects import get_all
from .._graphs import Builder, Graph, Note, check_saturation
from .._refs import ObjectRef
from ..exceptions import MobulaError, TaskError
from . import _payload
from ._annotations import Notes
from ._plan import Key, Plan
from .callbacks import Active

_runner = _functions.Exported(_payload.run)
_SATURATION = 1.1  # Dask's distributed.scheduler.worker-saturation
_ALLOWED_FAILURES = 3  # Dask's distributed.scheduler.allowed-failures


# Called with every plan that is shipped.
observers: list[Callable[[Shipped], None]] = []


class Shipped:
    """A shipped plan: the graph on the node, and the numbers of the plan's tasks in it."""

    def __init__(self, p: Plan) -> None:
        self.plan = p
        self.graph: Optional[Graph] = None
        self.numbers: dict[Key, int] = {}
        self.chains: list[Sequence[Key]] = []  # by number: the keys that run as this task; the last is its key

    def result(self, key: Key) -> Any:
        """The literal or the reference for a wanted key."""
        key = self.plan.find(key)
        if key in self.plan.given:
            return self.plan.given[key]
        n = self.numbers.get(key)
        if n is None:
            return self.plan.literals[key]
        assert self.graph is not None
        return self.graph.refs[n]


def ship(p: Plan, wanted: Sequence[Key], *, fuse: bool = False, everything: bool = False, events: bool = False, notes: Optional[Notes] = None,
         watch: Optional[Active] = None) -> Shipped:
    """Ships a plan to the node. fuse: chains run as one task. everything: all results have references, not only the wanted ones, and each
    task runs by itself."""
    s = Shipped(p)
    fuse = fuse and not everything
    alike = (notes.alike,) if notes else ()
    if fuse and splitting():
        p.split_up(wanted, *alike)
    packing = _Packing(s, watch)
    for chain in p.chains(wanted, *alike) if fuse else ([key] for key in p.tasks):
        packing.task(chain, notes.of(chain[-1]) if notes else None)
    asked = list(range(len(s.numbers))) if everything else sorted({s.numbers[t] for k in wanted if (t := p.find(k)) in s.numbers})
    if asked:
        saturation = check_saturation(dask.config.get("distributed.scheduler.worker-saturation", _SATURATION))
        failures = int(dask.config.get("distributed.scheduler.allowed-failures", _ALLOWED_FAILURES))
        s.graph = packing.builder.submit(asked, saturation=saturation, failures=failures, events=events)
    packing.submitted()
    for tell in observers:
        tell(s)
    if not (observers or watch or events):  # these may still need the plan
        p.forget(wanted)
    return s


class _Inputs:
    """A task's inputs by name: results of the graph, objects from outside it, and small values."""

    def __init__(self) -> None:
        self.names: dict[Key, None] = {}  # an ordered set, since a task may have very many inputs
        self.deps: list[int] = []
        self.parts: list[int] = []  # parallel to deps: which result of the task
        self.late: dict[Key, None] = {}
        self.outer: list[int] = []
        self.small: Optional[dict[Key, Any]] = None

    def outside(self, name: Key, number: int) -> None:
        if name not in self.late:
            self.late[name] = None
            self.outer.append(number)


class _Packing:
    """Adds the tasks of a plan to a graph, dependencies first."""

    def __init__(self, s: Shipped, watch: Optional[Active]) -> None:
        client = _runtime.client()
        self._s = s
        self.builder = Builder(client, _runner)
        self._writer = _payload.Writer(self.builder, client)
        self._literals: dict[Key, int] = {}
        self._presubmit: list[Callable[..., Any]] = watch.of("presubmit") if watch is not None else []
        self._postsubmit: list[Callable[..., Any]] = watch.of("postsubmit") if watch is not None else []
        around = watch.around() if watch is not None else None
        self._around: Optional[int] = self.builder.outer(put(around)) if around else None

    def task(self, chain: Sequence[Key], note: Optional[Note]) -> None:
        """Adds a chain of tasks as one task."""
        s, p = self._s, self._s.plan
        key = chain[-1]
        if self._presubmit:
            said = [f(p.nodes[key], key, self._refs(key)) for f in self._presubmit]  # call every hook, even if one has returned a result
            for value in said:
                if value is not None:
                    p.literals[key] = value
                    return
        into = _Inputs()
        producer = False
        before: Optional[Key] = None
        links: list[tuple[Any, tuple[Key, ...]]] = []
        for k in chain:
            link: tuple[Key, ...] = ()
            node = p.nodes[k]
            for d in node.dependencies:
                t = p.find(d)
                if t == before and before is not None:
                    link = (*link, d)
                else:
                    self._take(into, d, t)
            links.append((node, link))
            producer = producer or node.data_producer
            before = k
        if self._around is not None:
            into.outside(_payload.AROUND, self._around)
        indices = p.split.get(key)
        if indices is not None:
            note = (note or Note()).copy(returns=len(indices))
        data, more = self._writer.payload(links, (*into.names, *into.late), into.small, indices)
        s.chains.append(chain)
        s.numbers[key] = self.builder.task(str(key), _group(key), data, into.deps, into.outer + more, parts=into.parts, producer=producer,
                                           note=note)

    def _take(self, into: _Inputs, name: Key, key: Key) -> None:
        """Adds the input that a task takes under a name."""
        p = self._s.plan
        part = p.parts.get(key)
        n = self._s.numbers.get(part[0] if part is not None else key)
        if n is not None:
            if name not in into.names:
                into.names[name] = None
                into.deps.append(n)
                into.parts.append(part[1] if part is not None else 0)
        elif key in p.given:
            into.outside(name, self.builder.outer(p.given[key]))
        elif _payload.is_small(value := p.literals[key]):
            into.small = into.small or {}
            into.small[name] = value
        else:
            into.outside(name, self._literal(key, value))

    def _literal(self, key: Key, value: Any) -> int:
        n = self._literals.get(key)
        if n is None:
            n = self._literals[key] = self.builder.outer(put(value))
        return n

    def _refs(self, key: Key) -> list[Any]:
        """A task's inputs, for hooks: references, and values of literals."""
        s, p = self._s, self._s.plan
        out = []
        for d in p.nodes[key].dependencies:
            t = p.find(d)
            n = s.numbers.get(t)
            out.append(self.builder.ref(n) if n is not None else p.given[t] if t in p.given else p.literals[t])
        return out

    def submitted(self) -> None:
        """Calls the postsubmit hooks, once the graph is submitted."""
        for f in self._postsubmit:
            for key, n in self._s.numbers.items():
                f(self._s.plan.nodes[key], key, self._refs(key), self.builder.ref(n))


def fusing(kwargs: Mapping[str, Any]) -> bool:
    """Whether chains run as one task: yes, unless optimize_graph or Dask's optimization.fuse.active is False."""
    return bool(kwargs.get("optimize_graph", True)) and dask.config.get("optimization.fuse.active", None) is not False


def splitting() -> bool:
    """Whether split_up merges tasks (enable's use_shuffle_optimization)."""
    return bool(dask.config.get("mobula.shuffle-optimization", True))


def _group(key: Key) -> str:
    """The name of Dask's task group for a tuple key; empty for a plain key, from which the node derives it."""
    return str(key[0]) if isinstance(key, tuple) and key else ""


class stopping:
    """Stops the graph if an exception leaves the block. An error of a task is raised as the task's own exception."""

    def __init__(self, s: Shipped) -> None:
        self._s = s

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, x: Optional[BaseException], tb: Any) -> None:
        if x is None:
            return
        if self._s.graph is not None:
            self._s.graph.cancel()
        if isinstance(x, MobulaError):
            raise unwrapped(self._s, x)


def collect(s: Shipped, wanted: Sequence[Key]) -> dict[Key, Any]:
    """Waits for the wanted results. Arrays are writable copies, as Dask's users expect."""
    results = {k: s.result(k) for k in wanted}
    asked = [(k, r) for k, r in results.items() if type(r) is ObjectRef]
    with stopping(s):
        for (k, _), v in zip(asked, get_all([r for _, r in asked], own=True)):
            results[k] = v
    return results


def unwrapped(s: Shipped, x: MobulaError) -> BaseException:
    """The exception that a task raised, with x as its __cause__. If there is none, x with the task's key in its message."""
    at: MobulaError = x
    for _ in range(_DEEP):
        inner = at.cause if isinstance(at, TaskError) else None
        if inner is not None and not isinstance(inner, MobulaError):
            _exception_parts.stems(inner, x)
            return _exception_parts.settable(inner)  # Dask sets a field of it
        if isinstance(inner, MobulaError):
            at = inner
        elif at.causes and (not at.task or at.causes[0].task):
            at = at.causes[0]  # the error of another task, whose result this one takes
        else:
            break
    which = _name_of(s, at.task)
    return x if which is None else type(at)(f"{which}: {at.message}", name=at.name, task=at.task, stack=at.stack, causes=(x,))


_DEEP = 1000  # most causes of causes to follow


def _name_of(s: Shipped, task: str) -> Optional[str]:
    """The keys of the task with this id, as text; None if it is not of this graph."""
    for n, chain in enumerate(s.chains):
        if task and s.graph is not None and s.graph.id(n) == task:
            return f"the task {chain[0]!r}" if len(chain) == 1 else "the tasks " + ", ".join(map(repr, chain)) + ", run as one"
    return None
