"""Tasks leave notes in a directory. A test sees there which tasks have begun, and tells them to end."""

from __future__ import annotations

import os
import sys
import time
from typing import Iterator

import cloudpickle

import mobula

cloudpickle.register_pickle_by_value(sys.modules[__name__])


def note(dir: str, name: str, text: str = "") -> None:
    """Adds to a file."""
    with open(os.path.join(dir, name), "a") as f:
        f.write(text)


def noted(dir: str, kind: str) -> set[str]:
    """The names of the tasks that left a note of a kind."""
    return {os.path.splitext(n)[0] for n in os.listdir(dir) if n.endswith("." + kind)}


def size(dir: str, name: str) -> int:
    path = os.path.join(dir, name)
    return os.path.getsize(path) if os.path.exists(path) else 0


def told(dir: str, name: str) -> bool:
    return any(os.path.exists(os.path.join(dir, n)) for n in ("go", name + ".go"))


def stay(dir: str, name: str) -> str:
    """Leaves a note that it has begun, and waits until it, or every task, is told to go."""
    try:
        note(dir, name + ".began")  # in the block: it may be cancelled as soon as it is seen
        while not told(dir, name):
            time.sleep(0.002)
    except BaseException:
        note(dir, name + ".cancelled")
        raise
    note(dir, name + ".ended")
    return name


hold = mobula.remote(stay)


@mobula.remote
class Keeper:
    """An actor whose calls run until they are told to go."""

    def stay(self, dir: str, name: str) -> str:
        return stay(dir, name)

    @mobula.method(num_returns="streaming")
    def stay_and_yield(self, dir: str, name: str) -> Iterator[str]:
        yield stay(dir, name)

    def pid(self) -> int:
        return os.getpid()

    @mobula.method(num_returns=3)
    def three(self) -> tuple[int, int, int]:
        return 1, 2, 3
