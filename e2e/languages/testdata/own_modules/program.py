"""Runs tasks on two nodes that import a module beside this file, and prints for each which node it ran on and where it found the module."""

import json
import sys
import time

import mine
import mobula
from mobula import _runtime


class Odd(Exception):
    pass


@mobula.remote
def found() -> tuple[str, str, str]:
    time.sleep(0.3)
    return _runtime.client().address, mine.__file__, mine.table()


@mobula.remote(max_retries=2, retry_exceptions=[Odd])
def nested(n: int) -> tuple[str, list[tuple[str, int]]]:
    """Defines a function where it runs, which others run elsewhere."""
    by = n * 10

    @mobula.remote
    def inner(k: int) -> tuple[str, int]:
        time.sleep(0.2)
        return _runtime.client().address, by + k

    return _runtime.client().address, mobula.get([inner.remote(k) for k in range(6)])


@mobula.remote
class Counter:
    def __init__(self) -> None:
        self.n = len(mine.table())

    def add(self, k: int) -> tuple[str, int]:
        time.sleep(0.1)
        self.n += k
        return _runtime.client().address, self.n


runs_from = mobula.go_function("e2e/runsFrom")


def on_both() -> list[str]:
    """Runs Go tasks until both nodes have had some: a large executable takes a while to reach the second one."""
    ran: list[str] = []
    while len({r.split(" ")[0] for r in ran}) < 2:
        ran += mobula.get([runs_from.remote() for _ in range(12)])
    return ran


with mobula.init(sys.argv[1], worker_processes=sys.argv[2], go_program=sys.argv[3]):
    print(json.dumps({
        "go": on_both(),
        "found": mobula.get([found.remote() for _ in range(12)]),
        "nested": mobula.get([nested.remote(n) for n in range(6)]),
        "actors": mobula.get([Counter.remote().add.remote(1) for _ in range(3)]),
    }))
