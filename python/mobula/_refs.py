"""References: to objects, to the items of a stream."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Any, AsyncIterator, Generator, Generic, Iterator, Mapping, Optional, TypeVar

from . import _callbacks, _html, _ids, _runtime, _value
from ._client import FORGOTTEN, Client, Found, Handle, Reading, TaskContext, Wanted, answer_error
from ._wire import hot
from ._wire import messages as m
from ._wire.hot import Answer
from .exceptions import GetTimeoutError, MobulaError

T_co = TypeVar("T_co", covariant=True)


class ObjectRef(Generic[T_co]):
    """Names an object: a task's result, now or later, or a value that was put.

    It can be an argument, which is passed as its value, and lie inside values, where it stays a reference. The object lives as
    long as a reference to it does. In a coroutine it can be awaited.
    """

    __slots__ = ("_c", "_h", "__weakref__")

    def __init__(self, client: Client, handle: Handle) -> None:
        self._c = client
        self._h = handle

    def __del__(self) -> None:
        try:
            c, h = self._c, self._h
        except AttributeError:
            return  # it was never made
        c.dropped.append(h)
        if c.reader.quiet:
            c.reader.arm()

    if TYPE_CHECKING:

        def _exactly(self, x: T_co, /) -> T_co: ...  # type: ignore[misc]  # by which get tells values of one type from those of several

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ObjectRef) and other._h.id == self._h.id

    def __hash__(self) -> int:
        return hash(self._h.id)

    def __repr__(self) -> str:
        return f"ObjectRef({_ids.show_object(self._h.id)})"

    def _repr_html_(self) -> str:
        known = self._h.res
        states = {m.INLINE: "ready", m.STORED: "ready, in the object store", m.ERROR: "failed"}
        state = states.get(known.kind) if known is not None else "not known" if self._h.cost != FORGOTTEN else None
        shown = {"id": _ids.show_object(self._h.id), "state": state or "ready"}
        if known is not None and known.size:
            shown["size"] = _html.size(known.size)
        return _html.table("ObjectRef", shown)

    def hex(self) -> str:
        return self._h.id.hex()

    def binary(self) -> bytes:
        return self._h.id

    def task_id(self) -> str:
        return self._h.id[:_ids.TASK].hex()

    @property
    def _mobula_ref(self) -> tuple[bytes, int]:
        return self._h.id, _value.TAG_REF

    def __reduce__(self) -> Any:
        _value.found(self)
        return restore_ref, (self._h.id,)

    def __await__(self) -> Generator[Any, None, T_co]:
        loop = asyncio.get_running_loop()
        c, h = self._c, self._h
        fut: asyncio.Future[Found] = loop.create_future()

        arrived = partial(_arrived, loop, fut)
        wait = TaskWait(c)
        c.getter.when(h, arrived)
        try:
            found = yield from fut.__await__()
        except BaseException:
            c.getter.withdraw(h, arrived)
            del fut, arrived  # what came all the same must not live as long as the error does, whose traceback has this frame
            raise
        finally:
            wait.over()
        return load_found(c, found)  # type: ignore[no-any-return]

    def result(self, timeout: Optional[float] = None) -> T_co:
        """Waits for the object and gives its value, as a future's result."""
        value: T_co = fetch(self, timeout)
        return value

    def future(self) -> concurrent.futures.Future[T_co]:
        """A future of concurrent.futures with the object's value or error."""
        fut: concurrent.futures.Future[T_co] = concurrent.futures.Future()
        c, h = self._c, self._h
        wait = TaskWait(c)

        def settle(found: Found, ref: Any = self) -> None:
            wait.over()
            try:
                value = load_found(c, found)
            except BaseException as x:
                if fut.set_running_or_notify_cancel():
                    fut.set_exception(x)
                return
            if fut.set_running_or_notify_cancel():
                fut.set_result(value)

        c.getter.when(h, lambda found: _callbacks.shared.put(partial(settle, found)))
        return fut


class TaskWait:
    """What was asked to be told of counts as a wait of the task that asked: its CPU is for others until then."""

    __slots__ = ("_task",)

    def __init__(self, c: Client) -> None:
        self._task: Optional[TaskContext] = _runtime.context(c)
        if self._task.waits:
            self._task.block()

    def over(self) -> None:
        """Goes on as soon as there is a CPU; a second time it does nothing."""
        task, self._task = self._task, None
        if task is not None and task.waits:
            task.unblock()


def _arrived(loop: asyncio.AbstractEventLoop, fut: asyncio.Future[Found], found: Found) -> None:
    try:
        loop.call_soon_threadsafe(_settle, fut, found)
    except RuntimeError:
        pass  # the loop has ended, and with it who waited


def _settle(fut: asyncio.Future[Found], found: Found) -> None:
    if not fut.done():
        fut.set_result(found)


def bound(c: Client, id: bytes) -> ObjectRef[Any]:
    """The reference to an object that another process, or an answer of the node, has named."""
    return ObjectRef(c, c.objects.bind(id))


def fetch(ref: ObjectRef[Any], timeout: Optional[float]) -> Any:
    """Waits for an object, and gives its value."""
    c = ref._c
    res, reading = c.getter.fetch_one(ref._h, None if timeout is None else time.monotonic() + timeout, _runtime.current.get() or c.fallback)
    return load(c, res, reading)


def load_found(c: Client, found: Found) -> Any:
    """The value that Getter.when has brought, or the error raised."""
    c.check()
    assert found is not None  # it is None only of a dead client's
    return load(c, *found)


def load(c: Client, res: Answer, reading: Optional[Reading], own: bool = False) -> Any:
    """The value, or the error raised. own: arrays are the caller's, not the store's."""
    decode = _value.decode_own if own else _value.decode
    if res.kind == m.INLINE:
        return decode(res.meta, res.data)
    if res.kind == m.ERROR:
        raise answer_error(res)
    assert reading is not None
    return decode(res.meta, c.view(res, reading))


def restore_ref(id: bytes) -> Any:
    """The reference found in a value, or what stands in for it just now."""
    known = _standing.values
    if known and id in known:
        return known[id]
    return bound(_runtime.client(), id)


class _Standing(threading.local):
    values: Mapping[bytes, Any] = {}


_standing = _Standing()


@contextlib.contextmanager
def resolving(values: Mapping[bytes, Any]) -> Iterator[None]:
    """While it is open, this thread unpickles references as the values given for them."""
    before, _standing.values = _standing.values, values
    try:
        yield
    finally:
        _standing.values = before


class ObjectRefGenerator(Generic[T_co]):
    """The references to a stream's items, one after the other, as they are produced; also with async for.

    A loop that is left early ends the task when the generator goes. An error of the task is raised where it ended the stream.
    """

    def __init__(self, client: Client, task: bytes) -> None:
        self._client = client
        self._task = task
        self._next = 0
        self._wanted: Optional[Wanted] = None  # the next item, if somebody who waited for it has left
        self._over = False
        client.streams.read.add(task)  # before it is submitted: a node that has restarted ends those that nobody reads

    def __iter__(self) -> Iterator[ObjectRef[T_co]]:
        return self

    def __next__(self) -> ObjectRef[T_co]:
        return self.next(None)

    def next(self, timeout: Optional[float] = None) -> ObjectRef[T_co]:
        """The next item's reference; StopIteration at the end, GetTimeoutError if it does not come in time: ask again."""
        if self._over:
            raise StopIteration
        c = self._client
        until = None if timeout is None else time.monotonic() + timeout
        w = None
        try:
            w = self._want()
            if not c.wait(w, until, _runtime.context(c)):
                raise GetTimeoutError(f"item {w.index} of the stream did not come in time; ask again")
        except BaseException as x:
            self._leave(w, x)
            raise
        ref = self._take(w)
        if ref is None:
            raise StopIteration
        return ref

    def __aiter__(self) -> AsyncIterator[ObjectRef[T_co]]:
        return self

    async def __anext__(self) -> ObjectRef[T_co]:
        if self._over:
            raise StopAsyncIteration
        c = self._client
        loop = asyncio.get_running_loop()
        fut: asyncio.Future[Found] = loop.create_future()
        w = None
        try:
            w = self._want()
            c.streams.when_item(w, partial(_arrived, loop, fut, None))
            await fut
            if w.left > 0:
                c.check()
        except BaseException as x:
            self._leave(w, x)
            raise
        ref = self._take(w)
        if ref is None:
            raise StopAsyncIteration
        return ref

    def _want(self) -> Wanted:
        """Asks for the next item, unless it was asked for already."""
        self._client.check()
        w, self._wanted = self._wanted, None
        return w if w is not None and w.index == self._next else self._client.streams.want(self._task, self._next)

    def _leave(self, w: Optional[Wanted], why: BaseException) -> None:
        """Who waited for an item waits no longer: it is for who asks next, also if it has come."""
        if w is not None:
            w.then = None
        self._wanted = w
        if isinstance(why, MobulaError) and not isinstance(why, GetTimeoutError):
            self._end()

    def _take(self, w: Wanted) -> Optional[ObjectRef[T_co]]:
        """The reference to the item that is there; None at the end."""
        x = w.take()
        if isinstance(x, Handle):
            self._next += 1
            return ObjectRef(self._client, x)
        self._end()
        try:
            if x is not None:
                raise x
            return None
        finally:
            del x  # its traceback has this frame

    def _end(self) -> None:
        self._over = True
        self._client.streams.read.discard(self._task)

    def task_id(self) -> str:
        return self._task.hex()

    def close(self) -> None:
        """Ends the stream: a task that still produces is cancelled."""
        w, self._wanted = self._wanted, None
        if w is not None:
            self._client.streams.forget(w)
        if not self._over:
            self._end()
            c = self._client
            if c.dead is None:
                c.send(hot.release([_ids.stream_id(self._task)]))

    def __del__(self) -> None:
        try:
            self.close()
        except Exception:
            pass  # the process is ending


__all__ = ["ObjectRef", "ObjectRefGenerator", "bound", "fetch", "load", "load_found", "restore_ref"]
