"""References to objects, and to the items of a stream."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Any, AsyncIterator, Generator, Generic, Iterator, Mapping, Optional, TypeVar

from . import _callbacks, _html, _ids, _runtime, _value
from ._client import EVICTED, Client, Found, Handle, Reading, TaskContext, Wanted, answer_error
from ._wire import hot
from ._wire import messages as m
from ._wire.hot import Answer
from .exceptions import GetTimeoutError, MobulaError

T_co = TypeVar("T_co", covariant=True)


class ObjectRef(Generic[T_co]):
    """A reference to an object: the result of a task, which may not have run yet, or a value that was put.

        ref = add.remote(1, 2)
        mobula.get(ref)          # 3; in a coroutine: await ref

    An ObjectRef that is itself an argument of a remote call is passed as its value. Inside another value, such as a list, it
    stays a reference. The object lives as long as any reference to it.
    """

    __slots__ = ("_c", "_h", "__weakref__")

    def __init__(self, client: Client, handle: Handle) -> None:
        self._c = client
        self._h = handle

    def __del__(self) -> None:
        try:
            c, h = self._c, self._h
        except AttributeError:
            return  # __init__ did not run
        c.dropped.append(h)
        if c.reader.quiet:
            c.reader.arm()

    if TYPE_CHECKING:

        def _exactly(self, x: T_co, /) -> T_co: ...  # type: ignore[misc]  # see objects.Exactly

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ObjectRef) and other._h.id == self._h.id

    def __hash__(self) -> int:
        return hash(self._h.id)

    def __repr__(self) -> str:
        return f"ObjectRef({_ids.show_object(self._h.id)})"

    def _repr_html_(self) -> str:
        known = self._h.res
        states = {m.INLINE: "ready", m.STORED: "ready, in the object store", m.ERROR: "failed"}
        state = states.get(known.kind) if known is not None else "not known" if self._h.cost != EVICTED else None
        shown = {"id": _ids.show_object(self._h.id), "state": state or "ready"}
        if known is not None and known.size:
            shown["size"] = _html.size(known.size)
        return _html.table("ObjectRef", shown)

    def hex(self) -> str:
        """The object's id in hexadecimal digits."""
        return self._h.id.hex()

    def binary(self) -> bytes:
        """The object's id as bytes."""
        return self._h.id

    def task_id(self) -> str:
        """The id of the task that makes the object, in hexadecimal digits."""
        return self._h.id[:_ids.TASK].hex()

    @property
    def _mobula_ref(self) -> tuple[bytes, int]:
        return self._h.id, _value.TAG_REF

    def __reduce__(self) -> Any:
        if not _value.found(self):
            self._c.announcer.announce()
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
            del fut, arrived  # the error's traceback keeps this frame, which must not keep a value that may have come
            raise
        finally:
            wait.over()
        return load_found(c, found)  # type: ignore[no-any-return]

    def result(self, timeout: Optional[float] = None) -> T_co:
        """Waits for the object and returns its value. Raises the object's error; GetTimeoutError after timeout seconds."""
        value: T_co = fetch(self, timeout)
        return value

    def future(self) -> concurrent.futures.Future[T_co]:
        """Returns a concurrent.futures.Future that gets the object's value or error."""
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
    """Marks a task as waiting for a callback or a coroutine: its CPU goes to other tasks until over()."""

    __slots__ = ("_task",)

    def __init__(self, c: Client) -> None:
        self._task: Optional[TaskContext] = _runtime.context(c)
        if self._task.waits:
            self._task.block()

    def over(self) -> None:
        """Waits until the task has a CPU again. A second call does nothing."""
        task, self._task = self._task, None
        if task is not None and task.waits:
            task.unblock()


def _arrived(loop: asyncio.AbstractEventLoop, fut: asyncio.Future[Found], found: Found) -> None:
    try:
        loop.call_soon_threadsafe(_settle, fut, found)
    except RuntimeError:
        pass  # the loop has ended, and nobody waits


def _settle(fut: asyncio.Future[Found], found: Found) -> None:
    if not fut.done():
        fut.set_result(found)


def bound(c: Client, id: bytes) -> ObjectRef[Any]:
    """The reference to an object whose id came from another process or from the node."""
    ref: ObjectRef[Any] = ObjectRef(c, Handle(id if len(id) == _ids.OBJECT else _ids.widen(id)))
    c.objects.bind(ref)
    return ref


def made(c: Client, id: bytes, res: Optional[Answer] = None) -> ObjectRef[Any]:
    """The reference to an object that this process makes, with its value if that is known. It is there before its handle is listed: whatever
    cuts the caller off, deleting the reference releases the handle."""
    ref: ObjectRef[Any] = ObjectRef(c, Handle(id))
    c.objects.adopt(ref, res)
    return ref


def fetch(ref: ObjectRef[Any], timeout: Optional[float]) -> Any:
    """Waits for an object and returns its value."""
    c = ref._c
    res, reading = c.getter.fetch_one(ref._h, None if timeout is None else time.monotonic() + timeout, _runtime.current.get() or c.fallback)
    return load(c, res, reading)


def load_found(c: Client, found: Found) -> Any:
    """Returns the value that Getter.when has delivered, or raises the error."""
    c.check()
    assert found is not None  # it is None only if the client is dead, and check has raised
    return load(c, *found)


def load(c: Client, res: Answer, reading: Optional[Reading], own: bool = False) -> Any:
    """Returns the value of an answer, or raises its error. own: arrays are writable copies instead of views of the store."""
    decode = _value.decode_own if own else _value.decode
    if res.kind == m.INLINE:
        return decode(res.meta, res.data)
    if res.kind == m.ERROR:
        raise answer_error(res)
    assert reading is not None
    return decode(res.meta, c.view(res, reading))


def restore_ref(id: bytes) -> Any:
    """Unpickles a reference; pickles name this function. Inside resolving it gives the value that stands in for it."""
    known = _standing.values
    if known and id in known:
        return known[id]
    return bound(_runtime.client(), id)


class _Standing(threading.local):
    values: Mapping[bytes, Any] = {}


_standing = _Standing()


@contextlib.contextmanager
def resolving(values: Mapping[bytes, Any]) -> Iterator[None]:
    """Within it, this thread unpickles the references in values as their values."""
    before, _standing.values = _standing.values, values
    try:
        yield
    finally:
        _standing.values = before


class ObjectRefGenerator(Generic[T_co]):
    """Iterates over the references to a stream's items, as the task yields them; also with async for.

        for ref in numbers.remote(10):
            print(mobula.get(ref))

    If the task fails, its error is raised after the items that it yielded. When the generator is deleted before the
    stream's end, as when a loop breaks, the task is cancelled.
    """

    def __init__(self, client: Client, task: bytes) -> None:
        self._over = True
        self._client = client
        self._task = task
        self._next = 0
        self._out = client.out
        self._read = client.streams.read
        self._own = {task}
        self._bye = iter((hot.release([_ids.stream_id(task)]),))
        self._wanted: Optional[Wanted] = None  # the request for the next item
        if self._over:  # whole
            self._over = False
            self._read |= self._own  # before the task is submitted: a node that restarts ends streams without a reader

    def __iter__(self) -> Iterator[ObjectRef[T_co]]:
        return self

    def __next__(self) -> ObjectRef[T_co]:
        return self.next(None)

    def next(self, timeout: Optional[float] = None) -> ObjectRef[T_co]:
        """Returns the next item's reference. StopIteration at the end; GetTimeoutError after timeout seconds, and next can be called again."""
        if self._over:
            raise StopIteration
        c = self._client
        until = None if timeout is None else time.monotonic() + timeout
        try:
            w = self._want()
            if not c.wait(w, until, _runtime.context(c)):
                raise GetTimeoutError(f"item {w.index} of the stream did not come in time; ask again")
        except BaseException as x:
            self._leave(x)
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
        try:
            w = self._want()
            c.streams.when_item(w, partial(_arrived, loop, fut, None))
            await fut
            if w.left > 0:
                c.check()
        except BaseException as x:
            self._leave(x)
            raise
        ref = self._take(w)
        if ref is None:
            raise StopAsyncIteration
        return ref

    def _want(self) -> Wanted:
        """Requests the next item, unless it is requested already."""
        self._client.check()
        w = self._wanted
        return w if w is not None else self._client.streams.want(self, self._task, self._next)

    def _leave(self, why: BaseException) -> None:
        """Ends a wait for an item. The next wait gets it, even if it has come by now."""
        w = self._wanted
        if w is not None:
            w.then = None
        if isinstance(why, MobulaError) and not isinstance(why, GetTimeoutError):
            self._end()

    def _take(self, w: Wanted) -> Optional[ObjectRef[T_co]]:
        """Takes the item that has come, and returns its reference; None at the end."""
        x = w.slot
        if isinstance(x, Handle):
            ref: ObjectRef[T_co] = ObjectRef(self._client, Handle(x.id))
            if w.slot is x:  # whole: the share of the handle passes to the reference
                w.slot = None
                ref._h = x
                self._wanted = None
                self._next += 1
            return ref
        self._wanted = None
        why = answer_error(x) if x is not None else None  # first: the owner keeps what the error refers to until the end
        self._end()
        try:
            if why is not None:
                raise why
            return None
        finally:
            del why  # its traceback has this frame: a cycle

    def _end(self) -> None:
        """Reads no further, and tells the owner, which keeps the stream until then."""
        c = self._client
        if not self._over:  # whole
            self._over = True
            self._read -= self._own
            if c.dead is None:
                self._out += self._bye
        if c.reader.quiet:
            c.reader.arm()

    def task_id(self) -> str:
        """The id of the task that yields the items, in hexadecimal digits."""
        return self._task.hex()

    def close(self) -> None:
        """Ends the stream. A task that still runs is cancelled."""
        w, self._wanted = self._wanted, None
        if w is not None:
            self._client.streams.forget(w)
        self._end()

    def __del__(self) -> None:
        try:
            c = self._client
            if not self._over:  # whole: as _end does, which a signal could cut off before it began
                self._over = True
                self._read -= self._own
                if c.dead is None:
                    self._out += self._bye
            self.close()
        except Exception:
            pass  # the process is ending, or __init__ did not run


__all__ = ["ObjectRef", "ObjectRefGenerator", "bound", "fetch", "load", "load_found", "made", "restore_ref"]
