"""Gets of several references, waits and awaits against the stub node: when they end, and what they release."""

from __future__ import annotations

import asyncio
import os
import threading
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from mininode import MiniNode
from waiting import PATIENCE, until

import mobula
from mobula import _ids, _refs, _runtime, _value
from mobula import exceptions as x
from mobula._client import objects
from mobula._wire import messages as m
from mobula._wire.conn import Conn


def unknown() -> Any:
    """A reference to an object that nobody has made yet."""
    return _refs.bound(_runtime.client(), os.urandom(20) + bytes(4))


def lost_result(why: str = "it is lost") -> m.Result:
    return m.Result(m.ERROR, err=m.Error(x.ObjectLostError.code, why))


def fail(mini: MiniNode, ref: Any, why: str = "it is lost") -> None:
    with mini.lock:
        mini._resolve(ref._h.id, lost_result(why))


def stored(n: int) -> list[Any]:
    """References to objects too large for a message."""
    return [mobula.put(np.full(50_000, float(i))) for i in range(n)]


def nothing_is_pinned(mini: MiniNode, refs: list[Any]) -> bool:
    d = mini.driver()
    return all(d.pins.get(r._h.id) == 0 for r in refs) and not _runtime.client().objects.pins


class Unreadable:
    """A value that can be put and not read."""

    def __init__(self) -> None:
        self.array = np.ones(50_000)

    def __reduce__(self) -> Any:
        return _refuse, (self.array,)


def _refuse(array: Any) -> Any:
    raise ValueError("not to be read")


def test_a_get_that_fails_gives_all_pins_back(mini: MiniNode) -> None:
    refs = [mobula.put(Unreadable()), *stored(4)]
    with pytest.raises(ValueError, match="not to be read"):
        mobula.get(refs)
    mini.until(lambda: nothing_is_pinned(mini, refs))
    assert [a[0] for a in mobula.get(refs[1:])] == [0, 1, 2, 3]


def test_who_takes_only_the_first_of_several_gives_all_pins_back(mini: MiniNode) -> None:
    c, refs = _runtime.client(), stored(4)
    found = c.getter.fetch([r._h for r in refs], None, None)
    res, reading = next(found)
    assert res.kind == m.STORED and reading is not None
    found.close()
    mini.until(lambda: [mini.driver().pins[r._h.id] for r in refs] == [1, 0, 0, 0])
    del reading
    mini.until(lambda: nothing_is_pinned(mini, refs))


@pytest.mark.parametrize("value", [1, np.ones(50_000)], ids=["small", "stored"])
def test_a_get_may_name_an_object_twice(mini: MiniNode, value: Any) -> None:
    """Before it is there: the get waits for it once, and has its value in both places."""
    put, twice, other = mobula.put(value), unknown(), unknown()
    mini.until(lambda: put._h.id in mini.objects)
    got: list[Any] = []
    get = threading.Thread(target=lambda: got.extend(mobula.get([twice, other, twice], timeout=PATIENCE)))
    get.start()
    until(lambda: other._h.waiters)
    with mini.lock:
        for ref in (twice, other):
            mini._resolve(ref._h.id, *mini.objects[put._h.id])
    get.join(PATIENCE)
    assert np.array_equal(got, [value] * 3)


def test_a_get_ends_with_the_first_failure(mini: MiniNode) -> None:
    """Whoever is not there yet may take long."""
    c, slow, bad = _runtime.client(), unknown(), unknown()
    got: list[Any] = []
    t = threading.Thread(target=lambda: got.append(pytest.raises(x.ObjectLostError, mobula.get, [slow, bad], timeout=PATIENCE)))
    t.start()
    until(lambda: bad._h.waiters)
    fail(mini, bad)
    t.join(PATIENCE)
    assert got and not slow._h.waiters  # and nobody waits for it any more
    # The same when the failure is known before: nobody is asked for anything, not for bytes either.
    there = stored(2)
    with pytest.raises(x.ObjectLostError):
        mobula.get([unknown(), *there, bad], timeout=PATIENCE)
    with pytest.raises(x.ObjectLostError):
        mobula.get([*there, bad], timeout=PATIENCE)
    with mini.lock:
        assert not any(isinstance(g, m.Get) and g.fetch for g in mini.driver().got)
    # Of several that are known to have failed it is the first one's error.
    first = unknown()
    fail(mini, first, "the first")
    assert mobula.wait([first])[0]
    with pytest.raises(x.ObjectLostError, match="the first"):
        mobula.get([unknown(), first, bad], timeout=PATIENCE)
    assert c.objects.pins == {}


def far(mini: MiniNode, n: int) -> list[Any]:
    """References to objects that were made on another node, where their bytes are."""
    refs, like = [unknown() for _ in range(n)], stored(1)[0]
    mini.until(lambda: like._h.id in mini.objects)
    with mini.lock:
        for r in refs:
            mini.away.add(r._h.id)
            mini._resolve(r._h.id, *mini.objects[like._h.id])
    return refs


def fetches(mini: MiniNode) -> set[bytes]:
    with mini.lock:
        return {g.id for g in mini.driver().got if isinstance(g, m.Get) and g.fetch}


def test_a_wait_brings_what_is_on_other_nodes(mini: MiniNode) -> None:
    refs = far(mini, 3)
    got: list[Any] = []
    t = threading.Thread(target=lambda: got.append(mobula.wait(refs, num_returns=2, timeout=PATIENCE)))
    t.start()
    mini.until(lambda: {r._h.id for r in refs} == fetches(mini))  # as a get of them
    assert not got
    mini.bring(refs[1]._h.id)
    mini.bring(refs[2]._h.id)
    t.join(PATIENCE)
    assert got == [([refs[1], refs[2]], [refs[0]])]
    mini.until(lambda: nothing_is_pinned(mini, refs[1:]) and m.Unget(refs[0]._h.id) in mini.driver().got)
    # They are known to be here now, and nobody asks for them again.
    before = len(mini.driver().got)
    assert mobula.wait(refs[1:], num_returns=2, timeout=PATIENCE) == (refs[1:], [])
    assert not any(isinstance(g, m.Get) for g in mini.driver().got[before:])


def test_a_wait_that_brings_nothing_ends_when_they_are_made(mini: MiniNode) -> None:
    refs = far(mini, 2)
    assert mobula.wait(refs, num_returns=2, timeout=PATIENCE, fetch_local=False) == (refs, [])
    assert not fetches(mini)
    assert mobula.wait(refs, timeout=0) == ([], refs)
    mini.until(lambda: nothing_is_pinned(mini, refs) or not _runtime.client().objects.pins)


def test_a_wait_counts_what_is_lost_on_its_way(mini: MiniNode) -> None:
    refs = [*far(mini, 1), *stored(1), unknown()]
    with mini.lock:
        mini._resolve(refs[2]._h.id, m.Result(m.INLINE, m.Value(b"", b""), 0))
    got: list[Any] = []
    t = threading.Thread(target=lambda: got.append(mobula.wait(refs, num_returns=3, timeout=PATIENCE)))
    t.start()
    mini.until(lambda: fetches(mini) == {refs[0]._h.id})  # what is here nobody asks for
    mini.driver().send(m.Resolved(refs[0]._h.id, True, lost_result()))
    t.join(PATIENCE)
    assert got == [(refs, [])]


def test_a_get_ends_when_the_bytes_of_one_cannot_be_had(mini: MiniNode) -> None:
    refs = stored(3)
    with mini.lock:
        slow, lost = (mini.objects.pop(r._h.id) for r in refs[:2])
    asked = [m.Get(r._h.id, True) for r in refs]
    got: list[Any] = []
    t = threading.Thread(target=lambda: got.append(pytest.raises(x.ObjectLostError, mobula.get, refs, timeout=PATIENCE)))
    t.start()
    mini.until(lambda: all(g in mini.driver().got for g in asked))
    mini.driver().send(m.Resolved(refs[1]._h.id, True, lost_result()))
    t.join(PATIENCE)
    assert got
    mini.until(lambda: m.Unget(refs[0]._h.id) in mini.driver().got and mini.driver().pins[refs[2]._h.id] == 0)
    with mini.lock:
        mini.objects.update({refs[0]._h.id: slow, refs[1]._h.id: lost})  # they can be had again
    assert [a[0] for a in mobula.get(refs)] == [0, 1, 2]


def resolve(mini: MiniNode, ref: Any, value: Any) -> None:
    e = _value.encode(value, 1 << 20)
    assert e.data is not None
    with mini.lock:
        mini._resolve(ref._h.id, m.Result(m.INLINE, m.Value(e.meta, e.data), len(e.data)))


@pytest.fixture
def forgetful(mini: MiniNode, monkeypatch: pytest.MonkeyPatch) -> MiniNode:
    """A client that holds few values beside those that somebody waits for."""
    monkeypatch.setattr(objects, "CACHE_BYTES", 100_000)
    return mini


VALUES = [bytes([i]) * 10_000 for i in range(40)]


def test_what_came_for_a_coroutine_is_had_though_it_was_forgotten(forgetful: MiniNode) -> None:
    refs = [unknown() for _ in VALUES]

    async def all_of_them() -> Any:
        async def one(ref: Any) -> Any:
            return await ref

        tasks = [asyncio.create_task(one(r)) for r in refs]
        await asyncio.sleep(0)  # they wait now; and the loop is busy until all has come
        for r, v in zip(refs, VALUES):
            resolve(forgetful, r, v)
        until(lambda: not any(r._h.callbacks for r in refs))
        assert sum(r._h.res is None for r in refs) > 25
        return await asyncio.gather(*tasks)

    assert asyncio.run(all_of_them()) == VALUES


def test_what_came_for_a_future_is_had_though_it_was_forgotten(forgetful: MiniNode) -> None:
    refs, go = [unknown() for _ in VALUES], threading.Event()
    first = refs[0].future()
    first.add_done_callback(lambda _: go.wait(PATIENCE))  # in the thread that settles all futures
    rest = [r.future() for r in refs[1:]]
    for r, v in zip(refs, VALUES):
        resolve(forgetful, r, v)
    until(lambda: not any(r._h.callbacks for r in refs))
    assert sum(r._h.res is None for r in refs) > 25
    go.set()
    assert [f.result(PATIENCE) for f in [first, *rest]] == VALUES


def test_an_await_that_is_cancelled_when_its_value_is_there_gives_the_pin_back(mini: MiniNode) -> None:
    refs = stored(4)

    async def read(ref: Any) -> Any:
        return await ref

    async def cancelled() -> Any:
        tasks = [asyncio.create_task(read(r)) for r in refs]
        await asyncio.sleep(0)
        until(lambda: not any(r._h.callbacks for r in refs))  # all has come,
        await asyncio.sleep(0)  # the futures are settled in this turn,
        for t in tasks:
            t.cancel()  # and their tasks cancelled before they go on
        assert all(isinstance(e, asyncio.CancelledError) for e in await asyncio.gather(*tasks, return_exceptions=True))
        return tasks

    tasks = asyncio.run(cancelled())
    mini.until(lambda: nothing_is_pinned(mini, refs))
    del tasks  # even while somebody has them


def test_what_came_for_a_get_is_had_though_it_was_forgotten(mini: MiniNode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objects, "CACHE_BYTES", 1000)
    values = [bytes([i]) * 500 for i in range(4)]
    ref, *others = [unknown() for _ in values]
    got: list[Any] = []
    t = threading.Thread(target=lambda: got.append(mobula.get(ref, timeout=PATIENCE)))
    t.start()
    mini.until(lambda: ref._h.id in mini.asking)
    answers = []
    for r, v in zip([ref, *others], values):
        e = _value.encode(v, 1 << 20)
        answers.append(m.Resolved(r._h.id, True, m.Result(m.INLINE, m.Value(e.meta, e.data or b""), e.size)))
    with mini.lock:
        mini.objects[ref._h.id] = (answers[0].result, None)
        mini.driver().send(*answers)  # at once: the first is forgotten before the thread goes on
    t.join(PATIENCE)
    assert got == values[:1]
    assert len([g for g in mini.driver().got if g == m.Get(ref._h.id, True)]) == 2


def test_who_waits_asks_again_after_a_get_that_gave_up(mini: MiniNode) -> None:
    """What withdraws a get withdraws all that this process has asked of the object."""
    c, ref = _runtime.client(), unknown()
    assert mobula.wait([ref], timeout=0.01) == ([], [ref])
    with pytest.raises(x.GetTimeoutError):
        c.getter.fetch_one(ref._h, 0.0, None)
    mini.until(lambda: m.Unget(ref._h.id) in mini.driver().got)
    known = threading.Event()
    c.getter.when_known(ref._h, known.set)
    mini.until(lambda: mini.asking[ref._h.id])
    with pytest.raises(x.GetTimeoutError):  # and who goes on waiting is not forgotten
        c.getter.fetch_one(ref._h, 0.0, None)
    mini.until(lambda: mini.driver().got.count(m.Unget(ref._h.id)) == 2 and mini.asking[ref._h.id])
    resolve(mini, ref, 1)
    assert known.wait(PATIENCE)


def test_what_was_ready_once_is_ready(forgetful: MiniNode) -> None:
    refs = [unknown() for _ in VALUES]
    for r, v in zip(refs, VALUES):
        resolve(forgetful, r, v)
    assert mobula.wait(refs, num_returns=len(refs), timeout=PATIENCE) == (refs, [])
    gone = [r for r in refs if r._h.res is None]
    assert len(gone) > 25
    asked = len(forgetful.driver().got)
    assert mobula.wait([unknown(), *gone], num_returns=len(gone))[0] == gone  # and needs no value
    assert not any(g.id == r._h.id for r in gone for g in forgetful.driver().got[asked:] if isinstance(g, m.Get))
    late = unknown()
    t = threading.Thread(target=lambda: resolve(forgetful, late, 1) if until(lambda: late._h.waiters) else None)
    t.start()
    assert mobula.wait([*gone, late], num_returns=len(gone) + 1, timeout=PATIENCE) == ([*gone, late], [])
    t.join(PATIENCE)
    assert mobula.get(refs) == VALUES


def item(mini: MiniNode, task: bytes, i: int, value: Any) -> None:
    e = _value.encode(value, 1 << 20)
    with mini.lock:
        mini._on_streamitem(mini.driver(), m.StreamItem(task, 0, i, m.Result(m.INLINE, m.Value(e.meta, e.data or b""), e.size)))


def test_an_item_that_nobody_waited_for_any_more_is_the_next(mini: MiniNode) -> None:
    c, task = _runtime.client(), os.urandom(20)
    mini.streams[task] = ({}, [], {})
    gen = mobula.ObjectRefGenerator(c, task)

    def arrived(i: int) -> bool:
        return gen._wanted is not None and gen._wanted.index == i and gen._wanted.left == 0

    async def left() -> None:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(gen.__anext__(), 0.01)

    async def left_at_the_last_moment(i: int) -> None:
        async def one() -> Any:
            return await gen.__anext__()

        t = asyncio.create_task(one())
        await asyncio.sleep(0)
        item(mini, task, i, i)
        until(lambda: _ids.return_id(task, i) in c.objects.handles)
        t.cancel()
        with pytest.raises(asyncio.CancelledError):
            await t

    async def following() -> Any:
        return await asyncio.wait_for(gen.__anext__(), PATIENCE)

    # What comes after those who waited for it have left is for who asks next, whichever way.
    asyncio.run(left())
    asyncio.run(left())
    item(mini, task, 0, 0)
    until(lambda: arrived(0))
    assert mobula.get(asyncio.run(following()), timeout=PATIENCE) == 0
    asyncio.run(left_at_the_last_moment(1))
    assert mobula.get(gen.next(20)) == 1
    with pytest.raises(x.GetTimeoutError):
        gen.next(0.01)
    item(mini, task, 2, 2)
    until(lambda: arrived(2))
    assert mobula.get(asyncio.run(following()), timeout=PATIENCE) == 2
    with pytest.raises(x.GetTimeoutError):
        gen.next(0.01)
    with mini.lock:
        asked = [g for g in mini.driver().got if isinstance(g, m.StreamNext)]
    assert asked == [m.StreamNext(task, i, True) for i in range(4)]  # each once
    # The end is no exception, and nothing is left of an item that nobody asks for any more.
    item(mini, task, 3, 3)
    until(lambda: arrived(3))
    gen.close()
    mini.until(lambda: not mini.driver().handles)
    other = os.urandom(20)
    mini.streams[other] = ({}, [], {})
    gen = mobula.ObjectRefGenerator(c, other)
    asyncio.run(left())
    with mini.lock:
        mini._end_stream(other, 0, None)
    until(lambda: arrived(0))
    assert list(gen) == []
    gen = mobula.ObjectRefGenerator(c, os.urandom(20))
    mini.streams[gen._task] = ({}, [], {})
    asyncio.run(left())
    del gen
    assert not c.streams._wanted


def test_a_coroutine_that_waits_for_an_item_hears_of_the_clients_end(mini: MiniNode) -> None:
    task = os.urandom(20)
    mini.streams[task] = ({}, [], {})
    gen = mobula.ObjectRefGenerator(_runtime.client(), task)

    async def wait() -> Any:
        waits = asyncio.create_task(asyncio.wait_for(gen.__anext__(), PATIENCE))
        await asyncio.sleep(0)
        await asyncio.to_thread(mobula.shutdown)
        return await waits

    with pytest.raises(x.ShutdownError):
        asyncio.run(wait())
    assert list(gen) == []


def test_a_thread_sends_while_another_one_closes_the_connection(mini: MiniNode, monkeypatch: pytest.MonkeyPatch) -> None:
    c = _runtime.client()
    close, wanted = Conn.close, []

    def closes(conn: Conn) -> None:
        close(conn)
        wanted.append(c.streams.want(SimpleNamespace(_wanted=None), os.urandom(20), 0))
        c.streams.when_item(wanted[0], lambda: None)
        conn.rouse()

    monkeypatch.setattr(Conn, "close", closes)
    mobula.shutdown()
    assert len(wanted) == 1
    with pytest.raises(x.ShutdownError):
        c.check()
