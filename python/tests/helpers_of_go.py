"""What Go programs of the tests call by name."""

from __future__ import annotations

import os
import subprocess
import time
from typing import Any, Iterator

import numpy as np

import mobula


class Odd:
    pass


def environ(name: str) -> str:
    return os.environ.get(name, "")


def shout(s: str) -> str:
    if s == "quiet":
        raise UnicodeError("not today")
    return s.upper()


def lacks(x: float) -> float:
    raise ValueError("lacking", mobula.put(x))


@mobula.remote
def mean(xs: Any) -> Any:
    return xs.mean()


def odd() -> Any:
    return [1, Odd()]


def count(n: int) -> Iterator[int]:
    yield from range(n)


def divmod_(a: int, b: int) -> tuple[int, int]:
    return divmod(a, b)


def grid(rows: int, columns: int) -> Any:
    return np.arange(float(rows * columns)).reshape(rows, columns)


def where(x: Any) -> str:
    """The file that an array lies in."""
    at = x.__array_interface__["data"][0]
    with open("/proc/self/maps") as f:
        for line in f:
            fields = line.split()
            first, last = (int(s, 16) for s in fields[0].split("-"))
            if first <= at < last:
                return " ".join(fields[5:])
    return ""


def same(x: Any) -> Any:
    return x


def kind(x: Any) -> str:
    return f"{type(x).__name__} {x!r}"


def fail(how: str) -> None:
    if how == "unicode":
        b"\xff".decode()
    if how == "lost":
        raise mobula.ObjectLostError("it is nowhere")
    raise KeyError(how)


def add_by_go(a: float, b: float) -> Any:
    """A task of Python that waits for one of Go."""
    return mobula.get(mobula.go_function("e2e/add").remote(a, b))


def killed(path: str) -> str:
    """The first attempt says its process' number in a file and waits to be killed; a later one says that it is one."""
    if os.path.exists(path):
        return "again"
    with open(path + ".new", "w") as f:
        f.write(str(os.getpid()))
    os.rename(path + ".new", path)
    time.sleep(60)
    return "not killed"


def rows(batch: Any) -> Any:
    """A record batch's first column doubled, and where that column lies."""
    import pyarrow as pa

    x = batch.column(0).to_numpy()
    return pa.record_batch({"x": 2 * x, "where": [where(x)] * len(x)})


class Tally:
    """An actor."""

    def __init__(self, start: int) -> None:
        if start < 0:
            raise ValueError("below nothing")
        self.n = start

    def add(self, by: int) -> int:
        self.n += by
        return self.n

    def pid(self) -> int:
        return os.getpid()

    def items(self) -> Iterator[int]:
        yield from range(self.n)


def family(script: str) -> list[int]:
    """Runs a script that leaves processes, and gives their numbers after its worker's own and the template's."""
    out = subprocess.run(["sh", "-c", script], stdout=subprocess.PIPE, check=True).stdout
    return [os.getpid(), os.getppid(), *map(int, out.split())]
