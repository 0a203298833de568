"""Callbacks: Dask's own five, the six around tasks, and the progress bar."""

from __future__ import annotations

import operator
import os
import sys
from typing import Any

import cloudpickle
import pytest
from helpers_of_dask import add, inc, node, shipped  # noqa: F401

import mobula
from mobula import _runtime

dask = pytest.importorskip("dask")
np = pytest.importorskip("numpy")

from dask.callbacks import Callback  # noqa: E402

import mobula.dask  # noqa: E402
from mobula.dask import MobulaDaskCallback, ProgressBar, RayDaskCallback, get  # noqa: E402

cloudpickle.register_pickle_by_value(sys.modules[__name__])


def test_dasks_five_callbacks(node: Any) -> None:
    seen: list[Any] = []

    class Watch(Callback):  # type: ignore[misc]
        def _start(self, dsk: Any) -> None:
            seen.append(("start", len(dsk)))

        def _start_state(self, dsk: Any, state: Any) -> None:
            seen.append(("state", sorted(map(str, state["ready"]))))

        def _pretask(self, key: Any, dsk: Any, state: Any) -> None:
            assert key in state["running"]
            seen.append(("pre", key))

        def _posttask(self, key: Any, result: Any, dsk: Any, state: Any, worker: Any) -> None:
            assert key in state["finished"] and key not in state["running"]
            seen.append(("post", key, result))

        def _finish(self, dsk: Any, state: Any, failed: bool) -> None:
            seen.append(("finish", failed))

    dsk = {"x": 1, "y": (inc, "x"), "z": (inc, "y"), "alias": "z"}
    with Watch():
        assert get(dsk, "alias") == 3
    assert seen == [("start", 4), ("state", ["y"]), ("pre", "y"), ("post", "y", 2), ("pre", "z"), ("post", "z", 3), ("pre", "alias"),
                    ("post", "alias", 3), ("finish", False)]
    seen.clear()
    with Watch(), pytest.raises(ZeroDivisionError):
        get({"a": (operator.truediv, 1, 0)}, "a")
    assert seen[-1] == ("finish", True)


def test_the_six_callbacks(node: Any) -> None:
    told = os.path.join(_runtime.client().welcome.job_dir, "told")
    seen: list[Any] = []

    class Cache(RayDaskCallback):
        def _ray_presubmit(self, task: Any, key: Any, deps: Any) -> Any:
            seen.append(("presubmit", key))
            return 40 if key == "y" else None

        def _ray_postsubmit(self, task: Any, key: Any, deps: Any, object_ref: Any) -> None:
            seen.append(("postsubmit", key, deps, mobula.get(object_ref)))

        def _ray_pretask(self, key: Any, object_refs: Any) -> Any:
            return key, object_refs

        def _ray_posttask(self, key: Any, result: Any, pre_state: Any) -> None:
            with open(told, "a") as f:
                f.write(f"{key} {result} {pre_state}\n")

        def _ray_postsubmit_all(self, object_refs: Any, dsk: Any) -> None:
            seen.append(("all", len(object_refs), len(dsk)))

        def _ray_finish(self, result: Any) -> None:
            seen.append(("finish", result))

    del seen[:]
    callback = Cache()
    callback._ray_pretask, callback._ray_posttask = _pre, _Post(told)  # type: ignore[method-assign,assignment]
    dsk = {"x": 1, "y": (inc, "x"), "z": (add, "y", 10)}
    with callback:
        assert get(dsk, "z") == 50
    assert seen == [("presubmit", "y"), ("presubmit", "z"), ("postsubmit", "z", [40], 50), ("all", 1, 3), ("finish", 50)]
    with open(told) as f:
        assert f.read() == "z 50 ('z', [40])\n"
    assert not MobulaDaskCallback.active


def _pre(key: Any, object_refs: Any) -> Any:
    return key, object_refs


class _Post:
    def __init__(self, path: str) -> None:
        self.path = path

    def __call__(self, key: Any, result: Any, pre_state: Any) -> None:
        with open(self.path, "a") as f:
            f.write(f"{key} {result} {pre_state}\n")


def test_tasks_that_run_as_one_are_watched_one_by_one(node: Any, shipped: Any) -> None:
    paths = [os.path.join(_runtime.client().welcome.job_dir, name) for name in ("first", "second")]
    with MobulaDaskCallback(pretask=_pre, posttask=_Post(paths[0])), MobulaDaskCallback(ray_posttask=_Post(paths[1])):
        assert get({"x": 1, "y": (inc, "x"), "z": (add, "y", 10)}, "z") == 12
    assert len(shipped[-1].chains) == 1
    for path, states in zip(paths, (("('y', [1])", "('z', [2])"), (None, None))):
        with open(path) as f:
            lines = f.read().splitlines()
        assert lines == [f"y 2 {states[0]}", f"z 12 {states[1]}"]


def test_callbacks_by_name_and_wrong_ones() -> None:
    ends: list[Any] = []
    MobulaDaskCallback(finish=ends.append), MobulaDaskCallback(ray_finish=ends.append)
    with pytest.raises(TypeError, match="no hook 'ray_middle'.*presubmit"):
        MobulaDaskCallback(ray_middle=print)


def test_progress_bar(node: Any, capsys: Any) -> None:
    with ProgressBar(desc="sums"):
        assert get({**{("a", i): (inc, i) for i in range(10)}, "s": (sum, [("a", i) for i in range(10)])}, "s") == 55
    err = capsys.readouterr().err
    assert "sums: 100%" in err and "11/11" in err
