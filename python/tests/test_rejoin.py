"""A node that ends, and restarts or does not."""

from __future__ import annotations

import errno
import gc
import os
import threading
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from helpers_of_client import flat, kinds, unknown
from mininode import MiniNode
from waiting import PATIENCE, until

import mobula
from mobula import _api, _runtime
from mobula import exceptions as x
from mobula._client import client, outbox, rejoin
from mobula._client.credit import Credit
from mobula._wire import hot
from mobula._wire import messages as m
from mobula._wire.conn import framed


def test_a_connection_that_breaks_is_made_again(mini: MiniNode) -> None:
    kept = [mobula.put(i) for i in range(50)]
    big = mobula.put(np.ones(50_000))
    held = mobula.get(big)
    never = unknown()
    got: list[Any] = []
    t = threading.Thread(target=lambda: got.append(mobula.get(never, timeout=PATIENCE)))
    t.start()
    mini.until(lambda: kinds(mini, m.Get))
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
        mini._resolve(never._h.id, m.Result(m.INLINE, m.Value(*flat(1)), 1))
    t.join(PATIENCE)
    assert got == [1] and held.sum() == 50_000
    assert mobula.get(kept + more) == list(range(50)) * 2
    del kept, more, never, big, held
    mini.until(lambda: not mini.driver().handles)


def pipe(written: list[bytes]) -> Any:
    """A connection whose frames go into written."""
    conn: Any = SimpleNamespace(frame=None, sent=[], first=lambda data: iter(()))  # the socket takes nothing at once

    def push() -> None:
        if conn.frame is not None:
            written.append(conn.frame)
            conn.frame = None

    conn.push = push
    return conn


def resync(box: outbox.Outbox, credit: Credit) -> None:
    """The owner is lost, and the next one asks for the holdings."""
    credit.lose()
    box.declare([None], lambda: [b"holdings"], True)


def test_what_the_node_may_not_have_handled_is_kept() -> None:
    """However many messages it is: a program that puts small values has more under way than the outbox keeps otherwise."""
    window = 32 << 20
    credit = Credit(cast(Any, None))
    credit.grant(window)
    box = outbox.Outbox(True, credit)
    conn = pipe([])
    many, n = 2 * outbox._KEPT, 0

    def put() -> None:
        nonlocal n
        credit.admit(64 + 4)
        box.queue.append(hot.put_value(n.to_bytes(24, "big"), b"m", b"abc"))
        n += 1

    for _ in range(many):
        put()
    box.write(conn)
    assert len(box.renew(list, list)) == many and credit.left == -box._kept_bytes
    resync(box, credit)
    credit.grant(many * 68 // 2)  # what the owner has handled it says when it has handled the holdings
    assert credit.left == -box._kept_bytes and credit.handled == 0
    credit.grant(0)
    assert credit.left == window and credit.handled == credit.taken == many * 68
    put()
    box.write(conn)
    assert len(box.renew(list, list)) == outbox._KEPT


def test_what_was_sent_again_is_kept_until_it_is_handled() -> None:
    """A node is killed before it has handled what it was sent again, while the program goes on."""
    window = 32 << 20
    credit = Credit(cast(Any, None))
    credit.grant(window)
    box = outbox.Outbox(True, credit)
    conn = pipe([])
    many, made = 2 * outbox._KEPT, 0

    def put(n: int) -> None:
        nonlocal made
        for _ in range(n):
            cost = 64 + 4
            assert credit.left is not None
            if credit.left > 0:  # else it would wait
                credit.admit(cost)
                box.queue.append(hot.put_value(made.to_bytes(24, "big"), b"m", b"abc"))
                made += 1
        box.write(conn)

    put(many)
    resync(box, credit)  # the owner is rebuilt in a node that goes on
    put(1)
    assert len(box.renew(list, list)) == made == many + 1
    resync(box, credit)
    put(1)
    assert len(box.renew(list, list)) == made
    resync(box, credit)
    credit.grant(0)
    before = made
    put(many)
    assert made == before + many and len(box.renew(list, list)) >= many  # of what came after the owner had settled it has handled nothing


def test_what_was_handled_is_not_kept_for_long() -> None:
    """The node forgets that it has run a task. Were it sent the task again after that, it would run twice."""
    credit = Credit(cast(Any, None))
    credit.grant(32 << 20)
    box = outbox.Outbox(True, credit)
    conn, cost, frame, late = pipe([]), 512, 1000, 30  # the answers are late by so many frames
    for i in range(2 * outbox._KEPT // frame):
        for _ in range(frame):
            credit.admit(cost)
            box.queue.append(hot.put_value(bytes(24), b"m", b"abc"))
        box.write(conn)
        if i >= late:
            credit.grant(frame * cost)
    assert len(box.renew(list, list)) == outbox._KEPT


def test_what_is_queued_while_the_node_comes_back_is_not_lost_the_next_time() -> None:
    box, written = outbox.Outbox(True, Credit(cast(Any, None))), []
    conn = pipe(written)
    sent, never, meanwhile = (hot.put_value(bytes([i]) * 24, b"m", b"d") for i in range(3))
    box.queue.append(sent)
    box.write(conn)
    box.queue += [never, hot.add_ref(bytes(24))]  # the second follows from the holdings
    first = box.renew(lambda: [b"holdings"], lambda: [b"question"])
    box.queue.append(meanwhile)
    assert written == [framed([sent])] and first == [b"holdings", sent, never, b"question"]
    box.write(conn)
    assert written == [framed([sent]), framed([meanwhile])]
    assert box.renew(list, list) == [sent, never, meanwhile]


def test_a_node_that_does_not_come_back(mini: MiniNode, monkeypatch: Any) -> None:
    monkeypatch.setattr(rejoin, "PATIENCE", 0.3)
    never = unknown()
    kept = mobula.put(5)
    mini.server.close()
    os.unlink(mini.path)
    mini.drop_all()
    with pytest.raises(x.OwnerDiedError) as e:
        mobula.get(never, timeout=PATIENCE)
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
        mobula.get(unknown(), timeout=PATIENCE)


def test_a_connection_that_is_made_again_leaves_no_descriptors(mini: MiniNode) -> None:
    def descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))

    def again() -> None:
        before = _runtime.client().conn
        mini.drop_all()
        assert until(lambda: _runtime.client().conn not in (before, None))
        assert _api.request("echo", 1) == 1
        gc.collect()

    again()
    first = descriptors()
    for _ in range(3):
        again()
    until(lambda: descriptors() <= first)  # the stub's own ends among them


def test_the_next_owner_tells_the_window() -> None:
    """One that was lost as the driver joined has not."""
    credit = Credit(cast(Any, None))
    box = outbox.Outbox(True, credit)
    resync(box, credit)
    credit.grant(1000)
    credit.grant(0)
    assert (credit.left, credit.handled, list(box.queue)) == (1000, 0, [b"holdings"])


def test_the_holdings_come_before_what_is_queued_while_they_are_made(mini: MiniNode) -> None:
    """They may lack its handle, and the owner would free the object."""
    before = mobula.put(0)
    c, made = _runtime.client(), []
    declare = c.objects.declare_handles

    def and_then(h: m.Holdings) -> None:
        declare(h)
        made.append(mobula.put(1))

    def began() -> list[Any]:
        return [g.id if isinstance(g, m.PutValue) else m.Holdings for g in kinds(mini, m.PutValue, m.Holdings)]

    c.objects.declare_handles = and_then  # type: ignore[method-assign]
    mini.driver().send(m.Resync(m.OWNER, 9))
    mini.until(lambda: made and made[0]._h.id in began())
    assert began() == [before._h.id, m.Holdings, made[0]._h.id]
    old = mini.driver()
    mini.drop_all()
    mini.until(lambda: mini.peers and mini.driver() is not old and len(made) == 2 and made[1]._h.id in began())
    c.objects.declare_handles = declare  # type: ignore[method-assign]
    assert began()[-1] == made[1]._h.id and began().index(m.Holdings) < began().index(made[0]._h.id)
