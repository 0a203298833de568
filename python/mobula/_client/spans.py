"""Spans of the program's own, which go to the node: it exports them with those of its tasks.

A span goes when it ends, if no others are on their way; those that end meanwhile go together when these are answered. What finds no room
is dropped and counted: nobody waits for spans but flush.
"""

from __future__ import annotations

import time
from typing import Any, Optional, Protocol

import cbor2

from .._wire import codec
from .._wire import messages as m
from ..exceptions import MobulaError
from .interfaces import Sends
from .requests import Requests
from .waiter import Waiter

_METHOD = "trace.spans"
_QUEUE = 4096  # spans that wait
_BATCH = 256
_AHEAD = 8  # requests of these that may be under way
_AGAIN = 60.0  # seconds until a node that exports none is asked again


class _Sent(Waiter):
    """Spans on their way."""

    __slots__ = ("spans", "count")

    def __init__(self, spans: Spans, count: int) -> None:
        super().__init__(1)
        self.spans = spans
        self.count = count

    def done(self, n: int = 1) -> None:
        super().done(n)
        self.spans.answered(self)


class Asks(Sends, Protocol):
    """Asks the node what is on no task's path."""

    @property
    def requests(self) -> Requests: ...

    def request(self, method: str, body: bytes, timeout: Optional[float] = None) -> bytes: ...


class Spans:
    """Everything here is changed with the client's lock held."""

    def __init__(self, client: Asks) -> None:
        self._client = client
        self._queue: list[dict[str, Any]] = []
        self._way = 0  # requests that are not answered
        self._off = 0.0  # until when the node wants none, by time.monotonic
        self.dropped = 0

    @property
    def waiting(self) -> bool:
        return bool(self._queue)

    def push(self) -> None:
        """Sends what waits, though others are on their way, as long as the node is not far behind."""
        with self._client.lock:
            if self._queue and self._way < _AHEAD and self._client.dead is None:
                self._send()

    def add(self, span: dict[str, Any]) -> None:
        c = self._client
        with c.lock:
            if time.monotonic() < self._off:
                return
            if c.dead is not None or len(self._queue) >= _QUEUE:
                self.dropped += 1
                return
            self._queue.append(span)
            if self._way == 0:
                self._send()
        c.maybe_flush()

    def _send(self) -> Waiter:
        batch, self._queue = self._queue[:_BATCH], self._queue[_BATCH:]
        sent = _Sent(self, len(batch))
        self._way += 1
        body = cbor2.dumps({"spans": batch})
        self._client.requests.ask(lambda req: codec.message(m.Request(req, _METHOD, body)), sent)
        return sent

    def answered(self, sent: _Sent) -> None:
        self._way -= 1
        r: m.Reply = sent.slot
        if r.err is not None:  # a node of before, or one that has much to do
            self.dropped += sent.count
        else:
            said = cbor2.loads(r.body)
            self.dropped += said["dropped"]
            if not said["exported"]:
                self._off = time.monotonic() + _AGAIN
                self._queue.clear()
        if self._queue and self._client.dead is None:
            self._send()

    def flush(self, timeout: float) -> bool:
        """Sends what is here and waits until the node has it, or the time is up; tells which."""
        c, until = self._client, time.monotonic() + timeout
        try:
            while c.dead is None:
                with c.lock:
                    if not self._queue and self._way == 0:
                        return True
                    if self._way == 0:
                        self._send()
                left = until - time.monotonic()
                if left <= 0:
                    return False
                c.request("node.ping", b"", left)  # what went before it is there when it is answered; its answers come soon after
        except MobulaError:
            pass
        return False
