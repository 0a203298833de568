"""Functions of two jobs' programs that look for each other's files and try to write to them."""

from __future__ import annotations

import mmap
import os
from typing import Any

import numpy as np

MARK = 0x1234_5678_9ABC_DEF0
N = 1 << 17  # int64s: 1 MiB


def files() -> list[str]:
    """The files of the store that this process has open."""
    out = []
    for fd in os.listdir("/proc/self/fd"):
        try:
            to = os.readlink(f"/proc/self/fd/{fd}")
        except OSError:
            continue
        if ".job" in to:
            out.append(to)
    return out


def mapped() -> list[str]:
    """The files of the store that this process has mapped."""
    with open("/proc/self/maps") as f:
        return sorted({line.split(maxsplit=5)[5].strip() for line in f if ".job" in line})


def overwrite(value: int = MARK) -> int:
    """Clears every page full of the value in every file of the store that this process can reach by what it has open or mapped,
    and says how many."""
    hits = 0
    for path in {*files(), *mapped()}:
        hits += wipe(path, value)
    return hits


def wipe(path: str, value: int) -> int:
    full = np.full(mmap.PAGESIZE // 8, value).tobytes()
    hits = 0
    fd = os.open(path, os.O_RDWR)
    try:
        size, at = os.fstat(fd).st_size, 0
        with mmap.mmap(fd, size) as m:
            while True:
                try:
                    at = os.lseek(fd, at, os.SEEK_DATA)
                except OSError:
                    return hits  # no more data: holes are not touched
                end = os.lseek(fd, at, os.SEEK_HOLE)
                for off in range(at - at % mmap.PAGESIZE, end, mmap.PAGESIZE):
                    if m[off : off + mmap.PAGESIZE] == full:
                        m[off : off + mmap.PAGESIZE] = bytes(mmap.PAGESIZE)
                        hits += 1
                at = end
    finally:
        os.close(fd)


class Keeper:
    """One job's actor, which another job calls."""

    def make(self, value: int) -> Any:
        return np.full(N, value)

    def same(self, a: Any, value: int) -> bool:
        return bool((a == value).all())

    def mapped(self) -> list[str]:
        return mapped()

    def overwrite(self, value: int) -> int:
        return overwrite(value)
