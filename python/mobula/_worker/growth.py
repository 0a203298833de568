"""Whether tasks leave memory behind in their worker."""

from __future__ import annotations

import ctypes
import gc
import os

LIMIT = 300_000_000  # bytes, as loky's: what a worker may have more between two tasks than it had after its first

_libc = ctypes.CDLL(None)


class Growth:
    """Looked at now and then between tasks. What the collector and the allocator can give back is not counted."""

    def __init__(self) -> None:
        self._first = 0  # bytes of the process' own memory after its first task

    def too_much(self) -> bool:
        now = _own()
        if not self._first:
            self._first = now
        if now - self._first <= LIMIT:
            return False
        gc.collect()
        if hasattr(_libc, "malloc_trim"):
            _libc.malloc_trim(0)
        return _own() - self._first > LIMIT


def resident() -> int:
    """Bytes of memory that the process has, shared ones too."""
    return _pages()[1] * _PAGE


def _own() -> int:
    """Bytes of memory that no file or segment is behind."""
    pages = _pages()
    return (pages[1] - pages[2]) * _PAGE


def _pages() -> list[int]:
    try:
        with open("/proc/self/statm") as f:
            return [int(n) for n in f.read().split()]
    except OSError:
        return [0, 0, 0]


_PAGE = os.sysconf("SC_PAGESIZE")
