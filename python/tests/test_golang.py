"""Python calls functions and actors of a Go program, on the real node."""

from __future__ import annotations

import gc
import os
import pathlib
import pickle
import shutil
import signal
import subprocess
import sys
from typing import Any, Iterator

import cloudpickle
import helpers_of_go
import numpy as np
import pytest
from waiting import PATIENCE, until

import mobula
from mobula import _api
from mobula import exceptions as x

cloudpickle.register_pickle_by_value(sys.modules[__name__])

add = mobula.go_function("math/add")
total = mobula.go_function("kernels/total")
echo = mobula.go_function("kernels/echo")
Counter = mobula.go_actor("app/counter")


def get(ref: Any) -> Any:
    return mobula.get(ref, timeout=PATIENCE)


@pytest.fixture(scope="session")
def kernels(tmp_path_factory: Any) -> str:
    """The Go program, built."""
    go = shutil.which("go")
    if go is None:
        pytest.skip("there is no go to build the program with")
    path = str(tmp_path_factory.mktemp("kernels") / "kernels")
    root = pathlib.Path(__file__).resolve().parents[2]
    env = {**os.environ, "CGO_ENABLED": "0"}
    subprocess.run([go, "build", "-o", path, "./python/tests/testdata/kernels"], cwd=root, check=True, env=env)
    return path


@pytest.fixture
def node(binary: str, kernels: str) -> Iterator[Any]:
    with mobula.init(num_cpus=2, object_store_memory=64 << 20, go_program=kernels) as c:
        yield c


@mobula.remote
def square(n: float) -> float:
    return n * n


@mobula.remote
def sum_by_go(n: int) -> float:
    """A task of Python that waits for one of Go."""
    result: float = mobula.get(total.remote(np.arange(float(n))))
    return result


class Point:
    pass


def test_calls_and_references_of_both_languages(node: Any) -> None:
    assert get(add.remote(1, add.remote(0.5, 2))) == 3.5
    assert get(square.remote(add.remote(1, 2))) == 9  # what Go gave, to Python
    assert get(add.remote(square.remote(3), mobula.put(1.0))) == 10  # and the reverse
    assert get(mobula.go_function("kernels/split", num_returns=2).remote("a b")) == ["a", "b"]
    assert [get(r) for r in mobula.go_function("kernels/range", num_returns="streaming").remote(4)] == [0, 1, 2, 3]
    assert get(mobula.go_function("kernels/count").remote({"a": 1, "b": 2})) == 2
    inner = get(mobula.go_function("kernels/later").remote([mobula.put(2.5)]))  # inside a value it stays a reference
    assert isinstance(inner, mobula.ObjectRef) and get(inner) == 2.5
    assert get([add.remote(i, i) for i in range(2000)]) == [2 * i for i in range(2000)]
    assert get(sum_by_go.remote(100)) == 4950
    languages = {w["language"] for w in _api.request("list.workers", {"limit": 100})["rows"] if w["slot"] != "system"}
    assert languages == {"go", "python"}


VALUES: list[Any] = [
    None, True, False, 0, -7, 2**63 - 1, -(2**63), 2**80, 0.1, float("inf"), "", "grüße", b"", b"\x00\xff",
    [], [1, "a", None, [2.5]], {}, {"a": {"b": [True, b"x"]}}, "x" * 200_000, bytes(200_000), {"long": list(range(50_000))}]


def test_values_come_back_as_they_went(node: Any) -> None:
    for value in VALUES:
        got = get(echo.remote(value))
        assert got == value and type(got) is type(value)
        assert get(echo.remote(mobula.put(value, portable=True))) == value
    for kind in ("bool", "int8", "int64", "uint16", "float32", "float64", "complex128"):
        for n in (0, 3, 200_000):
            a = (np.arange(n) % 2).astype(kind)
            got = get(echo.remote(a))
            assert got.dtype == a.dtype and np.array_equal(got, a)


def test_arrays_are_read_in_place(node: Any) -> None:
    a = np.arange(100_000.0)
    ref = mobula.put(a)
    seen = get([mobula.go_function("kernels/where").remote(r) for r in (a, ref)])
    assert all("mobula" in path for path in seen), seen  # the segment, in the worker of Go
    assert get(total.remote(ref)) == a.sum()
    got = get(mobula.go_function("kernels/scale").remote(ref, 2))
    assert np.array_equal(got, 2 * a) and not got.flags.writeable
    assert helpers_of_go.where(got) == seen[0]  # what Go wrote, in place here
    assert np.array_equal(get(echo.remote(a.reshape(100, 1000)[::2, ::3])), a.reshape(100, 1000)[::2, ::3].reshape(-1))


def test_record_batches_are_read_in_place(node: Any) -> None:
    pa = pytest.importorskip("pyarrow")
    batch = pa.record_batch({"x": np.arange(100_000.0), "s": pa.array(["a", None] * 50_000)})
    assert get(mobula.go_function("kernels/rows").remote(batch)) == 4999950000.0
    assert "mobula" in get(mobula.go_function("kernels/where-rows").remote(mobula.put(batch)))
    for n in (10, 50_000):
        made = get(mobula.go_function("kernels/make-rows").remote(n))
        assert isinstance(made, pa.RecordBatch) and made.num_rows == n
        assert made.column("s").to_pylist() == [str(i) for i in range(n)]
        assert ("mobula" in helpers_of_go.where(made.column("x").to_numpy())) == (n > 10)  # small ones travel in messages
    assert get(echo.remote(pa.Table.from_batches([batch, batch.slice(3, 4)]))).num_rows == 100_004


def test_what_go_cannot_read_is_named(node: Any) -> None:
    with pytest.raises(x.NotEncodableError, match="argument of kernels/echo: .*Point.*no plain data"):
        echo.remote([1, Point()])
    with pytest.raises(x.NotEncodableError, match="array of object"):
        total.remote(np.array([None]))
    with pytest.raises(TypeError, match="have no names, got a, b"):
        add.remote(a=1, b=2)
    with pytest.raises(x.NotDecodableError, match="pickled Python object of type dict, want float64"):
        get(add.remote(1, mobula.put({"a": 1})))
    with pytest.raises(x.NotDecodableError, match=r"pickled Python object of type .*Point"):
        get(echo.remote(mobula.put(Point())))
    with pytest.raises(x.NotDecodableError, match="value is string, want float64"):
        get(add.remote("1", 2))
    with pytest.raises(x.RegistryMismatchError, match="called with 1 arguments, .* takes 2"):
        get(add.remote(1))
    with pytest.raises(x.ReturnMismatchError, match="gave 1 results, the caller expects 2"):
        get(add.options(num_returns=2).remote(1, 2)[0])


def test_errors_of_go_are_of_the_exception_tree(node: Any) -> None:
    fail = mobula.go_function("kernels/fail")
    with pytest.raises(x.UserError, match="looking up") as own:
        get(fail.remote("own"))
    assert isinstance(own.value, x.TaskError)
    assert isinstance(own.value.cause, x.UserError) and own.value.cause.name == "kernels/negative"
    with pytest.raises(x.UserError, match="no row 7 in t") as typed:
        get(fail.remote("typed"))
    cause = typed.value.cause
    for c in (cause, pickle.loads(pickle.dumps(cause))):
        assert isinstance(c, x.UserError) and c.name == "kernels/missing" and c.fields == {"Row": 7, "Table": "t"}
    with pytest.raises(x.NotFoundError, match="looking up"):
        get(fail.remote("sentinel"))
    with pytest.raises(x.PanicError, match="out of luck") as panic:
        get(fail.remote("panic"))
    assert "main.fail" in panic.value.remote_traceback
    with pytest.raises(x.TaskError, match="kernels/fail: plain words"):
        get(fail.remote("plain"))
    with pytest.raises(x.TaskError, match="plain words"):
        get(square.remote(fail.remote("plain")))  # an argument that failed fails the task


@mobula.remote
def lets_through(x: float) -> Any:
    return mobula.get(mobula.go_function("kernels/lack").remote(x))


def _error_of(ref: Any) -> Any:
    mobula.wait([ref], timeout=PATIENCE)
    try:
        get(ref)
    except x.TaskError as e:
        e.__traceback__ = None
        return e
    raise AssertionError("it did not fail")


def test_references_in_errors_cross_the_border(node: Any) -> None:
    lack, through = mobula.go_function("kernels/lack"), mobula.go_function("kernels/lack-through")
    for made in (lack.remote(2.5), lets_through.remote(2.5)):
        e = _error_of(made)
        del made
        gc.collect()
        assert get(add.remote(1, 1)) == 2  # what was released was told before
        assert isinstance(e, x.UserError) and get(e.fields["Part"]) == 2.5
        again = pickle.loads(pickle.dumps(e))
        del e
        gc.collect()
        assert get(again.cause.fields["Part"] if again.cause.fields else again.cause.cause.fields["Part"]) == 2.5
        del again
    made = through.remote(3.5)
    e = _error_of(made)
    del made
    gc.collect()
    assert get(add.remote(1, 1)) == 2
    assert isinstance(e, ValueError) and e.args[0] == "lacking" and get(e.args[1]) == 3.5
    del e
    until(lambda: gc.collect() is not None and not _api.request("list.objects", {"limit": 10})["rows"])


def test_python_is_called_through_go(node: Any) -> None:
    through = mobula.go_function("kernels/through")
    assert get(through.remote("hello")) == "HELLO"
    with pytest.raises(UnicodeError, match="not today"):  # the exception itself, by way of Go
        get(through.remote("quiet"))


def test_unknown_functions(node: Any) -> None:
    with pytest.raises(x.UnknownFunctionError, match='"no/such" is not registered .* math/add'):
        get(mobula.go_function("no/such").remote())
    with pytest.raises(x.UnknownFunctionError, match="app/counter.Dec"):
        get(Counter.remote(0).Dec.remote())
    for name in ("", "py:os.getpid", "mobula:graph"):
        with pytest.raises(x.InvalidError, match="no name that a Go program registers"):
            mobula.go_function(name)


def test_a_program_that_there_is_not(binary: str, tmp_path: Any) -> None:
    with pytest.raises(x.InvalidError, match="no executable file"):
        mobula.init(go_program=str(tmp_path / "none"))
    with mobula.init(num_cpus=1, object_store_memory=64 << 20):
        with pytest.raises(x.UnknownFunctionError, match=r'"math/add": job 1 has no Go program: .*mobula.init\(go_program='):
            get(add.remote(1, 2))
        assert get(square.remote(3)) == 9
    with mobula.init(num_cpus=1, object_store_memory=64 << 20, go_program=["/bin/sh", "-c", "echo no worker >&2; exit 3"]):
        with pytest.raises(x.RuntimeSetupError, match="status 3; the end of its stderr: no worker"):
            get(add.remote(1, 2))
        assert get(square.remote(3)) == 9


def test_a_worker_of_go_that_is_killed(node: Any, tmp_path: Any) -> None:
    def kill(path: pathlib.Path) -> None:
        until(path.exists)
        os.kill(int(path.read_text()), signal.SIGKILL)

    killed = mobula.go_function("kernels/killed")
    path = tmp_path / "first"
    ref = killed.remote(str(path))
    kill(path)
    assert get(ref) == "again"
    path = tmp_path / "second"
    ref = killed.options(max_retries=0).remote(str(path))
    kill(path)
    with pytest.raises(x.WorkerCrashedError, match="killed"):
        get(ref)
    assert get(add.remote(1, 2)) == 3 and get(square.remote(2)) == 4


def test_a_task_of_go_is_cancelled(node: Any, tmp_path: Any) -> None:
    path = tmp_path / "began"
    ref = mobula.go_function("kernels/cancelled").remote(str(path))
    until(path.exists)
    mobula.cancel(ref)
    with pytest.raises(x.TaskCancelledError):
        get(ref)


@mobula.remote
def inc(counter: Any, by: int) -> int:
    """A task of Python that calls an actor of Go."""
    result: int = mobula.get(counter.Inc.remote(by))
    return result


def test_actors_of_go(node: Any) -> None:
    c = Counter.remote(10)
    assert get([c.Inc.remote(1) for _ in range(3)]) == [11, 12, 13]
    assert get(inc.remote(c, 7)) == 20  # a handle is an argument
    back = get(mobula.go_function("kernels/of").remote(c))  # inside a value it does not say what it is
    with pytest.raises(x.InvalidError, match="go_actor"):
        back.Inc.remote(1)
    assert get(Counter.bind(back).Inc.remote(1)) == 21
    named = Counter.options(name="hits").remote(1)
    assert get(Counter.get("hits").Inc.remote(1)) == 2
    with pytest.raises(x.NameTakenError):
        Counter.options(name="hits").remote(1)
    assert Counter.options(name="hits", get_if_exists=True).remote(5) == named
    with pytest.raises(x.ActorDiedError, match="negative"):
        get(Counter.remote(-1).Inc.remote(1))
    mobula.kill(named)
    with pytest.raises(x.ActorDiedError):
        get(named.Inc.remote(1))
    with pytest.raises(TypeError, match="have no names"):
        c.Inc.remote(by=1)


def test_an_actor_of_go_whose_process_is_killed(node: Any) -> None:
    c = Counter.options(max_restarts=1, max_task_retries=-1).remote(5)
    assert get(c.Inc.remote(1)) == 6
    os.kill(get(c.PID.remote()), signal.SIGKILL)
    assert get(c.Inc.remote(1)) == 6  # made again


def test_fresh_interpreters_and_go(binary: str, kernels: str) -> None:
    with mobula.init(num_cpus=2, object_store_memory=64 << 20, go_program=[kernels], worker_processes="fresh"):
        assert get(square.remote(add.remote(1, 2))) == 9
