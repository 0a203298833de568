"""Times small operations of a Python program: one line each, with the best and the median of some runs.

    python benchmarks/ops.py [--cpus N] [--runs N]

Each group has a node of its own. The floor of a round trip is the time of two processes over a Unix socket.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any, Callable

import mobula


@mobula.remote
def nothing() -> None:
    pass


@mobula.remote
class Actor:
    def nothing(self) -> None:
        pass


def rate(n: int, f: Callable[[int], Any], runs: int) -> list[float]:
    out = []
    for _ in range(runs):
        begun = time.perf_counter()
        f(n)
        out.append(n / (time.perf_counter() - begun))
    return out


def trips(n: int, f: Callable[[], Any]) -> list[float]:
    out = []
    for _ in range(n):
        begun = time.perf_counter()
        f()
        out.append((time.perf_counter() - begun) * 1e6)
    return sorted(out)


def show(name: str, rates: list[float]) -> None:
    print(f"{name:<22} {statistics.median(rates):>10,.0f}/s   best {max(rates):>10,.0f}/s", flush=True)


def show_trips(name: str, us: list[float]) -> None:
    print(f"{name:<22} {us[len(us) // 2]:>10,.0f} us  p99 {us[len(us) * 99 // 100]:>10,.0f} us", flush=True)


def main() -> None:
    p = argparse.ArgumentParser()
    p.add_argument("--cpus", type=int, default=2)
    p.add_argument("--runs", type=int, default=5)
    a = p.parse_args()
    data = bytes(1024)
    with mobula.init(num_cpus=a.cpus):
        show("put-1k", rate(20_000, lambda n: [mobula.put(data) for _ in range(n)], a.runs))
        refs = [mobula.put(i) for i in range(10_000)]
        show("get-own", rate(10_000, lambda n: [mobula.get(r) for r in refs], a.runs))
        del refs
    with mobula.init(num_cpus=a.cpus):
        mobula.get([nothing.remote() for _ in range(100)])
        show_trips("task-sync", trips(2000, lambda: mobula.get(nothing.remote())))
        show("task-async", rate(10_000, lambda n: mobula.get([nothing.remote() for _ in range(n)]), a.runs))
        many = [mobula.put(i) for i in range(1000)]
        show_trips("wait-1000", trips(50, lambda: mobula.wait(many, num_returns=1000)))
    with mobula.init(num_cpus=a.cpus):
        actor = Actor.remote()
        mobula.get(actor.nothing.remote())
        show_trips("actor-sync", trips(2000, lambda: mobula.get(actor.nothing.remote())))
        show("actor-async", rate(10_000, lambda n: mobula.get([actor.nothing.remote() for _ in range(n)]), a.runs))
        del actor
    begun = time.perf_counter()
    with mobula.init(num_cpus=a.cpus):
        mobula.get(nothing.remote())
        print(f"{'cold start to result':<22} {(time.perf_counter() - begun) * 1e3:>10,.0f} ms")


if __name__ == "__main__":
    main()
