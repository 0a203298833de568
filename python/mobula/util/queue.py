"""A queue that tasks, actors and drivers share. An actor holds the items."""

from __future__ import annotations

import asyncio
import queue
from collections import deque
from typing import Any, Iterable, Mapping, Optional

from .._api import ActorHandle, cancel, get, kill, method, remote, wait
from .._refs import ObjectRef
from ..exceptions import MobulaError

_LATE = object()
_AT_ONCE = 1_000_000  # concurrent calls: a waiting call costs little, and a call that is held back could be the one that others wait for


class Empty(queue.Empty):
    """The queue has no item, or got none in time."""


class Full(queue.Full):
    """The queue has no room, or got none in time."""


class Queue:
    """A FIFO queue with room for maxsize items, or without limit if maxsize is 0.

        q = Queue(maxsize=100)
        worker.remote(q)
        item = q.get(timeout=10)

    It can be passed to tasks and actors. Its actor ends when the last Queue is deleted. actor_options: options of that actor, such as name and
    lifetime. An ObjectRef that is put comes out as an ObjectRef.

    If a get is given up, because its coroutine or task is cancelled or a signal interrupts it, it takes no item: one that it had
    already taken becomes the first item again, even beyond maxsize. If a put is given up, it is withdrawn; its item may or may not be in the queue,
    but at most once. If a process dies in a get, an item may be lost.
    """

    def __init__(self, maxsize: int = 0, actor_options: Optional[Mapping[str, Any]] = None) -> None:
        self.maxsize = maxsize
        options = {"concurrency_groups": {"put": _AT_ONCE, "get": _AT_ONCE}, **(actor_options or {})}
        self.actor: ActorHandle[Any] = remote(_Items).options(**options).remote(maxsize)

    def __len__(self) -> int:
        return self.size()

    def size(self) -> int:
        """The number of items."""
        n: int = get(self.actor.size.remote())
        return n

    def qsize(self) -> int:
        """The number of items, as size."""
        return self.size()

    def empty(self) -> bool:
        """Whether the queue has no items."""
        return self.size() == 0

    def full(self) -> bool:
        """Whether the queue has maxsize items."""
        return 0 < self.maxsize <= self.size()

    def put(self, item: Any, block: bool = True, timeout: Optional[float] = None) -> None:
        """Adds an item. It waits for room for timeout seconds, or without limit. Full if there is no room by then, or at once with
        block=False."""
        if not self._result(self.actor.put.remote([item], _patience(block, timeout))):
            raise Full(f"the queue has {self.maxsize} items and room for no more")

    async def put_async(self, item: Any, block: bool = True, timeout: Optional[float] = None) -> None:
        """put for coroutines."""
        if not await self._result_async(self.actor.put.remote([item], _patience(block, timeout))):
            raise Full(f"the queue has {self.maxsize} items and room for no more")

    def get(self, block: bool = True, timeout: Optional[float] = None) -> Any:
        """Takes the first item and returns it. It waits for timeout seconds, or without limit. Empty if there is no item by then, or at once
        with block=False."""
        return _one(self._result(self.actor.get.remote(1, _patience(block, timeout)), True))

    async def get_async(self, block: bool = True, timeout: Optional[float] = None) -> Any:
        """get for coroutines."""
        return _one(await self._result_async(self.actor.get.remote(1, _patience(block, timeout)), True))

    def put_nowait(self, item: Any) -> None:
        """put without waiting."""
        self.put(item, block=False)

    def get_nowait(self) -> Any:
        """get without waiting."""
        return self.get(block=False)

    def put_nowait_batch(self, items: Iterable[Any]) -> None:
        """Adds all of the items. Full if there is no room for all of them; then none is added."""
        items = list(items)
        if not self._result(self.actor.put.remote(items, 0)):
            raise Full(f"the queue has no room for {len(items)} more items: it holds {self.maxsize} at most")

    def get_nowait_batch(self, num_items: int) -> list[Any]:
        """Takes num_items items and returns them. Empty if there are fewer; then none is taken."""
        if not isinstance(num_items, int) or num_items < 0:
            raise ValueError(f"num_items={num_items!r}: want a number, 0 or more")
        items: Optional[list[Any]] = self._result(self.actor.get.remote(num_items, 0), True)
        if items is None:
            raise Empty(f"the queue has fewer than {num_items} items")
        return items

    def shutdown(self, force: bool = False, grace_period_s: float = 5) -> None:
        """Ends the queue and drops its items. Unless force is set, waiting puts and gets have grace_period_s seconds to finish."""
        if not force:
            wait([self.actor.served.remote()], timeout=grace_period_s)
        kill(self.actor)

    def _result(self, call: ObjectRef[Any], takes: bool = False) -> Any:
        """Waits for a call of the actor. takes: the call takes items."""
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
        """Cancels a call that was given up. Items that it has taken nevertheless are put back."""
        if isinstance(x, Exception) and call._h.res is not None:
            return  # the call's own error, or an item that cannot be unpickled here
        try:
            cancel(call, recursive=False)
            if takes:
                self.actor.put_first.remote(call)  # it does not run if the call was cancelled in time: its argument fails
        except MobulaError:
            pass  # the connection is gone


def _patience(block: bool, timeout: Optional[float]) -> Optional[float]:
    """Seconds to wait; None: without limit."""
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
    """An asyncio.Queue that also takes items at its front, even if it is full."""

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

    # The methods that asyncio.Queue leaves to subclasses.

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
    """The actor class. A call that is cancelled has either changed nothing or has a result."""

    def __init__(self, maxsize: int) -> None:
        self._queue = _Line(maxsize)
        self._waiting = 0
        self._served = asyncio.Event()
        self._served.set()

    async def size(self) -> int:
        return self._queue.qsize()

    @method(concurrency_group="put")
    async def put(self, items: list[Any], timeout: Optional[float]) -> bool:
        """Adds one item as soon as there is room, or several items if there is room now. False if there was no room in time."""
        q = self._queue
        if not 0 < q.maxsize < q.qsize() + len(items):
            for x in items:
                q.put_nowait(x)
            return True
        return timeout != 0 and await self._in_time(q.put(items[0]), timeout) is not _LATE

    @method(concurrency_group="get")
    async def get(self, n: int, timeout: Optional[float]) -> Optional[list[Any]]:
        """Takes one item as soon as there is one, or several items if there are so many now. None if there were not enough in time."""
        q = self._queue
        if q.qsize() >= n:
            return [q.get_nowait() for _ in range(n)]
        item = _LATE if timeout == 0 else await self._in_time(q.get(), timeout)
        return None if item is _LATE else [item]

    async def put_first(self, items: Optional[list[Any]]) -> None:
        """Puts items that get has taken back to the front."""
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
        """The number of waiting calls."""
        return self._waiting

    async def served(self) -> None:
        """Returns when no call waits."""
        await self._served.wait()


__all__ = ["Empty", "Full", "Queue"]
