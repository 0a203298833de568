"""What a callable runs: the functions behind partials, dispatch, static and class methods, and instances with __call__.

inspect looks through functools.partial and methods alone, and finds no generator or coroutine behind the others.
"""

from __future__ import annotations

import functools
import inspect
from types import FunctionType, MethodType
from typing import Any, Iterator

_DEEP = 100  # layers that are looked through
DISPATCHER = functools.singledispatch(lambda x: x).__code__  # type: ignore[attr-defined]  # of all functions that singledispatch makes


def functions_of(f: Any, deep: int = _DEEP) -> Iterator[Any]:
    """The functions that a call of f may run, or f itself if it is none of what is looked through, such as a class."""
    inner: list[Any] = []
    if isinstance(f, (staticmethod, classmethod, MethodType)):
        inner = [f.__func__]
    elif isinstance(f, (functools.partial, functools.partialmethod)):
        inner = [f.func]
    elif isinstance(f, functools.singledispatchmethod):
        inner = [f.dispatcher]
    elif isinstance(f, FunctionType):
        if f.__code__ is DISPATCHER:
            inner = list(f.registry.values())  # type: ignore[attr-defined]
    elif not isinstance(f, type):
        call = inspect.getattr_static(type(f), "__call__", None)
        inner = [call] if isinstance(call, FunctionType) else []
    if not inner or not deep:
        yield f
    for g in inner:
        yield from functions_of(g, deep - 1)


def is_stream(f: Any) -> bool:
    """Whether a call of f may give a generator."""
    return any(inspect.isgeneratorfunction(g) or inspect.isasyncgenfunction(g) for g in functions_of(f))


def is_coroutine(f: Any) -> bool:
    """Whether a call of f may give a coroutine."""
    return any(inspect.iscoroutinefunction(g) for g in functions_of(f))


def is_method(cls: type[Any], name: str) -> bool:
    """Whether an attribute of a class's instances can be called. Of descriptors, those are methods that the class itself shows as something
    callable, as functions, partialmethod and singledispatchmethod are, and properties are not."""
    f = inspect.getattr_static(cls, name, None)
    if callable(f) or isinstance(f, (staticmethod, classmethod)):
        return True
    if not hasattr(type(f), "__get__"):
        return False
    try:
        return callable(getattr(cls, name))
    except Exception:
        return False


def binds(cls: type[Any], name: str) -> bool:
    """Whether an attribute of a class is a method that gets the instance."""
    f = inspect.getattr_static(cls, name, None)
    if isinstance(f, (staticmethod, classmethod)) or not hasattr(type(f), "__get__"):
        return False
    return is_method(cls, name) and any(name in vars(c) for c in cls.__mro__)  # those of a metaclass get the class


def marked(f: Any, mark: str) -> dict[str, Any]:
    """The value of an attribute of f, or of the function behind it; an empty dict if neither has it."""
    for _ in range(_DEEP):
        said = getattr(f, "__dict__", {}).get(mark)
        if said is not None:
            return dict(said)
        f = getattr(f, "__func__", None) or getattr(f, "func", None)
        if f is None:
            break
    return {}
