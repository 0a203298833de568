"""Futures of distributed's kind: a key, and what has become of it."""

from __future__ import annotations

import asyncio
import threading
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
    """What the futures of one key share."""

    def __init__(self, ref: ObjectRef[Any]) -> None:
        self.ref = ref
        self.status = PENDING
        self._lock = threading.Lock()
        self._watchers: list[Callable[[], None]] = []  # called once, in any thread: they must not wait

    def begin(self) -> None:
        """Watches the object, without keeping the futures."""
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
        with self._lock:
            if self.status != CANCELLED:
                self.status = status
            watchers, self._watchers = self._watchers, []
        for f in watchers:
            f()

    def watch(self, f: Callable[[], None]) -> None:
        """Calls f at the end, or now."""
        with self._lock:
            if self.status == PENDING:
                self._watchers.append(f)
                return
        f()

    def cancel(self, force: bool) -> None:
        if self.status == PENDING and not _ids.is_put(self.ref._h.id):
            cancel(self.ref, force=force)
        self._end(CANCELLED)


class Source(Protocol):
    """What makes futures: a client (_client.Client)."""

    asynchronous: bool

    def _future(self, key: str, make: Callable[[Connection], ObjectRef[Any]]) -> Future: ...

    def _call_at_end(self, future: Future, fn: Callable[[Future], Any]) -> None: ...


def _nobody() -> Source:
    raise InvalidError("there is no client")


here: Callable[[], Source] = _nobody  # the client of this process; _client says so


class Future:
    """The result of a call, now or later; as an argument of another call, that result.

    status is "pending", "finished", "error" or "cancelled". The result is kept by the node as long as there is a future of its
    key; a call whose futures have gone still runs. Of an asynchronous client, result and exception are to be awaited; so can
    the future itself be.
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
        """The reference to the result, for the functions of mobula itself."""
        return self._state.ref

    def done(self) -> bool:
        """Whether there is a result, or an error, or it was cancelled."""
        return self.status != PENDING

    def cancelled(self) -> bool:
        return self.status == CANCELLED

    def result(self, timeout: Optional[float] = None) -> Any:
        """Waits for the result. The exception of the call is raised; CancelledError if it was cancelled; TimeoutError after
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
            del x  # its traceback has this frame, and so the future

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
        """Waits for the end; gives the call's exception, None if it has a result. CancelledError and TimeoutError are raised,
        as of result."""
        if self.client.asynchronous:
            return asyncio.wait_for(self._exception(), timeout)
        if self.cancelled():
            raise TaskCancelledError(self.key)
        if not wait([self.ref], timeout=timeout)[0]:
            raise GetTimeoutError(f"{self.key} is not done after {timeout} s")
        res = self.ref._h.res
        if res is None or res.kind != m.ERROR:  # only values are forgotten
            return None  # and its value is not read
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
        """Cancels the call, for all futures of its key. force: its process is killed."""
        self._state.cancel(force)

    def add_done_callback(self, fn: Callable[[Future], Any]) -> None:
        """Calls fn with the future at its end, or at once, in a thread of the client's."""
        self.client._call_at_end(self, fn)

    def release(self) -> None:
        """Nothing: the result goes with the last future of its key."""

    def __repr__(self) -> str:
        return f"<Future: {self.status}, key: {self.key}>"

    def _repr_html_(self) -> str:
        return _html.table("Future", {"key": self.key, "status": self.status})

    def __reduce__(self) -> Any:
        return restore_future, (self.key, self.ref)


def restore_future(key: str, ref: ObjectRef[Any]) -> Future:
    """The future found in a value: of the client where it is read."""
    return here()._future(key, lambda c: ref)


__all__ = ["Future", "State"]
