"""What type checkers know of calls. mypy checks this file with the package, and nothing runs it: a call that is wrong and that it does not
refuse leaves a comment unused, which is an error there."""

from __future__ import annotations

from typing import Any, Iterator, assert_type

import mobula
from mobula import ActorClass, ActorHandle, ObjectRef, ObjectRefGenerator, RemoteFunction


@mobula.remote
def add(a: int, b: int = 2) -> float:
    return a + b


@mobula.remote(num_cpus=2)
def named(a: float, *, b: str) -> str:
    return b


@mobula.remote
def total(*xs: int) -> int:
    return sum(xs)


@mobula.remote
def nothing() -> None:
    pass


@mobula.remote
def words(n: int) -> Iterator[str]:
    yield "x" * n


@mobula.remote(num_returns=2)
def pair(n: int) -> tuple[int, str]:
    return n, ""


class Counts:
    def __init__(self, start: int, *, step: int = 1) -> None:
        self.n = start

    @mobula.method(num_returns=1)
    def inc(self) -> int:
        return self.n


Counter = mobula.remote(Counts)
Limited = mobula.remote(max_restarts=1)(Counts)


def functions(i: ObjectRef[int], b: ObjectRef[bool], s: ObjectRef[str], many: list[ObjectRef[int]]) -> None:
    assert_type(add.remote(1), ObjectRef[float])
    assert_type(add.remote(1, b=2), ObjectRef[float])
    assert_type(add.options(name="x").remote(1), ObjectRef[float])
    assert_type(named.remote(1, b=""), ObjectRef[str])
    assert_type(total.remote(), ObjectRef[int])
    assert_type(total.remote(*range(20)), ObjectRef[int])
    assert_type(nothing.remote(), ObjectRef[None])
    add.remote()  # type: ignore[call-overload]
    add.remote("1")  # type: ignore[call-overload]
    add.remote(1, 2, 3)  # type: ignore[call-overload]
    add.remote(1, c=3)  # type: ignore[call-overload]
    named.remote(1, b=2)  # type: ignore[call-overload]
    named.remote(1)  # type: ignore[call-overload]
    total.remote("1")  # type: ignore[call-overload]
    nothing.remote(1)  # type: ignore[call-arg]

    # References in the place of values.
    assert_type(add.remote(i), ObjectRef[float])
    assert_type(add.remote(b, i), ObjectRef[float])
    assert_type(add.remote(1, i), ObjectRef[float])
    assert_type(add.remote(i, b=2), ObjectRef[float])
    assert_type(named.remote(i, b=""), ObjectRef[str])
    assert_type(total.remote(1, i, 2, i), ObjectRef[int])
    assert_type(total.remote(*many), ObjectRef[int])
    add.remote(s)  # type: ignore[arg-type]
    add.remote(i, s)  # type: ignore[arg-type]
    total.remote(i, s)  # type: ignore[arg-type]
    add.remote(many)  # type: ignore[call-overload]


def results(i: ObjectRef[int], s: ObjectRef[str]) -> None:
    assert_type(mobula.get(i), int)
    assert_type(mobula.get(add.remote(1), timeout=0.5), float)
    assert_type(mobula.get([total.remote(n) for n in range(3)]), list[int])
    assert_type(mobula.get([i, s]), list[Any])  # each has its own type
    assert_type(i.result(), int)
    assert_type(mobula.put("x"), ObjectRef[str])
    ready, rest = mobula.wait([i, i], num_returns=1)
    assert_type(ready, list[ObjectRef[int]])
    assert_type(mobula.get(rest), list[int])
    assert_type(mobula.wait([i, s])[0], list[ObjectRef[Any]])
    add.remote(1) + 1  # type: ignore[operator]
    mobula.get(1)  # type: ignore[call-overload]
    mobula.get([1])  # type: ignore[arg-type]


async def awaited(i: ObjectRef[int]) -> None:
    assert_type(await i, int)
    async for item in words.remote(2):
        assert_type(item, ObjectRef[str])


def streams_and_several(i: ObjectRef[int]) -> None:
    assert_type(words.remote(3), ObjectRefGenerator[str])
    assert_type([mobula.get(item) for item in words.remote(i)], list[str])
    first, second = pair.remote(1)
    a, b = add.options(num_returns=2).remote(1, i)
    words.remote("3")  # type: ignore[call-overload]
    pair.remote("1")  # type: ignore[call-overload]
    add.options(num_returns=2).remote("1")  # type: ignore[call-overload]


def actors(i: ObjectRef[int], s: ObjectRef[str]) -> None:
    counter = Counter.remote(1, step=2)
    assert_type(counter, ActorHandle[Counts])
    assert_type(Counter.remote(i), ActorHandle[Counts])
    assert_type(Limited.options(name="counts").remote(1), ActorHandle[Counts])
    mobula.get(counter.inc.remote())
    mobula.kill(counter)
    Counter.remote()  # type: ignore[call-overload]
    Counter.remote("1")  # type: ignore[call-overload]
    Counter.remote(s)  # type: ignore[arg-type]
    Counter.inc  # type: ignore[attr-defined]
    mobula.kill(Counter)  # type: ignore[arg-type]


def passed_on(f: RemoteFunction[[int], str], g: RemoteFunction[..., int], handles: list[ActorHandle[Counts]]) -> None:
    assert_type(f.remote(1), ObjectRef[str])
    assert_type(g.remote(1, "x", y=3), ObjectRef[int])
    assert_type(handles[0], ActorHandle[Counts])
    f.remote("1")  # type: ignore[call-overload]


def made(cls: ActorClass[[int], Counts]) -> ActorHandle[Counts]:
    cls.remote("1")  # type: ignore[call-overload]
    return cls.remote(1)
