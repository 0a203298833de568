"""Limits how many pending calls of an actor this process has (max_pending_calls)."""

from __future__ import annotations

import time
from functools import partial
from typing import Optional

from .._client import Client
from .._refs import ObjectRef
from ..exceptions import PendingCallsLimitError
from .objects import wait

_SOON = 0.001  # seconds between looks while other threads are about to call


class Place:
    """A place for one call. It is given back when it is deleted: whatever cuts its call off."""

    __slots__ = ("_of", "taken")

    def __init__(self, of: PendingCalls) -> None:
        self._of = of
        self.taken = False

    def free(self) -> None:
        of = self._of
        if self.taken:  # whole
            self.taken = False
            of.inside -= 1

    def __del__(self) -> None:
        try:
            if self.taken:  # whole: as free does, which a signal could cut off before it began
                self.taken = False
                self._of.inside -= 1
        except AttributeError:
            pass  # __init__ did not run


class PendingCalls:
    """The calls of one actor that have not ended as far as this process knows. All handles of the actor in a process share one. The node
    bounds the calls of all processes together, but reports it only as the error of a call. It has no lock: a finaliser may call, too."""

    __slots__ = ("most", "inside", "_calls", "__weakref__")

    def __init__(self, most: int) -> None:
        self.most = most
        self.inside = 0  # places that are taken
        self._calls: dict[bytes, tuple[ObjectRef[object], Place]] = {}  # by the id of the result

    def reserve(self, c: Client, method: str, waits: bool) -> Place:
        """Reserves a place for a call. Without a free place it waits, or if waits is false raises PendingCallsLimitError."""
        place = Place(self)
        while True:
            for ref, _ in list(self._calls.values()):
                if ref._h.res is not None:
                    self._ended(ref._h.id)
            if self.inside < self.most:  # whole
                self.inside += 1
                place.taken = True
                return place
            calls = [ref for ref, _ in list(self._calls.values())]
            if c.dead is not None:
                raise c.dead.again()
            if not waits:
                raise PendingCallsLimitError(f"{method}: the actor has {self.most} calls pending, its limit is {self.most}: wait for some "
                                             "to end, or call it with .options(wait_for_room=True)")
            if calls:
                wait(calls)
            else:
                time.sleep(_SOON)

    def called(self, place: Place, ref: Optional[ObjectRef[object]]) -> None:
        """Reports that the call was made; it has ended once ref is resolved. None: the call was not made."""
        if ref is None:
            place.free()
            return
        id = ref._h.id
        self._calls[id] = ref, place  # keeps the reference until it is resolved
        ref._c.getter.when_known(ref._h, partial(self._ended, id))

    def _ended(self, id: bytes) -> None:
        """Gives the place of a call back, once."""
        call = self._calls.pop(id, None)
        if call is not None:
            call[1].free()


def pending_calls_of(c: Client, actor: bytes, most: int) -> Optional[PendingCalls]:
    """The limiter of an actor whose limit is most. If the caller does not know the limit (-1), it is the one that another handle of this
    process has, or None."""
    with c.lock:
        calls: Optional[PendingCalls] = c.pending_calls.get(actor)
        if calls is None and most > 0:
            calls = c.pending_calls.setdefault(actor, PendingCalls(most))
        return calls
