"""Credit: the bytes of submits and puts that this process may have under way. The node grants it."""

from __future__ import annotations

from typing import Optional

from .context import TaskContext
from .interfaces import Waits
from .waiter import Waiter


class Credit:
    def __init__(self, client: Waits) -> None:
        self._client = client
        self.left: Optional[int] = None  # bytes; None: no limit
        self._window = 0
        self._waiters: list[Waiter] = []

    def admit(self, cost: int, tc: Optional[TaskContext] = None) -> None:
        """Waits for credit, and takes cost bytes of it. It takes no lock: if two threads race, the limit is off by one message."""
        left = self.left
        if left is None:
            return
        while left is not None and left <= 0:
            w = Waiter(1)
            with self._client.lock:
                waiters = self._waiters
                more = [*waiters, w]
                if self.left is None or self.left > 0:
                    break
                if self._waiters is not waiters:
                    continue
                else:  # whole, with the look at it
                    self._waiters = more
            self._client.wait(w, None, tc)
            left = self.left
        if self.left is not None:  # whole
            self.left -= cost

    def grant(self, n: int) -> None:
        if n > 0:
            self._window = max(self._window, n)
            if self.left is None:  # whole
                self.left = n
            elif self.left + n < self._window:
                self.left += n
            else:
                self.left = self._window
            self._admit_all()

    def unhandled(self) -> int:
        """How many bytes of the messages sent last the node may not have handled."""
        left = self.left
        return 0 if left is None else self._window - left

    def owe(self, size: int) -> None:
        """A restarted node is sent messages of so many bytes again. It grants a whole window first, and these bytes as it handles them."""
        if self.left is not None:
            self.left = -size

    def refill(self) -> None:
        """Restores the whole credit: a restarted owner does not remember what it still had to grant."""
        if self._window:
            self.left = self._window
            self._admit_all()

    def _admit_all(self) -> None:
        waiters, self._waiters = self._waiters, []
        for w in waiters:
            w.done()

    def abandon(self) -> None:
        """The client is dead: wakes all waiting threads."""
        for w in self._waiters:
            w.wake()
