"""Which thread reads the connection, and how one waits (decision 0008).

A thread that waits for an answer reads the connection itself, if nobody does; otherwise it sleeps until its answer came or the
role of the reader is free. The keeper, a thread of the client, reads while nobody waits, and sends what was queued and not
flushed. So a call that is answered at once wakes no other thread.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import deque
from typing import Callable, Optional, Protocol

from .._shield import shield
from .._wire.conn import Conn
from ..exceptions import MobulaError
from .context import TaskContext
from .interfaces import Sends, Worker
from .spin import Spin
from .waiter import Waiter

log = logging.getLogger("mobula")

TICK = 0.002  # how long a message that nobody flushes waits, and a free reader's role
_CALM = 50  # ticks without work, after which the keeper sleeps until it is woken
_PULSE = 1.0  # the longest sleep of a keeper that has a tick
_LOOK = 5.0  # the longest sleep: a signal's handler has to run, and a cancelled task has to be seen


class Conversation(Sends, Protocol):
    """What is said on the connection, and to whom: the client."""

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
        self._role = threading.Lock()  # who has it reads
        self._answers = Spin()
        self._uses = 0
        self._sleepers: deque[Waiter] = deque()
        self.later: list[Callable[[], None]] = []  # to call when the client's lock is free
        self._calls = threading.local()  # on: this thread is in call_later
        self.quiet = False  # the keeper sleeps until it is woken
        self._armed = False
        self._keeper_reads = False
        self._ended = threading.Event()
        self._keeper = threading.Thread(target=self._keep, name="mobula-keeper", daemon=True)

    def start(self) -> None:
        self._keeper.start()

    def keeps(self, t: threading.Thread) -> bool:
        return t is self._keeper

    # ---- waiting

    def wait(self, w: Waiter, until: Optional[float], tc: Optional[TaskContext], work: Optional[Spin] = None) -> bool:
        """Waits until w has its answers; false if the time ran out. until is by time.monotonic. Who waits for work and not for an
        answer says what such waits were like."""
        c, role = self._client, self._role
        waits = self._answers if work is None else work
        mine = shield.up()
        begun = time.monotonic()
        spin = waits.until(begun)
        try:
            while w.left > 0:
                if shield.late:
                    shield.rouse()
                if c.dead is not None:
                    raise c.over()
                if tc is not None:
                    tc.check()
                left = None if until is None else until - time.monotonic()
                if left is not None and left <= 0:
                    return False
                nap = _LOOK if left is None else min(left, _LOOK)
                conn = c.conn
                if conn is not None and role.acquire(False):
                    self._uses += 1
                    try:
                        if not self.later:  # which is called first
                            if c.out:
                                c.flush()
                            conn.pump(nap, c.handle, False, spin)
                    except MobulaError as x:
                        c.broken(conn, x)
                    finally:
                        self._uses += 1
                        role.release()
                    if self.later:
                        self.call_later()
                    continue
                self._sleep(w, nap)
            return True
        finally:
            waits.ended(time.monotonic() - begun)
            if self.quiet:
                self.arm()  # nobody reads from now on, unless the keeper does
            if self._sleepers and not role.locked():
                self._hand_over()
            if mine:
                shield.down()

    @shield.sleeps
    def _sleep(self, w: Waiter, nap: float) -> None:
        """Sleeps, for at most nap seconds, while somebody else reads."""
        lock = w.lock()
        w.asleep = True
        self._sleepers.append(w)
        if self._keeper_reads:
            self._wake_keeper()
        elif not self._role.locked() and self._client.conn is not None:  # freed meanwhile: nobody would wake us
            w.wake()
        if w.left <= 0:
            w.wake()
        if shield.late:
            shield.rouse()
        try:
            lock.acquire(timeout=nap)
        finally:
            w.asleep = False
            try:
                self._sleepers.remove(w)  # while one thread reads for long, nobody takes the others out
            except ValueError:
                pass
        lock.acquire(False)  # a token that nobody needs

    def _hand_over(self) -> None:
        """Lets another thread that waits read, if there is one."""
        while self._sleepers:
            try:
                w = self._sleepers.popleft()
            except IndexError:
                return
            if w.asleep:
                w.wake()
                return

    def wake(self) -> None:
        """Makes all who sleep look again."""
        for w in list(self._sleepers):
            w.wake()

    # ---- what handling a message leaves to do without locks

    def offer(self) -> None:
        """Calls what was left for later: whoever reads may wait long for the next message. Within such a call it is left to the caller."""
        if not self._calling() and self.later:
            mine = shield.up()
            try:
                self.call_later()
            finally:
                if mine:
                    shield.down()
        self.arm()

    def _calling(self) -> bool:
        return getattr(self._calls, "on", False)

    def call_later(self) -> None:
        """Calls what was left for later. The client's lock is free."""
        before, self._calls.on = self._calling(), True
        try:
            while self.later:
                try:
                    f = self.later.pop(0)
                except IndexError:
                    return
                try:
                    f()
                except Exception:
                    log.exception("a callback failed")
        finally:
            self._calls.on = before

    # ---- the keeper

    def arm(self) -> None:
        """Wakes the keeper, which has gone to sleep for want of work."""
        self._armed = True
        self.quiet = False
        self._wake_keeper()

    def _wake_keeper(self) -> None:
        conn = self._client.conn or self._client.lingering
        try:
            if conn is not None and conn.wake >= 0:
                os.eventfd_write(conn.wake, 1)
        except OSError:
            pass  # it is being closed

    def _keep(self) -> None:
        c = self._client
        calm, last, mine, handed = 0, -1, False, False
        while not c.closing:
            conn = c.conn
            if conn is None:
                if mine:
                    mine = self._keeper_reads = False
                    self._role.release()
                c.rejoin()
                continue
            timeout: Optional[float] = TICK
            if calm >= _CALM:
                self.quiet = True
                timeout = None if c.worker is None else _PULSE
                # Who stops reading after this wakes us; who stopped before has left the role to us.
                if c.unsent() or self._sleepers or not (mine or self._role.locked()):
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
                self._role.release()
                self._hand_over()
                last = -1  # who was woken shall find it free
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
                if uses == last and self._role.acquire(False):
                    self._keeper_reads = mine = True
                last = uses
        if mine:
            self._keeper_reads = False
            self._role.release()
        self._ended.set()

    # ---- the end

    def leave(self, patience: float = 2.0) -> bool:
        """Waits for the keeper's end and for whoever reads; whether nobody does any more, from now on."""
        if self._keeper.is_alive() and threading.current_thread() is not self._keeper:
            self._ended.wait(patience)
        return self._role.acquire(timeout=patience)

    def close(self, conn: Optional[Conn]) -> None:
        """Closes the connection once nobody reads it."""
        if self.leave() and conn is not None:
            conn.close()
