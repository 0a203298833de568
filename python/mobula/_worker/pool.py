"""Runs an actor's calls in threads."""

from __future__ import annotations

import threading
from collections import deque
from queue import SimpleQueue
from typing import Optional

from .._wire.hot import Work
from ..exceptions import RuntimeSetupError
from .call import Call
from .interfaces import Runs


class Pool:
    """The threads of one concurrency group, started on demand. A call goes to an idle thread. If there is none it is queued, and the first
    thread that is done takes it, so that no thread wakes up in vain. The client's lock guards all of it."""

    def __init__(self, executor: Runs, size: int) -> None:
        self.queue: deque[Work] = deque()
        self._executor = executor
        self._lock = executor.client.lock
        self._size = size
        self._threads = 0
        self._waiting: list[SimpleQueue[Optional[Call]]] = []  # one queue per idle thread, for its next call; None ends it
        self._closed = False

    def put(self, work: Work) -> None:
        """Runs a call as soon as a thread is free. The client's lock is held."""
        if self._waiting:
            self._waiting.pop().put(self._executor.begun(work))
            return
        self.queue.append(work)
        if self._threads < self._size:
            self._start(work)

    def _start(self, work: Work) -> None:
        """Starts a thread. If that fails the call waits for an existing thread, or is refused if there is none."""
        try:
            threading.Thread(target=self._run, name="mobula-call", daemon=True).start()
            self._threads += 1
        except RuntimeError as x:
            if self._threads == 0:
                self.queue.remove(work)
                self._executor.refuse(work, RuntimeSetupError(f"no thread could be started for the actor's call: {x}"))

    def close(self) -> None:
        """Ends each thread after its running call."""
        with self._lock:
            self._closed = True
            while self._waiting:
                self._waiting.pop().put(None)

    def _run(self) -> None:
        own: SimpleQueue[Optional[Call]] = SimpleQueue()
        call = self._next(own)
        while call is not None:
            call.started = self._executor.client.now()
            self._executor.execute(call)
            call = self._next()
            if call is None:
                self._executor.client.flush()
                call = self._next(own)

    def _next(self, own: Optional[SimpleQueue[Optional[Call]]] = None) -> Optional[Call]:
        """The next call from the queue. With own, the thread's queue, it waits for one; None once the pool is closed."""
        with self._lock:
            if self.queue:
                return self._executor.begun(self.queue.popleft())
            if own is None or self._closed:
                return None
            self._waiting.append(own)
        return own.get()
