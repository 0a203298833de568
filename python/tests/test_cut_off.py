"""Exceptions of signal handlers anywhere in this package's code: the call fails, and nothing else. No message is lost or sent by half, no number left out,
and nothing that was counted stays counted."""

from __future__ import annotations

import gc
import os
import random
import signal
import sys
import threading
from contextlib import contextmanager, suppress
from functools import partial
from types import SimpleNamespace
from typing import Any, Callable, Iterator, Sequence

import numpy as np
import pytest
from helpers_of_client import aside, flat, kinds, settled, unknown
from helpers_of_cuts import CutOff, Stops, cut, places
from mininode import MiniNode
from waiting import PATIENCE, until

import mobula
from mobula import _api, _ids, _refs, _runtime, exceptions
from mobula._client import reader
from mobula._interrupts import interrupts
from mobula._wire import messages as m

Big = np.arange(13_000)  # just too large for a message


def actor() -> Any:
    return _api.ActorHandle(_refs.bound(_runtime.client(), os.urandom(24)), "a", "0", {"m": (1, "")})


def known(mini: MiniNode, value: Any) -> Any:
    """A reference whose value the node has and this process does not. A handler that comes meanwhile can wait for the node: its lock is held in another thread."""
    ref = unknown()
    aside(partial(resolve, mini, ref, value))
    return ref


def resolve(mini: MiniNode, ref: Any, value: Any) -> None:
    with mini.lock:
        mini._resolve(ref._h.id, m.Result(m.INLINE, m.Value(*flat(value)), 1))


def stream(mini: MiniNode) -> Any:
    """The reader of a stream of three items."""
    g = _refs.ObjectRefGenerator(_runtime.client(), os.urandom(20))
    with mini.lock:
        items = {i: m.Result(m.INLINE, m.Value(*flat(i)), 1) for i in range(3)}
        mini.streams[g._task] = items, [3, None], {}
        for i, r in items.items():
            mini._resolve(_ids.return_id(g._task, i), r)
    return g


def read(g: Any) -> list[Any]:
    return [mobula.get(ref) for ref in g]


def buffer() -> Any:
    with mobula.create(50_000, "float64") as b:
        b.array[:] = 1.0
        return mobula.get(b.put()).sum()


# What is cut off, with what it needs first.
OPERATIONS: dict[str, Callable[[MiniNode], Callable[[], Any]]] = {
    "put": lambda mini: lambda: mobula.put([1]),
    "put large": lambda mini: lambda: mobula.put(Big),
    "get": lambda mini: (lambda ref: lambda: mobula.get(ref, timeout=PATIENCE))(known(mini, 1)),
    "get large": lambda mini: (lambda ref: lambda: mobula.get(ref, timeout=PATIENCE))(mobula.put(Big)),
    "get many": lambda mini: (lambda refs: lambda: mobula.get(refs, timeout=PATIENCE))([known(mini, i) for i in range(3)] + [mobula.put(Big), mobula.put(Big)]),
    "wait": lambda mini: (lambda refs: lambda: mobula.wait(refs, num_returns=2, timeout=PATIENCE))([known(mini, i) for i in range(3)]),
    "future": lambda mini: (lambda ref: lambda: ref.future().result(PATIENCE))(known(mini, 1)),
    "ask": lambda mini: lambda: _api.request("echo", 1),
    "stream": lambda mini: (lambda g: lambda: read(g))(stream(mini)),
    "buffer": lambda mini: buffer,
    "drop": lambda mini: (lambda refs: lambda: (refs.clear(), _runtime.client().flush()))([mobula.put(i) for i in range(3)]),
    "cancel": lambda mini: (lambda ref: lambda: mobula.cancel(ref))(unknown()),
}


@pytest.fixture
def discarded(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The finalisers in which CPython has discarded an exception: for each, one reference may stay counted. The exceptions themselves are let go of,
    since their tracebacks keep what was cut off."""
    lost: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda u: lost.append(u.object) if type(u.exc_value) in KINDS else sys.__unraisablehook__(u))
    return lost


@contextmanager
def whole(mini: MiniNode, discarded: Sequence[Any] = ()) -> Iterator[None]:
    """What this process and the node count is the same afterwards as before, and the connection is the same."""
    c = _runtime.client()
    conn = c.conn
    settled()
    handles = set(c.objects.handles)
    yield
    assert conn is not None and c.conn is conn and conn.failed is None
    for _ in range(3):
        gc.collect()
        settled()
    d = mini.driver()
    assert not c.creates._asked and not c.requests._asked
    assert c.requests._free == m.REQUESTS_AT_ONCE and not c.requests._having and not c.requests._line
    with mini.lock:
        assert d.handles == set(c.objects.handles) and {k: n for k, n in d.pins.items() if n} == {k: p.n for k, p in c.objects.pins.items()}
    assert handles <= d.handles
    assert len(d.handles - handles) + len(c.objects.pins) + len(c.streams.read) <= len(discarded)


def rounds(seed: int, f: Callable[[], Any], n: int) -> list[int]:
    """Places to cut f off at: all, or some if there are many."""
    most = places(f)
    assert most > 10  # else nothing is counted: the shortest, a future whose value has come meanwhile, has 20
    return list(range(1, most + 1)) if most <= n else sorted(random.Random(seed).sample(range(1, most + 1), n))


@pytest.mark.parametrize("what", OPERATIONS)
def test_a_call_that_is_cut_off_leaves_nothing_behind(mini: MiniNode, seed: int, discarded: list[Any], what: str) -> None:
    make = OPERATIONS[what]
    make(mini)()
    with whole(mini):
        for at in rounds(seed, make(mini), 150):
            f, stops = make(mini), Stops(cut, [at])
            try:
                stops.run(f)
            except CutOff:
                pass
            except AssertionError:
                raise
            except (mobula.exceptions.MobulaError, StopIteration) as x:
                raise AssertionError(f"cut off at {stops.where}") from x
            assert signal.getsignal(signal.SIGINT) is signal.default_int_handler or mobula.put(1)
            assert mobula.get(known(mini, at), timeout=PATIENCE) == at, stops.where
            del f


def test_a_call_of_an_actor_that_is_cut_off_leaves_no_number_out(mini: MiniNode, seed: int) -> None:
    a = actor()
    a.m.remote(1)
    with whole(mini):
        for at in rounds(seed, lambda: a.m.remote(2), 150):
            with suppress(CutOff):
                Stops(cut, [at]).run(lambda: a.m.remote(3))
            a.m.remote(4)
        settled()
        said = [s.spec.seq for s in kinds(mini, m.Submit)]
        assert said == list(range(1, len(said) + 1))
        with mini.lock:
            mini.waiting.clear()


def test_a_place_among_pending_calls_is_free_again(mini: MiniNode, seed: int) -> None:
    """Of its kind: a place was reserved, and the call that it was for never made."""
    c = _runtime.client()
    a = _api.ActorHandle(_refs.bound(c, os.urandom(24)), "a", "0", {"m": (1, "")}, 2)
    method = a.m.options(wait_for_room=True)

    def serve() -> None:
        settled()
        with mini.lock:
            for s in mini.driver().got:
                if isinstance(s, m.Submit):
                    mini._resolve(_ids.return_id(s.spec.id, 0), m.Result(m.INLINE, m.Value(*flat(1)), 1))

    method.remote(1)
    serve()
    for at in rounds(seed, lambda: method.remote(1), 100):
        serve()
        with suppress(CutOff):
            Stops(cut, [at]).run(lambda: method.remote(1))
        serve()
        ref = method.remote(2)
        serve()
        assert mobula.get(ref, timeout=PATIENCE) == 1
    gc.collect()
    assert a._pending_calls.inside == len(a._pending_calls._calls) <= 2


# What handlers raise. The package itself raises and handles the others, too.
KINDS: list[type[BaseException]] = [CutOff, TimeoutError, BrokenPipeError, BlockingIOError, ValueError, exceptions.GetTimeoutError, exceptions.ProtocolError]


@pytest.mark.parametrize("kind", KINDS)
def test_a_frame_that_was_begun_is_written_to_its_end(mini: MiniNode, kind: type[BaseException]) -> None:
    """The node reads nothing, so that the program waits in the midst of a frame; a signal cuts that off, and more than once."""
    c = _runtime.client()
    conn, came = c.conn, []
    assert conn is not None

    def limit(*_: Any) -> None:
        raise kind("the limit")

    before = signal.signal(signal.SIGALRM, limit)
    try:
        with mini.lock:  # the node's thread takes one message and waits for this lock
            for _ in range(3):
                signal.setitimer(signal.ITIMER_REAL, 0.01)
                with pytest.raises(kind, match="the limit"):
                    while True:
                        came.append(mobula.put(os.urandom(90_000)))
                        c.flush()
            assert conn.frame is not None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    until(lambda: conn.frame is None)
    _api.request("echo", 1)
    put = [p.id for p in kinds(mini, m.PutValue)]
    assert c.conn is conn and len(set(put)) == len(put)
    assert [id for id in put if id in {r._h.id for r in came}] == [r._h.id for r in came]  # those that were cut off may have been put, too


@pytest.mark.parametrize("kind", KINDS)
def test_limits_of_time_by_sigalrm(mini: MiniNode, seed: int, discarded: list[Any], kind: type[BaseException]) -> None:
    """Calls under a limit of time, as programs set them, until a hundred were cut off."""
    with whole(mini, discarded):
        storm(mini, seed, kind, 100, 0.0002, 0.005)


def storm(mini: MiniNode, seed: int, kind: type[BaseException], n: int, shortest: float, longest: float) -> None:
    rand, refs, cuts, i = random.Random(seed), [mobula.put(i) for i in range(10)], 0, 0
    # Not those that wait in a Future of concurrent.futures: one that is cut off may let go of its lock twice, in CPython's own code.
    makes = [make for what, make in OPERATIONS.items() if what not in ("drop", "future")]

    def limit(*_: Any) -> None:
        raise kind("the limit")

    before = signal.signal(signal.SIGALRM, limit)
    try:
        while cuts < n:
            i += 1
            mini.used = 64  # the stub uses memory once: nothing here looks at what is in it
            f = rand.choice(makes)(mini)
            try:
                signal.setitimer(signal.ITIMER_REAL, rand.uniform(shortest, longest))
                try:
                    for _ in range(5):
                        f()
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)
            except kind as x:
                if "the limit" not in str(x):
                    raise
                cuts += 1
            del f
            assert mobula.get(refs) == list(range(10)), i
    finally:
        signal.signal(signal.SIGALRM, before)


def test_an_exception_of_another_thread_cuts_off_a_message_only_for_a_while(mini: MiniNode, seed: int, discarded: list[Any]) -> None:
    """Of its kind: PyThreadState_SetAsyncExc reaches any thread anywhere, also as it handles a message."""
    import ctypes

    raised, done, cuts = threading.Event(), threading.Event(), []
    rand = random.Random(seed)
    refs: list[Any] = []

    def reads() -> None:
        for i, ref in enumerate(refs):
            while True:
                try:
                    assert mobula.get(ref, timeout=PATIENCE) == i
                    break
                except CutOff:
                    cuts.append(i)
                    raised.set()
        while not done.is_set():
            try:
                done.wait()
            except CutOff:
                pass

    t = threading.Thread(target=reads)
    with whole(mini, discarded):
        refs += [known(mini, i) for i in range(400)]
        t.start()
        for _ in range(200):
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(t.ident or 0), ctypes.py_object(CutOff))
            raised.wait(rand.uniform(0, 0.005))
            raised.clear()
        done.set()
        t.join(PATIENCE)
        refs.clear()
    assert cuts


def test_a_handler_may_use_the_package(mini: MiniNode, seed: int) -> None:
    """Of its kind: a handler that raises nothing, and puts, gets, calls and logs, wherever the program is."""
    rand, a, got = random.Random(seed), actor(), []
    slow = known(mini, "slow")

    def handler(*_: Any) -> None:
        got.append(mobula.get([mobula.put(len(got)), known(mini, "it")], timeout=PATIENCE))
        a.m.remote(len(got))
        mobula.get(mobula.put(Big), timeout=PATIENCE)

    before = signal.signal(signal.SIGALRM, handler)
    try:
        for _ in range(200):
            signal.setitimer(signal.ITIMER_REAL, rand.uniform(0.0002, 0.003))
            a.m.remote(0)
            assert mobula.get([known(mini, 1), mobula.put(2)], timeout=PATIENCE) == [1, 2]
            mobula.put(Big)
            mini.used = 64
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert got and mobula.get(slow) == "slow"
    settled()
    said = [s.spec.seq for s in kinds(mini, m.Submit)]
    assert sorted(said) == list(range(1, len(said) + 1))


def test_what_a_handler_has_read_is_not_waited_for(mini: MiniNode, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of its kind: the answer came while a handler waited for another one, and the sleep that the handler had come into went on."""
    monkeypatch.setattr(reader, "_LOOK", PATIENCE)  # when a thread looks for itself
    conn, slept = _runtime.client().conn, []
    assert conn is not None
    poll = conn._poll_over.poll

    @interrupts.allowed
    def sleep(timeout: float) -> Any:
        events = poll(timeout)
        if not events:
            slept.append(timeout)
        return events

    monkeypatch.setattr(conn, "_poll_over", SimpleNamespace(poll=sleep))
    ref = known(mini, 0)
    most = places(lambda: mobula.get(ref))

    def handler(*_: Any) -> None:
        make()
        _api.request("echo", None)  # is answered after that

    before = signal.signal(signal.SIGALRM, handler)
    try:
        for at in sorted(random.Random(seed).sample(range(1, most), min(most - 1, 150))):
            ref = unknown()
            make = partial(aside, partial(resolve, mini, ref, at))
            stops = Stops(lambda: os.kill(os.getpid(), signal.SIGALRM), [at])
            t = threading.Timer(0.02, make)  # where the get waits before it comes to that place
            t.start()
            assert stops.run(lambda: mobula.get(ref, timeout=PATIENCE)) == at
            t.cancel()
            assert not slept, stops.where
        for i in range(10):  # as it sleeps
            ref = unknown()
            make = partial(aside, partial(resolve, mini, ref, i))
            signal.setitimer(signal.ITIMER_REAL, 0.01)
            assert mobula.get(ref, timeout=PATIENCE) == i and not slept
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_a_limit_keeps_its_type_while_memory_is_reserved(mini: MiniNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """TimeoutError is an OSError, as are the errors of system calls."""

    def limit(*_: Any) -> None:
        raise TimeoutError("the limit")

    monkeypatch.setattr(os, "posix_fallocate", limit)
    with pytest.raises(TimeoutError, match="^the limit$"):
        mobula.create(1000)
