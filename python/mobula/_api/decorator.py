"""@remote: on a function, on a class."""

from __future__ import annotations

import inspect
from typing import Any, Callable, Iterator, Mapping, Protocol, TypeVar, Union, overload

from .._functions import Exported
from .._refs import ObjectRefGenerator
from ..exceptions import InvalidError
from .actors import ActorClass
from .signatures import Class, P, Remote
from .tasks import RemoteFunction

R = TypeVar("R")
T = TypeVar("T")


class Decorator(Protocol):
    """What remote is with options."""

    @overload
    def __call__(self, target: Class[P, T], /) -> ActorClass[P, T]: ...  # type: ignore[overload-overlap]  # a function is no class
    @overload
    def __call__(self, target: Callable[P, Iterator[T]], /) -> Remote[P, ObjectRefGenerator[T]]: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, target: Callable[P, R], /) -> RemoteFunction[P, R]: ...


class Several(Protocol):
    """The same where it is said how many results there are: none, a list of them, or a stream."""

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
    """Makes a function's calls tasks, and a class's instances actors: as a decorator, with options or without."""
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
    if inspect.iscoroutinefunction(target):
        raise InvalidError(f"{getattr(target, '__name__', target)} is a coroutine: only methods of actors can be")
    return RemoteFunction(Exported(target), options)
