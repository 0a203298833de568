"""The items of streams: the results that a task yields one by one."""

from __future__ import annotations

from collections import deque
from typing import Any, Callable, Optional, Protocol

from .. import _ids
from .._wire import codec
from .._wire import messages as m
from .._wire.hot import Answer
from .handle import Handle
from .interfaces import Keeper, Waits
from .objects import Objects
from .waiter import Waiter


class Wanted(Waiter):
    """A request for one item. Its slot gets the item's handle, None at the end of the stream, or the
    answer with the error that ended it: whoever takes it makes the exception, which may have to be fetched.

    A caller that gives up waiting can keep it and wait again: an item that comes meanwhile is in the slot. When it is deleted, its
    share of the handle is released.
    """

    __slots__ = ("task", "index", "then", "_reader", "_dropped")

    def __init__(self, reader: Keeper, dropped: deque[Handle], task: bytes, index: int) -> None:
        super().__init__(1)
        self._reader = reader
        self._dropped = dropped
        self.task = task
        self.index = index
        self.then: Optional[Callable[[], None]] = None  # called once the item has come or the client is dead

    def wake(self) -> None:
        super().wake()
        if self.then is not None:
            self._reader.later.append(self.then)

    def __del__(self) -> None:
        try:
            slot, dropped, reader = self.slot, self._dropped, self._reader
        except AttributeError:
            return  # __init__ did not run
        if slot.__class__ is Handle:  # no call before the one that counts, behind which a signal could cut this off
            dropped.append(slot)
            if reader.quiet:
                reader.arm()


class Asks(Protocol):
    """Reads a stream."""

    _wanted: Optional[Wanted]  # the request for the next item


class _Share:
    """One reference to a handle, until it is deleted."""

    __slots__ = ("_dropped", "_h")

    def __init__(self, dropped: deque[Handle], h: Handle) -> None:
        self._dropped = dropped
        self._h = h

    def __del__(self) -> None:
        try:
            dropped, h = self._dropped, self._h
        except AttributeError:
            return  # __init__ did not run
        dropped.append(h)


class Streams:
    def __init__(self, client: Waits, objects: Objects) -> None:
        self._client = client
        self._objects = objects
        self._lock = client.lock
        self._wanted: dict[tuple[bytes, int], list[Wanted]] = {}
        self.read: set[bytes] = set()  # the tasks whose streams this process reads; finalisers change it too

    def want(self, by: Asks, task: bytes, i: int) -> Wanted:
        """Requests the i-th item of a stream for by, which keeps the request. Wait for it with Client.wait or when_item."""
        w, key = Wanted(self._client.reader, self._objects.dropped, task, i), (task, i)
        out, wanted = self._client.out, self._wanted
        with self._lock:
            while True:
                same, ask = wanted.get(key), iter((codec.message(m.StreamNext(task, i, True)),))
                more = [*(same or ()), w]
                if same is None:
                    if key not in wanted:  # whole
                        wanted[key] = more
                        by._wanted = w
                        out += ask
                        return w
                elif key in wanted and wanted[key] is same:  # whole
                    wanted[key] = more
                    by._wanted = w
                    return w

    def when_item(self, w: Wanted, f: Callable[[], None]) -> None:
        """Calls f once the item has come or the client is dead, in the thread that learns it."""
        c = self._client
        with self._lock:
            w.then = f
            if w.left <= 0 or c.dead is not None:
                c.reader.later.append(f)
        c.flush()
        c.reader.offer()

    def forget(self, w: Wanted) -> None:
        """Drops a request that nobody will wait for again. It takes no lock, because a finaliser calls it; the stream has no other reader."""
        key, wanted = (w.task, w.index), self._wanted
        while (same := wanted.get(key)) is not None and w in same:
            rest = [x for x in same if x is not w]
            if key in wanted and wanted[key] is same:  # whole
                if rest:
                    wanted[key] = rest
                else:
                    del wanted[key]

    def arrived(self, item: m.StreamItem) -> None:
        """Handles a StreamItem: an item, the end or an error. The lock is held."""
        key, table = (item.task, item.index), self._wanted
        if key not in table:
            return  # the request was dropped
        r = item.result or m.Result()
        slot: Any = None
        share: Optional[_Share] = None  # what the slots get is listed as long as this is there
        if r.kind == m.ERROR:
            slot = Answer(m.ERROR, err=r.err)
        elif r.kind != m.NONE:
            v = r.value or m.Value()
            share = _Share(self._objects.dropped, Handle(_ids.return_id(*key)))
            self._objects.bind(share)
            slot = share._h
            self._objects.know(slot, Answer(r.kind, v.meta, v.data, tuple(v.refs), r.size))
        while same := table.get(key):
            w, rest = same[0], same[1:]
            if key in table and table[key] is same:  # whole
                if rest:
                    table[key] = rest
                else:
                    del table[key]
                if share is not None:
                    slot.refs += 1
                w.slot = slot
                w.left -= 1
            if w.left <= 0:
                w.wake()

    def declare(self, h: m.Holdings) -> None:
        h.streams = [m.StreamNext(t, i, True) for t, i in list(self._wanted)]
        h.handles += [_ids.stream_id(t) for t in list(self.read)]

    def abandon(self) -> None:
        """The client is dead: wakes all threads that wait for an item."""
        for same in list(self._wanted.values()):
            for w in same:
                w.wake()
