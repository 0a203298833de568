"""A queue that tasks, actors and drivers share.

The items are in an actor. A reference that is put comes out as a reference.
"""

from __future__ import annotations

import asyncio
import queue
from collections import deque
from typing import Any, Iterable, Mapping, Optional

from .._api import ActorHandle, cancel, get, kill, method, remote, wait
from .._refs import ObjectRef
from ..exceptions import MobulaError

_LATE = object()
_AT_ONCE = 1_000_000  # calls that wait in the actor cost little, and one that is not let in could be the one they wait for


class Empty(queue.Empty):
    """There is no item, or none came in time."""


class Full(queue.Full):
    """There is no room, or there was none in time."""


class Queue:
    """First in, first out, with room for maxsize items; without bound if that is 0.

    It may be passed to tasks and actors. Its actor ends with the last of its handles; actor_options, such as name and lifetime,
    are those of an actor.

    A get that is given up, because its coroutine or its task is cancelled or a signal interrupts it, takes nothing: what it had
    taken already is the first item again, even beyond maxsize. A put that is given up is withdrawn; whether its item is in the
    queue is not known then, but it is there once at most. A process that dies in a get may take an item along.
    """

    def __init__(self, maxsize: int = 0, actor_options: Optional[Mapping[str, Any]] = None) -> None:
        self.maxsize = maxsize
        options = {"concurrency_groups": {"put": _AT_ONCE, "get": _AT_ONCE}, **(actor_options or {})}
        self.actor: ActorHandle[Any] = remote(_Items).options(**options).remote(maxsize)

    def __len__(self) -> int:
        return self.size()

    def size(self) -> int:
        """How many items there are."""
        n: int = get(self.actor.size.remote())
        return n

    def qsize(self) -> int:
        """The same as size."""
        return self.size()

    def empty(self) -> bool:
        """Whether there are none."""
        return self.size() == 0

    def full(self) -> bool:
        """Whether there is no room."""
        return 0 < self.maxsize <= self.size()

    def put(self, item: Any, block: bool = True, timeout: Optional[float] = None) -> None:
        """Adds an item. It waits for room as long as timeout says, in seconds, or for ever; Full without block, or after that
        time."""
        if not self._result(self.actor.put.remote([item], _patience(block, timeout))):
            raise Full(f"the queue has {self.maxsize} items and room for no more")

    async def put_async(self, item: Any, block: bool = True, timeout: Optional[float] = None) -> None:
        """put in a coroutine."""
        if not await self._result_async(self.actor.put.remote([item], _patience(block, timeout))):
            raise Full(f"the queue has {self.maxsize} items and room for no more")

    def get(self, block: bool = True, timeout: Optional[float] = None) -> Any:
        """Takes the first item. It waits for one as long as timeout says, in seconds, or for ever; Empty without block, or
        after that."""
        return _one(self._result(self.actor.get.remote(1, _patience(block, timeout)), True))

    async def get_async(self, block: bool = True, timeout: Optional[float] = None) -> Any:
        """get in a coroutine."""
        return _one(await self._result_async(self.actor.get.remote(1, _patience(block, timeout)), True))

    def put_nowait(self, item: Any) -> None:
        """put without waiting."""
        self.put(item, block=False)

    def get_nowait(self) -> Any:
        """get without waiting."""
        return self.get(block=False)

    def put_nowait_batch(self, items: Iterable[Any]) -> None:
        """Adds all of the items; Full, and none is added, if there is no room for all."""
        items = list(items)
        if not self._result(self.actor.put.remote(items, 0)):
            raise Full(f"the queue has no room for {len(items)} more items: it holds {self.maxsize} at most")

    def get_nowait_batch(self, num_items: int) -> list[Any]:
        """Takes so many items; Empty, and none is taken, if there are fewer."""
        if not isinstance(num_items, int) or num_items < 0:
            raise ValueError(f"num_items={num_items!r}: want a number, 0 or more")
        items: Optional[list[Any]] = self._result(self.actor.get.remote(num_items, 0), True)
        if items is None:
            raise Empty(f"the queue has fewer than {num_items} items")
        return items

    def shutdown(self, force: bool = False, grace_period_s: float = 5) -> None:
        """Ends the queue with what is in it. Who waits in put or get has the grace period to be served, without force."""
        if not force:
            wait([self.actor.served.remote()], timeout=grace_period_s)
        kill(self.actor)

    def _result(self, call: ObjectRef[Any], takes: bool = False) -> Any:
        """What a call of the actor gives; takes: items."""
        try:
            return get(call)
        except BaseException as x:
            self._failed(call, takes, x)
            raise

    async def _result_async(self, call: ObjectRef[Any], takes: bool = False) -> Any:
        try:
            return await call
        except BaseException as x:
            self._failed(call, takes, x)
            raise

    def _failed(self, call: ObjectRef[Any], takes: bool, x: BaseException) -> None:
        """Cancels a call whose caller gave it up; the items that it may have taken all the same go back."""
        if isinstance(x, Exception) and call._h.res is not None:
            return  # its own error, or that of an item that cannot be unpickled here
        try:
            cancel(call, recursive=False)
            if takes:
                self.actor.put_first.remote(call)  # which is not run if the call was cancelled in time
        except MobulaError:
            pass  # the connection is gone, and the queue's waiters with it


def _patience(block: bool, timeout: Optional[float]) -> Optional[float]:
    """How long to wait; None: for ever."""
    if not block:
        return 0
    if timeout is not None and timeout < 0:
        raise ValueError(f"timeout={timeout}: want a number of seconds, 0 or more")
    return timeout


def _one(items: Optional[list[Any]]) -> Any:
    if items is None:
        raise Empty("the queue is empty")
    return items[0]


class _Line(asyncio.Queue[Any]):
    """A queue that takes items at its front too, even if there is no room."""

    _queue: deque[Any]
    _first = False

    def put_first(self, item: Any) -> None:
        self._first = True
        try:
            self.put_nowait(item)
        finally:
            self._first = False

    def full(self) -> bool:
        return not self._first and super().full()

    # What asyncio.Queue has its kinds say.

    def _init(self, maxsize: int) -> None:
        self._queue = deque()

    def _put(self, item: Any) -> None:
        if self._first:
            self._queue.appendleft(item)
        else:
            self._queue.append(item)

    def _get(self) -> Any:
        return self._queue.popleft()


class _Items:
    """The actor. A call of it that is cancelled has done nothing, or else has a result."""

    def __init__(self, maxsize: int) -> None:
        self._queue = _Line(maxsize)
        self._waiting = 0
        self._served = asyncio.Event()
        self._served.set()

    async def size(self) -> int:
        return self._queue.qsize()

    @method(concurrency_group="put")
    async def put(self, items: list[Any], timeout: Optional[float]) -> bool:
        """Adds one item when there is room, or several that there is room for now; False if it was not so in time."""
        q = self._queue
        if not 0 < q.maxsize < q.qsize() + len(items):
            for x in items:
                q.put_nowait(x)
            return True
        return timeout != 0 and await self._in_time(q.put(items[0]), timeout) is not _LATE

    @method(concurrency_group="get")
    async def get(self, n: int, timeout: Optional[float]) -> Optional[list[Any]]:
        """Takes one item when there is one, or several that there are now; None if it was not so in time."""
        q = self._queue
        if q.qsize() >= n:
            return [q.get_nowait() for _ in range(n)]
        item = _LATE if timeout == 0 else await self._in_time(q.get(), timeout)
        return None if item is _LATE else [item]

    async def put_first(self, items: Optional[list[Any]]) -> None:
        """Takes back what get gave."""
        for x in reversed(items or ()):
            self._queue.put_first(x)

    async def _in_time(self, operation: Any, timeout: Optional[float]) -> Any:
        self._waiting += 1
        self._served.clear()
        try:
            async with asyncio.timeout(timeout):
                return await operation
        except TimeoutError:
            return _LATE
        finally:
            self._waiting -= 1
            if not self._waiting:
                self._served.set()

    async def waiting(self) -> int:
        """How many wait."""
        return self._waiting

    async def served(self) -> None:
        """Returns when nobody waits."""
        await self._served.wait()


__all__ = ["Empty", "Full", "Queue"]
