"""Failures while graphs run: each is survived or a clear error, nothing hangs, and the node stays usable."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, Iterator

import cloudpickle
import pytest
from waiting import PATIENCE, TIMES, until

import mobula
from mobula import exceptions as x
from mobula._api import request

dask = pytest.importorskip("dask")
np = pytest.importorskip("numpy")

import dask.array as da  # noqa: E402

import mobula.dask  # noqa: E402
from mobula.dask import get  # noqa: E402
from mobula.dask._get import references  # noqa: E402

cloudpickle.register_pickle_by_value(sys.modules[__name__])

STORE = 64 << 20


@pytest.fixture(scope="module")
def node(binary: str) -> Iterator[Any]:
    with mobula.init(num_cpus=2, object_store_memory=STORE) as c:
        yield c


def inc(a: Any) -> Any:
    return a + 1


def usable() -> None:
    """Both CPUs are there, and what was held is not."""
    assert get({**{("s", i): (inc, i) for i in range(8)}, "sum": (sum, [("s", i) for i in range(8)])}, "sum") == 36
    until(lambda: mobula.available_resources().get("CPU") == 2 and mobula.status()["store"]["held"] == 0)


# ---- workers


def once(marker: str, f: Any) -> Any:
    """Fails in f the first time."""
    if not os.path.exists(marker):
        open(marker, "w").close()
        f()
    return 1


def segfault() -> None:
    ctypes.string_at(0)


def killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("how", [segfault, killed, lambda: os._exit(1)], ids=["segfault", "kill", "exit"])
def test_a_worker_that_dies_once(node: Any, tmp_path: Any, how: Any) -> None:
    dsk = {("a", i): (inc, i) for i in range(20)} | {"bad": (once, str(tmp_path / "m"), how), "all": (sum, ["bad", *(("a", i) for i in range(20))])}
    assert get(dsk, "all") == 211
    usable()


def test_a_task_that_always_segfaults_is_named(node: Any) -> None:
    with pytest.raises(x.WorkerCrashedError, match="crasher.*segmentation fault"):
        get({"crasher": (segfault,), "after": (inc, "crasher")}, "after")
    usable()


def dies(path: str) -> None:
    with open(path, "a") as f:
        f.write("x")
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_task_that_kills_three_workers_is_given_up(node: Any, tmp_path: Any) -> None:
    path = str(tmp_path / "deaths")
    with pytest.raises(x.WorkerCrashedError, match="the task 'killer'"):
        get({"killer": (dies, path), "after": (inc, "killer")}, "after", optimize_graph=False)
    assert os.path.getsize(path) == 3
    with dask.config.set({"distributed.scheduler.allowed-failures": 1}), pytest.raises(x.WorkerCrashedError):
        get({"killer": (dies, path)}, "killer")
    assert os.path.getsize(path) == 4
    usable()


def hoard(mib: int) -> int:
    a = np.ones(mib << 17)
    time.sleep(3600)
    return int(a[0])


def test_a_task_out_of_memory_is_named(node: Any) -> None:
    greedy = mobula.remote(isolated=True, memory=64 << 20, max_retries=0)(hoard)
    with pytest.raises(x.OutOfMemoryError, match="hoard.*memory monitor.*asked for 64 MiB"):
        mobula.get(greedy.remote(256))
    usable()


left: list[Any] = []


def leave(mib: int, seconds: float = 0) -> int:
    """Takes so long, leaves memory behind in the worker, and says which that is."""
    left.append(np.ones(mib << 17))
    time.sleep(seconds)
    return os.getpid()


@pytest.mark.parametrize("seconds", [0, 1.2])  # also where a worker tells of itself while its tasks run
def test_a_worker_in_which_tasks_leave_memory_is_replaced(node: Any, seconds: float) -> None:
    task = mobula.remote(leave)
    used: set[int] = set()

    def replaced() -> bool:
        """A worker that has had a task before, and was left with memory since, is gone."""
        pid = mobula.get(task.remote(320 if used else 0, seconds))
        used.add(pid)
        return any(not os.path.exists(f"/proc/{p}") for p in used)

    until(replaced)
    gone = {p for p in used if not os.path.exists(f"/proc/{p}")}
    assert mobula.get(task.remote(0)) not in gone
    usable()


def hold_the_gil(mark: Path) -> None:
    """Until the process ends."""
    libc = ctypes.PyDLL(None)
    mark.touch()
    libc.sleep(3600)


def test_a_gil_that_is_held_does_not_hold_up_an_interrupt(node: Any, tmp_path: Path) -> None:
    marks = [tmp_path / str(i) for i in range(2)]

    def interrupt() -> None:
        try:
            until(lambda: any(m.exists() for m in marks))
        finally:
            os.kill(os.getpid(), signal.SIGINT)

    ref = mobula.put(np.arange(1_000_000))
    kept = da.ones(1_000_000, chunks=250_000).persist(scheduler=references)
    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        get({("held", i): (hold_the_gil, m) for i, m in enumerate(marks)}, [("held", 0), ("held", 1)])
    assert mobula.get(ref)[-1] == 999_999 and kept.sum().compute(scheduler=get) == 1_000_000  # nothing is lost
    del ref, kept
    usable()  # both workers are given up after a grace


def test_a_task_that_holds_the_gil_is_cancelled_by_force(node: Any, tmp_path: Path) -> None:
    mark = tmp_path / "begun"
    ref = mobula.remote(hold_the_gil).remote(mark)
    until(mark.exists)
    mobula.cancel(ref, force=True)
    with pytest.raises(x.TaskCancelledError):
        mobula.get(ref, timeout=PATIENCE)
    usable()


def test_a_task_that_holds_the_gil_is_cancelled_without_force(node: Any, tmp_path: Any) -> None:
    mark = tmp_path / "holds"

    @mobula.remote
    def holds() -> None:
        libc = ctypes.PyDLL(None)
        mark.touch()
        libc.sleep(600)

    ref = holds.remote()
    until(mark.exists)
    mobula.cancel(ref)
    with pytest.raises(x.TaskCancelledError):
        mobula.get(ref, timeout=PATIENCE)
    usable()  # its worker is given up


def slow(a: Any) -> Any:
    time.sleep(0.02)
    return a + 1


def test_workers_that_are_killed_at_random_under_a_graph(node: Any) -> None:
    rng = np.random.default_rng(1)
    want = rng.random((1200, 1200))
    stop = threading.Event()
    kills: list[int] = []

    def killer() -> None:
        while not stop.wait(0.3) and len(kills) < 8:
            workers = [w["pid"] for w in request("list.workers", {})["rows"] if w["state"] == "ready" and w["leases"]]
            if workers:
                os.kill(workers[0], signal.SIGKILL)
                kills.append(workers[0])

    t = threading.Thread(target=killer)
    t.start()
    try:
        a = da.from_array(want, chunks=(200, 200))
        while len(kills) < 3:
            got = (a @ a.T).sum().compute(scheduler=get)
            np.testing.assert_allclose(got, (want @ want.T).sum())
    finally:
        stop.set()
        t.join()
    usable()


# ---- graphs


# Each by itself they take minutes: make stress.
@pytest.mark.parametrize("fused", [True, False] if os.environ.get("MOBULA_STRESS") else [True])
@pytest.mark.timeout(1800 * TIMES)
def test_a_graph_of_a_million_tasks(node: Any, fused: bool) -> None:
    chains, each = 1000, 1000
    dsk: dict[Any, Any] = {}
    for c in range(chains):
        dsk[c, 0] = (inc, c)
        for i in range(1, each):
            dsk[c, i] = (inc, (c, i - 1))
    with dask.config.set({} if fused else {"optimization.fuse.active": False}):
        assert get(dsk, [(c, each - 1) for c in range(chains)]) == tuple(c + each for c in range(chains))
    usable()


def test_a_result_larger_than_the_store(node: Any) -> None:
    with pytest.raises(x.ObjectTooLargeError, match="'big'.*134217728 bytes asked, limit 67108864"):
        get({"big": (np.zeros, 16 << 20), "sum": (np.sum, "big"), "max": (np.max, "big")}, ["sum", "max"])
    usable()


def test_more_results_than_the_store_holds(node: Any) -> None:
    n = 24  # of 4 MiB
    got = get({("r", i): (np.full, 1 << 19, i) for i in range(n)}, [("r", i) for i in range(n)])
    assert [int(a[-1]) for a in got] == list(range(n))
    del got
    usable()


# ---- the driver


REFERENCES = """
import sys, numpy as np, mobula, mobula.dask, dask.array as da
mobula.init(num_cpus=2, object_store_memory=64 << 20)
ref = mobula.put(np.ones(1 << 18))
view = mobula.get(ref)
pending = [mobula.remote(lambda: __import__("time").sleep(100)).remote() for _ in range(4)]
kept = da.ones(1 << 20, chunks=1 << 17).persist(scheduler=mobula.dask.get)
module = sys.modules["mobula"]  # alive in a module's namespace till the last
module.hold = [ref, view, pending, kept]
print(mobula.nodes()[0]["PID"], flush=True)
"""


def test_an_interpreter_that_ends_with_references_alive(binary: str) -> None:
    with tempfile.TemporaryDirectory() as place:  # tmp_path may be too long a name for a node's socket
        done = subprocess.run([sys.executable, "-c", REFERENCES], capture_output=True, text=True, timeout=PATIENCE,
                              env={**os.environ, "TMPDIR": place})
        assert (done.returncode, done.stderr) == (0, "")
        until(lambda: not os.path.exists(f"/proc/{int(done.stdout)}"))  # its node
        until(lambda: not list(Path(place).glob("*/*")))  # but for the user's directory there is nothing
        assert place not in Path("/proc/self/mounts").read_text()


def test_init_twice(node: Any) -> None:
    with pytest.raises(x.InvalidError, match="shutdown.*ignore_reinit_error"):
        mobula.init(num_cpus=2)
    assert mobula.init(ignore_reinit_error=True).address == node.address
    usable()


def test_a_fork_after_init(node: Any) -> None:
    ref = mobula.put(np.arange(1 << 18))
    view = mobula.get(ref)
    persisted = da.ones(1 << 18, chunks=1 << 16).persist(scheduler=get)
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        said = b"nothing"
        try:
            assert int(view[-1]) == (1 << 18) - 1  # what is mapped can be read
            try:
                mobula.get(ref)
            except x.ShutdownError as e:
                said = str(e).encode()
            del ref, view, persisted
        finally:
            os.write(w, said)
            os._exit(0)
    os.close(w)
    with os.fdopen(r, "rb") as f:
        assert f"forked from process {os.getpid()}" in f.read().decode()
    assert os.waitpid(pid, 0)[1] == 0
    assert mobula.get(ref)[-1] == (1 << 18) - 1 and persisted.sum().compute(scheduler=get) == 1 << 18
    del ref, view, persisted
    usable()


# ---- the node: the last, it ends this module's


def test_a_node_that_is_killed_under_a_graph(binary: str, request: Any) -> None:
    mobula.shutdown()
    kept = request.getfixturevalue("kept")
    with mobula.init(kept.address):
        got: list[Any] = []
        n = 100
        dsk = {**{("a", i): (slow, i) for i in range(n)}, **{("b", i): (slow, ("a", i)) for i in range(n)}, "s": (sum, [("b", i) for i in range(n)])}
        with dask.config.set({"optimization.fuse.active": False}):
            t = threading.Thread(target=lambda: got.append(get(dsk, "s")))
            t.start()
            until(lambda: mobula.status()["jobs"][0]["finished"] > 20)
            kept.kill()
            kept.start()
            t.join(PATIENCE)
        assert got == [n * (n - 1) // 2 + 2 * n]
