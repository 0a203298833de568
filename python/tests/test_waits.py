"""Threads and coroutines that wait for objects, and callbacks when one is resolved."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
from typing import Any

import numpy as np
import pytest
from helpers_of_client import flat, kinds, unknown
from mininode import MiniNode
from waiting import PATIENCE, until

import mobula
from mobula import _api, _runtime
from mobula import exceptions as x
from mobula._wire import messages as m


def test_who_waits_beside_a_get_that_gives_up_is_told(mini: MiniNode) -> None:
    one = unknown()
    got: list[Any] = []
    known = threading.Event()
    get = threading.Thread(target=lambda: got.append(pytest.raises(x.GetTimeoutError, mobula.get, one, timeout=0.5)))
    get.start()
    mini.until(lambda: kinds(mini, m.Get))
    wait = threading.Thread(target=lambda: got.append(mobula.wait([one], timeout=PATIENCE)))
    wait.start()
    _runtime.client().getter.when_known(one._h, known.set)
    get.join(PATIENCE)
    assert not get.is_alive()
    mini.until(lambda: kinds(mini, m.Unget))
    with mini.lock:
        mini._resolve(one._h.id, m.Result(m.INLINE, m.Value(*flat(1)), 1))
    wait.join(PATIENCE)
    assert known.wait(PATIENCE) and got[1] == ([one], [])


def test_what_is_known_is_told_without_reading_it(mini: MiniNode) -> None:
    stored, small, never = mobula.put(np.ones(50_000)), mobula.put(1), unknown()
    told: list[int] = []
    c = _runtime.client()
    for i, ref in enumerate((stored, small, never)):
        c.getter.when_known(ref._h, lambda i=i: told.append(i))
    assert told == [0, 1]
    late = unknown()
    c.getter.when_known(late._h, lambda: told.append(3))
    with mini.lock:
        mini._resolve(late._h.id, m.Result(m.ERROR, err=m.Error(9, "gone")))
    until(lambda: told == [0, 1, 3])
    assert not any(g.fetch for g in kinds(mini, m.Get))
    mobula.shutdown()
    assert told == [0, 1, 3, 2]


def test_many_threads_wait_at_once(mini: MiniNode) -> None:
    refs = [unknown() for _ in range(40)]
    got: dict[int, Any] = {}

    def wait(i: int) -> None:
        got[i] = mobula.get(refs[i], timeout=PATIENCE)

    threads = [threading.Thread(target=wait, args=(i,)) for i in range(40)]
    for t in threads:
        t.start()
    until(lambda: all(r._h.waiters for r in refs))
    for i in reversed(range(40)):
        with mini.lock:
            mini._resolve(refs[i]._h.id, m.Result(m.INLINE, m.Value(*flat(i)), 1))
        if i % 10 == 0:
            until(lambda: i in got)
    for t in threads:
        t.join(PATIENCE)
    assert got == {i: i for i in range(40)}


def test_await_and_futures(mini: MiniNode) -> None:
    refs = [unknown() for _ in range(5)]
    stored = mobula.put(np.ones(50_000))

    late = threading.Event()

    def later() -> None:
        late.wait()
        for i, r in enumerate(refs):
            with mini.lock:
                mini._resolve(r._h.id, m.Result(m.INLINE, m.Value(*flat(i)), 1))

    threading.Thread(target=later).start()

    async def all_of_them() -> Any:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(refs[0], 0.01)
        late.set()
        return await asyncio.gather(*refs, stored)

    *values, array = asyncio.run(all_of_them())
    assert values == [0, 1, 2, 3, 4] and array.sum() == 50_000
    d = mini.driver()
    mini.until(lambda: d.pins[stored._h.id] == 1)
    del array
    gc.collect()
    mini.until(lambda: d.pins[stored._h.id] == 0)
    assert stored.future().result(PATIENCE).sum() == 50_000
    one = unknown()
    fut = one.future()
    with mini.lock:
        mini._resolve(one._h.id, m.Result(m.ERROR, err=m.Error(9, "gone")))
    with pytest.raises(x.ObjectLostError):
        fut.result(PATIENCE)


def test_callbacks_of_futures_may_wait(mini: MiniNode) -> None:
    """They have a thread of their own: neither the connection's reader nor whoever waits meanwhile runs them."""
    first, second = unknown(), unknown()
    got: list[Any] = []
    done = threading.Event()

    def wait_for_the_second(fut: Any) -> None:
        got.append((fut.result(), mobula.get(second, timeout=PATIENCE), threading.current_thread()))
        done.set()

    first.future().add_done_callback(wait_for_the_second)
    for i, r in enumerate((first, second)):
        with mini.lock:
            mini._resolve(r._h.id, m.Result(m.INLINE, m.Value(*flat(i)), 1))
    assert done.wait(PATIENCE)
    assert got[0][:2] == (0, 1) and got[0][2] is not threading.current_thread()


def test_what_is_known_needs_no_message(mini: MiniNode) -> None:
    """Whoever has the reader's role may get no message for as long as it waits."""
    ref = mobula.put([1])
    reader = _runtime.client().reader
    mine = not reader._reading  # somebody reads, and hears nothing: this thread, or the keeper
    if mine:
        reader._reading = -1
    try:
        assert ref.future().result(PATIENCE) == [1]
        assert asyncio.run(asyncio.wait_for(_awaited(ref), PATIENCE)) == [1]
    finally:
        if mine:
            reader._reading = 0
    # What such a call asks for in turn is called after it, however long the chain.
    order: list[int] = []

    def ask(n: int) -> None:
        def known(found: Any = None) -> None:
            if n < 5000:
                ask(n + 1)
            order.append(n)

        _runtime.client().getter.when_known(ref._h, known) if n % 2 else _runtime.client().getter.when(ref._h, known)

    ask(0)
    until(lambda: len(order) == 5001)


async def _awaited(ref: Any) -> Any:
    return await ref


def test_somebody_reads_when_a_reader_has_left(mini: MiniNode) -> None:
    asked, other = unknown(), unknown()
    fut = asked.future()
    assert mobula.wait([other], timeout=0.5) == ([], [other])  # meanwhile the keeper has gone to sleep
    with mini.lock:
        mini._resolve(asked._h.id, m.Result(m.INLINE, m.Value(*flat(7)), 1))
    assert fut.result(PATIENCE) == 7


def test_who_asks_a_client_that_is_gone_hears_so(mini: MiniNode) -> None:
    never = unknown()
    before = never.future()

    async def wait() -> Any:
        return await asyncio.wait_for(never, PATIENCE)

    mobula.shutdown()
    with pytest.raises(x.ShutdownError):
        before.result(PATIENCE)
    with pytest.raises(x.ShutdownError):
        never.future().result(PATIENCE)
    with pytest.raises(x.ShutdownError):
        asyncio.run(wait())

    async def item() -> Any:
        return await asyncio.wait_for(anext(mobula.ObjectRefGenerator(never._c, os.urandom(20))), PATIENCE)

    with pytest.raises(x.ShutdownError):
        asyncio.run(item())


def test_waits_beside_a_long_one_leave_nothing(mini: MiniNode) -> None:
    c, never = _runtime.client(), unknown()
    long = threading.Thread(target=lambda: pytest.raises(x.ShutdownError, mobula.get, never))
    long.start()
    assert until(lambda: never._h.waiters and c.reader._reading)
    for i in range(50):
        assert _api.request("echo", i) == i
    assert len(c.reader._sleepers) <= 1
    mobula.shutdown()
    long.join()
