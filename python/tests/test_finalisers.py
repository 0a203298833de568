"""Finalisers that use this package wherever the collector runs them: in the midst of a call, of a write, of a message. They never wait for their own thread,
and calls of an actor keep their numbers."""

from __future__ import annotations

import ast
import gc
import os
import random
import threading
import weakref
from pathlib import Path
from typing import Any, Callable

import pytest
from helpers_of_client import flat, kinds, settled, unknown
from helpers_of_cuts import Stops, places
from mininode import MiniNode
from test_cut_off import OPERATIONS, Big, actor, known
from waiting import PATIENCE, until

import mobula
from mobula import _api, _refs, _runtime
from mobula._wire import messages as m


def numbers(mini: MiniNode) -> list[int]:
    settled()
    return [s.spec.seq for s in kinds(mini, m.Submit) if s.spec.seq]


# What finalisers do. Each returns a function that is called in the midst of another call.
FINALISERS: dict[str, Callable[[MiniNode, Any], Callable[[], Any]]] = {
    "call": lambda mini, a: lambda: a.m.remote("end"),
    "put": lambda mini, a: lambda: mobula.put("end"),
    "put large": lambda mini, a: lambda: mobula.put(Big),
    "get": lambda mini, a: (lambda ref: lambda: mobula.get(ref))(mobula.put("ready")),
    "wait for another": lambda mini, a: (lambda refs: lambda: mobula.get(refs.pop(), timeout=PATIENCE))([known(mini, i) for i in range(500)]),
    "kill": lambda mini, a: lambda: mobula.kill(a),
    "drop": lambda mini, a: (lambda refs: lambda: refs.pop())([mobula.put(i) for i in range(500)]),
}


@pytest.mark.parametrize("end", FINALISERS)
@pytest.mark.parametrize("what", ["put", "put large", "get", "get many", "future", "ask", "stream", "call"])
def test_a_finaliser_in_the_midst_of_a_call(mini: MiniNode, seed: int, what: str, end: str) -> None:
    a, c = actor(), _runtime.client()
    conn, finaliser, inside = c.conn, FINALISERS[end](mini, a), []
    make = (lambda mini: lambda: a.m.remote(1)) if what == "call" else OPERATIONS[what]
    make(mini)()

    def finalise() -> None:
        if inside:  # the collector does not run in itself
            return
        inside.append(True)
        try:
            finaliser()
        finally:
            inside.clear()

    most = places(make(mini), True)
    for at in sorted(random.Random(seed).sample(range(1, most + 1), min(most, 12))):
        mini.used = 64
        stops = Stops(finalise, [at], True)
        stops.run(make(mini))
        assert mobula.get(known(mini, at), timeout=PATIENCE) == at, stops.where
    assert c.conn is conn and conn is not None and conn.failed is None
    said = numbers(mini)
    assert sorted(said) == list(range(1, len(said) + 1))


class Cycle:
    """Garbage that only the collector finds."""

    def __init__(self, f: Callable[[], Any]) -> None:
        self.me = self
        self.f = f

    def __del__(self) -> None:
        self.f()


@pytest.fixture
def often() -> Any:
    """The collector runs at nearly every container that is made."""
    before = gc.get_threshold()
    gc.set_threshold(3)
    yield
    gc.set_threshold(*before)


def test_many_threads_whose_garbage_calls(mini: MiniNode, often: Any) -> None:
    a, shared = actor(), mobula.put("shared")
    ends = [lambda: a.m.remote("end"), lambda: mobula.put("end"), lambda: mobula.get(shared), lambda: mobula.kill(a),
            lambda: mobula.get(known(mini, 1), timeout=PATIENCE), lambda: mobula.put(Big)]
    failed: list[BaseException] = []

    def works(n: int) -> None:
        try:
            for i in range(60):
                Cycle(ends[(i + n) % len(ends)])
                mini.used = 64
                a.m.remote(i)
                assert mobula.get([mobula.put(i), known(mini, n)], timeout=PATIENCE) == [i, n]
                mobula.put(Big)
        except BaseException as x:
            failed.append(x)

    threads = [threading.Thread(target=works, args=(n,)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(PATIENCE)
    assert not failed and not any(t.is_alive() for t in threads)
    said = numbers(mini)
    assert sorted(said) == list(range(1, len(said) + 1)) and len(said) >= 240


def test_the_garbage_of_callbacks_of_weak_references(mini: MiniNode, often: Any) -> None:
    a, got = actor(), []
    for i in range(100):
        garbage = Cycle(lambda: None)
        weakref.finalize(garbage, lambda i=i: got.append((i, a.m.remote(i), mobula.put(i))))
        del garbage
        mobula.put(i)
    until(lambda: gc.collect() >= 0 and len(got) == 100)  # the collector may be at work in another thread
    assert {i for i, *_ in got} == set(range(100))
    said = numbers(mini)
    assert sorted(said) == list(range(1, 101))


def test_garbage_of_an_actor_with_few_pending_calls(mini: MiniNode, seed: int) -> None:
    """Of its kind: such an actor's calls had a lock and a condition."""
    a = _api.ActorHandle(_refs.bound(_runtime.client(), os.urandom(24)), "a", "0", {"m": (1, "")}, 10_000)
    call = lambda: a.m.remote(1)  # noqa: E731
    call()
    for at in range(1, places(call, True) + 1, 3):
        Stops(call, [at], True).run(call)
    said = numbers(mini)
    assert sorted(said) == list(range(1, len(said) + 1))


def test_what_waits_in_the_midst_of_a_message_gives_up_the_locks(mini: MiniNode) -> None:
    """A finaliser that waits, in a thread that has the client's lock, for what another thread brings, which needs that lock."""
    c, ref, got = _runtime.client(), unknown(), []

    def brings() -> None:
        with c.lock:
            pass
        with mini.lock:
            mini._resolve(ref._h.id, m.Result(m.INLINE, m.Value(*flat("it")), 1))

    t = threading.Thread(target=brings)
    with c.lock:
        conn = c.conn
        assert conn is not None
        with conn.writing:
            t.start()
            got.append(mobula.get(ref, timeout=PATIENCE))
            assert c.lock._is_owned() and conn.writing._is_owned()  # type: ignore[attr-defined]
    t.join(PATIENCE)
    assert got == ["it"]


# ---- the list of locks

# Every lock of the package, and what it may meet. A lock that is not here has to be thought about first: a finaliser or a handler may run while
# this thread holds it.
LOCKS = {
    ("_client/client.py", "RLock", "lock"): "whole wherever other code runs; given up by who waits (Reader._give_up); nobody writes with it held (Client.flush)",
    ("_wire/conn.py", "RLock", "writing"): "what was sent is recorded as it is sent, so that writing may begin in the midst of writing; given up by who waits",
    ("_wire/conn.py", "RLock", "_waking"): "held to write to an eventfd or to close it, which finalisers do too; nothing waits with it held",
    ("_client/waiter.py", "Lock", "lock"): "what one thread sleeps on: only it acquires it, and release does not wait",
    ("_segment.py", "RLock", "_lock"): "the table of mapped files; nothing waits with it held",
    ("_functions.py", "RLock", "_lock"): "the pickle of one function; a nested call finds it half done and does it again, with the same result",
    ("_functions.py", "RLock", "_counting"): "how many files of functions there are; a nested call may have its file counted twice, until the next count",
    ("_executor.py", "RLock", "_lock"): "in a worker: the initializer of a process, which a task runs once; a task runs in no other",
    ("_api/connecting.py", "RLock", "_starting"): "init and shutdown; a nested call sees the connection or makes it",
    ("distributed/_client.py", "RLock", "_connecting"): "the first connection of a client",
    ("distributed/_client.py", "RLock", "_making"): "one call for one key",
    ("distributed/_client.py", "RLock", "_calling"): "the callbacks still to come",
    ("distributed/_client.py", "RLock", "_default_lock"): "the default client",
    ("_api/lifecycle.py", "Event", "_ended"): "of an actor's timer: its own thread alone waits for it",
    ("util/_memory_sampler.py", "Event", "over"): "the sampler's own thread alone waits for it",
    ("util/queue.py", "Event", "_served"): "of asyncio: for one thread",
    ("_worker/loop.py", "Semaphore", "_limits"): "of asyncio: for one thread",
}
_KINDS = {"Lock", "RLock", "Condition", "Semaphore", "BoundedSemaphore", "Event", "Barrier", "Queue", "LifoQueue", "PriorityQueue"}


def locks() -> set[tuple[str, str, str]]:
    root, found = Path(mobula.__file__).parent, set()
    for path in root.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
                target = node.targets[0] if isinstance(node, ast.Assign) else node.target
                name = target.attr if isinstance(target, ast.Attribute) else target.id if isinstance(target, ast.Name) else ""
                for call in ast.walk(node.value):
                    f = call.func if isinstance(call, ast.Call) else None
                    if isinstance(f, ast.Attribute) and isinstance(f.value, ast.Name) and f.value.id in ("threading", "asyncio", "queue", "multiprocessing") \
                            and f.attr in _KINDS:
                        found.add((path.relative_to(root).as_posix(), f.attr, name))
    return found


def test_every_lock_is_one_that_was_thought_about() -> None:
    assert locks() == LOCKS.keys()
