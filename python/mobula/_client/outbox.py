"""The queue of messages to send, and a copy of those sent last: a restarted node is sent them again."""

from __future__ import annotations

import time
from collections import deque
from itertools import repeat, starmap
from typing import Any, Callable

from .._wire import codec
from .._wire import messages as m
from .._wire.conn import Conn, framed
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
        self.frames = 0  # written so far
        self._keep = keep
        self._credit = credit
        self._kept: deque[bytes] = deque()
        self._kept_bytes = 0
        self._gone = 0  # how many messages were kept before these
        self._marks: deque[tuple[int, int]] = deque()  # after each frame: the credit taken until then, and how many messages were to be kept

    def write(self, conn: Conn) -> None:
        """Writes all queued messages. The caller holds the connection's writing lock. Messages leave the queue in the step in which they become
        the connection's frame, and as much of it as the socket takes is sent in the same step."""
        queue, kept = self.queue, self._kept
        while True:
            if conn.frame is not None:
                conn.push()
            if not queue:
                break
            frames, chunks, sent = self.frames, list(queue), conn.sent
            data, replayed = framed(chunks), [c for c in chunks if c[0] in _REPLAYED] if self._keep else ()
            size, again = sum(map(len, replayed)), iter(replayed)
            mark = iter(((self._credit.taken, self._gone + len(kept) + len(replayed)),) if replayed else ())
            taken: list[bytes] = []
            fresh: list[int] = []
            take, send = starmap(queue.popleft, repeat((), len(chunks))), conn.first(data)
            try:  # around no call, as in push
                if self.frames == frames and conn.frame is None and conn.sent is sent:  # whole: code that ran meanwhile has written nothing
                    self.frames = frames + 1
                    conn.frame = data
                    taken += take
                    kept += again
                    self._kept_bytes += size
                    self._marks += mark
                    sent += send
            except OSError:
                pass  # push meets it again
            done = sum(sent) == len(data)
            if done and conn.frame is data:  # whole
                conn.frame = None
                conn.sent = fresh
            if len(kept) > _KEPT or self._kept_bytes > _KEPT_BYTES:
                self._forget()
        self.written = time.monotonic()

    def _forget(self) -> None:
        """Keeps the last messages alone, and those of frames that the node may not have handled."""
        kept, marks, credit = self._kept, self._marks, self._credit
        while len(kept) > _KEPT or self._kept_bytes > _KEPT_BYTES:
            while marks and marks[0][1] <= self._gone:
                del marks[0]
            if marks and credit.left is not None and marks[0][0] > credit.handled:
                break
            first = kept[0]
            size = len(first)
            if kept[0] is first:  # whole
                self._kept_bytes -= size
                self._gone += 1
                del kept[0]

    def declare(self, asked: list[Any], holdings: Callable[[], list[bytes]], owner: bool) -> None:
        """Queues the holdings, and takes the question for them out of asked in the same step. The caller holds the connection's writing lock.

        A thread that makes an object lists its handle and then queues its message, without a lock. Were that message queued before holdings
        that lack the handle, the owner would free the object. So they come before whatever is queued while they are made."""
        queue, credit = self.queue, self._credit
        done: list[None] = []
        while asked:
            frames, at, taken = self.frames, len(queue), credit.taken
            chunk = b"".join(holdings())
            put = starmap(queue.insert, ((at, chunk),) if chunk else ())
            if asked and self.frames == frames:  # whole: code that ran meanwhile has written nothing
                del asked[0]
                if owner and credit.asked is not None:
                    credit.asked = taken
                done += put

    def renew(self, holdings: Callable[[], list[bytes]], questions: Callable[[], list[bytes]]) -> list[bytes]:
        """The messages that a restarted node gets first: the holdings, the messages that were sent last and may not have arrived, those that were
        queued and never sent, and the unanswered requests (questions). Messages that are queued meanwhile stay queued."""
        queue = self.queue
        queued = len(queue)
        declared, asked = holdings(), questions()
        waiting = [queue.popleft() for _ in range(queued)]
        never = [c for c in waiting if c[0] in _REPLAYED]
        rest = [c for c in waiting if c[0] not in _REPLAYED and c[0] not in _REDECLARED and c[:2] not in _REDECLARED2]
        chunks = [*declared, *self._kept, *never, *rest, *asked]
        self._kept.extend(never)
        self._kept_bytes += sum(map(len, never))
        self._marks.append((self._credit.taken, self._gone + len(self._kept)))
        self._forget()
        self._credit.owe(self._kept_bytes)
        return chunks
