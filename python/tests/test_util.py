"""mobula.util on the real node."""

from __future__ import annotations

import asyncio
import io
import os
import queue
import signal
import subprocess
import sys
import threading
from typing import Any, Iterator

import cloudpickle
import notes
import numpy as np
import pytest
from waiting import PATIENCE, until

import mobula
from mobula import exceptions as x
from mobula.util import ActorPool, MemorySampler, Queue, progress
from mobula.util.queue import Empty, Full

cloudpickle.register_pickle_by_value(sys.modules[__name__])


@pytest.fixture(scope="module", autouse=True)
def node(binary: str) -> Iterator[Any]:
    with mobula.init(num_cpus=2, object_store_memory=64 << 20) as c:
        yield c


@mobula.remote
class Worker:
    def double(self, n: int) -> int:
        return 2 * n

    def stay(self, dir: str, name: str) -> str:
        return notes.stay(dir, name)

    def fails(self, n: int) -> int:
        raise KeyError(n)


def double(a: Any, n: int) -> Any:
    return a.double.remote(n)


def stay(a: Any, where: tuple[str, str]) -> Any:
    return a.stay.remote(*where)


def test_a_pool_maps(tmp_path: Any) -> None:
    dir = str(tmp_path)
    pool = ActorPool(Worker.remote() for _ in range(3))
    assert list(pool.map(double, range(20))) == [2 * n for n in range(20)]
    assert sorted(pool.map_unordered(double, range(20))) == [2 * n for n in range(20)]
    for name in "abc":
        notes.note(dir, name + ".go")
    first = pool.map_unordered(stay, [(dir, name) for name in ("slow", "a", "b", "c")])
    assert sorted(next(first) for _ in range(3)) == ["a", "b", "c"]  # two actors did these beside the slow one
    notes.note(dir, "go")
    assert list(pool.map(double, [1, 2])) == [2, 4]  # the slow one's result is dropped
    assert list(pool.map(double, [])) == []
    it = pool.map(lambda a, n: a.fails.remote(n) if n == 1 else a.double.remote(n), range(3))
    assert next(it) == 0
    with pytest.raises(KeyError):
        next(it)
    assert list(pool.map(double, range(5))) == [0, 2, 4, 6, 8]  # the actor of the call that failed serves on


def test_a_pool_gives_one_result_after_the_other(tmp_path: Any) -> None:
    dir = str(tmp_path)
    a, b = Worker.remote(), Worker.remote()
    pool = ActorPool([a, b])
    assert pool.has_free() and not pool.has_next()
    for n in range(3):
        pool.submit(double, n)
    assert pool.has_next() and not pool.has_free() and pool.pop_idle() is None
    assert [pool.get_next() for _ in range(3)] == [0, 2, 4]
    with pytest.raises(StopIteration):
        pool.get_next()
    with pytest.raises(StopIteration):
        pool.get_next_unordered()
    pool.submit(stay, (dir, "slow"))
    pool.submit(double, 1)
    assert pool.get_next_unordered(timeout=PATIENCE) == 2
    with pytest.raises(TimeoutError):
        pool.get_next_unordered(timeout=0.01)
    with pytest.raises(ValueError, match="after get_next_unordered"):
        pool.get_next()
    notes.note(dir, "slow.go")
    assert pool.get_next_unordered() == "slow"
    pool.submit(stay, (dir, "late"))
    pool.submit(double, 5)
    with pytest.raises(TimeoutError):
        pool.get_next(timeout=0.01)
    with pytest.raises(TimeoutError):
        pool.get_next(timeout=0.01, ignore_if_timedout=True)
    assert pool.get_next() == 10 and not pool.has_next()
    notes.note(dir, "go")
    with pytest.raises(ValueError, match="in the pool already"):
        pool.push(a)
    idle = pool.pop_idle()
    assert idle in (a, b)
    pool.push(idle)
    assert {pool.pop_idle(), pool.pop_idle()} == {a, b} and pool.pop_idle() is None
    pool.submit(double, 4)
    assert not pool.has_next()
    pool.push(a)
    assert pool.get_next() == 8


def test_a_pool_keeps_its_actors_when_a_call_cannot_be_made() -> None:
    bad = threading.Lock()  # cannot be pickled
    pool = ActorPool(Worker.remote() for _ in range(2))
    for _ in range(3):
        with pytest.raises(TypeError, match="pickle"):
            pool.submit(double, bad)
    assert pool.has_free() and not pool.has_next()
    assert list(pool.map(double, [1, 2, 3])) == [2, 4, 6]

    it = pool.map(double, [bad, 1, bad, bad, 2, 3, bad])
    got: list[Any] = []
    for _ in range(7):
        try:
            got.append(next(it))
        except TypeError:
            got.append("error")
    assert got == ["error", 2, "error", "error", 4, 6, "error"] and next(it, None) is None

    unordered = pool.map_unordered(double, [1, bad, 2])
    got = []
    for _ in range(3):
        try:
            got.append(next(unordered))
        except TypeError:
            got.append("error")
    assert sorted(got, key=str) == [2, 4, "error"] and next(unordered, None) is None

    it = pool.map(lambda a, n: next(iter([])), [1, 2])
    with pytest.raises(RuntimeError, match="StopIteration"):
        list(it)  # it does not look like the end

    with pytest.raises(TypeError, match="gave 7: want the reference"):
        pool.submit(lambda a, n: 7, 1)  # type: ignore[arg-type, return-value]
    assert list(pool.map(double, [])) == [] and pool.has_free()
    assert pool.pop_idle() != pool.pop_idle() and not pool.has_free()  # they are both there
    with pytest.raises(ValueError, match="the pool has no actor"):
        pool.map(double, [1])


def test_a_pool_loses_no_result_when_the_next_call_cannot_be_made() -> None:
    pool = ActorPool([Worker.remote()])
    pool.submit(double, 1)
    pool.submit(double, threading.Lock())
    pool.submit(double, 3)
    assert pool.get_next() == 2
    with pytest.raises(TypeError, match="pickle"):
        pool.get_next()
    assert pool.get_next() == 6 and not pool.has_next()

    def interrupted(a: Any, n: int) -> Any:
        raise KeyboardInterrupt

    pool.submit(double, 4)
    pool.submit(interrupted, 5)
    with pytest.raises(KeyboardInterrupt):
        pool.get_next()
    pool._waiting.clear()
    assert pool.get_next() == 8  # the interrupt came before anything was taken
    pool.submit(double, 6)
    pool.submit(double, threading.Lock())
    assert pool.pop_idle() is None
    pool.push(Worker.remote())  # it is offered the value that waits
    got: set[Any] = set()
    for _ in range(2):
        try:
            got.add(pool.get_next_unordered())
        except TypeError:
            got.add("error")
    assert got == {12, "error"} and pool.has_free()


def test_a_queue_is_first_in_first_out() -> None:
    q = Queue(maxsize=3)
    assert q.empty() and not q.full() and len(q) == 0
    for i in range(3):
        q.put(i)
    assert q.full() and q.size() == q.qsize() == 3
    with pytest.raises(Full):
        q.put_nowait(3)
    with pytest.raises(queue.Full):
        q.put(3, timeout=0.05)
    assert [q.get(), q.get(timeout=PATIENCE), q.get_nowait()] == [0, 1, 2]
    with pytest.raises(Empty):
        q.get_nowait()
    with pytest.raises(queue.Empty):
        q.get(timeout=0.05)
    q.put_nowait_batch(["a", "b"])
    with pytest.raises(Full, match="2 more items"):
        q.put_nowait_batch(["c", "d"])
    with pytest.raises(Empty, match="fewer than 3"):
        q.get_nowait_batch(3)
    assert q.get_nowait_batch(2) == ["a", "b"] and q.get_nowait_batch(0) == []
    for wrong in (lambda: q.get(timeout=-1), lambda: q.put(1, timeout=-1), lambda: q.get_nowait_batch(-1)):
        with pytest.raises(ValueError):
            wrong()
    ref, a = mobula.put(1), np.arange(50_000)
    q.put_nowait_batch([ref, a])
    assert q.get() == ref and (q.get() == a).all()  # a reference stays one
    q.shutdown()
    with pytest.raises(x.ActorDiedError):
        q.size()


def test_a_queue_between_tasks() -> None:
    q = Queue(maxsize=2)

    @mobula.remote(num_cpus=0.5)
    def produce(q: Queue, n: int) -> None:
        for i in range(n):
            q.put(i)

    @mobula.remote(num_cpus=0.5)
    def consume(q: Queue, n: int) -> list[int]:
        return [q.get(timeout=PATIENCE) for _ in range(n)]

    total = consume.remote(q, 60)
    mobula.get([produce.remote(q, 20) for _ in range(3)], timeout=PATIENCE)
    assert sorted(mobula.get(total, timeout=PATIENCE)) == sorted(3 * list(range(20)))


def test_many_wait_for_one_queue() -> None:
    """Calls that wait keep no other from being served, however many they are."""
    q = Queue()
    got: list[int] = []

    async def wait_for_all() -> None:
        takers = [asyncio.ensure_future(q.get_async()) for _ in range(1500)]
        await asyncio.sleep(0)  # they ask
        assert await q.actor.size.remote() == 0
        await asyncio.gather(*[q.put_async(i) for i in range(1500)])
        got.extend(await asyncio.gather(*takers))

    asyncio.run(asyncio.wait_for(wait_for_all(), PATIENCE))
    assert sorted(got) == list(range(1500))


def test_queues_in_coroutines() -> None:
    async def both() -> list[Any]:
        q = Queue(maxsize=1)
        late = asyncio.ensure_future(q.get_async(timeout=PATIENCE))
        await q.put_async(1)
        with pytest.raises(Empty):
            await q.get_async(block=False) if await late == 1 else None
        await q.put_async(2)
        with pytest.raises(Full):
            await q.put_async(3, timeout=0.05)
        return [await late, await q.get_async()]

    assert asyncio.run(both()) == [1, 2]


def test_a_get_that_is_cancelled_takes_nothing() -> None:
    q = Queue()

    async def give_up() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(q.get_async(), 0.05)

    asyncio.run(give_up())
    q.put("item")
    assert q.get(timeout=PATIENCE) == "item"

    @mobula.remote(num_cpus=0.5)
    def consume(q: Queue) -> Any:
        return q.get()

    task = consume.remote(q)
    until(lambda: mobula.get(q.actor.waiting.remote()))
    mobula.cancel(task, recursive=False)
    with pytest.raises(x.TaskCancelledError):
        mobula.get(task, timeout=PATIENCE)
    until(lambda: not mobula.get(q.actor.waiting.remote()))
    q.put("item")
    assert q.get(timeout=PATIENCE) == "item"


@pytest.mark.parametrize("large", [False, True])
def test_what_a_cancelled_get_had_taken_comes_first_again(large: bool) -> None:
    q = Queue(maxsize=2)
    items: list[Any] = [np.full(50_000 if large else 5, i) for i in range(4)]

    async def give_up() -> None:
        taker = asyncio.ensure_future(q.get_async())
        await asyncio.sleep(0)  # it asks
        for item in items[:3]:  # the third has room when the first was taken; the loop stands still meanwhile
            q.put(item, timeout=PATIENCE)
        taker.cancel()
        with pytest.raises(asyncio.CancelledError):
            await taker

    asyncio.run(give_up())
    with pytest.raises(Full):
        q.put_nowait(items[3])
    assert q.size() == 3  # one more than there is room for, and none is lost
    assert [q.get(timeout=PATIENCE)[0] for _ in range(3)] == [0, 1, 2]
    q.put_nowait_batch(items[:2])
    assert [q.get(timeout=PATIENCE)[0] for _ in range(2)] == [0, 1]


def test_a_get_that_is_interrupted_takes_nothing() -> None:
    q = Queue()

    def interrupt() -> None:
        until(lambda: mobula.get(q.actor.waiting.remote()))
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    t = threading.Thread(target=interrupt)
    t.start()
    with pytest.raises(KeyboardInterrupt):
        q.get()
    t.join(PATIENCE)
    assert not t.is_alive()
    q.put("item")
    assert q.get(timeout=PATIENCE) == "item"


def test_a_put_that_is_cancelled_is_withdrawn() -> None:
    q = Queue(maxsize=1)
    q.put(1)

    async def give_up() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(q.put_async(2), 0.05)

    asyncio.run(give_up())
    assert q.get(timeout=PATIENCE) == 1
    q.put(3, timeout=PATIENCE)
    assert q.get_nowait() == 3 and q.empty()


class Unreadable:
    """Where MOBULA_TEST_UNREADABLE is set, it cannot be unpickled."""

    def __reduce__(self) -> Any:
        return unless_set, ()


def unless_set() -> Any:
    assert "MOBULA_TEST_UNREADABLE" not in os.environ
    return Unreadable()


def test_a_get_of_what_cannot_be_unpickled_takes_it(monkeypatch: Any) -> None:
    """It would keep everybody from what comes after it."""
    q = Queue()
    q.put(Unreadable())
    q.put("item")
    assert q.size() == 2
    monkeypatch.setenv("MOBULA_TEST_UNREADABLE", "1")
    with pytest.raises(AssertionError):
        q.get(timeout=PATIENCE)
    assert q.get(timeout=PATIENCE) == "item"


def test_a_queue_ends_when_those_who_wait_are_served() -> None:
    q = Queue()
    got: list[Any] = []
    t = threading.Thread(target=lambda: got.append(q.get()))
    t.start()
    until(lambda: not mobula.wait([q.actor.served.remote()], timeout=0.05)[0])
    threading.Timer(0.3, q.put, ["last"]).start()
    q.shutdown(grace_period_s=20)
    t.join(PATIENCE)
    assert got == ["last"]


def test_progress() -> None:
    @mobula.remote
    def work(i: int) -> int:
        if i == 3:
            raise ValueError(i)
        return i

    shown = io.StringIO()
    refs = [work.remote(i) for i in range(30)]
    assert progress([*refs, refs[0]], desc="work", file=shown, ascii=True) == [*refs, refs[0]]
    assert "work: 100%" in shown.getvalue() and "30/30" in shown.getvalue()
    assert mobula.get(refs[:3]) == [0, 1, 2]
    assert progress([], file=shown) == []


def test_memory_is_sampled(binary: str, tmp_path: Any) -> None:
    """In a process of its own: this one has what all tests left it, and may give more of it back than the program looks for."""
    program = os.path.join(os.path.dirname(__file__), "sampled_memory.py")
    env = {**os.environ, "MPLBACKEND": "Agg", "MOBULA_BINARY": binary}
    ended = subprocess.run([sys.executable, program, str(tmp_path)], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=2 * PATIENCE)
    assert ended.returncode == 0, ended.stdout


def test_samples_of_the_memory_end_with_the_connection() -> None:
    ms = MemorySampler()
    with ms.sample("all", interval=0.02):
        thread, _ = ms._running["all"]
        mobula.shutdown()
        try:
            thread.join(PATIENCE)
            assert not thread.is_alive() and not mobula.is_initialized()  # it has not made another
        finally:
            mobula.init(num_cpus=2, object_store_memory=64 << 20, ignore_reinit_error=True)
    assert ms.samples["all"]
