"""The client against the stub node, message by message: objects, requests, connecting and closing."""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
from typing import Any

import cbor2
import numpy as np
import pytest
from helpers_of_client import flat, kinds, settled, unknown
from mininode import MiniNode
from waiting import PATIENCE, until

import mobula
from mobula import _api, _ids, _refs, _runtime, _segment, _value
from mobula import exceptions as x
from mobula._client import objects
from mobula._wire import messages as m


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


@pytest.mark.parametrize("exiting", [False, True])
@pytest.mark.parametrize("step, put", [("write", lambda: mobula.put(b"x" * 200_000)), ("map_writable", lambda: mobula.create(200_000, "uint8"))])
def test_a_put_under_which_the_client_is_closed(mini: MiniNode, monkeypatch: pytest.MonkeyPatch, step: str, put: Any, exiting: bool) -> None:
    """Closing takes the segment away under it. It hears of the close, and ends without a word as a daemon thread at the interpreter's end."""
    c, raised = _runtime.client(), []
    assert c.segment is not None
    writes = getattr(c.segment, step)

    def closed(*args: Any) -> Any:
        c.exiting = exiting
        c.close()
        return writes(*args)

    monkeypatch.setattr(c.segment, step, closed)

    def puts() -> None:
        try:
            put()
        except BaseException as why:
            raised.append(type(why))

    t = threading.Thread(target=puts, daemon=True)
    t.start()
    t.join()
    assert raised == [SystemExit if exiting else x.ShutdownError]


def test_a_write_of_a_put_ends_before_the_goodbye(mini: MiniNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """After that the node may give the memory to others: the piece that is being written ends first, and no other begins."""
    c, begun, go, happened = _runtime.client(), threading.Event(), threading.Event(), []
    say, write = c._say, os.pwrite
    monkeypatch.setattr(_segment, "_PIECE", 1 << 20)
    monkeypatch.setattr(c, "_say", lambda *args: (happened.append("goodbye"), say(*args)))

    def pwrite(*args: Any) -> int:
        begun.set()
        assert go.wait(PATIENCE)
        happened.append("piece")
        return write(*args)

    monkeypatch.setattr(os, "pwrite", pwrite)
    why: list[BaseException] = []

    def puts() -> None:
        try:
            mobula.put(bytes(9 << 20))
        except BaseException as raised:
            why.append(raised)

    putting, closing = threading.Thread(target=puts), threading.Thread(target=c.close)
    putting.start()
    assert begun.wait(PATIENCE)
    closing.start()
    segment = c.segment
    assert segment is not None
    until(lambda: segment._given_back)
    go.set()
    closing.join()
    putting.join()
    assert happened == ["piece", "goodbye"] and isinstance(why[0], x.ShutdownError)


def test_an_array_that_is_made_while_the_client_closes_is_no_part_of_the_store(mini: MiniNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """The node hears the goodbye, and may give its memory to others."""
    c, shared = _runtime.client(), []
    say = c._say

    def bye(*args: Any) -> None:
        b = mobula.create(200_000, "uint8")
        b.array[:] = 7
        assert c.segment is not None
        shared.append(bytes(c.segment.view(b._mapping.extent, 3, None)))
        say(*args)

    monkeypatch.setattr(c, "_say", bye)
    c.close()
    assert shared == [bytes(3)]


def test_an_array_that_is_made_as_the_client_is_closed_while_another_lives_on(mini: MiniNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """The segment stays for that one."""
    c, seen = _runtime.client(), mobula.get(mobula.put(np.arange(100_000.0)))
    assert c.segment is not None
    map_writable = c.segment.map_writable
    monkeypatch.setattr(c.segment, "map_writable", lambda extent: (c.close(), map_writable(extent))[1])
    with pytest.raises(x.ShutdownError):
        mobula.create(200_000, "uint8")
    assert seen[-1] == 99_999


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
    settled()
    assert d.pins[ref._h.id] == 1 and view[0, 0] == 10
    mem = memoryview(view)
    del view
    settled()
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
    assert (ready, rest) == ([], [never]) and time.monotonic() - begun >= 0.1
    with pytest.raises(x.GetTimeoutError) as e:
        mobula.get([never, known[0]], timeout=0.05)
    assert isinstance(e.value, TimeoutError)
    with pytest.raises(TimeoutError):
        mobula.get(never, timeout=0)
    mini.until(lambda: kinds(mini, m.Unget))
    with mini.lock:
        mini._resolve(never._h.id, m.Result(m.INLINE, m.Value(*flat(7)), 1))
    assert mobula.get(never, timeout=PATIENCE) == 7
    there = unknown()
    with mini.lock:
        mini._resolve(there._h.id, m.Result(m.INLINE, m.Value(*flat(8)), 1))
    polls = 0
    while mobula.wait([there], timeout=0)[1]:  # what is there is had by polling too
        polls += 1
        assert polls < 100
    assert mobula.get(mobula.put(np.ones(50_000)), timeout=0).sum() == 50_000
    with pytest.raises(ValueError):
        mobula.wait(known, num_returns=4)
    with pytest.raises(ValueError):
        mobula.wait([known[0], known[0]])


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
    before_the_break = {id(r) for r in kinds(mini, m.Request)}  # which the driver's next connection may take over
    mini.drop_all()
    mini.until(lambda: mini.peers and mini.driver() is not old)
    assert several(3 * most, "echo", 20) == ["x"] * 3 * most
    assert [r.method for r in kinds(mini, m.Request) if id(r) not in before_the_break] == ["echo"] * 3 * most


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
        settled()
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
    settled()
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
            mobula.get(never, timeout=PATIENCE)
        except BaseException as e:
            failed.append(e)

    t = threading.Thread(target=wait)
    t.start()
    until(lambda: never._h.waiters)
    before = len(os.listdir("/proc/self/fd"))
    mobula.shutdown()
    t.join(PATIENCE)
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
    until(lambda: len(os.listdir("/proc/self/fd")) <= before)  # the stub's own ends among them
    with pytest.raises(x.InvalidError, match="another connection"):
        mobula.remote(lambda v: v).remote(ref)


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


def test_references_that_a_release_before_0_5_wrote_are_the_same_objects(mini: MiniNode) -> None:
    c, old = _runtime.client(), os.urandom(16) + bytes(4)
    want = _refs.bound(c, bytes(4) + old)
    tagged = [_value.decode(_value.header(3, name="any"), cbor2.dumps(cbor2.CBORTag(tag, old))) for tag in (_value.TAG_REF, _value.TAG_ACTOR)]
    found = [_refs.bound(c, old), _refs.restore_ref(old), tagged[0], tagged[1]._ref, _api.actors.restore_actor(old, "a", "0", {})._ref]
    assert found == [want] * len(found) and all(ref._h is want._h for ref in found)
    assert want.hex() == "0" * 8 + old.hex()
