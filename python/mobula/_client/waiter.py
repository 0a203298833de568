"""Waiter: a waiting thread."""

from __future__ import annotations

import threading
from typing import Any, Optional

from .._wire.hot import Answer


class Waiter:
    """A thread that waits for a number of answers (left)."""

    __slots__ = ("left", "fetch", "strict", "brings", "asleep", "pins", "slot", "failed", "needs", "req", "_lock")

    def __init__(self, left: int, fetch: bool = False, strict: bool = False, brings: bool = False) -> None:
        self.left = left
        self.fetch = fetch  # it waits for the bytes of stored objects too
        self.strict = strict  # the first error ends the wait
        self.brings = brings  # it keeps no pins: it is enough that the bytes have come
        self.asleep = False
        self.pins: list[Any] = []  # shares of pins (Reading)
        self.slot: Any = None
        self.failed: Optional[Answer] = None  # the error that ended the wait
        self.needs: list[bytes] = []  # the objects that it waits for without a timeout; empty: unknown
        self.req = 0  # the number of its request (Pending)
        self._lock: Optional[threading.Lock] = None

    def lock(self) -> threading.Lock:
        """The lock that the thread sleeps on, and that wake releases. It is made on first use."""
        lock = self._lock
        if lock is None:
            lock = threading.Lock()
            lock.acquire()
            if self._lock is None:  # whole
                self._lock = lock
        return self._lock or lock

    def wake(self) -> None:
        if self.asleep:
            self.asleep = False
            try:
                self.lock().release()
            except RuntimeError:
                pass  # another thread has released it at the same moment

    def done(self, n: int = 1) -> None:
        self.left -= n
        if self.left <= 0:
            self.wake()

    def fail(self, why: Answer) -> None:
        """Ends the wait by an error, however many answers are missing."""
        if self.left > 0:  # whole
            self.failed = why
            self.left = 0
        self.wake()
