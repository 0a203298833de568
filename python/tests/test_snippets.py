"""What the texts that Mobula comes from show of Dask on Ray, run here: the slides on data processing with Ray, and the article on memory
management in Dask on Ray.

Names, files and sizes are adapted: ray is mobula, what lay in S3 is made by the test, and a collection is compared with what NumPy or pandas
give. The one of Dask-ML is in suites/of_dask_ml.py: that package brings Dask's own cluster along, for whose client Dask then looks first.
"""

from __future__ import annotations

import gzip
import json
import os
import pathlib
import random
import subprocess
import sys
from typing import Any, Callable, Iterator

import cloudpickle
import pytest

import mobula
from mobula import _runtime

dask = pytest.importorskip("dask")
np = pytest.importorskip("numpy")
pd = pytest.importorskip("pandas")
dd = pytest.importorskip("dask.dataframe")

import dask.array as da  # noqa: E402
import dask.bag as db  # noqa: E402
from waiting import PATIENCE  # noqa: E402

import mobula.dask  # noqa: E402
from mobula.dask import RayDaskCallback, _ship  # noqa: E402
from mobula.dask import get as ray_dask_get  # noqa: E402

cloudpickle.register_pickle_by_value(sys.modules[__name__])


@pytest.fixture(scope="module")
def ray(binary: str) -> Iterator[Any]:
    with mobula.init(num_cpus=2, object_store_memory=32 << 20), dask.config.set(scheduler=ray_dask_get):
        yield mobula


@pytest.fixture
def shipped() -> Iterator[list[_ship.Shipped]]:
    """The graphs that went to the node."""
    seen: list[_ship.Shipped] = []
    _ship.observers.append(seen.append)
    yield seen
    _ship.observers.remove(seen.append)


@pytest.fixture
def ran(shipped: list[_ship.Shipped]) -> Callable[[], int]:
    """How many tasks workers ran for these."""
    return lambda: sum(s.graph.summary()["ran"] for s in shipped if s.graph is not None)  # type: ignore[index]


def inc(i: int) -> int:
    return i + 1


def add(a: Any, b: Any) -> Any:
    return a + b


# ---- the slides: functions and classes, tasks and actors


def test_functions_are_tasks_and_classes_actors(ray: Any, tmp_path: pathlib.Path) -> None:
    @ray.remote
    def read_array(file: Any) -> Any:
        return np.load(file)

    @ray.remote
    def add(a: Any, b: Any) -> Any:
        return np.add(a, b)

    @ray.remote
    class Counter:
        def __init__(self) -> None:
            self.value = 0

        def inc(self) -> int:
            self.value += 1
            return self.value

    file1, file2 = tmp_path / "1.npy", tmp_path / "2.npy"
    np.save(file1, np.arange(10))
    np.save(file2, np.ones(10))
    id1 = read_array.remote(file1)
    id2 = read_array.remote(file2)
    id = add.remote(id1, id2)
    assert ray.get(id).tolist() == list(range(1, 11))
    c = Counter.remote()
    id4 = c.inc.remote()
    id5 = c.inc.remote()
    assert ray.get([id4, id5]) == [1, 2]


def test_a_task_calls_a_task(ray: Any) -> None:
    @ray.remote
    def b() -> None:
        return

    @ray.remote
    def a(dep: Any) -> Any:
        z = b.remote()
        return z

    x = ray.put(np.zeros(100_000))
    y = a.remote(x)
    assert ray.get(ray.get(y)) is None


# ---- the slides: collections


def test_arrays(ray: Any, ran: Any, seed: int) -> None:
    x = da.random.default_rng(seed).random(size=(1000, 1000), chunks=(100, 100))
    got = (x + x.T - x.mean(axis=0)).compute()
    assert ran() > 200
    values = x.compute()
    np.testing.assert_allclose(got, values + values.T - values.mean(axis=0))


def test_dataframes(ray: Any, tmp_path: pathlib.Path) -> None:
    rng = np.random.default_rng(0)
    months = []
    for month in range(1, 5):
        months.append(pd.DataFrame({"account_id": rng.integers(0, 20, 500), "balance": rng.integers(-1000, 1000, 500)}))
        months[-1].to_csv(tmp_path / f"2018-{month:02}.csv", index=False)
    df = dd.read_csv(str(tmp_path / "2018-*.csv"))
    got = df.groupby(df.account_id).balance.sum().compute()
    pd.testing.assert_series_equal(got.sort_index(), pd.concat(months).groupby("account_id").balance.sum())


def test_bags(ray: Any, tmp_path: pathlib.Path) -> None:
    names = [random.Random(i).choice(["Ada", "Alan", "Barbara", "Edsger", "Grace"]) for i in range(400)]
    for month in range(4):
        with gzip.open(tmp_path / f"2015-{month + 1:02}.json.gz", "wt") as f:
            f.writelines(json.dumps({"name": name}) + "\n" for name in names[month::4])
    b = db.read_text(str(tmp_path / "2015-*.json.gz")).map(json.loads)
    top = b.pluck("name").frequencies().topk(10, lambda pair: pair[1]).compute()
    assert sorted(top) == sorted((name, names.count(name)) for name in set(names))
    assert [n for _, n in top] == sorted((n for _, n in top), reverse=True)


def test_the_graph_as_a_dictionary(ray: Any, ran: Any) -> None:
    x = 1
    y = inc(x)
    z = add(y, 10)
    d = {"x": 1, "y": (inc, "x"), "z": (add, "y", 10)}
    assert ray_dask_get(d, ["x", "y", "z"]) == (x, y, z)
    assert ran() == 2


def test_rayify_makes_a_graph_of_remote_calls(ray: Any) -> None:
    def rayify(task: Any) -> Any:
        if not dask.core.istask(task):
            return task
        remote_func = ray.remote(task[0])
        return (lambda *args: remote_func.remote(*args),) + task[1:]

    dsk = {"x": 1, "y": (inc, "x"), "z": (add, "y", 10)}
    ray_dsk = {key: rayify(task) for key, task in dsk.items()}
    ref = dask.get(ray_dsk, "z")
    assert type(ref) is mobula.ObjectRef and ray.get(ref) == 12


# ---- the slides: Dask on Ray


API = """
import dask, dask.array, mobula as ray
from mobula.dask import get as ray_dask_get

some_dask_collection = dask.array.arange(100, chunks=10).sum()

ray.init(num_cpus=1, object_store_memory=32 << 20)
dask.config.set(scheduler=ray_dask_get)
result = some_dask_collection.compute()
print(result, ray.status()["jobs"][0]["finished"] >= 10)
"""


def test_the_api(binary: str) -> None:
    done = subprocess.run([sys.executable, "-c", API], capture_output=True, text=True, timeout=PATIENCE)
    assert done.stdout == "4950 True\n", done.stderr


def test_the_example(ray: Any, ran: Any, seed: int) -> None:
    frame = pd.DataFrame(np.random.default_rng(seed).integers(0, 100, size=(1024, 2)), columns=["age", "grade"])
    df = dd.from_pandas(frame, npartitions=2)
    got = df.groupby(["age"]).mean().compute()
    pd.testing.assert_frame_equal(got.sort_index(), frame.groupby(["age"]).mean())
    assert ran() >= 3


@pytest.mark.parametrize("branches", [float("inf"), 4])
def test_the_custom_shuffle(ray: Any, shipped: list[_ship.Shipped], branches: float, seed: int) -> None:
    frame = pd.DataFrame(np.random.default_rng(seed).integers(0, 100, size=(4096, 2)), columns=["age", "grade"])
    with mobula.dask.enable(use_shuffle_optimization=True):
        df = dd.from_pandas(frame, npartitions=20)
        got = df.set_index(["age"], shuffle="tasks", max_branch=branches).head(10, npartitions=-1)
        whole = df.set_index("age", shuffle_method="tasks", max_branch=branches).compute()
    assert list(got.index) == sorted(frame.age)[:10]
    assert list(whole.index) == sorted(frame.age)
    assert sorted(zip(whole.index, whole.grade)) == sorted(zip(frame.age, frame.grade))
    last = shipped[-1]
    splits = [last.plan.split[chain[-1]] for chain in last.chains if chain[-1] in last.plan.split]
    if branches == float("inf"):  # a split gives all parts at once
        assert len(splits) == 20 and all(len(parts) == 20 for parts in splits)
    else:  # in stages, no part more than the branches
        assert len(splits) > 20 and all(len(parts) <= branches + 1 for parts in splits)


class Told(RayDaskCallback):
    """Writes down what it hears of, in the driver and in workers."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self.path = path

    def tell(self, *what: Any) -> None:
        with open(self.path, "a") as f:
            f.write(json.dumps([os.getpid(), *map(str, what)]) + "\n")

    def _ray_presubmit(self, task: Any, key: Any, deps: Any) -> Any:
        self.tell("presubmit", key)

    def _ray_postsubmit(self, task: Any, key: Any, deps: Any, object_ref: Any) -> None:
        self.tell("postsubmit", key, type(object_ref).__name__)

    def _ray_pretask(self, key: Any, object_refs: Any) -> Any:
        self.tell("pretask", key)
        return f"before {key}"

    def _ray_posttask(self, key: Any, result: Any, pre_state: Any) -> None:
        self.tell("posttask", key, result, pre_state)

    def _ray_postsubmit_all(self, object_refs: Any, dsk: Any) -> None:
        self.tell("postsubmit_all", len(object_refs))

    def _ray_finish(self, result: Any) -> None:
        self.tell("finish", result)


def test_the_six_callbacks(ray: Any, tmp_path: pathlib.Path) -> None:
    told = Told(str(tmp_path / "told"))
    with told:
        assert ray_dask_get({"x": 1, "y": (inc, "x"), "z": (add, "y", 10)}, "z") == 12
    lines = [json.loads(line) for line in (tmp_path / "told").read_text().splitlines()]
    here = [line[1:] for line in lines if line[0] == os.getpid()]
    there = [line[1:] for line in lines if line[0] != os.getpid()]
    assert here == [["presubmit", "y"], ["presubmit", "z"], ["postsubmit", "y", "ObjectRef"], ["postsubmit", "z", "ObjectRef"],
                    ["postsubmit_all", "1"], ["finish", "12"]]
    assert there == [["pretask", "y"], ["posttask", "y", "2", "before y"], ["pretask", "z"], ["posttask", "z", "12", "before z"]]


def test_persist_puts_references_into_the_graph(ray: Any, shipped: list[_ship.Shipped]) -> None:
    d_arr = da.ones((100, 100), chunks=(50, 50))
    d_arr_p = d_arr.persist()
    graph = dict(d_arr_p.__dask_graph__())
    assert len(graph) == 4 and all(type(value) is mobula.ObjectRef for value in graph.values())
    assert "ObjectRef(" in str(graph)
    made = len(shipped)
    assert d_arr_p.sum().compute() == 10_000
    assert d_arr_p.min().compute() == 1
    assert d_arr_p.max().compute() == 1
    for s in shipped[made:]:  # nothing of what was persisted runs again
        assert s.graph is not None and not set(s.plan.tasks) & set(graph)


# ---- the article: a broadcast, with the GIL and without, and a sort


def test_broadcast(ray: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def total(array: Any, i: int) -> float:
        return float(array.sum())

    def picked(array: Any, i: int) -> float:
        pick = random.Random(i)
        return sum(float(array[pick.randrange(len(array))]) for _ in range(10_000))

    puts: list[int] = []
    client = _runtime.client()
    put = client.putter.put_large
    monkeypatch.setattr(client.putter, "put_large", lambda *a, **k: (puts.append(a[4]), put(*a, **k))[1])
    array = np.ones(1_000_000)
    for task, want in (total, 1_000_000), (picked, 10_000):
        assert ray_dask_get({"array": array, **{("t", i): (task, "array", i) for i in range(100)}}, [("t", i) for i in range(100)]) == (want,) * 100
    assert [n for n in puts if n >= array.nbytes] == [array.nbytes] * 2  # once each time, and not once a task


@pytest.mark.parametrize("npartitions", [10, 40])
def test_sort_of_one_column(ray: Any, npartitions: int) -> None:
    rows = (48 << 20) // 8 // npartitions  # one and a half times the store

    def made(i: int) -> Any:
        return pd.DataFrame({"key": np.random.default_rng(i).integers(0, 1 << 40, rows)})

    def ordered(part: Any) -> Any:
        keys = part.index.to_numpy()
        return pd.DataFrame({"rows": [len(keys)], "ok": [bool((keys[1:] >= keys[:-1]).all())], "first": keys[:1], "last": keys[-1:]})

    frame = dd.from_map(made, range(npartitions), meta=made(0)[:0])
    with mobula.dask.enable():
        got = frame.set_index("key", max_branch=float("inf")).map_partitions(ordered, meta=ordered(made(0)[:1].set_index("key"))).compute()
    assert got.rows.sum() == rows * npartitions and got.ok.all()
    assert (got["first"].to_numpy()[1:] >= got["last"].to_numpy()[:-1]).all()
