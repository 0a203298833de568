"""Gets and waits: asks the node for objects' results, and for pins on the bytes of stored ones."""

from __future__ import annotations

import logging
import time
from functools import partial
from typing import Callable, Generator, Optional, Sequence

from .. import _ids
from .._wire import hot
from .._wire import messages as m
from .._wire.hot import Answer
from ..exceptions import FetchTimedOutError, GetTimeoutError, ObjectFreedError
from .context import TaskContext
from .handle import EVICTED, Found, Handle, Reading
from .interfaces import Waits
from .objects import Objects
from .waiter import Waiter

log = logging.getLogger("mobula")

WARN_AFTER = 60.0
TRIP = 0.005  # the shortest timeout of a get or wait: one round trip to the node
FETCH_PATIENCE = 1.0  # the shortest timeout for the bytes of an object that is known to be stored
FETCH_TIMEOUT = 600.0
_NEEDS = 8  # an actor's get of up to so many objects is reported to the node, which looks for a deadlock
_WINDOW = 64 << 20  # bytes of stored objects that one get pins at once


class Getter:
    def __init__(self, client: Waits, objects: Objects, segment_size: int) -> None:
        self._client = client
        self._lock = client.lock
        self._objects = objects
        self._pins = objects.pins
        self._dropped = objects.dropped
        self._window = min(_WINDOW, segment_size // 16)

    def fetch(self, hs: Sequence[Handle], timeout: Optional[float],
              tc: Optional[TaskContext]) -> Generator[tuple[Answer, Optional[Reading]], None, None]:
        """Waits for all objects, and yields their answers in order. As soon as one has failed, it yields that error alone. It pins
        stored objects a window at a time, so that a get with copies works with a small store, too. A caller that stops early closes
        the generator."""
        until = None if timeout is None else time.monotonic() + timeout
        once = list(dict.fromkeys(hs))  # a caller may name an object twice, and waits for it once
        failed = self._resolve(once, len(once), until, tc, False, True).failed
        if failed is not None:
            yield next((h.res for h in hs if h.res is not None and h.res.kind == m.ERROR), failed), None
            return
        i = 0
        while i < len(hs):
            size, j = 0, i
            window: dict[Handle, None] = {}
            while j < len(hs) and (j == i or size < self._window):
                res = hs[j].res
                if res is not None and res.kind == m.STORED:
                    window[hs[j]] = None
                    size += res.size
                j += 1
            pins: dict[bytes, list[Reading]] = {}
            try:
                if len(window) > 1:
                    w = self._resolve(list(window), len(window), until, tc, True, True)
                    for r in w.pins:
                        pins.setdefault(r.pin.id, []).append(r)
                    w.pins = []
                    if w.failed is not None:
                        yield w.failed, None
                        return
                for h in hs[i:j]:
                    got = pins.get(h.id)
                    if got and h.res is not None:
                        yield h.res, got.pop()
                    else:
                        yield self.fetch_one(h, until, tc)
            finally:  # the caller may have stopped at an error, whose traceback has this frame
                pins.clear()
            i = j

    def fetch_one(self, h: Handle, until: Optional[float], tc: Optional[TaskContext]) -> tuple[Answer, Optional[Reading]]:
        """Waits for one object. Returns its answer and, if it is stored, a share of its pin. until is by time.monotonic."""
        while True:
            res = h.res
            if res is not None and res.kind != m.STORED:
                return res, None
            if res is not None:
                with self._lock:
                    pin = self._pins.get(h.id)
                    reading = self._objects.share(pin) if pin is not None else None
                    if reading is not None and reading.pin is not None and h.res is not None:
                        return h.res, reading
            held = self._resolve([h], 1, until, tc, True, True).pins
            res = h.answer(bool(held))
            if res is not None and (res.kind != m.STORED or held):
                return res, held[0] if res.kind == m.STORED else None
            # It was dropped from the cache, or another request found it stored: ask again.

    def ready(self, hs: Sequence[Handle], n: int, timeout: Optional[float], tc: Optional[TaskContext], brings: bool = False) -> bool:
        """Waits until n of the objects are resolved, or the time runs out. With brings those do not count that are on other nodes, until their bytes have
        come here. True: there may be some that have not (Handle.here)."""
        have = sum(1 for h in hs if h.res is not None or h.cost == EVICTED)
        until = None if timeout is None else time.monotonic() + timeout
        if have < n:
            self._resolve(hs, n, until, tc, False, False)
        if not brings or not self._objects.elsewhere:
            return False
        away = [h for h in hs if not h.here()]
        n -= len(hs) - len(away)
        if n > 0:
            self._resolve(away, n, until, tc, True, False, True)
        return True

    def _resolve(self, hs: Sequence[Handle], n: int, until: Optional[float], tc: Optional[TaskContext], fetch: bool,
                 strict: bool, brings: bool = False) -> Waiter:
        """Waits until n of the objects are resolved, and with fetch their bytes pinned; with brings they were. strict: or until one has failed."""
        self._client.check()
        if until is not None:  # a round trip is always allowed: with timeout 0 even a ready object could not be had otherwise
            until = max(until, time.monotonic() + (FETCH_PATIENCE if strict and fetch and all(h.res is not None for h in hs) else TRIP))
        w = Waiter(n, fetch, strict, brings)
        linked: list[Handle] = []
        ok = False
        try:
            self._ask(w, hs, linked)
            ok = w.left <= 0 or self._patient(w, until, tc, linked)
        finally:
            if not ok or w.left < 0 or n < len(hs) or fetch or w.failed is not None:
                self._unlink(w, linked)
            if not ok:
                w.pins = []
        if not ok and strict:
            missing = f"{max(w.left, 0)} of {len(hs)} objects"
            raise GetTimeoutError(f"the time ran out with {missing} missing; the references stay valid")
        return w

    def _ask(self, w: Waiter, hs: Sequence[Handle], linked: list[Handle]) -> None:
        """Requests the objects that are neither resolved nor requested. linked gets those that w waits for."""
        with self._lock:
            for h in hs:
                while not self._link(w, h, linked):
                    pass
                if w.failed is not None:
                    return

    def _link(self, w: Waiter, h: Handle, linked: list[Handle]) -> bool:
        """Counts an object that is known, or has w wait for it. False: code that ran meanwhile has changed what is known."""
        res, fetch = h.res, w.fetch
        if res is not None and (not fetch or res.kind != m.STORED):
            if w.strict and res.kind == m.ERROR:
                w.fail(res)
            else:
                w.left -= 1
            return True
        if not w.strict and h.cost == EVICTED:  # it is known to be ready
            w.left -= 1
            return True
        if h.gone:
            raise ObjectFreedError(f"object {_ids.show_object(h.id)}: this reference was released")
        if fetch and res is not None and (pin := self._pins.get(h.id)) is not None and pin.n:
            share = (self._objects.share(pin),)
            if share[0].pin is pin:
                if w.brings:
                    h.cost = 0
                else:
                    w.pins += share
                w.left -= 1
            return share[0].pin is pin
        linked.append(h)
        waiters, ask, out = h.waiters, iter((hot.get(h.id, fetch),)), self._client.out
        more = [w] if waiters is None else [*waiters, w]
        if h.res is not res or h.waiters is not waiters or h.gone:
            return False
        else:  # whole, with the look at it: an interrupt in between would leave it waited for and not requested
            h.waiters = more
            if fetch:
                if not h.fetching:
                    out += ask
                    h.fetching = True
            elif not h.asked and not h.fetching:
                out += ask
                h.asked = True
        return True

    def _patient(self, w: Waiter, until: Optional[float], tc: Optional[TaskContext], linked: list[Handle]) -> bool:
        """Waits, and logs a warning every minute."""
        begun = now = time.monotonic()
        if until is None and w.strict and len(linked) <= _NEEDS:
            w.needs = [h.id for h in linked]
        while True:
            warn = now + WARN_AFTER
            if self._client.wait(w, warn if until is None else min(until, warn), tc):
                return True
            now = time.monotonic()
            if until is not None and now >= until:
                return False
            missing = [h for h in linked if h.waiters and w in h.waiters]
            if not missing:
                continue
            first = _ids.show_object(missing[0].id)
            res = missing[0].res
            if w.fetch and res is not None and res.kind == m.STORED and now - begun >= FETCH_TIMEOUT:
                raise FetchTimedOutError(
                    f"object {first} ({res.size} bytes) is stored, but its bytes did not come within {FETCH_TIMEOUT} s")
            log.warning("a get waits long: %.0f s, %d missing, among them %s; see mobula explain %s",
                        now - begun, len(missing), first, first)

    def _unlink(self, w: Waiter, linked: list[Handle]) -> None:
        """Ends the wait of w, and withdraws the requests that no other thread waits for."""
        for h in linked:
            if h.waiters:
                break
        else:
            return  # all have their answers
        c, out, dropped = self._client, self._client.out, self._dropped
        with self._lock:
            for h in linked:
                while h.waiters and w in h.waiters:
                    waiters, callbacks = h.waiters, h.callbacks
                    rest = [x for x in waiters if x is not w] or None
                    withdraws = w.fetch and not callbacks and not any(x.fetch for x in rest or ())
                    told, once, drop = iter((hot.unget(h.id),)), iter((hot.get(h.id, False),)), iter((h,))
                    if h.waiters is waiters and h.callbacks is callbacks:  # whole
                        h.waiters = rest
                        if withdraws and h.fetching:
                            h.fetching = h.asked = False  # an Unget withdraws both requests
                            out += told
                            if rest or h.watchers:  # they relied on one of the two
                                h.asked = True
                                out += once
                        if h.refs <= 0 and not h.gone:
                            h.refs += 1
                            dropped += drop
        if c.reader.quiet:
            c.reader.arm()

    # ---- callbacks instead of a waiting thread

    def when(self, h: Handle, f: Callable[[Found], None]) -> None:
        """Calls f with h's answer once it can be had without waiting, in the thread that learns it; with None if the client is dead. For a
        stored object f gets a share of its pin, which is given back when that is deleted."""
        c = self._client
        out, later = c.out, c.reader.later
        with self._lock:
            while True:
                res, pin, callbacks, gone = h.res, self._pins.get(h.id), h.callbacks, c.dead is not None
                if gone:
                    break
                if res is not None and res.kind != m.STORED:
                    later.append(partial(f, (res, None)))
                    break
                if res is not None and pin is not None and pin.n:
                    share = self._objects.share(pin)
                    if share.pin is pin:
                        later.append(partial(f, (res, share)))
                        break
                    continue
                more, ask = [*(callbacks or ()), f], iter((hot.get(h.id, True),))
                if h.res is res and h.callbacks is callbacks:  # whole
                    h.callbacks = more
                    if not h.fetching:
                        out += ask
                        h.fetching = True
                    break
        if gone:
            f(None)
            return
        c.flush()
        c.reader.offer()

    def withdraw(self, h: Handle, f: Callable[[Found], None]) -> None:
        """Removes the callback f that was given to when, if it has not been called."""
        with self._lock:
            while h.callbacks and f in h.callbacks:
                callbacks = h.callbacks
                rest = [g for g in callbacks if g is not f] or None
                if h.callbacks is callbacks:  # whole
                    h.callbacks = rest

    def when_known(self, h: Handle, f: Callable[[], None]) -> None:
        """Calls f once it is known whether h has a value or an error, in the thread that learns it. The value is not fetched. If h is
        released before, f is not called."""
        c = self._client
        out = c.out
        with self._lock:
            while not (now := c.dead is not None or h.res is not None):
                watchers, ask = h.watchers, iter((hot.get(h.id, False),))
                more = [*(watchers or ()), f]
                if h.res is None and h.watchers is watchers:  # whole
                    h.watchers = more
                    if not h.asked and not h.fetching:
                        out += ask
                        h.asked = True
                    break
        if now:
            f()
            return
        c.flush()
        c.reader.offer()
