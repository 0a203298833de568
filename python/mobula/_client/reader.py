"""Which thread reads the connection, and how threads wait (decision 0008).

A thread that waits for an answer reads the connection itself, unless another thread does. Then it sleeps until its answer has come
or the other thread stops reading. The keeper, a background thread of the client, reads while no thread waits, and sends messages that
nobody has flushed. So no other thread has to wake up for a call that is answered at once.

A thread that reads may have to wait for something else: code that the garbage collector or a signal has it run in the midst of a message. It
then reads on, inside that message. It gives up the locks that it holds until the wait is over, since another thread may need them.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from typing import Any, Callable, Optional, Protocol

from .._interrupts import interrupts
from .._wire.conn import Conn
from ..exceptions import DisconnectedError, MobulaError
from .context import TaskContext
from .interfaces import Sends, Worker
from .spin import Spin
from .waiter import Waiter

log = logging.getLogger("mobula")

TICK = 0.002  # seconds until the keeper flushes queued messages, and until it reads if no thread does
_CALM = 50  # ticks without work, after which the keeper sleeps until it is woken
_PULSE = 1.0  # the keeper's longest sleep in a worker, in seconds
_CLOSED = -1  # in place of a thread's number: nobody reads any more
_SOON = 0.0005  # seconds between two looks whether other threads have stopped reading
_LOOK = 5.0  # a waiting thread's longest sleep: then it lets signal handlers run, and looks whether its task was cancelled


class Conversation(Sends, Protocol):
    """What the reader needs of the client."""

    conn: Optional[Conn]
    lingering: Optional[Conn]
    closing: bool
    worker: Optional[Worker]

    def unsent(self) -> bool: ...

    def handle(self, kind: int, b: bytes, i: int, j: int, fd: Optional[int]) -> None: ...

    def broken(self, conn: Conn, why: MobulaError) -> None: ...

    def over(self) -> BaseException: ...

    def rejoin(self) -> None: ...


class Reader:
    def __init__(self, client: Conversation) -> None:
        self._client = client
        self._reading = 0  # number of the thread that reads
        self._answers = Spin()
        self._uses = 0
        self._sleepers: deque[Waiter] = deque()
        self.later: list[Callable[[], None]] = []  # functions to call once the client's lock is free
        self._calls = threading.local()  # .on: this thread is in call_later
        self.quiet = False  # the keeper sleeps until it is woken
        self._armed = False
        self._keeper_reads = False
        self._ended = False
        self._keeper = threading.Thread(target=self._keep, name="mobula-keeper", daemon=True)

    def start(self) -> None:
        self._keeper.start()

    def keeps(self, t: threading.Thread) -> bool:
        return t is self._keeper

    # ---- waiting

    def wait(self, w: Waiter, until: Optional[float], tc: Optional[TaskContext], work: Optional[Spin] = None, deferred: bool = False) -> bool:
        """Waits until w has its answers. False if the time runs out. until is by time.monotonic. A worker that waits for work passes its
        own Spin: such waits are counted apart from those for answers. deferred: the caller defers signal handlers."""
        waits = self._answers if work is None else work
        mine = not deferred and interrupts.defer()
        try:
            begun = time.monotonic()
            spin = waits.until(begun)
            given = self._give_up()
            try:
                return self._wait(w, until, tc, spin)
            finally:
                for take_back, state in given:
                    take_back(state)
                waits.ended(time.monotonic() - begun)
                if self.quiet:
                    self.arm()  # this thread stops reading: the keeper has to
                if self._sleepers and not self._reading:
                    self._hand_over()
        finally:
            if mine:
                interrupts.deliver()

    def _give_up(self) -> list[tuple[Callable[[Any], None], Any]]:
        """Releases the locks that this thread holds. Returns how they are taken back. Only code that runs in the midst of this package's
        holds any."""
        mine: Any = self._client.lock
        conn, given = self._client.conn, []
        theirs: Any = mine if conn is None else conn.writing
        if mine._is_owned() or theirs._is_owned():
            for lock in (mine, theirs):
                if lock._is_owned():
                    given.append((lock._acquire_restore, lock._release_save()))
        return given

    def _wait(self, w: Waiter, until: Optional[float], tc: Optional[TaskContext], spin: float) -> bool:
        nested = self._reading == threading.get_ident()
        try:
            return self._read_until(w, until, tc, spin, nested)
        finally:
            conn = self._client.conn
            if nested and conn is not None:
                conn.nested_over()

    def _read_until(self, w: Waiter, until: Optional[float], tc: Optional[TaskContext], spin: float, nested: bool) -> bool:
        c, me = self._client, threading.get_ident()
        while w.left > 0:
            if interrupts.pending:
                interrupts.run_pending()
                continue  # they may have read what this thread waits for
            if c.dead is not None:
                raise c.over()
            if tc is not None:
                tc.check()
            left = None if until is None else until - time.monotonic()
            if left is not None and left <= 0:
                return False
            nap = _LOOK if left is None else min(left, _LOOK)
            conn = c.conn
            if conn is not None and (nested or not self._reading):
                if nested:
                    if conn.receiving:
                        raise DisconnectedError("code that the garbage collector runs cannot wait here: its thread has just received a message")
                else:
                    self._reading = me  # whole, with the look at it
                try:
                    self._uses += 1
                    if not self.later:  # otherwise call these first
                        if c.out or conn.frame is not None:
                            c.flush(True)
                        conn.pump(nap, c.handle, False, spin, nested)
                except BaseException as x:
                    if conn.failed is None or not isinstance(x, MobulaError):  # from elsewhere: others look by themselves whether their answers have come
                        self.wake()
                        raise
                    c.broken(conn, x)
                finally:
                    self._uses += 1
                    if not nested:
                        self._reading = 0
                if self.later:
                    self.call_later()
            elif conn is None and me == self._keeper.ident:
                raise DisconnectedError("code that the garbage collector runs cannot wait here: its thread reconnects to the node")
            else:
                self._sleep(w, nap)
        return True

    @interrupts.allowed
    def _sleep(self, w: Waiter, nap: float) -> None:
        """Sleeps for at most nap seconds while another thread reads."""
        lock = w.lock()
        try:
            w.asleep = True
            self._sleepers.append(w)
            if self._keeper_reads:
                self._wake_keeper()
            elif not self._reading and self._client.conn is not None:  # the other thread has just stopped reading, and would not wake us
                w.wake()
            if w.left <= 0:
                w.wake()
            if interrupts.pending:
                interrupts.run_pending()
            lock.acquire(timeout=nap)
        finally:
            w.asleep = False
            try:
                self._sleepers.remove(w)  # _hand_over has not removed it
            except ValueError:
                pass
        lock.acquire(False)  # takes a wake-up that came too late

    def _hand_over(self) -> None:
        """Wakes a waiting thread, if there is one, so that it reads."""
        while self._sleepers:
            try:
                w = self._sleepers.popleft()
            except IndexError:
                return
            if w.asleep:
                w.wake()
                return

    def wake(self) -> None:
        """Wakes all waiting threads, which then check why."""
        for w in self._sleepers.copy():
            w.wake()

    # ---- functions that message handlers leave to be called without locks

    def offer(self) -> None:
        """Calls the functions in later now: the reading thread may not, before its next message. Inside call_later it leaves them
        to that."""
        if not self._calling() and self.later:
            mine = interrupts.defer()
            try:
                self.call_later()
            finally:
                if mine:
                    interrupts.deliver()
        self.arm()

    def _calling(self) -> bool:
        return getattr(self._calls, "on", False)

    def call_later(self) -> None:
        """Calls the functions in later. The client's lock must be free."""
        before, self._calls.on = self._calling(), True
        try:
            while self.later:
                f = self.later[0]
                del self.later[0]  # whole, with the look at it
                try:
                    f()
                except Exception:
                    log.exception("a callback failed")
                except BaseException:  # it may not have run: those that are called twice do nothing the second time
                    self.later.insert(0, f)
                    raise
        finally:
            self._calls.on = before

    # ---- the keeper

    def arm(self) -> None:
        """Wakes the keeper, which sleeps when there is no work."""
        self._armed = True
        self.quiet = False
        self._wake_keeper()

    def _wake_keeper(self) -> None:
        conn = self._client.conn or self._client.lingering
        if conn is not None:
            conn.rouse()

    def _keep(self) -> None:
        c, me = self._client, threading.get_ident()
        calm, last, mine, handed = 0, -1, False, False
        while not c.closing:
            conn = c.conn
            if conn is None:
                if mine:
                    mine = self._keeper_reads = False
                    self._reading = 0
                c.rejoin()
                continue
            timeout: Optional[float] = TICK
            if calm >= _CALM:
                self.quiet = True
                timeout = None if c.worker is None else _PULSE
                # A thread that stops reading from now on wakes us. Check here for one that stopped before quiet was set.
                if c.unsent() or self._sleepers or not (mine or self._reading):
                    self.quiet, timeout = False, TICK
            try:
                if mine:
                    conn.pump(timeout, c.handle, True)
                    self.call_later()
                else:
                    conn.nap(timeout)
            except MobulaError as x:
                c.broken(conn, x)
                continue
            except Exception:
                log.exception("a message from the node could not be handled")
            self.quiet = False
            if self._armed:
                self._armed, calm = False, 0
            if mine and self._sleepers:
                mine = self._keeper_reads = False
                self._reading = 0
                self._hand_over()
                last = -1  # leave the role to the woken thread
                handed = True
            if c.worker is not None:
                c.worker.tick()
            if c.unsent():
                c.flush()
                calm = 0
            else:
                calm += 1
            if handed:
                handed = False
            elif not mine:
                uses = self._uses
                if uses == last and not self._reading:
                    self._reading = me
                    self._keeper_reads = mine = True
                last = uses
        if mine:
            self._keeper_reads = False
            self._reading = 0
        self._ended = True

    # ---- the end

    def leave(self, patience: float = 2.0) -> bool:
        """Waits until the keeper has ended and no other thread reads. False if patience seconds did not suffice."""
        me, until = threading.get_ident(), time.monotonic() + patience
        while True:
            late = time.monotonic() >= until
            if not self._reading and (self._ended or late or me == self._keeper.ident or not self._keeper.is_alive()):
                self._reading = _CLOSED
                return True
            if late or self._reading == me:
                return False
            time.sleep(_SOON)

    def close(self, conn: Optional[Conn]) -> None:
        """Closes the connection once no thread reads it."""
        if self.leave() and conn is not None:
            conn.close()
