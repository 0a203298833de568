"""Dask graphs and collections on the real node: results of get and persist, and errors."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from typing import Any

import cloudpickle
import pytest
from helpers_of_dask import add, inc, node, shipped  # noqa: F401
from notes import note, noted, stay
from waiting import until

import mobula
from mobula import _runtime

dask = pytest.importorskip("dask")
np = pytest.importorskip("numpy")

import dask.array as da  # noqa: E402
import dask.bag as db  # noqa: E402
from dask.delayed import delayed  # noqa: E402

import mobula.dask  # noqa: E402
from mobula.dask import _plan, get, get_sync  # noqa: E402

cloudpickle.register_pickle_by_value(sys.modules[__name__])


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


@pytest.mark.parametrize("callback", [None, dask.callbacks.Callback(), dask.callbacks.Callback(posttask=lambda *what: None)], ids=["none", "some", "values"])
def test_a_failure_is_raised_at_once(node: Any, tmp_path: Any, callback: Any) -> None:
    dir = str(tmp_path)

    def bad() -> None:
        until(lambda: noted(dir, "began"))
        raise ZeroDivisionError

    with contextlib.nullcontext() if callback is None else callback, pytest.raises(ZeroDivisionError):
        get({"long": (stay, dir, "stays"), "bad": (bad,)}, ["long", "bad"])
    assert not noted(dir, "ended")
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


def test_an_interrupt_stops_the_graph_and_loses_nothing(node: Any, tmp_path: Any) -> None:
    dir = str(tmp_path)

    def interrupt() -> None:
        try:
            until(lambda: noted(dir, "began"))
        finally:
            os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        get({("s", i): (stay, dir, str(i)) for i in range(4)}, [("s", i) for i in range(4)])
    until(lambda: not mobula.graphs())
    until(lambda: mobula.available_resources()["CPU"] == 2)
    assert noted(dir, "began") == noted(dir, "cancelled") and not noted(dir, "ended")  # no process had to be killed
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


def test_collections(node: Any) -> None:
    with mobula.dask.enable():
        x = da.arange(1000, chunks=100)
        assert int((x + x.T).sum().compute()) == 999_000
        assert db.from_sequence(range(100), npartitions=5).map(inc).filter(lambda n: n % 2).sum().compute() == 2500
        assert delayed(add)(delayed(inc)(1), 2).compute() == 4
    assert dask.config.get("scheduler", None) is None


def test_dataframe_shuffles(node: Any, shipped: Any, seed: int) -> None:
    pd = pytest.importorskip("pandas")
    dd = pytest.importorskip("dask.dataframe")
    # The snippet of the talk: a mean by age.
    frame = pd.DataFrame(np.random.default_rng(seed).integers(0, 100, size=(1024, 2)), columns=["age", "grade"])
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


def test_persist_does_not_wait(node: Any, tmp_path: Any) -> None:
    dir = str(tmp_path)
    slow = delayed(stay)(dir, "slow").persist(scheduler=get)
    assert not noted(dir, "ended")
    note(dir, "go")
    assert slow.compute(scheduler=get) == "slow"


@pytest.mark.parametrize("saturation, most", [(0, 1), (1.1, 3), (2, 4), ("inf", 40)])  # of 2 CPUs, ceil(2 * saturation) root tasks, but 1 at least
def test_what_runs_can_be_seen_and_stops_when_nobody_wants_it(node: Any, tmp_path: Any, saturation: Any, most: int) -> None:
    n, dir = 40, str(tmp_path)
    slow = [delayed(stay)(dir, f"s{i}", pure=False) for i in range(n)]
    with dask.config.set({"distributed.scheduler.worker-saturation": saturation}):
        kept = delayed(list)(slow).persist(scheduler=get)
    note(dir, until(lambda: noted(dir, "began")).pop() + ".go")
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


def test_the_plan_knows_what_is_needed() -> None:
    p = _plan.plan({"a": (inc, 1), "b": (inc, "a"), "unused": (inc, "b"), "lit": 3, "al": "b"}, ["al", "lit"])
    assert p.tasks == ["a", "b"] and p.find("al") == "b" and p.literals == {"lit": 3}
    assert p.chains(["b"]) == [["a", "b"]]
    assert p.chains(["a", "b"]) == [["a"], ["b"]]
