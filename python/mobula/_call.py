"""Calls of any function as tasks. A call is encoded at once, and sent at once or later.

@remote writes a function to a file once, for all workers of the job. Here the function is an argument of the task, so that
any callable will do: a bound method or a lambda too.
"""

from __future__ import annotations

from typing import Any, Callable, Mapping, Sequence

from . import _options, _runtime, _trace, _value
from ._api import RemoteFunction, put
from ._api.calls import deadline, encode_args, submit, with_stored
from ._callsites import CallSites
from ._client import Client, TaskContext
from ._functions import Exported, calls_user_code, described
from ._refs import ObjectRef, made
from ._wire import hot
from .exceptions import MobulaError

_MAX_LABELS = 1000


@calls_user_code
def call(fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """The function that every such task runs."""
    return fn(*args, **kwargs)


def label(fn: Any) -> str:
    """The name of a function in lists and traces."""
    module, name = described(fn)
    return f"{module}.{name}" if module not in ("", "builtins") else name


class Caller:
    """Makes calls into tasks, all with the same options."""

    def __init__(self, client: Client, options: Mapping[str, Any], runner: Callable[..., Any] = call) -> None:
        self.client = client
        self.timeout = _options.timeout(options)
        self._base: RemoteFunction[..., Any] = RemoteFunction(Exported(runner), options)
        self.callsites = CallSites()
        self._labelled: dict[str, RemoteFunction[..., Any]] = {}

    def _named(self, name: str) -> RemoteFunction[..., Any]:
        f = self._labelled.get(name)
        if f is None:
            f = self._base.options(name=name)
            f._prepare(self.client)
            if len(self._labelled) >= _MAX_LABELS:
                self._labelled.clear()
            self._labelled[name] = f
        return f

    def shared(self, fn: Callable[..., Any]) -> Any:
        """What stands for a function in many calls: a reference to it, so that it is sent once, if it is large."""
        try:
            e = _value.encode(fn, self.client.inline)
            return put(fn) if e.data is None else fn
        except MobulaError:
            return fn  # the calls fail with the error

    def submit(self, fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], name: str = "") -> ObjectRef[Any]:
        """Submits a call. It waits while the process has no credit left, as remote() does."""
        c = self.client
        tc = _runtime.context(c)
        f = self._named(name or label(fn))
        tail = b"" if self.timeout is None else hot.spec_tail(deadline=deadline(c, self.timeout))
        ref: ObjectRef[Any] = submit(c, tc, tc.next_task(), f._field, (fn, *args), kwargs, 1, tail, callsite=self.callsites.next(),
                                     stored=f._stored)
        return ref

    def pack(self, fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], name: str = "") -> PackedCall:
        """Encodes a call, in the thread and for the task that makes it. NotEncodableError if an argument cannot be encoded."""
        c = self.client
        c.check()
        tc = _runtime.context(c)
        f = self._named(name or label(fn))
        encoded = encode_args(c, tc, (fn, *args), kwargs)
        if f._stored:
            encoded = with_stored(c, f._stored, encoded)
        return PackedCall(self, tc, f._field, encoded, (fn, args, kwargs))


class PackedCall:
    """An encoded call. It keeps its arguments until it is sent, so that the objects they refer to are not freed."""

    def __init__(self, caller: Caller, tc: TaskContext, field: bytes, encoded: tuple[bytes, int, list[Any]],
                 held: Any) -> None:
        self.task = tc.next_task()
        self._caller = caller
        self._context = tc
        self._traced = _trace.field(tc, self.task, caller.callsites.next())
        self._field = field
        self._args, self._cost, self._keep = encoded
        self._held = held

    def send(self) -> ObjectRef[Any]:
        """Queues the task, once. It does not wait for credit: the caller has to bound how many calls it sends."""
        c, tc, timeout = self._caller.client, self._context, self._caller.timeout
        c.credit.take(self._cost)
        tc.called = True
        ref: ObjectRef[Any] = made(c, self.task + bytes(4))
        tail = hot.spec_tail(deadline=0 if timeout is None else deadline(c, timeout), traced=self._traced)
        c.out.append(hot.submit(self.task, tc.parent_field, self._field, self._args, tail))
        self.drop()
        return ref

    def drop(self) -> None:
        """Drops the arguments."""
        self._keep, self._held, self._args = [], None, b""
