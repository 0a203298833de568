"""Credit: the bytes of submits and puts that this process may have under way. The node grants it.

An owner that has restarted does not remember what it still had to grant, and has handled nothing yet of what came since it was lost. It asks for the
holdings. When it has handled those, and with them all that was sent before, it says so by a grant of nothing.
"""

from __future__ import annotations

from typing import Optional

from .context import TaskContext
from .interfaces import Waits
from .waiter import Waiter


class Credit:
    def __init__(self, client: Waits) -> None:
        self._client = client
        self.left: Optional[int] = None  # bytes; None: no limit
        self.taken = 0  # bytes, in all
        self.handled = 0  # of these, the first that an owner has handled
        self._window = 0
        self._lost = False  # the owner; the next one has not settled
        self.asked: Optional[int] = None  # what was taken when the holdings were queued; None: nobody has asked for them
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
        if self.left is not None:
            self.take(cost)

    def take(self, cost: int) -> None:
        """Takes credit without a wait."""
        if self.left is not None:  # whole
            self.left -= cost
            self.taken += cost

    def grant(self, n: int) -> None:
        """Takes a grant; one of nothing says that the owner has handled the holdings."""
        window, asked = self._window, self.asked
        if n > 0:
            if asked is not None:
                return  # of an owner that is lost, or of what went before the holdings
            self._window = max(window, n)
            if self.left is None:  # whole; the first grant is of a window
                self.left = n
            else:
                if self.left + n < self._window:
                    self.left += n
                else:
                    self.left = self._window
                if self._lost:
                    pass
                elif self.handled + n < self.taken:
                    self.handled += n
                else:
                    self.handled = self.taken
        elif asked is not None:  # whole: what was taken after them is under way
            self.left = window - self.taken + asked
            self.handled = asked
            self._lost = False
            self.asked = None
        self._admit_all()

    def lose(self) -> None:
        """The owner was lost: the next one asks for the holdings. Outbox.declare queues them."""
        if self.left is not None:  # whole
            self._lost = True
            self.asked = self.taken

    def owe(self, size: int) -> None:
        """A restarted node is sent messages of so many bytes again. They are under way until its owner has settled."""
        if self.left is not None:  # whole
            self.left = -size
            self._lost = True
            self.asked = None

    def _admit_all(self) -> None:
        waiters, self._waiters = self._waiters, []
        for w in waiters:
            w.done()

    def abandon(self) -> None:
        """The client is dead: wakes all waiting threads."""
        for w in self._waiters:
            w.wake()
