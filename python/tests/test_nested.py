"""Nested tasks that wait for one another, on fewer CPUs than waiting tasks."""

from __future__ import annotations

import os
import random
import sys
from typing import Any

import cloudpickle
import pytest
from waiting import PATIENCE, TIMES

import mobula

cloudpickle.register_pickle_by_value(sys.modules[__name__])

RUNS = 200 if os.environ.get("MOBULA_STRESS") else 3


@mobula.remote
def quicksort(a: list[int], cut: int) -> list[int]:
    if len(a) <= cut:
        return sorted(a)
    p = a[len(a) // 2]
    both = [quicksort.remote([x for x in a if x < p], cut), quicksort.remote([x for x in a if x > p], cut)]
    low, high = mobula.get(both)
    return list(low) + [x for x in a if x == p] + list(high)


@pytest.mark.timeout(max(600, 12 * RUNS) * TIMES)
def test_a_nested_quicksort_on_two_cpus(binary: str) -> None:
    """The pieces take from less than a millisecond to some tens: all of what a worker gives back, and when, comes up."""
    with mobula.init(num_cpus=2):
        for i in range(RUNS):
            a = random.Random(i).choices(range(1 << 40), k=200_000)
            got: Any = mobula.get(quicksort.remote(a, 8_000), timeout=PATIENCE)
            assert got == sorted(a)
