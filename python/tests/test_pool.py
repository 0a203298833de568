"""An actor's threads: each call runs once, in an idle thread."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any, cast

import pytest
from waiting import PATIENCE, until

from mobula._worker.pool import Pool


class Executor:
    """What a pool needs of one: calls wait until the test lets them go."""

    def __init__(self) -> None:
        self.client = SimpleNamespace(lock=threading.RLock(), flush=lambda: None, now=lambda: 7)
        self.listed: list[int] = []  # as under way
        self.ran: list[int] = []
        self.refused: list[tuple[int, BaseException]] = []
        self._changed = threading.Condition()
        self._free = 0

    def begun(self, work: int) -> Any:
        with self._changed:
            self.listed.append(work)
            self._changed.notify_all()
        return SimpleNamespace(work=work, started=0)

    def refuse(self, work: int, why: BaseException) -> None:
        self.refused.append((work, why))

    def execute(self, call: Any) -> None:
        assert call.started == 7
        with self._changed:
            assert self._changed.wait_for(lambda: self._free > 0, PATIENCE)
            self._free -= 1
            self.ran.append(call.work)
            self._changed.notify_all()

    def free(self, n: int) -> None:
        """Lets n calls end."""
        with self._changed:
            self._free += n
            self._changed.notify_all()

    def until(self, what: Any) -> None:
        def holds() -> Any:
            with self._changed:
                return what()

        until(holds)  # of what the pool changes nobody tells


def start(size: int) -> tuple[Executor, Any]:
    e = Executor()
    return e, Pool(cast(Any, e), size)


def put(e: Executor, p: Any, works: range) -> None:
    for w in works:
        with e.client.lock:
            p.put(w)


def test_no_more_run_than_there_are_threads_and_each_once() -> None:
    e, p = start(3)
    put(e, p, range(10))
    e.until(lambda: len(e.listed) == 3)
    assert e.listed == [0, 1, 2] and list(p.queue) == list(range(3, 10))  # what is under way is not queued too
    e.free(1)
    e.until(lambda: len(e.listed) == 4)
    e.free(9)
    e.until(lambda: len(e.ran) == 10)
    assert sorted(e.ran) == list(range(10)) and e.listed == list(range(10)) and not p.queue
    p.close()


def test_a_call_goes_to_a_thread_that_waits() -> None:
    e, p = start(8)
    e.free(1)
    put(e, p, range(1))
    for n in range(1, 20):
        e.until(lambda: len(e.ran) == n and len(p._waiting) == 1)
        e.free(1)
        put(e, p, range(n, n + 1))
    e.until(lambda: len(e.ran) == 20)
    assert p._threads == 1 and e.ran == list(range(20))
    p.close()


def test_a_call_that_was_taken_out_of_the_queue_is_not_run() -> None:
    e, p = start(1)
    put(e, p, range(3))
    with e.client.lock:
        p.queue.remove(1)
    e.free(3)
    e.until(lambda: len(e.ran) == 2)
    assert e.ran == [0, 2]
    p.close()


def test_threads_end_with_the_pool() -> None:
    e, p = start(4)
    put(e, p, range(4))
    e.free(2)
    e.until(lambda: len(p._waiting) == 2)
    p.close()  # two wait, two are at work
    e.free(2)
    e.until(lambda: len(e.ran) == 4)
    for t in [t for t in threading.enumerate() if t.name == "mobula-call"]:
        t.join(PATIENCE)
        assert not t.is_alive()


def test_a_thread_that_cannot_be_started_loses_no_call(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Any) -> None:
        raise RuntimeError("can't start new thread")

    e, p = start(4)
    with monkeypatch.context() as m:
        m.setattr(threading.Thread, "start", fail)
        put(e, p, range(1))
    assert [w for w, _ in e.refused] == [0] and "can't start new thread" in str(e.refused[0][1]) and not p.queue
    put(e, p, range(1, 2))
    e.until(lambda: e.listed == [1])
    with monkeypatch.context() as m:
        m.setattr(threading.Thread, "start", fail)
        put(e, p, range(2, 5))
    e.free(4)
    e.until(lambda: len(e.ran) == 4)
    assert e.ran == [1, 2, 3, 4] and len(e.refused) == 1 and p._threads == 1
    p.close()
