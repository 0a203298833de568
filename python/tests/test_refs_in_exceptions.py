"""Objects that an exception refers to live as long as the exception, or an object that failed with it."""

from __future__ import annotations

import asyncio
import gc
import sys
from typing import Any, AsyncIterator, Iterator

import cloudpickle
import pytest
from cluster import cluster, get, node, objects, until  # noqa: F401
from test_refs_made_late import Late, Slow
from waiting import PATIENCE

import mobula
import mobula.distributed

cloudpickle.register_pickle_by_value(sys.modules[__name__])
cloudpickle.register_pickle_by_value(sys.modules["test_refs_made_late"])

LARGE = 1 << 20


class Missing(Exception):
    """Has a reference among its arguments and one in a field; neither its pickle nor a call of its class makes it again."""

    def __init__(self, what: str, *, ref: Any, more: Any) -> None:
        super().__init__(what, ref)
        self.more = more


@mobula.remote
def value(x: Any) -> Any:
    return x


@mobula.remote
def fails(x: Any, size: int = 0) -> Any:
    raise Missing("gone", ref=mobula.put([x, bytes(size)]), more={"task": value.remote(x)})


@mobula.remote
def fails_late(x: Any) -> Any:
    raise ValueError(Late(x), Slow())


@mobula.remote(max_retries=2, retry_exceptions=True)
def fails_again(x: Any) -> Any:
    raise ValueError(mobula.put(x))


@mobula.remote
def passes_on(failed: Any) -> Any:
    return mobula.get(failed[0])


@mobula.remote
def looks_into(failed: Any) -> Any:
    try:
        mobula.get(failed[0])
    except Missing as x:
        return mobula.get(x.args[1])[0]


@mobula.remote(num_returns="streaming")
def fails_midway(n: int) -> Iterator[Any]:
    for i in range(n):
        yield i
    raise Missing("gone", ref=mobula.put(["end", b""]), more={"task": value.remote("end")})


@mobula.remote
class Actor:
    def __init__(self, fail: bool = False) -> None:
        self.ref = mobula.put(["kept", b""])
        if fail:
            raise Missing("gone", ref=mobula.put(["made", b""]), more={"task": self.ref})

    def fails(self, x: Any) -> Any:
        raise Missing("gone", ref=mobula.put([x, b""]), more={"task": value.remote(x)})

    def gives_back(self, refs: Any) -> Any:
        raise Missing("gone", ref=refs[0], more={"task": refs[1]})

    async def wait(self) -> None: ...


@mobula.remote
class AsyncActor:
    async def fails(self, x: Any) -> Any:
        raise Missing("gone", ref=mobula.put([x, b""]), more={"task": value.remote(x)})

    async def fails_midway(self) -> AsyncIterator[Any]:
        yield 0
        raise Missing("gone", ref=mobula.put(["end", b""]), more={"task": value.remote("end")})


@pytest.fixture
def clean(node: Any) -> Iterator[Any]:
    """The module's node, which has no object when the test is over."""
    yield node
    until(lambda: gc.collect() is not None and not objects())


def error_of(f: Any, *args: Any) -> Any:
    """The exception that a call ends with, when nothing else is left of it."""
    try:
        f(*args)
    except Exception as x:
        x.__traceback__ = None
        if x.__cause__ is not None:
            x.__cause__.__traceback__ = None
        gc.collect()
        return x
    raise AssertionError("it did not fail")


def settled() -> None:
    """What was released has been told, and what nobody needs is gone."""
    gc.collect()
    get(value.remote(0))
    gc.collect()
    get(value.remote(0))


def check(x: Any, want: Any, size: int = 0) -> None:
    settled()
    assert isinstance(x, Missing)
    got = get(x.args[1])
    assert got[0] == want and len(got[1]) == size
    assert get(x.more["task"]) == want


@pytest.mark.parametrize("size", [0, LARGE])
def test_of_a_task(clean: Any, size: int) -> None:
    x = error_of(lambda: get(fails.remote("x", size)))
    check(x, "x", size)
    first, x = x.args[1], None
    settled()
    assert get(first)[0] == "x"  # it lives on by itself


def test_made_while_it_is_pickled(clean: Any) -> None:
    x = error_of(lambda: get(fails_late.remote("x")))
    settled()
    assert get(x.args[0].ref) == "x"


def test_held_by_what_failed(clean: Any) -> None:
    ref = fails.remote("x")
    mobula.wait([ref], timeout=PATIENCE)
    settled()
    check(error_of(get, ref), "x")
    settled()
    check(error_of(get, ref), "x")  # and again


def test_of_the_last_attempt(clean: Any) -> None:
    x = error_of(lambda: get(fails_again.remote("x")))
    settled()
    assert get(x.args[0]) == "x"


def test_of_an_argument(clean: Any) -> None:
    ref = fails.remote("x")
    then = value.remote(value.remote(ref))
    del ref
    mobula.wait([then], timeout=PATIENCE)
    settled()
    check(error_of(get, then).cause, "x")


def test_passed_on_by_another_task(clean: Any) -> None:
    ref = passes_on.remote([fails.remote("x")])
    mobula.wait([ref], timeout=PATIENCE)
    settled()
    check(error_of(get, ref), "x")


def test_in_another_process(clean: Any) -> None:
    ref = looks_into.remote([fails.remote("x")])
    assert get(ref) == "x"


def test_of_an_actor(clean: Any) -> None:
    for a in (Actor.remote(), AsyncActor.remote()):
        check(error_of(lambda: get(a.fails.remote("x"))), "x")
        del a


def test_of_a_constructor(clean: Any) -> None:
    a = Actor.remote(True)
    x = error_of(lambda: get(a.wait.remote()))
    assert isinstance(x, mobula.ActorDiedError)
    del a
    settled()
    cause = x.causes[0]
    assert isinstance(cause, Missing) and get(cause.args[1])[0] == "made" and get(cause.more["task"])[0] == "kept"
    del cause


def test_of_a_stream(clean: Any) -> None:
    stream = fails_midway.remote(2)
    assert [get(next(stream)), get(next(stream))] == [0, 1]
    settled()
    x = error_of(next, stream)
    del stream
    check(x, "end")


def test_of_a_stream_that_a_coroutine_reads(clean: Any) -> None:
    async def read(stream: Any) -> None:
        async for item in stream:
            await item

    a = AsyncActor.remote()
    for stream in (lambda: fails_midway.remote(2), lambda: a.fails_midway.options(num_returns="streaming").remote()):
        check(error_of(lambda: asyncio.run(read(stream()))), "end")
    del a, stream


def test_of_a_stream_that_nobody_reads(clean: Any) -> None:
    stream = fails_midway.remote(0)
    until(lambda: any(o["state"] == "INLINE" for o in objects().values()))
    del stream


def test_of_futures(clean: Any) -> None:
    def fail(x: Any) -> Any:
        raise Missing("gone", ref=mobula.put([x, b""]), more={"task": value.remote(x)})

    with mobula.Executor() as e:
        x = e.submit(fail, "x").exception(timeout=PATIENCE)
        assert x is not None
        check(x, "x")
        del x
    with mobula.distributed.Client() as c:
        x = c.submit(fail, "y").exception(timeout=PATIENCE)
        check(x, "y")
        assert get(value.remote(0)) == 0
        del x


def test_of_a_graph(clean: Any) -> None:
    from mobula.dask import get as get_graph

    def fail(x: Any) -> Any:
        raise Missing("gone", ref=mobula.put([x, b""]), more={"task": value.remote(x)})

    x = error_of(lambda: get_graph({"a": (fail, "x"), "b": (str, "a"), "c": (str, "b")}, "c"))
    check(x, "x")
    del x


# ---- nodes of their own: the last, they end this module's


def test_over_a_kill_of_the_node(binary: str, request: Any) -> None:
    mobula.shutdown()
    kept = request.getfixturevalue("kept")
    with mobula.init(kept.address):
        refs = [fails.remote("small"), fails.remote("large", LARGE), value.remote(fails.remote("argument"))]
        stream = fails_midway.remote(1)
        mobula.wait(refs, num_returns=3, timeout=PATIENCE)
        assert get(next(stream)) == 0
        settled()
        kept.kill()
        kept.start()
        check(error_of(get, refs[0]), "small")
        check(error_of(get, refs[1]), "large", LARGE)
        check(error_of(get, refs[2]).cause, "argument")
        check(error_of(next, stream), "end")
        del stream, refs
        until(lambda: gc.collect() is not None and not objects())


def test_in_a_call_from_another_job(binary: str, request: Any) -> None:
    mobula.shutdown()
    kept = request.getfixturevalue("kept")
    with mobula.init(kept.address, namespace="n"):
        get(Actor.options(name="a", lifetime="detached").remote().wait.remote())
    with mobula.init(kept.address, namespace="n"):
        a = mobula.get_actor("a")
        ref = a.gives_back.remote([mobula.put(["far", b""]), value.remote("far")])
        mobula.wait([ref], timeout=PATIENCE)
        settled()
        check(error_of(get, ref), "far")
        mobula.kill(a)
        del a, ref
        until(lambda: gc.collect() is not None and not objects())
