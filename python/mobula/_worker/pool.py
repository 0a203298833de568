"""An actor's calls in threads."""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING

from .._wire.hot import Work

if TYPE_CHECKING:
    from .executor import Executor


class Pool:
    """The threads of one concurrency group, made as they are needed."""

    def __init__(self, executor: "Executor", size: int) -> None:
        self.queue: deque[Work] = deque()
        self._executor = executor
        self._size = size
        self._ready = threading.Semaphore(0)
        self._threads = 0
        self._idle = 0
        self._lock = threading.Lock()
        self._closed = False

    def put(self, work: Work) -> None:
        with self._lock:
            self.queue.append(work)
            if self._idle == 0 and self._threads < self._size:
                self._threads += 1
                threading.Thread(target=self._run, name="mobula-call", daemon=True).start()
            elif self._idle:
                self._idle -= 1
        self._ready.release()

    def close(self) -> None:
        """Lets the threads end when their calls have."""
        self._closed = True
        for _ in range(self._threads):
            self._ready.release()

    def _run(self) -> None:
        while True:
            self._ready.acquire()
            if self._closed:
                return
            with self._executor.client.lock:
                if not self.queue:
                    continue  # it was cancelled
                call = self._executor.begun(self.queue.popleft())
            self._executor.execute(call)
            if not self.queue:
                self._executor.client.flush()
            with self._lock:
                if not self.queue:
                    self._idle += 1
