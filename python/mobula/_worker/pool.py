"""An actor's calls in threads."""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, Optional

from .._wire.hot import Work
from ..exceptions import RuntimeSetupError

if TYPE_CHECKING:
    from .call import Call
    from .executor import Executor


class _Seat:
    """Where a thread waits for its next call."""

    __slots__ = ("call", "_given")

    def __init__(self) -> None:
        self.call: "Optional[Call]" = None
        self._given = threading.Lock()
        self._given.acquire()

    def give(self, call: "Optional[Call]") -> None:
        self.call = call
        self._given.release()

    def take(self) -> "Optional[Call]":
        self._given.acquire()
        call, self.call = self.call, None
        return call


class Pool:
    """The threads of one concurrency group, made as they are needed. A call goes to a thread that waits, else it queues, and the first
    thread that is done takes it: no thread is woken that would find nothing to do. The client's lock guards all of it."""

    def __init__(self, executor: "Executor", size: int) -> None:
        self.queue: deque[Work] = deque()
        self._executor = executor
        self._lock = executor.client.lock
        self._size = size
        self._threads = 0
        self._waiting: list[_Seat] = []
        self._closed = False

    def put(self, work: Work) -> None:
        """Runs a call as soon as there is a thread. The client's lock is held."""
        if self._waiting:
            self._waiting.pop().give(self._executor.begun(work))
            return
        self.queue.append(work)
        if self._threads < self._size:
            self._start(work)

    def _start(self, work: Work) -> None:
        """Starts a thread. Without one the call waits for those that there are, or is refused."""
        try:
            threading.Thread(target=self._run, name="mobula-call", daemon=True).start()
            self._threads += 1
        except RuntimeError as x:
            if self._threads == 0:
                self.queue.remove(work)
                self._executor.refuse(work, RuntimeSetupError(f"no thread could be started for the actor's call: {x}"))

    def close(self) -> None:
        """Lets the threads end when their calls have."""
        with self._lock:
            self._closed = True
            while self._waiting:
                self._waiting.pop().give(None)

    def _run(self) -> None:
        seat = _Seat()
        call = self._next(seat)
        while call is not None:
            call.started = self._executor.client.now()
            self._executor.execute(call)
            call = self._next()
            if call is None:
                self._executor.client.flush()
                call = self._next(seat)

    def _next(self, seat: Optional[_Seat] = None) -> "Optional[Call]":
        """The next call; with a seat it is waited for, until the pool is closed."""
        with self._lock:
            if self.queue:
                return self._executor.begun(self.queue.popleft())
            if seat is None or self._closed:
                return None
            self._waiting.append(seat)
        return seat.take()
