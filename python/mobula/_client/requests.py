"""What is asked of the node's cold service, in turn."""

from __future__ import annotations

from collections import deque
from typing import Any, Callable, Iterator

from .._wire.messages import REQUESTS_AT_ONCE
from .interfaces import Sends
from .pending import Pending
from .waiter import Waiter


class Turn(Waiter):
    """One who asks: done when it is its turn."""

    __slots__ = ("req",)

    def __init__(self) -> None:
        super().__init__(1)
        self.req = 0  # the question's number, once it is asked


class Requests(Pending):
    """Pending questions, of which a bounded number is at the node. A question has its turn until it is answered, whoever still waits for it,
    or until another node comes, which is not asked what nobody waits for."""

    def __init__(self, client: Sends, numbers: Iterator[int]) -> None:
        super().__init__(client, numbers)
        self._free = REQUESTS_AT_ONCE
        self._line: deque[Turn] = deque()
        self._having: set[int] = set()  # the questions that have a turn

    def line_up(self, t: Turn) -> None:
        """Makes t wait for its turn."""
        with self._client.lock:
            if self._free > 0:
                self._free -= 1
                t.left = 0
            else:
                self._line.append(t)

    def ask_in_turn(self, t: Turn, question: Callable[[int], bytes]) -> Waiter:
        """Queues the question of one whose turn it is."""
        with self._client.lock:
            t.req, w = self.ask(question)
            self._having.add(t.req)
        return w

    def leave(self, t: Turn) -> None:
        """It waits no longer, for its turn or for its answer."""
        with self._client.lock:
            if t.req:
                self.withdraw(t.req)
            elif t.left <= 0:
                self._next()
            elif t in self._line:
                self._line.remove(t)

    def answer(self, req: int, answer: Any) -> None:
        super().answer(req, answer)
        if req in self._having:
            self._having.remove(req)
            self._next()

    def again(self) -> list[bytes]:
        """Likewise. The turns of those who wait no longer are free."""
        for req in [req for req in self._having if req not in self._asked]:
            self._having.remove(req)
            self._next()
        return super().again()

    def abandon(self) -> None:
        super().abandon()
        for t in list(self._line):
            t.wake()

    def _next(self) -> None:
        if self._line:
            self._line.popleft().done()
        else:
            self._free += 1
