"""The client against the stub node, message by message."""

from __future__ import annotations

import asyncio
import errno
import gc
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import mobula
from mininode import MiniNode
from mobula import _api, _ids, _refs, _runtime
from mobula import exceptions as x
from mobula._api import actors
from mobula._version import RELEASE
from mobula._client import client, objects, outbox, reader, rejoin
from mobula._wire import codec, hot
from mobula._wire import messages as m
from mobula._wire.conn import dial
from waiting import until


def segments() -> int:
    """How many descriptors of a stub's segment are open."""
    n = 0
    for fd in os.listdir("/proc/self/fd"):
        try:
            n += os.readlink(f"/proc/self/fd/{fd}").startswith("/memfd:mini")
        except FileNotFoundError:
            pass  # it was closed meanwhile
    return n


def kinds(node: MiniNode, *which: type[Any]) -> list[Any]:
    with node.lock:
        return [g for g in node.driver().got if isinstance(g, which)]


def unknown() -> Any:
    """A reference to an object that nobody has made yet."""
    c = _runtime.client()
    return _refs.bound(c, os.urandom(20) + bytes(4))


def test_put_get_release(mini: MiniNode) -> None:
    refs = [mobula.put(i) for i in range(1000)]
    assert mobula.get(refs) == list(range(1000))
    assert mobula.get(refs[3]) == 3
    assert not kinds(mini, m.Get)  # one's own small values need no trip
    mini.until(lambda: len(mini.driver().handles) == 1000)
    del refs
    mini.until(lambda: not mini.driver().handles)
    assert len(kinds(mini, m.Release)) < 50  # in batches
    with pytest.raises(TypeError):
        mobula.put(mobula.put(1))
    with pytest.raises(TypeError):
        mobula.get(3)
    assert mobula.get([]) == []


def test_large_values_are_pinned_while_they_are_viewed(mini: MiniNode) -> None:
    a = np.arange(100_000.0)
    ref = mobula.put({"a": a, "b": [1, 2]})
    d = mini.driver()
    got = mobula.get(ref)
    again = mobula.get(ref)
    assert (got["a"] == a).all() and not got["a"].flags.writeable
    with pytest.raises(ValueError):
        got["a"][0] = 1
    mini.until(lambda: d.pins[ref._h.id] == 1)  # all readers share one pin
    view = got["a"][10:].reshape(-1, 2)
    del got, again
    time.sleep(0.05)
    assert d.pins[ref._h.id] == 1 and view[0, 0] == 10
    mem = memoryview(view)
    del view
    time.sleep(0.05)
    assert d.pins[ref._h.id] == 1 and mem[0, 0] == 10
    mem.release()
    del mem
    mini.until(lambda: d.pins[ref._h.id] == 0)
    assert mobula.get(ref)["b"] == [1, 2]  # and it can be had again
    mini.until(lambda: d.pins[ref._h.id] == 0)
    text = mobula.put("x" * 200_000)
    assert mobula.get(text) == "x" * 200_000
    mini.until(lambda: d.pins[text._h.id] == 0)
    raw = mobula.put(bytes(200_000))
    assert mobula.get(raw) == bytes(200_000)


def test_a_create_that_fails(mini: MiniNode) -> None:
    with pytest.raises(x.StoreFullError, match="full"):
        mobula.put(np.ones(20 << 20))
    mini.until(lambda: not mini.driver().handles)


def test_wait_and_timeouts(mini: MiniNode) -> None:
    known = [mobula.put(i) for i in range(3)]
    never = unknown()
    ready, rest = mobula.wait([never, *known], num_returns=2)
    assert ready == known[:2] and rest == [never, known[2]]
    begun = time.monotonic()
    ready, rest = mobula.wait([never], timeout=0.1)
    assert (ready, rest) == ([], [never]) and 0.09 < time.monotonic() - begun < 1
    with pytest.raises(x.GetTimeoutError) as e:
        mobula.get([never, known[0]], timeout=0.05)
    assert isinstance(e.value, TimeoutError)
    with pytest.raises(TimeoutError):
        mobula.get(never, timeout=0)
    mini.until(lambda: kinds(mini, m.Unget))
    with mini.lock:
        mini._resolve(never._h.id, m.Result(m.INLINE, m.Value(*_flat(7)), 1))
    assert mobula.get(never, timeout=5) == 7
    there = unknown()
    with mini.lock:
        mini._resolve(there._h.id, m.Result(m.INLINE, m.Value(*_flat(8)), 1))
    polls = 0
    while mobula.wait([there], timeout=0)[1]:  # what is there is had by polling too
        polls += 1
        assert polls < 100
    assert mobula.get(mobula.put(np.ones(50_000)), timeout=0).sum() == 50_000
    with pytest.raises(ValueError):
        mobula.wait(known, num_returns=4)
    with pytest.raises(ValueError):
        mobula.wait([known[0], known[0]])


def _flat(v: Any) -> tuple[bytes, bytes]:
    from mobula import _value

    e = _value.encode(v, 1000)
    assert e.data is not None
    return e.meta, e.data


def test_who_waits_beside_a_get_that_gives_up_is_told(mini: MiniNode) -> None:
    one = unknown()
    got: list[Any] = []
    known = threading.Event()
    get = threading.Thread(target=lambda: got.append(pytest.raises(x.GetTimeoutError, mobula.get, one, timeout=0.5)))
    get.start()
    mini.until(lambda: kinds(mini, m.Get))
    wait = threading.Thread(target=lambda: got.append(mobula.wait([one], timeout=10)))
    wait.start()
    _runtime.client().getter.when_known(one._h, known.set)
    get.join(10)
    mini.until(lambda: kinds(mini, m.Unget))
    with mini.lock:
        mini._resolve(one._h.id, m.Result(m.INLINE, m.Value(*_flat(1)), 1))
    wait.join(10)
    assert known.wait(10) and got[1] == ([one], [])


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
        got[i] = mobula.get(refs[i], timeout=20)

    threads = [threading.Thread(target=wait, args=(i,)) for i in range(40)]
    for t in threads:
        t.start()
    time.sleep(0.05)
    for i in reversed(range(40)):
        with mini.lock:
            mini._resolve(refs[i]._h.id, m.Result(m.INLINE, m.Value(*_flat(i)), 1))
        if i % 10 == 0:
            time.sleep(0.01)
    for t in threads:
        t.join(20)
    assert got == {i: i for i in range(40)}


def test_await_and_futures(mini: MiniNode) -> None:
    refs = [unknown() for _ in range(5)]
    stored = mobula.put(np.ones(50_000))

    def later() -> None:
        time.sleep(0.1)
        for i, r in enumerate(refs):
            with mini.lock:
                mini._resolve(r._h.id, m.Result(m.INLINE, m.Value(*_flat(i)), 1))

    threading.Thread(target=later).start()

    async def all_of_them() -> Any:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(refs[0], 0.01)
        return await asyncio.gather(*refs, stored)

    *values, array = asyncio.run(all_of_them())
    assert values == [0, 1, 2, 3, 4] and array.sum() == 50_000
    d = mini.driver()
    mini.until(lambda: d.pins[stored._h.id] == 1)
    del array
    gc.collect()
    mini.until(lambda: d.pins[stored._h.id] == 0)
    assert stored.future().result(5).sum() == 50_000
    one = unknown()
    fut = one.future()
    with mini.lock:
        mini._resolve(one._h.id, m.Result(m.ERROR, err=m.Error(9, "gone")))
    with pytest.raises(x.ObjectLostError):
        fut.result(5)


def test_callbacks_of_futures_may_wait(mini: MiniNode) -> None:
    """They have a thread of their own: neither the connection's reader nor whoever waits meanwhile runs them."""
    first, second = unknown(), unknown()
    got: list[Any] = []
    done = threading.Event()

    def wait_for_the_second(fut: Any) -> None:
        got.append((fut.result(), mobula.get(second, timeout=10), threading.current_thread()))
        done.set()

    first.future().add_done_callback(wait_for_the_second)
    for i, r in enumerate((first, second)):
        with mini.lock:
            mini._resolve(r._h.id, m.Result(m.INLINE, m.Value(*_flat(i)), 1))
    assert done.wait(10)
    assert got[0][:2] == (0, 1) and got[0][2] is not threading.current_thread()


def test_what_is_known_needs_no_message(mini: MiniNode) -> None:
    """Whoever has the reader's role may get no message for as long as it waits."""
    ref = mobula.put([1])
    reader = _runtime.client().reader
    mine = reader._role.acquire(False)  # somebody reads, and hears nothing: this thread, or the keeper
    try:
        assert ref.future().result(10) == [1]
        assert asyncio.run(asyncio.wait_for(_awaited(ref), 10)) == [1]
    finally:
        if mine:
            reader._role.release()
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
        mini._resolve(asked._h.id, m.Result(m.INLINE, m.Value(*_flat(7)), 1))
    assert fut.result(10) == 7


def test_who_asks_a_client_that_is_gone_hears_so(mini: MiniNode) -> None:
    never = unknown()
    before = never.future()

    async def wait() -> Any:
        return await asyncio.wait_for(never, 10)

    mobula.shutdown()
    with pytest.raises(x.ShutdownError):
        before.result(10)
    with pytest.raises(x.ShutdownError):
        never.future().result(10)
    with pytest.raises(x.ShutdownError):
        asyncio.run(wait())

    async def item() -> Any:
        return await asyncio.wait_for(anext(mobula.ObjectRefGenerator(never._c, os.urandom(20))), 10)

    with pytest.raises(x.ShutdownError):
        asyncio.run(item())


def test_an_interrupt_ends_a_wait_and_nothing_else(mini: MiniNode) -> None:
    never = unknown()

    def interrupt() -> None:
        assert until(lambda: never._h.waiters)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    for _ in range(20):
        t = threading.Thread(target=interrupt)
        t.start()
        with pytest.raises(KeyboardInterrupt):
            mobula.get(never, timeout=20)
        t.join()
    with mini.lock:
        mini._resolve(never._h.id, m.Result(m.INLINE, m.Value(*_flat("there")), 1))
    assert mobula.get(never, timeout=5) == "there"
    refs = [mobula.put(i) for i in range(100)]
    assert mobula.get(refs) == list(range(100))


def test_an_interrupt_just_before_a_wait_sleeps_is_raised(mini: MiniNode, monkeypatch: Any) -> None:
    """It comes when nobody looks any more whether there is one, and wakes nobody: who waits without end looks now and then."""
    never, conn = unknown(), _runtime.client().conn
    assert conn is not None
    poll, came = conn._poll.poll, threading.Event()

    def late(timeout: float | None) -> Any:
        if timeout != 0 and not came.is_set() and threading.current_thread() is threading.main_thread():
            came.set()
            signal.raise_signal(signal.SIGINT)
        return poll(timeout)

    monkeypatch.setattr(reader, "_LOOK", 0.05)
    monkeypatch.setattr(conn, "_poll", SimpleNamespace(poll=late))
    with pytest.raises(KeyboardInterrupt):
        mobula.get(never)
    assert came.is_set()


def test_requests(mini: MiniNode) -> None:
    assert _api.request("echo", {"a": 1}) == {"a": 1}
    with pytest.raises(x.InvalidError):
        _api.request("nothing", None)
    with pytest.raises(x.GetTimeoutError):
        _api.request("silence", None, 0.05)


def test_requests_wait_for_their_turn(mini: MiniNode) -> None:
    """A bounded number is at the node. Nobody's turn is lost with those who wait no longer, and a node that comes back is not asked for them."""
    most = m.REQUESTS_AT_ONCE

    def several(n: int, method: str, timeout: float) -> list[str]:
        def ask() -> None:
            try:
                said.append(_api.request(method, "x", timeout))
            except x.MobulaError as e:
                said.append(type(e).__name__)

        said: list[str] = []
        threads = [threading.Thread(target=ask) for _ in range(n)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        return said

    assert several(3 * most, "echo", 20) == ["x"] * 3 * most
    before = len(kinds(mini, m.Request))
    assert several(3 * most, "silence", 0.3) == ["GetTimeoutError"] * 3 * most
    assert len(kinds(mini, m.Request)) == before + most
    assert several(2, "echo", 0.1) == ["GetTimeoutError"] * 2
    old = mini.driver()
    mini.drop_all()
    mini.until(lambda: mini.peers and mini.driver() is not old)
    assert several(3 * most, "echo", 20) == ["x"] * 3 * most
    assert [r.method for r in kinds(mini, m.Request)] == ["echo"] * 3 * most


def test_a_connection_that_breaks_is_made_again(mini: MiniNode) -> None:
    kept = [mobula.put(i) for i in range(50)]
    big = mobula.put(np.ones(50_000))
    held = mobula.get(big)
    never = unknown()
    got: list[Any] = []
    t = threading.Thread(target=lambda: got.append(mobula.get(never, timeout=20)))
    t.start()
    time.sleep(0.05)
    old = mini.driver()
    with mini.lock:
        old.handles.clear()
    mini.drop_all()
    more = [mobula.put(i) for i in range(50)]  # while it is down
    mini.until(lambda: mini.peers and mini.driver() is not old and len(mini.driver().handles) >= 102)
    assert mini.driver().hello.client == old.id and mini.driver().hello.token == b"back"
    owners = [h for h in kinds(mini, m.Holdings) if h.component == m.OWNER]
    assert m.Get(never._h.id, True) in owners[-1].gets
    stores = [h for h in kinds(mini, m.Holdings) if h.component == m.STORE]
    assert stores[-1].pins == [m.Unpin(big._h.id, 1)]
    mini.until(lambda: all(r._h.id in mini.objects for r in more))
    with mini.lock:
        mini._resolve(never._h.id, m.Result(m.INLINE, m.Value(*_flat(1)), 1))
    t.join(20)
    assert got == [1] and held.sum() == 50_000
    assert mobula.get(kept + more) == list(range(50)) * 2
    del kept, more, never, big, held
    mini.until(lambda: not mini.driver().handles)


def test_what_is_queued_while_the_node_comes_back_is_not_lost_the_next_time() -> None:
    box, written = outbox.Outbox(keep=True), []
    conn: Any = SimpleNamespace(write=written.extend)
    sent, never, meanwhile = (hot.put_value(bytes([i]) * 24, b"m", b"d") for i in range(3))
    box.queue.append(sent)
    box.write(conn)
    box.queue += [never, hot.add_ref(bytes(24))]  # the second follows from the holdings
    first = box.renew([b"holdings"], [b"question"])
    box.queue.append(meanwhile)
    assert written == [sent] and first == [b"holdings", sent, never, b"question"]
    box.write(conn)
    assert written == [sent, meanwhile]
    assert box.renew([], []) == [sent, never, meanwhile]


def test_a_node_that_does_not_come_back(mini: MiniNode, monkeypatch: Any) -> None:
    monkeypatch.setattr(rejoin, "PATIENCE", 0.3)
    never = unknown()
    kept = mobula.put(5)
    mini.server.close()
    os.unlink(mini.path)
    mini.drop_all()
    with pytest.raises(x.OwnerDiedError) as e:
        mobula.get(never, timeout=20)
    assert isinstance(e.value, x.ObjectLostError)
    with pytest.raises(x.OwnerDiedError):
        mobula.put(1)
    assert mobula.get(kept) == 5
    mini.listen = lambda: None  # type: ignore[method-assign]


def test_a_request_waits_for_a_node_that_may_come_back(mini: MiniNode, monkeypatch: Any) -> None:
    monkeypatch.setattr(client, "REQUEST_TIMEOUT", 0.01)
    monkeypatch.setattr(rejoin, "PATIENCE", 0.5)
    mini.server.close()
    os.unlink(mini.path)
    mini.drop_all()
    with pytest.raises(x.OwnerDiedError, match="not back"):
        _api.request("echo", None)
    mini.listen = lambda: None  # type: ignore[method-assign]


def test_a_node_whose_directory_is_gone_does_not_come_back(mini: MiniNode) -> None:
    dir = os.path.dirname(mini.path)
    mini.server.close()
    os.rename(dir, dir + "-gone")
    mini.drop_all()
    with pytest.raises(x.OwnerDiedError, match="directory is gone"):
        _api.request("echo", None, rejoin.PATIENCE - 5)
    os.rename(dir + "-gone", dir)
    mini.listen = lambda: None  # type: ignore[method-assign]


def test_resync_and_collect(mini: MiniNode) -> None:
    ref = mobula.put(1)
    mini.until(lambda: ref._h.id in mini.driver().handles)
    mini.driver().send(m.Resync(m.OWNER, 9), m.Resync(m.STORE, 10))
    mini.until(lambda: {(h.component, h.epoch) for h in kinds(mini, m.Holdings)} >= {(m.OWNER, 9), (m.STORE, 10)})
    gen = mobula.remote(num_returns="streaming")(lambda: iter(())).remote()
    stream = _ids.stream_id(bytes.fromhex(gen.task_id()))
    for epoch, read in ((11, True), (12, False)):
        mini.driver().send(m.Resync(m.OWNER, epoch))
        mini.until(lambda: epoch in [h.epoch for h in kinds(mini, m.Holdings)])
        assert [stream in h.handles for h in kinds(mini, m.Holdings) if h.epoch == epoch] == [read]
        gen = None
    mini.until(lambda: [r for r in kinds(mini, m.Release) if stream in r.ids])  # and is not cancelled alone: what was asked for is let go of
    cycle: list[Any] = [mobula.put(2)]
    cycle.append(cycle)
    id = cycle[0]._h.id
    mini.until(lambda: id in mini.driver().handles)
    gc.disable()
    try:
        del cycle
        time.sleep(0.05)
        assert id in mini.driver().handles
        mini.driver().send(m.Collect())
        mini.until(lambda: id not in mini.driver().handles)
    finally:
        gc.enable()


def test_credit_holds_back_who_sends_too_fast() -> None:
    node = MiniNode(credit=10_000)
    try:
        mobula.init(node.path)
        c = _runtime.client()
        node.until(lambda: c.credit.left is not None or mobula.get(mobula.put(0)) == 1 or c.credit.left is not None)
        refs = [mobula.put(bytes(5000)) for _ in range(50)]
        assert mobula.get(refs) == [bytes(5000)] * 50
        assert c.credit.left is not None and c.credit.left <= 10_000
    finally:
        mobula.shutdown()
        node.close()


def test_values_that_were_forgotten_are_asked_for_again(mini: MiniNode, monkeypatch: Any) -> None:
    monkeypatch.setattr(objects, "CACHE_BYTES", 100_000)
    refs = [mobula.put(bytes([i]) * 10_000) for i in range(40)]
    c = _runtime.client()
    assert c.objects.cache_used <= 110_000 and sum(r._h.res is None for r in refs) > 25
    assert mobula.get(refs) == [bytes([i]) * 10_000 for i in range(40)]
    assert kinds(mini, m.Get)
    del refs
    mini.until(lambda: not mini.driver().handles)
    assert c.objects.cache_used == 0


def test_reference_twice(mini: MiniNode) -> None:
    ref = mobula.put([1])
    outer = mobula.put({"r": ref})
    id = ref._h.id
    a, b = mobula.get(outer)["r"], mobula.get(outer)["r"]
    assert a == b == ref and hash(a) == hash(ref) and a._h is ref._h
    del ref, a
    time.sleep(0.05)
    assert mobula.get(b) == [1] and id in mini.driver().handles
    del b
    mini.until(lambda: id not in mini.driver().handles)
    assert not [g for g in kinds(mini, m.AddRef) if g.id == id]  # it always had a handle
    c = mobula.get(outer)["r"]
    mini.until(lambda: [g for g in kinds(mini, m.AddRef) if g.id == id])
    assert mobula.get(c) == [1]


def test_shutdown_and_init_again(mini: MiniNode) -> None:
    ref = mobula.put(1)
    with pytest.raises(x.InvalidError, match="before"):
        mobula.init(mini.path)
    mobula.init(mini.path, ignore_reinit_error=True)
    never = unknown()
    failed: list[BaseException] = []

    def wait() -> None:
        try:
            mobula.get(never, timeout=20)
        except BaseException as e:
            failed.append(e)

    t = threading.Thread(target=wait)
    t.start()
    time.sleep(0.05)
    before = len(os.listdir("/proc/self/fd"))
    mobula.shutdown()
    t.join(10)
    assert isinstance(failed[0], x.ShutdownError)
    assert not mobula.is_initialized()
    assert mobula.get(ref) == 1  # it is here
    with pytest.raises(x.ShutdownError):
        mobula.get(never)
    mobula.init(mini.path)
    assert mobula.get(mobula.put(2)) == 2
    for _ in range(5):
        mobula.shutdown()
        mobula.init(mini.path)
    until = time.monotonic() + 5
    while len(os.listdir("/proc/self/fd")) > before:  # the stub's own ends among them
        assert time.monotonic() < until
        time.sleep(0.01)
    with pytest.raises(x.InvalidError, match="another connection"):
        mobula.remote(lambda v: v).remote(ref)


def test_refusals(tmp_path: Any) -> None:
    with pytest.raises(x.NoNodeError, match="mobula start"):
        dial(str(tmp_path / "none"), m.Hello())
    with pytest.raises(x.InvalidError, match="has 200 bytes, Linux takes 82"):
        dial("/tmp/" + "x" * 200, m.Hello())
    with pytest.raises(x.NoNodeError, match="mobula start"):  # the directory may be as long as it will
        dial("/tmp/" + "y/" * 200 + "none", m.Hello())
    for n, (said, error) in enumerate([(codec.frame(m.Bye(m.Error(28, "you are not welcome"))), x.PermissionDeniedError), (b"HTTP/1.1 400", x.ProtocolError),
                        (b"", x.DisconnectedError), (codec.frame(m.Welcome(version=9)), x.VersionError), (codec.frame(m.Drain()), x.ProtocolError)]):
        path = str(tmp_path / f"s{n}")
        server = socket.socket(socket.AF_UNIX)
        server.bind(path)
        server.listen(1)

        def answer(said: bytes = said, server: Any = server) -> None:
            c, _ = server.accept()
            if said:
                c.recv(10_000)
            c.sendall(said)
            c.close()

        t = threading.Thread(target=answer)
        t.start()
        with pytest.raises(error):
            dial(path, m.Hello(role=m.DRIVER))
        t.join()
        server.close()


@pytest.mark.parametrize("release, said", [("9.9.0", "Mobula 9.9.0"), ("", "Mobula before 0.2")])
def test_a_node_of_another_release_is_refused(release: str, said: str) -> None:
    gc.collect()  # clients of tests before
    other = MiniNode(release=release)
    before = segments()
    try:
        with pytest.raises(x.VersionError, match=f"{other.path} is {said}, this package is mobula {RELEASE}: use a package and"):
            mobula.init(other.path)
        assert not mobula.is_initialized()
        assert segments() == before
    finally:
        other.close()
    node = MiniNode()  # the process can go on with another
    try:
        with mobula.init(node.path):
            assert mobula.get(mobula.put(1)) == 1
    finally:
        node.close()


def test_large_frames_in_pieces(tmp_path: Any) -> None:
    """A frame larger than the reader's buffer, cut anywhere."""
    path = str(tmp_path / "s")
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    server.listen(1)
    data = codec.frame(m.Welcome(version=m.VERSION, client=1, job=1, root=bytes(20), release=RELEASE))
    stream = codec.frame(m.Reply(1, bytes(600_000))) + codec.frame(m.Reply(2, b"x"), m.Reply(3, bytes(300_000))) + codec.frame(m.Reply(4, b"y"))
    done = threading.Event()

    def serve() -> None:
        c, _ = server.accept()
        c.sendall(data)
        at, size = 0, 1
        while at < len(stream):
            c.sendall(stream[at:at + size])
            at, size = at + size, size * 3 % 70_001 + 1
        done.wait(10)
        c.close()

    t = threading.Thread(target=serve)
    t.start()
    conn, _, _, early = dial(path, m.Hello())
    got = [codec.decode(m.KINDS[k], b) for k, b in early]
    while len(got) < 4:
        conn.pump(5, lambda k, b, i, j, fd: got.append(codec.decode(m.KINDS[k], b, i, j)))
    assert [(r.req, len(r.body)) for r in got] == [(1, 600_000), (2, 1), (3, 300_000), (4, 1)]
    done.set()
    t.join()
    conn.close()
    server.close()


def test_an_interrupt_does_not_cut_off_what_comes_in_or_goes_out(mini: MiniNode, monkeypatch: Any) -> None:
    c = _runtime.client()
    before = c.conn

    def interrupted(f: Any) -> Any:
        def g(*args: Any) -> Any:
            if threading.current_thread() is threading.main_thread() and not asked:
                asked.append(f)
                signal.raise_signal(signal.SIGINT)
            return f(*args)

        return g

    for part, name in ((c.requests, "answer"), (c.outbox, "write"), (c.objects, "release")):
        asked: list[Any] = []
        with monkeypatch.context() as patch:
            patch.setattr(part, name, interrupted(getattr(part, name)))
            while not asked:  # the keeper may be the one who reads, and writes
                try:
                    mobula.put(1)
                    _api.request("echo", 1)
                except KeyboardInterrupt:
                    assert asked
        assert _api.request("echo", 2) == 2
        assert c.conn is before and before is not None and before.failed is None
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_what_an_interrupt_kept_from_being_asked_is_asked_again(mini: MiniNode, monkeypatch: Any) -> None:
    ref = unknown()
    with monkeypatch.context() as patch:
        patch.setattr(hot, "get", _interrupt)
        for f in (lambda: mobula.get(ref), lambda: mobula.wait([ref])):
            with pytest.raises(KeyboardInterrupt):
                f()
    with mini.lock:
        mini._resolve(ref._h.id, m.Result(m.INLINE, m.Value(*_flat("there")), 1))
    assert mobula.get(ref, timeout=5) == "there"


def test_an_interrupted_call_of_an_actor_has_no_number(mini: MiniNode, monkeypatch: Any) -> None:
    actor = _api.ActorHandle(_refs.bound(_runtime.client(), os.urandom(24)), "a", "0", {"m": (1, "")})
    with monkeypatch.context() as patch:
        patch.setattr(hot, "submit", _interrupt)
        patch.setattr(actors, "results", lambda *args: None)
        with pytest.raises(KeyboardInterrupt):
            actor.m.remote()
    numbers: list[int] = []
    tail = hot.spec_tail
    monkeypatch.setattr(hot, "spec_tail", lambda actor, seq, *rest: numbers.append(seq) or tail(actor, seq, *rest))
    actor.m.remote()
    actor.m.remote()
    assert numbers == [1, 2]


def _interrupt(*args: Any) -> Any:
    raise KeyboardInterrupt


def test_a_program_with_many_files_open(binary: str) -> None:
    program = """
import os, resource
resource.setrlimit(resource.RLIMIT_NOFILE, (2048, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
files = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
import mobula
mobula.init(num_cpus=1, object_store_memory=64 << 20)
f = mobula.remote(lambda: 3)
print(mobula.get(f.remote()))
mobula.shutdown()
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (ran.stdout, ran.returncode) == ("3\n", 0), ran.stderr


def test_a_process_without_descriptors_rejoins_when_it_has_some(mini: MiniNode, monkeypatch: Any) -> None:
    ref, tries, real = mobula.put(1), [], rejoin.dial

    def dial(*args: Any) -> Any:
        tries.append(args)
        if len(tries) < 3:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return real(*args)

    monkeypatch.setattr(rejoin, "dial", dial)
    mini.drop_all()
    assert _api.request("echo", 1) == 1
    assert len(tries) == 3 and mobula.get(ref) == 1


def test_what_a_node_sends_anew_and_cannot_be_used_ends_all_that_waits(mini: MiniNode, monkeypatch: Any) -> None:
    def fail(fd: int, size: int) -> Any:
        os.close(fd)
        raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))

    monkeypatch.setattr(client, "open_segment", fail)
    mini.drop_all()
    with pytest.raises(x.OwnerDiedError, match="Cannot allocate"):
        mobula.get(unknown(), timeout=20)


def test_a_connection_that_is_made_again_leaves_no_descriptors(mini: MiniNode) -> None:
    def again() -> int:
        before = _runtime.client().conn
        mini.drop_all()
        assert until(lambda: _runtime.client().conn not in (before, None))
        assert _api.request("echo", 1) == 1
        gc.collect()
        return len(os.listdir("/proc/self/fd"))

    first = again()
    assert [again() for _ in range(3)][-1] <= first


def test_waits_beside_a_long_one_leave_nothing(mini: MiniNode) -> None:
    c, never = _runtime.client(), unknown()
    long = threading.Thread(target=lambda: pytest.raises(x.ShutdownError, mobula.get, never))
    long.start()
    assert until(lambda: never._h.waiters and c.reader._role.locked())
    for i in range(50):
        assert _api.request("echo", i) == i
    assert len(c.reader._sleepers) <= 1
    mobula.shutdown()
    long.join()


def test_the_count_of_values_at_hand_is_exact_with_threads(mini: MiniNode) -> None:
    c = _runtime.client()

    def puts() -> None:
        for _ in range(100):
            [mobula.put(i) for i in range(50)]

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=puts) for _ in range(3)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    finally:
        sys.setswitchinterval(before)
    c.flush()
    assert not c.objects.handles and c.objects.cache_used == 0
