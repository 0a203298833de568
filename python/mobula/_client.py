"""One process' side of the conversation with its node: what internal/client is for Go.

Who owns what: the table of handles is the one place where this process' references are counted; the owner on the node knows
only whether there is at least one. The store alone knows pins; this process counts its readers of a pin and gives it back
with the last.

Who reads: a thread that waits for an answer reads the connection itself, if nobody does (decision 0006); otherwise it sleeps
until its answer came or the role of the reader is free. The keeper, a thread of the client, reads while nobody waits, and sends
what was queued and not flushed. So a call that is answered at once wakes no other thread.

Locks: _lock guards the tables; it is re-entrant because a finaliser may run anywhere. Finalisers themselves only append to
_dropped and _unpins. Messages are queued with deque.append, which is atomic; where their order matters they are queued under _lock.
"""

from __future__ import annotations

import gc
import logging
import os
import select
import threading
import time
from collections import deque
from itertools import count
from typing import Any, Callable, Iterator, Optional, Sequence

from . import _ids
from ._segment import Segment, open_segment
from ._wire import codec, hot
from ._wire import messages as m
from ._wire.conn import Conn, dial
from ._wire.hot import Answer
from .exceptions import (DisconnectedError, FetchTimedOutError, GetTimeoutError, MobulaError, NoNodeError, ObjectFreedError,
                         OwnerDiedError, ProtocolError, ShutdownError, VersionError)

log = logging.getLogger("mobula")

TICK = 0.002  # how long a message that nobody flushes waits, and a free reader's role
_CALM = 50  # ticks without work, after which the keeper sleeps until it is woken
FLUSH_EVERY = 0.001
REJOIN = 30.0
WARN_AFTER = 60.0
TRIP = 0.005  # the least that a get or wait waits
FETCH_PATIENCE = 1.0  # the same for the bytes of an object that is known to be there
FETCH_TIMEOUT = 600.0
_WINDOW = 64 << 20  # bytes of stored objects that one get asks for at once
CACHE_BYTES = 64 << 20
_REPLAY, _REPLAY_BYTES = 64 << 10, 64 << 20
_FLUSH_AT = 256

_K = m.KIND_OF
_RESOLVED, _STREAM_ITEM, _CREATED, _REPLY = _K[m.Resolved], _K[m.StreamItem], _K[m.Created], _K[m.Reply]
_CREDIT, _RESYNC, _COLLECT, _MAP_FILE, _BYE = _K[m.Credit], _K[m.Resync], _K[m.Collect], _K[m.MapFile], _K[m.Bye]
# First bytes of messages that are kept for a node that comes back, and of those that its questions bring out anyway.
_REPLAYED = frozenset(k << 3 | 2 for k in (_K[m.Submit], _K[m.PutValue], _K[m.Seal]))
_REDECLARED = frozenset({k << 3 | 2 for k in (_K[m.Get], _K[m.Unget], _K[m.AddRef], _K[m.Release], _K[m.Create])})
_REDECLARED2 = frozenset(codec.varint(_K[c] << 3 | 2) for c in (m.StreamNext, m.Unpin, m.Request, m.Holdings))


class Handle:
    """This process' hold on one object."""

    __slots__ = ("client", "id", "refs", "res", "waiters", "asked", "fetching", "gone", "cost", "callbacks")

    def __init__(self, client: "Client", id: bytes) -> None:
        self.client = client
        self.id = id
        self.refs = 1
        self.res: Optional[Answer] = None
        self.waiters: Optional[list[Waiter]] = None
        self.asked = False
        self.fetching = False
        self.gone = False
        self.cost = 0
        self.callbacks: Optional[list[Callable[[], None]]] = None


class Waiter:
    """A thread that waits for a number of answers."""

    __slots__ = ("left", "fetch", "strict", "lock", "asleep", "pins", "slot")

    def __init__(self, left: int, fetch: bool = False, strict: bool = False) -> None:
        self.left = left
        self.fetch = fetch  # it wants the bytes of stored objects
        self.strict = strict  # the first error ends it
        self.lock = threading.Lock()
        self.lock.acquire()
        self.asleep = False
        self.pins: list[Pin] = []
        self.slot: Any = None

    def wake(self) -> None:
        if self.asleep:
            self.asleep = False
            try:
                self.lock.release()
            except RuntimeError:
                pass  # another has done it at the same moment

    def done(self, n: int = 1) -> None:
        self.left -= n
        if self.left <= 0:
            self.wake()


class Pin:
    """What this process holds pinned of one stored object; all readers share it."""

    __slots__ = ("id", "extent", "users", "n")

    def __init__(self, id: bytes, extent: m.Extent) -> None:
        self.id = id
        self.extent = extent
        self.users = 0
        self.n = 0


class Reading:
    """One reader's share of a pin. When it goes, the share is given back."""

    __slots__ = ("client", "pin")

    def __init__(self, client: "Client", pin: Pin) -> None:
        self.client = client
        self.pin = pin

    def __del__(self) -> None:
        c = self.client
        c._unpins.append(self.pin)
        if c.quiet:
            c._arm()


class TaskContext:
    """The task on whose behalf code runs: ids of what it submits and puts follow from it."""

    def __init__(self, client: "Client", task: bytes, attempt: int = 0, trace: bytes = b"") -> None:
        self.client = client
        self.task = task
        self.attempt = attempt
        self.parent_field = hot.spec_head(task)
        self.trace = hot.trace_field(trace)
        self.derive = _ids.deriver(task)
        self.calls = count(1)
        self.puts = count(1)
        self.called = False
        self.orders: dict[bytes, CallOrder] = {}
        # A worker's task: told when it begins to wait and when it goes on.
        self.block: Optional[Callable[[], None]] = None
        self.unblock: Optional[Callable[[], None]] = None
        self.cancelled: Optional[Callable[[], Optional[BaseException]]] = None

    def next_task(self) -> bytes:
        return self.derive(next(self.calls))

    def next_put(self) -> bytes:
        return _ids.put_id(self.task, next(self.puts))

    def order(self, actor: bytes) -> "CallOrder":
        o = self.orders.get(actor)
        return o if o is not None else self.orders.setdefault(actor, CallOrder())


class CallOrder:
    """Numbers the calls of one caller to one actor; the lock is held while a call is queued."""

    __slots__ = ("lock", "seq")

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.seq = 0


class Client:
    def __init__(self, address: str, hello: m.Hello, reconnect: bool) -> None:
        self.address = address
        self.hello = hello
        self.reconnect = reconnect
        conn, welcome, fd, early = dial(address, hello)
        self.conn: Optional[Conn] = conn
        self.welcome = welcome
        self.inline = welcome.inline_max or 100 << 10
        self.segment = open_segment(fd, welcome.segment_size)
        self.pid = os.getpid()
        hello.job, hello.client, hello.token = welcome.job, welcome.client, (welcome.token or hello.token)
        self.root = TaskContext(self, welcome.root)
        # Whose code runs in a thread that no task has begun: in a worker the main thread's, since it may have begun the thread.
        self.fallback = self.root

        self._lock = threading.RLock()
        self.out: deque[bytes] = deque()  # encoded messages; taken under the connection's writing lock
        self.handles: dict[bytes, Handle] = {}
        self._pins: dict[bytes, Pin] = {}
        self._dropped: deque[Handle] = deque()  # appended by finalisers
        self._unpins: deque[Pin] = deque()  # appended by finalisers
        self._cached: deque[Handle] = deque()
        self.cache_used = 0
        self._req = count(1)
        self._creates: dict[int, tuple[Waiter, bytes]] = {}
        self._requests: dict[int, tuple[Waiter, bytes]] = {}
        self._streams: dict[tuple[bytes, int], list[Any]] = {}
        self._later: list[Callable[[], None]] = []  # to call when _lock is free
        self._unacked: deque[bytes] = deque()
        self._unacked_bytes = 0
        self._collected = 0.0

        self.credit: Optional[int] = None  # bytes; None: without bound
        self._window = 0
        self._credit_waiters: list[Waiter] = []

        self._role = threading.Lock()  # who has it reads
        self._uses = 0
        self._followers: deque[Waiter] = deque()
        self._keeper_reads = False
        self.quiet = False
        self._last_flush = 0.0
        self.dead: Optional[MobulaError] = None
        self.closed = threading.Event()
        self.closing = False
        # What an executor adds.
        self.extra: dict[int, Callable[[bytes, int, int], None]] = {}
        self.holdings: Optional[Callable[[m.Holdings], None]] = None
        self._early = early
        self._keeper = threading.Thread(target=self._keep, name="mobula-keeper", daemon=True)

    def start(self) -> None:
        """Begins to read; extra and holdings are set."""
        for kind, body in self._early:
            self._handle(kind, body, 0, len(body), None)
        self._early = []
        self._keeper.start()

    # ---- sending

    def send(self, chunk: bytes) -> None:
        """Queues a message; it goes within a tick, or with the next flush."""
        self.out.append(chunk)
        if self.quiet:
            self._arm()

    def flush(self) -> None:
        """Writes what is queued."""
        if self._dropped or self._unpins:
            self._release()
        out = self.out
        if not out:
            return
        conn = self.conn
        if conn is None:
            return
        try:
            with conn.writing:
                n = len(out)
                if not n or self.conn is not conn:
                    return
                chunks = [out.popleft() for _ in range(n)]
                if self.reconnect:
                    self._remember(chunks)
                conn.write(chunks)
        except MobulaError as x:
            self._broken(conn, x)
        except BaseException:  # of a signal's handler: part of a frame may have gone
            conn.fail(DisconnectedError("an exception cut off the writing of messages"))
            raise
        self._last_flush = time.monotonic()

    def maybe_flush(self) -> None:
        """Flushes if nothing was flushed for a moment: one that submits without end has its tasks run meanwhile."""
        if self.quiet:
            self._arm()
        if time.monotonic() - self._last_flush > FLUSH_EVERY:
            self.flush()

    def _remember(self, chunks: list[bytes]) -> None:
        u = self._unacked
        for c in chunks:
            if c[0] in _REPLAYED:
                u.append(c)
                self._unacked_bytes += len(c)
        while len(u) > _REPLAY or self._unacked_bytes > _REPLAY_BYTES:
            self._unacked_bytes -= len(u.popleft())

    def _release(self) -> None:
        """Tells of handles and pins that nobody uses any more."""
        with self._lock:
            unpins, dropped = self._unpins, self._dropped
            for _ in range(len(unpins)):
                p = unpins.popleft()
                p.users -= 1
                if p.users == 0 and p.n:
                    self._unpin(p)
            gone: list[bytes] = []
            handles = self.handles
            for _ in range(len(dropped)):
                h = dropped.popleft()
                h.refs -= 1
                if h.refs == 0 and not h.gone and not h.waiters and not h.callbacks:
                    self._forget(h, gone, handles)
                    if len(gone) >= 1024:
                        self.out.append(hot.release(gone))
                        gone = []
            if gone:
                self.out.append(hot.release(gone))

    def _forget(self, h: Handle, gone: list[bytes], handles: dict[bytes, Handle]) -> None:
        h.gone = True
        del handles[h.id]
        gone.append(h.id)
        if h.cost:
            self.cache_used -= h.cost
            h.cost = 0
        h.res = None

    def _unpin(self, p: Pin) -> None:
        self.send(hot.unpin(p.id, p.n))
        p.n = 0
        if self._pins.get(p.id) is p:
            del self._pins[p.id]

    # ---- reading

    def _arm(self) -> None:
        """Wakes the keeper, which has gone to sleep for want of work."""
        self.quiet = False
        self._wake_keeper()

    def _wake_keeper(self) -> None:
        conn = self.conn
        try:
            if conn is not None and conn.wake >= 0:
                os.eventfd_write(conn.wake, 1)
        except OSError:
            pass  # it is being closed

    def _keep(self) -> None:
        calm, last, mine, handed = 0, -1, False, False
        while not self.closing:
            conn = self.conn
            if conn is None:
                if mine:
                    mine = self._keeper_reads = False
                    self._role.release()
                self._rejoin()
                continue
            timeout: Optional[float] = TICK
            if calm >= _CALM:
                self.quiet = True
                timeout = None
                if self.out or self._dropped or self._unpins or self._followers:
                    self.quiet, timeout = False, TICK
            try:
                if mine:
                    conn.pump(timeout, self._handle, True)
                    self._after()
                else:
                    self._nap(conn, timeout)
            except MobulaError as x:
                self._broken(conn, x)
                continue
            except Exception:
                log.exception("a message from the node could not be handled")
            self.quiet = False
            if mine and self._followers:
                mine = self._keeper_reads = False
                self._role.release()
                self._hand_over()
                last = -1  # who was woken shall find it free
                handed = True
            if self.out or self._dropped or self._unpins:
                self.flush()
                calm = 0
            else:
                calm += 1
            if handed:
                handed = False
            elif not mine:
                uses = self._uses
                if uses == last and self._role.acquire(False):
                    self._keeper_reads = mine = True
                last = uses
        if mine:
            self._keeper_reads = False
            self._role.release()
        self.closed.set()

    def _nap(self, conn: Conn, timeout: Optional[float]) -> None:
        if select.select([conn.wake], [], [], timeout)[0]:
            try:
                os.eventfd_read(conn.wake)
            except OSError:
                pass

    def _hand_over(self) -> None:
        """Lets another thread that waits read, if there is one."""
        while self._followers:
            try:
                w = self._followers.popleft()
            except IndexError:
                return
            if w.asleep:
                w.wake()
                return

    def wait(self, w: Waiter, until: Optional[float], tc: Optional[TaskContext] = None) -> bool:
        """Waits until w has its answers; false if the time ran out. until is by time.monotonic."""
        self.flush()
        if w.left <= 0:
            return True
        if tc is not None and tc.block is not None:
            # What a task waits for is most often there and only has to be fetched. Who has called a task waits for that
            # one: it may need the CPU.
            if not tc.called:
                soon = time.monotonic() + 0.001
                if self._wait(w, soon if until is None else min(soon, until), tc):
                    return True
            tc.block()
            try:
                return self._wait(w, until, tc)
            finally:
                assert tc.unblock is not None
                tc.unblock()
        return self._wait(w, until, tc)

    def _wait(self, w: Waiter, until: Optional[float], tc: Optional[TaskContext]) -> bool:
        role = self._role
        try:
            while w.left > 0:
                if self.dead is not None:
                    raise self.dead.again()
                if tc is not None and tc.cancelled is not None:
                    x = tc.cancelled()
                    if x is not None:
                        raise x
                left = None if until is None else until - time.monotonic()
                if left is not None and left <= 0:
                    return False
                conn = self.conn
                if conn is not None and role.acquire(False):
                    self._uses += 1
                    try:
                        while w.left > 0 and self.conn is conn and self.dead is None and not self._later:
                            if tc is not None and tc.cancelled is not None and tc.cancelled() is not None:
                                break
                            if self.out:
                                self.flush()
                            if until is not None:
                                left = until - time.monotonic()
                                if left <= 0:
                                    break
                            conn.pump(left, self._handle)
                    except MobulaError as x:
                        self._broken(conn, x)
                    finally:
                        self._uses += 1
                        role.release()
                    if self._later:
                        self._after()
                    continue
                # Somebody else reads.
                w.asleep = True
                self._followers.append(w)
                if self._keeper_reads:
                    self._wake_keeper()
                elif not role.locked() and self.conn is not None:  # freed meanwhile: nobody would wake us
                    w.wake()
                if w.left <= 0:
                    w.wake()
                # Never without end: a signal's handler has to run, and a cancelled task has to be seen.
                w.lock.acquire(timeout=5.0 if left is None else min(left, 5.0))
                if w.asleep:
                    w.asleep = False
                    if w.lock.acquire(False):
                        pass
                elif w.lock.acquire(False):  # a token that nobody needs
                    pass
            return True
        finally:
            if self.quiet:
                self._arm()  # nobody reads from now on, unless the keeper does
            if self._followers and not role.locked():
                self._hand_over()

    def _after(self) -> None:
        """What the handling of messages left to do without locks."""
        while self._later:
            try:
                f = self._later.pop(0)
            except IndexError:
                return
            try:
                f()
            except Exception:
                log.exception("a callback failed")

    def _handle(self, kind: int, b: bytes, i: int, j: int, fd: Optional[int]) -> None:
        with self._lock:
            if kind == _RESOLVED:
                self._resolved(b, i, j)
                return
            extra = self.extra.get(kind)
            if extra is not None:
                extra(b, i, j)
            elif kind == _STREAM_ITEM:
                self._streamed(codec.decode(m.StreamItem, b, i, j))
            elif kind == _CREATED:
                a: m.Created = codec.decode(m.Created, b, i, j)
                self._answer(self._creates, a.req, a)
            elif kind == _REPLY:
                r: m.Reply = codec.decode(m.Reply, b, i, j)
                self._answer(self._requests, r.req, r)
            elif kind == _CREDIT:
                self._grant(codec.decode(m.Credit, b, i, j).bytes)
            elif kind == _RESYNC:
                s: m.Resync = codec.decode(m.Resync, b, i, j)
                if s.component == m.OWNER:
                    self._refill()
                self._declare(s.component, s.epoch)
            elif kind == _COLLECT:
                self._later.append(self._collect)
            elif kind == _MAP_FILE:
                self._map(codec.decode(m.MapFile, b, i, j), fd)
            elif kind == _BYE:
                bye: m.Bye = codec.decode(m.Bye, b, i, j)
                why = codec.from_wire(bye.err) if bye.err is not None else OwnerDiedError("the node said goodbye")
                if self.conn is not None:
                    self.conn.fail(why)

    def _answer(self, table: dict[int, tuple[Waiter, bytes]], req: int, answer: Any) -> None:
        q = table.pop(req, None)
        if q is not None:
            q[0].slot = answer
            q[0].done()

    def _map(self, a: m.MapFile, fd: Optional[int]) -> None:
        try:
            if fd is None:
                fd = os.open(a.path, os.O_RDWR | os.O_CLOEXEC)
            try:
                if self.segment is not None:
                    self.segment.add(a.file, fd, a.size)
            finally:
                os.close(fd)
        except (OSError, MobulaError):
            log.exception("cannot map a file of the object store: %r", a.path)

    def _collect(self) -> None:
        now = time.monotonic()
        if now - self._collected >= 1.0:  # a collection costs in proportion to the heap
            self._collected = now
            gc.collect()
            self.flush()

    # ---- what is known of objects

    def _resolved(self, b: bytes, i: int, j: int) -> None:
        id, fetch, res, extent = hot.resolved(b, i, j)
        if res.kind == m.NONE:
            res = Answer(m.ERROR, err=m.Error(27, "the node answered with no result"))
        h = self.handles.get(id)
        stored = res.kind == m.STORED
        pin: Optional[Pin] = None
        if stored and fetch:
            pin = self._pins.get(id)
            if pin is None:
                pin = self._pins[id] = Pin(id, extent or m.Extent())
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
            elif stored and old.kind == m.STORED and not res.refs and old.refs:
                pass  # the store knows no references, the owner told us before
            waiters = h.waiters
            if waiters:
                keep: list[Waiter] = []
                for w in waiters:
                    if stored and w.fetch and not fetch:
                        keep.append(w)  # known to be stored now; its bytes are on the way
                        continue
                    if pin is not None and w.fetch:
                        pin.users += 1
                        w.pins.append(pin)
                    if w.strict and res.kind == m.ERROR and w.left > 0:
                        w.done(w.left)
                    else:
                        w.done()
                h.waiters = keep or None
            if h.callbacks and (pin is not None or not stored):
                if pin is not None:
                    for _ in h.callbacks:
                        pin.users += 1
                self._later += h.callbacks
                h.callbacks = None
            if h.refs <= 0:
                h.refs += 1
                self._dropped.append(h)
        if pin is not None and pin.users == 0:
            self._unpin(pin)

    def _cache(self, h: Handle, res: Answer) -> None:
        h.cost = len(res.data) + len(res.meta) + 128
        self.cache_used += h.cost
        if self.cache_used > CACHE_BYTES // 4:  # small tables are not worth the order
            self._cached.append(h)
            while self.cache_used > CACHE_BYTES and self._cached:
                old = self._cached.popleft()
                if old.cost and old is not h:
                    self.cache_used -= old.cost
                    old.cost = 0
                    old.res = None
            if len(self._cached) > 2 * len(self.handles) + 1024:
                self._cached = deque(x for x in self._cached if x.cost)

    def bind(self, id: bytes) -> Handle:
        """The handle of a reference found in a value; the owner is told if this process had none."""
        with self._lock:
            h = self.handles.get(id)
            if h is not None:
                h.refs += 1
                return h
            h = self.handles[id] = Handle(self, id)
            self.send(hot.add_ref(id))
            return h

    def adopt(self, id: bytes, res: Optional[Answer] = None) -> Handle:
        """The handle of an object that this process makes."""
        if id not in self.handles:
            h = Handle(self, id)
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
        with self._lock:  # the task runs again and makes what it has made before
            old = self.handles.get(id)
            if old is None:
                old = self.handles[id] = Handle(self, id)
            else:
                old.refs += 1
            if old.res is None:
                old.res = res
            return old

    # ---- getting

    def check(self) -> None:
        if self.dead is not None:
            raise self.dead.again()

    def fetch(self, hs: Sequence[Handle], timeout: Optional[float], tc: Optional[TaskContext]) -> Iterator[tuple[Answer, Optional[Reading]]]:
        """What is known of objects, in order, when all of them are there or one has failed. Stored ones are pinned some at a time, so
        that values which are copied out fit any store."""
        until = None if timeout is None else time.monotonic() + timeout
        self._resolve(hs, len(hs), until, tc, False, True)
        most = min(_WINDOW, self.welcome.segment_size // 16)
        i = 0
        while i < len(hs):
            size, j = 0, i
            window: list[Handle] = []
            while j < len(hs) and (j == i or size < most):
                res = hs[j].res
                if res is not None and res.kind == m.STORED:
                    window.append(hs[j])
                    size += res.size
                j += 1
            pins: dict[bytes, list[Pin]] = {}
            if len(window) > 1:
                for p in self._resolve(window, len(window), until, tc, True, True):
                    pins.setdefault(p.id, []).append(p)
            for h in hs[i:j]:
                got = pins.get(h.id)
                if got and h.res is not None:
                    yield h.res, Reading(self, got.pop())
                else:
                    yield self.fetch_one(h, until, tc)
            for rest in pins.values():
                self._unpins.extend(rest)
            i = j

    def fetch_one(self, h: Handle, until: Optional[float], tc: Optional[TaskContext]) -> tuple[Answer, Optional[Reading]]:
        res = h.res
        if res is not None and res.kind != m.STORED:
            return res, None
        held: list[Pin] = []
        with self._lock:
            pin = self._pins.get(h.id)
            if pin is not None and pin.n and h.res is not None:
                pin.users += 1
                return h.res, Reading(self, pin)
        held = self._resolve([h], 1, until, tc, True, True)
        res = h.res
        if res is None:
            raise self.failure(ProtocolError("an object was resolved to nothing"))
        if res.kind != m.STORED:
            for p in held:
                self._unpins.append(p)
            return res, None
        if not held:  # it became stored by another question
            return self.fetch_one(h, until, tc)
        for p in held[1:]:
            self._unpins.append(p)
        return res, Reading(self, held[0])

    def _resolve(self, hs: Sequence[Handle], n: int, until: Optional[float], tc: Optional[TaskContext], fetch: bool, strict: bool) -> list[Pin]:
        """Waits until n of the objects are known, or their bytes pinned if fetch."""
        self.check()
        if until is not None:  # without any time what is there could never be had: the question takes a trip
            until = max(until, time.monotonic() + (FETCH_PATIENCE if fetch and all(h.res is not None for h in hs) else TRIP))
        w = Waiter(n, fetch, strict)
        linked: list[Handle] = []
        out = self.out
        with self._lock:
            for h in hs:
                res = h.res
                if res is not None and (not fetch or res.kind != m.STORED):
                    w.left -= 1
                    continue
                if h.gone:
                    raise ObjectFreedError(f"object {_ids.show_object(h.id)}: this reference was released")
                if fetch:
                    pin = self._pins.get(h.id)
                    if res is not None and pin is not None and pin.n:
                        pin.users += 1
                        w.pins.append(pin)
                        w.left -= 1
                        continue
                    if not h.fetching:
                        h.fetching = True
                        out.append(hot.get(h.id, True))
                elif not h.asked and not h.fetching:
                    h.asked = True
                    out.append(hot.get(h.id, False))
                if h.waiters is None:
                    h.waiters = [w]
                else:
                    h.waiters.append(w)
                linked.append(h)
        ok = False
        try:
            ok = w.left <= 0 or self._patient(w, until, tc, linked)
        finally:
            if not ok or w.left < 0 or n < len(hs) or fetch:
                self._unlink(w, linked)
            if not ok:
                for p in w.pins:
                    self._unpins.append(p)
        if not ok and strict:
            raise GetTimeoutError(f"the time ran out with {max(w.left, 0)} of {len(hs)} objects missing; the references stay valid")
        return w.pins

    def _patient(self, w: Waiter, until: Optional[float], tc: Optional[TaskContext], linked: list[Handle]) -> bool:
        """Waits, and says so in the log when it takes long."""
        begun = time.monotonic()
        while True:
            warn = time.monotonic() + WARN_AFTER
            if self.wait(w, warn if until is None else min(until, warn), tc):
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
                raise FetchTimedOutError(f"object {first} ({res.size} bytes) is stored, but its bytes did not come within {FETCH_TIMEOUT} s")
            log.warning("a get waits long: %.0f s, %d missing, among them %s; see mobula explain %s", now - begun, len(missing), first, first)

    def _unlink(self, w: Waiter, linked: list[Handle]) -> None:
        with self._lock:
            for h in linked:
                if h.waiters and w in h.waiters:
                    h.waiters = [x for x in h.waiters if x is not w] or None
                    if w.fetch and h.fetching and not any(x.fetch for x in h.waiters or ()) and not h.callbacks:
                        h.fetching = False
                        self.send(hot.unget(h.id))
                    if h.refs <= 0:
                        h.refs += 1
                        self._dropped.append(h)

    def ready(self, hs: Sequence[Handle], n: int, timeout: Optional[float], tc: Optional[TaskContext]) -> None:
        """Waits until n of the objects are known, or the time is over."""
        have = sum(1 for h in hs if h.res is not None)
        if have < n:
            until = None if timeout is None else time.monotonic() + timeout
            self._resolve(hs, n, until, tc, False, False)

    def when(self, h: Handle, f: Callable[[], None]) -> None:
        """Calls f once h's value can be had without a wait, from whichever thread learns it. Its bytes are pinned for f's sake."""
        with self._lock:
            res = h.res
            pin = self._pins.get(h.id)
            if res is not None and (res.kind != m.STORED or (pin is not None and pin.n)):
                if res.kind == m.STORED and pin is not None:
                    pin.users += 1
                self._later.append(f)
            else:
                if h.callbacks is None:
                    h.callbacks = []
                h.callbacks.append(f)
                if not h.fetching:
                    h.fetching = True
                    self.out.append(hot.get(h.id, True))
        self.flush()
        if self._later and self._role.acquire(False):
            self._role.release()
            self._after()
        self._arm()

    def pinned(self, h: Handle) -> Optional[Reading]:
        """The share of a pin that when took."""
        with self._lock:
            pin = self._pins.get(h.id)
            return Reading(self, pin) if pin is not None and h.res is not None and h.res.kind == m.STORED else None

    def view(self, res: Answer, reading: Reading) -> memoryview:
        """The bytes of a stored object, in place."""
        if self.segment is None:
            raise ProtocolError("the node sent no segment with its welcome")
        return self.segment.view(reading.pin.extent, res.size, reading)

    # ---- making

    def admit(self, cost: int, tc: Optional[TaskContext] = None) -> None:
        """Waits until so many more bytes may be under way. A lost update between threads moves the bound by one message."""
        left = self.credit
        if left is None:
            return
        while left is not None and left <= 0:
            w = Waiter(1)
            with self._lock:
                if self.credit is None or self.credit > 0:
                    break
                self._credit_waiters.append(w)
            self.wait(w, None, tc)
            left = self.credit
        if self.credit is not None:
            self.credit -= cost

    def _grant(self, n: int) -> None:
        if n > 0:
            self._window = max(self._window, n)
            self.credit = n if self.credit is None else min(self.credit + n, self._window)
            self._woken()

    def _refill(self) -> None:
        if self._window:
            self.credit = self._window
            self._woken()

    def _woken(self) -> None:
        if self._credit_waiters:
            for w in self._credit_waiters:
                w.done()
            self._credit_waiters = []

    def put_small(self, id: bytes, meta: bytes, data: bytes, refs: Sequence[bytes]) -> Handle:
        self.check()
        if self.credit is not None:
            self.admit(64 + len(meta) + len(data) + 20 * len(refs))
        h = self.adopt(id, Answer(m.INLINE, meta, data, tuple(refs), len(data)))
        self.out.append(hot.put_value(id, meta, data, refs))
        self.maybe_flush()
        return h

    def put_large(self, id: bytes, attempt: int, task: bytes, meta: bytes, size: int, parts: list[tuple[int, Any]], refs: Sequence[bytes],
                  own: bool = True, tc: Optional[TaskContext] = None) -> Optional[Handle]:
        """Creates, writes and seals an object in the segment. own: this process gets a handle on it."""
        self.check()
        codec.check_meta(meta)
        req = next(self._req)
        w = Waiter(1)
        chunk = codec.message(m.Create(req, id, attempt, size, task))
        with self._lock:
            self._creates[req] = (w, chunk)
            self.out.append(chunk)
        try:
            begun = time.monotonic()
            while not self.wait(w, time.monotonic() + WARN_AFTER, tc):
                log.warning("a create waits long for room in the object store: %.0f s, object %s, %d bytes", time.monotonic() - begun, _ids.show_object(id), size)
        except BaseException:
            with self._lock:
                if self._creates.pop(req, None) is not None or (w.slot is not None and w.slot.err is None and not w.slot.exists):
                    self.send(codec.message(m.Abort(id, attempt)))
            raise
        a: m.Created = w.slot
        if a.err is not None:
            raise codec.from_wire(a.err)
        if a.exists:
            return self.bind(id) if own else None
        try:
            extent = a.extent or m.Extent()
            if extent.size < size:
                raise ProtocolError(f"object {_ids.show_object(id)}: asked for {size} bytes, the extent has {extent.size}")
            assert self.segment is not None
            self.segment.write(extent, parts)
        except BaseException:
            self.send(codec.message(m.Abort(id, attempt)))
            raise
        h = self.adopt(id, Answer(m.STORED, meta, b"", tuple(refs), size)) if own else None
        self.out.append(codec.message(m.Seal(id, attempt, size, m.Value(meta, b"", list(refs)))))
        self.maybe_flush()
        return h

    def cancel(self, task: bytes, force: bool, recursive: bool) -> None:
        self.check()
        self.send(codec.message(m.Cancel(task, force, recursive)))
        self.flush()

    def kill(self, actor: bytes, restart: bool) -> None:
        self.check()
        self.send(codec.message(m.KillActor(actor, restart)))
        self.flush()

    def request(self, method: str, body: bytes, timeout: float = 30.0) -> bytes:
        """Asks the node's cold service."""
        self.check()
        req = next(self._req)
        w = Waiter(1)
        chunk = codec.message(m.Request(req, method, body))
        with self._lock:
            self._requests[req] = (w, chunk)
            self.out.append(chunk)
        try:
            if not self.wait(w, time.monotonic() + timeout):
                raise GetTimeoutError(f"{method}: the node did not answer in {timeout} s")
        finally:
            with self._lock:
                self._requests.pop(req, None)
        r: m.Reply = w.slot
        if r.err is not None:
            raise codec.from_wire(r.err)
        return r.body

    # ---- streams

    def next_item(self, task: bytes, i: int, timeout: Optional[float], tc: Optional[TaskContext]) -> Optional[Handle]:
        """Waits for the i-th item of a stream; None at its end. The error that ended it is raised."""
        self.check()
        w = Waiter(1)
        key = (task, i)
        with self._lock:
            readers = self._streams.get(key)
            if readers is None:
                readers = self._streams[key] = []
                self.out.append(codec.message(m.StreamNext(task, i)))
            readers.append(w)
        until = None if timeout is None else time.monotonic() + timeout
        try:
            if not self.wait(w, until, tc):
                raise GetTimeoutError(f"item {i} of the stream did not come in time; ask again")
        except BaseException:
            self._leave(key, w)
            raise
        if isinstance(w.slot, MobulaError):
            raise w.slot
        return w.slot if isinstance(w.slot, Handle) else None

    def when_item(self, task: bytes, i: int, f: Callable[[Any], None]) -> None:
        """Calls f with the handle of an item, None at the end, or the error."""
        with self._lock:
            key = (task, i)
            readers = self._streams.get(key)
            if readers is None:
                readers = self._streams[key] = []
                self.out.append(codec.message(m.StreamNext(task, i)))
            readers.append(f)
        self.flush()
        self._arm()

    def _leave(self, key: tuple[bytes, int], w: Waiter) -> None:
        with self._lock:
            readers = self._streams.get(key)
            if readers and w in readers:
                readers.remove(w)
                if not readers:
                    del self._streams[key]
            if isinstance(w.slot, Handle):  # it may have come all the same
                self._dropped.append(w.slot)

    def _streamed(self, item: m.StreamItem) -> None:
        readers = self._streams.pop((item.task, item.index), None)
        if readers is None:
            return  # every reader has left; whoever comes back asks again
        r = item.result or m.Result()
        slot: Any = None
        if r.kind == m.ERROR:
            slot = answer_error(Answer(m.ERROR, err=r.err))
        elif r.kind != m.NONE:
            v = r.value or m.Value()
            id = _ids.return_id(item.task, item.index)
            h = self.handles.get(id)
            if h is None:
                h = self.adopt(id, Answer(r.kind, v.meta, v.data, tuple(v.refs), r.size))
                self.send(hot.add_ref(id))
                h.refs += len(readers) - 1
            else:
                h.refs += len(readers)
                if h.res is None:
                    h.res = Answer(r.kind, v.meta, v.data, tuple(v.refs), r.size)
            slot = h
        for w in readers:
            if isinstance(w, Waiter):
                w.slot = slot
                w.done()
            else:
                self._later.append(lambda w=w: w(slot))  # type: ignore[misc]

    # ---- when the node restarts

    def _declare(self, component: int, epoch: int) -> None:
        h = m.Holdings(component, epoch)
        if component == m.OWNER:
            for x in list(self.handles.values()):
                h.handles.append(x.id)
                if x.asked:
                    h.gets.append(m.Get(x.id))
                if x.fetching:
                    h.gets.append(m.Get(x.id, True))
            h.streams = [m.StreamNext(t, i) for t, i in self._streams]
            if self.holdings is not None:
                self.holdings(h)
            self.send(codec.message(h))
        elif component == m.STORE:
            h.pins = [m.Unpin(p.id, p.n) for p in self._pins.values() if p.n]
            self.send(codec.message(h))
            for _, chunk in self._creates.values():
                self.send(chunk)

    def _broken(self, conn: Conn, why: MobulaError) -> None:
        """A connection is over. Without reconnect, everything is."""
        why = why.again()
        conn.fail(why)
        with self._lock:
            if self.conn is not conn:
                return
            self.conn = None
        final = isinstance(why, MobulaError) and not isinstance(why, (DisconnectedError, NoNodeError, ShutdownError, ProtocolError))
        if not self.reconnect or self.closing or final or isinstance(why, VersionError):
            self.die(why if final else OwnerDiedError(f"the connection to the node is gone: {why}", causes=(why,)))
        # Whoever sleeps in the old connection's wake, the keeper among them, has to look again.
        try:
            os.eventfd_write(conn.wake, 1)
        except OSError:
            pass

    def die(self, why: MobulaError) -> None:
        """Every pending and later operation fails."""
        with self._lock:
            if self.dead is None:
                self.dead = why
            waiters: list[Waiter] = list(self._followers) + self._credit_waiters
            for h in list(self.handles.values()):
                waiters += h.waiters or ()
                if h.callbacks:
                    self._later += h.callbacks
                    h.callbacks = None
            for q in list(self._creates.values()) + list(self._requests.values()):
                waiters.append(q[0])
            for readers in self._streams.values():
                for r in readers:
                    if isinstance(r, Waiter):
                        waiters.append(r)
                    else:
                        self._later.append(lambda r=r: r(self.dead))  # type: ignore[misc]
            for w in waiters:
                w.wake()
        self._after()

    def _rejoin(self) -> None:
        """Looks for the node again, under the same job."""
        if self.dead is not None or self.closing:
            self.closing = True
            return
        self._refill()
        until, pause = time.monotonic() + REJOIN, 0.02
        while not self.closing:
            try:
                conn, welcome, fd, early = dial(self.address, self.hello)
                break
            except (NoNodeError, DisconnectedError, ShutdownError) as x:
                if time.monotonic() > until:
                    self.die(OwnerDiedError(f"node at {self.address}: not back after {REJOIN:.0f} s: {x}", causes=(x.again(),)))
                    return
                time.sleep(pause)
                pause = min(2 * pause, 1.0)
            except MobulaError as x:
                self.die(x.again())
                return
        else:
            return
        segment = open_segment(fd, welcome.segment_size)
        with self._lock:
            if segment is not None:
                self.segment = segment
            out = self.out
            waiting = [out.popleft() for _ in range(len(out))]
            # Holdings first, then what was sent last and may not have arrived, then what was never sent.
            self._declare(m.OWNER, 0)
            self._declare(m.STORE, 0)
            never = [c for c in waiting if c[0] in _REPLAYED]
            out.extend(self._unacked)
            out.extend(never)
            self._remember(never)
            out.extend(c for c in waiting if c[0] not in _REPLAYED and c[0] not in _REDECLARED and c[:2] not in _REDECLARED2)
            for _, chunk in self._requests.values():
                out.append(chunk)
            self.conn = conn
        try:
            with conn.writing:
                conn.write([out.popleft() for _ in range(len(out))])
        except MobulaError as x:
            self._broken(conn, x)
            return
        for kind, body in early:
            self._handle(kind, body, 0, len(body), None)
        for w in list(self._followers):
            w.wake()

    def close(self) -> None:
        """Leaves the node: what waits fails."""
        if self.closing and self.dead is not None:
            return
        gc_handles = self.dead is None
        if gc_handles:
            self.flush()
        conn = self.conn
        self.closing = True
        self.die(ShutdownError("the client was closed"))
        self._arm()
        if conn is not None:
            conn.fail(ShutdownError("the client was closed"))  # whoever reads it wakes up
        if self._keeper.is_alive() and threading.current_thread() is not self._keeper:
            self.closed.wait(2.0)
        if conn is not None:
            if self._role.acquire(timeout=2.0):
                conn.close()
                self._role.release()
        self.conn = None
        if self.segment is not None:
            try:
                self.segment.close()
            except BufferError:
                pass  # somebody writes into it at this moment

    def failure(self, x: MobulaError) -> MobulaError:
        return self.dead.again() if self.dead is not None else x


def answer_error(res: Answer) -> MobulaError:
    """The exception that an object was resolved with."""
    from ._value import task_failure

    return task_failure(res.err)


__all__ = ["Client", "Handle", "Pin", "Reading", "Segment", "TaskContext", "Waiter", "answer_error"]
