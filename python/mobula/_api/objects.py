"""put, get and wait."""

from __future__ import annotations

import time
from contextlib import closing
from typing import Any, Iterable, Optional, Protocol, Sequence, TypeVar, overload

from .. import _runtime, _value
from .._client import EVICTED, Client, Handle
from .._refs import ObjectRef, ObjectRefGenerator, load
from .._wire import messages as m
from ..exceptions import InvalidError

_current = _runtime.current
_state = _runtime.state

T = TypeVar("T")


class Exactly(Protocol[T]):
    """A reference to exactly T, for type checkers. References to values of several types match no single T, so get of a list of them
    falls through to the overload with Any."""

    def _exactly(self, x: T, /) -> T: ...


def put(value: T, *, portable: bool = False) -> ObjectRef[T]:
    """Copies a value into the object store and returns a reference to it. Pass the reference to many tasks, and the value is sent once.

        ref = mobula.put(np.ones(10_000_000))
        totals = [total.remote(ref) for _ in range(100)]

    portable: encodes lists and dicts of plain data so that programs in other languages can read them, too. NotEncodableError if the value
    cannot be encoded; TypeError for an ObjectRef; ObjectTooLargeError if it is larger than the store.
    """
    if isinstance(value, ObjectRef):
        raise TypeError("put of an ObjectRef: it names an object already")
    c = _state.client
    if c is None:
        c = _runtime.client()
    tc = _current.get()
    if tc is None or tc.client is not c:
        tc = c.fallback
    e = _value.encode_plain(value, c.inline) if portable else _value.encode(value, c.inline)
    id = tc.next_put()
    ref: ObjectRef[T] = ObjectRef(c, Handle(id))
    if e.data is not None:
        c.putter.put_small(ref, e.meta, e.data, e.refs)
    else:
        c.putter.put_large(id, tc.attempt, tc.task if tc is not c.root else b"", e.meta, e.size, e.parts, e.refs, ref, tc)
    return ref


@overload
def get(refs: ObjectRef[T], *, timeout: Optional[float] = None) -> T: ...
@overload
def get(refs: Iterable[Exactly[T]], *, timeout: Optional[float] = None) -> list[T]: ...
@overload
def get(refs: Iterable[ObjectRef[Any]], *, timeout: Optional[float] = None) -> list[Any]: ...


def get(refs: Any, *, timeout: Optional[float] = None) -> Any:
    """Waits for objects and returns their values: a list in the order of the references, or one value for a single reference.

        total, parts = mobula.get(ref), mobula.get([ref1, ref2], timeout=10)

    Arrays are read-only views of the store's memory. They pin the object as long as the array or a view of it exists.

    timeout: seconds. GetTimeoutError if not all objects are ready by then; the references stay valid. If an object has an error, it is raised
    as soon as it is known, even if other objects are not ready.
    """
    if type(refs) is ObjectRef:
        c, h = refs._c, refs._h
        res = h.res
        if res is not None and res.kind == m.INLINE:
            return _value.decode(res.meta, res.data)
        tc = _current.get()
        if tc is None:
            tc = c.fallback
        res, reading = c.getter.fetch_one(h, None if timeout is None else time.monotonic() + timeout, tc)
        return load(c, res, reading)
    if isinstance(refs, ObjectRefGenerator):
        raise TypeError("get of a generator: iterate over it, each item is a reference")
    return get_all(list(refs), timeout)


def get_all(refs: Sequence[Any], timeout: Optional[float] = None, own: bool = False) -> list[Any]:
    """The values of several objects. own: arrays are writable copies instead of views of the store."""
    if not refs:
        return []
    c, hs = _handles(refs, "get")
    with closing(c.getter.fetch(hs, timeout, _runtime.context(c))) as found:
        return [load(c, res, reading, own) for res, reading in found]


def _handles(refs: Sequence[Any], what: str) -> tuple[Client, list[Handle]]:
    """The connection and the handles of one or more references."""
    hs = []
    for r in refs:
        if type(r) is not ObjectRef:
            raise TypeError(f"{what}: want ObjectRefs, got {r!r} of type {type(r).__name__}")
        hs.append(r._h)
    c: Client = refs[0]._c
    if any(r._c is not c for r in refs):
        raise InvalidError(f"{what}: the references are of different connections")
    return c, hs


@overload
def wait(refs: Iterable[Exactly[T]], *, num_returns: int = 1, timeout: Optional[float] = None,
         fetch_local: bool = True) -> tuple[list[ObjectRef[T]], list[ObjectRef[T]]]: ...
@overload
def wait(refs: Iterable[ObjectRef[Any]], *, num_returns: int = 1, timeout: Optional[float] = None,
         fetch_local: bool = True) -> tuple[list[ObjectRef[Any]], list[ObjectRef[Any]]]: ...


def wait(refs: Iterable[Any], *, num_returns: int = 1, timeout: Optional[float] = None,
         fetch_local: bool = True) -> tuple[list[Any], list[Any]]:
    """Waits until num_returns of the objects are ready, with a value or an error. Returns two lists: num_returns ready references, or fewer
    after timeout seconds, and the others.

        ready, rest = mobula.wait(refs, num_returns=1, timeout=5)

    ValueError if a reference is listed twice or num_returns is out of range. With fetch_local an object that is made on another node is ready
    once its bytes have come to this one, where they stay until their memory is needed; without, it is ready once it is made, on whichever node.
    """
    if isinstance(refs, ObjectRef):
        raise TypeError("wait: want a list of references")
    refs = list(refs)
    if len(set(refs)) != len(refs):
        raise ValueError("wait: the references must be unique")
    if num_returns <= 0 or num_returns > len(refs):
        if not refs:
            return [], []
        raise ValueError(f"wait: num_returns={num_returns} of {len(refs)} references")
    c, hs = _handles(refs, "wait")
    away = c.getter.ready(hs, num_returns, timeout, _runtime.context(c), fetch_local)
    ready: list[ObjectRef[Any]] = []
    rest: list[ObjectRef[Any]] = []
    if away:  # some may lie on other nodes
        for r in refs:
            (ready if len(ready) < num_returns and r._h.here() else rest).append(r)
        return ready, rest
    for r in refs:
        if len(ready) < num_returns and (r._h.res is not None or r._h.cost == EVICTED):
            ready.append(r)
        else:
            rest.append(r)
    return ready, rest
