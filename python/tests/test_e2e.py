"""Tasks and actors on the real node, with workers forked from the template."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
import time
from typing import Any, Iterator

import cloudpickle
import numpy as np
import pytest
from waiting import PATIENCE, until

import mobula
from mobula import _api, _runtime
from mobula import exceptions as x
from mobula._api import connecting

cloudpickle.register_pickle_by_value(sys.modules[__name__])


@pytest.fixture
def node(binary: str) -> Iterator[Any]:
    with mobula.init(num_cpus=2, object_store_memory=64 << 20) as c:
        if not _runtime.client().welcome.job_dir:
            pytest.skip("this node knows no programs of drivers")
        yield c


def rows(what: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = _api.request("list." + what, {"limit": 10_000})["rows"]
    return found


@mobula.remote
def add(a: Any, b: Any = 0) -> Any:
    return a + b


@mobula.remote
def sleep(t: float) -> float:
    time.sleep(t)
    return t


@mobula.remote
def fib(n: int) -> int:
    return n if n < 2 else sum(mobula.get([fib.remote(n - 1), fib.remote(n - 2)]))


@mobula.remote
def depth(n: int) -> int:
    return 0 if n == 0 else 1 + int(mobula.get(depth.remote(n - 1)))


@mobula.remote
class Counter:
    def __init__(self, n: int = 0) -> None:
        self.n = n

    def inc(self, by: int = 1) -> int:
        self.n += by
        return self.n

    def pid(self) -> int:
        return os.getpid()

    def wait(self, t: float) -> None:
        time.sleep(t)


def test_tasks(node: Any) -> None:
    assert mobula.get(add.remote(add.remote(1, 2), b=3), timeout=PATIENCE) == 6
    assert mobula.get([add.remote(i, i) for i in range(3000)]) == [2 * i for i in range(3000)]
    a = np.arange(200_000.0)
    assert (mobula.get(add.remote(mobula.put(a), a)) == 2 * a).all()
    with pytest.raises(ZeroDivisionError) as e:
        mobula.get(mobula.remote(lambda: 1 / 0).remote())
    assert "ZeroDivisionError" in e.value.remote_traceback  # type: ignore[attr-defined]
    x1, x2 = add.options(num_returns=2).remote((1,), (2,))
    assert mobula.get([x2, x1]) == [2, 1]
    del x1, x2, e
    until(lambda: not rows("objects"))


def test_functions_run_in_processes_that_are_used_again(node: Any) -> None:
    pids = {mobula.get(mobula.remote(lambda: os.getpid()).remote(), timeout=PATIENCE) for _ in range(6)}
    assert len(pids) <= 2 and os.getpid() not in pids


def loaded(path: str, data: Any) -> Any:
    """Writes down that this process loaded the data."""
    with open(path, "a") as f:
        f.write(f"{os.getpid()}\n")
    return data


class Loaded:
    """Data of a function; each process that loads the function writes that down."""

    def __init__(self, path: str, data: Any) -> None:
        self.path, self.data = path, data

    def __reduce__(self) -> Any:
        return loaded, (self.path, self.data)


def test_a_function_is_loaded_once_a_worker_and_a_large_one_is_one_object(node: Any, tmp_path: Any) -> None:
    path = str(tmp_path / "loads")
    captured = Loaded(path, np.ones(4 << 20))  # 32 MiB
    f = mobula.remote(lambda i: (os.getpid(), float(captured[i])))  # type: ignore[index]
    folder = os.path.join(_runtime.client().welcome.job_dir, "functions")
    before = set(os.listdir(folder)) if os.path.isdir(folder) else set()
    got = mobula.get([f.remote(i) for i in range(200)], timeout=PATIENCE)
    assert {v for _, v in got} == {1.0}
    with open(path) as written:
        loads = [int(line) for line in written]
    assert sorted(loads) == sorted({pid for pid, _ in got})
    assert (set(os.listdir(folder)) if os.path.isdir(folder) else set()) == before  # no file has it
    del got
    (large,) = until(lambda: rows("objects") if len(rows("objects")) == 1 else None)
    assert large["size"] > 32 << 20
    del f
    until(lambda: not rows("objects"))


def test_a_thousand_references_in_one_value(node: Any) -> None:
    refs = [mobula.put(i) for i in range(1000)]
    total = mobula.remote(lambda rs: sum(mobula.get(rs)))
    assert mobula.get(total.remote(refs), timeout=PATIENCE) == 499_500
    del refs
    until(lambda: not rows("objects"))


class Last:
    """Is forgotten after what is behind it in a list, and has its process tell of the references that it has no more then."""

    def __reduce__(self) -> Any:
        return str, ()

    def __del__(self) -> None:
        from mobula import _api, _runtime

        _runtime.client().objects.release()
        _api.request("list.objects", {"limit": 1})  # the owner has seen that


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("where", ["task", "actor", "loop"])
def test_a_reference_in_a_result_is_held_until_the_owner_knows_of_it(node: Any, where: str, many: bool) -> None:
    def made() -> Any:
        one: list[Any] = [Last(), add.remote(1)]
        mobula.wait(one[1:])
        return (x for x in [one, 2]) if many else one

    class Plain:
        def made(self) -> Any:
            return made()

    class Async:
        async def made(self) -> Any:
            return made()

    o = {"num_returns": 2} if many else {}
    if where == "task":
        f = mobula.remote(made).options(**o)
    else:
        actor = mobula.remote(Plain if where == "actor" else Async).remote()
        f = actor.made.options(**o)
    for _ in range(5):
        given = f.remote()
        assert mobula.get(mobula.get(given[0] if many else given)[1], timeout=PATIENCE) == 1


def test_many_small_values_are_more_than_a_message_may_hold(node: Any) -> None:
    n, one = 700, b"x" * 100_000

    @mobula.remote(num_returns=n)
    def many(*given: bytes) -> tuple[bytes, ...]:
        return given

    refs = many.remote(*[one] * n)
    for r in refs[:1] + refs[-1:]:
        assert mobula.get(r, timeout=PATIENCE) == one


def test_nested_gets_do_not_starve(node: Any) -> None:
    assert mobula.get(depth.remote(10), timeout=PATIENCE) == 10
    assert mobula.get(fib.remote(8), timeout=PATIENCE) == 21


def test_threads_of_a_task_wait_as_the_task_does(node: Any) -> None:
    @mobula.remote
    def threads(n: int) -> int:
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(4) as pool:
            return sum(pool.map(lambda i: mobula.get(depth.remote(i % 3)), range(n)))

    got = mobula.get([threads.remote(8) for _ in range(3)], timeout=PATIENCE)
    assert got == [7, 7, 7]


def test_what_a_task_awaits_counts_as_its_wait(binary: str) -> None:
    with mobula.init(num_cpus=1):
        @mobula.remote
        def awaits(n: int) -> int:
            async def all_of_them() -> int:
                return sum(await asyncio.gather(*[add.remote(i) for i in range(n)]))

            return asyncio.run(all_of_them())

        @mobula.remote
        def futures(n: int) -> int:
            return sum(f.result(PATIENCE) for f in [add.remote(i).future() for i in range(n)])

        @mobula.remote
        def leaves_one_behind() -> None:
            sleep.remote(0.2).future()

        assert mobula.get(awaits.remote(5), timeout=PATIENCE) == 10
        assert mobula.get(futures.remote(5), timeout=PATIENCE) == 10
        mobula.get([leaves_one_behind.remote() for _ in range(3)], timeout=PATIENCE)
        assert mobula.get([add.remote(i) for i in range(20)], timeout=PATIENCE) == list(range(20))


def test_a_timeline(node: Any, tmp_path: Any) -> None:
    mobula.get([add.remote(i) for i in range(3)])

    def drawn() -> Any:
        events = mobula.timeline(str(tmp_path / "run.json"))
        return events if sum(e["ph"] == "X" and e["name"] == "test_e2e.add" for e in events) == 3 else None

    events = until(drawn)
    with open(tmp_path / "run.json") as f:
        assert json.load(f)["traceEvents"] == events
    assert [p.name for p in tmp_path.iterdir()] == ["run.json"]


def test_lists_show_names(node: Any) -> None:
    r = add.remote(1)
    assert mobula.get(r, timeout=PATIENCE) == 1
    assert [t["name"] for t in rows("tasks")] == ["test_e2e.add"]


def test_wait_gives_the_fastest(node: Any) -> None:
    mobula.get([add.remote(0) for _ in range(4)])  # workers; of sleep nothing is known, so none is queued behind another
    slow, fast = sleep.remote(3600), sleep.remote(0.05)
    ready, rest = mobula.wait([slow, fast], timeout=PATIENCE)
    assert ready == [fast] and rest == [slow]
    mobula.cancel(slow, force=True)


def test_nobody_waits_behind_a_long_task(node: Any) -> None:
    mobula.get([sleep.remote(0) for _ in range(500)])  # of sleep it is known now that it takes no time
    for round in range(3):
        slow, *quick = [sleep.remote(3600 if i == 0 else 0) for i in range(50)]
        assert mobula.get(quick, timeout=PATIENCE) == [0] * 49, round
        mobula.cancel(slow, force=True)
        with pytest.raises(x.TaskCancelledError):
            mobula.get(slow, timeout=PATIENCE)


def test_streams(node: Any, tmp_path: Any) -> None:
    @mobula.remote
    def items(n: int) -> Iterator[Any]:
        for i in range(n):
            yield np.full(20_000, i) if i % 2 else i

    assert [float(np.mean(mobula.get(r))) for r in items.remote(6)] == [0, 1, 2, 3, 4, 5]

    @mobula.remote(num_returns="streaming", backpressure=2)
    def ahead() -> Iterator[int]:
        for i in range(10):
            with open(path + ".new", "w") as f:
                f.write(str(i))
            os.replace(path + ".new", path)  # a reader finds a whole number
            yield i

    path = str(tmp_path / "made")
    g = ahead.remote()
    assert mobula.get(next(g)) == 0
    until(lambda: mobula.available_resources()["CPU"] == 2)  # it waits
    with open(path) as f:
        assert int(f.read()) <= 4
    assert [mobula.get(r) for r in g] == list(range(1, 10))


def test_cancel(node: Any) -> None:
    mobula.get([sleep.remote(0) for _ in range(2)], timeout=PATIENCE)
    for force in (False, True):
        running = sleep.remote(3600)
        until(lambda: any(t["state"] == "RUNNING" for t in rows("tasks")))
        mobula.cancel(running, force=force)
        with pytest.raises(x.TaskCancelledError):
            mobula.get(running, timeout=PATIENCE)
    assert mobula.get(add.remote(1, 1), timeout=PATIENCE) == 2


def test_workers_tell_what_they_run_while_they_run_it(node: Any) -> None:
    mobula.get([sleep.remote(0) for _ in range(2)], timeout=PATIENCE)
    running = sleep.remote(3600)
    until(lambda: sum(w.get("running", 0) for w in rows("workers") if w["language"] == "python") == 1)
    mobula.cancel(running)
    with pytest.raises(x.TaskCancelledError):
        mobula.get(running, timeout=PATIENCE)
    until(lambda: not any(w.get("running", 0) for w in rows("workers") if w["language"] == "python"))


def test_a_call_may_wait_for_one_behind_it(node: Any) -> None:
    @mobula.remote
    class Gate:
        def __init__(self) -> None:
            self.open = asyncio.Event()

        async def size(self, a: Any) -> int:
            await self.open.wait()
            return int(a.size)

        async def let(self) -> None:
            self.open.set()

    gate = Gate.remote()
    assert mobula.get([gate.size.remote(mobula.put(np.zeros(1_000_000))), gate.let.remote()], timeout=PATIENCE) == [1_000_000, None]


def test_deadlines(node: Any) -> None:
    mobula.get([sleep.remote(0) for _ in range(2)], timeout=PATIENCE)
    with pytest.raises(x.DeadlineError):
        mobula.get(sleep.options(timeout=0.3).remote(3600), timeout=PATIENCE)
    assert mobula.get(sleep.options(timeout=PATIENCE).remote(0.01)) == 0.01


def test_crashes_are_retried(node: Any, tmp_path: Any) -> None:
    mark = str(tmp_path / "mark")

    @mobula.remote
    def once() -> str:
        if not os.path.exists(mark):
            open(mark, "w").close()
            os.abort()
        return "second"

    assert mobula.get(once.remote(), timeout=PATIENCE) == "second"

    @mobula.remote(max_retries=0)
    def never() -> None:
        os._exit(3)

    with pytest.raises(x.WorkerCrashedError, match="3"):
        mobula.get(never.remote(), timeout=PATIENCE)
    tries = str(tmp_path / "tries")

    @mobula.remote(retry_exceptions=True, max_retries=2)
    def flaky() -> int:
        with open(tries, "a") as f:
            f.write("x")
        n = len(open(tries).read())
        if n < 3:
            raise ValueError(n)
        return n

    assert mobula.get(flaky.remote(), timeout=PATIENCE) == 3


def test_actors(node: Any) -> None:
    c = Counter.remote(10)
    assert mobula.get([c.inc.remote() for _ in range(1000)], timeout=PATIENCE) == list(range(11, 1011))
    pid = mobula.get(c.pid.remote())
    named = Counter.options(name="hits", namespace="here").remote(5)
    assert mobula.get(mobula.get_actor("hits", "here").inc.remote(), timeout=PATIENCE) == 6
    with pytest.raises(x.NameTakenError):
        Counter.options(name="hits", namespace="here").remote()
    assert Counter.options(name="hits", namespace="here", get_if_exists=True).remote() == named
    mobula.kill(named)
    with pytest.raises(x.ActorDiedError):
        mobula.get(named.inc.remote(), timeout=PATIENCE)
    del c
    until(lambda: not os.path.exists(f"/proc/{pid}"))
    with pytest.raises(x.ActorDiedError):
        mobula.get(Counter.remote(1, 2, 3).inc.remote(), timeout=PATIENCE)


def test_an_actor_is_found_by_its_name_while_it_is_busy(node: Any, tmp_path: Any, monkeypatch: Any) -> None:
    @mobula.remote
    class Busy:
        def hold(self, path: str) -> str:
            until(lambda: os.path.exists(path))
            return "held"

        @mobula.method(num_returns=2)
        def pair(self) -> tuple[int, int]:
            return 1, 2

        def count(self, n: int) -> Iterator[int]:
            yield from range(n)

    monkeypatch.setattr("mobula._api.actors.LEARN_TIMEOUT", 1.0)  # what is asked of the actor itself is not answered in this time
    free = tmp_path / "free"
    a = Busy.options(name="busy").remote()
    held = a.hold.remote(str(free))
    found = mobula.get_actor("busy")
    pair, items = found.pair.remote(), found.count.remote(3)
    assert mobula.wait([held], timeout=0)[0] == []
    with pytest.raises(AttributeError, match="actor busy has no method 'none'"):
        found.none
    free.touch()
    assert mobula.get(held, timeout=PATIENCE) == "held" and mobula.get(pair, timeout=PATIENCE) == [1, 2]
    assert [mobula.get(r, timeout=PATIENCE) for r in items] == [0, 1, 2]


def test_an_actor_that_is_killed_comes_back(node: Any) -> None:
    c = Counter.options(max_restarts=1, max_task_retries=1).remote(1)
    assert mobula.get(c.inc.remote(), timeout=PATIENCE) == 2
    mobula.kill(c, no_restart=False)
    assert mobula.get(c.inc.remote(), timeout=PATIENCE) == 2
    mobula.kill(c, no_restart=False)
    with pytest.raises(x.ActorDiedError):
        mobula.get(c.inc.remote(), timeout=PATIENCE)


def test_async_and_threaded_actors(node: Any) -> None:
    """Calls go on when as many are there as may run at once."""

    @mobula.remote
    class Async:
        def __init__(self) -> None:
            self.room = asyncio.Barrier(40)

        async def meet(self, v: Any) -> Any:
            await self.room.wait()
            return v

    @mobula.remote(max_concurrency=4)
    class Threads:
        def __init__(self) -> None:
            self.room = threading.Barrier(4)

        def meet(self, v: Any) -> Any:
            self.room.wait(PATIENCE)
            return v

    for cls, calls in ((Async, 40), (Threads, 8)):
        a = cls.remote()
        assert mobula.get([a.meet.remote(i) for i in range(calls)], timeout=PATIENCE) == list(range(calls))


def test_handles_travel(node: Any) -> None:
    c = Counter.remote()

    @mobula.remote
    def use(h: Any, n: int) -> Any:
        return mobula.get([h.inc.remote() for _ in range(n)])[-1]

    assert mobula.get([use.remote(c, 10), use.remote(c, 10)], timeout=PATIENCE)[-1] <= 20
    assert mobula.get(c.inc.remote()) == 21


def test_the_job_leaves_nothing(binary: str) -> None:
    import subprocess
    import tempfile

    with tempfile.TemporaryDirectory(prefix="mob") as base:
        env = {k: v for k, v in os.environ.items() if k != "MOBULA_BINARY"}
        subprocess.run([binary, "start", "--detach", f"--dir={base}/n", "--store-size=64MiB", f"--store-dir={base}"], check=True, env=env, capture_output=True)
        try:
            program = ("import mobula, numpy as np, os, sys\n"
                       "mobula.init(sys.argv[1])\n"
                       "r = mobula.put(np.ones(100000)); f = mobula.remote(lambda a: os.getpid())\n"
                       "print(mobula.get(f.remote(r)), flush=True)\n"
                       "os._exit(0)\n")
            out = subprocess.run([sys.executable, "-c", program, base + "/n"], check=True, capture_output=True, text=True)
            until(lambda: not os.path.exists(f"/proc/{int(out.stdout)}"))
            with mobula.init(base + "/n"):
                until(lambda: _api.request("node.status", None)["store"]["held"] == 0)
        finally:
            subprocess.run([binary, "stop", "--address", base + "/n"], check=True, capture_output=True)


def test_a_node_that_is_killed_while_tasks_run(kept: Any) -> None:
    with mobula.init(kept.address):
        mobula.get(add.remote(1), timeout=PATIENCE)
        refs = [sleep.remote(0.01) for _ in range(200)]
        chain = add.remote(refs[-1], add.remote(refs[-2], 1))
        mobula.get(refs[20])
        kept.kill()
        kept.start()
        assert mobula.get(refs, timeout=PATIENCE) == [0.01] * 200
        assert mobula.get(chain, timeout=PATIENCE) == 1.02
        assert mobula.get(add.remote(1, 2), timeout=PATIENCE) == 3


def test_a_detached_actor_outlives_its_driver(kept: Any) -> None:
    with mobula.init(kept.address):
        Counter.options(name="lives", lifetime="detached").remote(5)
    with mobula.init(kept.address):
        found = mobula.get_actor("lives")
        assert "inc" in found._repr_html_()  # what methods it has is known of another job's too
        assert mobula.get(found.inc.remote(), timeout=PATIENCE) == 6
        mobula.kill(found)
        until(lambda: _died(found))  # it is of another job, whose owner ends it: a call may still come before
        until(lambda: not _named("lives"))


def _died(a: Any) -> bool:
    try:
        mobula.get(a.inc.remote(), timeout=PATIENCE)
    except x.ActorError:
        return True
    return False


def _named(name: str) -> bool:
    try:
        mobula.get_actor(name)
    except x.NotFoundError:
        return False
    return True


def test_workers_of_a_fresh_interpreter(kept: Any) -> None:
    with mobula.init(kept.address, worker_processes="fresh"):
        assert mobula.get(add.remote(1, 2), timeout=PATIENCE) == 3
        c = Counter.remote()
        assert mobula.get([c.inc.remote() for _ in range(10)], timeout=PATIENCE)[-1] == 10


@pytest.mark.parametrize("how", ["template", "fresh"])
def test_workers_of_another_python_are_refused(kept: Any, monkeypatch: Any, how: str) -> None:
    own, said = "%d.%d" % sys.version_info[:2], connecting.program

    def of_another(how: str) -> Any:
        p = said(how)
        p.args[-1] = json.dumps({**json.loads(p.args[-1]), "version": "3.1"})
        return p

    monkeypatch.setattr(connecting, "program", of_another)
    with mobula.init(kept.address, worker_processes=how):
        with pytest.raises(x.RuntimeSetupError, match=f"the driver runs Python 3.1, this worker {own}.*both must be the same"):
            mobula.get(add.remote(1, 2), timeout=PATIENCE)


def test_threads_of_the_driver(node: Any) -> None:
    got: dict[int, Any] = {}

    def work(i: int) -> None:
        got[i] = mobula.get([add.remote(i, j) for j in range(100)], timeout=PATIENCE)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(PATIENCE)
    assert got == {i: [i + j for j in range(100)] for i in range(8)}
