"""Dask graphs and collections on the real node."""

from __future__ import annotations

import contextlib
import functools
import operator
import os
import pickle
import sys
import threading
import time
import types
from typing import Any, Iterator

import cloudpickle
import pytest

import mobula
from mobula import _runtime

from waiting import until

dask = pytest.importorskip("dask")
np = pytest.importorskip("numpy")

import dask.array as da  # noqa: E402
import dask.bag as db  # noqa: E402
from dask.callbacks import Callback  # noqa: E402
from dask.delayed import delayed  # noqa: E402
from dask.order import order  # noqa: E402
from dask.task_spec import DataNode, Task, TaskRef  # noqa: E402

import mobula.dask  # noqa: E402
from mobula._graphs import Builder  # noqa: E402
from mobula.dask import MobulaDaskCallback, ProgressBar, RayDaskCallback, _payload, _plan, _ship, get, get_sync  # noqa: E402
from mobula.dask._get import references  # noqa: E402

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


def sleepy(x: Any) -> Any:
    time.sleep(0.3)
    return x


# ---- workers


@mobula.remote
def loaded(names: list[str]) -> list[bool]:
    return [name in sys.modules for name in names]


def test_workers_have_what_the_driver_had_imported(node: Any) -> None:
    assert mobula.get(loaded.remote(["numpy", "dask.array", "mobula.dask", "tkinter"])) == [True, True, True, False]


# ---- get


def test_keys_nested_aliases_lists_and_literals(node: Any) -> None:
    dsk = {"x": 1, "y": (inc, "x"), "z": (add, "y", 10), "alias": "z", "list": ["x", "y", ["z", 4]], "text": "no key", ("t", 0): (inc, "alias"),
           5: (inc, 1), b"b": (inc, 2), "ü": (inc, 3), 2.5: (inc, 4), ("é", -0.5, ("ß",)): (add, 2.5, "ü")}
    assert get(dsk, "z") == 12
    assert get(dsk, ["z", ["alias", "text"], "list"]) == (12, (12, "no key"), [1, 2, [12, 4]])
    assert get(dsk, [("t", 0), 5, b"b", "ü", "x"]) == (13, 2, 3, 4, 1)
    assert get(dsk, [2.5, ("é", -0.5, ("ß",))]) == (5, 9)
    assert get(dsk, []) == ()
    assert get_sync(dsk, ["z", ["alias", "text"], "list"]) == (12, (12, "no key"), [1, 2, [12, 4]])


def test_a_task_runs_in_a_worker(node: Any) -> None:
    assert get({"pid": (os.getpid,)}, "pid") != os.getpid()
    assert get_sync({"pid": (os.getpid,)}, "pid") == os.getpid()


def test_a_worker_starts_with_what_the_program_had_imported(node: Any) -> None:
    names = ("dask.array", "mobula.dask")
    assert mobula.get(mobula.remote(lambda: [name in sys.modules for name in names]).remote()) == [True, True]


def test_missing_key_and_cycle_are_named(node: Any) -> None:
    with pytest.raises(KeyError, match="nowhere.*depends on"):
        get({"a": dask._task_spec.Task("a", inc, dask._task_spec.TaskRef("nowhere"))}, "a")
    with pytest.raises(KeyError, match="absent"):
        get({"a": 1}, "absent")
    with pytest.raises(RuntimeError, match="Cycle.*a -> .*b -> a"):
        get({"a": (inc, "b"), "b": (inc, "a")}, "a")


def test_an_error_keeps_its_type_and_says_where(node: Any) -> None:
    class Special(ValueError):
        pass

    def boom(x: int) -> int:
        raise Special(f"with {x}")

    with pytest.raises(ValueError, match="with 7") as e:
        get({"a": (boom, 7), "b": (inc, "a"), "c": (add, "b", "b")}, "c")
    assert type(e.value).__name__ == "Special"
    assert "boom" in str(e.value.__cause__)  # the remote traceback
    assert get({"a": (inc, 1)}, "a") == 2


def test_what_cannot_be_pickled_is_named(node: Any) -> None:
    with pytest.raises(mobula.exceptions.NotEncodableError, match="'the-task'.*lock"):
        get({"the-task": (inc, threading.Lock())}, "the-task")


def test_a_graph_is_shipped_whole(node: Any, monkeypatch: Any) -> None:
    """In a handful of messages, however many tasks it has."""
    client = _runtime.client()
    sent: list[bytes] = []
    real = client.conn.write
    monkeypatch.setattr(client.conn, "write", lambda chunks: (sent.extend(chunks), real(chunks)))

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


@pytest.mark.parametrize("callback", [None, dask.callbacks.Callback(), dask.callbacks.Callback(posttask=lambda *what: None)], ids=["none", "some", "values"])
def test_a_failure_is_raised_at_once(node: Any, tmp_path: Any, callback: Any) -> None:
    begun, late = tmp_path / "begun", tmp_path / "late"

    def long() -> None:
        begun.touch()
        time.sleep(20)
        late.touch()

    def bad() -> None:
        until(begun.exists)
        raise ZeroDivisionError

    with contextlib.nullcontext() if callback is None else callback, pytest.raises(ZeroDivisionError):
        get({"long": (long,), "bad": (bad,)}, ["long", "bad"])
    assert not late.exists()
    until(lambda: not mobula.graphs())


def test_exceptions_that_python_takes_for_its_own(node: Any) -> None:
    def stops() -> None:
        raise StopIteration(7)

    with pytest.raises(StopIteration) as e:
        get({"a": (stops,), "b": (inc, "a")}, "b")
    assert e.value.value == 7
    with pytest.raises(StopIteration):
        get({"a": (stops,)}, "a", rerun_exceptions_locally=True)


def test_an_item_that_is_not_there_fails_who_takes_it(node: Any, shipped: Any) -> None:
    m = delayed(dict)([("k", 1), ("l", 2)])
    good, other, missing = delayed(inc)(m["k"]), delayed(inc)(m["l"]), delayed(inc)(m["nokey"])
    held = dask.persist(good, other, missing, scheduler=get)
    assert shipped[-1].plan.split or shipped[-1].numbers
    assert held[0].compute(scheduler=get) == 2 and held[1].compute(scheduler=get) == 3
    with pytest.raises(KeyError, match="nokey"):
        held[2].compute(scheduler=get)


def test_an_interrupt_stops_the_graph_and_loses_nothing(node: Any) -> None:
    started = time.monotonic()
    timer = threading.Timer(0.5, lambda: os.kill(os.getpid(), 2))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        get({("s", i): (time.sleep, 20) for i in range(4)}, [("s", i) for i in range(4)])
    assert time.monotonic() - started < 2.5
    assert get({"a": (inc, 1)}, "a") == 2


def test_saturation_is_checked(node: Any) -> None:
    with dask.config.set({"distributed.scheduler.worker-saturation": "a lot"}), pytest.raises(mobula.exceptions.InvalidError, match="a lot.*inf"):
        get({"a": (inc, 1)}, "a")
    for x in (0, 1.1, "inf", float("inf")):
        with dask.config.set({"distributed.scheduler.worker-saturation": x}):
            assert get({**{("a", i): (inc, i) for i in range(20)}, "s": (sum, [("a", i) for i in range(20)])}, "s") == 210


def test_a_task_that_kills_its_workers_is_named(node: Any) -> None:
    with pytest.raises(mobula.exceptions.WorkerCrashedError, match="suicide"):
        get({"suicide": (os._exit, 3), "after": (inc, "suicide")}, "after")
    assert get({"a": (inc, 1)}, "a") == 2


def test_annotations(node: Any, shipped: Any) -> None:
    tries = os.path.join(_runtime.client().welcome.job_dir, "tries")

    def flaky() -> int:
        with open(tries, "a") as f:
            f.write("x")
        if os.path.getsize(tries) < 3:
            raise OSError("not yet")
        return 7

    with dask.annotate(retries=5, priority=3):
        x = delayed(flaky)()
    with mobula.dask.enable():
        assert x.compute(optimize_graph=False) == 7
    with dask.annotate(resources={"GPU": "many"}):
        y = delayed(inc)(1)
    with pytest.raises(mobula.exceptions.InvalidError, match="resources.*many"):
        y.compute(scheduler=get, optimize_graph=False)


def test_options_of_tasks(node: Any, shipped: Any) -> None:
    x = delayed(inc)(1)
    assert x.compute(scheduler=get, ray_remote_args={"num_cpus": 0.5, "max_retries": 0}) == 2
    with pytest.raises(ValueError, match="dask.annotate"):
        x.compute(scheduler=get, resources={"GPU": 1})
    with pytest.raises(mobula.exceptions.InvalidError, match="no option 'colour'.*num_cpus"):
        x.compute(scheduler=get, remote_args={"colour": 1})
    with dask.annotate(ray_remote_args={"num_cpus": 100}), dask.config.set({"optimization.fuse.active": False}):
        y = delayed(inc)(1)
    with pytest.raises(mobula.MobulaError, match="100"):  # what is said of a layer goes before what is said of all: no node has so many
        y.compute(scheduler=get, ray_remote_args={"num_cpus": 1}, optimize_graph=False)


# ---- what is said of tasks


@pytest.fixture
def log(tmp_path: Any) -> str:
    return str(tmp_path / "log")


def said(path: str, what: str = "x") -> int:
    """Notes something, and gives how much was noted."""
    with open(path, "a") as f:
        f.write(what)
        return f.tell()


def logged(path: str) -> str:
    with open(path) as f:
        text = f.read()
    os.unlink(path)
    return text


def fails(path: str, times: int = 1000) -> int:
    n = said(path)
    if n <= times:
        raise OSError("not yet")
    return n


def dies(path: str) -> None:
    said(path)
    os._exit(3)


def attempts(path: str, **of_all: Any) -> int:
    """How often a task runs that always fails."""
    with pytest.raises(OSError, match="not yet"):
        delayed(fails)(path).compute(scheduler=get, optimize_graph=False, **of_all)
    return len(logged(path))


def test_retries_are_of_a_tasks_own_errors(node: Any, log: str) -> None:
    for n in range(3):
        with dask.annotate(retries=n):
            assert attempts(log) == n + 1
            assert attempts(log, retries=5 - n) == n + 1  # the annotation goes first
        assert attempts(log, retries=n) == n + 1
    assert delayed(fails)(log, 3).compute(scheduler=get, retries=3) == 4


def test_retries_are_not_of_workers_that_die(node: Any, log: str) -> None:
    for n in (0, 5):
        with dask.annotate(retries=n):
            x = delayed(dies)(log, dask_key_name="killer")
        with pytest.raises(mobula.exceptions.WorkerCrashedError, match="the task 'killer'"):
            x.compute(scheduler=get, optimize_graph=False)
        assert len(logged(log)) == 3


@pytest.mark.parametrize("options, times", [
    ({}, 1), ({"max_retries": 5}, 1), ({"max_retries": 5, "retry_exceptions": False}, 1), ({"max_retries": 0, "retry_exceptions": True}, 1),
    ({"max_retries": 1, "retry_exceptions": True}, 2), ({"retry_exceptions": True, "max_retries": 1}, 2), ({"retry_exceptions": True}, 4),
    ({"retry_exceptions": [ArithmeticError]}, 1), ({"retry_exceptions": [OSError, ArithmeticError]}, 4), ({"retry_exceptions": []}, 1)])
def test_errors_are_retried_as_mobula_remote_says(node: Any, log: str, options: Any, times: int) -> None:
    assert attempts(log, ray_remote_args=options) == times
    with dask.annotate(remote_args=options):
        assert attempts(log) == times
    with pytest.raises(OSError, match="not yet"):
        mobula.get(mobula.remote(fails).options(**options).remote(log), timeout=30)
    assert len(logged(log)) == times


def test_retries_without_an_end(node: Any, log: str) -> None:
    for options in ({"max_retries": -1, "retry_exceptions": True}, {"retry_exceptions": True, "max_retries": -1}):
        assert delayed(fails)(log, 20).compute(scheduler=get, ray_remote_args=options) == 21
        assert len(logged(log)) == 21
    with dask.annotate(ray_remote_args={"max_retries": 1}):
        assert attempts(log, ray_remote_args={"retry_exceptions": True, "max_retries": -1}) == 2
        assert attempts(log, ray_remote_args={"retry_exceptions": True}, retries=0) == 1
    with dask.annotate(ray_remote_args={"retry_exceptions": False}):
        assert attempts(log, retries=2) == 1


def test_other_options_of_tasks(node: Any) -> None:
    x = delayed(inc)(1)
    for kwargs in ({"remote_args": {"isolated": True, "scheduling_strategy": "SPREAD", "timeout": 60, "max_retries": None}},
                   {"workers": ["here"], "allow_other_workers": True}, {"priority": -3, "retries": 0}):
        with dask.annotate(workers=["elsewhere"], allow_other_workers=False):
            assert delayed(inc)(x).compute(scheduler=get, **kwargs) == 3
    with pytest.raises(mobula.exceptions.DeadlineError):
        delayed(sleepy)(1).compute(scheduler=get, remote_args={"timeout": 0.05})
    for name, value in (("num_returns", 2), ("name", "x"), ("backpressure", 1)):
        with pytest.raises(mobula.exceptions.InvalidError, match=f"no option '{name}'.*isolated"):
            x.compute(scheduler=get, remote_args={name: value})
    for wrong in ({"remote_args": {"retry_exceptions": [3]}}, {"remote_args": {"max_retries": -2}}, {"retries": -1}, {"priority": "high"},
                  {"remote_args": {"num_cpus": -1}}):
        with pytest.raises(mobula.exceptions.InvalidError, match="retr|priority|num_cpus"):
            x.compute(scheduler=get, **wrong)


def test_a_resource_bounds_how_many_run_at_once(node: Any, tmp_path: Any) -> None:
    marker = str(tmp_path / "running")

    def alone(i: int) -> int:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))  # fails where another is there
        time.sleep(0.02)
        os.unlink(marker)
        return i

    with dask.annotate(resources={"slot": 1}):
        parts = [delayed(alone)(i) for i in range(8)]
    assert sum(delayed(list)(parts).compute(scheduler=get, optimize_graph=False)) == 28


def test_priorities_order_what_is_ready(node: Any, log: str) -> None:
    for wanted in ("abcd", "dcba", "cadb"):
        parts = []
        for name in "abcd":
            with dask.annotate(priority=-wanted.index(name), ray_remote_args={"num_cpus": 2}):  # one at a time
                parts.append(delayed(said)(log, name, dask_key_name=name))
        delayed(list)(parts).compute(scheduler=get, optimize_graph=False)
        assert logged(log) == wanted


def test_a_long_task_does_not_hold_up_short_ones(node: Any) -> None:
    dsk: dict[Any, Any] = {("s", i): (time.sleep, 0.05) for i in range(21)}
    dsk["all"] = (list, list(dsk))
    get(dsk, "all")  # both workers are there
    dsk[min(dsk, key=order(dsk).get)] = (time.sleep, 1)  # which of them comes late is no news before it runs

    def makespan() -> float:
        started = time.monotonic()
        get(dsk, "all")
        return time.monotonic() - started

    assert any(makespan() <= 1.3 for _ in range(4))  # the ideal is 1; another program may have had the CPU


# ---- collections


def test_collections(node: Any) -> None:
    with mobula.dask.enable():
        x = da.arange(1000, chunks=100)
        assert int((x + x.T).sum().compute()) == 999_000
        assert db.from_sequence(range(100), npartitions=5).map(inc).filter(lambda n: n % 2).sum().compute() == 2500
        assert delayed(add)(delayed(inc)(1), 2).compute() == 4
    assert dask.config.get("scheduler", None) is None


def test_dataframe_shuffles(node: Any, shipped: Any) -> None:
    pd = pytest.importorskip("pandas")
    dd = pytest.importorskip("dask.dataframe")
    # The snippet of the talk: a mean by age.
    frame = pd.DataFrame(np.random.randint(0, 100, size=(1024, 2)), columns=["age", "grade"])
    with mobula.dask.enable():
        df = dd.from_pandas(frame, npartitions=4)
        pd.testing.assert_series_equal(df.groupby(["age"]).mean().compute()["grade"].sort_index(), frame.groupby("age").mean()["grade"])
        out = df.set_index("age", max_branch=float("inf")).compute()
    assert list(out.index) == sorted(frame["age"])
    assert any(s.plan.split for s in shipped)


def test_persist_holds_references(node: Any, shipped: Any) -> None:
    with mobula.dask.enable():
        x = da.ones((100, 100), chunks=(50, 50)).persist()
        values = list(x.__dask_graph__().values())
        assert len(values) == 4 and all(type(v) is mobula.ObjectRef for v in values)
        assert int(x.sum().compute()) == 10_000
        calls = os.path.join(_runtime.client().welcome.job_dir, "calls")

        def once() -> int:
            with open(calls, "a") as f:
                f.write("x")
            return 2

        (y,) = dask.persist(delayed(once)())
        assert type(next(iter(y.dask.values()))) is mobula.ObjectRef
        assert y.compute() == 2 and delayed(inc)(y).compute() == 3 and shipped[-1].plan.given
        assert get_sync(dict(y.dask), y.key) == 2
        with open(calls) as f:
            assert f.read() == "x"
    z = da.ones(10, chunks=5).persist(scheduler=get)
    assert int(z.sum().compute(scheduler=get)) == 10


def test_persist_does_not_wait(node: Any) -> None:
    started = time.monotonic()
    slow = delayed(time.sleep)(1.5).persist(scheduler=get)
    assert time.monotonic() - started < 1
    assert slow.compute(scheduler=get) is None
    assert time.monotonic() - started > 1


@pytest.mark.parametrize("saturation, most", [(0, 1), (1.1, 3), (2, 4), ("inf", 40)])  # of 2 CPUs, ceil(2 * saturation) root tasks, but 1 at least
def test_what_runs_can_be_seen_and_stops_when_nobody_wants_it(node: Any, saturation: Any, most: int) -> None:
    n = 40
    slow = [delayed(sleepy)(i, pure=False) for i in range(n)]
    with dask.config.set({"distributed.scheduler.worker-saturation": saturation}):
        kept = delayed(sum)(slow).persist(scheduler=get)
    seen = until(lambda: [g for g in mobula.graphs() if g["processing"] and g["done"]])
    assert len(seen) == 1 and seen[0]["tasks"] == n + 1 and seen[0]["waiting"] == 1
    if most < n:
        assert 0 < seen[0]["processing"] <= most and seen[0]["queued"] > n // 2, "root tasks are withheld, and what needs them waits"
    else:
        assert seen[0]["processing"] > n // 2 and seen[0]["queued"] == 0, "none is withheld"
    counted = sum(seen[0][state] for state in ("queued", "processing", "waiting", "done"))
    assert abs(counted - (n + 1)) <= 2  # they are read one after the other
    ran = mobula.status()["jobs"][0]["finished"]
    del kept
    until(lambda: not mobula.graphs())
    assert mobula.status()["jobs"][0]["finished"] - ran < n // 2
    assert get({"a": (inc, 1)}, "a") == 2


def test_compute_inside_a_task(binary: str, node: Any) -> None:
    def nested(depth: int) -> int:
        if depth == 0:
            return 1
        return int(delayed(nested)(depth - 1).compute()) + 1  # on the cluster: the worker has its own get configured

    assert get({"n": (nested, 5)}, "n") == 6


# ---- callbacks


def test_dasks_five_callbacks(node: Any) -> None:
    seen: list[Any] = []

    class Watch(Callback):  # type: ignore[misc]
        def _start(self, dsk: Any) -> None:
            seen.append(("start", len(dsk)))

        def _start_state(self, dsk: Any, state: Any) -> None:
            seen.append(("state", sorted(map(str, state["ready"]))))

        def _pretask(self, key: Any, dsk: Any, state: Any) -> None:
            assert key in state["running"]
            seen.append(("pre", key))

        def _posttask(self, key: Any, result: Any, dsk: Any, state: Any, worker: Any) -> None:
            assert key in state["finished"] and key not in state["running"]
            seen.append(("post", key, result))

        def _finish(self, dsk: Any, state: Any, failed: bool) -> None:
            seen.append(("finish", failed))

    dsk = {"x": 1, "y": (inc, "x"), "z": (inc, "y"), "alias": "z"}
    with Watch():
        assert get(dsk, "alias") == 3
    assert seen == [("start", 4), ("state", ["y"]), ("pre", "y"), ("post", "y", 2), ("pre", "z"), ("post", "z", 3), ("pre", "alias"),
                    ("post", "alias", 3), ("finish", False)]
    seen.clear()
    with Watch(), pytest.raises(ZeroDivisionError):
        get({"a": (operator.truediv, 1, 0)}, "a")
    assert seen[-1] == ("finish", True)


def test_the_six_callbacks(node: Any) -> None:
    told = os.path.join(_runtime.client().welcome.job_dir, "told")
    seen: list[Any] = []

    class Cache(RayDaskCallback):
        def _ray_presubmit(self, task: Any, key: Any, deps: Any) -> Any:
            seen.append(("presubmit", key))
            return 40 if key == "y" else None

        def _ray_postsubmit(self, task: Any, key: Any, deps: Any, object_ref: Any) -> None:
            seen.append(("postsubmit", key, deps, mobula.get(object_ref)))

        def _ray_pretask(self, key: Any, object_refs: Any) -> Any:
            return key, object_refs

        def _ray_posttask(self, key: Any, result: Any, pre_state: Any) -> None:
            with open(told, "a") as f:
                f.write(f"{key} {result} {pre_state}\n")

        def _ray_postsubmit_all(self, object_refs: Any, dsk: Any) -> None:
            seen.append(("all", len(object_refs), len(dsk)))

        def _ray_finish(self, result: Any) -> None:
            seen.append(("finish", result))

    del seen[:]
    callback = Cache()
    callback._ray_pretask, callback._ray_posttask = _pre, _Post(told)  # type: ignore[method-assign,assignment]
    dsk = {"x": 1, "y": (inc, "x"), "z": (add, "y", 10)}
    with callback:
        assert get(dsk, "z") == 50
    assert seen == [("presubmit", "y"), ("presubmit", "z"), ("postsubmit", "z", [40], 50), ("all", 1, 3), ("finish", 50)]
    with open(told) as f:
        assert f.read() == "z 50 ('z', [40])\n"
    assert not MobulaDaskCallback.active


def _pre(key: Any, object_refs: Any) -> Any:
    return key, object_refs


class _Post:
    def __init__(self, path: str) -> None:
        self.path = path

    def __call__(self, key: Any, result: Any, pre_state: Any) -> None:
        with open(self.path, "a") as f:
            f.write(f"{key} {result} {pre_state}\n")


def test_tasks_that_run_as_one_are_watched_one_by_one(node: Any, shipped: Any) -> None:
    paths = [os.path.join(_runtime.client().welcome.job_dir, name) for name in ("first", "second")]
    with MobulaDaskCallback(pretask=_pre, posttask=_Post(paths[0])), MobulaDaskCallback(ray_posttask=_Post(paths[1])):
        assert get({"x": 1, "y": (inc, "x"), "z": (add, "y", 10)}, "z") == 12
    assert len(shipped[-1].chains) == 1
    for path, states in zip(paths, (("('y', [1])", "('z', [2])"), (None, None))):
        with open(path) as f:
            lines = f.read().splitlines()
        assert lines == [f"y 2 {states[0]}", f"z 12 {states[1]}"]


def test_callbacks_by_name_and_wrong_ones() -> None:
    ends: list[Any] = []
    MobulaDaskCallback(finish=ends.append), MobulaDaskCallback(ray_finish=ends.append)
    with pytest.raises(TypeError, match="no hook 'ray_middle'.*presubmit"):
        MobulaDaskCallback(ray_middle=print)


def test_progress_bar(node: Any, capsys: Any) -> None:
    with ProgressBar(desc="sums"):
        assert get({**{("a", i): (inc, i) for i in range(10)}, "s": (sum, [("a", i) for i in range(10)])}, "s") == 55
    err = capsys.readouterr().err
    assert "sums: 100%" in err and "11/11" in err


def test_the_plan_knows_what_is_needed() -> None:
    p = _plan.plan({"a": (inc, 1), "b": (inc, "a"), "unused": (inc, "b"), "lit": 3, "al": "b"}, ["al", "lit"])
    assert p.tasks == ["a", "b"] and p.find("al") == "b" and p.literals == {"lit": 3}
    assert p.chains(["b"]) == [["a", "b"]]
    assert p.chains(["a", "b"]) == [["a"], ["b"]]
