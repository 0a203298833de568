"""Requests that are on no task's path, in turn."""

from __future__ import annotations

from collections import deque
from typing import Any, Callable, Iterator

from .._wire.messages import REQUESTS_AT_ONCE
from .interfaces import Sends
from .pending import Pending
from .waiter import Waiter


class Turn(Waiter):
    """A place in the queue. It is done when it is its turn. req is the number of its request, once that is sent."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(1)


class Requests(Pending):
    """Pending requests, of which only REQUESTS_AT_ONCE are at the node. A request keeps its turn until it is answered, even if its caller
    has given up. A restarted node is not sent requests that nobody waits for, and their turns are free again."""

    def __init__(self, client: Sends, numbers: Iterator[int]) -> None:
        super().__init__(client, numbers)
        self._free = REQUESTS_AT_ONCE
        self._line: deque[Turn] = deque()
        self._having: dict[int, None] = {}  # numbers of the requests that have a turn

    def line_up(self, t: Turn) -> None:
        """Gives t a turn, or queues it."""
        line, one = self._line, iter((t,))
        with self._client.lock:
            if self._free > 0:  # whole
                self._free -= 1
                t.left = 0
            else:
                line += one

    def ask_in_turn(self, t: Turn, question: Callable[[int], bytes]) -> Waiter:
        """Queues the request of t, whose turn it is."""
        req, asked, out, having, w = next(self._numbers), self._asked, self._client.out, self._having, Waiter(1)
        chunk = question(req)
        entry, one = (w, chunk), iter((chunk,))
        with self._client.lock:
            if not t.req:  # whole
                asked[req] = entry
                having[req] = None
                t.req = w.req = req
                out += one
        return w

    def leave(self, t: Turn) -> None:
        """Ends the wait of t, for its turn or for its answer."""
        with self._client.lock:
            if t.req:
                self.withdraw(t)
            elif t.left <= 0:
                self._next(t)
            elif t in self._line:
                self._line.remove(t)

    def answer(self, req: int, answer: Any) -> None:
        super().answer(req, answer)
        self._over(req)

    def again(self) -> list[bytes]:
        """The unanswered requests, for a restarted node. Frees the turns of those that nobody waits for."""
        for req in list(self._having):
            if req not in self._asked:
                self._over(req)
        return super().again()

    def abandon(self) -> None:
        super().abandon()
        for t in self._line.copy():
            t.wake()

    def _over(self, req: int) -> None:
        """A request needs its turn no more."""
        having, line = self._having, self._line
        t = None
        if req in having:  # whole
            del having[req]
            if line:
                t = line[0]
                del line[0]
                t.left = 0
            else:
                self._free += 1
        if t is not None:
            t.wake()

    def _next(self, before: Turn) -> None:
        """Passes on the turn of one that sends no request."""
        line = self._line
        t = None
        if before.left <= 0:  # whole
            before.left = 1
            if line:
                t = line[0]
                del line[0]
                t.left = 0
            else:
                self._free += 1
        if t is not None:
            t.wake()
