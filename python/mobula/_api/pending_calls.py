"""Limits how many pending calls of an actor this process has (max_pending_calls)."""

from __future__ import annotations

import threading
from functools import partial
from typing import Any, Optional

from .._client import Client
from .._refs import ObjectRef
from ..exceptions import PendingCallsLimitError
from .objects import wait

_SOON = 0.01  # seconds between looks while other threads are about to call


class PendingCalls:
    """The calls of one actor that have not ended as far as this process knows. All handles of the actor in a process share one. The node
    bounds the calls of all processes together, but reports it only as the error of a call."""

    __slots__ = ("most", "_lock", "_inside", "_calls", "_freed", "__weakref__")

    def __init__(self, most: int) -> None:
        self.most = most
        self._lock = threading.Lock()
        self._inside = 0
        self._calls: dict[ObjectRef[Any], None] = {}
        self._freed = threading.Condition(self._lock)

    def reserve(self, c: Client, method: str, waits: bool) -> None:
        """Reserves a place for a call. Without a free place it waits, or if waits is false raises PendingCallsLimitError."""
        while True:
            with self._lock:
                for ref in [ref for ref in self._calls if ref._h.res is not None]:
                    self._free(ref)
                if self._inside < self.most:
                    self._inside += 1
                    return
                calls = list(self._calls)
            if c.dead is not None:
                raise c.dead.again()
            if not waits:
                raise PendingCallsLimitError(f"{method}: the actor has {self.most} calls pending, its limit is {self.most}: wait for some "
                                             "to end, or call it with .options(wait_for_room=True)")
            if calls:
                wait(calls)
            else:
                with self._freed:
                    self._freed.wait(_SOON)

    def called(self, ref: Optional[ObjectRef[Any]]) -> None:
        """Reports that the call was made; it has ended once ref is resolved. None: the call was not made."""
        if ref is None:
            with self._lock:
                self._inside -= 1
                self._freed.notify()
            return
        with self._lock:
            self._calls[ref] = None  # keeps the reference until it is resolved
        ref._c.getter.when_known(ref._h, partial(self._ended, ref))

    def _ended(self, ref: ObjectRef[Any]) -> None:
        with self._lock:
            self._free(ref)

    def _free(self, ref: ObjectRef[Any]) -> None:
        """Gives the place of a call back, once. The lock is held."""
        if ref in self._calls:
            del self._calls[ref]
            self._inside -= 1
            self._freed.notify()


def pending_calls_of(c: Client, actor: bytes, most: int) -> Optional[PendingCalls]:
    """The limiter of an actor whose limit is most. If the caller does not know the limit (-1), it is the one that another handle of this
    process has, or None."""
    with c.lock:
        calls: Optional[PendingCalls] = c.pending_calls.get(actor)
        if calls is None and most > 0:
            calls = c.pending_calls[actor] = PendingCalls(most)
        return calls
