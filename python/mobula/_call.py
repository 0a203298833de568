"""Calls of any function as tasks: packed now, sent now or later.

What @remote makes of a function is written once for the job's workers. Here the function is an argument like the others, so
that one may call whatever comes, bound methods and lambdas among them.
"""

from __future__ import annotations

from typing import Any, Callable, Mapping, Sequence

from . import _options, _runtime, _trace
from ._api import RemoteFunction
from ._api.calls import deadline, encode_args, submit
from ._client import Client, Handle, TaskContext
from ._functions import Exported, calls_users
from ._refs import ObjectRef
from ._sites import Sites
from ._wire import hot

_MAX_LABELS = 1000


@calls_users
def call(fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """What such a task runs."""
    return fn(*args, **kwargs)


def label(fn: Any) -> str:
    """What lists and traces call a function."""
    fn = getattr(fn, "func", fn)  # of a functools.partial
    name: str = getattr(fn, "__qualname__", None) or type(fn).__qualname__
    module: str = getattr(fn, "__module__", None) or ""
    return f"{module}.{name}" if module not in ("", "builtins") else name


class Caller:
    """Makes tasks of calls, all with the same options."""

    def __init__(self, client: Client, options: Mapping[str, Any], runner: Callable[..., Any] = call) -> None:
        self.client = client
        self.timeout = _options.timeout(options)
        self._base: RemoteFunction[..., Any] = RemoteFunction(Exported(runner), options)
        self.sites = Sites()
        self._labelled: dict[str, bytes] = {}

    def _options(self, name: str) -> bytes:
        field = self._labelled.get(name)
        if field is None:
            f = self._base.options(name=name)
            f._prepare(self.client)
            field = f._field
            if len(self._labelled) >= _MAX_LABELS:
                self._labelled.clear()
            self._labelled[name] = field
        return field

    def submit(self, fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], name: str = "") -> ObjectRef[Any]:
        """Submits a call; it waits while too much is under way, as remote() does."""
        c = self.client
        tc = _runtime.context(c)
        field = self._options(name or label(fn))
        tail = b"" if self.timeout is None else hot.spec_tail(deadline=deadline(c, self.timeout))
        ref: ObjectRef[Any] = submit(c, tc, tc.next_task(), field, (fn, *args), kwargs, 1, tail, site=self.sites.next())
        return ref

    def pack(self, fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], name: str = "") -> PackedCall:
        """Encodes a call, in the thread and for the task that makes it; the errors of values that cannot be are raised."""
        c = self.client
        c.check()
        tc = _runtime.context(c)
        field = self._options(name or label(fn))
        return PackedCall(self, tc, field, encode_args(c, tc, (fn, *args), kwargs), (fn, args, kwargs))


class PackedCall:
    """A call that can be sent. It keeps its arguments until then, since what they refer to must not go."""

    def __init__(self, caller: Caller, tc: TaskContext, field: bytes, encoded: tuple[bytes, int, list[Handle]],
                 held: Any) -> None:
        self.task = tc.next_task()
        self._caller = caller
        self._context = tc
        self._traced = _trace.field(tc, self.task, caller.sites.next())
        self._field = field
        self._args, self._cost, self._large = encoded
        self._held = held

    def send(self) -> ObjectRef[Any]:
        """Queues the task, once. It does not wait: who may send many at once has to bound them."""
        c, tc, timeout = self._caller.client, self._context, self._caller.timeout
        if c.credit.left is not None:
            c.credit.left -= self._cost
        tc.called = True
        ref: ObjectRef[Any] = ObjectRef(c, c.objects.adopt(self.task + bytes(4)))
        tail = hot.spec_tail(deadline=0 if timeout is None else deadline(c, timeout), traced=self._traced)
        c.out.append(hot.submit(self.task, tc.parent_field, self._field, self._args, tail))
        self.drop()
        return ref

    def drop(self) -> None:
        """Lets go what it keeps."""
        self._caller.client.dropped.extend(self._large)
        self._large, self._held, self._args = [], None, b""
