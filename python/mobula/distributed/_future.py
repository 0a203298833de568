"""Futures with the names of distributed.Future."""

from __future__ import annotations

import asyncio
import weakref
from typing import Any, Callable, Generator, Optional, Protocol

from .. import _html, _ids
from .._api import cancel, get, wait
from .._client import Client as Connection
from .._refs import ObjectRef
from .._wire import messages as m
from ..exceptions import GetTimeoutError, InvalidError, TaskCancelledError, original

PENDING, FINISHED, ERROR, CANCELLED = "pending", "finished", "error", "cancelled"


class State:
    """The state that all futures of one key share."""

    def __init__(self, ref: ObjectRef[Any], status: str = PENDING) -> None:
        self.ref = ref
        self.status = status
        self._watchers: list[Callable[[], None]] = []  # called once, in any thread; they must not block

    def begin(self) -> None:
        """Watches the object. It does not keep the state, and so the futures, alive."""
        itself = weakref.ref(self)

        def known() -> None:
            state = itself()
            if state is not None:
                state._known()

        self.ref._c.getter.when_known(self.ref._h, known)

    def _known(self) -> None:
        res = self.ref._h.res
        if self.ref._c.dead is not None:
            status = ERROR
        elif res is not None and res.kind == m.ERROR:
            cancelled = res.err is not None and res.err.code == TaskCancelledError.code
            status = CANCELLED if cancelled else ERROR
        else:
            status = FINISHED
        self._end(status)

    def _end(self, status: str) -> None:
        none: list[Callable[[], None]] = []
        watchers = none
        if self.status != CANCELLED:  # whole
            self.status = status
            watchers = self._watchers
            self._watchers = none
        for f in watchers:
            f()

    def watch(self, f: Callable[[], None]) -> None:
        """Calls f once the call is done, or at once if it is."""
        one = [f]
        if self.status == PENDING:  # whole
            self._watchers += one
            return
        f()

    def cancel(self, force: bool) -> None:
        if self.status == PENDING and not _ids.is_put(self.ref._h.id):
            cancel(self.ref, force=force)
        self._end(CANCELLED)


class Source(Protocol):
    """What a future needs of its client (_client.Client)."""

    asynchronous: bool

    def _future(self, key: str, make: Callable[[Connection], ObjectRef[Any]]) -> Future: ...

    def _call_at_end(self, future: Future, fn: Callable[[Future], Any]) -> None: ...


def _nobody() -> Source:
    raise InvalidError("there is no client")


default_client: Callable[[], Source] = _nobody  # returns the process' default client; _client sets it


class Future:
    """The future of a call. As an argument of another call it is passed as its result.

    status is "pending", "finished", "error" or "cancelled". The node keeps the result as long as there is a future of its key. A
    call runs even if all its futures are deleted. With an asynchronous client, await result() and exception(), or the future itself.
    """

    def __init__(self, client: Source, key: str, state: State) -> None:
        self.client = client
        self.key = key
        self._state = state

    @property
    def status(self) -> str:
        return self._state.status

    @property
    def ref(self) -> ObjectRef[Any]:
        """The ObjectRef of the result, for mobula.get and other functions of package mobula."""
        return self._state.ref

    def done(self) -> bool:
        """Whether the call has a result or an error, or was cancelled."""
        return self.status != PENDING

    def cancelled(self) -> bool:
        """Whether the call was cancelled."""
        return self.status == CANCELLED

    def result(self, timeout: Optional[float] = None) -> Any:
        """Waits for the result and returns it. Raises the call's exception, CancelledError if it was cancelled, and TimeoutError after
        timeout seconds."""
        if self.client.asynchronous:
            return asyncio.wait_for(self._result(), timeout)
        if self.cancelled():
            raise TaskCancelledError(self.key)
        try:
            return get(self.ref, timeout=timeout)
        except BaseException as raised:
            x = original(raised)
        try:
            raise x
        finally:
            del x  # its traceback has this frame, which has the future

    async def _result(self) -> Any:
        if self.cancelled():
            raise TaskCancelledError(self.key)
        try:
            return await self.ref
        except BaseException as raised:
            x = original(raised)
        try:
            raise x
        finally:
            del x

    def exception(self, timeout: Optional[float] = None) -> Any:
        """Waits until the call is done and returns its exception; None if it has a result. Raises CancelledError and TimeoutError as
        result does."""
        if self.client.asynchronous:
            return asyncio.wait_for(self._exception(), timeout)
        if self.cancelled():
            raise TaskCancelledError(self.key)
        if not wait([self.ref], timeout=timeout)[0]:
            raise GetTimeoutError(f"{self.key} is not done after {timeout} s")
        res = self.ref._h.res
        if res is None or res.kind != m.ERROR:  # None: a value that was dropped from the cache
            return None  # without fetching the value
        try:
            get(self.ref)
        except TaskCancelledError:
            raise
        except BaseException as raised:
            return original(raised)
        return None

    async def _exception(self) -> Optional[BaseException]:
        try:
            await self._result()
        except (TaskCancelledError, asyncio.CancelledError):
            raise
        except BaseException as x:
            return x
        return None

    def __await__(self) -> Generator[Any, None, Any]:
        return self._result().__await__()

    def cancel(self, force: bool = False) -> None:
        """Cancels the call, for all futures of its key. force: kills its process."""
        self._state.cancel(force)

    def add_done_callback(self, fn: Callable[[Future], Any]) -> None:
        """Calls fn(future) once the call is done, in a thread of the client."""
        self.client._call_at_end(self, fn)

    def release(self) -> None:
        """Does nothing: the result is freed when the last future of its key is deleted."""

    def __repr__(self) -> str:
        return f"<Future: {self.status}, key: {self.key}>"

    def _repr_html_(self) -> str:
        return _html.table("Future", {"key": self.key, "status": self.status})

    def __reduce__(self) -> Any:
        return restore_future, (self.key, self.ref)


def restore_future(key: str, ref: Any) -> Any:
    """Unpickles a future, as one of the process' default client; pickles name this function. In a task of a Dask graph a value stands in for
    the reference, and also for the future."""
    if not isinstance(ref, ObjectRef):
        return ref
    return default_client()._future(key, lambda c: ref)


__all__ = ["Future", "State"]
