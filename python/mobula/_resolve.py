"""Resolves functions and classes by their dotted name, for calls from programs in other languages."""

from __future__ import annotations

import importlib
import inspect
import sys
from types import ModuleType
from typing import Any, Callable

from ._api import ActorClass, RemoteFunction
from .exceptions import UnknownFunctionError

_MANY = 30  # names that an error lists


def resolve_name(name: str) -> Callable[..., Any]:
    """Imports the function or class with a name, "module.function" or "package.module.Class.method". Of a remote one it returns the
    plain function or class. UnknownFunctionError if there is none."""
    found, rest = _module(name.split("."))
    where = f"module {found.__name__}"
    x: Any = found
    for part in rest:
        if not hasattr(x, part):
            raise UnknownFunctionError(f"function {name!r}: {where} has no {part!r}; it has {_names(x)}")
        x = getattr(x, part)
        where = f"{where}'s {part}"
    if isinstance(x, (ActorClass, RemoteFunction)):
        x = x.__wrapped__
    if not callable(x):
        raise UnknownFunctionError(f"function {name!r}: {where} is a {type(x).__name__}, which cannot be called")
    made: Callable[..., Any] = x
    return made


def _module(parts: list[str]) -> tuple[ModuleType, list[str]]:
    """Imports the longest module that a name begins with. Returns it and the parts that follow."""
    found = None
    at = 0
    for i in range(1, len(parts)):
        path = ".".join(parts[:i])
        try:
            found, at = importlib.import_module(path), i
        except ModuleNotFoundError as x:
            if x.name != path:
                raise  # the module exists, and one of its own imports is missing
            break
    if found is None:
        raise UnknownFunctionError(f"function {'.'.join(parts)!r}: there is no module {parts[0]!r} in the path of this worker's "
                                   f"Python, {sys.path}")
    return found, parts[at:]


def _names(x: Any) -> str:
    """The names of the functions and classes in x, for an error's text."""
    names = [n for n, f in inspect.getmembers(x, callable) if not n.startswith("_")]
    more = f", and {len(names) - _MANY} more" if len(names) > _MANY else ""
    return ", ".join(names[:_MANY]) + more or "none"
