"""Tasks of Dask and joblib that write to what they take: they run a second time, with private copies, whatever the write was refused with."""

from __future__ import annotations

import ctypes
import functools
import io
import os
import random
import struct
import sys
import tempfile
import types
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, Optional

import cloudpickle
import pytest
from helpers_of_dask import node  # noqa: F401

import mobula
from mobula import _runtime, _value
from mobula._worker import free_memory
from mobula._worker.second_run import may_be_refused_write

dask = pytest.importorskip("dask")
np = pytest.importorskip("numpy")

import mobula.dask  # noqa: E402
from mobula.dask import get  # noqa: E402

cloudpickle.register_pickle_by_value(sys.modules[__name__])


def item(a: Any) -> None:
    a[0] = 7


def in_place(a: Any) -> None:
    a += 7


def out(a: Any) -> None:
    np.add(a, 7, out=a)


def method(a: Any) -> None:
    a.fill(7)


def sort(a: Any) -> None:
    a[::-1].sort()


def partition(a: Any) -> None:
    np.ndarray.partition(a, 3)


def swapped(a: Any) -> None:
    a.byteswap(True)


def flag(a: Any) -> None:
    a.setflags(write=True)
    a[0] = 7


def flag_attribute(a: Any) -> None:
    a.flags.writeable = True


def iterator(a: Any) -> None:
    with np.nditer(a, op_flags=[["readwrite"]]) as rows:
        for x in rows:
            x[...] = 7


def clip(a: Any) -> None:
    np.clip(a, 1, 2, out=a)


def cumsum(a: Any) -> None:
    np.cumsum(a, out=a)


def copyto(a: Any) -> None:
    np.copyto(a, 7)


def put(a: Any) -> None:
    np.put(a, [0], 7)


def putmask(a: Any) -> None:
    np.putmask(a, a == a, 7)


def place(a: Any) -> None:
    np.place(a, a == a, [7])


def shuffle(a: Any) -> None:
    np.random.default_rng(1).shuffle(a)


def shuffle_of_old(a: Any) -> None:
    np.random.RandomState(1).shuffle(a)


def shuffle_of_random(a: Any) -> None:
    random.Random(1).shuffle(a)


def rng(a: Any) -> None:
    np.random.default_rng(1).random(out=a.view("f8"))


def einsum(a: Any) -> None:
    np.einsum("i->i", a, out=a)


def nan_to_num(a: Any) -> None:
    np.nan_to_num(a.view("f8"), copy=False)
    a[0] = 7


def fill_diagonal(a: Any) -> None:
    np.fill_diagonal(a.reshape(100, -1), 7)


def imaginary(a: Any) -> None:
    a.view("c16").imag = 7


def flat(a: Any) -> None:
    a.flat[0] = 7


def flat_all(a: Any) -> None:
    a.flat = 7


def memory(a: Any) -> None:
    memoryview(a)[0] = 7


def pack(a: Any) -> None:
    struct.pack_into("q", a, 0, 7)


def foreign(a: Any) -> None:
    (ctypes.c_char * 8).from_buffer(a)


def readinto(a: Any) -> None:
    io.BytesIO(bytes(8)).readinto(a)


def readv(a: Any) -> None:
    with tempfile.TemporaryFile() as f:
        os.readv(f.fileno(), [a])


def in_thread(a: Any) -> None:
    with ThreadPoolExecutor(1) as ex:
        ex.submit(item, a).result()


def wrapped(a: Any) -> None:
    try:
        item(a)
    except ValueError as x:
        raise _Mine("no luck") from x


def unrelated(a: Any) -> None:
    try:
        item(a)
    except ValueError:
        raise KeyError("no luck") from None


def group(a: Any) -> None:
    try:
        item(a)
    except ValueError as x:
        raise ExceptionGroup("several", [KeyError(1), ExceptionGroup("more", [x])]) from None


def fft(a: Any) -> None:
    np.fft.fft(a.view("c16"), out=a.view("c16"))


def frame(a: Any) -> None:
    import pandas as pd

    a[0] = pd.Series(a, copy=False).sum()


def extension(a: Any) -> None:
    import pandas as pd

    pd.array(a.view("M8[ns]"), copy=False)[0] = pd.Timestamp(7)
    a[0] = 7


def groups(a: Any) -> None:
    from pandas._libs import algos

    algos.take_1d_int64_int64(a.copy(), np.zeros(a.size, dtype=np.intp), a)


def solve(a: Any) -> None:
    from scipy.sparse import _sparsetools

    n = a.size // 2
    _sparsetools.csr_sort_indices(1, np.array([0, n]), a[:n], a[n:])


def labels(a: Any) -> None:
    from scipy import ndimage

    ndimage.gaussian_filter(a.copy(), 1, output=a)


def compiled_spatial(a: Any) -> None:
    from scipy.cluster import _hierarchy

    _hierarchy.cluster_maxclust_monocrit(np.zeros((3, 4)), np.zeros(3), a.view("i4")[:4], 2, 4)


class _Mine(Exception):
    pass


def library(name: str, text: str) -> Any:
    """A function of an installed package, which checks what it takes as numba does."""
    m = types.ModuleType(name)
    m.__dict__["Odd"] = type("Odd", (Exception,), {"__module__": name})
    exec(compile(text, f"/usr/lib/python3/dist-packages/{name}/core.py", "exec"), m.__dict__)
    return m


CHECKS = """
def write(a):
    if not a.flags.writeable:
        raise Odd("no")
    a[0] = 7

def fails(a):
    raise Odd("no")
"""


def of_library(a: Any) -> None:
    library("numbalike", CHECKS).write(a)


WRITES: list[Callable[[Any], None]] = [
    item, in_place, out, method, sort, partition, swapped, flag, flag_attribute, iterator, clip, cumsum, copyto, put, putmask, place, shuffle,
    shuffle_of_old, shuffle_of_random, rng, einsum, nan_to_num, fill_diagonal, imaginary, flat, flat_all, memory, pack, foreign, readinto, readv, in_thread,
    wrapped, unrelated, group, fft, frame, extension, groups, solve, labels, compiled_spatial, of_library]


def frozen() -> Any:
    a = np.arange(10_000)
    a.flags.writeable = False
    return np.frombuffer(a.data, dtype=a.dtype)


def _of(f: Callable[[Any], None], a: Any) -> Optional[BaseException]:
    """What f raises."""
    try:
        f(a)
    except BaseException as x:
        return x
    return None


@pytest.mark.parametrize("write", WRITES, ids=lambda f: f.__name__)
def test_a_refused_write_is_known(write: Callable[[Any], None]) -> None:
    refused = _of(write, frozen())
    assert refused is not None and may_be_refused_write(refused)
    write(np.arange(10_000))


def own(a: Any) -> None:
    raise ValueError("array is read-only")


def own_check(a: Any) -> None:
    assert a.sum() < 0


def own_class(a: Any) -> None:
    raise _Mine("no")


def look_up(a: Any) -> None:
    {}["k"]


def index(a: Any) -> None:
    a[10 ** 6]


def divide(a: Any) -> None:
    len(a) // 0


def parse(a: Any) -> None:
    import json

    json.loads("{")


def decode(a: Any) -> None:
    b"\xff".decode()


def opened(a: Any) -> None:
    open("/no/such/file")


def imports(a: Any) -> None:
    import no_such_module  # noqa: F401


def remote(a: Any) -> None:
    raise mobula.InvalidError("array is read-only")


def handled(a: Any) -> None:
    try:
        {}["k"]
    except KeyError:
        raise _Mine("no") from None


def from_elsewhere(a: Any) -> None:
    raise pickled_error


def exits(a: Any) -> None:
    raise SystemExit(3)


pickled_error = ValueError("assignment destination is read-only")
OWN: list[Callable[[Any], None]] = [own, own_check, own_class, look_up, index, divide, parse, decode, opened, imports, remote, handled, from_elsewhere, exits,
                                    library("acme", CHECKS).fails]


@pytest.mark.parametrize("fails", OWN, ids=lambda f: f.__name__)
def test_the_users_own_error_is_none_of_a_write(fails: Callable[[Any], None]) -> None:
    x = _of(fails, frozen())
    assert x is not None
    at = x.__traceback__
    assert not may_be_refused_write(x.with_traceback(at.tb_next if at is not None else None))  # a worker has no frame of tests before it


# ---- with a node


def taken(f: Callable[..., Any], *inputs: Any) -> Any:
    """Runs f as a task of Dask whose inputs are results of other tasks."""
    dsk: dict[Any, Any] = {f"a{i}": (functools.partial(_same, x),) for i, x in enumerate(inputs)}
    dsk.update({f"use{i}": (_shape, f"a{i}") for i in range(len(inputs))})  # so that no input is made in the task itself
    dsk["f"] = (f, *(f"a{i}" for i in range(len(inputs))))
    return get(dsk, ["f", *(f"use{i}" for i in range(len(inputs)))])[0]


def _same(x: Any) -> Any:
    return x


def _shape(x: Any) -> int:
    return len(x)


def through_container(a: Any) -> Any:
    a[0][0] = a[1]["b"][0] = 7
    return float(a[0][0] + a[1]["b"][0])


def test_a_task_writes_to_what_went_through_the_store_twice(node: Any) -> None:
    """Pickle marks buffers that were read-only, as those of the first task's inputs are."""
    for n in (10, 100_000):
        dsk = {"a": (np.zeros, n), "b": (lambda a: [a, {"b": a[:]}], "a"), "use": (len, "a"), "use2": (len, "b"), "f": (through_container, "b")}
        assert get(dsk, ["f", "use", "use2"])[0] == 14


def test_a_small_array_out_of_the_store_is_a_tasks_own(node: Any) -> None:
    """It goes in the payload. So it is in each task of a graph that has it."""
    for n in (10, 1000):
        a = mobula.get(mobula.put(np.zeros(n)))
        assert not a.flags.writeable
        assert get({"f": (through_container, [a, {"b": a}])}, "f") == 14
        assert a[0] == 0


def refuses_with_odd_text(a: Any) -> int:
    memoryview(a)[0] = 7
    return 7


def numba_like(a: Any) -> int:
    of_library(a)
    return int(a[0])


@pytest.mark.parametrize("f", [refuses_with_odd_text, numba_like], ids=lambda f: f.__name__)
def test_a_task_whose_write_is_refused_runs_again(node: Any, f: Callable[[Any], int]) -> None:
    assert taken(f, np.zeros(100_000)) == 7


def unchecked(a: Any) -> Any:
    np.add.at(a, [0], 7)
    return a[0]


def test_a_write_that_nothing_checks_succeeds_in_the_next_attempt(node: Any) -> None:
    """numpy.add.at writes to read-only arrays, which kills the worker."""
    assert taken(unchecked, np.zeros(100_000)) == 7


def counted(path: str, a: Any, fails: Callable[[Any], None]) -> None:
    with open(path, "a") as f:
        f.write("x")
    fails(a)


@pytest.mark.parametrize("fails, runs", [(own, 1), (look_up, 1), (int, 2)], ids=lambda f: getattr(f, "__name__", None))
def test_how_often_a_task_runs_that_fails(node: Any, fails: Any, runs: int) -> None:
    ran = os.path.join(_runtime.client().welcome.job_dir, f"ran{fails.__name__}")
    with pytest.raises((ValueError, KeyError, TypeError)):
        taken(functools.partial(counted, ran, fails=fails), np.zeros(100_000))
    assert os.path.getsize(ran) == runs
    with pytest.raises(ValueError, match="invalid literal"):
        get({"f": (counted, ran, "a text", int)}, "f")  # without an array among its inputs
    assert os.path.getsize(ran) == runs + 1


def test_no_room_for_the_copies_is_said(node: Any) -> None:
    def short(a: Any) -> None:
        monkey = __import__("mobula._worker.second_run", fromlist=["x"])
        before, monkey.available = monkey.available, lambda: _restored(monkey, before)
        item(a)

    with pytest.raises(MemoryError, match="private copies of them: 800000 bytes, of which 100 are free") as e:
        taken(short, np.zeros(100_000))
    assert "read-only" in str(e.value.__cause__)


def _restored(module: Any, before: Any) -> int:
    module.available = before
    return 100


def test_free_memory_is_known() -> None:
    n = free_memory.available()
    assert n is not None and 0 < n < 1 << 50


# ---- values of a caller's own


def test_own_values_are_writable(tmp_path: Any) -> None:
    for x in (np.zeros(10), [np.zeros(10)], {"a": frozen(), "b": (frozen(), np.asfortranarray(np.zeros((3, 4))))}):
        e = _value.encode(x, 1 << 20)
        assert e.data is not None
        assert _value.has_views(e.meta)
        for a in _arrays(_value.decode_own(e.meta, e.data)):
            assert a.flags.writeable
        assert all(not a.flags.writeable for a in _arrays(_value.decode(e.meta, e.data)))
    for y in (1, "text", b"bytes", [1, 2], {"a": b"x"}):
        assert not _value.has_views(_value.encode(y, 1 << 20).meta)


def _arrays(x: Any) -> list[Any]:
    if isinstance(x, np.ndarray):
        return [x]
    return [a for y in (x.values() if isinstance(x, dict) else x) for a in _arrays(y)]


# ---- joblib


def test_a_call_of_joblib_that_writes_runs_again_and_no_other(node: Any) -> None:
    joblib = pytest.importorskip("joblib")
    from mobula.util.joblib import register_mobula

    register_mobula()
    ran = os.path.join(_runtime.client().welcome.job_dir, "batch")
    a = np.zeros(100_000)
    with joblib.parallel_config("mobula", n_jobs=2):
        got = joblib.Parallel(batch_size=5)(joblib.delayed(_step)(ran, a, i) for i in range(10))
    assert got == [(i, 7.0 if i % 2 else 0.0) for i in range(10)]
    assert os.path.getsize(ran) == 10 + 5  # the calls that write ran twice
    with joblib.parallel_config("mobula", n_jobs=2), pytest.raises(ValueError, match="own"):
        joblib.Parallel(batch_size=2)(joblib.delayed(_refuse)(a) for _ in range(4))
    with joblib.parallel_config("mobula", n_jobs=2):
        assert joblib.Parallel()(joblib.delayed(unchecked)(a) for _ in range(2)) == [7, 7]


def _step(ran: str, a: Any, i: int) -> Any:
    with open(ran, "a") as f:
        f.write("x")
    if i % 2:
        memoryview(a)[0] = 7.0
    return i, a[0]


def _refuse(a: Any) -> None:
    raise ValueError("my own")
