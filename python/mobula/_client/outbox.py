"""The queue of messages to send, and a copy of those sent last: a restarted node is sent them again."""

from __future__ import annotations

import time
from collections import deque

from .._wire import codec
from .._wire import messages as m
from .._wire.conn import Conn
from .credit import Credit

_KEPT, _KEPT_BYTES = 64 << 10, 64 << 20

_K = m.KIND_OF
# First bytes of the messages that are kept for a restarted node, and of those that it does not need because the Holdings say the same.
_REPLAYED = frozenset(k << 3 | 2 for k in (_K[m.Submit], _K[m.PutValue], _K[m.Seal]))
_REDECLARED = frozenset({k << 3 | 2 for k in (_K[m.Get], _K[m.Unget], _K[m.AddRef], _K[m.Release], _K[m.Create])})
_REDECLARED2 = frozenset(codec.varint(_K[c] << 3 | 2) for c in (m.StreamNext, m.Unpin, m.Request, m.Holdings))


class Outbox:
    def __init__(self, keep: bool, credit: Credit) -> None:
        self.queue: deque[bytes] = deque()  # encoded messages; popped with the connection's writing lock held
        self.written = 0.0  # time of the last write, by time.monotonic
        self._keep = keep
        self._credit = credit
        self._kept: deque[bytes] = deque()
        self._kept_bytes = 0

    def write(self, conn: Conn) -> None:
        """Writes all queued messages. The caller holds the connection's writing lock."""
        queue = self.queue
        chunks = [queue.popleft() for _ in range(len(queue))]
        if chunks:
            if self._keep:
                self._remember(chunks)
            conn.write(chunks)
            self.written = time.monotonic()

    def _remember(self, chunks: list[bytes]) -> None:
        kept = self._kept
        for c in chunks:
            if c[0] in _REPLAYED:
                kept.append(c)
                self._kept_bytes += len(c)
        while len(kept) > _KEPT or self._kept_bytes > _KEPT_BYTES:
            # What the node may not have handled stays. A message costs at least half its length of credit.
            if self._kept_bytes - len(kept[0]) < 2 * self._credit.unhandled():
                break
            self._kept_bytes -= len(kept.popleft())

    def renew(self, declared: list[bytes], questions: list[bytes]) -> list[bytes]:
        """The messages that a restarted node gets first: the holdings (declared), the messages that were sent last and may not have arrived,
        those that were queued and never sent, and the unanswered requests (questions). Messages that are queued meanwhile stay queued."""
        queue = self.queue
        waiting = [queue.popleft() for _ in range(len(queue))]
        never = [c for c in waiting if c[0] in _REPLAYED]
        rest = [c for c in waiting if c[0] not in _REPLAYED and c[0] not in _REDECLARED and c[:2] not in _REDECLARED2]
        chunks = [*declared, *self._kept, *never, *rest, *questions]
        self._remember(never)
        self._credit.owe(self._kept_bytes)
        return chunks
