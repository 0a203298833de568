"""Each error that a single node can raise, on the real node."""

from __future__ import annotations

import contextlib
import os
import pickle
import resource
import signal
import sys
import threading
import types
from typing import Any, Iterator

import cloudpickle
import numpy as np
import pytest
from cluster import cluster, free, get, node, objects, until  # noqa: F401
from notes import hold, note, noted
from waiting import PATIENCE

import mobula
from mobula import _api, _node
from mobula import exceptions as x
from mobula._client import getting, rejoin
from mobula._wire import messages as m
from mobula._wire.conn import dial

cloudpickle.register_pickle_by_value(sys.modules[__name__])


@mobula.remote
def full(n: int, v: float) -> Any:
    return np.full(n, v)


@mobula.remote
def count(*values: Any) -> int:
    return len(values)


@mobula.remote
class Counts:
    def __init__(self, *values: Any) -> None:
        self.values = len(values)

    def n(self) -> int:
        return self.values


def test_what_nobody_refers_to_is_freed(node: Any) -> None:
    ref = mobula.put(1)
    name = str(ref)[len("ObjectRef("):-1]
    outside = pickle.dumps(ref)  # in no value of the runtime's, which would keep the object
    assert get(pickle.loads(outside)) == 1
    del ref
    until(lambda: name not in objects())
    with pytest.raises(x.ObjectFreedError, match="last reference was released") as e:
        get(pickle.loads(outside))
    assert isinstance(e.value, x.ObjectLostError)


def test_a_put_outlives_the_worker_that_made_it(node: Any) -> None:
    @mobula.remote
    def puts() -> Any:
        return os.getpid(), mobula.put(np.arange(1 << 18))

    pid, ref = get(puts.remote())
    os.kill(pid, signal.SIGKILL)
    until(lambda: not any(w["pid"] == pid for w in _api.request("list.workers", {})["rows"]))
    assert get(ref)[-1] == (1 << 18) - 1


@contextlib.contextmanager
def standing_still() -> Iterator[None]:
    """The node of this process does nothing meanwhile."""
    pid = mobula.nodes()[0]["PID"]
    os.kill(pid, signal.SIGSTOP)
    os.waitpid(pid, os.WUNTRACED)  # all its threads have stopped
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def test_bytes_that_do_not_come(node: Any, monkeypatch: Any) -> None:
    ref = full.remote(1 << 18, 7)
    mobula.wait([ref], timeout=PATIENCE)  # that it is stored is known
    monkeypatch.setattr(getting, "WARN_AFTER", 0.05)
    monkeypatch.setattr(getting, "FETCH_TIMEOUT", 0.2)
    with standing_still(), pytest.raises(x.FetchTimedOutError, match="2097152 bytes.*did not come within") as e:
        mobula.get(ref)
    assert isinstance(e.value, TimeoutError) and isinstance(e.value, x.ObjectLostError)
    assert get(ref)[-1] == 7


def test_memory_that_cannot_be_mapped(node: Any) -> None:
    @mobula.remote(isolated=True)
    def cramped() -> None:
        with open("/proc/self/statm") as f:
            have = int(f.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (have + (8 << 20), resource.RLIM_INFINITY))
        try:
            mobula.create(16 << 20, "u1")
        finally:
            resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

    with pytest.raises(x.TaskError, match="16777216 bytes to write") as e:
        get(cramped.remote())
    assert isinstance(e.value, x.SegmentUnavailableError)


def test_what_can_never_be_done(node: Any) -> None:
    one = mobula.remote(lambda: 1)
    with pytest.raises(x.UnschedulableError, match="5 CPU, this node has 4"):
        get(one.options(num_cpus=5).remote())
    with pytest.raises(x.ReturnMismatchError):
        get(one.options(num_returns=2).remote()[0])
    with pytest.raises(x.NotEncodableError, match="lock"):
        get(mobula.remote(lambda: threading.Lock()).remote())
    with pytest.raises(x.NotEncodableError, match="lock"):
        hold.remote(threading.Lock(), "t")
    with pytest.raises(x.UnknownFunctionError, match="no Go program"):
        get(mobula.go_function("none/such").remote())
    with pytest.raises(x.InvalidError, match="max_retrys"):
        one.options(max_retrys=1)


class Plain:
    def f(self) -> int:
        return 1


_WRONG = {"num_cpus": (-1, "2", float("nan"), True), "num_gpus": ("1", [], -1), "memory": ("1g", 1.5, -1, float("nan"), float("inf"), True),
          "resources": ([1], 5, {1: 1}, {"disk": "much"}), "timeout": ("x", float("nan"), True, []), "name": (5, b"x")}


@pytest.mark.parametrize("option, values", _WRONG.items())
def test_options_that_make_no_sense(option: str, values: Any) -> None:
    for value in values:
        for target in (lambda: 1, Plain):
            with pytest.raises(x.InvalidError, match=f"^invalid argument: {option}.*: want"):
                mobula.remote(**{option: value})(target)
        with pytest.raises(x.InvalidError, match=f"^invalid argument: {option}.*: want"):
            mobula.go_function("f").options(**{option: value})


@pytest.mark.parametrize("option, values", [("namespace", (5,)), ("concurrency_groups", ([1], {1: 1}, {"io": "x"}, {"io": 0})),
                                            ("max_concurrency", (0, 1.5))])
def test_options_of_actors_that_make_no_sense(option: str, values: Any) -> None:
    for value in values:
        with pytest.raises(x.InvalidError, match=f"^invalid argument: {option}.*: want"):
            mobula.remote(name="n", **{option: value})(Plain)


def test_options_of_calls_that_make_no_sense(node: Any) -> None:
    a = mobula.remote(Plain).remote()
    for option, value in (("timeout", "x"), ("name", 5), ("concurrency_group", 5)):
        with pytest.raises(x.InvalidError, match=f"^invalid argument: {option}.*: want"):
            a.f.options(**{option: value})
    one = mobula.remote(lambda: 1)
    for timeout in (float("inf"), 1e300, np.int64(60)):  # as good as none, or one
        assert get(one.options(timeout=timeout).remote()) == get(a.f.options(timeout=timeout).remote()) == 1
    assert get(mobula.remote(Plain).options(timeout=float("inf")).remote().f.remote()) == 1
    assert get(one.options(memory=1e6).remote()) == 1  # a whole number, though a float
    with pytest.raises(x.DeadlineError):
        get(one.options(timeout=-1e300).remote())
    with mobula.Executor(1, timeout=float("inf")) as ex:
        assert ex.submit(int).result() == 0


def test_an_actor_is_no_base_class() -> None:
    actor = mobula.remote(Plain)
    with pytest.raises(TypeError, match=r"Plain is an actor: derive from the class itself, Plain.__wrapped__"):
        exec("class Derived(actor): pass", {"actor": actor})
    assert issubclass(type("Derived", (actor.__wrapped__,), {}), Plain)


def test_an_exception_of_a_class_that_is_not_here(node: Any) -> None:
    @mobula.remote
    def raises() -> None:
        there = sys.modules["only_there"] = types.ModuleType("only_there")
        exec("class Odd(ValueError): pass", there.__dict__)
        raise there.Odd("strange")

    with pytest.raises(x.TaskError, match="Odd: strange") as e:
        get(raises.remote())
    assert isinstance(e.value.cause, x.PythonError) and e.value.cause.name == "only_there.Odd,ValueError,Exception"
    assert "only_there" in str(e.value.cause)


def test_more_questions_than_are_answered_at_once(node: Any) -> None:
    answers: list[Any] = []
    threads = [threading.Thread(target=lambda: answers.append(mobula.status()["node"])) for _ in range(200)]
    with standing_still():
        for t in threads:
            t.start()
    for t in threads:
        t.join(PATIENCE)
    assert answers == [node.node] * 200


def test_a_connection_that_is_refused(node: Any) -> None:
    with pytest.raises(x.ProtocolError, match="unknown value 99"):
        dial(node.address, m.Hello(role=99, pid=os.getpid()))
    if os.geteuid() != 0:
        pytest.skip("only root can be another user")
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        said = "nothing"
        try:
            os.setuid(65534)
            dial(node.address, m.Hello(role=m.DRIVER, pid=os.getpid()))
        except Exception as e:
            said = f"{type(e).__name__}: {e}"
        finally:
            os.write(w, said.encode())
            os._exit(0)
    os.close(w)
    with os.fdopen(r) as f:
        assert f.read().startswith("PermissionDeniedError: ")
    os.waitpid(pid, 0)


def test_a_directory_in_which_a_node_runs(node: Any) -> None:
    with pytest.raises(x.NodeRunningError, match="runs in .*: give this one another directory"):
        _node.Node({"dir": os.path.dirname(node.address), "cpus": 1})
    assert get(full.remote(1, 1))[0] == 1  # it is none the worse


# ---- nodes of their own: the last, they end this module's


def test_what_the_disk_lost_is_made_again_or_lost(binary: str, tmp_path: Any) -> None:
    mobula.shutdown()
    with mobula.init(num_cpus=2, object_store_memory=16 << 20, settings={"store-spill": tmp_path}):
        n = 1 << 18  # 2 MiB
        again, once, put = full.remote(n, 1), full.options(max_retries=0).remote(n, 2), mobula.put(np.full(n, 3))
        mobula.wait([again, once], num_returns=2, timeout=PATIENCE)
        with mobula.create(14 << 20, "u1"):  # everything else goes to disk
            assert {o["where"] for o in objects().values()} == {"spilled"}
            for path in tmp_path.rglob("*.spill"):
                os.truncate(path, 100)
        assert get(again)[-1] == 1
        with pytest.raises(x.ReconstructionFailedError, match="MaxRetries 0") as r:
            get(once)
        assert isinstance(r.value, x.ObjectLostError)
        with pytest.raises(x.ObjectLostError, match="was put") as lost:
            get(put)
        with pytest.raises(x.ObjectLostError, match="was put"):
            put.future().result(PATIENCE)
        assert not isinstance(lost.value, x.ReconstructionFailedError)


def test_a_node_that_does_not_come_back(binary: str, request: Any, tmp_path: Any, monkeypatch: Any) -> None:
    mobula.shutdown()
    kept = request.getfixturevalue("kept")
    monkeypatch.setattr(rejoin, "PATIENCE", 0.1)
    dir = str(tmp_path)
    with mobula.init(kept.address):
        known, never = mobula.put(5), hold.remote(dir, "never")
        until(lambda: noted(dir, "began"))
        kept.kill()
        with pytest.raises(x.OwnerDiedError, match="not back after") as e:
            get(never)
        assert isinstance(e.value, x.ObjectLostError) and isinstance(e.value.causes[0], (x.NoNodeError, x.DisconnectedError))
        with pytest.raises(x.OwnerDiedError):
            hold.remote(dir, "more")
            get(mobula.put(np.zeros(1 << 18)))
        assert get(known) == 5
    note(dir, "go")


def test_a_store_full_of_views(binary: str) -> None:
    mobula.shutdown()
    with mobula.init(num_cpus=1, object_store_memory=8 << 20, settings={"store-disk-budget": 1 << 20}):
        refs = [mobula.put(np.full(3 << 17, i)) for i in range(2)]  # all but a MiB, beside the store's index
        views = [get(r) for r in refs]
        with pytest.raises(x.StoreFullError, match="limit 8388608.*close views"):
            mobula.put(np.zeros(3 << 17))
        assert [int(v[-1]) for v in views] == [0, 1]
        with pytest.raises(x.ObjectTooLargeError, match="16777216 bytes asked, limit 8388608"):
            get(full.remote(2 << 20, 0))
        del views
        assert get(mobula.put(np.ones(3 << 17)))[0] == 1


def test_arguments_larger_than_store_and_disk_budget(binary: str) -> None:
    mobula.shutdown()
    with mobula.init(num_cpus=1, object_store_memory=8 << 20, settings={"store-disk-budget": 4 << 20}):
        refs = [mobula.put(np.full(1 << 18, i)) for i in range(8)]
        for use in (count.remote(*refs), Counts.remote(*refs).n.remote()):
            with pytest.raises(x.MobulaError, match="no room: 8 objects of 1[67][0-9]{6} bytes .* may hold 12582912: .* limit is 8388608 .* disk budget 4194304"):
                get(use)
        assert [int(get(r)[-1]) for r in refs] == list(range(8))  # none of them is lost
        assert get(count.remote(*refs[:5])) == 5  # more than the store
        until(lambda: free() == 1)


def test_a_disk_that_is_gone(binary: str, tmp_path: Any) -> None:
    mobula.shutdown()
    disk = tmp_path / "disk"
    disk.mkdir()
    with mobula.init(num_cpus=1, object_store_memory=8 << 20, settings={"store-spill": disk}):
        refs = [mobula.put(np.full(1 << 19, i)) for i in range(2)]
        disk.rename(tmp_path / "away")
        with pytest.raises(x.OutOfDiskError, match=str(disk)):
            for i in range(4):
                refs.append(mobula.put(np.full(1 << 19, i)))


@pytest.mark.parametrize("cpus", [0, -1])
def test_a_node_without_cpus_is_refused(cpus: int) -> None:
    mobula.shutdown()
    with pytest.raises(x.InvalidError, match=f"num_cpus={cpus}: want more than 0; leave it out"):
        mobula.init(num_cpus=cpus)
    assert not mobula.is_initialized()


@pytest.mark.parametrize("options, said", [({"num_gpus": -1}, "num_gpus=-1: want 0 or more"),
                                           ({"num_gpus": 1, "resources": {"GPU": 2}}, "GPUs are named twice")])
def test_a_node_of_such_gpus_is_refused(options: dict[str, Any], said: str) -> None:
    mobula.shutdown()
    with pytest.raises(x.InvalidError, match=said):
        mobula.init(**options)
    assert not mobula.is_initialized()


def test_a_reference_that_outlives_its_connection(binary: str) -> None:
    mobula.shutdown()
    with mobula.init(num_cpus=1):
        ref, known = full.remote(1 << 18, 1), mobula.put(5)
    for use in (lambda: get(ref), lambda: mobula.wait([ref]), lambda: mobula.cancel(ref)):
        with pytest.raises(x.ShutdownError, match="closed"):
            use()
    assert get(known) == 5
