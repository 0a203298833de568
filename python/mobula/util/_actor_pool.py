"""A pool of actors that share work."""

from __future__ import annotations

from collections import deque
from typing import Any, Callable, Iterable, Iterator, Optional

from .._api import ActorHandle, get, wait
from .._refs import ObjectRef

Call = Callable[[ActorHandle[Any], Any], "ObjectRef[Any]"]


class ActorPool:
    """Gives each value to the next actor that is free.

        pool = ActorPool([Model.remote() for _ in range(4)])
        for y in pool.map(lambda actor, x: actor.predict.remote(x), xs):
            ...

    Each actor has at most one call of the pool at a time; further values wait in the pool. The function gets an actor and a value,
    makes the call and returns its reference. If a call fails, its error is raised in place of its result, and the actor stays in the
    pool. An error of the function itself, for instance NotEncodableError, is raised in the same way, but by submit if an actor is free.
    """

    def __init__(self, actors: Iterable[ActorHandle[Any]]) -> None:
        self._idle: deque[ActorHandle[Any]] = deque(actors)
        self._waiting: deque[tuple[Call, Any]] = deque()
        self._running: dict[ObjectRef[Any], tuple[int, ActorHandle[Any]]] = {}
        self._by_number: dict[int, ObjectRef[Any]] = {}
        self._failed: dict[int, Exception] = {}  # calls that could not be made
        self._submitted = 0  # the number of the next call
        self._returned = 0  # the number of the call whose result is next

    def map(self, fn: Call, values: Iterable[Any]) -> Iterator[Any]:
        """Returns an iterator over the results in the order of the values. It can go on after an error. Results of earlier calls that were
        not taken are dropped. ValueError if the pool has no actor."""
        return self._map(fn, values, self.get_next)

    def map_unordered(self, fn: Call, values: Iterable[Any]) -> Iterator[Any]:
        """The same as map, but with the results in the order in which they come."""
        return self._map(fn, values, self.get_next_unordered)

    def _map(self, fn: Call, values: Iterable[Any], next_result: Callable[[], Any]) -> Iterator[Any]:
        self._waiting.clear()
        for ref in list(self._running):
            self._take(ref)
        self._failed.clear()
        self._returned = self._submitted
        if not self._idle:
            raise ValueError("the pool has no actor: push one first")
        for v in values:
            self._waiting.append((fn, v))
            self._feed()
        return _Results(self.has_next, next_result)

    def submit(self, fn: Call, value: Any) -> None:
        """Gives a value to a free actor, or to the first that becomes free. Get the result by get_next."""
        if self.has_free():
            self._call(fn, value)
        else:
            self._waiting.append((fn, value))
            self._feed()

    def _call(self, fn: Call, value: Any) -> None:
        """Calls a free actor. If it raises, nothing has changed."""
        actor = self._idle[0]
        ref = fn(actor, value)
        if not isinstance(ref, ObjectRef):
            raise TypeError(f"the function gave {ref!r}: want the reference to a call of the actor")
        self._idle.popleft()
        self._running[ref] = self._submitted, actor
        self._by_number[self._submitted] = ref
        self._submitted += 1

    def _feed(self) -> None:
        """Gives waiting values to free actors. If a call cannot be made, the error is its result. A BaseException that is no Exception, such
        as KeyboardInterrupt, is raised, and the value goes on waiting."""
        while self._idle and self._waiting:
            try:
                self._call(*self._waiting[0])
            except Exception as x:
                self._failed[self._submitted] = x
                self._submitted += 1
            self._waiting.popleft()

    def has_next(self) -> bool:
        """Whether there is a result to come."""
        return bool(self._running or self._failed)

    def get_next(self, timeout: Optional[float] = None, ignore_if_timedout: bool = False) -> Any:
        """Waits for the next result in the order of the calls, and returns it.

        StopIteration if no call is left. TimeoutError after timeout seconds; call get_next again, or let ignore_if_timedout drop
        the result. ValueError after get_next_unordered.
        """
        if not self.has_next():
            raise StopIteration("no more results")
        if self._returned in self._failed:
            raise self._failure(self._returned)
        ref = self._by_number.get(self._returned)
        if ref is None:
            raise ValueError("get_next after get_next_unordered: which result is next is not known any more")
        if timeout is not None and not wait([ref], timeout=timeout)[0]:
            if ignore_if_timedout:
                self._take(ref)
            raise TimeoutError(f"call {self._returned - ignore_if_timedout} of the pool has no result after {timeout} s")
        self._take(ref)
        return get(ref)

    def get_next_unordered(self, timeout: Optional[float] = None, ignore_if_timedout: bool = False) -> Any:
        """Waits for the result that comes first, and returns it. Raises StopIteration and TimeoutError as get_next does. ignore_if_timedout
        does nothing."""
        if not self.has_next():
            raise StopIteration("no more results")
        if self._failed:
            raise self._failure(next(iter(self._failed)))
        ready, _ = wait(list(self._running), timeout=timeout)
        if not ready:
            raise TimeoutError(f"none of the pool's {len(self._running)} calls has a result after {timeout} s")
        self._take(ready[0])
        return get(ready[0])

    def _take(self, ref: ObjectRef[Any]) -> None:
        """Takes or drops a result: its actor is free again."""
        number, actor = self._running.pop(ref)
        self._idle.append(actor)
        try:
            self._feed()
        except BaseException:  # undo it: the result was not taken
            self._idle.remove(actor)
            self._running[ref] = number, actor
            raise
        del self._by_number[number]
        self._returned = max(self._returned, number + 1)

    def _failure(self, number: int) -> Exception:
        """Takes the error of a call that could not be made, and returns it."""
        self._returned = max(self._returned, number + 1)
        return self._failed.pop(number)

    def has_free(self) -> bool:
        """Whether an actor is free and no value waits for one."""
        return bool(self._idle) and not self._waiting

    def pop_idle(self) -> Optional[ActorHandle[Any]]:
        """Removes a free actor from the pool and returns it; None if there is none."""
        return self._idle.popleft() if self.has_free() else None

    def push(self, actor: ActorHandle[Any]) -> None:
        """Adds an actor; ValueError if it is in the pool already."""
        if actor in self._idle or any(actor == a for _, a in self._running.values()):
            raise ValueError(f"{actor!r} is in the pool already")
        self._idle.append(actor)
        self._feed()


class _Results:
    """The results of a map. Unlike a generator it goes on after an error."""

    def __init__(self, has_next: Callable[[], bool], next_result: Callable[[], Any]) -> None:
        self._has_next = has_next
        self._next_result = next_result

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if not self._has_next():
            raise StopIteration
        try:
            return self._next_result()
        except StopIteration as x:  # from the user's code: not the end of the results
            raise RuntimeError("a call of the pool raised StopIteration") from x


__all__ = ["ActorPool"]
