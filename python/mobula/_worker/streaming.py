"""Sends the items of a stream as the task yields them. With backpressure, the task waits when it is too far ahead of its consumer."""

from __future__ import annotations

import asyncio
from typing import Any, AsyncIterator

from .._client import Client, Waiter
from .._wire import codec
from .._wire import messages as m
from . import results
from .blocking import Blocking
from .call import Call
from .user_code import run

_END = object()
_POLL = 0.002  # seconds between two looks of a coroutine that waits for its consumer


class Streaming:
    def __init__(self, client: Client, blocking: Blocking) -> None:
        self._client = client
        self._blocking = blocking
        self._consumed: dict[bytes, int] = {}  # number of consumed items, by task
        self._waiters: dict[bytes, Waiter] = {}

    def acked(self, a: m.StreamAck) -> None:
        """Handles a StreamAck: the consumer has taken items. The client's lock is held."""
        if a.task in self._consumed:
            self._consumed[a.task] = max(self._consumed[a.task], a.consumed)
            w = self._waiters.get(a.task)
            if w is not None:
                w.done()

    def wake(self) -> None:
        """Wakes all tasks that wait for their consumer, so that they check whether they were cancelled."""
        for w in list(self._waiters.values()):
            w.wake()

    def produce(self, call: Call, value: Any) -> int:
        """Sends the items of an iterator and returns their number."""
        task, limit = call.task, call.work.options.backpressure
        self._consumed[task] = 0
        try:
            if not hasattr(value, "__next__"):
                value = iter(value)
            while True:
                if limit and self._too_far(call, limit):
                    self._wait(call, limit)
                item = run(call, next, [value, _END], {})
                if item is _END:
                    return call.items
                self._send(call, item)
        finally:
            self._consumed.pop(task, None)
            self._waiters.pop(task, None)
            close = getattr(value, "close", None)
            if close is not None:
                close()

    async def produce_async(self, call: Call, value: Any) -> int:
        """The same in an event loop; value may be an asynchronous iterator."""
        limit = call.work.options.backpressure
        self._consumed[call.task] = 0
        try:
            async for item in _each(value):
                while limit and self._too_far(call, limit):
                    await asyncio.sleep(_POLL)
                self._send(call, item)
            return call.items
        finally:
            self._consumed.pop(call.task, None)

    def _send(self, call: Call, item: Any) -> None:
        work, i = call.work, call.items
        body = b"\x0a\x14" + work.id
        if work.attempt:
            body += b"\x10" + codec.varint(work.attempt)
        if i:
            body += b"\x18" + codec.varint(i)
        body += results.result(call, item, i)
        self._client.out.append(b"\xc2\x01" + codec.varint(len(body)) + body)
        self._client.maybe_flush()
        call.items = i + 1

    def _too_far(self, call: Call, limit: int) -> bool:
        return call.items >= self._consumed[call.task] + limit

    def _wait(self, call: Call, limit: int) -> None:
        """Waits until the consumer has taken enough items."""
        self._blocking.block(call)
        try:
            while self._too_far(call, limit):
                w = Waiter(1)
                with self._client.lock:
                    if not self._too_far(call, limit):
                        break
                    self._waiters[call.task] = w
                self._client.reader.wait(w, None, call)
        finally:
            self._blocking.unblock(call)


async def _each(value: Any) -> AsyncIterator[Any]:
    if hasattr(value, "__aiter__"):
        async for item in value:
            yield item
    else:
        for item in value:
            yield item
