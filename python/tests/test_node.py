"""The driver against the real node, without workers."""

from __future__ import annotations

import gc
import glob
import io
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from typing import Any, Iterator

import numpy as np
import pytest
from cluster import objects
from waiting import PATIENCE, until

import mobula
from mobula import _api, _runtime
from mobula import exceptions as x
from mobula._version import RELEASE
from mobula._wire import conn


@pytest.fixture
def node(binary: str) -> Iterator[Any]:
    with mobula.init(num_cpus=2, object_store_memory=64 << 20) as c:
        yield c


def pins(id: str) -> int:
    return int(objects()[id]["pins"])


def name(ref: Any) -> str:
    return str(ref)[len("ObjectRef("):-1]


def test_objects(node: Any) -> None:
    values: list[Any] = [1, "text", b"bytes", None, {"a": (1, 2)}, 2**80, 1.5, np.arange(10)]
    refs = [mobula.put(v) for v in values]
    assert [str(v) for v in mobula.get(refs)] == [str(v) for v in values]
    until(lambda: len(objects()) == len(values))
    del refs
    until(lambda: not objects())


def test_ten_thousand_puts_leave_nothing(node: Any) -> None:
    for _ in range(5):
        refs = [mobula.put(bytes(1000)) for _ in range(2000)]
        assert mobula.get(refs)[1999] == bytes(1000)
        del refs
    until(lambda: not objects())


def released() -> None:
    """What was let go of is sent, and the node has answered since."""
    _runtime.client().flush()
    objects()


def test_large_objects_are_pinned_while_they_are_viewed(node: Any) -> None:
    a = np.arange(1_000_000.0)
    ref = mobula.put(a)
    got = mobula.get(ref)
    assert (got == a).all() and not got.flags.writeable
    assert until(lambda: pins(name(ref))) == 1
    tail = got[1:]
    del got
    released()
    assert pins(name(ref)) == 1
    del tail
    until(lambda: pins(name(ref)) == 0)
    view = mobula.get(ref)
    del ref  # a view outlives its reference
    released()
    assert view[-1] == 999_999
    del view
    until(lambda: not objects())
    assert until(lambda: _api.request("node.status", None)["store"]["held"] == 0)


def test_frames_are_read_in_place(node: Any) -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": np.arange(1_000_000.0), "b": np.arange(1_000_000.0), "c": np.arange(1_000_000)})
    ref = mobula.put(frame)
    got = mobula.get(ref)
    pd.testing.assert_frame_equal(got, frame)
    columns = [got[c].to_numpy() for c in frame]
    assert not any(c.flags.writeable or c.flags.owndata for c in columns)
    assert until(lambda: pins(name(ref))) == 1
    del got, columns[1:]
    released()
    assert pins(name(ref)) == 1 and columns[0][-1] == 999_999  # a column keeps it
    with pytest.raises(ValueError, match="read-only"):
        columns[0][0] = 1
    own = mobula.get(ref).copy()
    own.loc[0, "a"] = -1.0
    assert mobula.get(ref)["a"][0] == 0
    del columns, own  # whose names of columns are the store's still
    until(lambda: pins(name(ref)) == 0)


class Holder:
    """Refers to itself, so that only a collection of garbage lets go of it."""

    def __init__(self, ref: Any) -> None:
        self.own, self.ref = self, ref


@mobula.remote
class Careless:
    def lose(self, n: int) -> None:
        gc.disable()
        for _ in range(n):
            Holder(mobula.put(np.ones(1 << 20)))


def test_references_in_cycles_are_collected_when_the_store_fills(node: Any) -> None:
    actor = Careless.remote()  # type: ignore[attr-defined]
    before = len(objects())
    gc.disable()
    try:
        for _ in range(2):  # 32 MiB of 64 that nobody can reach, of which a worker has half
            Holder(mobula.put(np.ones(1 << 20)))
        mobula.get(actor.lose.remote(2))
        assert len(objects()) == before + 4
        ref = mobula.put(np.ones(2 << 20))  # above 0.7 of the store
        until(lambda: len(objects()) == before + 1)
    finally:
        gc.enable()
    assert mobula.get(ref)[0] == 1


def test_more_than_the_store_holds(node: Any) -> None:
    refs = [mobula.put(np.full(1 << 20, i, dtype="u8")) for i in range(20)]  # 160 MiB through 64
    for i, r in enumerate(refs):
        assert mobula.get(r)[7] == i
    assert sum(int(v[0]) for v in map(mobula.get, refs)) == 190
    with pytest.raises(x.ObjectTooLargeError):
        mobula.put(np.ones(20 << 20))
    held = mobula.get(refs[:3])
    assert [int(h[1]) for h in held] == [0, 1, 2]
    del refs, held, r
    until(lambda: not objects())


def test_looking_around(node: Any) -> None:
    [n] = mobula.nodes()
    assert n["Alive"] and n["Resources"]["CPU"] == 2 and n["NodeName"] == node.node
    assert mobula.cluster_resources()["CPU"] == 2 and mobula.available_resources()["CPU"] == 2
    assert mobula.cluster_resources()["object_store_memory"] == 64 << 20
    assert n["NodeID"] == mobula.get_runtime_context().get_node_id() == n["Labels"]["mobula.io/node-id"]
    s = mobula.status()
    assert s["node"] == node.node and s["store"]["limit"] == 64 << 20 and "silent" not in s
    with pytest.raises(x.NotFoundError):
        mobula.get_actor("nobody")
    with pytest.raises(x.NotFoundError, match="no.such"):
        _api.request("no.such", None)


def test_threads_put_and_get(node: Any, seed: int) -> None:
    failed: list[BaseException] = []

    def work(thread: int) -> None:
        try:
            rng = np.random.default_rng([seed, thread])
            refs = []
            for i in range(60):
                n = int(rng.integers(1, 60_000))
                refs.append((mobula.put(np.full(n, i)), n, i))
                r, n, i = refs[int(rng.integers(0, len(refs)))]
                got = mobula.get(r, timeout=PATIENCE)
                assert got.size == n and got[0] == i and got[-1] == i
        except BaseException as e:
            failed.append(e)

    threads = [threading.Thread(target=work, args=(s,)) for s in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(PATIENCE)
    assert not failed and not any(t.is_alive() for t in threads)
    until(lambda: not objects())


def test_several_drivers_share_a_node(node: Any) -> None:
    program = ("import mobula, sys\n"
               "with mobula.init(sys.argv[1]) as c:\n"
               "    r = mobula.put([1, 2]); assert mobula.get(r) == [1, 2]\n"
               "    print(c.job_id)\n")
    jobs = {subprocess.run([sys.executable, "-c", program, node.address], check=True, capture_output=True, text=True).stdout for _ in range(2)}
    assert len(jobs) == 2 and str(node.job_id) not in {j.strip() for j in jobs}


def test_a_node_that_is_killed_and_started_again(binary: str) -> None:
    with tempfile.TemporaryDirectory(prefix="mob") as base:
        env = {k: v for k, v in os.environ.items() if k != "MOBULA_BINARY"}
        args = [binary, "start", "--json", f"--dir={base}/n", "--store-size=64MiB", f"--store-dir={base}"]

        def start() -> Any:
            p = subprocess.Popen(args, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env)
            assert p.stdout is not None
            return p, json.loads(p.stdout.readline())["address"]

        p, address = start()
        try:
            with mobula.init(address):
                small = [mobula.put(i) for i in range(100)]
                big = mobula.put(np.arange(100_000.0))
                view = mobula.get(big)
                until(lambda: len(objects()) == 101)
                p.send_signal(signal.SIGKILL)
                p.wait()
                more = [mobula.put(i) for i in range(100)]  # while it is down
                p, _ = start()
                assert mobula.get(small + more) == list(range(100)) * 2
                until(lambda: len(objects()) == 201)
                assert view[-1] == 99_999 and mobula.get(big)[5] == 5
                big2 = mobula.put(np.ones(100_000))
                assert mobula.get(big2).sum() == 100_000
                del small, more, big, view, big2
                until(lambda: not objects())
        finally:
            p.send_signal(signal.SIGINT)
            p.wait(PATIENCE)
            p.stdout.close()


def test_the_node_ends_with_its_program(binary: str) -> None:
    root = os.path.join(tempfile.gettempdir(), f"mobula-{os.getuid()}")
    program = "import mobula, os, time; mobula.init(); print(mobula.nodes()[0]['PID'], flush=True); time.sleep(60)"
    p = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    assert p.stdout is not None
    pid = int(p.stdout.readline())
    [left] = [d for d in os.listdir(root) if d.startswith(f"node-{p.pid}-")]
    p.kill()
    p.wait()
    p.stdout.close()
    until(lambda: not os.path.exists(f"/proc/{pid}"))
    mobula.init()
    mobula.shutdown()
    assert left not in os.listdir(root)  # the next one cleans up


OUTPUT = """if True:
    import sys, threading
    import mobula

    with mobula.init(num_cpus=1, object_store_memory=64 << 20, **OPTIONS):
        @mobula.remote
        def say():
            import logging, os, warnings
            print("printed, \u00e9")
            print("an error", file=sys.stderr)
            os.write(1, b"raw\\n")
            warnings.showwarning = lambda message, *rest: print(message, file=sys.stderr)
            warnings.warn("a warning")
            logging.getLogger("x").error("logged")

        @mobula.remote
        class Actor:
            def say(self):
                print("an actor", end="")

        a = Actor.options(num_cpus=0).remote()
        mobula.get([say.remote(), a.say.remote()])
    print([t.name for t in threading.enumerate()])
"""


@pytest.mark.parametrize("forwarded", [True, False])
def test_what_workers_write_reaches_the_program(binary: str, forwarded: bool) -> None:
    program = OUTPUT.replace("**OPTIONS", "" if forwarded else "log_to_driver=False")
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE,
                          env={**os.environ, "MOBULA_BINARY": binary, "PYTHONIOENCODING": "utf-8", "PYTHONUTF8": "1"})
    assert said.stdout == "['MainThread']\n", said.stderr
    # A logger's line says which task it is of; the other ones are the program's own.
    plain = re.sub(r"(?<=logged)( (trace|span|task)_id=[0-9a-f]+)+$", "", said.stderr, flags=re.M)
    assert not forwarded or re.search(r"logged .*task_id=[0-9a-f]{40}$", said.stderr, flags=re.M)
    wrote = sorted(re.sub(r"^\(worker/\d+\) ", "<> ", line) for line in plain.splitlines())
    all_lines = ["a warning", "an actor", "an error", "logged", "printed, \u00e9", "raw"]
    assert wrote == [f"<> {line}" for line in all_lines if forwarded]


def test_what_workers_write_comes_while_they_run(binary: str, monkeypatch: Any) -> None:
    @mobula.remote
    def say() -> None:
        print("hello")
        while True:
            time.sleep(0.01)

    with mobula.init(num_cpus=1, object_store_memory=64 << 20):
        err = io.StringIO()
        monkeypatch.setattr(sys, "stderr", err)
        task = say.remote()
        until(lambda: re.fullmatch(r"\(worker/\d+\) hello\n", err.getvalue()))
        err.close()  # what cannot be written is lost, and nothing else
        mobula.cancel(task, force=True)
        again = say.remote()
        assert not mobula.wait([again], timeout=0.5)[0]
        monkeypatch.undo()
    until(lambda: not [t for t in threading.enumerate() if t.name == "mobula-node-output"])


def test_a_worker_does_not_wait_for_who_reads_what_it_writes(binary: str, monkeypatch: Any) -> None:
    @mobula.remote
    def talk() -> int:
        for i in range(5 << 10):
            print(i, "x" * 1000)
        return 1

    class Stuck(io.StringIO):
        def write(self, text: str) -> int:
            go_on.wait(PATIENCE)
            return super().write(text)

    go_on = threading.Event()
    with mobula.init(num_cpus=1, object_store_memory=64 << 20):
        stuck = Stuck()
        monkeypatch.setattr(sys, "stderr", stuck)
        try:
            assert mobula.get(talk.remote(), timeout=PATIENCE) == 1
        finally:
            go_on.set()
    monkeypatch.undo()
    assert re.search(r"\n\(mobula\) \d+ lines that workers wrote are left out here", stuck.getvalue())


def test_what_keeps_a_node_from_starting(binary: str, monkeypatch: Any) -> None:
    with pytest.raises(x.RuntimeSetupError, match="store"):
        mobula.init(object_store_memory=1 << 60)
    with pytest.raises(x.NoNodeError, match="mobula start"):
        mobula.init("/tmp/there/is/none")
    monkeypatch.setenv("MOBULA_BINARY", "/no/such/file")
    with pytest.raises(x.NoNodeError, match="/no/such/file"):
        mobula.init()
    with pytest.raises(x.InvalidError, match="num_cpus"):
        mobula.init("/tmp/x", num_cpus=1)
    assert not mobula.is_initialized()


def test_a_forked_child_has_no_connection(node: Any) -> None:
    ref = mobula.put(1)
    pid = os.fork()
    if pid == 0:
        ok = not mobula.is_initialized()
        del ref
        os._exit(0 if ok and _runtime.state.client is None else 1)
    assert os.waitpid(pid, 0)[1] == 0
    assert mobula.get(ref) == 1 and mobula.nodes()


def test_functions_need_a_node_that_knows_them(node: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(_runtime.client().welcome, "job_dir", "")  # as of a node that knows no programs of drivers
    with pytest.raises(x.RuntimeSetupError, match="too old"):
        mobula.remote(lambda: 1).remote()


def test_an_executable_of_another_release_is_refused(binary: str, monkeypatch: Any) -> None:
    mine = os.path.join(tempfile.gettempdir(), f"mobula-{os.getuid()}", f"node-{os.getpid()}-*")
    before = set(glob.glob(mine))
    monkeypatch.setattr(conn, "RELEASE", "9.9.0")
    with pytest.raises(x.VersionError, match=f"{binary}: the node at .* is Mobula {RELEASE}, this package is mobula 9.9.0: use"):
        mobula.init()
    assert not mobula.is_initialized()
    assert set(glob.glob(mine)) <= before  # it has ended
    monkeypatch.undo()
    with mobula.init(num_cpus=1):
        assert mobula.get(mobula.put(1)) == 1
