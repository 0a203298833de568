"""The promises of tasks and actors on the real node: the table of capabilities from C1 on, without faults."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from typing import Any, Iterator

import cloudpickle
import numpy as np
import pytest
from cluster import STORE, cluster, dir, free, get, node, objects, until  # noqa: F401
from notes import Keeper, hold, note, noted, size, stay
from waiting import PATIENCE

import mobula
from mobula import _api
from mobula import exceptions as x

cloudpickle.register_pickle_by_value(sys.modules[__name__])


# ---- C1, C3: tasks, get and wait


def test_c1_a_call_does_not_wait_for_its_task(node: Any, dir: str) -> None:
    refs = [hold.remote(dir, str(i)) for i in range(21)]
    assert not noted(dir, "ended")
    for r in refs[1:]:
        mobula.cancel(r)
    note(dir, "0.go")
    assert get(refs[0]) == "0"


def test_c3_wait_and_get_with_a_timeout(node: Any, dir: str) -> None:
    refs = [hold.options(num_cpus=0.25).remote(dir, str(i)) for i in range(10)]
    begun = time.monotonic()
    assert mobula.wait(refs, timeout=0.05) == ([], refs)
    assert time.monotonic() - begun >= 0.05
    note(dir, "7.go")
    assert mobula.wait(refs, timeout=PATIENCE) == ([refs[7]], refs[:7] + refs[8:])
    note(dir, "2.go")
    note(dir, "5.go")
    ready, rest = mobula.wait(refs, num_returns=3, timeout=PATIENCE)
    assert ready == [refs[2], refs[5], refs[7]] and len(rest) == 7 and not set(ready) & set(rest)
    ready, rest = mobula.wait(refs, num_returns=10, timeout=0.05)
    assert len(ready) == 3 and len(rest) == 7
    assert len(mobula.wait(refs, num_returns=2, timeout=0)[0]) == 2  # no more than were asked for
    with pytest.raises(TimeoutError, match="stay valid") as e:
        mobula.get(refs, timeout=0.05)
    assert isinstance(e.value, x.GetTimeoutError)
    note(dir, "go")
    assert get(refs) == [str(i) for i in range(10)]
    assert mobula.wait(refs, num_returns=10, timeout=0) == (refs, [])


# ---- C6: calls of an actor at once


@mobula.remote
class Meeting:
    """Its calls go on when n are there."""

    def __init__(self, n: int) -> None:
        self.room = threading.Barrier(n)
        self.lock = threading.Lock()
        self.now = self.most = 0

    def meet(self) -> int:
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
        self.room.wait(PATIENCE)
        with self.lock:
            self.now -= 1
            return self.most

    @mobula.method(concurrency_group="io")
    def meet_there(self) -> int:
        most: int = type(self).meet(self)
        return most

    def stay(self, dir: str, name: str) -> str:
        return stay(dir, name)


def test_c6_calls_overlap_up_to_the_limit(node: Any) -> None:
    a = Meeting.options(max_concurrency=4).remote(4)
    assert max(get([a.meet.remote() for _ in range(12)])) == 4


def test_c6_groups_have_limits_of_their_own(node: Any, dir: str) -> None:
    a = Meeting.options(concurrency_groups={"io": 2, "one": 1}).remote(2)
    first, second = a.stay.remote(dir, "first"), a.stay.remote(dir, "second")
    assert max(get([a.meet_there.remote() for _ in range(6)])) == 2
    assert max(get([a.meet.options(concurrency_group="io").remote() for _ in range(4)])) == 2
    note(dir, "third.go")
    assert get(a.stay.options(concurrency_group="one").remote(dir, "third")) == "third"
    until(lambda: "first" in noted(dir, "began"))
    assert noted(dir, "began") == {"first", "third"}  # those of no group run one after the other
    with pytest.raises(x.InvalidError, match="group"):
        get(a.stay.options(concurrency_group="none").remote(dir, "fourth"))
    note(dir, "go")
    assert get([first, second]) == ["first", "second"]


@mobula.remote(max_concurrency=4, concurrency_groups={"io": 2})
class Coroutines:
    def __init__(self) -> None:
        self.come = self.now = self.most = 0

    async def meet(self, n: int) -> int:
        mine, self.come = self.come, self.come + 1
        self.now += 1
        self.most = max(self.most, self.now)
        while self.come < (mine // n + 1) * n:
            await asyncio.sleep(0.001)
        self.now -= 1
        return self.most

    @mobula.method(concurrency_group="io")
    async def meet_there(self, n: int) -> int:
        most: int = await type(self).meet(self, n)
        return most


def test_c6_coroutines_too(node: Any) -> None:
    for method, n in (("meet", 4), ("meet_there", 2)):
        a = Coroutines.remote()
        assert max(get([getattr(a, method).remote(n) for _ in range(3 * n)])) == n


def test_c6_calls_beyond_what_may_be_pending_are_refused(node: Any, dir: str) -> None:
    a = Keeper.options(max_pending_calls=2).remote()
    accepted = [a.stay.remote(dir, n) for n in "ab"]
    for n in "cd":
        with pytest.raises(x.PendingCallsLimitError, match="2 calls pending, its limit is 2"):
            a.stay.remote(dir, n)  # the call itself, not its result

    @mobula.remote
    def of_another_process() -> str:
        try:
            return str(get(a.stay.remote(dir, "x")))
        except x.PendingCallsLimitError:
            return "refused"

    assert get(of_another_process.remote()) == "refused"  # by the node, which counts all
    note(dir, "go")
    assert get(accepted) == ["a", "b"]
    assert get(a.stay.remote(dir, "e")) == "e"
    assert noted(dir, "began") == {"a", "b", "e"}


def test_c6_calls_wait_for_room(node: Any, dir: str) -> None:
    a = Keeper.options(max_pending_calls=2).remote()
    stay = a.stay.options(wait_for_room=True)
    held = [stay.remote(dir, n) for n in "ab"]
    made: list[Any] = []
    more = [threading.Thread(target=lambda n=n: made.append(stay.remote(dir, n))) for n in "cdef"]
    for t in more:
        t.start()
    with pytest.raises(x.PendingCallsLimitError):
        a.stay.remote(dir, "x")
    assert not made
    note(dir, "go")
    for t in more:
        t.join(PATIENCE)
    assert sorted(get(held + made)) == list("abcdef")
    for _ in range(50):  # results that nobody keeps make room too
        stay.remote(dir, "dropped")
    assert get([stay.remote(dir, str(n)) for n in range(50)]) == [str(n) for n in range(50)]


def test_c6_calls_without_a_result_have_their_places(node: Any, dir: str) -> None:
    a = Keeper.options(max_pending_calls=2).remote()
    tell = a.stay.options(num_returns=0)
    assert tell.remote(dir, "a") is None
    stream = a.stay_and_yield.remote(dir, "b")
    for call in tell, a.stay, a.stay_and_yield:
        with pytest.raises(x.PendingCallsLimitError):
            call.remote(dir, "x")
    made: list[str] = []
    waiting = tell.options(wait_for_room=True)
    more = [threading.Thread(target=lambda n=n: made.append(n if waiting.remote(dir, n) is None else "")) for n in "cdef"]
    for t in more:
        t.start()
    assert not made
    note(dir, "go")
    for t in more:
        t.join(PATIENCE)
    assert sorted(made) == list("cdef") and [get(ref) for ref in stream] == ["b"]
    for n in range(50):
        waiting.remote(dir, str(n))
    assert get(a.stay.options(wait_for_room=True).remote(dir, "last")) == "last"
    assert noted(dir, "began") == {*"abcdef", "last", *map(str, range(50))}  # none was lost


def test_c6_who_finds_an_actor_knows_its_limit(node: Any, dir: str) -> None:
    limited = Keeper.options(max_pending_calls=2, name="limited", namespace="rooms")
    made = limited.remote()
    found = [mobula.get_actor("limited", "rooms"), limited.options(get_if_exists=True, max_pending_calls=7).remote()]
    for a in found:
        a.stay.options(num_returns=0).remote(dir, a._name)
    for a in made, *found:
        with pytest.raises(x.PendingCallsLimitError, match="limit is 2"):
            a.stay.remote(dir, "x")  # all the handles of a process count together

    other = limited.options(name="other").remote()

    @mobula.remote
    def of_another_process() -> tuple[str, list[Any]]:
        a = mobula.get_actor("other", "rooms")
        calls = [a.stay.remote(dir, n) for n in "yz"]
        try:
            a.stay.remote(dir, "x")
        except x.PendingCallsLimitError as e:
            return str(e), calls
        return "nothing, at the call", calls

    said, calls = get(of_another_process.remote())
    assert "limit is 2" in said
    note(dir, "go")
    assert get(found[0].stay.options(wait_for_room=True).remote(dir, "e")) == "e"
    assert get(calls) == ["y", "z"]  # to wait for room is to wait for the calls of this process; the node refuses beyond those of all
    assert get(other.stay.options(wait_for_room=True).remote(dir, "e")) == "e"


def test_c6_methods_with_several_results(node: Any) -> None:
    a = Keeper.remote()
    refs = a.three.remote()
    assert len(refs) == 3 and get(refs[::-1]) == [3, 2, 1]
    assert get(a.three.options(num_returns=1).remote()) == (1, 2, 3)
    with pytest.raises(x.ReturnMismatchError, match="num_returns is 2"):
        get(a.three.options(num_returns=2).remote()[0])


# ---- C7, C8: results


def test_c7_results_are_freed_and_spilled_each_by_itself(node: Any) -> None:
    @mobula.remote(num_returns=3)
    def three(n: int) -> Any:
        return tuple(np.full(n, i) for i in range(3))

    refs = three.remote(1 << 17)
    names = [str(r)[len("ObjectRef("):-1] for r in refs]
    mobula.wait(refs, num_returns=3, timeout=PATIENCE)
    until(lambda: set(names) <= set(objects()))
    del refs[1]
    until(lambda: names[1] not in objects())
    assert {names[0], names[2]} <= set(objects())
    view = get(refs[0])  # this one has to stay
    more = [mobula.put(np.ones(1 << 20)) for _ in range(2 * STORE >> 23)]
    until(lambda: objects()[names[2]]["where"] == "spilled")
    assert objects()[names[0]]["where"] == "memory"
    assert get(refs[1])[-1] == 2 and view[-1] == 0
    del refs[0], more
    assert get(refs[0])[0] == 2


def test_c8_a_producer_is_no_further_ahead_than_it_may(node: Any, dir: str) -> None:
    @mobula.remote
    def items(n: int) -> Iterator[int]:
        for i in range(n):
            note(dir, "made", "x")
            yield i

    def made() -> int:
        return size(dir, "made")

    n, ahead = 12, 3
    g = items.options(_generator_backpressure_num_objects=ahead).remote(n)
    until(lambda: made() == ahead)
    until(lambda: free() == 4)  # it waits
    assert made() == ahead
    for taken in range(1, n + 1):
        assert get(next(g)) == taken - 1
        assert made() <= min(taken + ahead, n)
    with pytest.raises(StopIteration):
        next(g)
    free_runner = items.remote(n)
    until(lambda: made() == 2 * n)
    assert [get(r) for r in free_runner] == list(range(n))


# ---- C9: resources


@mobula.remote
def seated(dir: str, amount: float) -> None:
    """Notes what it takes, and that it gives it back."""
    note(dir, "log", f"{amount}\n")
    while not os.path.exists(os.path.join(dir, "go")):
        time.sleep(0.002)
    note(dir, "log", f"{-amount}\n")


def taken(dir: str) -> list[float]:
    """What was taken at once, after each step."""
    try:
        with open(os.path.join(dir, "log")) as f:
            return [float(v) for v in np.cumsum([float(line) for line in f])]
    except FileNotFoundError:
        return []


def test_c9_as_many_tasks_run_as_there_are_cpus_for(node: Any, dir: str) -> None:
    cases: list[tuple[dict[str, float], int]] = [({}, 4), ({"num_cpus": 0.5}, 8), ({"num_cpus": 1.5}, 2)]
    for options, most in cases:
        place = os.path.join(dir, str(most))
        os.mkdir(place)
        refs = [seated.options(**options).remote(place, 1) for _ in range(most + 6)]
        until(lambda: len(taken(place)) >= most)
        running = _api.request("list.tasks", {"limit": 100, "filters": [{"field": "state", "value": "RUNNING"}]})
        assert running["total"] <= most and len(taken(place)) == most
        note(place, "go")
        get(refs)
        assert max(taken(place)) == most and len(taken(place)) == 2 * len(refs)


def test_c9_a_resource_of_ones_own_is_never_overcommitted(node: Any, dir: str) -> None:
    note(dir, "go")
    amounts = [1, 2, 0.5, 0.5, 1, 0.5, 2, 1] * 5
    get([seated.options(num_cpus=0, resources={"seat": n}).remote(dir, n) for n in amounts])
    assert max(taken(dir)) <= 2 and len(taken(dir)) == 2 * len(amounts)
    with pytest.raises(x.UnschedulableError, match="3 seat, this node has 2"):
        get(seated.options(resources={"seat": 3}).remote(dir, 3))


def test_c9_gpus_are_shared_out_like_cpus(node: Any, dir: str) -> None:
    assert mobula.cluster_resources()["GPU"] == 1
    note(dir, "go")
    amounts = [1, 0.5, 0.25, 0.5, 1] * 4
    get([seated.options(num_cpus=0, num_gpus=n).remote(dir, n) for n in amounts])
    assert max(taken(dir)) <= 1 and len(taken(dir)) == 2 * len(amounts)
    with pytest.raises(x.UnschedulableError, match="2 GPU, this node has 1"):
        get(seated.options(num_gpus=2).remote(dir, 2))


@mobula.remote
class Slow:
    def __init__(self, dir: str) -> None:
        stay(dir, "constructor")

    def ping(self) -> None: ...


def test_c9_an_actor_takes_a_cpu_while_it_is_made_and_none_afterwards(node: Any, dir: str) -> None:
    slow = Slow.remote(dir)
    until(lambda: "constructor" in noted(dir, "began"))
    assert free() == 3
    note(dir, "go")
    get(slow.ping.remote())
    until(lambda: free() == 4)
    many = [Keeper.remote() for _ in range(6)]
    assert len(set(get([a.pid.remote() for a in many]))) == 6
    until(lambda: free() == 4)
    keeps = Keeper.options(num_cpus=3).remote()
    get(keeps.pid.remote())
    assert free() == 1
    del keeps
    until(lambda: free() == 4)


# ---- C19


@mobula.remote
class Place:
    def where(self) -> Any:
        c = mobula.get_runtime_context()
        return {**c.get(), "pid": os.getpid(), "own": c.get_actor_id() == c.current_actor._actor_id}


def test_c19_where_code_runs(node: Any, dir: str) -> None:
    @mobula.remote(max_retries=1)
    def where(dir: str) -> Any:
        note(dir, "tries", "x")
        if os.path.getsize(os.path.join(dir, "tries")) == 1:
            os._exit(1)
        c = mobula.get_runtime_context()
        with pytest.raises(x.InvalidError, match="no actor"):
            c.current_actor
        return c.get(), mobula.cluster_resources()

    driver = mobula.get_runtime_context()
    common = {"job_id": node.job_id, "node_id": "0", "namespace": node.namespace}
    assert driver.get() == {**common, "task_id": None, "actor_id": None, "worker_id": driver.get_worker_id(), "attempt": 0}
    ref = where.remote(dir)
    task, resources = get(ref)
    assert task.pop("worker_id") != driver.get_worker_id()
    assert task == {**common, "task_id": ref.task_id(), "actor_id": None, "attempt": 2}
    assert resources["CPU"] == 4 and resources["seat"] == 2
    actor = Place.remote()
    call = actor.where.remote()
    found = get(call)
    assert found["actor_id"] == actor._actor_id and found["task_id"] == call.task_id() and found["own"] and found["job_id"] == node.job_id
    assert found["worker_id"] != driver.get_worker_id() and found["pid"] != os.getpid()


# ---- nodes of their own: the last, they end this module's


def test_c15_recursion_on_one_cpu(binary: str) -> None:
    @mobula.remote
    def depth(n: int) -> int:
        return 0 if n == 0 else 1 + int(mobula.get(depth.remote(n - 1)))

    mobula.shutdown()
    with mobula.init(num_cpus=1):
        assert get(depth.remote(10)) == 10


MAKES = """
import sys, mobula
@mobula.remote
class Counter:
    def __init__(self, n): self.n = n
    def inc(self):
        self.n += 1
        return self.n
with mobula.init(sys.argv[1], namespace="shop"):
    Counter.options(name="hits", lifetime="detached").remote(5)
"""
FINDS = """
import sys, mobula
with mobula.init(sys.argv[1], namespace="shop"):
    print(mobula.get(mobula.get_actor("hits").inc.remote()))
"""


def test_c5_another_process_finds_a_detached_actor(binary: str, request: Any) -> None:
    mobula.shutdown()
    kept = request.getfixturevalue("kept")

    def program(text: str) -> str:
        return subprocess.run([sys.executable, "-c", text, kept.address], check=True, capture_output=True, text=True, timeout=PATIENCE).stdout

    program(MAKES)
    assert program(FINDS) == "6\n"
    with mobula.init(kept.address):
        with pytest.raises(x.NotFoundError):
            mobula.get_actor("hits")  # it is in a namespace
        with pytest.raises(x.NameTakenError):
            Keeper.options(name="hits", namespace="shop").remote()
        found = mobula.get_actor("hits", "shop")
        assert get(found.inc.remote()) == 7
        mobula.kill(found)
