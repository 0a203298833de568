"""What an exception consists of, and an exception made of that.

An exception's constructor may want other arguments than those that it gave to Exception: then neither its pickle nor another class
that derives from it can be made by a call. They are made of the class, ``args`` and the fields: the ``__dict__``, and what the
built-in types keep outside of it, such as OSError.filename and ImportError.name.
"""

from __future__ import annotations

import contextlib
import types
from typing import Any, Mapping, TypeVar

X = TypeVar("X", bound=BaseException)


def _slots(cls: type[BaseException]) -> dict[str, bool]:
    """The names of the fields that an exception of a class has outside its __dict__, and whether they are a built-in type's."""
    return {k: c.__module__ == "builtins" for c in reversed(cls.__mro__) for k, v in vars(c).items()
            if isinstance(v, types.MemberDescriptorType) and not k.startswith("__") and k != "obj"}  # an AttributeError's may be anything


def fields(x: BaseException) -> dict[str, Any]:
    """The fields of an exception, without its arguments."""
    found: dict[str, Any] = {}
    for k, builtin in _slots(type(x)).items():
        v = getattr(x, k, None)
        if v is not None or (not builtin and hasattr(x, k)):  # a built-in type's None was not given
            found[k] = v
    found.update(getattr(x, "__dict__", {}))
    return found


def made(cls: type[X], like: type[BaseException], args: tuple[Any, ...], said: Mapping[str, Any]) -> X:
    """An exception of a class that is, or derives from, that of another, with the other's arguments and fields. No __init__ of the
    program's own is called."""
    try:
        x = cls.__new__(cls, *args)
    except Exception:  # the program's own __new__ wants more
        x = _builtin(like).__new__(cls, *args)
    init: Any = like.__init__
    if not hasattr(init, "__code__"):  # a built-in type keeps its fields itself
        init(x, *args)
    BaseException.__setattr__(x, "args", args)
    known = _slots(like)
    for k, v in said.items():
        if k in known:
            with contextlib.suppress(AttributeError, TypeError):  # it is read-only: the arguments had it
                BaseException.__setattr__(x, k, v)
        else:
            x.__dict__[k] = v
    return x


def remade(cls: type[X], args: tuple[Any, ...], said: Mapping[str, Any]) -> X:
    """The exception that had these parts."""
    return made(cls, cls, args, said)


class _Portable:
    """Is pickled as an exception of its parts."""

    def __init__(self, x: BaseException) -> None:
        self._x = x

    def __reduce__(self) -> Any:
        x = self._x
        return remade, (type(x), portable(x.args), {k: portable(v) for k, v in fields(x).items()})


def portable(v: Any) -> Any:
    """What stands for a value in a pickle: exceptions, also in lists and tuples, by their parts, unless their class has a pickle of its
    own."""
    if isinstance(v, BaseException):
        return v if hasattr(type(v).__reduce__, "__code__") else _Portable(v)
    return type(v)(map(portable, v)) if type(v) in (list, tuple) else v


def _builtin(cls: type[BaseException]) -> type[BaseException]:
    return next(c for c in cls.__mro__ if c.__module__ == "builtins")


__all__ = ["fields", "made", "portable", "remade"]
