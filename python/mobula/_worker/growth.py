"""The memory that tasks leave behind in their worker: what of it goes back to the system, and whether too much stays."""

from __future__ import annotations

import ctypes
import gc
import os
import sys

LIMIT = 300_000_000  # bytes, as loky's: what a worker may have more between two tasks than it had after its first
FREE = 16 << 20  # bytes by which an idle worker may grow before its allocators are asked to give memory back
_EVERY = 250_000_000  # nanoseconds between two looks of an idle worker

_libc = ctypes.CDLL(None)


class Growth:
    """Looked at now and then between tasks. What the collector and the allocators can give back is not counted."""

    def __init__(self) -> None:
        self._first = 0  # bytes of the process' own memory after its first task
        self._least = 0  # the least bytes of it that were seen since the allocators last gave memory back
        self._looked = 0  # when the worker was last idle and looked, nanoseconds

    def idle(self, now: int) -> None:
        """The worker has nothing to do: memory that is free in it goes back to the system."""
        if now < self._looked + _EVERY:
            return
        self._looked = now
        own = _own()
        if not self._least:
            self._least = own
        elif own > self._least + FREE:
            _give_back()
            self._least = _own()
        else:
            self._least = min(self._least, own)

    def too_much(self) -> bool:
        now = _own()
        if not self._first:
            self._first = now
        if now - self._first <= LIMIT:
            return False
        gc.collect()
        _give_back()
        return _own() - self._first > LIMIT


def _give_back() -> None:
    """Has the allocators, Arrow's too where it is in use, give free memory back."""
    pool = getattr(sys.modules.get("pyarrow"), "default_memory_pool", None)
    if pool is not None:
        pool().release_unused()
    if hasattr(_libc, "malloc_trim"):
        _libc.malloc_trim(0)


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
