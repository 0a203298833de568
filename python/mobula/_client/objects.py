"""The tables of handles and pins, and the messages about objects."""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import Callable, Optional

from .. import _ids
from .._wire import hot
from .._wire import messages as m
from .._wire.hot import Answer
from ..exceptions import ProtocolError
from .handle import EVICTED, Found, Handle, Reading
from .interfaces import Waits
from .pin import Pin
from .waiter import Waiter

CACHE_BYTES = 64 << 20  # limit of the cache of inline values, which can be requested again
_RELEASED_AT_ONCE = 1024


class Objects:
    def __init__(self, client: Waits) -> None:
        self._client = client
        self._lock = client.lock
        self.handles: dict[bytes, Handle] = {}
        self.pins: dict[bytes, Pin] = {}
        self.dropped: deque[Handle] = deque()  # appended by finalisers
        self.unpins: deque[Pin] = deque()  # appended by finalisers
        self.cache_used = 0
        self._cached: deque[Handle] = deque()

    # ---- handles

    def bind(self, id: bytes) -> Handle:
        """The handle for a reference that came from elsewhere, for instance inside a value. If this process had none, it tells the owner.
        Ids that a release before 0.5 wrote are converted."""
        if len(id) != _ids.OBJECT:
            id = _ids.widen(id)
        with self._lock:
            h = self.handles.get(id)
            if h is not None:
                h.refs += 1
                return h
            h = self.handles[id] = Handle(id)
            self._client.send(hot.add_ref(id))
            return h

    def adopt(self, id: bytes, res: Optional[Answer] = None) -> Handle:
        """The handle for an object that this process makes."""
        if id not in self.handles:
            h = Handle(id)
            h.res = res
            self.handles[id] = h
            if res is not None and res.kind == m.INLINE:
                h.cost = len(res.data) + len(res.meta) + 128
                self.cache_used += h.cost
                if self.cache_used > CACHE_BYTES // 4:
                    with self._lock:
                        self.cache_used -= h.cost
                        self._cache(h, res)
            return h
        with self._lock:  # a retry of the task makes the same objects again
            old = self.handles.get(id)
            if old is None:
                old = self.handles[id] = Handle(id)
            else:
                old.refs += 1
            if old.res is None:
                old.res = res
            return old

    def _cache(self, h: Handle, res: Answer) -> None:
        h.cost = len(res.data) + len(res.meta) + 128
        self.cache_used += h.cost
        if self.cache_used > CACHE_BYTES // 4:  # a small cache needs no eviction order
            self._cached.append(h)
            while self.cache_used > CACHE_BYTES and self._cached:
                old = self._cached.popleft()
                if old.cost > 0 and old is not h:
                    self.cache_used -= old.cost
                    old.cost = EVICTED
                    old.res = None
            if len(self._cached) > 2 * len(self.handles) + 1024:
                self._cached = deque(x for x in self._cached if x.cost > 0)

    def release(self) -> None:
        """Queues the release of handles and pins that nothing uses any more."""
        with self._lock:
            unpins, dropped = self.unpins, self.dropped
            for _ in range(len(unpins)):
                p = unpins.popleft()
                p.users -= 1
                if p.users == 0 and p.n:
                    self._unpin(p)
            gone: list[bytes] = []
            handles, out = self.handles, self._client.out
            for _ in range(len(dropped)):
                h = dropped.popleft()
                h.refs -= 1
                if h.refs == 0 and not h.gone and not h.waiters and not h.callbacks:
                    h.gone = True
                    del handles[h.id]
                    gone.append(h.id)
                    if h.cost > 0:
                        self.cache_used -= h.cost  # no function call in this statement: other threads' puts add without the lock
                    h.cost = 0
                    h.res = None
                    if len(gone) >= _RELEASED_AT_ONCE:
                        out.append(hot.release(gone))
                        gone = []
            if gone:
                out.append(hot.release(gone))

    def viewed(self) -> list[m.Extent]:
        """The extents of the object store that this process views."""
        self.release()
        with self._lock:
            return [p.extent for p in self.pins.values() if p.users > 0 and p.n]

    def _unpin(self, p: Pin) -> None:
        self._client.send(hot.unpin(p.id, p.n))
        p.n = 0
        if self.pins.get(p.id) is p:
            del self.pins[p.id]

    # ---- messages from the node; the lock is held

    def resolved(self, b: bytes, i: int, j: int) -> None:
        """Handles a Resolved: the answer for an object, or a pin on its bytes."""
        id, fetch, res, extent = hot.resolved(b, i, j)
        if res.kind == m.NONE:
            res = Answer(m.ERROR, err=m.Error(ProtocolError.code, "the node answered with no result"))
        h = self.handles.get(id)
        stored = res.kind == m.STORED
        pin: Optional[Pin] = None
        if stored and fetch:
            pin = self.pins.get(id)
            if pin is None:
                pin = self.pins[id] = Pin(id, extent or m.Extent())
            pin.n += 1
        if h is not None:
            if fetch:
                h.fetching = False
            else:
                h.asked = False
            old = h.res
            if old is None:
                h.res = res
                if res.kind == m.INLINE:
                    self._cache(h, res)
            elif fetch and old.kind == m.STORED:
                h.failed = None if stored else res
            if h.waiters:
                h.waiters = self._answered(h.waiters, res, pin, fetch)
            if h.watchers:
                self._client.reader.later.extend(h.watchers)
                h.watchers = None
            if h.callbacks and (pin is not None or not stored):
                self._found(h.callbacks, res, pin)
                h.callbacks = None
            if h.refs <= 0:
                h.refs += 1
                self.dropped.append(h)
        if pin is not None and pin.users == 0:
            self._unpin(pin)

    def _found(self, callbacks: list[Callable[[Found], None]], res: Answer, pin: Optional[Pin]) -> None:
        """Queues callbacks with an answer. Each holds the answer, since the cache may drop it before the call."""
        for f in callbacks:
            reading = None
            if pin is not None:
                pin.users += 1
                reading = Reading(self._client, pin)
            self._client.reader.later.append(partial(f, (res, reading)))

    def _answered(self, waiters: list[Waiter], res: Answer, pin: Optional[Pin], fetch: bool) -> Optional[list[Waiter]]:
        """Reports an answer to waiting threads. Returns those that go on waiting."""
        keep: list[Waiter] = []
        for w in waiters:
            if w.fetch and not fetch and res.kind == m.STORED:
                keep.append(w)  # it is stored; the bytes are on the way
                continue
            if pin is not None and w.fetch:
                pin.users += 1
                w.pins.append(pin)
            if w.strict and res.kind == m.ERROR:
                w.fail(res)
            else:
                w.done()
        return keep or None

    # ---- a restarted node, and the end

    def declare_handles(self, h: m.Holdings) -> None:
        for x in list(self.handles.values()):
            h.handles.append(x.id)
            if x.asked:
                h.gets.append(m.Get(x.id))
            if x.fetching:
                h.gets.append(m.Get(x.id, True))

    def declare_pins(self, h: m.Holdings) -> None:
        h.pins = [m.Unpin(p.id, p.n) for p in self.pins.values() if p.n]

    def abandon(self) -> None:
        """The client is dead: wakes all threads and queues all callbacks that wait for an object."""
        for h in list(self.handles.values()):
            for w in h.waiters or ():
                w.wake()
            self._client.reader.later.extend(partial(f, None) for f in h.callbacks or ())
            self._client.reader.later.extend(h.watchers or ())
            h.callbacks = h.watchers = None
