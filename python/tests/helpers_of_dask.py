"""A node for tests of Dask, what is shipped to it, and functions that tasks call."""

from __future__ import annotations

import sys
from typing import Any, Iterator

import cloudpickle
import pytest

import mobula

pytest.importorskip("dask")

import mobula.dask
from mobula.dask import _ship

cloudpickle.register_pickle_by_value(sys.modules[__name__])


@pytest.fixture(scope="module")
def node(binary: str) -> Iterator[Any]:
    with mobula.init(num_cpus=2, object_store_memory=128 << 20, resources={"slot": 1}) as c:
        yield c


@pytest.fixture
def shipped(node: Any) -> Iterator[list[_ship.Shipped]]:
    seen: list[_ship.Shipped] = []
    _ship.observers.append(seen.append)
    yield seen
    _ship.observers.remove(seen.append)


def inc(x: Any) -> Any:
    return x + 1


def add(x: Any, y: Any) -> Any:
    return x + y
