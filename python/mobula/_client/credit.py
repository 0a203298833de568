"""How much this process may have under way, as the node says."""

from __future__ import annotations

from typing import Optional

from .context import TaskContext
from .interfaces import Waits
from .waiter import Waiter


class Credit:
    def __init__(self, client: Waits) -> None:
        self._client = client
        self.left: Optional[int] = None  # bytes; None: without bound
        self._window = 0
        self._waiters: list[Waiter] = []

    def admit(self, cost: int, tc: Optional[TaskContext] = None) -> None:
        """Waits until so many more bytes may be under way. A lost update between threads moves the bound by one message."""
        left = self.left
        if left is None:
            return
        while left is not None and left <= 0:
            w = Waiter(1)
            with self._client.lock:
                if self.left is None or self.left > 0:
                    break
                self._waiters.append(w)
            self._client.wait(w, None, tc)
            left = self.left
        if self.left is not None:
            self.left -= cost

    def grant(self, n: int) -> None:
        if n > 0:
            self._window = max(self._window, n)
            self.left = n if self.left is None else min(self.left + n, self._window)
            self._admit_all()

    def refill(self) -> None:
        """The node has begun anew, and counts nothing as under way."""
        if self._window:
            self.left = self._window
            self._admit_all()

    def _admit_all(self) -> None:
        if self._waiters:
            for w in self._waiters:
                w.done()
            self._waiters = []

    def abandon(self) -> None:
        """The client is dead: all who wait see it."""
        for w in self._waiters:
            w.wake()
