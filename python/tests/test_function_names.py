"""Names of functions, which may have any characters, and the data that is bound to a function, which is sent once."""

from __future__ import annotations

import functools
import gc
import sys
from typing import Any, Callable, Iterator

import cloudpickle
import numpy as np
import pytest
from cluster import cluster, get, node, objects, until  # noqa: F401
from waiting import PATIENCE

import mobula
import mobula.distributed
from mobula import _functions, _options, _stored

cloudpickle.register_pickle_by_value(sys.modules[__name__])


class Callee:
    def __init__(self, data: Any) -> None:
        self.data = data

    def __repr__(self) -> str:
        raise AssertionError("a name was made of a repr")

    def __call__(self, i: int = 0) -> Any:
        return len(self.data) + i


def odd(name: Any) -> Any:
    def f() -> str:
        return "odd"

    f.__qualname__ = name
    return f


NAMES = ["a:b", "py:a:b", ":", "a:" + "0" * 64, "a+", "", "a b\n", "\udc80", "ü", "n" * 100_000]


@pytest.mark.parametrize("target, name", [
    (functools.partial(str, ":"), "builtins.str"),
    (functools.partial(functools.partial(Callee([1]), 2)), f"{__name__}.Callee"),
    (Callee([1]), f"{__name__}.Callee"),
    (Callee([1]).__call__, f"{__name__}.Callee.__call__"),
    (functools.partial(np.add, 1), "numpy.add"),
    (odd("\udc80:"), f"{__name__}.?:"),
])
def test_what_a_callable_is_called(target: Any, name: str) -> None:
    assert _functions.name_of(target) == name


@pytest.mark.parametrize("name", NAMES)
def test_names_are_read_as_they_are_written(name: str) -> None:
    made = _functions.name_of(odd(name))
    for sha in ("0" * 64, "0"):
        for stored in ("", _functions.STORED):
            func = f"py:{made}:{sha}{stored}"
            assert _functions.split_name(func) == (made, sha) and _functions.shown(func) == made and not _functions.by_name(func)
            assert _options.call(func, {}).label == made


@pytest.mark.parametrize("name", NAMES)
def test_functions_of_any_name(node: Any, name: str) -> None:
    f = mobula.remote(odd(name))
    assert get([f.remote(), f.remote()]) == ["odd"] * 2
    with mobula.Executor(max_workers=1) as e:
        assert e.submit(odd(name)).result(timeout=PATIENCE) == "odd"


def test_partials_and_instances(node: Any) -> None:
    assert get(mobula.remote(functools.partial(str, ":")).remote()) == ":"
    assert get(mobula.remote(Callee([1, 2])).remote(3)) == 5
    assert get(mobula.remote(functools.partial(Callee([1]), 2)).remote()) == 3


def test_actors_of_any_name(node: Any) -> None:
    class Actor:
        def say(self) -> str:
            return "said"

    Actor.__qualname__ = "an:odd.name"
    setattr(Actor, "a.b", Actor.say)
    setattr(Actor, "a:b", Actor.say)
    cls = mobula.remote(Actor)
    a = cls.options(name="x:y").remote()
    b = mobula.get_actor("x:y")
    assert get([getattr(x, name).remote() for x in (a, b) for name in ("say", "a:b")]) == ["said"] * 4
    assert get(getattr(a, "a.b").remote()) == "said"
    with pytest.raises(mobula.ActorDiedError, match="an:odd.name"):
        get(cls.remote(1).say.remote())


# ---- data

N = 200_000


@pytest.fixture
def clean(node: Any) -> Iterator[Any]:
    yield node
    until(lambda: gc.collect() is not None and not objects())


@pytest.fixture
def sent(monkeypatch: Any) -> list[int]:
    """The sizes of the objects that this process has put into the store."""
    sizes: list[int] = []
    c = mobula._runtime.client()  # type: ignore[attr-defined]
    large = c.putter.put_large

    def counted(id: bytes, attempt: int, task: bytes, meta: bytes, size: int, *args: Any, **kwargs: Any) -> None:
        sizes.append(size)
        large(id, attempt, task, meta, size, *args, **kwargs)

    monkeypatch.setattr(c.putter, "put_large", counted)
    return sizes


def bound(kind: str) -> Callable[..., Any]:
    data = list(range(N))
    if kind == "partial":
        return functools.partial(lambda data, i=0: len(data) + i, data)
    if kind == "instance":
        return Callee(data)
    if kind == "method":
        return Callee(data).__call__
    return lambda i=0: len(data) + i


@pytest.mark.parametrize("kind", ["partial", "instance", "method", "closure"])
def test_bound_data_is_sent_once(clean: Any, sent: list[int], kind: str) -> None:
    f = mobula.remote(bound(kind))
    spec = len(_functions.name_of(f.__wrapped__))
    assert get([f.remote(i) for i in range(8)]) == [N + i for i in range(8)]
    assert get(f.options(name="other").remote(8)) == N + 8
    assert len(sent) == 1 and sent[0] > _stored.LARGE and spec < 200
    with mobula.Executor(max_workers=2) as e:
        assert list(e.map(bound(kind), range(4))) == [N + i for i in range(4)]
        assert list(e.map(bound(kind), range(4), chunksize=2)) == [N + i for i in range(4)]
    assert len(sent) == 3
    with mobula.distributed.Client() as c:
        assert c.gather(c.map(bound(kind), range(4), pure=False)) == [N + i for i in range(4)]
    assert len(sent) == 4


def test_a_functions_arrays_are_its_own(clean: Any, sent: list[int]) -> None:
    array = np.zeros(N)

    @mobula.remote
    def f() -> Any:
        array[0] += 1  # as in a function of any size
        return array.flags.writeable

    assert get([f.remote() for _ in range(4)]) == [True] * 4 and len(sent) == 1


def test_an_initializers_data_is_sent_once(clean: Any, sent: list[int]) -> None:
    with mobula.Executor(max_workers=2, initializer=lambda data: len(data), initargs=(list(range(N)),)) as e:
        assert list(e.map(len, ["a", "bc", "def"])) == [1, 2, 3]
    assert len(sent) == 1
    del e


def test_a_function_over_a_new_connection(binary: str) -> None:
    global _again
    mobula.shutdown()
    data = list(range(N))
    f, g = mobula.remote(lambda: len(data)), mobula.remote(lambda: mobula.get(_again))
    for i in range(2):
        with mobula.init(num_cpus=1, object_store_memory=64 << 20):
            _again = mobula.put(i)
            assert get([f.remote(), g.remote()]) == [N, i]
    del _again


_again: Any = None
