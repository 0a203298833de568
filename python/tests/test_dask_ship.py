"""Shipping a graph to the node: payloads, chains, and the workers' inputs."""

from __future__ import annotations

import functools
import operator
import os
import pickle
import sys
import types
from typing import Any

import cloudpickle
import pytest
from helpers_of_dask import add, inc, node, shipped  # noqa: F401

import mobula
from mobula import _runtime
from mobula._client import outbox

dask = pytest.importorskip("dask")
np = pytest.importorskip("numpy")

import dask.array as da  # noqa: E402
from dask.callbacks import Callback  # noqa: E402
from dask.delayed import delayed  # noqa: E402
from dask.task_spec import DataNode, Task, TaskRef  # noqa: E402

import mobula.dask  # noqa: E402
from mobula._graphs import Builder  # noqa: E402
from mobula.dask import _payload, _ship, get  # noqa: E402
from mobula.dask._get import references  # noqa: E402

cloudpickle.register_pickle_by_value(sys.modules[__name__])


@mobula.remote
def loaded(names: list[str]) -> list[bool]:
    return [name in sys.modules for name in names]


def test_workers_have_what_the_driver_had_imported(node: Any) -> None:
    assert mobula.get(loaded.remote(["numpy", "dask.array", "mobula.dask", "tkinter"])) == [True, True, True, False]


def test_a_worker_starts_with_what_the_program_had_imported(node: Any) -> None:
    names = ("dask.array", "mobula.dask")
    assert mobula.get(mobula.remote(lambda: [name in sys.modules for name in names]).remote()) == [True, True]


def test_a_graph_is_shipped_whole(node: Any, monkeypatch: Any) -> None:
    """In a handful of messages, however many tasks it has."""
    client = _runtime.client()
    sent: list[bytes] = []
    real = outbox.framed
    monkeypatch.setattr(outbox, "framed", lambda chunks: (sent.extend(chunks), real(chunks))[1])

    def messages(n: int) -> int:
        del sent[:]
        ref = references({**{("x", i): (inc, i) for i in range(n)}, "sum": (sum, [("x", i) for i in range(n)])}, "sum")
        client.flush()
        took = len(sent)
        assert mobula.get(ref) == n * (n + 1) // 2
        return took

    messages(10)
    assert 0 < messages(100) < 20 and 0 < messages(10_000) < 20


def test_lambdas_closures_and_big_arrays_are_shipped_once(node: Any, monkeypatch: Any) -> None:
    created: list[Any] = []
    client = _runtime.client()
    put = client.putter.put_large
    monkeypatch.setattr(client.putter, "put_large", lambda *a, **k: (created.append(a), put(*a, **k))[1])
    big = np.arange(200_000)
    n = 50
    dsk: dict[Any, Any] = {("s", i): (lambda a, i: int(a[i]), big, i) for i in range(n)}
    dsk["all"] = (sum, [("s", i) for i in range(n)])
    assert get(dsk, "all") == sum(range(n))
    assert len(created) == 1  # and not one copy of the array a task
    dsk = {"big": big, **{("u", i): (operator.getitem, "big", i) for i in range(n)}, "all": (sum, [("u", i) for i in range(n)])}
    assert get(dsk, "all") == sum(range(n))
    assert len(created) == 2


class _Adder:
    def __call__(self, x: Any, y: Any = 0) -> Any:
        return x + y


@pytest.mark.parametrize("plain, task", [
    (True, Task("t", inc, TaskRef("a"))),
    (True, Task("t", lambda x, y: x * y, TaskRef("a"), y=TaskRef("b"))),
    (True, Task("t", operator.getitem, "mobula", slice(1, 3))),
    (True, Task("t", complex, 1, TaskRef("b"))),
    (True, Task("t", os.path.join, "a", "b", _data_producer=True)),
    (False, Task("t", _Adder(), TaskRef("a"), 3)),
    (False, Task("t", functools.partial(add, 1), TaskRef("a"))),
    (False, Task("t", add, Task(None, inc, TaskRef("a")), 3)),
    (False, Task("t", add, (1, 2), TaskRef("c"))),
    (False, Task("t", max, np.arange(3))),
    (False, DataNode("t", 3)),
])
def test_a_task_comes_out_of_its_payload_as_it_went_in(node: Any, plain: bool, task: Any) -> None:
    """Whether it goes in as a node or as the parts of one."""
    client = _runtime.client()
    writer = _payload.Writer(Builder(client, _ship._runner), client)
    names = tuple(sorted(task.dependencies))
    there = {"a": 1, "b": 2, "c": (3,)}
    data, outer = writer.payload([(task, ())], names, {"small": 4})
    assert type(pickle.loads(data[8:])[0]) is (tuple if plain else list) and outer == []
    [(again, link)], taken, indices = _payload.load(data, tuple(there[k] for k in names))
    assert again.key == "t" and again.dependencies == task.dependencies and link == () and indices is None
    assert taken == {**{k: there[k] for k in names}, "small": 4}
    assert again(taken) == task(there)
    data, _ = writer.payload([(task, ()), (Task("u", repr, TaskRef("t")), ("t",))], names, {})
    assert type(pickle.loads(data[8:])[0]) is (tuple if plain else list)
    assert _payload._call(*_payload.load(data, tuple(there[k] for k in names))[:2]) == repr(task(there))


def test_tasks_that_follow_one_another_are_one(node: Any, shipped: Any) -> None:
    dsk = {"a": (inc, 1), "b": (inc, "a"), "c": (inc, "b"), "d": (add, "c", "c"), "e": (add, "d", "c")}
    assert get(dsk, "e") == 12
    assert shipped[-1].chains == [["a", "b", "c"], ["d"], ["e"]]
    assert get(dsk, ["e", "b"]) == (12, 3)
    assert shipped[-1].chains == [["a", "b"], ["c"], ["d"], ["e"]]
    assert get(dsk, "e", optimize_graph=False) == 12
    assert len(shipped[-1].chains) == 5


def test_a_split_is_one_task_with_as_many_results(node: Any, shipped: Any) -> None:
    def split(n: int) -> dict[int, int]:
        return {i: 10 * n + i for i in range(4)}

    dsk: dict[Any, Any] = {("group", g): (split, g) for g in range(3)}
    dsk.update({("part", g, i): (operator.getitem, ("group", g), i) for g in range(3) for i in range(4)})
    dsk.update({("out", i): (sum, [("part", g, i) for g in range(3)]) for i in range(4)})
    out = [("out", i) for i in range(4)]
    want = tuple(sum(10 * g + i for g in range(3)) for i in range(4))
    assert get(dsk, out) == want
    assert len(shipped[-1].chains) == 7 and len(shipped[-1].plan.split) == 3
    with dask.config.set({"mobula.shuffle-optimization": False}):
        assert get(dsk, out) == want
    assert len(shipped[-1].chains) == 19
    assert get(dsk, out + [("part", 0, 0)]) == want + (0,)
    assert mobula.get(list(references(dsk, out))) == list(want) and len(shipped[-1].chains) == 7  # persist


def test_a_split_is_one_task_while_it_is_watched(node: Any, shipped: Any) -> None:
    dsk: dict[Any, Any] = {"n": (inc, 1), "same": "n", "group": (lambda n: [n, n + 1, n + 2], "same")}
    dsk.update({("part", i): (operator.getitem, "group", i) for i in range(3)})
    dsk["sum"] = (sum, [("part", i) for i in range(3)])
    begun: list[Any] = []
    finished: list[Any] = []

    class Watch(Callback):  # type: ignore[misc]
        def _pretask(self, key: Any, dsk: Any, state: Any) -> None:
            begun.append(key)

        def _finish(self, dsk: Any, state: Any, failed: bool) -> None:
            finished.extend(state["finished"])

    with Watch():
        assert get(dsk, "sum") == 9
    assert [len(c) for c in shipped[-1].chains] == [2, 1]
    assert begun.index("n") < begun.index("group") < begun.index(("part", 0)) < begun.index("sum")
    assert sorted(map(str, begun)) == sorted(map(str, dsk)) == sorted(map(str, finished))


def test_tasks_of_which_the_same_is_said_are_one(node: Any, shipped: Any) -> None:
    def split() -> list[int]:
        return [1, 2, 3]

    for apart, tasks in ((False, 2), (True, 5)):
        with dask.annotate(retries=2):
            parts = delayed(split, nout=3)()
        with dask.annotate(retries=1 if apart else 2):
            total = delayed(sum)(list(parts))
        assert total.compute(scheduler=get, optimize_graph=False) == 6
        assert len(shipped[-1].chains) == tasks


def test_modules_that_cloudpickle_was_told_of_go_by_value(node: Any, monkeypatch: Any) -> None:
    there = types.ModuleType("only_here")  # which no worker can import
    monkeypatch.setitem(sys.modules, "only_here", there)
    exec("V = 1\ndef f(x): return x + V\nclass C:\n    def __init__(self, v=1): self.v = v", there.__dict__)
    graphs: list[tuple[dict[Any, Any], int]] = [({"a": (there.f, 1), "b": (there.f, "a")}, 3), ({"a": (map, there.f, [1]), "b": (sum, "a")}, 2),
                                                ({"a": (there.C, 4), "b": (getattr, "a", "v")}, 4),
                                                ({"a": there.C(5), "b": (lambda c: c.v, "a")}, 5)]
    cloudpickle.register_pickle_by_value(there)
    try:
        for dsk, want in graphs:
            assert get(dsk, "b") == want
    finally:
        cloudpickle.unregister_pickle_by_value(there)
    for dsk, _ in graphs:
        with pytest.raises(ModuleNotFoundError, match="only_here"):
            get(dsk, "b")


def test_intermediates_are_freed_while_the_graph_runs(node: Any, shipped: Any) -> None:
    n, size = 40, 8 << 20  # 320 MiB through a store of 128 MiB, and never more than a few at once
    dsk: dict[Any, Any] = {("x", 0): (np.ones, size // 8)}
    for i in range(1, n):
        dsk["x", i] = (add, ("x", i - 1), 1)
    dsk["sum"] = (lambda a: float(a.sum()), ("x", n - 1))
    assert get(dsk, "sum", optimize_graph=False) == n * size / 8
    summary = shipped[-1].graph.summary()
    assert summary is not None and summary["peak"] <= 4 * size and summary["ran"] == n + 1


def test_what_is_computed_is_the_callers_own(node: Any) -> None:
    for n in (10, 100_000):
        a = get({"a": (np.zeros, n)}, "a")
        a[0] = 1
    frozen = get({"a": (np.zeros, 100_000), "b": (lambda a: a.flags.writeable, "a")}, ["a", "b"])[1]
    assert frozen is False  # a task's arguments are the store's


def test_a_task_that_writes_to_what_it_takes_gets_copies(node: Any) -> None:
    def write(a: Any, b: Any) -> Any:
        a[0] = b[0] = 7
        return a, b

    big = np.zeros(100_000)
    dsk = {"a": (np.zeros, 100_000), "w": (write, "a", big), "sum": (lambda a, w: (a[0], w[0][0], w[1][0]), "a", "w")}
    assert get(dsk, ["sum", "w"])[0] == (0, 7, 7)
    with pytest.raises(ValueError, match="read-only"):
        mobula.get(mobula.remote(write).remote(mobula.put(big), mobula.put(big)))


class _Counted:
    def __init__(self) -> None:
        self.n = 0
        self.a = np.zeros(100_000)


def test_copies_are_of_what_the_task_was_given(node: Any) -> None:
    """Not of what it made of that before it came to what it cannot write to. Whether it is run with the task before it or not."""

    def step(s: Any) -> Any:
        s.n += 1
        s.a += 1
        return s.n, s.a[0]

    dsk = {"s": (_Counted,), "x": (step, "s"), "other": (id, "s")}
    assert get(dsk, "x") == (1, 1) and get(dsk, ["x", "other"])[0] == (1, 1)


def test_an_error_of_the_users_own_is_no_reason_to_run_a_task_again(node: Any) -> None:
    ran = os.path.join(_runtime.client().welcome.job_dir, "ran")

    def refuses(a: Any) -> None:
        with open(ran, "a") as f:
            f.write("x")
        raise ValueError("the database is read-only")

    with pytest.raises(ValueError, match="database"):
        get({"a": (np.zeros, 10), "b": (refuses, "a")}, "b")
    assert os.path.getsize(ran) == 1


def test_a_task_takes_a_result_under_two_names(node: Any) -> None:
    dsk = {"a": (inc, 1), "b": "a", "z": "b", "c": (add, "z", "b"), "d": (add, "c", "c")}
    for fuse in (True, False):
        assert get({**dsk, "e": (add, "a", "b")}, ["c", "d", "e"], optimize_graph=fuse) == (4, 8, 4)
        assert get({"a": (inc, 1), "b": "a", "e": (add, "a", "b")}, "e", optimize_graph=fuse) == 4
    x = da.from_delayed(delayed(np.ones)(3), (3,), float)
    assert list((x.blocks[0] + x).compute(scheduler=get)) == [2, 2, 2]
