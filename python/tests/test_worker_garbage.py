"""Calls leave references in garbage: an idle worker collects it, and does not spend its time on that."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest
from cluster import cluster, dir, get, node, objects, until  # noqa: F401

import mobula
from mobula._worker import garbage
from mobula._worker.garbage import IdleGarbage


@mobula.remote
def leave(held: list[Any], read: bool) -> None:
    """Leaves a reference, or the array behind it, in a cycle."""
    cycle: list[Any] = [mobula.get(held[0]) if read else held[0]]
    cycle.append(cycle)


@pytest.mark.parametrize("read", [False, True])
@pytest.mark.parametrize("size", [10, 1 << 20])
def test_an_idle_worker_lets_go_of_what_a_call_left_in_a_cycle(node: Any, size: int, read: bool) -> None:
    ref = mobula.put(np.zeros(size, np.uint8))
    get(leave.remote([ref], read))
    del ref
    assert until(lambda: not objects())


class Clock:
    """Collections take what a test says."""

    def __init__(self, monkeypatch: Any) -> None:
        self.now, self.takes, self.collections = 0.0, 0.0, 0
        monkeypatch.setattr(garbage.time, "monotonic", lambda: self.now)
        monkeypatch.setattr(garbage.gc, "collect", self._collect)

    def _collect(self) -> None:
        self.collections += 1
        self.now += self.takes


@pytest.fixture
def clock(monkeypatch: Any) -> Clock:
    return Clock(monkeypatch)


def test_a_worker_that_runs_or_holds_nothing_new_does_not_collect(clock: Clock) -> None:
    g = IdleGarbage()
    handles: dict[bytes, int] = {}
    pins: dict[bytes, int] = {}

    def look(seconds: float, busy: bool = False) -> int:
        for _ in range(int(seconds * 10)):
            clock.now += 0.1
            g.look(busy, handles, pins)
        return clock.collections

    assert look(10) == 0
    handles[b"a"] = 1
    assert look(10, True) == 0 and look(0.9) == 0
    handles[b"b"] = 1
    assert look(0.9) == 0 and look(1) == 1 and look(10) == 1  # the same are left
    look(1, True)
    assert look(10) == 1
    pins[b"a"] = 1
    assert look(10) == 2
    del handles[b"b"]
    assert look(10) == 3
    handles.clear()
    pins.clear()
    assert look(10) == 3


def test_collections_take_a_hundredth_of_the_time(clock: Clock) -> None:
    g, handles, n = IdleGarbage(), {0: 0}, 0
    clock.takes = 0.5
    while clock.now < 1000:
        clock.now += 3
        if clock.collections > n:
            n = clock.collections
            handles[n] = n
        g.look(False, handles)
    assert n >= 15 and n * clock.takes <= 1000 / 100 + 2 * clock.takes


def test_a_program_that_collects_by_itself_is_left_alone(clock: Clock) -> None:
    g = IdleGarbage()
    gc.disable()
    try:
        for _ in range(10):
            clock.now += 1
            g.look(False, {0: 0})
    finally:
        gc.enable()
    assert not clock.collections
