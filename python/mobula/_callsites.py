"""Call sites, for lists and traces. Finding one costs a tenth of a call, so only a sample of the calls has one."""

from __future__ import annotations

import sys
from types import CodeType

from ._wire import hot

_NOT_USERS = frozenset(("mobula", "dask", "joblib", "concurrent", "contextlib", "functools"))
_MOST = 4096

_fields: dict[tuple[CodeType, int], bytes] = {}


def callsite() -> bytes:
    """The encoded field of a spec with the innermost line of the program's own code, "file.py:12"."""
    f = sys._getframe(1)
    while f.f_globals.get("__name__", "").partition(".")[0] in _NOT_USERS:
        if f.f_back is None:
            return b""
        f = f.f_back
    key = f.f_code, f.f_lineno
    field = _fields.get(key)
    if field is None:
        if len(_fields) >= _MOST:
            _fields.clear()
        field = _fields[key] = hot.callsite_field(f"{f.f_code.co_filename.rpartition('/')[2]}:{f.f_lineno}")
    return field


class CallSites:
    """The call sites of one handle: of its first 7 calls, then of every 128th, as in Go."""

    __slots__ = ("_calls",)

    def __init__(self) -> None:
        self._calls = 0

    def next(self) -> bytes:
        n = self._calls = self._calls + 1
        return callsite() if n < 8 or not n & 127 else b""
