"""The six callbacks around tasks, with Mobula's names and Dask-on-Ray's: when each is called, with which arguments, and how often."""

from __future__ import annotations

import operator
import os
import sys
from pathlib import Path
from typing import Any, Callable, Iterator

import cloudpickle
import pytest
from waiting import until

import mobula

dask = pytest.importorskip("dask")

from dask.callbacks import Callback  # noqa: E402
from dask.delayed import delayed  # noqa: E402

import mobula.dask  # noqa: E402
from mobula.dask import MobulaDaskCallback, RayDaskCallback, get  # noqa: E402
from mobula.dask._get import references  # noqa: E402

cloudpickle.register_pickle_by_value(sys.modules[__name__])

FAMILIES = {"mobula": (MobulaDaskCallback, "_"), "ray": (RayDaskCallback, "_ray_")}


@pytest.fixture(scope="module")
def node(binary: str) -> Iterator[Any]:
    with mobula.init(num_cpus=2, object_store_memory=64 << 20) as c:
        yield c


@pytest.fixture(params=FAMILIES)
def derived(request: Any) -> Callable[..., Any]:
    """Makes a class of callbacks: one of ours, or one as users wrote them for Dask-on-Ray."""
    base, prefix = FAMILIES[request.param]
    return lambda **hooks: type("Watch", (base,), {prefix + name: f for name, f in hooks.items()})


@mobula.remote
class Ledger:
    """Hears from the driver and from workers."""

    def __init__(self) -> None:
        self.lines: list[Any] = []

    def note(self, *what: Any) -> int:
        self.lines.append(what)
        return len(self.lines)

    def read(self) -> list[Any]:
        return self.lines


@pytest.fixture
def ledger(node: Any) -> Any:
    return Ledger.remote()  # type: ignore[attr-defined]


def written(ledger: Any) -> list[Any]:
    lines: list[Any] = mobula.get(ledger.read.remote())
    return lines


def five() -> Any:
    return delayed(operator.add)(2, 3)


def never() -> Any:
    raise AssertionError("this task was not to run")


def waiting(path: str) -> str:
    """Waits for a file."""
    until(lambda: os.path.exists(path), "open")
    return "open"


# ---- the eight that Dask-on-Ray tests


@pytest.mark.parametrize("base, active", [(MobulaDaskCallback, "active"), (RayDaskCallback, "active"), (RayDaskCallback, "ray_active")])
def test_callbacks_are_active_in_their_block_only(base: Any, active: str) -> None:
    assert not getattr(base, active)
    with base() as outer:
        assert list(getattr(base, active)) == [outer]
        with base():
            assert len(getattr(base, active)) == 2
        assert list(getattr(base, active)) == [outer]
    assert not getattr(base, active)
    with pytest.raises(ZeroDivisionError), base():
        1 / 0
    assert not getattr(base, active)
    outer.register()
    assert getattr(base, active)
    outer.unregister()
    assert not getattr(base, active) and not Callback.active


def test_what_presubmit_gives_is_the_result(node: Any, derived: Any) -> None:
    after: list[Any] = []
    for value in (0, "", 7):
        watch = derived(presubmit=lambda self, task, key, deps: value, postsubmit=lambda self, task, key, deps, object_ref: after.append(key))
        with watch():
            assert delayed(never)().compute(scheduler=get) == value
    assert not after


def test_each_presubmit_is_told_and_the_first_that_says_something_counts(node: Any, derived: Any) -> None:
    told: list[str] = []

    def saying(name: str, value: Any) -> Any:
        return derived(presubmit=lambda self, task, key, deps: (told.append(name), value)[1])()

    with saying("a", None), saying("b", 1), saying("c", 2):
        assert five().compute(scheduler=get) == 1
    assert told == ["a", "b", "c"]


def test_posttask_gets_what_pretask_gave(derived: Any, ledger: Any) -> None:
    def before(self: Any, key: Any, object_refs: Any) -> Any:
        return "before", key, list(object_refs), os.getpid()

    def after(self: Any, key: Any, result: Any, pre_state: Any) -> None:
        mobula.get(ledger.note.remote(key, result, pre_state, os.getpid()))

    with derived(pretask=before, posttask=after)():
        assert get({"x": 1, "y": (operator.add, "x", 2), "z": (operator.neg, "y")}, "z") == -3
    lines = written(ledger)
    assert [line[:2] for line in lines] == [("y", 3), ("z", -3)]  # each once
    for (key, _, state, pid), taken in zip(lines, ([1], [3])):
        assert state == ("before", key, taken, pid) and pid != os.getpid()


def test_an_error_of_posttask_is_the_tasks(node: Any, derived: Any) -> None:
    def after(self: Any, key: Any, result: Any, pre_state: Any) -> None:
        assert pre_state == "something else"

    with pytest.raises(AssertionError), derived(posttask=after)():
        five().compute(scheduler=get)
    assert five().compute(scheduler=get) == 5


def test_postsubmit_comes_after_each_task(derived: Any, ledger: Any) -> None:
    def submitted(self: Any, task: Any, key: Any, deps: Any, object_ref: Any) -> None:
        ledger.note.remote(task, key, deps, object_ref)

    z = five()
    with derived(postsubmit=submitted)():
        assert z.compute(scheduler=get) == 5
        ((task, key, deps, result),) = written(ledger)
        assert (task.func, key, deps, result) == (operator.add, z.key, [], 5)
        assert get({"a": (operator.neg, 1), "b": (operator.neg, "a")}, "b") == 1
    assert [line[1] for line in written(ledger)] == [z.key, "a", "b"]


def test_postsubmit_all_comes_once(derived: Any, ledger: Any) -> None:
    def submitted(self: Any, object_refs: Any, dsk: Any) -> None:
        ledger.note.remote(mobula.get(object_refs), sorted(dsk))

    with derived(postsubmit_all=submitted)():
        assert get({"a": (operator.neg, 1), "b": (operator.neg, "a"), "c": (operator.neg, "b")}, ["c", "a"]) == (-1, -1)
        assert written(ledger) == [([-1, -1], ["a", "b", "c"])]
        assert five().compute(scheduler=get) == 5
    assert len(written(ledger)) == 2


def test_finish_comes_once_with_the_result(derived: Any, ledger: Any) -> None:
    def finished(self: Any, result: Any) -> None:
        ledger.note.remote(result)

    with derived(finish=finished)():
        assert get({"a": (operator.add, 2, 3)}, ["a"]) == (5,)
        assert written(ledger) == [((5,),)]
        with pytest.raises(AssertionError):
            get({"a": (never,)}, "a")
    assert len(written(ledger)) == 1  # there is no result of what failed


def test_several_callbacks_are_each_told(derived: Any, ledger: Any) -> None:
    watch = derived(postsubmit=lambda self, task, key, deps, object_ref: ledger.note.remote(key))
    z = five()
    with watch(), watch(), watch() as last, last:  # the one that is there twice is told once
        assert z.compute(scheduler=get) == 5
    assert written(ledger) == [(z.key,)] * 3


def test_each_posttask_gets_its_own_pretasks_state(derived: Any, ledger: Any) -> None:
    def after(self: Any, key: Any, result: Any, pre_state: Any) -> None:
        mobula.get(ledger.note.remote(getattr(self, "name", None), pre_state))

    def named(name: str) -> Any:
        watch = derived(pretask=lambda self, key, object_refs: f"{key} {self.name}", posttask=after)()
        watch.name = name
        return watch

    alone, silent = derived(posttask=after)(), derived(pretask=lambda self, key, object_refs: "for nobody")()
    with named("first"), silent, alone, named("second"):
        assert get({"a": (operator.add, 2, 3)}, "a") == 5
    assert written(ledger) == [("first", "a first"), (None, None), ("second", "a second")]


# ---- by argument


@pytest.mark.parametrize("name", ["mobula_callbacks", "ray_callbacks"])
def test_callbacks_by_argument_are_there_instead_of_the_active_ones(node: Any, name: str) -> None:
    ends: dict[str, list[Any]] = {"ours": [], "rays": [], "tuple": [], "active": []}
    rays = RayDaskCallback(ray_finish=ends["rays"].append)
    several = [MobulaDaskCallback(finish=ends["ours"].append), rays._ray_callback, (None,) * 5 + (ends["tuple"].append,)]
    with RayDaskCallback(ray_finish=ends["active"].append) as active:
        assert get({"a": (operator.add, 2, 3)}, "a", **{name: several}) == 5
        assert ends == {"ours": [5], "rays": [5], "tuple": [5], "active": []}
        assert get({"a": (operator.add, 2, 3)}, "a", **{name: rays}) == 5 and ends["rays"][1:] == [5]
        assert get({"a": (operator.add, 2, 3)}, "a", **{name: []}) == 5
        assert not ends["active"] and RayDaskCallback.ray_active == [active]
        assert get({"a": (operator.add, 2, 3)}, "a", **{name: RayDaskCallback.ray_active}) == 5 and ends["active"] == [5]
    assert not RayDaskCallback.ray_active
    for wrong in ([print], [(None, None)], [Callback()]):
        with pytest.raises(TypeError, match=f"{name}.*mobula.dask"):
            get({"a": (operator.add, 2, 3)}, "a", **{name: wrong})


def test_callbacks_of_both_arguments(node: Any) -> None:
    ends: list[Any] = []
    ours, rays = MobulaDaskCallback(finish=lambda x: ends.append("ours")), RayDaskCallback(ray_finish=lambda x: ends.append("rays"))
    assert get({"a": (operator.add, 2, 3)}, "a", mobula_callbacks=ours, ray_callbacks=(rays,)) == 5
    assert ends == ["ours", "rays"]
    assert five().compute(scheduler=get, ray_callbacks=[rays]) == 5 and ends[2:] == ["rays"]


# ---- persist


def test_persist_calls_them_and_does_not_wait(node: Any, derived: Any, ledger: Any, tmp_path: Path) -> None:
    told: list[Any] = []
    watch = derived(
        presubmit=lambda self, task, key, deps: 20 if key == "b" else told.append(("presubmit", key)),
        postsubmit=lambda self, task, key, deps, object_ref: told.append(("postsubmit", key, mobula.get(object_ref))),
        pretask=lambda self, key, object_refs: key,
        posttask=lambda self, key, result, pre_state: mobula.get(ledger.note.remote(key, result, pre_state)),
        postsubmit_all=lambda self, object_refs, dsk: told.append(("all", len(object_refs), sorted(dsk))),
        finish=lambda self, result: told.append(("finish", mobula.get(list(result)))))
    dsk = {"a": (operator.add, 1, 2), "b": (never,), "c": (operator.add, "a", "b")}
    with watch():
        refs = references(dsk, ["c"])
    assert type(refs[0]) is mobula.ObjectRef and mobula.get(refs[0]) == 23
    assert told == [("presubmit", "a"), ("presubmit", "c"), ("postsubmit", "a", 3), ("postsubmit", "c", 23), ("all", 1, ["a", "b", "c"]), ("finish", [23])]
    assert written(ledger) == [("a", 3, "a"), ("c", 23, "c")]
    gate, ends = tmp_path / "gate", []
    kept = delayed(waiting)(str(gate)).persist(scheduler=get, mobula_callbacks=[MobulaDaskCallback(finish=ends.append)])
    assert len(ends) == 1 and type(ends[0][0]) is mobula.ObjectRef
    gate.touch()
    assert kept.compute(scheduler=get) == "open"


# ---- classes written for Dask-on-Ray


def test_hooks_of_ray_and_of_dask_in_one_class(node: Any) -> None:
    told: list[Any] = []

    class Both(RayDaskCallback):
        def __init__(self, start: Any) -> None:
            super().__init__(start=start, ray_postsubmit=lambda task, key, deps, object_ref: told.append(("submitted", key)))

        def _pretask(self, key: Any, dsk: Any, state: Any) -> None:
            told.append(("pretask", key))

        def _posttask(self, key: Any, result: Any, dsk: Any, state: Any, worker_id: Any) -> None:
            told.append(("posttask", key, result))

        def _finish(self, dsk: Any, state: Any, failed: bool) -> None:
            told.append(("over", failed))

        def _ray_finish(self, result: Any) -> None:
            super()._ray_finish(result)
            told.append(("finish", result))

    assert issubclass(RayDaskCallback, Callback)
    with Both(lambda dsk: told.append(("start", len(dsk)))):
        assert get({"a": (operator.add, 2, 3)}, "a") == 5
    assert told == [("start", 1), ("submitted", "a"), ("pretask", "a"), ("posttask", "a", 5), ("finish", 5), ("over", False)]
    assert not RayDaskCallback.ray_active and not Callback.active


def test_a_class_without_hooks_watches_nothing(node: Any) -> None:
    class Silent(RayDaskCallback):
        def __init__(self) -> None:  # as many do: without the base's
            self.name = "silent"

    with Silent() as silent:
        assert all(f is None for f in silent._ray_callback)
        assert silent._ray_pretask("key", []) is None
        assert five().compute(scheduler=get) == 5


def test_hooks_by_argument_of_the_class(node: Any) -> None:
    ends: list[Any] = []
    with RayDaskCallback(ray_presubmit=lambda task, key, deps: 3, ray_finish=ends.append):
        assert get({"a": (never,)}, "a") == 3
    assert ends == [3]
    with pytest.raises(TypeError, match="ray_middle"):
        RayDaskCallback(ray_middle=print)


def test_what_a_hook_computes_is_not_observed(node: Any, derived: Any) -> None:
    seen: list[Any] = []

    def finished(self: Any, result: Any) -> None:
        seen.append((result, five().compute(scheduler=get)))

    with derived(finish=finished)():
        assert get({"a": (operator.neg, 1)}, "a") == -1
        assert get({"a": (operator.neg, 2)}, "a") == -2  # and is on again
    assert seen == [(-1, 5), (-2, 5)]
