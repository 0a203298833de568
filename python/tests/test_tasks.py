"""Drivers and workers together, through the template, over the stub node."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
import threading
import time
import weakref
from pathlib import Path
from typing import Any, Iterator

import numpy as np
import pytest
from helpers_of_client import settled
from mininode import MiniNode
from notes import note, size
from waiting import PATIENCE, until

import mobula
from mobula import exceptions as x
from mobula._wire import messages as m

cloudpickle = pytest.importorskip("cloudpickle")
cloudpickle.register_pickle_by_value(sys.modules[__name__])  # the workers have no tests directory on their path


@mobula.remote
def add(a: Any, b: Any = 0) -> Any:
    return a + b


@mobula.remote
def fails(what: Exception) -> None:
    raise what


@mobula.remote(max_retries=0)
def ends(kind: str) -> None:
    raise {"exit": SystemExit, "interrupt": KeyboardInterrupt, "close": GeneratorExit, "cancelled": asyncio.CancelledError,
           "stop": StopIteration, "astop": StopAsyncIteration}[kind](3)


@mobula.remote
def fib(n: int) -> int:
    if n < 2:
        return n
    return sum(mobula.get([fib.remote(n - 1), fib.remote(n - 2)]))


@mobula.remote
def count(n: int) -> Iterator[int]:
    for i in range(n):
        yield i


@mobula.remote
def sleep(t: float) -> float:
    time.sleep(t)
    return t


@mobula.remote
def begins(mark: Path) -> None:
    """Begins, and does not end."""
    mark.touch()
    time.sleep(3600)


@mobula.remote
class Counter:
    def __init__(self, n: int = 0) -> None:
        self.n = n

    def inc(self, by: int = 1) -> int:
        self.n += by
        return self.n

    def keep(self, a: Any) -> float:
        self.a = a[5:]
        return float(a.sum())

    def first(self) -> float:
        return float(self.a[0])

    def drop(self) -> None:
        del self.a

    def pid(self) -> int:
        return os.getpid()

    @mobula.method(num_returns=2)
    def two(self) -> tuple[int, int]:
        return 1, 2

    def stream(self, n: int) -> Iterator[int]:
        yield from range(n)

    def me(self) -> Any:
        return mobula.get_runtime_context().current_actor


def test_tasks(mini: MiniNode) -> None:
    assert mobula.get(add.remote(1, b=2), timeout=PATIENCE) == 3
    assert mobula.get(add.remote(add.remote(1, 2), b=add.remote(3))) == 6
    a, b, c = add.options(num_returns=3).remote((1, 2), (3,))
    assert mobula.get([c, a, b]) == [3, 1, 2]
    assert add.options(num_returns=0).remote(1, 2) is None
    with pytest.raises(TypeError, match="remote"):
        add(1, 2)  # type: ignore[operator]
    with pytest.raises(x.ReturnMismatchError):
        mobula.get(add.options(num_returns=2).remote((1,), (2, 3))[0])
    assert mobula.get([add.remote(i, 1) for i in range(200)]) == list(range(1, 201))


def test_a_task_that_waits_for_room_keeps_its_cpu(mini: MiniNode) -> None:
    mini.room = False
    big = mobula.remote(lambda: np.zeros(100_000)).remote()
    mini.until(lambda: mini.creates)
    time.sleep(0.1)  # in a get it would have given the CPU back long ago
    mini.make_room()
    assert mobula.get(big, timeout=PATIENCE).sum() == 0
    assert not [x for p in mini.peers.values() for x in p.got if isinstance(x, m.Blocked)]


def test_errors(mini: MiniNode) -> None:
    with pytest.raises(ValueError, match="bad") as e:
        mobula.get(fails.remote(ValueError("bad", 7)), timeout=PATIENCE)
    assert isinstance(e.value, x.TaskError) and e.value.args == ("bad", 7) and "raise what" in str(e.value)
    assert os.path.dirname(mobula.__file__) not in e.value.remote_traceback
    with pytest.raises(KeyError):
        mobula.get(add.remote(fails.remote(KeyError("k")), 1))  # the cause of what could not run
    with pytest.raises(x.NotEncodableError, match="lock"):
        add.remote(threading.Lock())
    with pytest.raises(TypeError) as t:
        mobula.get(add.remote())
    assert isinstance(t.value, x.TaskError)
    with pytest.raises(x.NotEncodableError, match="generator"):
        mobula.get(mobula.remote(lambda: (i for i in ())).remote())


def test_an_error_that_a_task_lets_through_is_of_its_type_still(mini: MiniNode) -> None:
    with pytest.raises(KeyError) as e:
        mobula.get(fails.remote(x.task_error(KeyError("k"), "", "of another")), timeout=PATIENCE)
    assert isinstance(e.value, x.TaskError) and isinstance(e.value.cause, KeyError) and isinstance(e.value.cause.cause, KeyError)
    assert e.value.args == ("k",)


@pytest.mark.parametrize("kind, own", [("exit", SystemExit), ("interrupt", KeyboardInterrupt), ("close", GeneratorExit),
                                       ("cancelled", asyncio.CancelledError), ("stop", StopIteration), ("astop", StopAsyncIteration)])
def test_what_ends_a_task_ends_no_driver(mini: MiniNode, kind: str, own: type[BaseException]) -> None:
    with pytest.raises(x.TaskError, match=own.__name__) as e:
        mobula.get(ends.remote(kind), timeout=PATIENCE)
    assert not isinstance(e.value, own) and type(e.value.cause) is own and e.value.cause.args == (3,)

    async def main() -> list[Any]:
        async def one(r: Any) -> Any:
            return await r

        return await asyncio.gather(one(ends.remote(kind)), one(add.remote(1, 2)), return_exceptions=True)

    failed, other = asyncio.run(main())
    assert type(failed) is x.TaskError and type(failed.cause) is own and other == 3


def test_stored_values(mini: MiniNode) -> None:
    a = np.arange(200_000.0)
    r = add.remote(a, mobula.put(a))
    got = mobula.get(r, timeout=PATIENCE)
    assert (got == 2 * a).all() and not got.flags.writeable
    d = mini.driver()
    mini.until(lambda: d.pins.get(r._h.id) == 1)
    tail = got[1:]
    del got
    settled()
    assert d.pins[r._h.id] == 1
    del tail
    mini.until(lambda: d.pins[r._h.id] == 0)
    del r
    mini.until(lambda: not d.handles)


def test_an_argument_that_outlives_its_task(mini: MiniNode) -> None:
    c = Counter.remote()
    a = np.arange(100_000.0) + 1
    assert mobula.get(c.keep.remote(a), timeout=PATIENCE) == a.sum()
    w = mini.workers()[0]
    assert [n for k, n in w.pins.items() if len(k) == 24] == [1]  # it has a pin of its own
    assert mobula.get(c.first.remote()) == 6
    mobula.get(c.drop.remote())
    mini.until(lambda: [n for k, n in w.pins.items() if len(k) == 24] == [0])
    mini.until(lambda: not w.handles)


def test_nested(mini: MiniNode) -> None:
    assert mobula.get(fib.remote(7), timeout=PATIENCE) == 13


def test_references_inside_values(mini: MiniNode) -> None:
    inner = mobula.put([1, 2])

    @mobula.remote
    def look(d: Any) -> Any:
        assert isinstance(d["r"], mobula.ObjectRef)
        return {"sum": sum(mobula.get(d["r"])), "again": d["r"], "mine": mobula.put(5)}

    got = mobula.get(look.remote({"r": inner}), timeout=PATIENCE)
    assert got["sum"] == 3 and got["again"] == inner and mobula.get(got["mine"]) == 5
    held = mobula.put({"x": inner})
    id = inner._h.id
    del inner, got
    settled()
    assert mobula.get(mobula.get(held)["x"]) == [1, 2] and mini.objects[held._h.id][0].value.refs == [id]  # type: ignore[union-attr]


def test_streams(mini: MiniNode, tmp_path: Path) -> None:
    gen = count.remote(5)
    assert isinstance(gen, mobula.ObjectRefGenerator)
    assert [mobula.get(r) for r in gen] == [0, 1, 2, 3, 4]
    assert list(count.remote(0)) == []

    @mobula.remote(num_returns="streaming", backpressure=2)
    def ahead() -> Iterator[Any]:
        for _ in range(6):
            note(dir, "made", "x")
            yield size(dir, "taken")

    dir = str(tmp_path)
    g = ahead.remote()
    until(lambda: size(dir, "made") >= 2)
    seen = []
    for _ in range(6):
        note(dir, "taken", "x")
        seen.append(mobula.get(next(g)))
    assert all(taken >= i - 2 for i, taken in enumerate(seen)), seen  # the producer waited for its consumer

    @mobula.remote
    def breaks() -> Iterator[Any]:
        yield np.ones(50_000)
        raise ValueError("in the middle")

    gc.disable()
    try:
        for take in (next, lambda g: [*g]):
            g = breaks.remote()
            kept = weakref.ref(g)
            with pytest.raises(ValueError, match="middle"):
                while take(g):
                    pass
            del g
            assert kept() is None  # no frame holds it that only a look for cycles would free
    finally:
        gc.enable()
    g = breaks.remote()
    assert mobula.get(next(g)).sum() == 50_000
    with pytest.raises(ValueError, match="middle"):
        next(g)
    with pytest.raises(StopIteration):
        next(g)

    async def consume() -> list[int]:
        return [await r async for r in count.remote(4)]

    assert asyncio.run(consume()) == [0, 1, 2, 3]


def test_a_coroutine_that_has_returned_is_not_cancelled(mini: MiniNode) -> None:
    """What it did is not undone: its result comes, as that of any call that has ended."""

    @mobula.remote
    class Async:
        async def large(self) -> Any:
            return np.arange(50_000)

    a = Async.remote()
    mini.room = False
    result = a.large.remote()
    mini.until(lambda: mini.creates)
    mobula.cancel(result)
    assert not mobula.wait([result], timeout=0.5)[0]
    mini.make_room()
    assert (mobula.get(result, timeout=PATIENCE) == np.arange(50_000)).all()


def test_cancel(mini: MiniNode, tmp_path: Path) -> None:
    @mobula.remote
    def stubborn(mark: Path) -> str:
        mark.touch()
        try:
            while True:
                time.sleep(0.01)
        except Exception:
            return "swallowed"

    warm = [sleep.remote(0.0) for _ in range(2)]
    mobula.get(warm, timeout=PATIENCE)
    for task, name in ((begins, "sleeps"), (stubborn, "stubborn")):
        ref = task.remote(tmp_path / name)
        until((tmp_path / name).exists)
        mobula.cancel(ref)
        with pytest.raises(x.TaskCancelledError):
            mobula.get(ref, timeout=PATIENCE)

    @mobula.remote
    def waits() -> Any:
        return mobula.get(begins.remote(tmp_path / "child"))

    task = waits.remote()
    until((tmp_path / "child").exists)
    mobula.cancel(task)
    with pytest.raises(x.TaskCancelledError):
        mobula.get(task, timeout=PATIENCE)
    # The process goes on with other tasks.
    assert mobula.get(add.remote(1, 1), timeout=PATIENCE) == 2
    long = begins.remote(tmp_path / "long")
    until((tmp_path / "long").exists)
    mobula.cancel(long, force=True)
    with pytest.raises(x.TaskCancelledError):
        mobula.get(long, timeout=PATIENCE)
    mini.until(lambda: any(a["signal"] == "KILL" for a in mini.exited.values()))


def test_deadline(mini: MiniNode) -> None:
    mobula.get(sleep.remote(0), timeout=PATIENCE)
    with pytest.raises(x.DeadlineError):
        mobula.get(sleep.options(timeout=-1).remote(0), timeout=PATIENCE)


def test_a_worker_that_dies(mini: MiniNode) -> None:
    @mobula.remote
    def dies() -> None:
        os.kill(os.getpid(), signal.SIGSEGV)

    with pytest.raises(x.WorkerCrashedError):
        mobula.get(dies.remote(), timeout=PATIENCE)
    mini.until(lambda: any(a["signal"] == "SEGV" for a in mini.exited.values()))


def test_actors(mini: MiniNode) -> None:
    c = Counter.remote(10)
    assert mobula.get([c.inc.remote() for _ in range(1000)], timeout=PATIENCE) == list(range(11, 1011))
    assert mobula.get(c.two.remote()) == [1, 2]
    assert [mobula.get(r) for r in c.stream.remote(3)] == [0, 1, 2]
    with pytest.raises(AttributeError, match="nothing"):
        c.nothing
    with pytest.raises(TypeError):
        mobula.get(c.inc.remote("a"))
    assert mobula.get(c.inc.remote()) == 1011
    assert mobula.get(c.me.remote()) == c

    @mobula.remote
    def use(h: Any) -> Any:
        return mobula.get(h.inc.remote(5))

    assert mobula.get(use.remote(c)) == 1016
    named = Counter.options(name="hits").remote(1)
    found = mobula.get_actor("hits")
    assert found == named and mobula.get(found.two.remote()) == [1, 2]
    with pytest.raises(x.NameTakenError):
        Counter.options(name="hits").remote()
    assert Counter.options(name="hits", get_if_exists=True).remote() == named
    with pytest.raises(x.NotFoundError):
        mobula.get_actor("none")
    mobula.kill(named)
    with pytest.raises(x.ActorDiedError):
        mobula.get(named.inc.remote(), timeout=PATIENCE)
    # Dropping the last handle ends the actor.
    pid = mobula.get(c.pid.remote())
    del c
    mini.until(lambda: any(a["pid"] == pid for a in mini.exited.values()))


def test_an_actor_whose_constructor_fails(mini: MiniNode) -> None:
    c = Counter.remote(1, 2, 3)
    with pytest.raises(x.ActorDiedError):
        mobula.get(c.inc.remote(), timeout=PATIENCE)


def test_async_actors(mini: MiniNode) -> None:
    @mobula.remote
    class Async:
        def __init__(self) -> None:
            self.room = asyncio.Barrier(50)
            self.now = self.most = 0

        async def meet(self, v: int) -> int:
            await self.room.wait()
            return v

        async def forever(self) -> None:
            await asyncio.Event().wait()

        async def waits(self, d: Any) -> Any:
            return await d["r"]

        async def stream(self, n: int) -> Any:
            for i in range(n):
                yield i

        async def fails(self) -> None:
            raise KeyError("async")

        def plain(self) -> str:
            return mobula.get_runtime_context().task_id or ""

        @mobula.method(concurrency_group="one")
        async def alone(self) -> int:
            self.now += 1
            self.most = max(self.most, self.now)
            await asyncio.sleep(0)
            self.now -= 1
            return self.most

    a = Async.options(concurrency_groups={"one": 1}).remote()
    assert mobula.get([a.meet.remote(i) for i in range(50)]) == list(range(50))
    assert mobula.get(a.waits.remote({"r": mobula.put(7)})) == 7
    assert [mobula.get(r) for r in a.stream.remote(3)] == [0, 1, 2]
    with pytest.raises(KeyError):
        mobula.get(a.fails.remote())
    r = a.plain.remote()
    assert mobula.get(r) == r.task_id()
    assert mobula.get([a.alone.remote() for _ in range(20)]) == [1] * 20
    long = a.forever.remote()
    mobula.cancel(long)
    with pytest.raises(x.TaskCancelledError):
        mobula.get(long, timeout=PATIENCE)
    with pytest.raises(x.InvalidError, match="group"):
        mobula.get(a.meet.options(concurrency_group="none").remote(1), timeout=PATIENCE)


def test_threaded_actors(mini: MiniNode) -> None:
    @mobula.remote(max_concurrency=4)
    class Threads:
        def __init__(self) -> None:
            self.now = self.most = 0
            self.lock = threading.Lock()
            self.room = threading.Barrier(4)

        def work(self) -> None:
            with self.lock:
                self.now += 1
                self.most = max(self.most, self.now)
            self.room.wait(PATIENCE)
            with self.lock:
                self.now -= 1

        def peak(self) -> int:
            return self.most

    t = Threads.remote()
    mobula.get([t.work.remote() for _ in range(12)], timeout=PATIENCE)
    assert mobula.get(t.peak.remote()) == 4


def test_runtime_context(mini: MiniNode) -> None:
    @mobula.remote
    def where() -> Any:
        return mobula.get_runtime_context().get()

    r = where.remote()
    got = mobula.get(r, timeout=PATIENCE)
    assert got["task_id"] == r.task_id() and got["job_id"] == 1 and got["node_id"] == "0" and got["actor_id"] is None
    assert mobula.get_runtime_context().task_id is None


def test_templates_answer_and_workers_go_with_them(mini: MiniNode) -> None:
    mobula.get(sleep.remote(0), timeout=PATIENCE)
    mini.ask({"op": "nonsense", "id": 77, "env": {}}, [1, 2])
    mini.until(lambda: any(a["op"] == "failed" and a["id"] == 77 for a in mini.answers))
    [pid] = [a["pid"] for a in mini.answers if a["op"] == "forked"][:1]
    assert os.getpgid(pid) == pid
    assert mini.template is not None
    mini.template.kill()
    mini.template.wait()
    until(lambda: not os.path.exists(f"/proc/{pid}") or open(f"/proc/{pid}/stat").read().split()[2] == "Z")
    mini.template = None


def test_a_worker_of_another_python_is_refused(capfd: Any) -> None:
    from mobula import _worker

    with pytest.raises(x.RuntimeSetupError, match="3.0"):
        _worker.check_version({"version": "3.0"})


def test_a_worker_whose_node_is_gone_says_nothing(tmp_path: Any, monkeypatch: Any, capfd: Any) -> None:
    """Its output reaches the driver, who has nothing to do with it."""
    from mobula import _worker

    for name, value in {"SOCKET": str(tmp_path / "node.sock"), "TOKEN": "00", "JOB": "1"}.items():
        monkeypatch.setenv("MOBULA_WORKER_" + name, value)
    assert _worker.serve() == 1
    assert capfd.readouterr().err == ""
