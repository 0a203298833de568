"""Numbered requests that wait for their answers."""

from __future__ import annotations

from typing import Any, Callable, Iterator, Optional

from .interfaces import Sends
from .waiter import Waiter


class Pending:
    """The requests of one kind. They are kept encoded until they are answered, to be sent again to a restarted node."""

    def __init__(self, client: Sends, numbers: Iterator[int]) -> None:
        self._client = client
        self._numbers = numbers
        self._asked: dict[int, tuple[Waiter, bytes]] = {}

    def ask(self, question: Callable[[int], bytes], w: Optional[Waiter] = None) -> tuple[int, Waiter]:
        """Queues a request. question encodes it with its number. The answer goes into the waiter's slot."""
        req = next(self._numbers)
        w, chunk = w or Waiter(1), question(req)
        with self._client.lock:
            self._asked[req] = (w, chunk)
            self._client.out.append(chunk)
        return req, w

    def answer(self, req: int, answer: Any) -> None:
        q = self._asked.pop(req, None)
        if q is not None:
            q[0].slot = answer
            q[0].done()

    def withdraw(self, req: int) -> bool:
        """Forgets a request. False if it was answered already."""
        with self._client.lock:
            return self._asked.pop(req, None) is not None

    def again(self) -> list[bytes]:
        """The unanswered requests, for a restarted node."""
        return [chunk for _, chunk in self._asked.values()]

    def abandon(self) -> None:
        """The client is dead: wakes all waiting threads."""
        for w, _ in list(self._asked.values()):
            w.wake()
