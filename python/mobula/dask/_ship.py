"""A plan becomes a graph on the node, and its results values."""

from __future__ import annotations

from typing import Any, Callable, Mapping, Optional, Sequence

import dask

from .. import _functions, _runtime
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


# Told of every plan that went to the node.
observers: list[Callable[[Shipped], None]] = []


class Shipped:
    """A plan on its way: which of its keys are tasks of a graph on the node, and under which number."""

    def __init__(self, p: Plan) -> None:
        self.plan = p
        self.graph: Optional[Graph] = None
        self.numbers: dict[Key, int] = {}
        self.chains: list[Sequence[Key]] = []  # by number; a task goes by its last key

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


def ship(p: Plan, wanted: Sequence[Key], *, fuse: bool = False, everything: bool = False, events: bool = False, notes: Optional[Notes] = None,
         watch: Optional[Active] = None) -> Shipped:
    """Sends a plan to the node. fuse: tasks that follow one another alone are one there. everything: all results can be referred to, not
    only the wanted ones, and each task is there by itself."""
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
    if not (observers or watch or events):  # who looks on may ask what the plan was
        p.forget(wanted)
    return s


class _Inputs:
    """What a task takes: results of the graph, then objects from outside it, each under a name; and small values."""

    def __init__(self) -> None:
        self.names: dict[Key, None] = {}  # in order; a task may take very many
        self.deps: list[int] = []
        self.parts: list[int] = []  # beside deps: which of its results
        self.late: dict[Key, None] = {}
        self.outer: list[int] = []
        self.small: Optional[dict[Key, Any]] = None

    def outside(self, name: Key, number: int) -> None:
        if name not in self.late:
            self.late[name] = None
            self.outer.append(number)


class _Packing:
    """Packs the tasks of a plan, dependencies first."""

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
        """Packs tasks that are to run one after another in one place, as one."""
        s, p = self._s, self._s.plan
        key = chain[-1]
        if self._presubmit:
            said = [f(p.nodes[key], key, self._refs(key)) for f in self._presubmit]  # each is told, whatever another says
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
        """Adds what a task takes under a name."""
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
        """What a task takes: references, and literals as they are."""
        s, p = self._s, self._s.plan
        out = []
        for d in p.nodes[key].dependencies:
            t = p.find(d)
            n = s.numbers.get(t)
            out.append(self.builder.ref(n) if n is not None else p.given[t] if t in p.given else p.literals[t])
        return out

    def submitted(self) -> None:
        """The graph is on its way."""
        for f in self._postsubmit:
            for key, n in self._s.numbers.items():
                f(self._s.plan.nodes[key], key, self._refs(key), self.builder.ref(n))


def fusing(kwargs: Mapping[str, Any]) -> bool:
    """Whether tasks that follow one another alone become one: unless an argument of get, or Dask's configuration, says no."""
    return bool(kwargs.get("optimize_graph", True)) and dask.config.get("optimization.fuse.active", None) is not False


def splitting() -> bool:
    """Whether a task of which others only take items gives these (enable's use_shuffle_optimization)."""
    return bool(dask.config.get("mobula.shuffle-optimization", True))


def _group(key: Key) -> str:
    """The name that Dask groups tasks under; of a plain key it follows from the key."""
    return str(key[0]) if isinstance(key, tuple) and key else ""


class stopping:
    """Whatever leaves the block early stops the graph; an error of a task is raised as it was raised there."""

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
    """Waits for what was asked. Arrays are the caller's, as Dask's users expect, and not the store's."""
    results = {k: s.result(k) for k in wanted}
    asked = [(k, r) for k, r in results.items() if type(r) is ObjectRef]
    with stopping(s):
        for (k, _), v in zip(asked, get_all([r for _, r in asked], own=True)):
            results[k] = v
    return results


def unwrapped(s: Shipped, x: MobulaError) -> BaseException:
    """The exception of the task's own type, with the error that brought it as its cause; an error of the runtime says which key it is of."""
    at: MobulaError = x
    for _ in range(_DEEP):
        inner = at.cause if isinstance(at, TaskError) else None
        if inner is not None and not isinstance(inner, MobulaError):
            inner.__cause__ = x
            return inner
        if isinstance(inner, MobulaError):
            at = inner
        elif at.causes and (not at.task or at.causes[0].task):
            at = at.causes[0]  # one of another task: this one failed by its argument
        else:
            break
    which = _name_of(s, at.task)
    return x if which is None else type(at)(f"{which}: {at.message}", name=at.name, task=at.task, stack=at.stack, causes=(x,))


_DEEP = 1000  # causes of causes


def _name_of(s: Shipped, task: str) -> Optional[str]:
    """What the task with that id does, if it is of this graph."""
    for n, chain in enumerate(s.chains):
        if task and s.graph is not None and s.graph.id(n) == task:
            return f"the task {chain[0]!r}" if len(chain) == 1 else "the tasks " + ", ".join(map(repr, chain)) + ", run as one"
    return None
