"""@remote: on a function, on a class."""

from __future__ import annotations

import inspect
from typing import Any, Callable, Mapping, overload

from .._functions import Exported
from ..exceptions import InvalidError
from .actors import ActorClass
from .tasks import RemoteFunction


@overload
def remote(target: type[Any], /) -> ActorClass: ...
@overload
def remote(target: Callable[..., Any], /) -> RemoteFunction: ...
@overload
def remote(**options: Any) -> Callable[[Any], Any]: ...


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
