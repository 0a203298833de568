"""mobula.Executor: concurrent.futures over tasks.

Only a bounded number of calls is at the node: as many as may run at once. Where the node's CPUs bound that number anyway,
twice as many are sent, so that no worker waits for its next call. All other calls wait here, where a cancel always succeeds.
Results are handled in a thread of the executor: callbacks may be slow, and may block.
"""

from __future__ import annotations

import atexit
import itertools
import logging
import multiprocessing
import threading
import time
import uuid
import weakref
from collections import deque
from concurrent import futures
from concurrent.futures import BrokenExecutor, Future
from functools import partial
from typing import Any, Callable, Iterable, Iterator, Optional, ParamSpec, TypeVar

from . import _runtime
from ._api import cluster_resources
from ._call import Caller, PackedCall, label
from ._callbacks import CallbackThread
from ._client import Found
from ._functions import calls_user_code
from ._initialized import Globals
from ._refs import ObjectRef, TaskWait, load_found
from ._said import named
from .exceptions import InvalidError, MobulaError, TaskError, original, without_cause

P = ParamSpec("P")
T = TypeVar("T")

Plain = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]  # a call: function, arguments, keyword arguments

resolvers: list[Callable[[Callable[..., Any], tuple[Any, ...], dict[str, Any]], Plain]] = []  # mobula.distributed adds its own, for futures as arguments

_TICK = 0.001  # the smallest share of a CPU that a task can ask for


class Executor(futures.Executor):
    """A concurrent.futures executor whose calls are tasks on the node.

        with mobula.Executor(max_workers=8) as ex:
            squares = list(ex.map(square, range(1000), chunksize=50))

    max_workers: how many calls run at once; by default the node's number of CPUs. If it is larger, each call asks for a
    fraction of a CPU, so that all of them run.
    initializer, initargs: each worker process calls initializer(*initargs) before its first call of this executor. If that raises, the
    executor is broken. The calls see the global variables that it has set, and the data in those that it uses.
    options: the options of @mobula.remote for each call, such as num_cpus, memory, resources, max_retries, retry_exceptions
    and timeout, but not num_returns.

    When a worker dies, its call loses an attempt and the executor goes on. A future raises the function's own exception, whose
    cause has the remote traceback. Arguments are pickled by submit; the future has the error if that fails. An ObjectRef
    that is itself an argument is passed as its value, and so are futures of mobula.distributed, also inside containers. A future
    counts as running once its call is at the node, even if it waits there.
    """

    def __init__(self, max_workers: Optional[int] = None, *, initializer: Optional[Callable[..., object]] = None,
                 initargs: tuple[Any, ...] = (), **options: Any) -> None:
        if max_workers is not None and max_workers <= 0:
            raise ValueError(f"max_workers must be greater than 0, got {max_workers}")
        if initializer is not None and not callable(initializer):
            raise TypeError(f"initializer must be callable, got {initializer!r}")
        if "num_returns" in options:
            raise InvalidError("num_returns is no option of an Executor: each call has one result")
        client = _runtime.client()
        cpus = max(cluster_resources().get("CPU", 0.0), _TICK)
        self._max_workers: int = max_workers or max(1, int(cpus))
        share = options.get("num_cpus")
        if share is None:
            share = 1 if self._max_workers <= cpus else max(_TICK, int(1000 * cpus / self._max_workers) / 1000)
            options["num_cpus"] = share
        # If max_workers calls use up the CPUs, the node itself holds the others back.
        full = share * (self._max_workers + 1) > cpus
        caller = Caller(client, {"num_returns": 1, **options}, _Runner(initializer, initargs))
        self._calls = _Calls(caller, self._max_workers * (2 if full else 1))
        _live.add(self._calls)
        weakref.finalize(self, self._calls.close, False).atexit = False

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Submits fn(*args, **kwargs) as a task and returns its future.

        Raises RuntimeError after shutdown, and BrokenExecutor if the node is gone or an initializer has failed.
        """
        return self._calls.submit(fn, args, kwargs, label(fn))

    def map(self, fn: Callable[..., T], *iterables: Iterable[Any], timeout: Optional[float] = None, chunksize: int = 1,
            buffersize: Optional[int] = None) -> Iterator[T]:
        """Returns an iterator over fn's results for the rows of the iterables, in order. Each task makes chunksize calls.

        timeout: seconds from this call; the iterator raises TimeoutError for a result that is not there by then. buffersize:
        how many chunks are submitted ahead of the one that is taken; by default all of them.
        """
        if chunksize < 1:
            raise ValueError(f"chunksize must be >= 1, got {chunksize}")
        if buffersize is not None:
            if not isinstance(buffersize, int):
                raise TypeError(f"buffersize must be an integer or None, got {buffersize!r}")
            if buffersize < 1:
                raise ValueError(f"buffersize must be None or > 0, got {buffersize}")
        until = None if timeout is None else time.monotonic() + timeout
        rows = zip(*iterables)
        name, once = label(fn), self._calls.caller.shared(fn)
        if chunksize == 1:
            return _results((self._calls.submit(once, row, {}, name) for row in rows), until, buffersize)
        chunks = iter(lambda: tuple(itertools.islice(rows, chunksize)), ())
        lists = _results((self._calls.submit(_chunk, (once, chunk), {}, name) for chunk in chunks), until, buffersize)
        return _flat(lists)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Takes no more calls. wait: returns once all calls are done. cancel_futures: cancels the calls that are not at the node yet."""
        self._calls.close(cancel_futures)
        if wait:
            self._calls.join()

    def terminate_workers(self) -> None:
        """Shuts down at once: cancels waiting calls, and interrupts running ones as mobula.cancel does."""
        self._calls.close(True)
        self._calls.cancel_running(False)

    def kill_workers(self) -> None:
        """Shuts down at once: cancels waiting calls, and kills running ones as mobula.cancel(force=True) does."""
        self._calls.close(True)
        self._calls.cancel_running(True)


@calls_user_code
def _chunk(fn: Callable[..., T], rows: Iterable[tuple[Any, ...]]) -> list[T]:
    return [fn(*row) for row in rows]


def _results(submitted: Iterator[Future[Any]], until: Optional[float], ahead: Optional[int]) -> Iterator[Any]:
    """Submits the first calls, all of them if ahead is None, and returns the iterator over the results."""
    return _take(deque(itertools.islice(submitted, ahead)), submitted, until)


def _take(fs: deque[Future[Any]], submitted: Iterator[Future[Any]], until: Optional[float]) -> Iterator[Any]:
    try:
        while fs:
            fs.extend(itertools.islice(submitted, 1))
            # Hold neither the future nor its result while the caller uses the result.
            yield _result_or_cancel(fs, until)
    finally:
        for f in fs:
            f.cancel()


def _result_or_cancel(fs: deque[Future[Any]], until: Optional[float]) -> Any:
    f = fs.popleft()
    try:
        return f.result(None if until is None else until - time.monotonic())
    finally:
        f.cancel()
        del f


def _flat(lists: Iterator[list[T]]) -> Iterator[T]:
    for values in lists:
        values.reverse()
        while values:
            yield values.pop()


# ---- in the worker


class _InitializerError(Exception):
    """The initializer of a worker process failed."""


class _Runner:
    """The function that an executor's tasks run. A worker process loads one per executor."""

    def __init__(self, initializer: Optional[Callable[..., object]], initargs: tuple[Any, ...], identity: str = "") -> None:
        self.__qualname__ = "Executor"
        self._initializer = initializer
        self._initargs = initargs
        self._identity = identity or (uuid.uuid4().hex if initializer is not None else "")
        self._lock = threading.RLock()
        self._failed: Optional[str] = None
        self._globals: Optional[Globals] = None
        self._ready = initializer is None

    @calls_user_code
    def __call__(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        if not self._ready:
            self._initialize()
        if self._globals is not None:
            self._globals.share(args[0] if fn is _chunk else fn)
        return fn(*args, **kwargs)

    def _initialize(self) -> None:
        with self._lock:
            if self._failed is not None:
                raise _InitializerError(self._failed)
            if self._ready or self._initializer is None:
                return
            own = Globals(self._initializer)
            try:
                self._initializer(*self._initargs)
            except BaseException as x:
                logging.getLogger("concurrent.futures").critical("Exception in initializer:", exc_info=True)
                self._failed = f"the initializer of a worker process failed: {named(x)}"
                raise _InitializerError(self._failed) from x
            own.ran()
            self._globals = own
            self._ready = True

    def __reduce__(self) -> Any:
        # The key comes first: a multiprocessing manager's proxies in initargs connect while they are unpickled.
        return _restore_runner, (_AuthKey(), self._initializer, self._initargs, self._identity)


def _restore_runner(key: object, initializer: Optional[Callable[..., object]], initargs: tuple[Any, ...],
                    identity: str) -> _Runner:
    return _Runner(initializer, initargs, identity)


class _AuthKey:
    """The driver's multiprocessing authkey. Its workers use it too, as the workers of a process pool do."""

    given = False

    def __reduce__(self) -> Any:
        ours = _runtime.state.worker is None or _AuthKey.given
        return _share_authkey, (bytes(multiprocessing.current_process().authkey) if ours else b"",)


def _share_authkey(key: bytes) -> None:
    if key and _runtime.state.worker is not None:
        multiprocessing.current_process().authkey = key
        _AuthKey.given = True


# ---- in the program


class _Call:
    """One call and its future."""

    __slots__ = ("future", "packed", "ref", "wait", "settled")

    def __init__(self, future: Future[Any], packed: PackedCall, wait: TaskWait) -> None:
        self.future = future
        self.packed = packed
        self.ref: Optional[ObjectRef[Any]] = None
        self.wait = wait
        self.settled = False


class _Calls:
    """The calls of an executor. They outlive the Executor object. There is no lock: a finaliser calls close, and may submit, in the midst of
    anything."""

    def __init__(self, caller: Caller, most: int) -> None:
        self.caller = caller
        self._client = caller.client
        self._most = most
        self._waiting: deque[_Call] = deque()
        self._sent: set[_Call] = set()
        self._sending = False
        self._open = 0  # calls whose futures are not settled
        self._closed = False
        self._broken: Optional[str] = None
        self._cause: Optional[BaseException] = None
        self._thread = CallbackThread("mobula-executor")

    def submit(self, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], name: str) -> Future[Any]:
        future: Future[Any] = Future()
        self._check()
        try:
            for resolve in resolvers:
                fn, args, kwargs = resolve(fn, args, kwargs)
            packed = self.caller.pack(fn, args, kwargs, name)
        except MobulaError as x:
            if self._client.dead is not None:
                self._break(f"the node is gone: {x}", x)
                self._check()
            _fail(future, x)
            return future
        except Exception as x:
            _fail(future, x)
            return future
        call = _Call(future, packed, TaskWait(self._client))
        self._thread.start()  # shutdown waits for its end
        one, waiting = iter((call,)), self._waiting
        ok = False
        if not self._closed and self._broken is None:  # whole
            ok = True
            self._open += 1
            waiting += one
        if not ok:
            if self._closed and not self._open:
                self._thread.end()  # it may have started just now
            call.wait.over()
            packed.drop()
            self._check()
        self._send()
        return future

    def _check(self) -> None:
        if self._broken is not None:
            raise BrokenExecutor(self._broken) from self._cause
        if self._closed:
            raise RuntimeError("cannot schedule new futures after shutdown")

    def _send(self) -> None:
        """Sends calls while there is room. One thread sends at a time, the calls of the others too."""
        waiting = self._waiting
        while len(self._sent) < self._most:
            if not self._sending and waiting:  # whole
                call = waiting[0]
                del waiting[0]
                self._sending = True
            else:
                return
            try:
                self._begin(call)
            except BaseException as x:  # from a signal handler; the call may have been sent, and its result may still come
                self._sent.discard(call)
                self._thread.put(partial(self._settle_with, call, x))
                raise
            finally:
                self._sending = False
                del call

    def _begin(self, call: _Call) -> None:
        if not call.future.set_running_or_notify_cancel():
            call.packed.drop()
            self._thread.put(partial(self._settled, call))
            return
        ref = call.ref = call.packed.send()
        self._sent.add(call)
        self._client.getter.when(ref._h, partial(self._arrived, call))

    def _arrived(self, call: _Call, found: Found) -> None:
        """Called by the thread that reads. It sends the next call and leaves the rest to the executor's thread."""
        self._thread.put(partial(self._settle, call, found))
        self._sent.discard(call)
        self._send()

    def _settle(self, call: _Call, found: Found) -> None:
        """In the executor's thread: sets the future's result or exception."""
        ref, call.ref = call.ref, None
        try:
            value = load_found(self._client, found)
            del ref  # now that the value is there
        except BaseException as x:
            try:
                why = self._error(x)
            except BaseException:  # of code of the exception's class
                why = x
            self._settle_with(call, why)
            return
        if self._settled(call):
            call.future.set_result(value)

    def _settle_with(self, call: _Call, x: BaseException) -> None:
        if self._settled(call) and not call.future.done():
            call.future.set_exception(x)

    def _settled(self, call: _Call) -> bool:
        """In the executor's thread: counts a call as done. False if it was done before."""
        end = False
        if call.settled:
            return False
        else:  # whole, with the look at it
            call.settled = True
            self._open -= 1
            end = self._closed and self._open == 0
        call.wait.over()
        if end:
            self._thread.end()
        return True

    def _error(self, x: BaseException) -> BaseException:
        if isinstance(x, TaskError) and isinstance(x.cause, _InitializerError):
            self._break(str(x.cause), without_cause(x))
            return BrokenExecutor(str(x.cause))
        if self._client.dead is not None:
            self._break(f"the node is gone: {x}", x)
            return _broken(f"the node is gone: {x}", x)
        return original(x)

    def _break(self, why: str, cause: BaseException) -> None:
        """Marks the executor as broken. The waiting calls fail."""
        if self._broken is None:  # whole
            self._cause = cause
            self._broken = why
        for call in self._take_waiting():
            call.packed.drop()
            if call.future.set_running_or_notify_cancel():
                call.future.set_exception(_broken(why, cause))
            self._thread.put(partial(self._settled, call))

    def close(self, cancel: bool) -> None:
        """Takes no more calls; cancel: cancels those that were not sent."""
        end = False
        if not self._closed:  # whole
            self._closed = True
            end = self._open == 0
        for call in self._take_waiting() if cancel else ():
            call.packed.drop()
            call.future.cancel()
            call.future.set_running_or_notify_cancel()
            self._thread.put(partial(self._settled, call))
        if end:
            self._thread.end()

    def _take_waiting(self) -> Iterator[_Call]:
        """Takes the calls out of the queue that were not sent."""
        waiting = self._waiting
        while waiting:
            call = waiting[0]
            del waiting[0]  # whole, with the look at it
            yield call

    def cancel_running(self, force: bool) -> None:
        sent = list(self._sent)
        if self._client.dead is None:
            for call in sent:
                self._client.cancel(call.packed.task, force, True)

    def join(self) -> None:
        self._thread.join()


def _fail(future: Future[Any], x: BaseException) -> None:
    future.set_running_or_notify_cancel()
    future.set_exception(x)


def _broken(why: str, cause: BaseException) -> BrokenExecutor:
    x = BrokenExecutor(why)
    x.__cause__ = cause
    return x


_live: weakref.WeakSet[_Calls] = weakref.WeakSet()


def _finish() -> None:
    """At interpreter exit: waits for all submitted calls, as the executors of concurrent.futures do. A worker ends when the node says so."""
    if _runtime.state.worker is not None:
        return
    for calls in list(_live):
        calls.close(False)
    for calls in list(_live):
        calls.join()


atexit.register(_finish)  # registered after the handler that disconnects, so it runs before that one

__all__ = ["Executor"]
