"""Messages between actors of the Go API, beside protoactor-go and what Go and the kernel have without either. actorbench does the work, and checks it."""

from __future__ import annotations

from typing import Mapping

from .. import native
from ..workload import OURS, Implementation, Metric, Params, Workload

VALUES = ("int", "100 B")
HERE = (OURS, native.PROTOACTOR, native.FLOOR)
AWAY = (OURS, native.FLOOR)  # two processes


def _run(row: str, system: str) -> Implementation:
    def run(p: Params) -> Mapping[str, float]:
        return native.figures(row, system, p["quick"])

    return run


def _row(row: str, what: str, systems: tuple[str, ...], *metrics: Metric) -> Workload:
    return Workload(f"actors-{row}", what, metrics, {s: _run(row, s) for s in systems}, {"quick": False}, {"quick": True},
                    timeout=600, group="actors", native=True)


def _each(*of: tuple[str, str]) -> list[Metric]:
    """Metrics with either value: a name, which may be empty, and a unit."""
    return [Metric(f"{v} {name}".rstrip(), unit, more_is_better=unit == "/s") for v in VALUES for name, unit in of]


WORKLOADS = [
    _row("ask", "a program asks an actor, one call after another", HERE,
         *_each(("p50", "us"), ("p99", "us"), ("cpu", "us"), ("allocations", ""))),
    _row("actor-asks", "an actor asks another, one call after another", HERE, *_each(("", "us"))),
    _row("one-way", "messages that nothing answers, from one sender to one actor", HERE, *_each(("", "/s"))),
    _row("ring", "1,000 actors pass 100 tokens on", HERE, *_each(("", "/s"))),
    _row("pairs", "500 actors ask one each, all at once", HERE, *_each(("", "/s"))),
    _row("64-callers", "64 goroutines ask one actor", HERE, *_each(("", "/s"))),
    _row("outstanding", "1,000 calls of one actor under way: each awaited by itself, or all together", HERE,
         *_each(("by Get", "/s"), ("by GetAll", "/s"))),
    _row("spawn", "100,000 actors made, until each is constructed", HERE, Metric("time", "us"), Metric("memory", "B")),
    _row("two-ask", "a program asks an actor in another process", AWAY, *_each(("p50", "us"), ("p99", "us"))),
    _row("two-one-way", "messages that nothing answers, to an actor in another process", AWAY, *_each(("", "/s"))),
    _row("two-outstanding", "1,000 calls under way of an actor in another process", AWAY, *_each(("", "/s"))),
]
