"""Ctrl-C at any moment of a connection to the node."""

from __future__ import annotations

import os
import signal
import threading
from types import SimpleNamespace
from typing import Any

import pytest
from helpers_of_client import flat, unknown
from mininode import MiniNode
from waiting import PATIENCE, until

import mobula
from mobula import _api, _interrupts, _refs, _runtime
from mobula._api import actors
from mobula._client import reader
from mobula._wire import hot
from mobula._wire import messages as m


def test_an_interrupt_ends_a_wait_and_nothing_else(mini: MiniNode) -> None:
    never = unknown()

    def interrupt() -> None:
        assert until(lambda: never._h.waiters)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    for _ in range(20):
        t = threading.Thread(target=interrupt)
        t.start()
        with pytest.raises(KeyboardInterrupt):
            mobula.get(never, timeout=PATIENCE)
        t.join()
    with mini.lock:
        mini._resolve(never._h.id, m.Result(m.INLINE, m.Value(*flat("there")), 1))
    assert mobula.get(never, timeout=PATIENCE) == "there"
    refs = [mobula.put(i) for i in range(100)]
    assert mobula.get(refs) == list(range(100))


def test_an_interrupt_just_before_a_wait_sleeps_is_raised(mini: MiniNode, monkeypatch: Any) -> None:
    """It comes when nobody looks any more whether there is one, and wakes nobody: who waits without end looks now and then."""
    never, conn = unknown(), _runtime.client().conn
    assert conn is not None
    poll, came = conn._poll_over.poll, threading.Event()

    def late(timeout: float | None) -> Any:
        if timeout != 0 and not came.is_set() and threading.current_thread() is threading.main_thread():
            came.set()
            signal.raise_signal(signal.SIGINT)
        return poll(timeout)

    monkeypatch.setattr(reader, "_LOOK", 0.05)
    monkeypatch.setattr(conn, "_poll_over", SimpleNamespace(poll=late))
    with pytest.raises(KeyboardInterrupt):
        mobula.get(never)
    assert came.is_set()


def test_an_interrupt_that_comes_as_a_section_begins_is_raised_at_its_end(monkeypatch: Any) -> None:
    set_handler = signal.signal

    def interrupted(number: int, handler: Any) -> Any:
        before = set_handler(number, handler)
        if handler is not signal.default_int_handler:
            signal.raise_signal(signal.SIGINT)
        return before

    deferred = _interrupts.DeferredInterrupts()
    monkeypatch.setattr(_interrupts, "_signal", SimpleNamespace(getsignal=signal.getsignal, signal=interrupted))
    assert deferred.defer()
    with pytest.raises(KeyboardInterrupt):
        deferred.deliver()


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
        mini._resolve(ref._h.id, m.Result(m.INLINE, m.Value(*flat("there")), 1))
    assert mobula.get(ref, timeout=PATIENCE) == "there"


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
