"""Numbered requests that wait for their answers."""

from __future__ import annotations

from typing import Any, Callable, Iterator

from .interfaces import Sends
from .waiter import Waiter


class Pending:
    """The requests of one kind. They are kept encoded until they are answered, to be sent again to a restarted node."""

    def __init__(self, client: Sends, numbers: Iterator[int]) -> None:
        self._client = client
        self._numbers = numbers
        self._asked: dict[int, tuple[Waiter, bytes]] = {}

    def ask(self, question: Callable[[int], bytes], w: Waiter) -> None:
        """Queues a request. question encodes it with its number. The answer goes into the waiter's slot."""
        req, asked, out = next(self._numbers), self._asked, self._client.out
        chunk = question(req)
        entry, one = (w, chunk), iter((chunk,))
        with self._client.lock:
            if not w.req:  # whole
                asked[req] = entry
                w.req = req
                out += one

    def answer(self, req: int, answer: Any) -> None:
        q = self._asked.get(req)
        if q is not None:
            w = q[0]
            w.slot = answer
            if w.left > 0:
                w.done()
            self._asked.pop(req, None)

    def withdraw(self, w: Waiter) -> bool:
        """Forgets a request. False if it was answered already. It takes no lock: finalisers call it."""
        return self._asked.pop(w.req, None) is not None

    def again(self) -> list[bytes]:
        """The unanswered requests, for a restarted node."""
        return [chunk for _, chunk in list(self._asked.values())]

    def abandon(self) -> None:
        """The client is dead: wakes all waiting threads."""
        for w, _ in list(self._asked.values()):
            w.wake()
