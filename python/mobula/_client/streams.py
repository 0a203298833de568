"""The items of streams: a task's results, one after the other."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Callable, Optional, Union

from .. import _ids
from .._wire import codec, hot
from .._wire import messages as m
from .._wire.hot import Answer
from ..exceptions import GetTimeoutError, MobulaError
from .context import TaskContext
from .handle import Handle, answer_error
from .waiter import Waiter

if TYPE_CHECKING:
    from .client import Client

# Who wants an item: a thread that waits, or a function to be called with it.
_Taker = Union[Waiter, Callable[[Any], None]]


class Streams:
    def __init__(self, client: "Client") -> None:
        self._client = client
        self._lock = client.lock
        self._takers: dict[tuple[bytes, int], list[_Taker]] = {}

    def next_item(self, task: bytes, i: int, timeout: Optional[float], tc: Optional[TaskContext]) -> Optional[Handle]:
        """Waits for the i-th item of a stream; None at its end. The error that ended it is raised."""
        self._client.check()
        w = Waiter(1)
        until = None if timeout is None else time.monotonic() + timeout
        self._ask(task, i, w)
        try:
            if not self._client.wait(w, until, tc):
                raise GetTimeoutError(f"item {i} of the stream did not come in time; ask again")
        except BaseException:
            self._leave(task, i, w)
            raise
        if isinstance(w.slot, MobulaError):
            raise w.slot
        return w.slot if isinstance(w.slot, Handle) else None

    def when_item(self, task: bytes, i: int, f: Callable[[Any], None]) -> None:
        """Calls f with the handle of an item, None at the end, or the error."""
        c = self._client
        with self._lock:
            gone = c.dead
            if gone is None:
                self._ask(task, i, f)
        if gone is not None:
            f(gone.again())
            return
        c.flush()
        c.reader.arm()

    def _ask(self, task: bytes, i: int, taker: _Taker) -> None:
        with self._lock:
            takers = self._takers.get((task, i))
            if takers is None:
                takers = self._takers[(task, i)] = []
                self._client.out.append(codec.message(m.StreamNext(task, i)))
            takers.append(taker)

    def _leave(self, task: bytes, i: int, w: Waiter) -> None:
        with self._lock:
            takers = self._takers.get((task, i))
            if takers and w in takers:
                takers.remove(w)
                if not takers:
                    del self._takers[(task, i)]
            if isinstance(w.slot, Handle):  # it may have come all the same
                self._client.dropped.append(w.slot)

    def arrived(self, item: m.StreamItem) -> None:
        """An item, or the end, is there. The lock is held."""
        takers = self._takers.pop((item.task, item.index), None)
        if takers is None:
            return  # all have left; whoever comes back asks again
        slot = self._slot(item, len(takers))
        for taker in takers:
            if isinstance(taker, Waiter):
                taker.slot = slot
                taker.done()
            else:
                self._call_later(taker, slot)

    def _slot(self, item: m.StreamItem, takers: int) -> Any:
        """The item's handle with a share for each taker, None at the end, or the error."""
        r = item.result or m.Result()
        if r.kind == m.ERROR:
            return answer_error(Answer(m.ERROR, err=r.err))
        if r.kind == m.NONE:
            return None
        c, v = self._client, r.value or m.Value()
        id = _ids.return_id(item.task, item.index)
        res = Answer(r.kind, v.meta, v.data, tuple(v.refs), r.size)
        h = c.objects.handles.get(id)
        if h is None:
            h = c.adopt(id, res)
            c.send(hot.add_ref(id))
            h.refs += takers - 1
        else:
            h.refs += takers
            if h.res is None:
                h.res = res
        return h

    def _call_later(self, f: Callable[[Any], None], slot: Any) -> None:
        self._client.reader.later.append(lambda: f(slot))

    def declare(self, h: m.Holdings) -> None:
        h.streams = [m.StreamNext(t, i) for t, i in self._takers]

    def abandon(self, why: MobulaError) -> None:
        """The client is dead: all who wait for an item see it."""
        for takers in self._takers.values():
            for taker in takers:
                if isinstance(taker, Waiter):
                    taker.wake()
                else:
                    self._call_later(taker, why)
