"""Measures times for the workloads."""

from __future__ import annotations

import time
from typing import Any, Callable, Mapping

from .workload import Metric

WARM = 200  # operations before the measured ones


def seconds(f: Callable[[], Any]) -> float:
    begun = time.perf_counter()
    f()
    return time.perf_counter() - begun


def trips(n: int, f: Callable[[], Any]) -> Mapping[str, float]:
    """Times operations one after another. Returns the median and the 99th percentile in microseconds."""
    for _ in range(min(n, WARM)):
        f()
    us = sorted(seconds(f) * 1e6 for _ in range(n))
    return {"median": us[n // 2], "p99": us[n * 99 // 100]}


def trip_metrics(**wants: float) -> tuple[Metric, ...]:
    """The metrics of trips."""
    return Metric("median", "us", wants=wants), Metric("p99", "us")


def expect(got: Any, want: Any) -> None:
    """Raises if a result is wrong: then its time is no measurement."""
    if got != want:
        raise RuntimeError(f"the result is {got!r}, want {want!r}")
