"""How many calls of an actor this process may have under way."""

from __future__ import annotations

import threading
from functools import partial
from typing import Any, Optional

from .._client import Client
from .._refs import ObjectRef
from ..exceptions import PendingCallsLimitError
from .objects import wait

_SOON = 0.01  # seconds until it is looked again, where others are about to call


class Room:
    """The calls of an actor of which this process does not know that they have ended. The node bounds those of all processes together, and
    tells only by the result. There is one for all handles of a process on an actor."""

    __slots__ = ("most", "_lock", "_inside", "_calls", "_freed", "__weakref__")

    def __init__(self, most: int) -> None:
        self.most = most
        self._lock = threading.Lock()
        self._inside = 0
        self._calls: dict[ObjectRef[Any], None] = {}
        self._freed = threading.Condition(self._lock)

    def enter(self, c: Client, method: str, waits: bool) -> None:
        """Takes the place of a call that is about to be made."""
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
        """The call was made, and has ended when this is known; None: it was not made."""
        if ref is None:
            with self._lock:
                self._inside -= 1
                self._freed.notify()
            return
        with self._lock:
            self._calls[ref] = None  # held until it is known
        ref._c.getter.when_known(ref._h, partial(self._ended, ref))

    def _ended(self, ref: ObjectRef[Any]) -> None:
        with self._lock:
            self._free(ref)

    def _free(self, ref: ObjectRef[Any]) -> None:
        """Gives the place of a call back, once; the lock is held."""
        if ref in self._calls:
            del self._calls[ref]
            self._inside -= 1
            self._freed.notify()


def room_of(c: Client, actor: bytes, most: int) -> Optional[Room]:
    """The room of an actor whose limit is most; where that is not known here, as another handle of this process knows it."""
    with c.lock:
        room: Optional[Room] = c.rooms.get(actor)
        if room is None and most > 0:
            room = c.rooms[actor] = Room(most)
        return room
