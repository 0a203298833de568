"""References that exist only inside a value or an exception live as long as it does."""

from __future__ import annotations

import sys
import time
from typing import Any

import cloudpickle
import pytest
from cluster import cluster, get, node  # noqa: F401

import mobula

cloudpickle.register_pickle_by_value(sys.modules[__name__])


class Late:
    """Puts what it has as it is pickled."""

    def __init__(self, value: Any, large: int = 0) -> None:
        self.value, self.large = value, large

    def __reduce__(self) -> Any:
        ref = mobula.put(self.value)
        return _there, (ref, bytes(self.large))


class There:
    def __init__(self, ref: Any) -> None:
        self.ref = ref


def _there(ref: Any, filling: bytes) -> There:
    return There(ref)


class Slow:
    def __reduce__(self) -> Any:
        time.sleep(0.1)  # what was released meanwhile has gone out
        return int, (0,)


@mobula.remote
def value_of(there: Any, *more: Any) -> Any:
    time.sleep(0.2)
    return mobula.get((there[0] if isinstance(there, (list, tuple)) else there).ref)


@mobula.remote
def late(value: Any, large: int = 0) -> Any:
    return [Late(value, large), Slow()]


@mobula.remote(num_returns="streaming")
def lates(n: int) -> Any:
    for i in range(n):
        yield [Late(i), Slow()]


@pytest.mark.parametrize("large", [0, 1 << 20])
def test_in_an_argument(node: Any, large: int) -> None:
    assert get(value_of.remote([Late("x", large), Slow()])) == "x"
    assert get(value_of.remote(Late("x", large), Slow(), Slow())) == "x"


@pytest.mark.parametrize("large", [0, 1 << 20])
def test_in_a_put(node: Any, large: int) -> None:
    ref = mobula.put([Late("x", large), Slow()])
    assert get(get(ref)[0].ref) == "x"


@pytest.mark.parametrize("large", [0, 1 << 20])
def test_in_a_result(node: Any, large: int) -> None:
    assert get(get(late.remote("x", large))[0].ref) == "x"


def test_in_items_of_a_stream(node: Any) -> None:
    assert [get(get(item)[0].ref) for item in lates.remote(3)] == [0, 1, 2]
