"""Free memory of an idle worker goes back to the system."""

from __future__ import annotations

import ctypes

from mobula._worker import growth
from mobula._worker.growth import FREE, Growth

SECOND = 1_000_000_000


def _fragmented(libc: ctypes.CDLL, size: int) -> int:
    """Has the allocator keep so many free bytes below a block, which it gives, that is in use."""
    block = 64 << 10
    blocks = [libc.malloc(block) for _ in range(size // block)]
    for b in blocks:
        ctypes.memset(b, 1, block)
    for b in blocks[:-1]:
        libc.free(b)
    return blocks[-1]


def test_what_tasks_left_free_goes_back_when_the_worker_is_idle() -> None:
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    libc.free.argtypes = [ctypes.c_void_p]
    g = Growth()
    g.idle(SECOND)
    before = growth._own()
    last = _fragmented(libc, 4 * FREE)
    assert growth._own() > before + 3 * FREE
    g.idle(SECOND + 1)  # it has just looked
    assert growth._own() > before + 3 * FREE
    g.idle(2 * SECOND)
    assert growth._own() < before + FREE
    libc.free(last)


def test_a_little_is_kept() -> None:
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    libc.free.argtypes = [ctypes.c_void_p]
    growth._give_back()
    g = Growth()
    g.idle(SECOND)
    before = growth._own()
    last = _fragmented(libc, FREE // 2)
    g.idle(2 * SECOND)
    assert growth._own() > before + FREE // 4
    libc.free(last)
