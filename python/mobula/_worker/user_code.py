"""Tells the user's code from this package's in frames and tracebacks."""

from __future__ import annotations

import os
from types import FrameType, TracebackType
from typing import Any, Callable, Optional, Protocol

from .._functions import USER_CODE_CALLERS, calls_user_code

_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


class Runs(Protocol):
    """A call, which records whether the user's code runs."""

    in_user: bool


@calls_user_code
def run(call: Runs, f: Callable[..., Any], args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Calls the user's function."""
    call.in_user = True
    value = f(*args, **kwargs)
    call.in_user = False
    return value


def is_user_code(frame: Optional[FrameType]) -> bool:
    """Whether a frame runs the user's code, and not code of this package that the user's code has called."""
    while frame is not None and frame.f_code not in USER_CODE_CALLERS:
        if frame.f_code.co_filename.startswith(_OURS):
            return False
        frame = frame.f_back
    return frame is not None


def traceback_of(x: BaseException) -> Optional[TracebackType]:
    """An exception's traceback without this package's leading frames; None if no user code took part."""
    tb = x.__traceback__
    while tb is not None and tb.tb_frame.f_code.co_filename.startswith(_OURS):
        tb = tb.tb_next
    return tb
