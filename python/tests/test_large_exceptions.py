"""An exception of any size keeps its class, arguments and fields: the pickle of a large one is an object of its own."""

from __future__ import annotations

import gc
import subprocess
import sys
from typing import Any, Iterator

import cloudpickle
import numpy as np
import pytest
from cluster import cluster, node, objects  # noqa: F401
from waiting import PATIENCE, until

import mobula
from mobula.exceptions import PythonError, TaskError

cloudpickle.register_pickle_by_value(sys.modules[__name__])

SIZE = 1 << 20


class Failed(Exception):
    def __init__(self, what: str, *, array: Any, ref: Any) -> None:
        super().__init__(what)
        self.array, self.ref = array, ref


def decodes() -> None:
    (b"a" * SIZE + b"\xff").decode()


def fails_with_output() -> None:
    raise subprocess.CalledProcessError(3, ["x"], output=b"o" * SIZE, stderr=b"e" * SIZE)


def fails_with_fields() -> None:
    raise Failed("it failed", array=np.arange(SIZE), ref=mobula.put("kept"))


@mobula.remote(max_retries=0)
def task(f: Any) -> None:
    f()


@mobula.remote(num_returns="streaming", max_retries=0)
def stream(f: Any) -> Iterator[int]:
    yield 1
    f()


@mobula.remote
class Sync:
    def fails(self, f: Any) -> None:
        f()


@mobula.remote
class Async:
    async def fails(self, f: Any) -> None:
        f()


@mobula.remote
def passes_on(failed: list[Any]) -> None:
    mobula.get(failed[0])


def cause(ref: Any) -> Any:
    with pytest.raises(TaskError) as e:
        mobula.get(ref, timeout=PATIENCE)
    x: Any = e.value
    while isinstance(x, TaskError):
        x = x.cause
    return x


def is_whole(x: Any) -> None:
    assert isinstance(x, UnicodeDecodeError) and len(x.object) == SIZE + 1 and x.start == SIZE


@pytest.mark.parametrize("kind", ["task", "sync", "threads", "async", "passed on"])
def test_a_large_exception_arrives_whole(node: Any, kind: str) -> None:
    a = Async.remote() if kind == "async" else Sync.options(max_concurrency=2 if kind == "threads" else 1).remote()
    call = {"task": lambda: task.remote(decodes), "passed on": lambda: passes_on.remote([task.remote(decodes)])}.get(kind, lambda: a.fails.remote(decodes))
    is_whole(cause(call()))


def test_a_large_exception_ends_a_stream(node: Any) -> None:
    s = stream.remote(decodes)
    assert mobula.get(next(s), timeout=PATIENCE) == 1
    with pytest.raises(UnicodeDecodeError) as e:
        next(s)
    is_whole(e.value.__cause__)


def test_a_large_exception_comes_out_of_an_executor_and_a_coroutine(node: Any) -> None:
    import asyncio

    with mobula.Executor(1) as pool:
        is_whole(pool.submit(decodes).exception(PATIENCE))
    assert len(pool_stderr()) == SIZE

    async def awaits() -> Any:
        try:
            await task.remote(decodes)
        except TaskError as e:
            return e.cause

    is_whole(asyncio.run(awaits()))


def pool_stderr() -> bytes:
    x = cause(task.remote(fails_with_output))
    assert isinstance(x, subprocess.CalledProcessError) and x.returncode == 3
    stderr: bytes = x.stderr
    return stderr


def test_what_a_large_exception_refers_to_lives_as_long_as_it(node: Any) -> None:
    ref = task.remote(fails_with_fields)
    x = cause(ref)
    assert x.args == ("it failed",) and x.array[-1] == SIZE - 1 and mobula.get(x.ref, timeout=PATIENCE) == "kept"
    x = cause(ref)  # once more: the objects are still there
    assert mobula.get(x.ref, timeout=PATIENCE) == "kept"
    del x, ref
    gc.collect()
    until(lambda: not objects())


def test_an_exception_for_which_there_is_no_room_keeps_its_text(node: Any) -> None:
    def fails() -> None:
        raise ValueError("x" * (200 << 20))  # more than the store holds

    x = cause(task.remote(fails))
    assert not isinstance(x, PythonError) and type(x) is ValueError and str(x).startswith("xxx")
