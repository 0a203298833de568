"""Client and get_client."""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import ItemsView, KeysView, ValuesView
from functools import partial
from typing import Any, Callable, Generator, Iterable, Iterator, Mapping, Optional, Union

from .. import _runtime
from .._api import get, init, put
from .._api.connecting import leave
from .._api.state import html
from .._call import Caller, call, label
from .._callbacks import CallbackThread
from .._client import Client as Connection
from .._containers import MISSING
from .._executor import Executor
from .._refs import ObjectRef
from ..exceptions import InvalidError, ShutdownError, original
from . import _future
from ._future import CANCELLED, FINISHED, Future, State
from ._keys import function_name, token, unique
from ._nested import call_with, put_in, take_out


class Client:
    """Submits functions to a node, with the names of distributed.Client.

        with Client() as client:
            print(client.submit(pow, 2, 10).result())

    address, options: as of mobula.init. By default it uses the connection that the process has, or else makes one. A client
    that has made the connection ends it on close, or at the end of its with block. A closed client submits nothing. If the
    connection goes on, its futures are still done, and their callbacks called. InvalidError for an address or options if there is a
    connection already.

    asynchronous: for coroutines, as in `async with Client(asynchronous=True) as client`. gather, scatter, cancel, close, and the
    futures' result and exception are awaited then; submit and map return futures at once as ever.
    """

    def __init__(self, address: Optional[str] = None, *, asynchronous: bool = False, **options: Any) -> None:
        self.asynchronous = asynchronous
        self._connect: Optional[Callable[[], Any]] = None
        if _runtime.state.client is None:
            self._connect = partial(init, address, **options)
        elif address is not None or options:
            raise InvalidError("there is a connection already: Client() uses it; or call mobula.shutdown() first")
        self._made: Optional[Connection] = None  # the connection, if this client has made it
        self._closed = False
        self._connecting = threading.RLock()  # all of them: a finaliser may use the client while this thread is in it
        self._making = threading.RLock()
        self._states: weakref.WeakValueDictionary[str, State] = weakref.WeakValueDictionary()
        self._callers: dict[Any, Caller] = {}
        self._calling = threading.RLock()
        self._callbacks: dict[object, Future] = {}  # callbacks still to come; they keep their futures
        self._thread = CallbackThread("mobula-distributed")
        if not asynchronous:
            self._connected()

    def _connected(self) -> Connection:
        """The connection, which is made on first use. ShutdownError if the client was closed or the connection has ended."""
        with self._connecting:
            if self._closed:
                raise ShutdownError("this client was closed: make another Client")
            connect, self._connect = self._connect, None
            if connect is not None:
                connect()
                self._made = _runtime.state.client
            c = _runtime.state.client
            if c is None or self._made not in (None, c):
                raise ShutdownError("the connection of this client was ended: make another Client")
            return c

    def _usable(self) -> bool:
        c = _runtime.state.client
        return not self._closed and c is not None and self._made in (None, c)

    # ---- calls

    def submit(self, func: Callable[..., Any], /, *args: Any, key: Optional[str] = None, workers: None = None,
               resources: Optional[Mapping[str, float]] = None, retries: Optional[int] = None, priority: float = 0,
               fifo_timeout: Any = None, allow_other_workers: bool = False, actor: bool = False, actors: bool = False,
               pure: bool = True, **kwargs: Any) -> Future:
        """Submits func(*args, **kwargs) and returns its future. Futures in the arguments are passed as their results, also inside
        containers: lists, tuples, sets, dicts with their keys, deques, named tuples and other subclasses of these, dataclasses. The call fails
        with the error of a future that fails, and is cancelled with one that is cancelled.

        key: names the call. While there is a future with the same key, submit returns its result and does not call again. By
        default the key follows from the function and its arguments; with pure=False it is unique. resources: amounts by name, such as
        "CPU" (1 by default), "GPU", "memory" (bytes), or a resource of the node. retries: how often the function is called
        again if it raises; workers that die are counted apart. priority and fifo_timeout are accepted and do nothing: calls of one
        class run in the order in which they were submitted. InvalidError for workers, allow_other_workers, actor and actors.
        """
        _refuse(workers=workers, allow_other_workers=allow_other_workers, actor=actor, actors=actors)
        return self._submit(func, func, args, kwargs, key, resources, retries, pure)

    def _submit(self, func: Callable[..., Any], once: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], key: Optional[str],
                resources: Optional[Mapping[str, float]], retries: Optional[int], pure: bool) -> Future:
        """Submits a call. once: the function, or a reference to it."""
        futures: list[Future] = []
        plain_args, plain_kwargs = take_out(args, futures), take_out(kwargs, futures)
        if key is None:
            name = function_name(func)
            key = f"{name}-" + (token(func, plain_args, plain_kwargs, [f.key for f in futures]) if pure else unique())

        dropped = next((f for f in futures if f.cancelled()), None)
        if dropped is not None:
            return Future(self, key, State(dropped.ref, CANCELLED))

        def submitted(c: Connection) -> ObjectRef[Any]:
            caller = self._caller(c, resources, retries)
            if not futures:
                return caller.submit(once, args, kwargs, label(func))
            values = [f.ref for f in futures]
            return caller.submit(call_with, (once, plain_args, plain_kwargs, *values), {}, label(func))

        return self._future(key, submitted)

    def map(self, func: Callable[..., Any], /, *iterables: Iterable[Any], key: Union[str, Iterable[str], None] = None,
            workers: None = None, resources: Optional[Mapping[str, float]] = None, retries: Optional[int] = None,
            priority: float = 0, fifo_timeout: Any = None, allow_other_workers: bool = False, actor: bool = False,
            actors: bool = False, pure: bool = True, batch_size: Optional[int] = None, **kwargs: Any) -> list[Future]:
        """Submits func for each row of the iterables, and returns the futures in order.

        key: a prefix of the keys, or a list of keys. The other arguments are as of submit; batch_size is accepted and does nothing.
        """
        _refuse(workers=workers, allow_other_workers=allow_other_workers, actor=actor, actors=actors)
        rows = list(zip(*iterables))
        keys: list[Optional[str]] = [None] * len(rows)
        if isinstance(key, str):
            keys = [f"{key}-{token(func, row, kwargs) if pure else unique()}" for row in rows]
        elif key is not None:
            keys = list(key)
            if len(keys) != len(rows):
                raise InvalidError(f"{len(keys)} keys for {len(rows)} calls")
        once = self._caller(self._connected(), resources, retries).shared(func) if rows else func
        return [self._submit(func, once, row, kwargs, k, resources, retries, pure) for row, k in zip(rows, keys)]

    def _caller(self, c: Connection, resources: Optional[Mapping[str, float]], retries: Optional[int]) -> Caller:
        """The Caller for calls with such options."""
        what = tuple(sorted((resources or {}).items())), retries
        caller = self._callers.get(what)
        if caller is None or caller.client is not c:
            caller = self._callers[what] = Caller(c, _options(resources, retries), call)
        return caller

    def _future(self, key: str, make: Callable[[Connection], ObjectRef[Any]]) -> Future:
        """A future of the key. make submits the call or puts the data, unless there is a future of the key."""
        c = self._connected()
        with self._making:
            state = self._states.get(key)
            if state is None or state.status == CANCELLED or state.ref._c is not c:
                state = self._states[key] = State(make(c))
                state.begin()
        return Future(self, key, state)

    def _call_at_end(self, future: Future, fn: Callable[[Future], Any]) -> None:
        this = object()
        with self._calling:
            self._callbacks[this] = future

        def run() -> None:
            try:
                fn(future)
            finally:
                with self._calling:
                    del self._callbacks[this]
                    self._let_thread_end()

        future._state.watch(lambda: self._thread.put(run))

    def _let_thread_end(self) -> None:
        """Ends the thread of a closed client if no callback is to come. A later callback gets another thread."""
        if self._closed and not self._callbacks:
            self._thread.end()
            self._thread = CallbackThread("mobula-distributed")

    # ---- data

    def scatter(self, data: Any, broadcast: bool = False, hash: bool = True, workers: None = None) -> Any:
        """Puts data into the object store, and returns futures. Each item of a list, tuple or set, or each value of a dict, is put by
        itself, and the futures have the same shape; anything else is put as one value.

        hash: puts data of the same content once. broadcast is accepted and does nothing: all workers of a node share its store.
        """
        _refuse(workers=workers)
        if self.asynchronous:
            return asyncio.to_thread(self._scatter, data, hash)
        return self._scatter(data, hash)

    def _scatter(self, data: Any, hash: bool) -> Any:
        cls = type(data)
        if cls in (list, tuple, set, frozenset):
            return cls([self._one(x, hash) for x in data])
        if cls is dict:
            return {k: self._one(x, hash) for k, x in data.items()}
        return self._one(data, hash)

    def _one(self, x: Any, hash: bool) -> Future:
        key = f"{type(x).__name__}-{token(x) if hash else unique()}"
        return self._future(key, lambda c: put(x))

    def gather(self, futures: Any, errors: str = "raise", direct: Optional[bool] = None) -> Any:
        """Returns the results of futures in the same shape of containers, as submit knows them; those of an iterator or a view of a dict
        as a list.

        errors: "raise" raises the exception of the first that failed, "skip" leaves those out; a field of a named tuple or a
        dataclass is None then. direct is accepted and does nothing.
        """
        if errors not in ("raise", "skip"):
            raise InvalidError(f'errors={errors!r}: want "raise" or "skip"')
        found: list[Future] = []
        shape = take_out(_listed(futures), found)
        if self.asynchronous:
            return self._gather_async(shape, found, errors)
        if errors == "skip":
            return _shaped(shape, [_attempt(f) for f in found])
        for f in found:
            if f.cancelled():
                f.result()
        try:
            return _shaped(shape, get([f.ref for f in found]))
        except BaseException as x:
            error = original(x)
        try:
            raise error
        finally:
            del error  # its traceback has this frame, which has the futures

    async def _gather_async(self, shape: Any, found: list[Future], errors: str) -> Any:
        values: list[Any] = await asyncio.gather(*[f._result() for f in found], return_exceptions=errors == "skip")
        return _shaped(shape, [MISSING if isinstance(v, BaseException) and f.status != FINISHED else v
                               for f, v in zip(found, values)])

    def cancel(self, futures: Any, force: bool = False) -> Any:
        """Cancels the calls of futures, in any containers. force: kills their processes."""
        found: list[Future] = []
        take_out(_listed(futures), found)
        for f in found:
            f.cancel(force)
        return _nothing() if self.asynchronous else None

    # ---- executor and connection

    def get_executor(self, **options: Any) -> Executor:
        """Returns a concurrent.futures executor on the same node. options: those of mobula.Executor."""
        self._connected()
        return Executor(**options)

    def close(self) -> Any:
        """Takes no more calls, and ends the connection if this client has made it. A second call does nothing."""
        if self.asynchronous:
            return asyncio.to_thread(self._close)
        return self._close()

    def _close(self) -> None:
        with self._connecting:
            if self._closed:
                return
            self._closed = True
        with self._calling:
            self._let_thread_end()
        if self._made is not None:
            leave(self._made)

    def __enter__(self) -> Client:
        if self.asynchronous:
            raise InvalidError("this client is asynchronous: use `async with`")
        return self

    def __exit__(self, *exc: object) -> None:
        self._close()

    def __await__(self) -> Generator[Any, None, Client]:
        return self.__aenter__().__await__()

    async def __aenter__(self) -> Client:
        await asyncio.to_thread(self._connected)
        return self

    async def __aexit__(self, *exc: object) -> None:
        await asyncio.to_thread(self._close)

    def __repr__(self) -> str:
        c = _runtime.state.client
        return f"<Client: {'closed' if self._closed else c.address if c is not None else 'not connected'}>"

    def _repr_html_(self) -> str:
        return html()


def _refuse(**given: Any) -> None:
    for name, value in given.items():
        if value:
            raise InvalidError(f"{name}={value!r}: this client has no {name}; say what a call needs in resources")


def _options(resources: Optional[Mapping[str, float]], retries: Optional[int]) -> dict[str, Any]:
    """The options of a task."""
    others = dict(resources or {})
    options: dict[str, Any] = {"num_cpus": others.pop("CPU", None), "num_gpus": others.pop("GPU", None),
                               "memory": others.pop("memory", None), "resources": others or None}
    if retries:
        options.update(_exception_retries=retries, retry_exceptions=True)
    return {k: v for k, v in options.items() if v is not None}


def _attempt(f: Future) -> Any:
    try:
        return f.result()
    except Exception:
        return MISSING


def _listed(x: Any) -> Any:
    """x, with a list in place of a view of a dict, or of an iterator, whose items are read once."""
    return [*x] if isinstance(x, (KeysView, ValuesView, ItemsView, Iterator)) else x


def _shaped(shape: Any, values: list[Any]) -> Any:
    """The shape with values in its slots. Slots whose value is missing are left out."""
    filled = put_in(shape, values)
    return None if filled is MISSING else filled


async def _nothing() -> None:
    pass


_default: Optional[Client] = None
_default_lock = threading.RLock()


def get_client() -> Client:
    """Returns the process' default client, also in a task. It uses the process' connection, or makes one. It is made again if it was closed
    or its connection has ended."""
    global _default
    with _default_lock:
        if _default is None or not _default._usable():
            _default = Client()
        return _default


_future.default_client = get_client

__all__ = ["Client", "get_client"]
