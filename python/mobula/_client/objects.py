"""The tables of handles and pins, and the messages about objects."""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import Optional, Protocol

from .._wire import hot
from .._wire import messages as m
from .._wire.hot import Answer
from ..exceptions import ProtocolError
from .handle import ELSEWHERE, EVICTED, Handle, Reading
from .interfaces import Waits
from .pin import Pin

CACHE_BYTES = 64 << 20  # limit of the cache of inline values, which can be requested again
_RELEASED_AT_ONCE = 1024


class Holder(Protocol):
    """A reference, which has one share of its handle."""

    _h: Handle


class Objects:
    def __init__(self, client: Waits) -> None:
        self._client = client
        self._lock = client.lock
        self.handles: dict[bytes, Handle] = {}
        self.pins: dict[bytes, Pin] = {}
        self.dropped: deque[Handle] = deque()  # appended by finalisers
        self.unpins: deque[Pin] = deque()  # appended by finalisers
        self.gone: list[bytes] = []  # ids of released handles, which the node is not told of yet
        self._told = 0  # counts the messages about them
        self._counted: Optional[bytes] = None  # the bytes, and the place in them, of the last message whose pin was counted
        self._counted_at = 0
        self.cache_used = 0
        self.elsewhere = False  # an object was on other nodes: there are some
        self._cached: deque[Handle] = deque()

    # ---- handles

    def bind(self, ref: Holder) -> None:
        """Lists the handle of a new reference that came from elsewhere, for instance inside a value; if there is one already, the reference gets
        that. If this process had none, it tells the owner."""
        c, handles, new = self._client, self.handles, ref._h
        id, out, told = new.id, c.out, iter((hot.add_ref(new.id),))
        with self._lock:
            while True:
                h = handles.get(id)
                if h is None:
                    if id not in handles:  # whole
                        handles[id] = new
                        out += told
                        break
                elif not h.gone:  # whole
                    h.refs += 1
                    ref._h = h
                    return
        if c.reader.quiet:
            c.reader.arm()

    def adopt(self, ref: Holder, res: Optional[Answer] = None) -> None:
        """Lists the handle of a new reference to an object that this process makes."""
        handles, new = self.handles, ref._h
        id, cost = new.id, 0
        if res is not None:
            new.res = res
            if res.kind == m.INLINE:
                cost = len(res.data) + len(res.meta) + 128
        while True:
            if id not in handles:  # whole
                handles[id] = new
                new.cost = cost
                self.cache_used += cost
                break
            old = handles.get(id)  # a retry of the task makes the same objects again
            if old is not None and not old.gone:  # whole
                old.refs += 1
                ref._h = old
                if old.res is None:
                    old.res = res
                return
        if cost and self.cache_used > CACHE_BYTES // 4:  # a small cache needs no eviction order
            with self._lock:
                self._evict(new)

    def _evict(self, newest: Handle) -> None:
        """Drops the oldest values of the cache if it is full."""
        cached = self._cached
        cached.append(newest)
        while self.cache_used > CACHE_BYTES and cached:
            old = cached[0]
            del cached[0]  # whole, with the look at it
            if old.cost > 0 and old is not newest:  # whole
                self.cache_used -= old.cost
                old.cost = EVICTED
                old.res = None
        if len(cached) > 2 * len(self.handles) + 1024:
            self._cached = deque(x for x in cached.copy() if x.cost > 0)

    def release(self) -> None:
        """Queues the release of handles and pins that nothing uses any more."""
        with self._lock:
            unpins, dropped, handles, pins, out = self.unpins, self.dropped, self.handles, self.pins, self._client.out
            while unpins:
                p = unpins[0]
                n, known = p.n, pins.get(p.id) is p
                last = p.users == 1 and n > 0
                told = iter((hot.unpin(p.id, n),) if last else ())
                if unpins and unpins[0] is p and p.n == n and last == (p.users == 1 and n > 0):  # whole
                    p.users -= 1
                    del unpins[0]
                    if last:
                        p.n = 0
                        out += told
                        if known:
                            del pins[p.id]
            while dropped:
                h = dropped[0]
                known, one, gone = handles.get(h.id) is h, (h.id,), self.gone
                last = h.refs == 1 and known and not h.waiters and not h.callbacks
                if dropped and dropped[0] is h and last == (h.refs == 1 and known and not h.waiters and not h.callbacks):  # whole
                    h.refs -= 1
                    del dropped[0]
                    if last:
                        h.gone = True
                        del handles[h.id]
                        gone += one
                        if h.cost > 0:
                            self.cache_used -= h.cost
                        h.cost = 0
                        h.res = None
                if len(gone) >= _RELEASED_AT_ONCE:
                    self._tell()
            self._tell()

    def _tell(self) -> None:
        """Tells the node of released handles."""
        gone, out = self.gone, self._client.out
        while gone:
            told, batch = self._told, gone[:_RELEASED_AT_ONCE]
            first, one = slice(len(batch)), iter((hot.release(batch),))
            if self._told == told:  # whole
                self._told = told + 1
                del gone[first]
                out += one

    def viewed(self) -> list[m.Extent]:
        """The extents of the object store that this process views."""
        self.release()
        with self._lock:
            return [p.extent for p in list(self.pins.values()) if p.users > 0 and p.n]

    def share(self, pin: Pin) -> Reading:
        """A share of a pin. The lock is held."""
        reading = Reading(self._client)
        if pin.n:  # whole
            pin.users += 1
            reading.pin = pin
        return reading

    def _unpin(self, p: Pin) -> None:
        """Gives a pin back that nobody has a share of."""
        n, pins, out = p.n, self.pins, self._client.out
        known, told = pins.get(p.id) is p, iter((hot.unpin(p.id, n),))
        if p.users == 0 and n and p.n == n:  # whole
            p.n = 0
            out += told
            if known:
                del pins[p.id]
        if self._client.reader.quiet:
            self._client.reader.arm()

    # ---- messages from the node; the lock is held

    def resolved(self, b: bytes, i: int, j: int) -> None:
        """Handles a Resolved: the answer for an object, or a pin on its bytes. If it was cut off, it is called again and does the rest."""
        id, fetch, res, extent, elsewhere = hot.resolved(b, i, j)
        if res.kind == m.NONE:
            res = Answer(m.ERROR, err=m.Error(ProtocolError.code, "the node answered with no result"))
        h = self.handles.get(id)
        stored = res.kind == m.STORED
        pin: Optional[Pin] = None
        if stored and fetch:
            pin = self._count(b, i, id, extent)
        if h is not None:
            if fetch:
                h.fetching = False
            else:
                h.asked = False
            old = h.res
            if elsewhere:
                self.elsewhere = True
            if old is None:
                self.know(h, res, elsewhere)
            if fetch and h.cost == ELSEWHERE and stored:
                h.cost = 0
            if old is not None and fetch and old.kind == m.STORED:
                h.failed = None if stored else res
            if h.waiters:
                self._answer(h, res, pin, fetch)
            if h.watchers:
                later, watchers = self._client.reader.later, h.watchers
                if h.watchers is watchers:  # whole
                    later += watchers
                    h.watchers = None
            if h.callbacks and (pin is not None or not stored):
                self._find(h, res, pin)
            if h.refs <= 0:
                dropped, again = self.dropped, iter((h,))
                if h.refs <= 0 and not h.gone:  # whole
                    h.refs += 1
                    dropped += again
        if pin is not None and pin.users == 0:
            self._unpin(pin)

    def know(self, h: Handle, res: Answer, elsewhere: bool = False) -> None:
        """Sets the answer of an object, unless it is known. The lock is held."""
        cost = len(res.data) + len(res.meta) + 128 if res.kind == m.INLINE else 0
        if h.res is None and not h.gone:  # whole
            h.res = res
            h.cost = ELSEWHERE if elsewhere else cost
            self.cache_used += cost
        if cost and self.cache_used > CACHE_BYTES // 4:  # a small cache needs no eviction order
            self._evict(h)

    def _count(self, b: bytes, i: int, id: bytes, extent: Optional[m.Extent]) -> Pin:
        """Counts the pin that came with a message, once."""
        pins, new = self.pins, Pin(id, extent or m.Extent())
        while True:
            pin = pins.get(id, new)
            if self._counted is b and self._counted_at == i:
                return pin
            if id not in pins or pins[id] is pin:  # whole
                pins[id] = pin
                pin.n += 1
                self._counted, self._counted_at = b, i
                return pin

    def _find(self, h: Handle, res: Answer, pin: Optional[Pin]) -> None:
        """Queues the callbacks of a handle with an answer. Each holds the answer, since the cache may drop it before the call."""
        later = self._client.reader.later
        while h.callbacks:
            callbacks = h.callbacks
            found = res, None if pin is None else self.share(pin)
            one, rest = (partial(callbacks[0], found),), callbacks[1:] or None
            if h.callbacks is callbacks:  # whole
                h.callbacks = rest
                later += one

    def _answer(self, h: Handle, res: Answer, pin: Optional[Pin], fetch: bool) -> None:
        """Reports an answer to waiting threads. Those for whom it is not all go on waiting."""
        failed = res.kind == m.ERROR
        for w in h.waiters or ():
            if w.fetch and not fetch and res.kind == m.STORED:
                continue  # it is stored; the bytes are on the way
            shares = (self.share(pin),) if pin is not None and w.fetch and not w.brings else ()
            while (waiters := h.waiters) and w in waiters:
                rest = [x for x in waiters if x is not w] if len(waiters) > 1 else None
                if h.waiters is waiters:  # whole
                    h.waiters = rest
                    w.pins += shares
                    if not (failed and w.strict):
                        w.left -= 1
                    elif w.left > 0:
                        w.failed = res
                        w.left = 0
            if w.left <= 0:
                w.wake()

    # ---- a restarted node, and the end

    def declare_handles(self, h: m.Holdings) -> None:
        self.gone.clear()  # they are not among those that the node is told of now
        for x in list(self.handles.values()):
            h.handles.append(x.id)
            if x.asked:
                h.gets.append(m.Get(x.id))
            if x.fetching:
                h.gets.append(m.Get(x.id, True))

    def declare_pins(self, h: m.Holdings) -> None:
        h.pins = [m.Unpin(p.id, p.n) for p in list(self.pins.values()) if p.n]

    def abandon(self) -> None:
        """The client is dead: wakes all threads and queues all callbacks that wait for an object."""
        for h in list(self.handles.values()):
            for w in h.waiters or ():
                w.wake()
            later, callbacks, watchers = self._client.reader.later, h.callbacks, h.watchers
            calls = [*(partial(f, None) for f in callbacks or ()), *(watchers or ())]
            if h.callbacks is callbacks and h.watchers is watchers:  # whole
                h.callbacks = h.watchers = None
                later += calls
