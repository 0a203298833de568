"""Functions as values of the store: those that refer to objects, and large ones.

Such a function is an ordinary object: its value has the function's pickle, and holds the references in it. Whoever may call the function has a reference to
that object, and each call has the object among its arguments. So what the function refers to lives as long as a call of it can
run, and another node gets it as it gets any argument.

A worker unpickles such a function once and keeps it, by the hash of its pickle: what the function keeps between calls stays. But the function
holds what it refers to. So the worker looks, while the function is not called, whether its object is still there (Kept.look), and drops
the function when it is not.
"""

from __future__ import annotations

import gc
import pickle
import time
from functools import partial
from typing import Any, Sequence

from . import _runtime
from ._client import Client, Handle, TaskContext
from ._refs import ObjectRef, bound, resolving
from ._value import Encoded, encode
from ._wire import messages as m

LARGE = 100 << 10  # bytes of a pickle that is better off in the store
LOOK = 2.0  # seconds from a worker's last use of a function to a look whether it is needed, and between looks


class _Function:
    """What the object of a function has as its value. It is unpickled as the function."""

    def __init__(self, id: bytes, sha: str, data: bytes) -> None:
        self._parts = id, sha, data

    def __reduce__(self) -> Any:
        id, sha, data = self._parts
        return restore_function, (id, sha, pickle.PickleBuffer(data))


def put_function(c: Client, tc: TaskContext, sha: str, data: bytes, held: Sequence[Any]) -> ObjectRef[Any]:
    """Puts a function. held: the references in it."""
    id = tc.next_put()
    e: Encoded = encode(_Function(id, sha, data), c.inline)
    e.refs, e.held = [r._h.id for r in held], held
    ref: ObjectRef[Any] = ObjectRef(c, Handle(id))
    if e.data is not None:
        c.putter.put_small(ref, e.meta, e.data, e.refs)
    else:
        c.putter.put_large(id, tc.attempt, tc.task if tc is not c.root else b"", e.meta, e.size, e.parts, e.refs, ref, tc)
    return ref


def restore_function(id: bytes, sha: str, data: Any) -> Any:
    """Unpickles a function; pickles name this function."""
    if _runtime.state.worker is None:
        return _unpickled(data)
    return kept.function(id, sha, data)


def _unpickled(data: Any) -> Any:
    with resolving({}):  # what a function refers to stays a reference, also where those in a task's arguments are replaced by their values
        return pickle.loads(data)


class _Entry:
    """A function that a worker keeps."""

    __slots__ = ("function", "object", "used", "asked")

    def __init__(self, function: Any, object: bytes) -> None:
        self.function = function
        self.object = object  # the object that had it last: it may have been put several times
        self.used = time.monotonic()
        self.asked = False  # whether its object is there


class Kept:
    """The functions that a worker keeps, by the hashes of their pickles."""

    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}
        self._looked = 0.0
        self.dropped = False  # a function that refers to objects, since the last collection

    def __len__(self) -> int:
        return len(self._entries)

    def function(self, id: bytes, sha: str, data: Any) -> Any:
        e = self._entries.get(sha)
        if e is None:
            e = self._entries.setdefault(sha, _Entry(_unpickled(data), id))
        e.object = id
        e.used = time.monotonic()
        return e.function

    def look(self, c: Client) -> None:
        """Asks for the objects of functions that were not used of late. The keeper calls it on each tick."""
        now = time.monotonic()
        if not (self._entries or self.dropped) or now - self._looked < LOOK:
            return
        self._looked = now
        if self.dropped:
            self.dropped = False
            gc.collect()  # a class refers to itself, and so does many a function
        for sha, e in list(self._entries.items()):
            if not e.asked and now - e.used >= LOOK:
                e.asked = True
                ref = bound(c, e.object)
                c.getter.when_known(ref._h, partial(self._known, sha, e, ref))

    def _known(self, sha: str, e: _Entry, ref: ObjectRef[Any]) -> None:
        """It is known whether the object of a function is there."""
        e.asked = False
        res = ref._h.res
        if res is not None and res.kind == m.ERROR and ref._h.id == e.object and self._entries.get(sha) is e:
            self._entries.pop(sha, None)
            self.dropped = True


kept = Kept()
