"""Decides whether a task that failed is run once more, with private copies of its inputs (decision 0034).

Inputs are read-only views of the store, so a task that writes to one fails. Libraries report that with exceptions of many types and texts. What counts here
is where an exception was raised: a refused write is reported by compiled code, or by a raise statement of a library. An exception that the task's own code
raised is none of a refused write, unless it came of one (__cause__, __context__).
"""

from __future__ import annotations

import dis
import errno
import os
import sys
from types import TracebackType
from typing import Any, Iterator, Optional

from .. import _runtime
from .._client import log
from .call import Call
from .free_memory import available

_RAISE = dis.opmap["RAISE_VARARGS"]
_STUB = 6  # bytes of the code object of a frame that compiled code has added to a traceback (PyCode_NewEmpty)
_COMPILED = (".pyx", ".pxd", ".pxi", ".c", ".cpp", ".rs")  # sources that such frames name
_INSTALLED = frozenset(("site-packages", "dist-packages"))
_BUILTIN = frozenset((Exception, ValueError, TypeError, BufferError, RuntimeError, SystemError))  # that report refused writes
_MODEST = 4  # copies of at most this part of the free memory are made before anything has asked for them
_NO_LIBRARIES = sys.stdlib_module_names | {"builtins", "dask", "distributed", "joblib", "mobula"}  # none of their raise statements is about writes


def second_run(x: BaseException) -> Optional[Call]:
    """The running call, if the exception that it ended with may come from a write to a read-only input. The caller then runs it again with private_inputs:
    once, and outside its except clause, so that nothing holds the first run's memory. MemoryError if there is no room for the copies."""
    call = _runtime.current.get()
    if not isinstance(call, Call) or call.error is not None or not may_be_refused_write(x):
        return None
    n = call.shared()
    if not n:
        return None
    room = available()
    if room is not None and n > room:
        raise _no_room(n, f", of which {room} are free") from x
    log.debug("a task runs again, with private copies of its inputs (%d bytes), after a %s", n, type(x).__qualname__)
    return call


def after_a_crash() -> Optional[Call]:
    """The running call, if it is to begin with private_inputs: an earlier attempt of it may have died of a write that nothing checks (numpy.add.at, a pointer).
    Not if the copies would take much of what memory is free, for want of which that attempt may have died too."""
    call = _runtime.current.get()
    if not isinstance(call, Call) or call.work.attempt <= 1:
        return None
    n, room = call.shared(), available()
    return call if n and (room is None or n <= room // _MODEST) else None


def private_inputs(call: Call) -> list[Any]:
    """The call's positional arguments once more, as private copies. MemoryError if there is no room for them."""
    try:
        return call.taken()
    except MemoryError:
        raise _no_room(call.shared(), "") from None


def _no_room(n: int, more: str) -> MemoryError:
    return MemoryError(f"the task may have written to its inputs, which are read-only, and there is no room to run it with private copies of them: "
                       f"{n} bytes{more}")


def may_be_refused_write(x: BaseException) -> bool:
    """Whether an exception, or one that it came of, may be that of a write to a read-only buffer."""
    return any(_may_report_write(e) and _raised_by_library(e.__traceback__) for e in _chain(x))


def _chain(x: BaseException) -> Iterator[BaseException]:
    """An exception, those that it came of, and the members of groups."""
    seen: set[int] = set()
    todo: list[Optional[BaseException]] = [x]
    while todo:
        e = todo.pop()
        if e is not None and id(e) not in seen:
            seen.add(id(e))
            yield e
            todo += (e.__cause__, e.__context__)
            if isinstance(e, BaseExceptionGroup):
                todo += e.exceptions


def _may_report_write(x: BaseException) -> bool:
    cls = type(x)
    if cls in _BUILTIN:
        return True
    if isinstance(x, OSError) and x.errno == errno.EFAULT:  # a system call was to write there
        return True
    return _package(cls.__module__) not in _NO_LIBRARIES


def _raised_by_library(tb: Optional[TracebackType]) -> bool:
    """Whether an exception was raised by compiled code, or by a raise statement of an installed package other than the task's own."""
    own, at = "", None
    while tb is not None:
        if not own and (package := _package(tb.tb_frame.f_globals.get("__name__"))) not in _NO_LIBRARIES:
            own = package
        at, tb = tb, tb.tb_next
    if at is None:
        return False  # it was raised in another process, or by nobody
    code = at.tb_frame.f_code
    text = code.co_code
    if len(text) <= _STUB or code.co_filename.endswith(_COMPILED) or text[at.tb_lasti] != _RAISE:
        return True
    package = _package(at.tb_frame.f_globals.get("__name__"))
    return package != own and package not in _NO_LIBRARIES and not _INSTALLED.isdisjoint(code.co_filename.split(os.sep))


def _package(module: Any) -> str:
    return module.partition(".")[0] if isinstance(module, str) else ""


__all__ = ["after_a_crash", "may_be_refused_write", "private_inputs", "second_run"]
