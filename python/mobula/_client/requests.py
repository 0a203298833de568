"""Requests that are on no task's path, in turn."""

from __future__ import annotations

from collections import deque
from typing import Any, Callable, Iterator

from .._wire.messages import REQUESTS_AT_ONCE
from .interfaces import Sends
from .pending import Pending
from .waiter import Waiter


class Turn(Waiter):
    """A place in the queue. It is done when it is its turn."""

    __slots__ = ("req",)

    def __init__(self) -> None:
        super().__init__(1)
        self.req = 0  # the request's number, once it is sent


class Requests(Pending):
    """Pending requests, of which only REQUESTS_AT_ONCE are at the node. A request keeps its turn until it is answered, even if its caller
    has given up. A restarted node is not sent requests that nobody waits for, and their turns are free again."""

    def __init__(self, client: Sends, numbers: Iterator[int]) -> None:
        super().__init__(client, numbers)
        self._free = REQUESTS_AT_ONCE
        self._line: deque[Turn] = deque()
        self._having: set[int] = set()  # numbers of the requests that have a turn

    def line_up(self, t: Turn) -> None:
        """Gives t a turn, or queues it."""
        with self._client.lock:
            if self._free > 0:
                self._free -= 1
                t.left = 0
            else:
                self._line.append(t)

    def ask_in_turn(self, t: Turn, question: Callable[[int], bytes]) -> Waiter:
        """Queues the request of t, whose turn it is."""
        with self._client.lock:
            t.req, w = self.ask(question)
            self._having.add(t.req)
        return w

    def leave(self, t: Turn) -> None:
        """Ends the wait of t, for its turn or for its answer."""
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
        """The unanswered requests, for a restarted node. Frees the turns of those that nobody waits for."""
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
