"""An idle worker returns free memory to the system."""

from __future__ import annotations

import subprocess
import sys

# A process of its own: how much of another's memory is free nobody knows.
PROGRAM = """
import ctypes, sys
from mobula._worker import memory
from mobula._worker.memory import MemoryGrowth

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.free.argtypes = [ctypes.c_void_p]
SECOND, BLOCK = 1_000_000_000, 64 << 10

def left_free(size):
    blocks = [libc.malloc(BLOCK) for _ in range(size // BLOCK)]
    for b in blocks:
        ctypes.memset(b, 1, BLOCK)
    for b in blocks[:-1]:  # the last one is in use, and keeps what is below it
        libc.free(b)

g = MemoryGrowth()
g.idle(SECOND)
before = memory._own()
left_free(int(sys.argv[1]))
after = memory._own()
g.idle(SECOND + 1)  # it has just looked
soon = memory._own()
g.idle(2 * SECOND)
print(*(n - before for n in (after, soon, memory._own())))
"""
MIB = 1 << 20


def _left(size: int) -> list[int]:
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(size)], check=True, capture_output=True, text=True)
    return [int(n) for n in done.stdout.split()]


def test_what_tasks_left_free_goes_back_when_the_worker_is_idle() -> None:
    after, soon, later = _left(64 * MIB)
    assert after > 48 * MIB and soon > 48 * MIB and later < 8 * MIB


def test_a_little_is_kept() -> None:
    assert all(left > 4 * MIB for left in _left(8 * MIB))
