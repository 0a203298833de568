"""Whether Dask runs on the node or in this process: enable and disable, tasks that are rerun here. And which parts of Dask are used."""

from __future__ import annotations

import ast
import collections
import copy
import importlib
import operator
import os
import pathlib
import sys
import traceback
from typing import Any, Iterator, NamedTuple

import cloudpickle
import pytest

import mobula
from mobula import _runtime

dask = pytest.importorskip("dask")

from dask.callbacks import Callback  # noqa: E402
from dask.delayed import delayed  # noqa: E402
from dask.task_spec import Alias, DataNode, GraphNode, Task, TaskRef  # noqa: E402

import mobula.dask  # noqa: E402
from mobula.dask import MobulaDaskCallback, _nodes, disable, enable, get, get_sync  # noqa: E402
from mobula.dask._get import _enabled, references  # noqa: E402

cloudpickle.register_pickle_by_value(sys.modules[__name__])


@pytest.fixture(scope="module")
def node(binary: str) -> Iterator[Any]:
    with mobula.init(num_cpus=2, object_store_memory=64 << 20) as c:
        yield c


def inc(x: Any) -> Any:
    return x + 1


def fails(x: Any) -> Any:
    where = os.getpid()
    raise ValueError(f"{x} in {where}")


# ---- enable and disable


@pytest.fixture
def untouched() -> Iterator[dict[str, Any]]:
    """Dask's configuration, which is at the end what it was, whatever the test says."""
    before: dict[str, Any] = copy.deepcopy(dask.config.config)
    assert not _enabled
    yield before
    left, now = list(_enabled), copy.deepcopy(dask.config.config)
    while _enabled:
        disable()
    dask.config.config.clear()
    dask.config.config.update(before)
    assert not left and now == before


def settings() -> tuple[Any, ...]:
    """What enable sets."""
    return tuple(dask.config.get(key, None) for key in ("scheduler", "dataframe.shuffle.method", "mobula.shuffle-optimization"))


def test_disable_undoes_enable(untouched: Any) -> None:
    before = settings()
    enable()
    assert settings() == (get, "tasks", True)
    disable()
    assert settings() == before and dask.config.config == untouched
    disable()  # there is nothing left to undo
    assert dask.config.config == untouched


def test_disable_undoes_the_latest_enable(untouched: Any) -> None:
    enable(shuffle="disk", use_shuffle_optimization=False)
    enable()
    assert settings() == (get, "tasks", True)
    disable()
    assert settings() == (get, "disk", False)
    disable()
    assert dask.config.config == untouched


def test_enable_keeps_what_it_is_not_asked_for(untouched: Any) -> None:
    with dask.config.set({"dataframe.shuffle.method": "disk"}):
        enable(shuffle=None)
        assert settings() == (get, "disk", True)
        disable()
        assert settings()[1] == "disk"


def test_the_block_restores_what_was_before(untouched: Any) -> None:
    with dask.config.set({"scheduler": "synchronous", "dataframe.shuffle.method": "disk", "mobula.shuffle-optimization": False}):
        with enable():
            assert settings() == (get, "tasks", True)
        assert settings() == ("synchronous", "disk", False)
        with pytest.raises(ZeroDivisionError), enable():
            1 / 0
        assert settings() == ("synchronous", "disk", False)
    with pytest.raises(KeyboardInterrupt), enable():
        raise KeyboardInterrupt
    assert dask.config.config == untouched


def test_blocks_in_blocks(untouched: Any) -> None:
    with enable(use_shuffle_optimization=False):
        with pytest.raises(ZeroDivisionError), enable(shuffle="disk"):
            assert settings() == (get, "disk", True)
            1 / 0
        assert settings() == (get, "tasks", False)
    assert dask.config.config == untouched


def test_blocks_that_end_in_another_order(untouched: Any) -> None:
    before = settings()
    first, second = enable(shuffle="disk"), enable(shuffle=None, use_shuffle_optimization=False)
    first.__exit__(None, None, None)
    assert _enabled == [second] and dask.config.get("scheduler") is get and not dask.config.get("mobula.shuffle-optimization")
    assert settings() != before
    second.__exit__(None, None, None)
    first.__exit__(None, None, None)
    assert settings() == before and not _enabled


def test_disable_in_a_block_ends_that_block(untouched: Any) -> None:
    enable(shuffle="disk")
    with enable():
        disable()
        assert settings() == (get, "disk", True)
    assert settings() == (get, "disk", True)  # the end of the block undoes nothing twice
    disable()
    assert dask.config.config == untouched


def test_tasks_run_on_the_cluster_while_it_is_enabled(node: Any, untouched: Any) -> None:
    here = delayed(os.getpid)
    assert here().compute() == os.getpid()
    with enable():
        assert here().compute() != os.getpid()
    assert here().compute() == os.getpid()
    enable()
    assert here().compute() != os.getpid()
    disable()
    assert here().compute() == os.getpid()


# ---- rerun_exceptions_locally


def pid_of(e: Any) -> int:
    return int(str(e.value).split(" in ")[1])


def test_without_the_option_the_error_is_the_workers(node: Any) -> None:
    for more in ({}, {"rerun_exceptions_locally": False}):
        with pytest.raises(ValueError, match="^2 in ") as e:
            get({"a": (inc, 1), "b": (fails, "a"), "c": (inc, "b")}, "c", **more)
        assert pid_of(e) != os.getpid()
        assert not any(f.name == "fails" for f in traceback.extract_tb(e.tb))


def test_with_the_option_the_task_that_failed_runs_here(node: Any) -> None:
    with pytest.raises(ValueError, match="^2 in ") as e:
        get({"a": (inc, 1), "b": (fails, "a"), "c": (inc, "b")}, "c", rerun_exceptions_locally=True)
    assert pid_of(e) == os.getpid()
    frame = list(traceback.walk_tb(e.tb))[-1][0]  # where a debugger is after the error
    assert frame.f_code is fails.__code__ and frame.f_locals == {"x": 2, "where": os.getpid()}
    assert get({"a": (inc, 1)}, "a", rerun_exceptions_locally=True) == 2


def test_the_option_in_the_configuration_and_in_compute(node: Any) -> None:
    x = delayed(inc)(delayed(fails)(7))
    with pytest.raises(ValueError) as e:
        x.compute(scheduler=get, rerun_exceptions_locally=True)
    assert pid_of(e) == os.getpid()
    with dask.config.set(rerun_exceptions_locally=True):
        with pytest.raises(ValueError) as e:
            x.compute(scheduler=get)
        assert pid_of(e) == os.getpid()
        with pytest.raises(ValueError) as e:  # an argument goes before it
            x.compute(scheduler=get, rerun_exceptions_locally=False)
        assert pid_of(e) != os.getpid()


def test_only_what_the_task_takes_runs_here(node: Any) -> None:
    ran = os.path.join(_runtime.client().welcome.job_dir, "ran")

    def note(name: str, *taken: Any) -> str:
        with open(ran, "a") as f:
            f.write(f"{name} {os.getpid()}\n")
        return name

    held = references({1: (note, "held")}, 1)
    dsk = {1: held, 2: (note, "taken", 1), 3: (note, "other"), 4: (fails, 2), 5: (note, "all", 4, 3)}
    with pytest.raises(ValueError, match="^taken in ") as e:
        get(dsk, 5, rerun_exceptions_locally=True)
    assert pid_of(e) == os.getpid()
    with open(ran) as f:
        here = [line.split()[0] for line in f if line.split()[1] == str(os.getpid())]
    assert here == ["taken"]


@pytest.mark.parametrize("watch", [Callback, MobulaDaskCallback])
def test_the_option_while_somebody_watches(node: Any, watch: Any) -> None:
    over: list[bool] = []
    watcher = watch(finish=lambda dsk, state, failed: over.append(failed)) if watch is Callback else watch(posttask=lambda *what: None)
    with watcher, pytest.raises(ValueError, match="^2 in ") as e:
        get({"a": (inc, 1), "b": (fails, "a"), "c": (inc, "b")}, "c", rerun_exceptions_locally=True)
    assert pid_of(e) == os.getpid() and over == [True] * (watch is Callback)


def test_what_presubmit_gave_is_what_the_task_takes_here_too(node: Any) -> None:
    with MobulaDaskCallback(presubmit=lambda task, key, deps: 40 if key == "a" else None), pytest.raises(ValueError, match="^40 in ") as e:
        get({"a": (inc, 1), "b": (fails, "a")}, "b", rerun_exceptions_locally=True)
    assert pid_of(e) == os.getpid()


def test_what_fails_in_workers_only_fails_as_it_did_there(node: Any) -> None:
    driver = os.getpid()

    def fails_there() -> int:
        if os.getpid() != driver:
            fails(1)
        return 1

    def dies_there() -> None:
        if os.getpid() != driver:
            os._exit(3)
        raise AssertionError("a task whose worker died is not run here")

    with pytest.raises(ValueError) as e:
        get({"a": (fails_there,)}, "a", rerun_exceptions_locally=True)
    assert pid_of(e) != driver
    with pytest.raises(mobula.exceptions.WorkerCrashedError, match="dies"):
        get({"dies": (dies_there,)}, "dies", rerun_exceptions_locally=True)


def test_an_item_that_is_not_there_is_missed_here(node: Any) -> None:
    """Where its task would else be one with the one before it."""
    dsk: dict[Any, Any] = {"all": (dict, [("a", 1), ("b", 2)])}
    dsk.update({("part", i): (operator.getitem, "all", i) for i in "abc"})
    dsk["list"] = (list, [("part", i) for i in "abc"])
    with pytest.raises(KeyError, match="c") as e:
        get(dsk, "list", rerun_exceptions_locally=True)
    assert any("_local.py" in f.filename for f in traceback.extract_tb(e.tb))


# ---- what of Dask is used


def private(name: str) -> bool:
    return any(part.startswith("_") and not part.endswith("__") for part in name.split("."))


def private_uses(tree: ast.AST) -> Iterator[str]:
    """Names of Dask that are not public: with an underscore, in a module that has one, or from there by way of a module that does not list them."""
    for n in ast.walk(tree):
        if isinstance(n, ast.Import):
            yield from (a.name for a in n.names if a.name.split(".")[0] == "dask" and private(a.name))
        elif isinstance(n, ast.ImportFrom) and not n.level and (n.module or "").split(".")[0] == "dask":
            for a in n.names:
                name = f"{n.module}.{a.name}"
                if private(name) or lent(n.module or "", a.name):
                    yield name
        elif isinstance(n, ast.Attribute):
            name = dotted(n)
            if name.split(".")[0] == "dask" and private(name):
                yield name


def dotted(n: ast.expr) -> str:
    parts: list[str] = []
    while isinstance(n, ast.Attribute):
        parts.insert(0, n.attr)
        n = n.value
    return ".".join([n.id, *parts]) if isinstance(n, ast.Name) else ""


def lent(module: str, name: str) -> bool:
    m = importlib.import_module(module)
    home = getattr(getattr(m, name, None), "__module__", None) or ""
    return private(home) and name not in getattr(m, "__all__", ())


@pytest.mark.parametrize("source, found", [
    ("from dask._task_spec import Task", 1), ("import dask._task_spec as t", 1), ("import dask; dask._task_spec.Task", 2), ("from dask import _expr", 1),
    ("from dask.core import convert_legacy_graph", 1), ("from dask.base import _thing", 1), ("def f():\n    from dask._x import y", 1),
    ("from dask.task_spec import Task", 0), ("import dask\ndask.config.get('x')\nprint(dask.__version__)", 0), ("from ._dask import _x", 0),
    ("from dask.core import flatten", 0)])
def test_the_rule_finds_what_it_forbids(source: str, found: int) -> None:
    assert len(list(private_uses(ast.parse(source)))) == found


def test_only_dasks_public_surface_is_used() -> None:
    package = pathlib.Path(mobula.__file__).parent
    files = [*package.rglob("*.py")]
    assert {"dask", "distributed"} <= {f.parent.name for f in files}
    wrong = [f"{f.relative_to(package)}: {name}" for f in files for name in private_uses(ast.parse(f.read_text()))]
    assert not wrong


# ---- graphs of tuples


class Pair(NamedTuple):
    a: Any
    b: Any


class Summed(collections.namedtuple("Summed", "a b total")):
    """Is made with fewer arguments than it has fields."""

    def __new__(cls, a: int, b: int) -> Any:
        return super().__new__(cls, a, b, a + b)

    def __getnewargs__(self) -> Any:
        return self.a, self.b


class Named(Summed):
    def __getnewargs_ex__(self) -> Any:
        return (self.a,), {"b": self.b}


class Elsewhere:
    """A scheduler's future, as Dask knows them."""

    __dask_future__ = True
    key = "x"


def same(*args: Any) -> Any:
    return args


TUPLES: dict[Any, Any] = {
    "x": 1, "y": (inc, "x"), ("t", 0): (inc, "y"), 5: (inc, 5.5), 5.5: 10, "unhashable": ([], "x"), "text": "no key", "alias": "y",
    "tuple-alias": ("t", 0), "list": ["x", ["y", (inc, "x")], {"x"}, frozenset(["y"]), (1, "x")], "plain": [1, "z", (2, {}), {"d": "x"}],
    "deep": (same, (inc, (inc, "x")), [(inc, ["x"][0])]),
    "dict": (same, {"k": "x", "n": TaskRef("x"), "m": Task(None, inc, TaskRef("y"))}, {"k": "x"}, [{"k": "x"}]), "empty": (), "none": None, "f": inc,
    "pair": Pair("x", ["y"]), "in": (same, Pair(1, 2), Pair("x", 2)), "summed": Summed(1, 2), "from-keys": [Summed(5, 5.5)],
    "named": Named(5, 5.5), "node": Task("node", inc, TaskRef("y")), "data": DataNode("data", "x"), "ref": TaskRef("y"), "future": Elsewhere(),
    "late": (same, Elsewhere(), [TaskRef("y")]), "item": (operator.getitem, "list", 0), "bool": (same, True), b"bytes": (same, b"bytes"), "nothing": (same,),
    "subclass": collections.UserList([1]), "to-node": Alias("to-node", "y")}


def test_graphs_of_tuples_mean_what_they_mean_to_dask() -> None:
    for key in TUPLES:
        want = dask.get(TUPLES, key)
        got = get_sync(TUPLES, key)
        assert got == want and type(got) is type(want), key
    nodes = _nodes.nodes_of(TUPLES)
    assert nodes.keys() == TUPLES.keys() and all(isinstance(n, GraphNode) for n in nodes.values())
    assert all(n.key == k for k, n in nodes.items())
    theirs = importlib.import_module("dask._task_spec").convert_legacy_graph(TUPLES)
    assert {k: n.dependencies for k, n in nodes.items()} == {k: n.dependencies for k, n in theirs.items()}


def test_graphs_of_tuples_run_on_the_cluster(node: Any) -> None:
    keys = [k for k in TUPLES if k != "f"]
    assert get(TUPLES, keys) == tuple(get_sync(TUPLES, keys))


def test_a_key_that_stands_for_itself_is_not_in_the_graph() -> None:
    assert _nodes.nodes_of({"a": "a", "b": Alias("b"), "c": 1}).keys() == {"c"}
    with pytest.raises(KeyError, match="'a'"):
        get_sync({"a": "a"}, "a")


def test_a_value_without_references_stays_the_object_it_is() -> None:
    values = [1, ["a"], {"b": 2}]
    assert _nodes.nodes_of({"v": values})["v"].value is values
