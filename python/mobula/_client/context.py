"""The task on whose behalf code runs."""

from __future__ import annotations

import threading
from itertools import count
from typing import TYPE_CHECKING, Callable, Optional

from .. import _ids
from .._wire import hot

if TYPE_CHECKING:
    from .client import Client


class TaskContext:
    """The task on whose behalf code runs: ids of what it submits and puts follow from it."""

    def __init__(self, client: "Client", task: bytes, attempt: int = 0, trace: bytes = b"") -> None:
        self.client = client
        self.task = task
        self.attempt = attempt
        self.parent_field = hot.spec_head(task)
        self.trace = hot.trace_field(trace)
        self.derive = _ids.deriver(task)
        self.calls = count(1)
        self.puts = count(1)
        self.called = False
        self.orders: dict[bytes, CallOrder] = {}
        # A worker's task: told when it begins to wait and when it goes on.
        self.block: Optional[Callable[[], None]] = None
        self.unblock: Optional[Callable[[], None]] = None
        self.cancelled: Optional[Callable[[], Optional[BaseException]]] = None

    def next_task(self) -> bytes:
        return self.derive(next(self.calls))

    def next_put(self) -> bytes:
        return _ids.put_id(self.task, next(self.puts))

    def order(self, actor: bytes) -> "CallOrder":
        o = self.orders.get(actor)
        return o if o is not None else self.orders.setdefault(actor, CallOrder())


class CallOrder:
    """Numbers the calls of one caller to one actor; the lock is held while a call is queued."""

    __slots__ = ("lock", "seq")

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.seq = 0
