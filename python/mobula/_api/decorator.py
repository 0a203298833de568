"""remote: makes remote functions and actor classes."""

from __future__ import annotations

import inspect
from typing import Any, Callable, Iterator, Mapping, Protocol, TypeVar, Union, overload

from .. import _callables
from .._functions import Exported
from .._refs import ObjectRefGenerator
from ..exceptions import InvalidError
from .actors import ActorClass
from .signatures import Class, P, Remote
from .tasks import RemoteFunction

R = TypeVar("R")
T = TypeVar("T")


class Decorator(Protocol):
    """The type of remote(**options)."""

    @overload
    def __call__(self, target: Class[P, T], /) -> ActorClass[P, T]: ...  # type: ignore[overload-overlap]  # a class is a callable too
    @overload
    def __call__(self, target: Callable[P, Iterator[T]], /) -> Remote[P, ObjectRefGenerator[T]]: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, target: Callable[P, R], /) -> RemoteFunction[P, R]: ...


class Several(Protocol):
    """The type of remote(num_returns=...): the results are a list of references, a stream or None, so they have no common type."""

    def __call__(self, target: Callable[P, Any], /) -> Remote[P, Any]: ...


@overload
def remote(target: Class[P, T], /) -> ActorClass[P, T]: ...  # type: ignore[overload-overlap]
@overload
def remote(target: Callable[P, Iterator[T]], /) -> Remote[P, ObjectRefGenerator[T]]: ...  # type: ignore[overload-overlap]
@overload
def remote(target: Callable[P, R], /) -> RemoteFunction[P, R]: ...
@overload
def remote(*, num_returns: Union[int, str], **options: Any) -> Several: ...
@overload
def remote(**options: Any) -> Decorator: ...


def remote(*args: Any, **options: Any) -> Any:
    """Makes a function remote, so that its calls are tasks, or a class, so that its instances are actors.

        @mobula.remote
        def add(a, b):
            return a + b

        @mobula.remote(num_cpus=2, max_restarts=1)
        class Counter: ...

        mobula.get(add.remote(1, 2))     # 3

    Options of both: num_cpus, num_gpus, memory (bytes), resources, name, scheduling_strategy ("DEFAULT" or "SPREAD"), isolated, timeout
    (seconds). Of functions: num_returns, max_retries (3), retry_exceptions, backpressure. Of classes: max_restarts (0), max_task_retries (0),
    max_concurrency, concurrency_groups, max_pending_calls, escalate, namespace, lifetime ("detached"), get_if_exists.

    Which node runs it: label_selector, conditions on the node's labels ({"zone": "in(a, b)"}), each "a", "!a", "in(a, b)", "!in(a, b)", "exists()"
    or "!exists()"; node, a NodeID. Which node should, if one of those is free: prefer_labels, and soft=True with node.

    InvalidError for an unknown option, a wrong value, or a coroutine function outside a class.
    """
    if args:
        if len(args) != 1 or options or not callable(args[0]):
            raise InvalidError("use @remote, or @remote(num_cpus=2, ...) with keywords only")
        return _make(args[0], {})

    def decorate(target: Any) -> Any:
        return _make(target, options)

    return decorate


def _make(target: Any, options: Mapping[str, Any]) -> Any:
    if isinstance(target, (RemoteFunction, ActorClass)):
        raise InvalidError(f"{target.__name__} is remote already")
    if inspect.isclass(target):
        return ActorClass(Exported(target), options)
    if not callable(target):
        raise InvalidError(f"{target!r} is neither a function nor a class")
    if _callables.is_coroutine(target):
        raise InvalidError(f"{getattr(target, '__name__', target)} is a coroutine: only methods of actors can be")
    return RemoteFunction(Exported(target), options)
