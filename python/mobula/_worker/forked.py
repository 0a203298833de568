"""Ends a process that a task has forked when it leaves the task's function: the call is the worker's, which reports it."""

from __future__ import annotations

import atexit
import os
import sys
from typing import NoReturn, Optional

from .user_code import traceback_of

_here = False


def entered() -> None:
    """Says that this process was forked by a task."""
    global _here
    _here = True


def end(x: Optional[BaseException] = None) -> None:
    """Ends this process if a task has forked it, as Python ends a program whose code has run to its end, or has raised x."""
    if _here:
        _leave(x)


def _leave(x: Optional[BaseException]) -> NoReturn:
    code = 1
    try:
        code = _code(x)
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)  # its threads stayed with the worker: nothing else would end it


def _code(x: Optional[BaseException]) -> int:
    said = x.code if isinstance(x, SystemExit) else x
    if isinstance(said, BaseException):
        said.__traceback__ = traceback_of(said)
        sys.excepthook(type(said), said, said.__traceback__)
        return 1
    if said is None or isinstance(said, int):
        return (said or 0) & 0xFF
    print(said, file=sys.stderr)
    return 1


__all__ = ["end", "entered"]
