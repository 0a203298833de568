"""Sends the program's own spans to the node, which exports them with the spans of its tasks.

A span is sent when it ends, if no other spans are under way. Spans that end meanwhile are sent together once those are answered. If the queue is
full, spans are dropped and counted: only flush waits for spans.
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
_QUEUE = 4096  # most spans that wait
_BATCH = 256  # most spans in one request
_AHEAD = 8  # most requests under way
_AGAIN = 60.0  # seconds until a node that exports no spans is sent one again


class _Sent(Waiter):
    """A request with spans that is under way."""

    __slots__ = ("spans", "count")

    def __init__(self, spans: Spans, count: int) -> None:
        super().__init__(1)
        self.spans = spans
        self.count = count

    def done(self, n: int = 1) -> None:
        self.spans.answered(self)
        super().done(n)


class Asks(Sends, Protocol):
    """Sends requests that are on no task's path."""

    @property
    def requests(self) -> Requests: ...

    def request(self, method: str, body: bytes, timeout: Optional[float] = None) -> bytes: ...


class Spans:
    """The spans of this process that are not exported yet. The client's lock guards all of it."""

    def __init__(self, client: Asks) -> None:
        self._client = client
        self._queue: list[dict[str, Any]] = []
        self._way = 0  # unanswered requests
        self._sends = 0  # requests so far
        self._off = 0.0  # the node wants no spans until this time, by time.monotonic
        self.dropped = 0

    @property
    def waiting(self) -> bool:
        return bool(self._queue)

    def push(self) -> None:
        """Sends waiting spans even if others are under way, unless the node is far behind."""
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
        queue, sends = self._queue, self._sends
        batch = queue[:_BATCH]
        first, sent = slice(len(batch)), _Sent(self, len(batch))
        body = cbor2.dumps({"spans": batch})
        if self._sends != sends:  # code that ran meanwhile has sent them
            return sent
        else:  # whole, with the look at it
            self._sends = sends + 1
            self._way += 1
            del queue[first]
        self._client.requests.ask(lambda req: codec.message(m.Request(req, _METHOD, body)), sent)
        return sent

    def answered(self, sent: _Sent) -> None:
        self._way -= 1
        r: m.Reply = sent.slot
        if r.err is not None:  # an older node, or a busy one
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
        """Sends all spans and waits until the node has them. False if the time runs out."""
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
                c.request("node.ping", b"", left)  # once it is answered the node has the spans sent before; their answers follow soon
        except MobulaError:
            pass
        return False
