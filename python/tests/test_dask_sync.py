"""get_sync, which computes in this process; references in graphs."""

from __future__ import annotations

import operator
import os
import sys
from typing import Any, Iterator

import cloudpickle
import numpy as np
import pytest

import mobula

dask = pytest.importorskip("dask")

import dask.array as da  # noqa: E402
from dask.callbacks import Callback  # noqa: E402
from dask.delayed import delayed  # noqa: E402

import mobula.dask  # noqa: E402
from mobula.dask import MobulaDaskCallback, get, get_sync  # noqa: E402

cloudpickle.register_pickle_by_value(sys.modules[__name__])


@pytest.fixture
def node(binary: str) -> Iterator[Any]:
    with mobula.init(num_cpus=2, object_store_memory=64 << 20) as c:
        yield c


def inc(x: Any) -> Any:
    return x + 1


def pid_of_failure(block: Any) -> Any:
    if type(block) is not np.ndarray or block.shape != (5,):
        raise TypeError(f"a block was to come, not {block!r}")
    raise ZeroDivisionError(os.getpid())


def test_references_inside_tasks_are_fetched(node: Any) -> None:
    a = np.arange(5.0)
    ref = mobula.put(a)
    tasks = [(np.sum, ref), (sum, [ref, 1]), (operator.itemgetter(0), (list, [ref])), (lambda d: d["k"][0] + 1, {"k": ref})]
    for get_ in (get, get_sync):
        total, plus, again, first = get_({f"t{i}": t for i, t in enumerate(tasks)}, [f"t{i}" for i in range(4)])
        assert total == 10 and list(plus) == list(a + 11 - 10) and list(again) == list(a) and first == 1
    lock = object()
    assert get_sync({"a": (lambda x: x is lock, lock)}, "a")  # what refers to nothing stays what it is


def test_what_was_persisted_is_taken(node: Any) -> None:
    x = da.arange(10, chunks=5).persist(scheduler=get)
    for y, want in ((x + 1, 55), (x.map_blocks(inc).map_blocks(inc), 65)):
        assert int(y.sum().compute(scheduler=get_sync)) == int(y.sum().compute(scheduler=get)) == want
    block = get_sync({"a": (inc, x.__dask_graph__()[(x.name, 0)])}, "a")
    block[0] = 7  # the caller's own
    with pytest.raises(ZeroDivisionError) as e:
        x.map_blocks(pid_of_failure, dtype=float).compute(scheduler=get, rerun_exceptions_locally=True)
    assert e.value.args == (os.getpid(),)
    failed = delayed(operator.truediv)(1, 0).persist(scheduler=get)
    for later in (failed, delayed(inc)(failed)):
        with pytest.raises(ZeroDivisionError):
            later.compute(scheduler=get_sync)
        with pytest.raises(ZeroDivisionError):
            later.compute(scheduler=get, rerun_exceptions_locally=True)


@pytest.mark.parametrize("get_", [get, get_sync])
def test_callbacks(node: Any, get_: Any) -> None:
    """The same are called by both, with the same, and what a hook gives is the result."""
    told: list[Any] = []

    class Watch(Callback):  # type: ignore[misc]
        def _start(self, dsk: Any) -> None:
            told.append("start")

        def _start_state(self, dsk: Any, state: Any) -> None:
            told.append(("ready", list(state["ready"])))

        def _pretask(self, key: Any, dsk: Any, state: Any) -> None:
            told.append(("begun", key, key in state["ready"], key in state["running"]))

        def _posttask(self, key: Any, value: Any, dsk: Any, state: Any, worker: Any) -> None:
            told.append(("done", key, value, key in state["finished"]))

        def _finish(self, dsk: Any, state: Any, failed: bool) -> None:
            told.append(("over", failed))

    dsk = {"a": (inc, 1), "b": "a", "c": (operator.add, "a", "b"), "p": mobula.put(5), "q": "p"}
    with Watch():
        assert get_(dsk, ["c", "q"]) == (4, 5)
    assert sorted(told[1][1]) == ["a", "q"]
    assert [x for x in told if x[1] != "q"] == ["start", told[1], ("begun", "a", False, True), ("done", "a", 2, True), ("begun", "b", False, True),
                                               ("done", "b", 2, True), ("begun", "c", False, True), ("done", "c", 4, True), ("over", False)]
    assert ("done", "q", 5, True) in told
    del told[:]
    with Watch(), pytest.raises(ZeroDivisionError):
        get_({"a": (inc, 1), "b": (operator.truediv, "a", 0)}, "b")
    assert told[-1] == ("over", True) and not any(x[:2] == ("done", "b") for x in told)
    del told[:]
    hooks = MobulaDaskCallback(
        presubmit=lambda task, key, deps: 100 if key == "a" else told.append(("presubmit", key, deps)),
        postsubmit=lambda task, key, deps, ref: told.append(("postsubmit", key, deps, mobula.get(ref))),
        postsubmit_all=lambda refs, dsk: told.append(("all", mobula.get(refs))),
        finish=lambda result: told.append(("finish", result)))
    assert get_({"a": (inc, 1), "b": (inc, "a")}, "b", mobula_callbacks=[hooks]) == 101
    assert told == [("presubmit", "b", [100]), ("postsubmit", "b", [100], 101), ("all", [101]), ("finish", 101)]
    del told[:]
    if get_ is get_sync:  # those of get are in the worker
        with MobulaDaskCallback(pretask=lambda key, taken: (key, taken), posttask=lambda key, result, pre: told.append((key, result, pre))):
            assert get_({"a": (inc, 1), "b": (inc, "a")}, "b") == 3
        assert told == [("a", 2, ("a", [])), ("b", 3, ("b", [2]))]


def test_a_reference_of_an_earlier_connection(binary: str) -> None:
    with mobula.init(num_cpus=1, object_store_memory=64 << 20):
        old = delayed(inc)(1).persist(scheduler=get)
    with mobula.init(num_cpus=1, object_store_memory=64 << 20):
        with pytest.raises(mobula.exceptions.ShutdownError):
            delayed(inc)(old).compute(scheduler=get)
        assert delayed(inc)(1).compute(scheduler=get) == 2


def test_what_the_tasks_are_called_with_is_more_than_the_store(binary: str) -> None:
    with mobula.init(num_cpus=2, object_store_memory=8 << 20):
        n, each = 1000, 9 << 10  # bytes
        results = get({("t", i): (len, bytes(each + i)) for i in range(n)}, [("t", i) for i in range(n)])
        assert list(results) == [each + i for i in range(n)]
