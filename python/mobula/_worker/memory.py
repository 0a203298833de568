"""The memory that tasks leave behind in their worker: returns free memory to the system, and detects leaks."""

from __future__ import annotations

import ctypes
import gc
import os
import sys

LIMIT = 300_000_000  # bytes that a worker may grow from the end of its first task; the same as loky's limit
FREE = 16 << 20  # bytes that an idle worker may grow before it trims its allocators
_EVERY = 250_000_000  # nanoseconds between two looks while idle

_libc = ctypes.CDLL(None)


class MemoryGrowth:
    """Tracks the process' own memory between tasks. Memory that the garbage collector and the allocators can free does not count as leaked."""

    def __init__(self) -> None:
        self._first = 0  # bytes of own memory after the first task
        self._least = 0  # the fewest bytes seen since the last trim
        self._looked = 0  # time of the last look while idle, in nanoseconds

    def due(self, now: int) -> bool:
        """Whether the last look was long ago."""
        return now >= self._looked + _EVERY

    def idle(self, now: int) -> None:
        """Called while the worker is idle: returns free memory to the system if the worker has grown."""
        if not self.due(now):
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

    def leaked(self) -> bool:
        """Whether the worker has leaked more than LIMIT since its first task."""
        now = _own()
        if not self._first:
            self._first = now
        if now - self._first <= LIMIT:
            return False
        gc.collect()
        _give_back()
        return _own() - self._first > LIMIT


def _give_back() -> None:
    """Makes malloc, and Arrow's pool if it is in use, return free memory to the system."""
    pool = getattr(sys.modules.get("pyarrow"), "default_memory_pool", None)
    if pool is not None:
        pool().release_unused()
    if hasattr(_libc, "malloc_trim"):
        _libc.malloc_trim(0)


def resident() -> int:
    """Resident bytes of the process, shared memory included."""
    return _pages()[1] * _PAGE


def _own() -> int:
    """Resident bytes that belong to no file and no segment."""
    pages = _pages()
    return (pages[1] - pages[2]) * _PAGE


def _pages() -> list[int]:
    try:
        with open("/proc/self/statm") as f:
            return [int(n) for n in f.read().split()]
    except OSError:
        return [0, 0, 0]


_PAGE = os.sysconf("SC_PAGESIZE")
