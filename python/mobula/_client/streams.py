"""The items of streams: the results that a task yields one by one."""

from __future__ import annotations

from collections import deque
from typing import Any, Callable, Optional

from .. import _ids
from .._wire import codec, hot
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

    def take(self) -> Any:
        """Empties the slot and returns what was in it. The share of the handle passes to the caller."""
        x, self.slot = self.slot, None
        return x

    def __del__(self) -> None:
        if isinstance(self.slot, Handle):
            self._dropped.append(self.slot)
            if self._reader.quiet:
                self._reader.arm()


class Streams:
    def __init__(self, client: Waits, objects: Objects) -> None:
        self._client = client
        self._objects = objects
        self._lock = client.lock
        self._wanted: dict[tuple[bytes, int], list[Wanted]] = {}
        self.read: set[bytes] = set()  # the tasks whose streams this process reads; finalisers change it too

    def want(self, task: bytes, i: int) -> Wanted:
        """Requests the i-th item of a stream. Wait for it with Client.wait or when_item."""
        w = Wanted(self._client.reader, self._objects.dropped, task, i)
        with self._lock:
            same = self._wanted.get((task, i))
            if same is None:
                same = self._wanted[(task, i)] = []
                self._client.out.append(codec.message(m.StreamNext(task, i, True)))
            same.append(w)
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
        same = self._wanted.get((w.task, w.index))
        if same is not None and w in same:
            same.remove(w)
            if not same:
                self._wanted.pop((w.task, w.index), None)

    def arrived(self, item: m.StreamItem) -> None:
        """Handles a StreamItem: an item, the end or an error. The lock is held."""
        wanted = tuple(self._wanted.pop((item.task, item.index), ()))
        if not wanted:
            return  # the request was dropped
        slot = self._slot(item, len(wanted))
        for w in wanted:
            w.slot = slot
            w.done()

    def _slot(self, item: m.StreamItem, shares: int) -> Any:
        """What the slots get: the item's handle with one reference for each, None at the end, or the answer with the error."""
        r = item.result or m.Result()
        if r.kind == m.ERROR:
            return Answer(m.ERROR, err=r.err)
        if r.kind == m.NONE:
            return None
        objects, v = self._objects, r.value or m.Value()
        id = _ids.return_id(item.task, item.index)
        res = Answer(r.kind, v.meta, v.data, tuple(v.refs), r.size)
        h = objects.handles.get(id)
        if h is None:
            h = objects.adopt(id, res)
            self._client.send(hot.add_ref(id))
            h.refs += shares - 1
        else:
            h.refs += shares
            if h.res is None:
                h.res = res
        return h

    def declare(self, h: m.Holdings) -> None:
        h.streams = [m.StreamNext(t, i, True) for t, i in list(self._wanted)]
        h.handles += [_ids.stream_id(t) for t in list(self.read)]

    def abandon(self) -> None:
        """The client is dead: wakes all threads that wait for an item."""
        for same in self._wanted.values():
            for w in same:
                w.wake()
