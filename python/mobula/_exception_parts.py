"""Takes an exception apart into class, args and fields, and builds one from them.

An exception's __init__ may take other arguments than it passes on to Exception. Such an exception cannot be unpickled by calling its
class with ``args``, nor can a subclass instance be made that way. So both are built from the class, ``args`` and the fields: its
``__dict__``, and the attributes that built-in types store outside it, such as OSError.filename and ImportError.name.
"""

from __future__ import annotations

import contextlib
import types
from typing import Any, Mapping, TypeVar

X = TypeVar("X", bound=BaseException)


def _slots(cls: type[BaseException]) -> dict[str, bool]:
    """The fields that a class stores outside __dict__, by name, and whether a built-in type has defined each."""
    return {k: c.__module__ == "builtins" for c in reversed(cls.__mro__) for k, v in vars(c).items()
            if isinstance(v, types.MemberDescriptorType) and not k.startswith("__") and k != "obj"}  # an AttributeError's may be anything


def fields(x: BaseException) -> dict[str, Any]:
    """The fields of an exception, without its arguments."""
    found: dict[str, Any] = {}
    for k, builtin in _slots(type(x)).items():
        v = getattr(x, k, None)
        if v is not None or (not builtin and hasattr(x, k)):  # in a built-in type None means not set
            found[k] = v
    found.update(getattr(x, "__dict__", {}))
    return found


def made(cls: type[X], like: type[BaseException], args: tuple[Any, ...], said: Mapping[str, Any]) -> X:
    """Makes an exception of class cls with the arguments and fields of one of class like; cls is like or derives from it. It calls
    no __init__ that is written in Python."""
    try:
        x = cls.__new__(cls, *args)
    except Exception:  # a __new__ written in Python takes other arguments
        builtin = _builtin(like)
        # MemoryError's own refuses a class that derives from another exception first; an instance of it is made as any exception's is.
        x = (BaseException if builtin is MemoryError else builtin).__new__(cls, *args)
    init: Any = like.__init__
    if not hasattr(init, "__code__"):  # a built-in type's: it sets the type's fields
        init(x, *args)
    BaseException.__setattr__(x, "args", args)
    known = _slots(like)
    for k, v in said.items():
        if k in known:
            with contextlib.suppress(AttributeError, TypeError):  # read-only: it was set from args
                BaseException.__setattr__(x, k, v)
        else:
            x.__dict__[k] = v
    return x


def remade(cls: type[X], args: tuple[Any, ...], said: Mapping[str, Any]) -> X:
    """Rebuilds an exception; pickles name this function."""
    return made(cls, cls, args, said)


def stems(x: BaseException, cause: BaseException) -> None:
    """Sets what an exception stems from, also of one whose class lets nobody set fields, as a frozen dataclass does."""
    BaseException.__setattr__(x, "__cause__", cause)


def settable(x: X) -> X:
    """An exception as libraries can raise it that set its __traceback__: x itself, or, where its class lets nobody set fields, one like it of a
    class that derives from x's."""
    cls, fields_of = type(x), fields
    try:
        x.__traceback__ = x.__traceback__
        return x
    except BaseException:
        pass

    class Settable(cls):  # type: ignore[misc, valid-type]
        __setattr__ = BaseException.__setattr__

        def __reduce__(self) -> Any:
            return remade, (cls, self.args, fields_of(self))

    Settable.__name__, Settable.__qualname__, Settable.__module__ = cls.__name__, cls.__qualname__, cls.__module__
    try:
        y: X = made(Settable, cls, x.args, fields(x))
    except BaseException:  # of code of the class
        return x
    y.__cause__, y.__traceback__, y.__suppress_context__ = x.__cause__, x.__traceback__, x.__suppress_context__
    return y


class _Portable:
    """Pickles an exception as its parts."""

    def __init__(self, x: BaseException) -> None:
        self._x = x

    def __reduce__(self) -> Any:
        x = self._x
        return remade, (type(x), portable(x.args), {k: portable(v) for k, v in fields(x).items()})


def portable(v: Any) -> Any:
    """Wraps a value so that exceptions in it, also inside lists and tuples, are pickled as their parts. An exception whose class
    defines __reduce__ in Python is left alone."""
    if isinstance(v, BaseException):
        return v if hasattr(type(v).__reduce__, "__code__") else _Portable(v)
    return type(v)(map(portable, v)) if type(v) in (list, tuple) else v


def _builtin(cls: type[BaseException]) -> type[BaseException]:
    return next(c for c in cls.__mro__ if c.__module__ == "builtins")


__all__ = ["fields", "made", "portable", "remade", "settable", "stems"]
