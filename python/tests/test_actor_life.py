"""Watches, graceful ends, timers and supervision of Python actors."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any, Iterator

import cbor2
import cloudpickle
import pytest
from waiting import PATIENCE, until

import mobula
from mobula import _runtime
from mobula._client import context, uncounted
from mobula._wire import messages as m
from mobula.exceptions import InvalidError, TaskError

cloudpickle.register_pickle_by_value(sys.modules[__name__])


@pytest.fixture
def node(binary: str) -> Iterator[Any]:
    with mobula.init(num_cpus=4, object_store_memory=64 << 20) as c:
        yield c


class Mortal:
    def __init__(self, path: str = "", fails: bool = False) -> None:
        self.path = path
        self.fails = fails
        self.seen: list[str] = []

    def note(self, what: str) -> str:
        self.seen.append(what)
        return what

    def slow(self, what: str) -> str:
        time.sleep(0.1)
        return self.note(what)

    def all(self) -> list[str]:
        return self.seen

    def die(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def end(self) -> None:
        mobula.stop(mobula.get_runtime_context().current_actor)

    def close(self) -> None:
        if self.path:
            with open(self.path, "a") as f:
                f.write(" ".join([*self.seen, "closed"]))
        if self.fails:
            raise ValueError("disk full")


def test_a_watch_tells_restarts_and_the_end(node: Any) -> None:
    a = mobula.remote(max_restarts=1)(Mortal).remote()
    seen = []
    for e in mobula.watch(a, timeout=PATIENCE):
        if not seen or seen[-1] != (e.state, e.restarts):
            seen.append((e.state, e.restarts))
        if e.state == "alive":
            a.die.remote()
        if e.state == "restarting":
            assert isinstance(e.error, mobula.MobulaError) and not isinstance(e.error, mobula.ActorDiedError)
        if e.state == "dead":
            assert isinstance(e.error, mobula.ActorDiedError)
    assert seen[-4:] == [("alive", 0), ("restarting", 1), ("alive", 1), ("dead", 1)]
    assert [e.state for e in mobula.watch(a)] == ["dead"]  # of one that is dead already
    b = mobula.remote(Mortal).remote()
    mobula.get(b.note.remote("x"))
    with pytest.raises(mobula.GetTimeoutError):
        list(mobula.watch(b, timeout=0.05))


def test_a_watch_does_not_hold_the_actor_and_outlives_the_node(kept: Any) -> None:
    with mobula.init(kept.address):
        a = mobula.remote(max_restarts=-1)(Mortal).remote()
        events = mobula.watch(a, timeout=PATIENCE)
        assert next(e for e in events if e.state == "alive").restarts == 0
        kept.kill()
        kept.start()
        assert next(e for e in events if e.state == "alive").restarts == 1
        del a
        assert [e.state for e in events][-1] == "dead"


def test_stop_lets_calls_run_and_closes(node: Any, tmp_path: Path) -> None:
    path = tmp_path / "n"
    a = mobula.remote(Mortal).remote(str(path))
    refs = [a.slow.remote(str(i)) for i in range(3)]
    mobula.stop(a, timeout=PATIENCE)
    assert path.read_text() == "0 1 2 closed"
    assert mobula.get(refs) == ["0", "1", "2"]
    with pytest.raises(mobula.ActorDiedError):
        mobula.get(a.note.remote("late"))
    mobula.stop(a, timeout=PATIENCE)  # it has ended
    failing = mobula.remote(Mortal).remote("", True)
    mobula.get(failing.note.remote("made"))
    with pytest.raises(TaskError, match="disk full"):
        mobula.stop(failing, timeout=PATIENCE)
    itself = mobula.remote(Mortal).remote()
    mobula.get(itself.end.remote())
    assert [e.state for e in mobula.watch(itself, timeout=PATIENCE)][-1] == "dead"
    with pytest.raises(TypeError):
        mobula.stop("a")  # type: ignore[arg-type]


class Ticker(Mortal):
    def __init__(self, path: str = "", fails: bool = False) -> None:
        super().__init__(path, fails)
        self.timer = mobula.every(0.005, self.tick, "tick")
        mobula.after(0.001, self.note, what="once")

    def tick(self, what: str) -> None:
        self.seen.append(what)
        if len(self.seen) == 3:
            raise ValueError("a tick that fails")

    def quiet(self) -> int:
        self.timer.stop()
        return len(self.seen)


    def going(self) -> int:
        host = _runtime.context(_runtime.client()).host()
        return len(host.timers) if host else -1


class AsyncTicker(Ticker):
    async def tick(self, what: str) -> None:  # type: ignore[override]
        self.seen.append(what)

    async def quiet(self) -> int:  # type: ignore[override]
        self.timer.stop()
        return len(self.seen)


@pytest.mark.parametrize("cls", [Ticker, AsyncTicker])
def test_timers_tick_between_calls_and_do_not_hold_the_actor(node: Any, tmp_path: Path, cls: Any) -> None:
    path = tmp_path / "n"
    a = mobula.remote(cls).remote(str(path))
    until(lambda: len(mobula.get(a.all.remote())) > 10)
    mobula.get(a.quiet.remote())
    seen = mobula.get(a.all.remote())
    assert seen.count("once") == 1 and set(seen) == {"tick", "once"}
    b = mobula.remote(cls).remote(str(path) + "b")
    until(lambda: len(mobula.get(b.all.remote())) > 3)
    del b
    until(lambda: Path(str(path) + "b").exists())
    with pytest.raises(InvalidError):
        mobula.every(1, a.note)


def test_an_actor_forgets_timers_that_have_ended(node: Any) -> None:
    a = mobula.remote(Ticker).remote()
    until(lambda: mobula.get(a.going.remote()) == 1)  # the one that called once is over
    mobula.get(a.quiet.remote())
    until(lambda: mobula.get(a.going.remote()) == 0)


class Boss:
    def __init__(self) -> None:
        self.hand = mobula.remote(escalate=True)(Mortal).remote()

    def hands(self) -> Any:
        return self.hand


def test_a_child_that_dies_fails_its_parent(node: Any) -> None:
    a = mobula.remote(max_restarts=1)(Boss).remote()
    alive = []
    for e in mobula.watch(a, timeout=PATIENCE):
        if e.state == "alive":
            alive.append(e.restarts)
            mobula.get(a.hands.remote()).die.remote()
    assert alive == [0, 1]


@mobula.remote
class Stops:
    async def stops_the_loop(self) -> str:
        asyncio.get_running_loop().stop()
        await asyncio.sleep(0)
        return "went on"

    async def fine(self) -> str:
        return "fine"


def test_a_call_that_stops_the_event_loop_stops_no_other(node: Any) -> None:
    a = Stops.remote()
    assert mobula.get([a.stops_the_loop.remote(), a.fine.remote()], timeout=PATIENCE) == ["went on", "fine"]
    mobula.stop(a, timeout=PATIENCE)
    with pytest.raises(mobula.ActorDiedError):
        mobula.get(a.fine.remote(), timeout=PATIENCE)


# ---- counters of calls


class Counts:
    def __init__(self) -> None:
        self.n = 0

    def next(self) -> int:
        self.n += 1
        return self.n


def test_counters_of_calls_go_with_their_actors(node: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that calls one actor after another has the counters of those that live, and some more. One that is found again by its name is
    counted on."""
    monkeypatch.setattr(context, "FEW_ORDERS", 4)
    monkeypatch.setattr(uncounted, "FEW_ORDERS", 4)
    tc = _runtime.client().root
    monkeypatch.setattr(tc, "few_orders", 4)
    stays = mobula.remote(Counts).options(name="stays", lifetime="detached", num_cpus=0).remote()
    assert mobula.get([stays.next.remote() for _ in range(3)]) == [1, 2, 3]
    named = stays._id()
    del stays
    most = 0
    for _ in range(16):
        a = mobula.remote(Counts).options(num_cpus=0).remote()
        assert mobula.get(a.next.remote()) == 1
        mobula.kill(a)
        del a
        most = max(most, len(tc.orders))
    assert most < 12 and len(tc.orders) < 12, f"at most {most}, and {len(tc.orders)} in the end"
    assert tc.orders[named].seq == 3
    again = mobula.get_actor("stays")
    assert mobula.get([again.next.remote() for _ in range(3)]) == [4, 5, 6] and tc.orders[named].seq == 6
    mobula.kill(again)


def test_a_counter_that_is_used_meanwhile_stays(node: Any) -> None:
    """An answer may be older than the last call. Whoever has a counter already, when it goes, begins anew with the others."""
    tc, sent = _runtime.client().root, []
    ended, called, named = (bytes([i]) * 20 for i in range(3))
    for actor in ended, called, named:
        tc.order(actor).seq = 5

    class Asked:
        def __init__(self) -> None:
            self.requests = self

        def ask(self, question: Any, w: Any) -> None:
            sent.append(w)

    kept = tc.order(ended)
    uncounted.Look(Asked(), tc).ask()  # type: ignore[arg-type]
    tc.order(called).seq += 1
    [w] = sent
    places = {actor: i for i, (actor, _, _) in enumerate(w.counters)}
    w.slot = m.Reply(1, cbor2.dumps({"actors": [places[ended], places[called]]}))
    w.done()
    assert ended not in tc.orders and kept.seq == 0 and tc.order(called).seq == 6 and tc.order(named).seq == 5 and len(sent) == 1
    uncounted.Look(Asked(), tc).ask()  # type: ignore[arg-type]
    sent[1].slot = m.Reply(2, b"", m.Error(24, "busy"))
    sent[1].done()
    assert called in tc.orders and len(sent) == 2
    for actor in called, named:
        del tc.orders[actor]
