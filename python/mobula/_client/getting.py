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
from .pin import Pin
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
        self._pins = objects.pins
        self._dropped = objects.dropped
        self._window = min(_WINDOW, segment_size // 16)

    def fetch(self, hs: Sequence[Handle], timeout: Optional[float],
              tc: Optional[TaskContext]) -> Generator[tuple[Answer, Optional[Reading]], None, None]:
        """Waits for all objects, and yields their answers in order. As soon as one has failed, it yields that error alone. It pins
        stored objects a window at a time, so that a get with copies works with a small store, too. A caller that stops early closes
        the generator."""
        until = None if timeout is None else time.monotonic() + timeout
        failed = self._resolve(hs, len(hs), until, tc, False, True).failed
        if failed is not None:
            yield next((h.res for h in hs if h.res is not None and h.res.kind == m.ERROR), failed), None
            return
        i = 0
        while i < len(hs):
            size, j = 0, i
            window: list[Handle] = []
            while j < len(hs) and (j == i or size < self._window):
                res = hs[j].res
                if res is not None and res.kind == m.STORED:
                    window.append(hs[j])
                    size += res.size
                j += 1
            pins: dict[bytes, list[Pin]] = {}
            try:
                if len(window) > 1:
                    w = self._resolve(window, len(window), until, tc, True, True)
                    for p in w.pins:
                        pins.setdefault(p.id, []).append(p)
                    if w.failed is not None:
                        yield w.failed, None
                        return
                for h in hs[i:j]:
                    got = pins.get(h.id)
                    if got and h.res is not None:
                        yield h.res, Reading(self._client, got.pop())
                    else:
                        yield self.fetch_one(h, until, tc)
            finally:  # the caller may have stopped at an error
                for rest in pins.values():
                    self._client.unpins.extend(rest)
                if pins and self._client.reader.quiet:
                    self._client.reader.arm()
            i = j

    def fetch_one(self, h: Handle, until: Optional[float], tc: Optional[TaskContext]) -> tuple[Answer, Optional[Reading]]:
        """Waits for one object. Returns its answer and, if it is stored, a share of its pin. until is by time.monotonic."""
        res = h.res
        if res is not None and res.kind != m.STORED:
            return res, None
        with self._lock:
            pin = self._pins.get(h.id)
            if pin is not None and pin.n and h.res is not None:
                pin.users += 1
                return h.res, Reading(self._client, pin)
        held = self._resolve([h], 1, until, tc, True, True).pins
        res = h.answer(bool(held))
        if res is None or (res.kind == m.STORED and not held):  # it was dropped from the cache, or another request found it stored
            return self.fetch_one(h, until, tc)
        if res.kind != m.STORED:
            self._client.unpins.extend(held)
            return res, None
        self._client.unpins.extend(held[1:])
        return res, Reading(self._client, held[0])

    def ready(self, hs: Sequence[Handle], n: int, timeout: Optional[float], tc: Optional[TaskContext]) -> None:
        """Waits until n of the objects are resolved, or the time runs out."""
        have = sum(1 for h in hs if h.res is not None or h.cost == EVICTED)
        if have < n:
            until = None if timeout is None else time.monotonic() + timeout
            self._resolve(hs, n, until, tc, False, False)

    def _resolve(self, hs: Sequence[Handle], n: int, until: Optional[float], tc: Optional[TaskContext], fetch: bool,
                 strict: bool) -> Waiter:
        """Waits until n of the objects are resolved, and with fetch their bytes pinned. strict: or until one has failed."""
        self._client.check()
        if until is not None:  # a round trip is always allowed: with timeout 0 even a ready object could not be had otherwise
            until = max(until, time.monotonic() + (FETCH_PATIENCE if fetch and all(h.res is not None for h in hs) else TRIP))
        w = Waiter(n, fetch, strict)
        linked: list[Handle] = []
        ok = False
        try:
            self._ask(w, hs, linked)
            ok = w.left <= 0 or self._patient(w, until, tc, linked)
        finally:
            if not ok or w.left < 0 or n < len(hs) or fetch or w.failed is not None:
                self._unlink(w, linked)
            if not ok:
                self._client.unpins.extend(w.pins)
        if not ok and strict:
            missing = f"{max(w.left, 0)} of {len(hs)} objects"
            raise GetTimeoutError(f"the time ran out with {missing} missing; the references stay valid")
        return w

    def _ask(self, w: Waiter, hs: Sequence[Handle], linked: list[Handle]) -> None:
        """Requests the objects that are neither resolved nor requested. linked gets those that w waits for."""
        out, pins, fetch, strict = self._client.out, self._pins, w.fetch, w.strict
        with self._lock:
            for h in hs:
                res = h.res
                if res is not None and (not fetch or res.kind != m.STORED):
                    if strict and res.kind == m.ERROR:
                        w.fail(res)
                        return
                    w.left -= 1
                    continue
                if not strict and h.cost == EVICTED:  # it is known to be ready
                    w.left -= 1
                    continue
                if h.gone:
                    raise ObjectFreedError(f"object {_ids.show_object(h.id)}: this reference was released")
                if fetch:
                    pin = pins.get(h.id)
                    if res is not None and pin is not None and pin.n:
                        pin.users += 1
                        w.pins.append(pin)
                        w.left -= 1
                        continue
                    if not h.fetching:  # in this order an interrupt in between makes it requested twice, and never not at all
                        out.append(hot.get(h.id, True))
                        h.fetching = True
                elif not h.asked and not h.fetching:
                    out.append(hot.get(h.id, False))
                    h.asked = True
                if h.waiters is None:
                    h.waiters = [w]
                else:
                    h.waiters.append(w)
                linked.append(h)

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
        with self._lock:
            for h in linked:
                if h.waiters and w in h.waiters:
                    h.waiters = [x for x in h.waiters if x is not w] or None
                    if w.fetch and h.fetching and not any(x.fetch for x in h.waiters or ()) and not h.callbacks:
                        h.fetching = h.asked = False  # an Unget withdraws both requests
                        self._client.send(hot.unget(h.id))
                        if h.waiters or h.watchers:  # they relied on one of the two
                            h.asked = True
                            self._client.send(hot.get(h.id, False))
                    if h.refs <= 0:
                        h.refs += 1
                        self._dropped.append(h)

    # ---- callbacks instead of a waiting thread

    def when(self, h: Handle, f: Callable[[Found], None]) -> None:
        """Calls f with h's answer once it can be had without waiting, in the thread that learns it; with None if the client is dead. For a
        stored object f gets a share of its pin, which is given back when that is deleted."""
        c = self._client
        with self._lock:
            res = h.res
            pin = self._pins.get(h.id)
            gone = c.dead is not None
            if gone:
                pass
            elif res is not None and res.kind != m.STORED:
                c.reader.later.append(partial(f, (res, None)))
            elif res is not None and pin is not None and pin.n:
                pin.users += 1
                c.reader.later.append(partial(f, (res, Reading(c, pin))))
            else:
                if h.callbacks is None:
                    h.callbacks = []
                h.callbacks.append(f)
                if not h.fetching:
                    c.out.append(hot.get(h.id, True))
                    h.fetching = True
        if gone:
            f(None)
            return
        c.flush()
        c.reader.offer()

    def withdraw(self, h: Handle, f: Callable[[Found], None]) -> None:
        """Removes the callback f that was given to when, if it has not been called."""
        with self._lock:
            if h.callbacks and f in h.callbacks:
                h.callbacks.remove(f)
                h.callbacks = h.callbacks or None

    def when_known(self, h: Handle, f: Callable[[], None]) -> None:
        """Calls f once it is known whether h has a value or an error, in the thread that learns it. The value is not fetched. If h is
        released before, f is not called."""
        c = self._client
        with self._lock:
            now = c.dead is not None or h.res is not None
            if not now:
                if h.watchers is None:
                    h.watchers = []
                h.watchers.append(f)
                if not h.asked and not h.fetching:
                    c.out.append(hot.get(h.id, False))
                    h.asked = True
        if now:
            f()
            return
        c.flush()
        c.reader.offer()
