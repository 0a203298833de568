"""The client: one connection with a node, from its welcome to its end. The other modules of the package are its parts."""

from __future__ import annotations

import gc
import logging
import os
import threading
import time
from itertools import count
from typing import Any, Optional
from weakref import WeakValueDictionary

from .. import _sampling
from .._segment import open_segment
from .._shield import shield
from .._wire import codec
from .._wire import messages as m
from .._wire.conn import Conn, dial
from .._wire.hot import Answer
from ..exceptions import DisconnectedError, GetTimeoutError, MobulaError, NoNodeError, OwnerDiedError, ProtocolError, ShutdownError, VersionError
from .context import TaskContext
from .credit import Credit
from .getting import Getter
from .handle import Reading
from .interfaces import Worker
from .lingering import linger
from .objects import Objects
from .outbox import Outbox
from .pending import Pending
from .putting import Putter
from .reader import Reader
from .rejoin import Reached, ahead, look
from .requests import Requests, Turn
from .spans import Spans
from .streams import Streams
from .waiter import Waiter
from .watching import Watches

log = logging.getLogger("mobula")

FLUSH_EVERY = 0.001
REQUEST_TIMEOUT = 30.0
_SOON = 0.001  # how long a task may wait before its CPU is given back
_COLLECT_EVERY = 1.0  # a collection costs in proportion to the heap

_K = m.KIND_OF
_RESOLVED, _STREAM_ITEM, _CREATED, _REPLY = _K[m.Resolved], _K[m.StreamItem], _K[m.Created], _K[m.Reply]
_CREDIT, _RESYNC, _COLLECT, _MAP_FILE, _BYE, _NEWS = _K[m.Credit], _K[m.Resync], _K[m.Collect], _K[m.MapFile], _K[m.Bye], _K[m.ActorNews]
_UNMAP_FILE, _EXEC = _K[m.UnmapFile], _K[m.Exec]


class Client:
    def __init__(self, address: str, hello: m.Hello, reconnect: bool) -> None:
        self.address = address
        self.hello = hello
        self.reconnect = reconnect
        conn, welcome, fd, early = dial(address, hello)
        self.conn: Optional[Conn] = conn
        self.welcome = welcome
        self.inline = welcome.inline_max or 100 << 10
        self.sampler = _sampling.sampler(os.environ, welcome.trace_millionths)
        self.segment = open_segment(fd, welcome.segment_size)
        self.segments = [self.segment] if self.segment is not None else []  # and those before the node came back: arrays may lie in them
        self.lingering: Optional[Conn] = None  # the connection of a client that is over, and whose arrays are not
        self.ahead = ahead(welcome)
        self.pid = os.getpid()
        hello.job, hello.client, hello.token = welcome.job, welcome.client, (welcome.token or hello.token)
        self.root = TaskContext(self, welcome.root)
        # Whose code runs in a thread that no task has begun: in a worker the main thread's, since it may have begun the thread.
        self.fallback = self.root
        self.dead: Optional[MobulaError] = None
        self.closing = False
        self.exiting = False  # the interpreter ends
        self._collected = 0.0
        self._early = early
        self.worker: Optional[Worker] = None  # what a worker adds, before start

        self.lock = threading.RLock()
        self.reader = Reader(self)
        self.outbox = Outbox(reconnect)
        self.credit = Credit(self)
        self.objects = Objects(self)
        self.streams = Streams(self, self.objects)
        self.watches = Watches(self)
        self.rooms: WeakValueDictionary[bytes, Any] = WeakValueDictionary()  # of actors with a limit: how many calls may be under way
        numbers = count(1)
        self.spans = Spans(self)
        self.creates, self.requests = Pending(self, numbers), Requests(self, numbers)
        self.getter = Getter(self, self.objects, welcome.segment_size)
        self.putter = Putter(self, self.objects, self.credit, self.creates)
        # Queues that everybody appends to: the parts', without a hop in between.
        self.out, self.dropped, self.unpins = self.outbox.queue, self.objects.dropped, self.objects.unpins

    def now(self) -> int:
        """The time by the node's clock, in nanoseconds: what deadlines and the times of attempts are by."""
        return time.monotonic_ns() + self.ahead

    def start(self) -> None:
        """Begins to read."""
        for kind, body in self._early:
            self.handle(kind, body, 0, len(body), None)
        self._early = []
        self.reader.start()

    # ---- sending

    def send(self, chunk: bytes) -> None:
        """Queues a message; it goes within a tick, or with the next flush."""
        self.out.append(chunk)
        if self.reader.quiet:
            self.reader.arm()

    def unsent(self) -> bool:
        """Whether a flush has something to do."""
        return bool(self.out or self.dropped or self.unpins)

    def flush(self) -> None:
        """Writes what is queued."""
        if not self.unsent():
            return
        mine = shield.up()
        try:
            if self.dropped or self.unpins:
                self.objects.release()
            conn = self.conn
            if self.out and conn is not None:
                self._write(conn)
        finally:
            if mine:
                shield.down()

    def _write(self, conn: Conn) -> None:
        try:
            with conn.writing:
                if self.conn is conn:
                    self.outbox.write(conn)
        except MobulaError as x:
            self.broken(conn, x)
        except BaseException:  # of a signal's handler: part of a frame may have gone
            conn.fail(DisconnectedError("an exception cut off the writing of messages"))
            raise

    def maybe_flush(self) -> None:
        """Flushes if nothing was flushed for a moment: one that submits without end has its tasks run meanwhile."""
        if self.reader.quiet:
            self.reader.arm()
        if time.monotonic() - self.outbox.written > FLUSH_EVERY:
            self.flush()

    def cancel(self, task: bytes, force: bool, recursive: bool) -> None:
        """Cancels a task. It always insists: what holds the GIL cannot notice, and would keep its worker."""
        self.check()
        self.send(codec.message(m.Cancel(task, force, recursive, True)))
        self.flush()

    def kill(self, actor: bytes, restart: bool) -> None:
        self.check()
        self.send(codec.message(m.KillActor(actor, restart)))
        self.flush()

    def request(self, method: str, body: bytes, timeout: Optional[float] = None) -> bytes:
        """Asks the node's cold service, in its turn. Without a timeout a client that has no connection waits until its node is back, which then
        has REQUEST_TIMEOUT to answer, or is known to be gone."""
        self.check()
        until = None if timeout is None else time.monotonic() + timeout
        turn = Turn()
        try:
            self.requests.line_up(turn)
            self._answered(turn, method, timeout, until)
            w = self.requests.ask_in_turn(turn, lambda req: codec.message(m.Request(req, method, body)))
            self._answered(w, method, timeout, until)
        finally:
            self.requests.leave(turn)
        r: m.Reply = w.slot
        if r.err is not None:
            raise codec.from_wire(r.err)
        return r.body

    def _answered(self, w: Waiter, method: str, timeout: Optional[float], until: Optional[float]) -> None:
        """Waits for the node until the time is up, or on one connection for REQUEST_TIMEOUT."""
        conn = self.conn
        while not self.wait(w, time.monotonic() + REQUEST_TIMEOUT if until is None else until):
            if until is not None or self.conn is conn is not None:
                raise GetTimeoutError(f"{method}: the node did not answer in {REQUEST_TIMEOUT if timeout is None else timeout} s")
            conn = self.conn

    # ---- waiting

    def wait(self, w: Waiter, until: Optional[float], tc: Optional[TaskContext] = None) -> bool:
        """Waits until w has its answers, on behalf of a task, whose CPU is given back; false if the time ran out. until is by
        time.monotonic."""
        if tc is None or not tc.waits:
            mine = shield.up()
            try:
                self.flush()
                return w.left <= 0 or self.reader.wait(w, until, tc)
            finally:
                if mine:
                    shield.down()
        self.flush()
        if w.left <= 0:
            return True
        # What a task waits for is most often there and only has to be fetched. Who has called a task waits for that
        # one: it may need the CPU.
        if not tc.called:
            soon = time.monotonic() + _SOON
            if self.reader.wait(w, soon if until is None else min(soon, until), tc):
                return True
        tc.block()
        if w.needs:
            tc.needs(w.needs)
        try:
            return self.reader.wait(w, until, tc)
        finally:
            tc.unblock()

    def view(self, res: Answer, reading: Reading) -> memoryview:
        """The bytes of a stored object, in place."""
        if self.segment is None:
            raise ProtocolError("the node sent no segment with its welcome")
        return self.segment.view(reading.pin.extent, res.size, reading)

    # ---- what comes in

    def handle(self, kind: int, b: bytes, i: int, j: int, fd: Optional[int]) -> None:
        """Handles a message, in the thread that reads."""
        worker = self.worker
        if kind == _EXEC and worker is not None:
            worker.tasks(b, i, j)
            return
        with self.lock:
            if kind == _RESOLVED:
                self.objects.resolved(b, i, j)
                return
            order = worker.orders.get(kind) if worker is not None else None
            if order is not None:
                order(b, i, j)
            elif kind == _STREAM_ITEM:
                self.streams.arrived(codec.decode(m.StreamItem, b, i, j))
            elif kind == _CREATED:
                a: m.Created = codec.decode(m.Created, b, i, j)
                self.creates.answer(a.req, a)
            elif kind == _REPLY:
                r: m.Reply = codec.decode(m.Reply, b, i, j)
                self.requests.answer(r.req, r)
            elif kind == _NEWS:
                self.watches.arrived(codec.decode(m.ActorNews, b, i, j))
            elif kind == _CREDIT:
                self.credit.grant(codec.decode(m.Credit, b, i, j).bytes)
            elif kind == _RESYNC:
                self._resync(codec.decode(m.Resync, b, i, j))
            elif kind == _COLLECT:
                self.reader.later.append(self._collect)
            elif kind == _MAP_FILE:
                self._map(codec.decode(m.MapFile, b, i, j), fd)
            elif kind == _UNMAP_FILE:
                if self.segment is not None:
                    self.segment.drop(codec.decode(m.UnmapFile, b, i, j).file)
            elif kind == _BYE:
                bye: m.Bye = codec.decode(m.Bye, b, i, j)
                why = codec.from_wire(bye.err) if bye.err is not None else OwnerDiedError("the node said goodbye")
                if self.conn is not None:
                    self.conn.fail(why)

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
        if now - self._collected >= _COLLECT_EVERY:
            self._collected = now
            gc.collect()
            self.flush()

    def _resync(self, s: m.Resync) -> None:
        """A component of the node begins anew and asks what this process holds."""
        if s.component == m.OWNER:
            self.credit.refill()
        for chunk in self.declare(s.component, s.epoch):
            self.send(chunk)

    # ---- when the node restarts

    def declare(self, component: int, epoch: int) -> list[bytes]:
        """What a component of the node has to know of this process, and what it has to be asked again."""
        h = m.Holdings(component, epoch)
        if component == m.OWNER:
            self.objects.declare_handles(h)
            self.streams.declare(h)
            if self.worker is not None:
                self.worker.declare(h)
            return [codec.message(h), *self.watches.declare()]
        if component == m.STORE:
            self.objects.declare_pins(h)
            return [codec.message(h), *self.creates.again()]
        return []

    def rejoin(self) -> None:
        """In the keeper: there is no connection."""
        if self.dead is not None or self.closing:
            self.closing = True
            return
        self.credit.refill()
        try:
            try:
                reached = look(self.address, self.hello, lambda: self.closing)
            except MobulaError as x:
                self.die(x.again())
                return
            if reached is not None:
                self._begin_anew(reached)
        except Exception as x:
            self.die(OwnerDiedError(f"node at {self.address}: it is back, and this process cannot use what it sends: {x!r}"))

    def _begin_anew(self, reached: Reached) -> None:
        """Goes on with a node that was found again."""
        conn, welcome = reached.conn, reached.welcome
        try:
            segment = open_segment(reached.segment, welcome.segment_size)
        except BaseException:
            conn.close()
            raise
        try:
            with conn.writing:  # nothing else goes before what the node has to hear first
                with self.lock:
                    if segment is not None:
                        self.segment = segment
                        self.segments = [*(self.segments if self.objects.viewed() else ()), segment]
                    self.ahead = ahead(welcome)
                    chunks = self.outbox.renew([*self.declare(m.OWNER, 0), *self.declare(m.STORE, 0)], self.requests.again())
                    self.conn = conn
                conn.write(chunks)
        except MobulaError as x:
            self.broken(conn, x)
            return
        for kind, body in reached.early:
            self.handle(kind, body, 0, len(body), None)
        self.reader.wake()

    # ---- the end

    def broken(self, conn: Conn, why: MobulaError) -> None:
        """A connection is over. Without reconnect, everything is."""
        why = why.again()
        conn.fail(why)
        with self.lock:
            if self.conn is not conn:
                return
            self.conn = None
        final = not isinstance(why, (DisconnectedError, NoNodeError, ShutdownError, ProtocolError))
        if not self.reconnect or self.closing or final or isinstance(why, VersionError):
            self.die(why if final else OwnerDiedError(f"the connection to the node is gone: {why}", causes=(why,)))
        # Whoever sleeps in the old connection's wake, the keeper among them, has to look again.
        try:
            os.eventfd_write(conn.wake, 1)
        except OSError:
            pass

    def die(self, why: MobulaError) -> None:
        """Every pending and later operation fails."""
        with self.lock:
            if self.dead is None:
                self.dead = why
            self.credit.abandon()
            self.objects.abandon()
            self.creates.abandon()
            self.requests.abandon()
            self.streams.abandon()
            self.watches.abandon()
            self.reader.wake()
        self.reader.call_later()
        if not self.closing and self.reconnect and self.objects.viewed():
            linger(self, None)

    def check(self) -> None:
        if self.dead is not None:
            raise self.over()

    def over(self) -> BaseException:
        """What a call raises whose connection is over. A daemon thread that is still at it when the interpreter ends ends then, without a
        word, as threads do that wait for something else: nobody is there to be told."""
        assert self.dead is not None
        t = threading.current_thread()
        return SystemExit() if self.exiting and t.daemon and not self.reader.keeps(t) else self.dead.again()

    def forked(self) -> None:
        """In a child process: the connection stays the parent's, and with it what references name."""
        self.closing = True
        self.conn = None
        self.dead = ShutdownError(f"this process was forked from process {self.pid}, whose connection and references are not its own: "
                                  "call mobula.init() here, and give it values")
        self.objects.pins.clear()

    def close(self) -> None:
        """Leaves the node: what waits fails. Arrays that lie in the object store stay what they are."""
        if self.closing and self.dead is not None:
            return
        if self.dead is None:
            self.flush()
        conn = self.conn
        self.closing = True
        if conn is not None and self.reconnect:
            for s in self.segments:
                s.detach_unsealed()
            self._say(conn, m.Bye())
        self.die(ShutdownError("the client was closed"))
        self.reader.arm()
        if conn is not None and self.reconnect and self.objects.viewed() and self.reader.leave():
            self.conn = None
            linger(self, conn)
            return
        if conn is not None:
            conn.fail(ShutdownError("the client was closed"))  # whoever reads it wakes up
        self.reader.close(conn)
        self.conn = None
        if self.objects.viewed():
            if self.reconnect:
                linger(self, None)
        else:
            self.give_up_memory()

    def _say(self, conn: Conn, last: object) -> None:
        try:
            with conn.writing:
                conn.write([codec.message(last)])
        except MobulaError:
            pass  # it is over already

    def lasting_memory(self) -> bool:
        """Whether a node that starts later may use the memory that arrays of this process lie in."""
        return any(s.lasting() for s in self.segments)

    def give_up_memory(self) -> None:
        """Gives up all but the mappings that arrays may lie in."""
        for s in self.segments:
            try:
                s.close()
            except BufferError:
                pass  # somebody writes into it at this moment
