"""Objects that the functions of a Dask graph refer to live as long as the graph runs. A worker has imported Dask before: Dask keeps the frames that have
imported it, where it misses a package."""

from __future__ import annotations

import functools
import gc
import sys
from pathlib import Path
from typing import Any, Callable, Iterator

import cloudpickle
import dask
import pytest
from cluster import objects
from waiting import until

import mobula
from mobula import _functions, _runtime
from mobula.dask import get as get_graph

cloudpickle.register_pickle_by_value(sys.modules[__name__])


@pytest.fixture(scope="module")
def node(binary: str) -> Iterator[Any]:
    with mobula.init(num_cpus=2, object_store_memory=64 << 20) as c:
        yield c


@pytest.fixture
def clean(node: Any) -> Iterator[Any]:
    """The module's node, which has no object when the test is over."""
    yield node
    until(lambda: gc.collect() is not None and not objects())


def closure() -> Callable[..., Any]:
    ref = mobula.put("captured")
    return lambda *args: [mobula.get(ref), *args]


class Large:
    """Cannot be imported by workers."""


def test_a_function(clean: Any) -> None:
    graph: dict[str, Any] = {"a": (closure(),), "b": (closure(), "a"), "c": (lambda x, y: [x, y], "a", "b"), "d": (functools.partial(closure(), 1),)}
    assert get_graph(graph, ["c", "d"]) == ([["captured"], ["captured", ["captured"]]], ["captured", 1])


def test_a_delayed_function(clean: Any) -> None:
    made = [dask.delayed(closure(), pure=False)(i) for i in range(8)]
    got = dask.delayed(sum)([m[1] for m in made])
    del made
    gc.collect()
    assert got.compute(scheduler=get_graph) == 28


@pytest.mark.parametrize("beside", [0, Large])  # with the class the task is pickled by value
def test_the_same_object_as_an_argument(clean: Any, beside: Any) -> None:
    """It stays a reference in the function, and its value is the argument."""
    ref = mobula.put("captured")

    def f(x: Any, beside: Any) -> Any:
        return mobula.get(ref), x

    assert get_graph({"a": (f, ref, beside), "b": (f, "a", beside)}, ["a", "b"]) == (("captured", "captured"), ("captured", ("captured", "captured")))


def retried() -> Any:
    """A type of exceptions whose check refers to an object."""
    ref = mobula.put([OSError])

    class Meta(type):
        def __instancecheck__(cls, x: Any) -> bool:
            return isinstance(x, mobula.get(ref)[0])

    class Retried(Exception, metaclass=Meta):
        pass

    return Retried


def test_types_of_exceptions(clean: Any, tmp_path: Any) -> None:
    path = tmp_path / "attempts"

    def f() -> Any:
        if path.exists():
            return 1
        path.touch()
        raise OSError

    with dask.annotate(ray_remote_args={"max_retries": 2, "retry_exceptions": [retried()]}):
        got = dask.delayed(f, pure=False)()
    assert got.compute(scheduler=get_graph, optimize_graph=False) == 1


def test_a_job_with_many_lists_of_types_keeps_few_files(clean: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def f(x: int, path: Any, what: Any) -> int:
        if path.exists():
            return x
        path.touch()
        raise what

    assert dask.delayed(f)(1, tmp_path, OSError).compute(scheduler=get_graph) == 1  # the job has its files
    folder = Path(_runtime.client().welcome.job_dir) / "functions"
    most = len(list(folder.iterdir())) + 3
    monkeypatch.setattr(_functions, "MOST_FILES", most)
    for i in range(20):
        cls = type(f"Retried{i}", (Exception,), {})
        with dask.annotate(ray_remote_args={"max_retries": 2, "retry_exceptions": [cls]}):
            parts = [dask.delayed(f, pure=False)(j, tmp_path / f"{i} {j}", cls) for j in range(3)]
            large = dask.delayed(f, pure=False)(Large(), tmp_path / f"{i} large", cls)
        *got, big = dask.compute(*parts, large, scheduler=get_graph, optimize_graph=False)
        assert got == [0, 1, 2] and type(big) is Large
    assert len(list(folder.iterdir())) <= most
    cls = type("Retried", (Exception,), {})
    with dask.annotate(ray_remote_args={"max_retries": 2, "retry_exceptions": [cls]}), pytest.raises(ValueError):
        dask.delayed(f, pure=False)(0, tmp_path / "other", ValueError).compute(scheduler=get_graph, optimize_graph=False)
    with dask.annotate(ray_remote_args={"max_retries": 2, "retry_exceptions": [cls]}), dask.annotate(retries=1):  # retries overrides it
        got = dask.delayed(f, pure=False)(0, tmp_path / "retries", ValueError)
    assert got.compute(scheduler=get_graph, optimize_graph=False) == 0


def test_large_data_of_a_function(clean: Any) -> None:
    data = list(range(200_000))
    assert get_graph({"a": (lambda i: data[i], 7), "b": (lambda i: data[i], "a")}, "b") == 7
