"""The client: one connection to a node, from its welcome to its end. The other modules of the package are its parts."""

from __future__ import annotations

import gc
import logging
import os
import threading
import time
from functools import partial
from itertools import count
from typing import Any, Optional
from weakref import WeakValueDictionary

from .. import _sampling
from .._interrupts import interrupts
from .._segment import open_segment
from .._wire import codec
from .._wire import messages as m
from .._wire.conn import Conn, dial, framed
from .._wire.hot import Answer
from ..exceptions import DisconnectedError, GetTimeoutError, MobulaError, NoNodeError, OwnerDiedError, ProtocolError, ShutdownError, VersionError
from .announcing import Announcer
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
from .spin import Spin
from .streams import Streams
from .uncounted import Look
from .waiter import Waiter
from .watching import Watches

log = logging.getLogger("mobula")

FLUSH_EVERY = 0.001
REQUEST_TIMEOUT = 30.0
_SOON = 0.001  # seconds that a task may wait before its CPU is given back
_FEW = 16  # dropped references that a get leaves for the next one
_CLOSED = "the client was closed"
_COLLECT_EVERY = 1.0  # least seconds between two collections, whose cost grows with the heap

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
        self.segments = [self.segment] if self.segment is not None else []  # also those from before the node restarted: arrays may view them
        self.lingering: Optional[Conn] = None  # the connection, kept after close() while arrays view the store
        self.ahead = ahead(welcome)
        self.pid = os.getpid()
        hello.job, hello.client, hello.token = welcome.job, welcome.client, (welcome.token or hello.token)
        self.root = TaskContext(self, welcome.root)
        # The context of code in a thread that has none. In a worker it is the main thread's task, which may have started the thread.
        self.fallback = self.root
        self.dead: Optional[MobulaError] = None
        self.closing = False
        self.exiting = False  # the interpreter is shutting down
        self._collected = 0.0
        self._early = early
        self.worker: Optional[Worker] = None  # a worker sets it before start

        self.lock = threading.RLock()
        self.reader = Reader(self)
        self.credit = Credit(self)
        self.outbox = Outbox(reconnect, self.credit)
        self.objects = Objects(self)
        self.streams = Streams(self, self.objects)
        self.watches = Watches(self)
        self.pending_calls: WeakValueDictionary[bytes, Any] = WeakValueDictionary()  # by actor with max_pending_calls
        numbers = count(1)
        self.spans = Spans(self)
        self.creates, self.requests = Pending(self, numbers), Requests(self, numbers)
        self.getter = Getter(self, self.objects, welcome.segment_size)
        self.announcer = Announcer(self, self.objects, self.getter)
        self.putter = Putter(self, self.objects, self.credit, self.creates)
        # Direct references to the parts' queues, for speed.
        self.out, self.dropped, self.unpins = self.outbox.queue, self.objects.dropped, self.objects.unpins

    def now(self) -> int:
        """The time by the node's clock in nanoseconds. Deadlines and the times of attempts use this clock."""
        return time.monotonic_ns() + self.ahead

    def start(self) -> None:
        """Handles the messages that came with the welcome, and starts the reader."""
        for kind, body in self._early:
            self.handle(kind, body, 0, len(body), None)
        self._early = []
        self.reader.start()

    # ---- sending

    def send(self, chunk: bytes) -> None:
        """Queues a message. It is sent within a tick (2 ms), or by the next flush."""
        self.out.append(chunk)
        if self.reader.quiet:
            self.reader.arm()

    def unsent(self) -> bool:
        """Whether a flush has anything to send."""
        conn = self.conn
        return bool(self.out or self.dropped or self.unpins or self.objects.gone or (conn is not None and conn.frame is not None))

    def flush(self, deferred: bool = False, few: int = 0) -> None:
        """Sends all queued messages. Code that runs in the midst of a change leaves that to the keeper: another thread may write, and wait for
        the lock. deferred: the caller defers signal handlers. few: up to so many references that were dropped can wait, since one message says
        the same of many; the keeper sends it within a tick."""
        if not self.unsent():
            return
        if self.lock._is_owned():  # type: ignore[attr-defined]  # as threading.Condition asks it
            self.reader.arm()
            return
        mine = not deferred and interrupts.defer()
        try:
            if len(self.dropped) > few or self.unpins or self.objects.gone:
                self.objects.release()
            conn = self.conn
            if conn is not None and (self.out or conn.frame is not None):
                self._write(conn)
        finally:
            if mine:
                interrupts.deliver()

    def _write(self, conn: Conn) -> None:
        try:
            with conn.writing:
                if self.conn is conn:
                    self.outbox.write(conn)
        except BaseException as x:
            if conn.failed is None or not isinstance(x, MobulaError):  # from elsewhere: the keeper writes the rest
                self.reader.arm()
                raise
            self.broken(conn, x)

    def maybe_flush(self) -> None:
        """Flushes if the last flush was a millisecond ago, so that the tasks of a program that submits in a loop start meanwhile."""
        if self.reader.quiet:
            self.reader.arm()
        if time.monotonic() - self.outbox.written > FLUSH_EVERY:
            self.flush()

    def cancel(self, task: bytes, force: bool, recursive: bool) -> None:
        """Cancels a task. It always asks for a kill in the end: a task that holds the GIL cannot notice an interrupt."""
        self.check()
        self.send(codec.message(m.Cancel(task, force, recursive, True)))
        self.flush()

    def kill(self, actor: bytes, restart: bool) -> None:
        self.check()
        self.send(codec.message(m.KillActor(actor, restart)))
        self.flush()

    def request(self, method: str, body: bytes, timeout: Optional[float] = None) -> bytes:
        """Sends a request that is on no task's path, when it is its turn, and returns the answer. GetTimeoutError after timeout seconds.
        Without a timeout the node has REQUEST_TIMEOUT to answer; if the connection is broken, the wait begins when the node is back."""
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
        """Waits for an answer until the given time, or for REQUEST_TIMEOUT on one connection."""
        conn = self.conn
        while not self.wait(w, time.monotonic() + REQUEST_TIMEOUT if until is None else until):
            if until is not None or self.conn is conn is not None:
                raise GetTimeoutError(f"{method}: the node did not answer in {REQUEST_TIMEOUT if timeout is None else timeout} s")
            conn = self.conn

    def drop_orders(self, tc: TaskContext) -> None:
        """Drops the counters of a task's calls that its owner needs no more, once the node has said which."""
        Look(self, tc).ask()

    # ---- waiting

    def wait(self, w: Waiter, until: Optional[float], tc: Optional[TaskContext] = None, work: Optional[Spin] = None) -> bool:
        """Waits on behalf of a task until w has its answers; the task's CPU is given back meanwhile. False if the time runs out. until is
        by time.monotonic. work: see Reader.wait."""
        if tc is None or not tc.waits:
            mine = interrupts.defer()
            try:
                self.flush(True, _FEW if w.fetch else 0)
                return w.left <= 0 or self.reader.wait(w, until, tc, work, deferred=True)
            finally:
                if mine:
                    interrupts.deliver()
        self.flush()
        if w.left <= 0:
            return True
        # Most often the object is ready and only has to be fetched, so wait a moment before giving the CPU back. But if this task has
        # called other tasks, it gives it back at once: they may need it.
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
        assert reading.pin is not None
        return self.segment.view(reading.pin.extent, res.size, reading)

    # ---- messages from the node

    def handle(self, kind: int, b: bytes, i: int, j: int, fd: Optional[int]) -> None:
        """Handles a message in the thread that reads."""
        worker = self.worker
        if kind == _EXEC and worker is not None:
            worker.tasks(b, i, j)
            return
        with self.lock:
            if kind == _RESOLVED:
                self.objects.resolved(b, i, j)
                return
            handler = worker.handlers.get(kind) if worker is not None else None
            if handler is not None:
                handler(b, i, j)
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
            if self.segment is not None:
                self.segment.add(a.file, fd, a.size)
        except (OSError, MobulaError) as x:
            said = f"{x!r}"
            self.reader.later.append(lambda: log.error("cannot map a file of the object store: %r: %s", a.path, said))  # its handlers may wait

    def _collect(self) -> None:
        now = time.monotonic()
        if now - self._collected >= _COLLECT_EVERY:
            self._collected = now
            gc.collect()
            self.flush()

    def _resync(self, s: m.Resync) -> None:
        """A component of the node has restarted and asks what this process holds."""
        if s.component == m.OWNER:
            self.credit.lose()
        if self.conn is not None:
            self.reader.later.append(partial(self._answer, [s], self.conn))

    def _answer(self, asked: list[m.Resync], conn: Conn) -> None:
        if not asked:
            return
        component, epoch = asked[0].component, asked[0].epoch
        with conn.writing, self.lock:
            if self.conn is conn:  # else rejoin declares all
                self.outbox.declare(asked, lambda: self.declare(component, epoch), component == m.OWNER)
        if self.reader.quiet:
            self.reader.arm()

    # ---- when the node restarts

    def declare(self, component: int, epoch: int) -> list[bytes]:
        """The messages for a restarted component: what this process holds, and the requests to repeat."""
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
        """Called by the keeper when there is no connection."""
        if self.dead is not None or self.closing:
            self.closing = True
            return
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
        """Continues with a node that was found again."""
        conn, welcome = reached.conn, reached.welcome
        try:
            segment = open_segment(reached.segment, welcome.segment_size)
        except BaseException:
            conn.close()
            raise
        try:
            with conn.writing:  # the node has to get these messages first
                with self.lock:
                    if segment is not None:
                        self.segment = segment
                        self.segments = [*(self.segments if self.objects.viewed() else ()), segment]
                    self.ahead = ahead(welcome)
                    chunks = self.outbox.renew(lambda: [*self.declare(m.OWNER, 0), *self.declare(m.STORE, 0)], self.requests.again)
                    conn.frame = framed(chunks)
                    self.conn = conn
                conn.push()
        except MobulaError as x:
            self.broken(conn, x)
            return
        for kind, body in reached.early:
            self.handle(kind, body, 0, len(body), None)
        self.reader.wake()
        self.reader.offer()

    # ---- the end

    def broken(self, conn: Conn, why: MobulaError) -> None:
        """Ends a broken connection. Without reconnect the client is dead."""
        why = why.again()
        conn.fail(why)
        with self.lock:
            if self.conn is not conn:
                return
            self.conn = None
        final = not isinstance(why, (DisconnectedError, NoNodeError, ShutdownError, ProtocolError))
        if not self.reconnect or self.closing or final or isinstance(why, VersionError):
            self.die(why if final else OwnerDiedError(f"the connection to the node is gone: {why}", causes=(why,)))
        conn.rouse()  # the keeper may sleep on the old connection

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
        """The exception for a call on a connection that is dead, or is being closed. While the interpreter shuts down a daemon thread gets
        SystemExit, so that it ends without a traceback."""
        t = threading.current_thread()
        if self.exiting and t.daemon and not self.reader.keeps(t):
            return SystemExit()
        return self.dead.again() if self.dead is not None else ShutdownError(_CLOSED)

    def forked(self) -> None:
        """In a forked child: the connection and the references stay with the parent."""
        self.closing = True
        self.conn = None
        self.dead = ShutdownError(f"this process was forked from process {self.pid}, whose connection and references are not its own: "
                                  "call mobula.init() here, and give it values")
        self.objects.pins.clear()

    def close(self) -> None:
        """Disconnects from the node. Waiting calls fail. Arrays that view the object store stay valid."""
        if self.closing and self.dead is not None:
            return
        if self.dead is None:
            self.flush()
        conn = self.conn
        self.closing = True
        if conn is not None and self.reconnect:
            for s in self.segments:
                s.give_back()
            self._say(conn, m.Bye())
        self.die(ShutdownError(_CLOSED))
        self.reader.arm()
        if conn is not None and self.reconnect and self.objects.viewed() and self.reader.leave():
            self.conn = None
            linger(self, conn)
            return
        if conn is not None:
            conn.fail(ShutdownError(_CLOSED))  # wakes the thread that reads
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
            pass  # the connection is broken already

    def lasting_memory(self) -> bool:
        """Whether a node that starts later may reuse memory that arrays of this process view."""
        return any(s.lasting() for s in self.segments)

    def give_up_memory(self) -> None:
        """Closes the segments, except for the mappings that arrays may view."""
        for s in self.segments:
            try:
                s.close()
            except BufferError:
                pass  # another thread is writing into it
