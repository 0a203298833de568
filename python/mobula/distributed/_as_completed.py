"""as_completed, wait and progress."""

from __future__ import annotations

import asyncio
import sys
import time
from collections import deque
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, AsyncIterator, Iterable, Iterator, NamedTuple, Optional

from .. import util
from ..exceptions import GetTimeoutError, InvalidError
from ._future import Future

ALL_COMPLETED, FIRST_COMPLETED = "ALL_COMPLETED", "FIRST_COMPLETED"


class as_completed:
    """Iterates over futures in the order in which they are done, also with async for. Futures may be added meanwhile.

        for future, x in as_completed(futures, with_results=True):
            print(future.key, x)

    with_results: yields pairs of future and result. raise_errors: raises a call's exception; with False the pair has the triple of
    sys.exc_info() in place of the result. timeout: seconds from now; TimeoutError if not all futures are done by then.
    """

    def __init__(self, futures: Optional[Iterable[Future]] = None, *, with_results: bool = False, raise_errors: bool = True,
                 timeout: Optional[float] = None) -> None:
        self.with_results = with_results
        self.raise_errors = raise_errors
        self._until = None if timeout is None else time.monotonic() + timeout
        # Finalisers and signal handlers may come in the midst of a method, so there is no lock: sets and queues change in steps that nothing cuts.
        self._bell: SimpleQueue[None] = SimpleQueue()  # an entry for each future that came, and one at the end
        self._open: set[Future] = set()
        self._done: deque[Future] = deque()
        self._ready: set[Future] = set()  # those in _done
        self._sleepers: list[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = []
        self.update(futures or ())

    def add(self, future: Future) -> None:
        """Adds a future, unless it is waiting already."""
        one, open_ = {future}, self._open
        if future in open_ or future in self._ready:
            return
        else:  # whole, with the look at it
            open_ |= one
        future._state.watch(partial(self._came, future))

    def update(self, futures: Iterable[Future]) -> None:
        """Adds futures."""
        for f in futures:
            self.add(f)

    def _came(self, future: Future) -> None:
        one, many, open_, ready, done = {future}, iter((future,)), self._open, self._ready, self._done
        if future in open_:  # whole; else clear() has removed it
            open_ -= one
            ready |= one
            done += many
        self._ring()

    def _ring(self) -> None:
        """Wakes who waits."""
        self._bell.put(None)
        while self._sleepers:
            one = self._sleepers[0]
            del self._sleepers[0]  # whole, with the look at it
            loop, sleeper = one
            try:
                loop.call_soon_threadsafe(_wake, sleeper)
            except RuntimeError:
                pass  # the loop has ended

    def count(self) -> int:
        """The number of futures still to come."""
        return len(self._open) + len(self._done)

    def is_empty(self) -> bool:
        """Whether no future is still to come."""
        return self.count() == 0

    def has_ready(self) -> bool:
        """Whether the next future is done already."""
        return bool(self._done)

    def clear(self) -> None:
        """Drops all futures that are still to come."""
        self._open.clear()
        self._done.clear()
        self._ready.clear()
        self._ring()

    def _left(self) -> Optional[float]:
        return None if self._until is None else max(0, self._until - time.monotonic())

    def _late(self) -> GetTimeoutError:
        return GetTimeoutError(f"{len(self._open)} futures were not done in time")

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        while (future := self._pop()) is None:
            if not self._open and not self._done:
                self._bell.put(None)  # for another thread that waits
                raise StopIteration
            try:
                self._bell.get(timeout=self._left())
            except Empty:
                if not self._done:
                    raise self._late() from None
        return self._given(future)

    def _pop(self) -> Optional[Future]:
        """Takes the next future that is done."""
        done, ready = self._done, self._ready
        while done:
            future = done[0]
            one = {future}
            if done and done[0] is future:  # whole
                del done[0]
                ready -= one
                return future
        return None

    def _given(self, future: Future) -> Any:
        if not self.with_results:
            return future
        if not self.raise_errors and future.status != "finished":
            try:
                return future, future.result()
            except BaseException:
                return future, sys.exc_info()
        return future, future.result()

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        loop = asyncio.get_running_loop()
        while True:
            popped = self._pop()
            if popped is not None:
                future = popped
                break
            if not self._open:
                raise StopAsyncIteration
            sleeper: asyncio.Future[None] = loop.create_future()
            self._sleepers.append((loop, sleeper))
            if self._done or not self._open:  # it has come meanwhile
                continue
            try:
                await asyncio.wait_for(sleeper, self._left())
            except TimeoutError:
                raise self._late() from None
        if not self.with_results:
            return future
        try:
            return future, await future
        except asyncio.CancelledError:
            raise
        except BaseException:
            if self.raise_errors:
                raise
            return future, sys.exc_info()

    def next_batch(self, block: bool = True) -> list[Any]:
        """Returns all done futures as a list. block: waits for one first."""
        batch = [next(self)] if block else []
        while (future := self._pop()) is not None:
            batch.append(self._given(future))
        return batch

    def batches(self) -> Iterator[list[Any]]:
        """Yields lists of futures that are done, until none is to come."""
        while not self.is_empty():
            yield self.next_batch()


def _wake(sleeper: asyncio.Future[None]) -> None:
    if not sleeper.done():
        sleeper.set_result(None)


class DoneAndNotDone(NamedTuple):
    """The result of wait."""

    done: set[Future]
    not_done: set[Future]


def wait(fs: Future | Iterable[Future], timeout: Optional[float] = None, return_when: str = ALL_COMPLETED) -> Any:
    """Waits until all of the futures are done, or one with return_when="FIRST_COMPLETED". Returns the sets done and not_done.

    TimeoutError after timeout seconds. With an asynchronous client's futures await the result.
    """
    futures = [fs] if isinstance(fs, Future) else list(fs)
    if return_when not in (ALL_COMPLETED, FIRST_COMPLETED):
        raise InvalidError(f'return_when={return_when!r}: want "{ALL_COMPLETED}" or "{FIRST_COMPLETED}"')
    coming = as_completed(futures, timeout=timeout)
    n = coming.count() if return_when == ALL_COMPLETED else min(1, coming.count())
    if futures and futures[0].client.asynchronous:
        return _wait_async(futures, coming, n)
    for _ in range(n):
        next(coming)
    return _parted(futures)


async def _wait_async(futures: list[Future], coming: as_completed, n: int) -> DoneAndNotDone:
    for _ in range(n):
        await coming.__anext__()
    return _parted(futures)


def progress(futures: Iterable[Future], desc: str = "", **options: Any) -> list[Future]:
    """Waits until all of the futures are done, with a progress bar as mobula.util.progress. Returns them as a list."""
    futures = list(futures)
    util.progress([f.ref for f in futures], desc, **options)
    return futures


def _parted(futures: list[Future]) -> DoneAndNotDone:
    done = {f for f in futures if f.done()}
    return DoneAndNotDone(done, set(futures) - done)


__all__ = ["DoneAndNotDone", "as_completed", "progress", "wait"]
