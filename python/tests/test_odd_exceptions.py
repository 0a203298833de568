"""Whatever a task raises is what its caller gets, or an error that says why not; no call is left without an end, and no worker dies of it."""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import gc
import os
import pickle
import sys
import threading
import weakref
from typing import Any, Callable

import cloudpickle
import numpy as np
import pytest
from cluster import cluster, node  # noqa: F401
from waiting import PATIENCE

import mobula
from mobula import exceptions
from mobula._exception_parts import settable, stems
from mobula.exceptions import PythonError, TaskError

cloudpickle.register_pickle_by_value(sys.modules[__name__])


class NoText(Exception):
    def __str__(self) -> str:
        return None  # type: ignore[return-value]


class RaisesForText(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


class ExitsForText(Exception):
    def __str__(self) -> str:
        raise SystemExit(3)


class Endless(Exception):
    def __str__(self) -> str:
        return str(self)


class Formatted(Exception):
    def __str__(self) -> str:
        class Text(str):
            def __format__(self, spec: str) -> str:
                raise RuntimeError("no format")

        return Text("fine")


@dataclasses.dataclass(frozen=True)
class Frozen(Exception):
    code: int


class NoNewFields(Exception):
    __slots__ = ()

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(name)


class ExitsForPickle(Exception):
    def __reduce__(self) -> Any:
        raise SystemExit(4)


class NoArgs(Exception):
    @property
    def args(self) -> Any:  # type: ignore[override]
        raise ValueError("no args")


class NoNotes(Exception):
    @property
    def __notes__(self) -> Any:
        raise SystemExit(5)


class NoAttributes(Exception):
    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(f"no {name}")


def nameless() -> Exception:
    class Meta(type):
        def __getattribute__(cls, name: str) -> Any:
            if name in ("__name__", "__qualname__", "__module__"):
                raise RuntimeError("no name")
            return type.__getattribute__(cls, name)

    class Nameless(Exception, metaclass=Meta):
        pass

    return Nameless()


def group() -> Exception:
    return ExceptionGroup("group", [NoText(), RaisesForText()])


def caused() -> Exception:
    x = ValueError("x")
    x.__cause__ = RaisesForText()
    return x


def surrogate() -> Exception:
    return ValueError("\udc80")


def frozen() -> Exception:
    return Frozen(3)


ODD: list[tuple[Callable[[], Exception], type[BaseException]]] = [
    (NoText, NoText), (RaisesForText, RaisesForText), (ExitsForText, ExitsForText), (Endless, Endless), (Formatted, Formatted), (frozen, Frozen),
    (NoNewFields, NoNewFields), (ExitsForPickle, ExitsForPickle), (NoArgs, NoArgs), (NoNotes, NoNotes), (NoAttributes, PythonError),
    (nameless, PythonError), (group, ExceptionGroup), (caused, ValueError), (surrogate, ValueError)]
each = pytest.mark.parametrize(("make", "expected"), ODD, ids=[make.__name__ for make, _ in ODD])


@mobula.remote(max_retries=0)
def task(make: Callable[[], Exception]) -> None:
    raise make()


@mobula.remote
class Sync:
    def fails(self, make: Callable[[], Exception]) -> None:
        raise make()

    def pid(self) -> int:
        return os.getpid()


@mobula.remote
class Async:
    async def fails(self, make: Callable[[], Exception]) -> None:
        raise make()

    async def pid(self) -> int:
        return os.getpid()


def cause_of(ref: Any) -> BaseException:
    with pytest.raises(TaskError) as e:
        mobula.get(ref, timeout=PATIENCE)
    assert e.value.cause is not None
    return e.value.cause


@each
def test_a_task_ends_with_what_it_raises(node: Any, make: Callable[[], Exception], expected: type[BaseException]) -> None:
    assert type(cause_of(task.remote(make))) is expected


@pytest.mark.parametrize("kind", ["sync", "threads", "async"])
@each
def test_a_call_ends_with_what_it_raises_and_the_actor_lives_on(node: Any, kind: str, make: Callable[[], Exception],
                                                                expected: type[BaseException]) -> None:
    a = Async.remote() if kind == "async" else Sync.options(max_concurrency=3 if kind == "threads" else 1).remote()
    before = mobula.get(a.pid.remote(), timeout=PATIENCE)
    assert type(cause_of(a.fails.remote(make))) is expected
    assert mobula.get(a.pid.remote(), timeout=PATIENCE) == before


@each
def test_a_future_ends_with_what_its_call_raises(node: Any, make: Callable[[], Exception], expected: type[BaseException]) -> None:
    def fails() -> None:
        raise make()

    with mobula.Executor(1) as pool:
        assert type(pool.submit(fails).exception(PATIENCE)) is expected


def test_a_frozen_exception_comes_out_of_dask_and_joblib(node: Any) -> None:
    import dask
    import joblib

    import mobula.dask
    from mobula.util.joblib import register_mobula

    def fails() -> None:
        raise Frozen(3)

    with pytest.raises(Frozen) as e:
        dask.delayed(fails)().compute(scheduler=mobula.dask.get)
    assert e.value.code == 3
    register_mobula()
    with joblib.parallel_config("mobula"), pytest.raises(Frozen) as e:
        joblib.Parallel()([joblib.delayed(fails)() for _ in range(2)])
    assert e.value.code == 3


class Slot(Exception):
    """Its pickle would give code the text."""

    __slots__ = ("code",)

    def __init__(self, code: Any) -> None:
        super().__init__("text")
        self.code = code


def test_fields_outside_of_the_dict(node: Any) -> None:
    assert cause_of(task.remote(lambda: Slot(5))).code == 5  # type: ignore[attr-defined]
    assert cause_of(task.remote(lambda: Slot(np.arange(3)))).code.sum() == 3  # type: ignore[attr-defined]
    assert cause_of(task.remote(lambda: AttributeError("text", name="name"))).name == "name"  # type: ignore[attr-defined]


def no_memory() -> None:
    raise MemoryError("no room")


def no_memory_for_an_array() -> None:
    np.empty(1 << 59)


@pytest.mark.parametrize("f", [no_memory, no_memory_for_an_array])
def test_an_error_of_memory_is_caught_by_its_type(node: Any, f: Callable[[], None]) -> None:
    with pytest.raises(MemoryError) as e:
        mobula.get(mobula.remote(max_retries=0)(f).remote(), timeout=PATIENCE)
    assert isinstance(e.value, TaskError) and isinstance(pickle.loads(pickle.dumps(e.value)), MemoryError)


class Keyword(Exception):
    def __init__(self, *, code: int) -> None:
        super().__init__("text")
        self.code = code


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, TaskError.again, lambda x: pickle.loads(pickle.dumps(x))])
def test_an_error_can_be_copied(node: Any, copied: Callable[[Any], Any]) -> None:
    for make in (lambda: Keyword(code=3), lambda: SystemExit(3)):
        with pytest.raises(TaskError) as e:
            mobula.get(task.remote(make), timeout=PATIENCE)
        x, y = e.value, copied(e.value)
        assert y is not x and type(y) is type(x) and str(y) == str(x) and "Traceback" in str(y)
        assert type(y.cause) is type(x.cause) and vars(y.cause) == vars(x.cause) and y.args == x.args and y.task == x.task


class Locked(Exception):
    """Cannot be pickled, but for its text, its number and what it stems from."""

    def __init__(self, n: int, inner: Any = None) -> None:
        super().__init__(n)
        self.n, self.inner, self.lock = n, inner, threading.Lock()


class Unreadable(Exception):
    """Cannot be pickled at all."""

    def __reduce__(self) -> Any:
        raise RuntimeError("no pickle")

    @property
    def args(self) -> Any:  # type: ignore[override]
        raise RuntimeError("no args")


def test_a_group_keeps_its_exceptions_without_what_cannot_be_pickled(node: Any) -> None:
    def fails() -> None:
        raise ExceptionGroup("outer", [ValueError(1), ExceptionGroup("inner", [Locked(2), Unreadable()]), Locked(3, Locked(4))])

    seen = set()
    try:
        mobula.get(mobula.remote(max_retries=0)(fails).remote(), timeout=PATIENCE)
    except* Locked as g:
        seen.add(Locked)
        (inner,), last = g.exceptions[0].exceptions, g.exceptions[1]  # type: ignore[attr-defined]
        assert inner.n == 2 and not hasattr(inner, "lock") and last.n == 3 and last.inner.n == 4  # type: ignore[attr-defined]
    except* ValueError as g:
        seen.add(ValueError)
        assert g.exceptions[0].args == (1,)
    except* PythonError:
        seen.add(PythonError)
    assert seen == {Locked, ValueError, PythonError}


def test_a_task_group_of_an_actor(node: Any) -> None:
    @mobula.remote
    class Groups:
        async def fails(self) -> None:
            async def fail(n: int) -> None:
                raise Locked(n)

            async with asyncio.TaskGroup() as g:
                for n in range(3):
                    g.create_task(fail(n))

    try:
        mobula.get(Groups.remote().fails.remote(), timeout=PATIENCE)
        pytest.fail("no error")
    except* Locked as g:
        assert [x.n for x in g.exceptions] == [0, 1, 2]  # type: ignore[attr-defined]


def test_exceptions_that_hold_one_another(node: Any) -> None:
    def fails(deep: int) -> None:
        x = Locked(0)
        for n in range(1, deep):
            x = Locked(n, [x, x])
        x.inner[0].inner.append(x)
        raise x

    with pytest.raises(Locked) as e:
        mobula.get(mobula.remote(max_retries=0)(fails).remote(40), timeout=PATIENCE)  # 2**40 trials, if each were made anew
    assert e.value.n == 39


def test_an_exception_that_libraries_may_set_fields_of() -> None:
    plain, x = ValueError("x"), Frozen(3)
    assert settable(plain) is plain
    x_cause = KeyError("k")
    stems(x, x_cause)
    y = settable(x)
    y.__traceback__ = None
    assert isinstance(y, Frozen) and y.code == 3 and str(y) == str(x) and y.__cause__ is x_cause
    assert type(pickle.loads(cloudpickle.dumps(y))) is Frozen


def test_classes_of_exceptions_are_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """A task that defines the class of its exception gives its caller a new class each time."""
    monkeypatch.setattr(exceptions, "_MOST_COMBINED", 20, raising=False)
    monkeypatch.setattr(exceptions, "_combined", {})

    def classes(n: int) -> list[weakref.ref[type[Exception]]]:
        made = [type(f"Raised{i}", (ValueError,), {}) for i in range(n)]
        for cls in made:
            x = exceptions.task_error(cls(1), "", "failed")
            assert isinstance(x, cls) and isinstance(x, TaskError)
        return [weakref.ref(cls) for cls in made]

    seen = classes(200)
    gc.collect()
    assert sum(cls() is not None for cls in seen) <= 20
