"""Failures of tasks and actors on the real node: retries, restarts, cancellation."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import time
from typing import Any

import cloudpickle
import pytest
from cluster import cluster, dir, free, get, node, objects, until  # noqa: F401
from notes import Keeper, hold, note, noted, size, stay
from waiting import PATIENCE

import mobula
from mobula import exceptions as x

cloudpickle.register_pickle_by_value(sys.modules[__name__])


def within(dir: str, name: str) -> str:
    """A directory in it."""
    path = os.path.join(dir, name)
    os.mkdir(path)
    return path


# ---- C11: retries


@mobula.remote
def dies(dir: str, times: int) -> int:
    """Brings its process down, so many times; gives which attempt it is."""
    note(dir, "tries", "x")
    if size(dir, "tries") <= times:
        os.kill(os.getpid(), signal.SIGKILL)
    return size(dir, "tries")


@mobula.remote
def fails(dir: str, times: int) -> int:
    note(dir, "tries", "x")
    if size(dir, "tries") <= times:
        raise ValueError(size(dir, "tries"))
    return size(dir, "tries")


def test_c11_a_task_that_stops_killing_its_worker_succeeds(node: Any, dir: str) -> None:
    assert get(dies.remote(dir, 3)) == 4  # three retries are the default


def test_c11_a_task_that_does_not_is_given_up(node: Any, dir: str) -> None:
    cases: list[tuple[dict[str, Any], int]] = [({}, 4), ({"max_retries": 1}, 2), ({"max_retries": 0}, 1)]
    for options, attempts in cases:
        place = within(dir, str(attempts))
        with pytest.raises(x.WorkerCrashedError, match=f"attempt {attempts} died.*{attempts - 1} retries none is left"):
            get(dies.options(**options).remote(place, 1000))
        assert size(place, "tries") == attempts
    until(lambda: free() == 4)


def test_c11_an_exception_is_tried_again_only_if_asked(node: Any, dir: str) -> None:
    cases: list[tuple[dict[str, Any], int]] = [({}, 1), ({"retry_exceptions": True}, 4), ({"retry_exceptions": True, "max_retries": 1}, 2)]
    for options, attempts in cases:
        place = within(dir, str(attempts))
        with pytest.raises(ValueError, match=str(attempts)):
            get(fails.options(**options).remote(place, 1000))
        assert size(place, "tries") == attempts
    assert get(fails.options(retry_exceptions=True).remote(within(dir, "once"), 1)) == 2


def test_c11_only_exceptions_of_these_types_are_tried_again(node: Any, dir: str) -> None:
    class Ours(LookupError):
        pass

    @mobula.remote
    def changing(dir: str) -> int:
        note(dir, "tries", "x")
        raise Ours("again") if size(dir, "tries") < 3 else ZeroDivisionError("never again")

    for i, (types, attempts) in enumerate([([Ours], 3), ((OSError, LookupError), 3), ([ZeroDivisionError], 1), ([Exception], 4), ([], 1)]):
        place = within(dir, str(i))
        with pytest.raises(Ours if attempts == 1 else ZeroDivisionError):
            get(changing.options(retry_exceptions=types).remote(place))
        assert size(place, "tries") == attempts

    for wrong in (3, [3], [Ours("x")], Ours, [KeyboardInterrupt]):
        with pytest.raises(x.InvalidError, match="retry_exceptions=.*list of exceptions' types"):
            fails.options(retry_exceptions=wrong)
    with pytest.raises(x.InvalidError, match="errors of Go"):
        mobula.go_function("f", retry_exceptions=[Ours])


# ---- a driver that does not read


STOPPED = """
import os, signal, sys
import mobula

@mobula.remote
def large(i, path):
    with open(path, "a") as f:
        f.write("x")
    return bytes([i % 256]) * 95_000

with mobula.init(sys.argv[1]):
    refs = [large.remote(i, sys.argv[2]) for i in range(1000)]
    mobula.wait(refs, num_returns=len(refs), timeout=0.01)  # from now on the node sends each as it comes
    os.kill(os.getpid(), signal.SIGSTOP)
    assert mobula.get(refs) == [bytes([i % 256]) * 95_000 for i in range(1000)]
    assert mobula.get(large.remote(7, sys.argv[2]))[0] == 7
print("all there")
"""


def test_a_driver_that_is_stopped_loses_nothing(node: Any, dir: str) -> None:
    """95 MB wait for a process that reads nothing: more than a socket takes, and than is encoded ahead."""
    with subprocess.Popen([sys.executable, "-c", STOPPED, node.address, f"{dir}/made"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as driver:
        try:
            until(lambda: os.waitid(os.P_PID, driver.pid, os.WSTOPPED | os.WNOWAIT | os.WNOHANG))
            until(lambda: size(dir, "made") == 1000)
            until(lambda: free() == 4)
        finally:
            driver.send_signal(signal.SIGCONT)
        out, err = driver.communicate(timeout=PATIENCE)
    assert (out, driver.returncode) == ("all there\n", 0), err


# ---- C12, C14: the ends of actors


@mobula.remote
class Phoenix:
    """From its second life on it begins when it is told to."""

    def __init__(self, dir: str) -> None:
        note(dir, "lives", "x")
        life = size(dir, "lives")
        if life > 1:
            stay(dir, f"life{life}")
        self.n = 0

    def inc(self) -> int:
        self.n += 1
        return self.n

    def die(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


def test_c12_calls_during_a_restart_are_told_so(node: Any, dir: str) -> None:
    a = Phoenix.options(max_restarts=2).remote(dir)
    assert get([a.inc.remote() for _ in range(2)]) == [1, 2]

    def back() -> int:
        try:
            return int(get(a.inc.remote()))
        except x.ActorUnavailableError:
            return 0

    for life in (2, 3):
        with pytest.raises(x.ActorUnavailableError):
            get(a.die.remote())
        until(lambda: f"life{life}" in noted(dir, "began"))
        with pytest.raises(x.ActorUnavailableError, match="restarting; the call may be made again"):
            get(a.inc.remote())
        note(dir, f"life{life}.go")
        assert until(back) == 1  # with nothing of what it was
    for call in (a.die, a.inc):
        with pytest.raises(x.ActorDiedError):
            get(call.remote())
    assert size(dir, "lives") == 3


def test_an_actors_error_says_one_thing(node: Any, dir: str) -> None:
    """That it restarts, or that it is dead: neither the error nor its causes are another's."""
    def tree(e: x.MobulaError) -> list[x.MobulaError]:
        return [e] + [d for c in e.causes for d in tree(c)]

    for again, want in ((1, x.ActorUnavailableError), (0, x.ActorDiedError)):
        a = Phoenix.options(max_restarts=again).remote(within(dir, str(again)))
        with pytest.raises(want) as crash:
            get(a.die.remote())
        assert {type(e) for e in tree(crash.value)} == {want}
        assert "signal" in str(crash.value)  # how its process ended


def test_c14_kill_ends_an_actor_and_its_calls(node: Any, dir: str) -> None:
    a = Keeper.options(name="keeper").remote()
    pid = get(a.pid.remote())
    running = a.stay.remote(dir, "running")
    until(lambda: noted(dir, "began"))
    assert mobula.get_actor("keeper") == a
    blocked = a.stay.remote(dir, hold.remote(dir, "argument"))
    queued = a.stay.remote(dir, "queued")
    mobula.kill(a)
    for r in (running, blocked, queued, a.stay.remote(dir, "late")):
        with pytest.raises(x.ActorDiedError):
            get(r)

    def found() -> bool:
        try:
            return mobula.get_actor("keeper") is not None
        except x.NotFoundError:
            return False

    until(lambda: not found())
    until(lambda: not os.path.exists(f"/proc/{pid}"))
    assert noted(dir, "began") <= {"running", "argument"}
    again = Keeper.options(name="keeper").remote()
    note(dir, "go")
    assert get(again.stay.remote(dir, "again")) == "again"


# ---- C13: cancellation


@mobula.remote
def naps(dir: str) -> None:
    """Says that it was interrupted: in the middle of one long call of the system."""
    note(dir, "nap.began")
    try:
        time.sleep(3600)
    except BaseException:
        note(dir, "nap.cancelled")
        raise


def test_c13_what_is_queued_never_starts(node: Any, dir: str) -> None:
    running = [hold.remote(dir, f"r{i}") for i in range(4)]
    until(lambda: len(noted(dir, "began")) == 4)
    after = hold.remote(dir, mobula.remote(lambda name: name + "+").remote(running[0]))
    for r in (hold.remote(dir, "queued"), after):
        mobula.cancel(r)
        with pytest.raises(x.TaskCancelledError):
            get(r)
    note(dir, "go")
    assert get([*running, hold.remote(dir, "next")]) == ["r0", "r1", "r2", "r3", "next"]
    assert noted(dir, "began") == {"r0", "r1", "r2", "r3", "next"} and not noted(dir, "cancelled")


def test_c13_what_runs_is_interrupted_where_it_is(node: Any, dir: str) -> None:
    ref = naps.remote(dir)
    until(lambda: noted(dir, "began"))
    mobula.cancel(ref)
    with pytest.raises(x.TaskCancelledError):
        get(ref)
    assert noted(dir, "cancelled") == {"nap"}


def test_c13_force_ends_the_process(node: Any, dir: str) -> None:
    @mobula.remote
    def stubborn(dir: str) -> None:
        note(dir, f"{os.getpid()}.began")
        while True:
            try:
                time.sleep(3600)
            except BaseException:
                note(dir, "heard.cancelled")

    ref = stubborn.remote(dir)
    [pid] = until(lambda: noted(dir, "began"))
    mobula.cancel(ref)
    until(lambda: noted(dir, "cancelled"))
    assert os.path.exists(f"/proc/{pid}")
    mobula.cancel(ref, force=True)
    with pytest.raises(x.TaskCancelledError):
        get(ref)
    until(lambda: not os.path.exists(f"/proc/{pid}"))
    until(lambda: free() == 4)


def test_c13_what_is_interrupted_has_time_to_tidy_up(node: Any, dir: str) -> None:
    @mobula.remote
    def tidies() -> None:
        try:
            stay(dir, "task")
        finally:
            for i in range(10):
                time.sleep(0.03)
                note(dir, f"{i}.tidied")

    ref = tidies.remote()
    until(lambda: noted(dir, "began"))
    mobula.cancel(ref)
    with pytest.raises(x.TaskCancelledError):
        get(ref)
    assert len(noted(dir, "tidied")) == 10


@mobula.remote
def family(dir: str, generations: int) -> Any:
    if generations == 0:
        return stay(dir, "youngest")
    child = family.remote(dir, generations - 1)
    return mobula.get(child)


def test_c13_children_are_cancelled_too_or_left(node: Any, dir: str) -> None:
    for recursive in (True, False):
        place = within(dir, str(recursive))
        eldest = family.remote(place, 2)
        until(lambda: noted(place, "began"))
        mobula.cancel(eldest, recursive=recursive)
        with pytest.raises(x.TaskCancelledError):
            get(eldest)
        if recursive:
            until(lambda: noted(place, "cancelled"))
        else:
            note(place, "go")
            until(lambda: noted(place, "ended"))
        assert bool(noted(place, "cancelled")) == recursive
        until(lambda: free() == 4)


@mobula.remote
class Uncollected:
    """Whose process leaves cycles be."""

    def __init__(self) -> None:
        gc.disable()

    def get(self, dir: str) -> Any:
        note(dir, "waits.began")
        return mobula.get(hold.remote(dir, "child"))


def test_c13_what_a_cancelled_call_waited_for_goes_with_it(node: Any, dir: str) -> None:
    gc.collect()  # errors that tests before kept, and what the frames in their tracebacks hold
    actor = Uncollected.remote()
    call = actor.get.remote(dir)
    until(lambda: noted(dir, "began") == {"waits", "child"})
    mobula.cancel(call)
    with pytest.raises(x.TaskCancelledError):
        get(call)
    del call
    until(lambda: len(objects()) == 1)  # the actor: no frame of the call holds the child


@mobula.remote
class Mirror:
    def end(self) -> int:
        return 7

    def own(self, a: Any, timeout: Any = None) -> int:
        return int(mobula.get(a.end.remote(), timeout=timeout))


def test_an_actor_that_waits_for_itself_is_told(node: Any) -> None:
    a, b = Mirror.remote(), Mirror.options(max_concurrency=2).remote()
    with pytest.raises(x.DeadlockError, match="waits for itself"):
        get(a.own.remote(a))
    with pytest.raises(x.GetTimeoutError):
        get(a.own.remote(a, 0.2))  # that would have ended by itself
    assert get([a.own.remote(b), b.own.remote(b), a.end.remote()]) == [7, 7, 7]
