"""Ships a task graph to the node, whose scheduler runs it. The format is that of package graph/run in the Go code.

A graph is itself a task of this job. The ids of its tasks' results are known from the start: references to them are valid
from the submit on, before the tasks begin.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field, replace
from typing import Any, Iterable, Mapping, Optional, Sequence

import cbor2

from . import _functions, _ids, _runtime, _trace, _value
from ._api.objects import get
from ._callsites import callsite
from ._client import Client, Handle, TaskContext
from ._refs import ObjectRef, ObjectRefGenerator, made
from ._wire import codec, hot
from ._wire import messages as m
from .exceptions import InvalidError, MobulaError

FUNC = "mobula:graph"
VERSION = 1
BLOB = 8 << 20  # bytes of payloads in one object
Conditions = tuple[tuple[str, int, tuple[str, ...]], ...]  # on labels of nodes: key, operator and values
_SHARE = 64  # an object of payloads is at most 1/64 of the store: a running graph has two in memory, beside its tasks' data


@dataclass
class Note:
    """Options of some tasks of a graph. Equal ones are shipped once."""

    resources: Mapping[str, float] = field(default_factory=dict)
    cpu: Optional[float] = None
    priority: int = 0
    retries: int = 0  # after the task's own errors; workers' deaths are counted apart
    exceptions: bool = False  # if retries is 0: its own errors count like workers' deaths; if failures is 0 too: 3 retries, counted apart
    only: str = ""  # the types of errors that exceptions means (_options.retry_only)
    failures: int = 0  # the task fails when so many workers have died of it; 0: the graph's number; -1: no limit
    isolated: bool = False
    spread: bool = False
    timeout: int = 0  # ns from when the graph submits the task
    returns: int = 1
    labels: Conditions = ()  # which nodes may run them
    prefer: Conditions = ()  # which should
    affinity: int = 0
    node: int = 0  # its home, with affinity
    types: Optional[ObjectRef[Any]] = field(default=None, compare=False)  # those that only names, if they are in the store

    def key(self) -> tuple[Any, ...]:
        rest = self._said()
        return tuple(sorted(rest.pop("resources").items())), *rest.values()

    def _said(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "types"}

    def copy(self, **changes: Any) -> Note:
        return replace(self, **changes)

    def shipped(self) -> dict[str, Any]:
        """The note as the node reads it."""
        return {**self._said(), "resources": dict(self.resources), "labels": _shipped(self.labels), "prefer": _shipped(self.prefer)}


def conditions(matches: Sequence[m.LabelMatch]) -> Conditions:
    return tuple((one.key, one.op, tuple(one.values)) for one in matches)


def _shipped(matches: Conditions) -> list[dict[str, Any]]:
    return [{"key": key, "op": op, "values": list(values)} for key, op, values in matches]


class Builder:
    """Builds a graph: tasks in any order, dependencies by number."""

    def __init__(self, client: Client, function: _functions.Exported) -> None:
        self._client = client
        self._inline = client.inline
        self._blob_most = min(BLOB, client.welcome.segment_size // _SHARE)
        self._function = function
        self._keys: list[str] = []
        self._deps = array("i")
        self._counts = array("i")
        self._parts = array("i")
        self._several = False
        self._outer = array("i")
        self._outer_counts = array("i")
        self._lengths = array("i")
        self._blob: list[bytes] = []
        self._blob_bytes = 0
        self._blob_tasks = 0
        self._blobs: list[Handle] = []
        self._blob_counts = array("i")
        self._groups: dict[str, int] = {}
        self._group_of = array("i")
        self._producers = bytearray()
        self._notes: dict[tuple[Any, ...], tuple[int, Note]] = {}
        self._note_of = array("i")
        self._objects: dict[bytes, int] = {}
        self._held: list[Any] = []
        self._tc = _runtime.context(client)
        self._task = self._tc.next_task()
        self._derive = _ids.deriver(self._task)
        self._refs: dict[int, ObjectRef[Any]] = {}

    def __len__(self) -> int:
        return len(self._keys)

    def outer(self, ref: ObjectRef[Any]) -> int:
        """The number of an object from outside the graph."""
        n = self._objects.get(ref._h.id)
        if n is None:
            if ref._c is not self._client:
                ref._c.check()
                raise InvalidError(f"{ref!r} is of another connection than the graph that takes it")
            n = self._objects[ref._h.id] = len(self._objects)
            self._held.append(ref)
        return n

    def ref(self, n: int) -> ObjectRef[Any]:
        """The reference to a task's result. It is valid once the graph is submitted with n in wanted."""
        r = self._refs.get(n)
        if r is None:
            r = self._refs[n] = made(self._client, _ids.return_id(self._derive(n + 1), 0))
        return r

    def task(self, key: str, group: str, payload: bytes, deps: Sequence[int], outer: Sequence[int] = (), *, parts: Optional[Sequence[int]] = None,
             producer: bool = False, note: Optional[Note] = None) -> int:
        """Adds a task and returns its number. The function gets the payload, the results of deps, and the outer objects."""
        self._keys.append(key)
        self._counts.append(len(deps))
        if deps:
            self._deps.extend(deps)
            self._parts.extend(parts or [0] * len(deps))
            self._several = self._several or (parts is not None and any(parts))
        n = -1
        if note is not None:
            n, note = self._notes.setdefault(note.key(), (len(self._notes), note))
            if note.types is not None:
                outer = [*outer, self.outer(note.types)]
        size = len(payload)
        if size > self._inline:
            outer = [self.outer(self._put(payload)), *outer]
            size = -1
        else:
            self._blob.append(payload)
            self._blob_bytes += size
        self._lengths.append(size)
        self._blob_tasks += 1
        if self._blob_bytes >= self._blob_most:
            self._ship()
        if outer:
            self._outer.extend(outer)
        self._outer_counts.append(len(outer))
        self._group_of.append(self._groups.setdefault(group, len(self._groups)))
        self._producers.append(producer)
        self._note_of.append(n)
        return len(self._keys) - 1

    def _put(self, data: bytes, refs: Sequence[bytes] = ()) -> ObjectRef[Any]:
        return put_bytes(self._client, self._tc, data, refs)

    def _ship(self) -> None:
        if self._blob_tasks:
            self._held.append(ref := self._put(b"".join(self._blob)))
            self._blobs.append(ref._h)
            self._blob_counts.append(self._blob_tasks)
            self._blob, self._blob_bytes, self._blob_tasks = [], 0, 0

    def submit(self, wanted: Sequence[int], *, saturation: float, failures: int, events: bool, order: Optional[Sequence[int]] = None) -> Graph:
        """Ships the graph and starts it. References to the results of wanted are valid from now on."""
        c, tc = self._client, self._tc
        self._ship()
        sha = self._function.write(c)  # the graph's tasks have no argument for it
        body = cbor2.dumps({
            "v": VERSION, "func": f"py:{self._function.name}:{sha}", "keys": self._keys, "deps": self._deps.tobytes(), "ndeps": self._counts.tobytes(),
            "parts": self._parts.tobytes() if self._several else b"", "outer": self._outer.tobytes(), "nouter": self._outer_counts.tobytes(),
            "blobs": self._blob_counts.tobytes(), "length": self._lengths.tobytes(), "meta": _value.META_BYTES,
            "groups": list(self._groups), "group": self._group_of.tobytes(), "produce": bytes(self._producers),
            "notes": [n.shipped() for _, n in self._notes.values()],
            "note": self._note_of.tobytes() if self._notes else b"", "order": array("i", order).tobytes() if order is not None else b"",
            "wanted": array("i", wanted).tobytes(), "saturation": float(saturation), "failures": failures, "events": events})
        refs = [h.id for h in self._blobs] + list(self._objects)
        task = self._task
        if len(body) > c.inline:
            self._held.append(request := self._put(body))
            first = hot.arg_ref(request._h.id)
        else:
            first = hot.arg_value(_value.META_BYTES, body)
        options = m.TaskOptions(func=FUNC, num_returns=-1 if events else 1, resources=[m.Resource("CPU", 0)], max_retries=3, label="graph", max_concurrency=1,
                                max_pending_calls=-1)
        c.check()
        out = {n: self.ref(n) for n in wanted}
        g = Graph(c, task, out, None if events else made(c, _ids.return_id(task, 0)))
        c.out.append(hot.submit(task, tc.parent_field, hot.spec_options(m.TASK, codec.encode(options)),
                                first + hot.arg_value(_value.META_BYTES, b"", refs),
                                _trace.field(tc, task, callsite()) + hot.promises([n + 1 for n in wanted])))
        c.flush()
        return g


def put_bytes(c: Client, tc: TaskContext, data: bytes, refs: Sequence[bytes] = ()) -> ObjectRef[Any]:
    """Puts plain bytes."""
    id = tc.next_put()
    ref: ObjectRef[Any] = ObjectRef(c, Handle(id))
    if len(data) <= c.inline:
        c.putter.put_small(ref, _value.META_BYTES, data, refs)
    else:
        c.putter.put_large(id, tc.attempt, tc.task if tc is not c.root else b"", _value.META_BYTES, len(data), [(0, data)], refs, ref, tc)
    return ref


@dataclass
class Event:
    """The numbers of the tasks that started, ended and failed since the event before. The last event has a summary."""

    started: list[int]
    done: list[int]
    failed: list[int]
    summary: Optional[dict[str, Any]]


class Graph:
    """A submitted graph."""

    def __init__(self, client: Client, task: bytes, refs: dict[int, ObjectRef[Any]], end: Optional[ObjectRef[Any]]) -> None:
        self.client = client
        self.task = task
        self.refs = refs
        self.end = end  # the reference to the summary, if the graph has no events
        self._items: Optional[ObjectRefGenerator[Any]] = ObjectRefGenerator(client, task) if end is None else None
        self._derive = _ids.deriver(task)
        self.stopped = False  # by this process
        self._over = False
        self._summary: Optional[dict[str, Any]] = None

    def events(self) -> Iterable[Event]:
        """Yields events until the graph ends. Raises the graph's own error."""
        if self._items is None:
            raise InvalidError("the graph was submitted without events")
        for ref in self._items:
            e = cbor2.loads(get(ref))
            self._over = e.get("sum") is not None
            self._summary = e.get("sum")
            yield Event(e.get("s") or [], e.get("d") or [], e.get("f") or [], e.get("sum"))
        self._over = True

    def id(self, n: int) -> str:
        """The id of a task, as errors and lists show it."""
        return self._derive(n + 1).hex()

    def summary(self) -> Optional[dict[str, Any]]:
        """Waits for the graph's end and returns its summary; None if the graph was stopped or failed as a whole."""
        try:
            if self.end is not None:
                self._summary = cbor2.loads(get(self.end))
        except MobulaError:
            return None
        return self._summary

    def cancel(self) -> None:
        """Stops the graph and its running tasks. Results that exist stay."""
        self.stopped = True
        if not self._over and self.client.dead is None:
            self._over = True
            self.client.cancel(self.task, False, True)


def check_saturation(x: Any) -> float:
    """Dask's setting worker-saturation as a float: a number from 0 on, or inf. InvalidError for anything else."""
    try:
        value = float(x)
    except (TypeError, ValueError):
        raise InvalidError(f"worker-saturation is {x!r}: give a number from 0 on, or inf") from None
    if not value >= 0:
        raise InvalidError(f"worker-saturation is {x!r}: give a number from 0 on, or inf")
    return value


__all__ = ["Builder", "Event", "Graph", "Note", "check_saturation", "put_bytes"]
