"""mobula.Executor beyond what CPython's own tests of executors (suites/test_cpython.py) see."""

from __future__ import annotations

import contextlib
import functools
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
import time
import traceback
from concurrent import futures
from typing import Any, Iterator

import cloudpickle
import numpy as np
import pytest
from waiting import PATIENCE, until

import mobula
from mobula import _runtime
from mobula import exceptions as x
from mobula._client import objects, rejoin

cloudpickle.register_pickle_by_value(sys.modules[__name__])


@pytest.fixture(scope="module")
def shared(binary: str) -> Iterator[Any]:
    with mobula.init(num_cpus=2, object_store_memory=64 << 20) as c:
        yield c


@pytest.fixture
def own(binary: str, shared: Any) -> Iterator[None]:
    """A node that the test may break; the others' one comes back afterwards."""
    mobula.shutdown()
    mobula.init(num_cpus=2)
    try:
        yield
    finally:
        mobula.shutdown()
        mobula.init(num_cpus=2, object_store_memory=64 << 20)


class Unpicklable:
    def __reduce__(self) -> Any:
        raise RuntimeError("not this one")


def meet(barrier: Any) -> int:
    return int(barrier.wait(PATIENCE))


def highest(lock: Any, counts: Any) -> None:
    """Notes how many run at once."""
    with lock:
        counts["now"] += 1
        counts["most"] = max(counts["most"], counts["now"])
    time.sleep(0.02)
    with lock:
        counts["now"] -= 1


def test_max_workers_is_how_many_run_at_once(shared: Any) -> None:
    with multiprocessing.Manager() as manager:
        with mobula.Executor(6) as ex:  # more than there are CPUs
            assert sorted(ex.map(meet, [manager.Barrier(6)] * 6)) == list(range(6))
        lock, counts = manager.Lock(), manager.dict(now=0, most=0)
        with mobula.Executor(1) as ex:
            list(ex.map(highest, [lock] * 20, [counts] * 20))
        assert counts["most"] == 1
        counts["most"] = 0
        with mobula.Executor(3) as ex:
            list(ex.map(highest, [lock] * 60, [counts] * 60))
        assert 2 <= counts["most"] <= 3
    assert mobula.Executor()._max_workers == 2


def test_what_has_not_begun_and_is_cancelled_never_runs(shared: Any, tmp_path: Any) -> None:
    def run(i: int) -> int:
        (tmp_path / f"ran-{i}").touch()
        until(lambda: (tmp_path / "go").exists())
        return i

    with mobula.Executor(1) as ex:
        fs = [ex.submit(run, i) for i in range(20)]
        until(lambda: (tmp_path / "ran-0").exists())
        cancelled = {i for i, f in enumerate(fs) if f.cancel()}
        assert cancelled >= set(range(2, 20)) and 0 not in cancelled
        (tmp_path / "go").touch()
    kept = {i for i in range(20) if i not in cancelled}
    assert {int(p.name[4:]) for p in tmp_path.glob("ran-*")} == kept == {f.result() for f in fs if not f.cancelled()}
    done, rest = futures.wait(fs, timeout=0)
    assert len(done) == 20 and not rest


def test_errors(shared: Any) -> None:
    def fails(key: str) -> None:
        raise KeyError(key)

    with mobula.Executor(2) as ex:
        wrong = ex.submit(len, Unpicklable())
        with pytest.raises(x.NotEncodableError, match="not this one"):
            wrong.result(PATIENCE)
        error = ex.submit(fails, "missing").exception(PATIENCE)
        assert type(error) is KeyError and error.args == ("missing",)
        text = "".join(traceback.format_exception(error))
        assert "raise KeyError(key)" in text and "direct cause" in text
        with pytest.raises(x.NotEncodableError, match="not this one"):
            ex.submit(Unpicklable).result(PATIENCE)  # as a result
        with pytest.raises(x.WorkerCrashedError):
            ex.submit(os._exit, 1).result(PATIENCE)
        assert ex.submit(abs, -1).result(PATIENCE) == 1  # what cost the call its attempts is no harm to others
    with pytest.raises(RuntimeError, match="after shutdown"):
        ex.submit(abs, -1)
    with pytest.raises(x.InvalidError, match="num_returns"):
        mobula.Executor(num_returns=2)
    with pytest.raises(x.InvalidError, match="no option 'mx'"):
        mobula.Executor(mx=2)


def test_arguments(shared: Any) -> None:
    a = np.arange(100_000.0)
    ref = mobula.put(a)
    with mobula.Executor(2) as ex:
        got = ex.submit(lambda u, v: u + v, ref, v=a).result(PATIENCE)  # a reference is passed as its value
        assert (got == 2 * a).all() and ex.submit(functools.partial(pow, 2), 5).result(PATIENCE) == 32
        values = [1]
        block = [ex.submit(time.sleep, 0.2) for _ in range(4)]
        late = ex.submit(list, values)
        values.append(2)
        assert late.result(PATIENCE) == [1]  # as it was at the submit
        del block
        sizes = ex.map(np.size, (np.zeros(50_000) for _ in range(40)), chunksize=3)
        assert list(sizes) == [50_000] * 40


def test_map(shared: Any) -> None:
    begun: list[int] = []

    def endless() -> Iterator[int]:
        i = 0
        while True:
            begun.append(i)
            yield i
            i += 1

    with mobula.Executor(2) as ex:
        it = ex.map(abs, endless(), buffersize=3)
        assert [next(it) for _ in range(5)] == [0, 1, 2, 3, 4] and len(begun) <= 9
        it.close()  # type: ignore[attr-defined]
        assert list(ex.map(pow, range(7), range(7), chunksize=3, buffersize=1)) == [n ** n for n in range(7)]
        assert list(ex.map(abs, [])) == []
        with pytest.raises(ZeroDivisionError):
            list(ex.map(divmod, [1, 1, 1, 1], [1, 1, 0, 1], chunksize=2))
        for wrong in ({"chunksize": 0}, {"buffersize": 0}):
            with pytest.raises(ValueError):
                ex.map(abs, [1], **wrong)
        with pytest.raises(TypeError):
            ex.map(abs, [1], buffersize=1.5)  # type: ignore[arg-type]


def fail() -> None:
    raise OSError("no such device")


TABLE: dict[str, int] = {}
LIMIT = None


def prepare(limit: int) -> None:
    global LIMIT
    LIMIT = limit
    TABLE["a"] = limit
    _connect()


def _connect() -> None:
    global connection  # nobody else sets it
    connection = ["open"]


def doubled(f: Any) -> Any:
    @functools.wraps(f)
    def inside(*args: Any) -> Any:
        return 2 * f(*args)

    return inside


def looks(i: int) -> Any:
    return LIMIT, TABLE, connection, i


def by_another(i: int) -> Any:
    return looks(i)


class Looks:
    def method(self, i: int) -> Any:
        return looks(i)

    __call__ = method


def test_calls_see_what_the_initializer_has_set(shared: Any) -> None:
    want = (5, {"a": 5}, ["open"])
    with mobula.Executor(1, initializer=functools.partial(prepare, 5)) as ex:
        for f in (looks, by_another, Looks(), Looks().method, lambda i: looks(i), functools.partial(by_another)):
            assert ex.submit(f, 1).result(PATIENCE) == (*want, 1)
        assert list(ex.map(looks, range(5), chunksize=2)) == [(*want, i) for i in range(5)]
        assert ex.submit(doubled(looks), 1).result(PATIENCE) == 2 * (*want, 1)
        assert ex.submit(eval("lambda: n", {"n": 3})).result(PATIENCE) == 3
    with mobula.Executor(1, initializer=prepare, initargs=(6,)) as ex:
        assert ex.submit(looks, 1).result(PATIENCE)[0] == 6
    with mobula.Executor(1) as ex:  # in the same process
        assert ex.submit(lambda: (LIMIT, TABLE)).result(PATIENCE) == (None, {})


def test_an_initializer_that_fails_breaks_the_executor(shared: Any) -> None:
    with mobula.Executor(2, initializer=fail) as ex:
        fs = [ex.submit(abs, 0)]
        with contextlib.suppress(futures.BrokenExecutor):  # it may be so far already
            fs += [ex.submit(abs, i) for i in range(10)]
        for f in fs:
            with pytest.raises(futures.BrokenExecutor, match="no such device"):
                f.result(PATIENCE)
        with pytest.raises(futures.BrokenExecutor, match="no such device"):
            ex.submit(abs, 1)
    with mobula.Executor(2) as ex:  # its processes serve others
        assert ex.submit(abs, -2).result(PATIENCE) == 2


def test_a_node_that_is_gone_breaks_the_executor(own: None, monkeypatch: Any) -> None:
    monkeypatch.setattr(rejoin, "PATIENCE", 0.5)
    with mobula.Executor(2) as ex:
        fs = [ex.submit(time.sleep, 3600) for _ in range(10)]
        _runtime.state.node.process.kill()
        for f in fs:
            with pytest.raises(futures.BrokenExecutor, match="the node is gone"):
                f.result(PATIENCE)
        with pytest.raises(futures.BrokenExecutor, match="the node is gone"):
            ex.submit(abs, 1)


def test_workers_are_stopped(shared: Any) -> None:
    for stop in (mobula.Executor.terminate_workers, mobula.Executor.kill_workers):
        ex = mobula.Executor(2)
        fs = [ex.submit(time.sleep, 3600) for _ in range(10)]
        until(lambda: sum(f.running() for f in fs) >= 2)
        stop(ex)
        done, rest = futures.wait(fs, timeout=PATIENCE)
        assert len(done) == 10 and not rest
        for f in fs:
            with pytest.raises(futures.CancelledError):
                f.result()
        ex.shutdown()


def test_executors_in_tasks(shared: Any) -> None:
    def inner(n: int) -> int:
        with mobula.Executor(2) as ex:
            done = futures.as_completed([ex.submit(abs, -i) for i in range(n)], timeout=PATIENCE)
            return sum(f.result() for f in done)

    with mobula.Executor(4) as ex:  # all CPUs are taken by tasks that wait
        assert list(ex.map(inner, [5] * 8, timeout=PATIENCE)) == [10] * 8


def test_dask_computes_with_an_executor(shared: Any) -> None:
    import dask.array as da

    a = da.ones((400, 400), chunks=100)
    with mobula.Executor() as ex:
        assert (a @ a.T).sum().compute(scheduler=ex) == 400 ** 3


def test_callbacks_may_submit_and_wait(shared: Any) -> None:
    done = threading.Event()
    got: list[int] = []

    def again(f: Any) -> None:
        got.append(f.result())
        if len(got) < 5:
            ex.submit(abs, -len(got)).add_done_callback(again)
        else:
            got.append(mobula.get(mobula.put(7)))
            done.set()

    with mobula.Executor(2) as ex:
        ex.submit(abs, 0).add_done_callback(again)
        assert done.wait(PATIENCE)
    assert got == [0, 1, 2, 3, 4, 7]


def many(i: int) -> bytes:
    return bytes([i]) * 10_000


def test_results_that_come_faster_than_callbacks_take_them(shared: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the connection's cache of values holds no more is in the executor's hands."""
    monkeypatch.setattr(objects, "CACHE_BYTES", 50_000)
    go = threading.Event()
    with mobula.Executor() as ex:
        fs = [ex.submit(many, i) for i in range(40)]
        fs[0].add_done_callback(lambda _: go.wait(PATIENCE))
        until(lambda: not ex._calls._waiting and not ex._calls._sent)  # all have come
        go.set()
        assert [f.result(PATIENCE) for f in fs] == [many(i) for i in range(40)]


def test_an_executor_that_is_dropped_ends_its_thread(shared: Any) -> None:
    def threads() -> int:
        return sum(t.name == "mobula-executor" for t in threading.enumerate())

    until(lambda: threads() == 0)
    ex = mobula.Executor(2)
    f = ex.submit(time.sleep, 0.1)
    assert threads() == 1
    del ex
    assert f.result(PATIENCE) is None
    until(lambda: threads() == 0)


def test_what_was_submitted_is_done_before_the_program_ends(binary: str, tmp_path: Any) -> None:
    program = f"""
import pathlib, time, mobula
def work(i):
    time.sleep(0.05)
    pathlib.Path({str(tmp_path)!r}, str(i)).touch()
ex = mobula.Executor(2)
for i in range(10):
    ex.submit(work, i)
"""
    said = subprocess.run([sys.executable, "-c", program], env={**os.environ, "MOBULA_BINARY": binary}, capture_output=True,
                          text=True, timeout=PATIENCE)
    assert said.returncode == 0 and not said.stderr, said.stderr
    assert len(list(tmp_path.iterdir())) == 10


def test_an_executor_does_not_travel(shared: Any) -> None:
    with pytest.raises(TypeError):
        pickle.dumps(mobula.Executor())


@pytest.mark.parametrize("gone", [False, True])
def test_interrupted_submits_leave_an_executor_as_it_was(shared: Any, monkeypatch: pytest.MonkeyPatch, gone: bool) -> None:
    client = _runtime.client()
    real = client.getter.when

    def when(*args: Any) -> None:
        if gone:
            real(*args)
        raise KeyboardInterrupt

    e = mobula.Executor(1)
    with monkeypatch.context() as patch:
        patch.setattr(client.getter, "when", when)
        for _ in range(5):
            with pytest.raises(KeyboardInterrupt):
                e.submit(abs, -1)
    assert e.submit(abs, -3).result(PATIENCE) == 3
    until(lambda: e._calls._open <= 0)
    assert e._calls._open == 0
    e.shutdown()
