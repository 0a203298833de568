"""Remote functions, and cancel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping, NoReturn, Optional, TypeVar, Union, overload

from .. import _callables, _ids, _options, _runtime
from .._callsites import CallSites
from .._client import Client
from .._functions import Exported, described
from .._refs import ObjectRef, ObjectRefGenerator
from .._wire import codec, hot
from .._wire import messages as m
from ..exceptions import InvalidError
from .calls import deadline, submit
from .signatures import P, Remote

_current = _runtime.current
_state = _runtime.state

R = TypeVar("R")


class RemoteFunction(Remote[P, ObjectRef[R]]):
    """What mobula.remote makes of a function: remote(...) submits a task.

        ref = add.options(num_cpus=2).remote(1, 2)
    """

    def __init__(self, target: Exported, options: Mapping[str, Any]) -> None:
        _options.check(options, _options.TASK, f"task {target.name}")
        self._target = target
        self._options = dict(options)
        self._for: Optional[Client] = None
        self._stored: tuple[Exported, ...] = ()  # what each call has among its last arguments
        self._field = b""
        self._returns = 1
        self._timeout = _options.timeout(options)
        self._callsites = CallSites()
        if "num_returns" not in self._options and _callables.is_stream(target.target):
            self._options["num_returns"] = "streaming"
        _options.task("", self._options)  # raises an error of the options now, where they are written
        self.__qualname__ = described(target.target)[1]
        self.__name__ = getattr(target.target, "__name__", None) or self.__qualname__.rpartition(".")[2]
        self.__doc__ = getattr(target.target, "__doc__", None)
        self.__module__ = getattr(target.target, "__module__", None) or ""
        self.__wrapped__ = target.target

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> NoReturn:
        name = self.__name__
        raise TypeError(f"{self._target.name} is remote: call {name}.remote() for a task, or {name}.__wrapped__() for the "
                        "function itself")

    @overload
    def options(self, *, num_returns: Union[int, str], **options: Any) -> Remote[P, Any]: ...
    @overload
    def options(self, **options: Any) -> RemoteFunction[P, R]: ...

    def options(self, **options: Any) -> Any:
        """Returns the same function with other options. InvalidError for an unknown option or a wrong value."""
        return RemoteFunction(self._target, {**self._options, **options})

    def _prepare(self, c: Client) -> None:
        target, only = self._target, _options.retry_only(self._options)
        o = _options.task(f"py:{target.name}:{target.publish(c)}", self._options)
        if only is not None:
            o.retry_only = only.publish(c)
        self._stored = tuple(e for e in (only, target) if e is not None and e.stored(c))
        self._field = hot.spec_options(m.TASK, codec.encode(o))
        self._returns = o.num_returns
        self._for = c

    def _submit(self, /, *args: Any, **kwargs: Any) -> Any:
        """Submits a task and returns the reference to its result. With several results it returns a list of references, with a stream an
        ObjectRefGenerator, with none None.

        It does not wait for the task. It waits only while the process has too many calls under way, or for room in the store for a large
        argument. NotEncodableError if an argument cannot be encoded.
        """
        c = _state.client
        if c is None:
            c = _runtime.client()
        if self._for is not c:
            self._prepare(c)
        tc = _current.get()
        if tc is None or tc.client is not c:
            tc = c.fallback
        task = tc.derive(next(tc.calls))
        tail = hot.spec_tail(deadline=deadline(c, self._timeout)) if self._timeout is not None else b""
        return submit(c, tc, task, self._field, args, kwargs, self._returns, tail, callsite=self._callsites.next(), stored=self._stored)

    if not TYPE_CHECKING:  # its types are those of Remote
        remote = _submit

    def __reduce__(self) -> Any:
        return RemoteFunction, (self._target, self._options)


def cancel(ref: Union[ObjectRef[Any], ObjectRefGenerator[Any]], *, force: bool = False, recursive: bool = True) -> None:
    """Cancels a task. get then raises TaskCancelledError, unless the task had ended.

    A waiting task does not run. A running task gets TaskInterrupt, a KeyboardInterrupt. If it has not ended two seconds later, for instance
    because it holds the GIL, its process is killed. force: kills it at once. recursive: also cancels the tasks that it has submitted. A call of
    an actor is only interrupted; the actor's process is never killed for it.

    TypeError for something that is no reference or stream; InvalidError for a reference to a value that was put.
    """
    if isinstance(ref, ObjectRefGenerator):
        ref._client.cancel(ref._task, force, recursive)
        return
    if not isinstance(ref, ObjectRef):
        raise TypeError(f"cancel: want an ObjectRef, got {type(ref).__name__}")
    if _ids.is_put(ref._h.id):
        raise InvalidError(f"{ref!r} was put: there is no task to cancel")
    ref._c.cancel(ref._h.id[:_ids.TASK], force, recursive)
