"""Arrays that are written in place in the store, on the real node."""

from __future__ import annotations

import errno
import gc
import os
import re
import signal
from typing import Any, Iterator

import numpy as np
import pytest
from waiting import until

import mobula
from mobula import _segment
from mobula.exceptions import InvalidError, NotEncodableError, ObjectTooLargeError, SegmentUnavailableError

MIB = 1 << 20
STORE = 64 * MIB


@pytest.fixture
def node(binary: str, monkeypatch: Any) -> Iterator[None]:
    monkeypatch.setenv("MOBULA_BINARY", binary)
    with mobula.init(num_cpus=1, object_store_memory=STORE):
        yield


def private() -> int:
    """This process' anonymous memory in bytes."""
    with open("/proc/self/status") as f:
        found = re.search(r"RssAnon:\s+(\d+) kB", f.read())
    assert found is not None
    return int(found[1]) << 10


def held() -> float:
    return mobula.cluster_resources()["object_store_memory"] - mobula.available_resources()["object_store_memory"]


def huge() -> int:
    """This process' shared memory that is mapped by huge pages, in bytes."""
    with open("/proc/self/smaps_rollup") as f:
        found = re.search(r"ShmemPmdMapped:\s+(\d+) kB", f.read())
    assert found is not None
    return int(found[1]) << 10


@pytest.mark.skipif(os.geteuid() != 0, reason="a tmpfs with huge pages takes CAP_SYS_ADMIN to mount")
def test_a_large_one_lies_in_huge_pages(binary: str, monkeypatch: Any) -> None:
    monkeypatch.setenv("MOBULA_BINARY", binary)
    with mobula.init(num_cpus=1, object_store_memory=256 * MIB), mobula.create(100 * MIB // 8) as b:
        assert huge() >= 50 * MIB
        b.array.fill(2.0)
        ref = b.put()
        assert mobula.get(total.remote(ref))[0] == 25 * MIB


@pytest.mark.parametrize("code", [errno.ENOMEM, errno.EFAULT])
def test_memory_that_is_short_is_an_error(code: int, node: None, monkeypatch: Any) -> None:
    monkeypatch.setattr(_segment, "_populate", lambda at, size: code)
    with pytest.raises(SegmentUnavailableError, match="map 33554432 bytes to write: .*" + os.strerror(code)):
        mobula.create(4 * MIB)
    until(lambda: held() == 0)
    monkeypatch.undo()
    mobula.create(4 * MIB).abort()


def test_a_kernel_that_cannot_populate_has_memory_reserved(node: None, monkeypatch: Any) -> None:
    monkeypatch.setattr(_segment, "_populate", lambda at, size: errno.EINVAL)
    with mobula.create(4 * MIB) as b:
        b.array.fill(1.0)
        assert mobula.get(total.remote(b.put()))[0] == 4 * MIB


@mobula.remote
def total(x: Any) -> tuple[float, tuple[int, ...], str]:
    return float(x.sum()), x.shape, x.dtype.name


def test_nothing_is_copied(node: None) -> None:
    before = private()
    with mobula.create(32 * MIB // 8) as b:
        b.array.fill(2.0)
        ref = b.put()
    assert mobula.get(total.remote(ref)) == (8.0 * MIB, (4 * MIB,), "float64")
    assert private() - before < 8 * MIB
    assert held() >= 32 * MIB


@pytest.mark.parametrize("shape, dtype", [
    ((3, 5), "int32"), ((7,), "uint8"), ((1, 2, 3), "complex128"), ((300, 1000), "float32")])
def test_shapes_and_types(node: None, shape: tuple[int, ...], dtype: str) -> None:
    want = np.arange(np.prod(shape)).astype(dtype).reshape(shape)
    with mobula.create(shape, dtype) as b:
        b.array[...] = want
        got = mobula.get(b.put())
    assert got.dtype == want.dtype and got.shape == want.shape and (got == want).all()


def test_what_was_put_is_read_only_and_stays(node: None) -> None:
    b = mobula.create(MIB)
    array = b.array
    array[:] = np.arange(MIB)
    ref = b.put()
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 1
    with pytest.raises(InvalidError, match="put or aborted already"):
        b.put()
    b.abort()
    assert float(mobula.get(ref)[5]) == 5.0
    del ref, b
    for i in range(16):  # 128 MiB through a store of 64
        mobula.get(mobula.put(np.full(MIB, float(i))))
    assert (array == np.arange(MIB)).all()


def test_what_is_not_put_is_given_back(node: None) -> None:
    with mobula.create(6 * MIB):
        assert held() >= 48 * MIB
    until(lambda: held() < 48 * MIB)
    b = mobula.create(6 * MIB)
    del b
    gc.collect()
    mobula.create(6 * MIB).abort()  # the store has room for one at a time


def test_a_write_after_put_by_an_older_view_ends_the_process_and_nothing_else(node: None) -> None:
    @mobula.remote(max_retries=0)
    def late() -> None:
        b = mobula.create(MIB)
        view = b.array[:10]
        b.put()
        view[0] = 1.0

    with pytest.raises(mobula.WorkerCrashedError, match=f"{signal.SIGSEGV.name[3:]}|signal"):
        mobula.get(late.remote())


def test_a_task_makes_one_too_and_again_when_it_runs_again(node: None, tmp_path: Any) -> None:
    @mobula.remote(max_retries=3)
    def make(marker: str) -> Any:
        with mobula.create(MIB) as b:
            b.array.fill(3.0)
            ref = b.put()
        if not os.path.exists(marker):
            open(marker, "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        return [ref]

    (ref,) = mobula.get(make.remote(str(tmp_path / "ran")))
    assert mobula.get(total.remote(ref))[0] == 3.0 * MIB


@pytest.mark.parametrize("shape, dtype", [
    ((), "float64"), (0, "float64"), ((2, 0), "float64"), (-1, "float64"), (2, "object"), (2, ">f8"), (2, "U3")])
def test_what_is_not_laid_out_in_place_is_named(node: None, shape: Any, dtype: str) -> None:
    with pytest.raises(NotEncodableError, match="want numbers in 1 to 8 dimensions"):
        mobula.create(shape, dtype)


def test_larger_than_the_store(node: None) -> None:
    with pytest.raises(ObjectTooLargeError):
        mobula.create(STORE)
