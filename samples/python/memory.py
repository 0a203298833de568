"""Measures the peak memory of a program and all its descendants, for the other samples.

    with Watch() as used:
        ...
    print(size(used.peak), size(used.segment))

It adds each process' PSS without shared memory, and the pages of shared memory files, mapped or not. Every page counts once. Linux only.
"""

from __future__ import annotations

import argparse
import contextlib
import glob
import os
import threading
import time
from typing import Any, Callable


class Watch:
    """Samples the memory inside a with block."""

    def __init__(self, every: float = 0.2) -> None:
        self.peak = 0  # bytes: of all processes, and the segment
        self.segment = 0  # bytes of shared memory
        self._every = every
        self._quit = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._quit.set()
        self._thread.join()
        self._look()

    def _run(self) -> None:
        pause = 0.0
        while not self._quit.wait(pause):
            begun = time.perf_counter()
            self._look()
            pause = max(self._every, 20 * (time.perf_counter() - begun))  # a sample takes long if there is much shared memory

    def _look(self) -> None:
        private = segment = 0
        seen: set[tuple[int, int]] = set()
        for pid in family(os.getpid()):
            with contextlib.suppress(OSError):  # a process may end meanwhile
                private += own(pid)
                segment += files(pid, seen)
        self.peak = max(self.peak, private + segment)
        self.segment = max(self.segment, segment)


def family(root: int) -> list[int]:
    """A process and all its descendants."""
    found = [root]
    for pid in found:  # the loop appends to it
        for path in glob.glob(f"/proc/{pid}/task/*/children"):
            with contextlib.suppress(OSError), open(path) as f:
                found.extend(map(int, f.read().split()))
    return found


def own(pid: int) -> int:
    """A process' PSS without shared memory, in bytes."""
    share = {"Pss": 0, "Pss_Shmem": 0}
    with open(f"/proc/{pid}/smaps_rollup") as f:
        for line in f:
            name, _, rest = line.partition(":")
            if name in share:
                share[name] = int(rest.split()[0]) << 10
    return share["Pss"] - share["Pss_Shmem"]


def files(pid: int, seen: set[tuple[int, int]]) -> int:
    """The bytes of the shared memory files that a process has open, without files seen before."""
    total = 0
    for path in glob.glob(f"/proc/{pid}/fd/*"):
        with contextlib.suppress(OSError):
            if os.readlink(path).startswith(("/dev/shm/", "/memfd:")):
                found = os.stat(path)
                name = found.st_dev, found.st_ino
                if name not in seen:
                    seen.add(name)
                    total += found.st_blocks * 512
    return total


UNITS = {"": 1, "B": 1, "KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30}


def parsed(text: str) -> int:
    """Parses a size such as 512MiB to bytes, for argparse."""
    digits = text.rstrip("BKMGIbkmgi ")
    try:
        n = int(float(digits) * UNITS[text[len(digits):].strip().upper()])
    except (KeyError, ValueError):
        n = 0
    if n < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: give a size, as 512MiB")
    return n


def at_least(least: int) -> Callable[[str], int]:
    """Returns a parser of whole numbers from least on, for argparse."""
    def whole(text: str) -> int:
        try:
            n = int(text)
        except ValueError:
            n = least - 1
        if n < least:
            raise argparse.ArgumentTypeError(f"{text!r}: give a whole number, {least} or more")
        return n

    return whole


def size(n: float) -> str:
    """A number of bytes as text, such as "1.5 GiB"."""
    for unit in ("B", "KiB", "MiB"):
        if n < 1024:
            return f"{n:.0f} {unit}"
        n /= 1024
    return f"{n:.2f} GiB"


def counted(status: Any) -> Any:
    """The node's figures of its store, from after this call. (status() alone may return figures that are up to two seconds old.)"""
    begun = time.time_ns()
    while True:
        said = status()
        if said["now"] - said["store"]["age"] > begun:
            return said["store"]
        time.sleep(0.1)
