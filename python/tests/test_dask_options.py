"""Options of a graph's tasks: annotations, retries, resources, priorities."""

from __future__ import annotations

import ctypes
import os
import sys
import time
from typing import Any

import cloudpickle
import pytest
from helpers_of_dask import inc, node, shipped  # noqa: F401

import mobula
from mobula import _runtime

dask = pytest.importorskip("dask")
np = pytest.importorskip("numpy")

from dask.delayed import delayed  # noqa: E402
from dask.order import order  # noqa: E402
from notes import note, noted  # noqa: E402
from waiting import PATIENCE, until  # noqa: E402

import mobula.dask  # noqa: E402
from mobula.dask import get  # noqa: E402
from mobula.dask._get import references  # noqa: E402

cloudpickle.register_pickle_by_value(sys.modules[__name__])


def test_annotations(node: Any, shipped: Any) -> None:
    tries = os.path.join(_runtime.client().welcome.job_dir, "tries")

    def flaky() -> int:
        with open(tries, "a") as f:
            f.write("x")
        if os.path.getsize(tries) < 3:
            raise OSError("not yet")
        return 7

    with dask.annotate(retries=5, priority=3):
        x = delayed(flaky)()
    with mobula.dask.enable():
        assert x.compute(optimize_graph=False) == 7
    with dask.annotate(resources={"GPU": "many"}):
        y = delayed(inc)(1)
    with pytest.raises(mobula.exceptions.InvalidError, match="resources.*many"):
        y.compute(scheduler=get, optimize_graph=False)


def test_options_of_tasks(node: Any, shipped: Any) -> None:
    x = delayed(inc)(1)
    assert x.compute(scheduler=get, ray_remote_args={"num_cpus": 0.5, "max_retries": 0}) == 2
    with pytest.raises(ValueError, match="dask.annotate"):
        x.compute(scheduler=get, resources={"GPU": 1})
    with pytest.raises(mobula.exceptions.InvalidError, match="no option 'colour'.*num_cpus"):
        x.compute(scheduler=get, remote_args={"colour": 1})
    with dask.annotate(ray_remote_args={"num_cpus": 100}), dask.config.set({"optimization.fuse.active": False}):
        y = delayed(inc)(1)
    with pytest.raises(mobula.MobulaError, match="100"):  # what is said of a layer goes before what is said of all: no node has so many
        y.compute(scheduler=get, ray_remote_args={"num_cpus": 1}, optimize_graph=False)


@pytest.fixture
def log(tmp_path: Any) -> str:
    return str(tmp_path / "log")


def said(path: str, what: str = "x") -> int:
    """Notes something, and gives how much was noted."""
    with open(path, "a") as f:
        f.write(what)
        return f.tell()


def logged(path: str) -> str:
    with open(path) as f:
        text = f.read()
    os.unlink(path)
    return text


def fails(path: str, times: int = 1000) -> int:
    n = said(path)
    if n <= times:
        raise OSError("not yet")
    return n


def dies(path: str) -> None:
    said(path)
    os._exit(3)


def attempts(path: str, **of_all: Any) -> int:
    """How often a task runs that always fails."""
    with pytest.raises(OSError, match="not yet"):
        delayed(fails)(path).compute(scheduler=get, optimize_graph=False, **of_all)
    return len(logged(path))


def test_retries_are_of_a_tasks_own_errors(node: Any, log: str) -> None:
    for n in range(3):
        with dask.annotate(retries=n):
            assert attempts(log) == n + 1
            assert attempts(log, retries=5 - n) == n + 1  # the annotation goes first
        assert attempts(log, retries=n) == n + 1
    assert delayed(fails)(log, 3).compute(scheduler=get, retries=3) == 4


def test_retries_are_not_of_workers_that_die(node: Any, log: str) -> None:
    for n in (0, 5):
        with dask.annotate(retries=n):
            x = delayed(dies)(log, dask_key_name="killer")
        with pytest.raises(mobula.exceptions.WorkerCrashedError, match="the task 'killer'"):
            x.compute(scheduler=get, optimize_graph=False)
        assert len(logged(log)) == 3


@pytest.mark.parametrize("options, times", [
    ({}, 1), ({"max_retries": 5}, 1), ({"max_retries": 5, "retry_exceptions": False}, 1), ({"max_retries": 0, "retry_exceptions": True}, 1),
    ({"max_retries": 1, "retry_exceptions": True}, 2), ({"retry_exceptions": True, "max_retries": 1}, 2), ({"retry_exceptions": True}, 4),
    ({"retry_exceptions": [ArithmeticError]}, 1), ({"retry_exceptions": [OSError, ArithmeticError]}, 4), ({"retry_exceptions": []}, 1)])
def test_errors_are_retried_as_mobula_remote_says(node: Any, log: str, options: Any, times: int) -> None:
    assert attempts(log, ray_remote_args=options) == times
    with dask.annotate(remote_args=options):
        assert attempts(log) == times
    with pytest.raises(OSError, match="not yet"):
        mobula.get(mobula.remote(fails).options(**options).remote(log), timeout=PATIENCE)
    assert len(logged(log)) == times


def test_retries_without_an_end(node: Any, log: str) -> None:
    for options in ({"max_retries": -1, "retry_exceptions": True}, {"retry_exceptions": True, "max_retries": -1}):
        assert delayed(fails)(log, 20).compute(scheduler=get, ray_remote_args=options) == 21
        assert len(logged(log)) == 21
    with dask.annotate(ray_remote_args={"max_retries": 1}):
        assert attempts(log, ray_remote_args={"retry_exceptions": True, "max_retries": -1}) == 2
        assert attempts(log, ray_remote_args={"retry_exceptions": True}, retries=0) == 1
    with dask.annotate(ray_remote_args={"retry_exceptions": False}):
        assert attempts(log, retries=2) == 1


def test_other_options_of_tasks(node: Any) -> None:
    x = delayed(inc)(1)
    for kwargs in ({"remote_args": {"isolated": True, "scheduling_strategy": "SPREAD", "timeout": PATIENCE, "max_retries": None}},
                   {"workers": ["here"], "allow_other_workers": True}, {"priority": -3, "retries": 0}):
        with dask.annotate(workers=["elsewhere"], allow_other_workers=False):
            assert delayed(inc)(x).compute(scheduler=get, **kwargs) == 3
    with pytest.raises(mobula.exceptions.DeadlineError):
        delayed(time.sleep)(3600).compute(scheduler=get, remote_args={"timeout": 0.05})
    for name, value in (("num_returns", 2), ("name", "x"), ("backpressure", 1)):
        with pytest.raises(mobula.exceptions.InvalidError, match=f"no option '{name}'.*isolated"):
            x.compute(scheduler=get, remote_args={name: value})
    for wrong in ({"remote_args": {"retry_exceptions": [3]}}, {"remote_args": {"max_retries": -2}}, {"retries": -1}, {"priority": "high"},
                  {"remote_args": {"num_cpus": -1}}):
        with pytest.raises(mobula.exceptions.InvalidError, match="retr|priority|num_cpus"):
            x.compute(scheduler=get, **wrong)


def test_nodes_are_chosen(node: Any) -> None:
    here = mobula.get_runtime_context().get_node_id()

    def where() -> str:
        return str(mobula.get_runtime_context().get_node_id())

    kind = {"mobula.io/os": "in(linux, plan9)"}
    for options in ({"label_selector": kind}, {"prefer_labels": {"zone": "a"}}, {"node": here}, {"node": here, "soft": True},
                    {"node": here, "scheduling_strategy": "DEFAULT"}):
        assert delayed(where)().compute(scheduler=get, remote_args=options) == here
        with dask.annotate(ray_remote_args=options):
            assert delayed(where)().compute(scheduler=get, optimize_graph=False) == here
    with dask.annotate(ray_remote_args={"label_selector": {"zone": "b"}}):
        x = delayed(where)()
    with pytest.raises(mobula.exceptions.UnschedulableError, match="zone in .b."):
        x.compute(scheduler=get, optimize_graph=False)
    with dask.annotate(ray_remote_args={"label_selector": kind}):  # it overrides what is said of all
        assert delayed(where)().compute(scheduler=get, optimize_graph=False, remote_args={"label_selector": {"zone": "b"}}) == here
    for wrong in ({"label_selector": {"zone": "in("}}, {"node": "host"}, {"soft": True}, {"node": here, "scheduling_strategy": "SPREAD"}):
        with pytest.raises(mobula.exceptions.InvalidError, match="zone|node"):
            x.compute(scheduler=get, remote_args=wrong)


def test_a_resource_bounds_how_many_run_at_once(node: Any, tmp_path: Any) -> None:
    marker = str(tmp_path / "running")

    def alone(i: int) -> int:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))  # fails where another is there
        time.sleep(0.02)
        os.unlink(marker)
        return i

    with dask.annotate(resources={"slot": 1}):
        parts = [delayed(alone)(i) for i in range(8)]
    assert sum(delayed(list)(parts).compute(scheduler=get, optimize_graph=False)) == 28


def test_priorities_order_what_is_ready(node: Any, log: str) -> None:
    for wanted in ("abcd", "dcba", "cadb"):
        parts = []
        for name in "abcd":
            with dask.annotate(priority=-wanted.index(name), ray_remote_args={"num_cpus": 2}):  # one at a time
                parts.append(delayed(said)(log, name, dask_key_name=name))
        delayed(list)(parts).compute(scheduler=get, optimize_graph=False)
        assert logged(log) == wanted


def test_a_long_task_does_not_hold_up_short_ones(node: Any, tmp_path: Any) -> None:
    """It ends when all of them have."""
    dir = str(tmp_path)

    def short(i: int) -> None:
        note(dir, f"{i}.ended")

    def long() -> None:
        until(lambda: len(noted(dir, "ended")) == 20)

    dsk: dict[Any, Any] = {("s", i): (short, i) for i in range(21)}
    dsk["all"] = (list, list(dsk))
    get(dsk, "all")  # both workers are there
    for i in range(21):
        os.unlink(tmp_path / f"{i}.ended")
    dsk[min(dsk, key=order(dsk).get)] = (long,)  # which of them comes late is no news before it runs
    get(dsk, "all")


def meet(path: str, flags: int) -> None:
    """Opens a FIFO, which waits for somebody to open its other end, and holds the GIL meanwhile: the worker can give nothing back."""
    libc = ctypes.PyDLL(None)
    os.close(libc.open(path.encode(), flags))


def test_a_task_that_holds_the_gil_does_not_hold_up_its_like(node: Any, tmp_path: Any) -> None:
    """Both end when both run. That tasks of another kind were short before does not say that one may wait behind the other."""
    path = str(tmp_path / "fifo")
    os.mkfifo(path)
    get({("short", i): (said, str(tmp_path / "log")) for i in range(200)}, [("short", i) for i in range(200)])
    until(lambda: mobula.available_resources()["CPU"] == 2)  # no lease is left: the first that comes could take both
    refs = references({("meets", i): (meet, path, flags) for i, flags in enumerate((os.O_RDONLY, os.O_WRONLY))}, [("meets", 0), ("meets", 1)])
    mobula.get(list(refs), timeout=PATIENCE)
