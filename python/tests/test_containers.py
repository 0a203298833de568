"""Futures inside containers: arguments of the clients of mobula.distributed, of executors, and of Dask graphs."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import sys
import threading
import types
from collections import ChainMap, Counter, OrderedDict, UserDict, UserList, defaultdict, deque, namedtuple
from collections.abc import ItemsView, KeysView, ValuesView
from concurrent.futures import CancelledError
from typing import Any, Iterator, NamedTuple

import cloudpickle
import pytest
from dask.task_spec import Task
from waiting import PATIENCE

import mobula.dask
from mobula import _containers
from mobula.distributed import Client, Future

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # the workers have no tests directory on their path


@pytest.fixture(scope="module")
def client(binary: str) -> Iterator[Client]:
    with Client(num_cpus=2, object_store_memory=64 << 20) as c:
        yield c


class Point(NamedTuple):
    x: Any
    y: Any = 0


class Named(namedtuple("Named", "a b")):
    """It has attributes."""


@dataclasses.dataclass
class Record:
    x: Any
    made: dataclasses.InitVar[int] = 0
    rest: Any = dataclasses.field(default=None, init=False)
    absent: Any = dataclasses.field(init=False)

    def __post_init__(self, made: int) -> None:
        self.calls = getattr(self, "calls", 0) + 1


@dataclasses.dataclass(frozen=True, slots=True)
class Frozen:
    x: Any
    y: Any = 1


@dataclasses.dataclass(frozen=True)
class Leaf:
    x: Any


class Checked(dict):  # type: ignore[type-arg]
    """A dict with an attribute and a constructor of its own."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name


class Items(list):  # type: ignore[type-arg]
    pass


class Bag(set):  # type: ignore[type-arg]
    pass


class Ice(frozenset):  # type: ignore[type-arg]
    pass


class Row(tuple):  # type: ignore[type-arg]
    pass


class Box:
    def __init__(self, x: Any) -> None:
        self.x = x


def five() -> int:
    return 5


def made(cls: Any, items: Any, **attributes: Any) -> Any:
    x = cls(items)
    vars(x).update(attributes)
    return x


def checked(key: Any, value: Any) -> Checked:
    x = Checked("n")
    x[key] = value
    return x


def record(x: Any, rest: Any) -> Record:
    r = Record(x)
    r.rest = rest
    r.calls = 1
    return r


# By a name: a container made of x, and what a task looks at in it. The same with the value in place of x is what a task has to get.
SHAPES: dict[str, Any] = {
    "list": lambda x: [1, x, [x]],
    "tuple": lambda x: (x, (1, x)),
    "set": lambda x: {x, 1},
    "frozenset": lambda x: frozenset([x, 1]),
    "dict": lambda x: {"a": x, "b": {"c": [x]}},
    "keys": lambda x: {x: 1, ("k", x): x, "z": 2},
    "named tuple": lambda x: Point(x, [Point(1, x)]),
    "named tuple with attributes": lambda x: made(Named._make, (x, 1), more=2),
    "defaultdict": lambda x: defaultdict(five, a=x),
    "defaultdict by a lambda": lambda x: defaultdict(lambda: 5, a=x),
    "OrderedDict": lambda x: OrderedDict([("b", x), ("a", 1), (x, 2)]),
    "Counter": lambda x: Counter({"a": x, x: 1}),
    "deque": lambda x: deque([1, x, 2], maxlen=3),
    "dataclass": lambda x: record(x, {"rest": [x]}),
    "frozen dataclass": lambda x: Frozen((x, Frozen(x))),
    "dataclasses in sets": lambda x: {Leaf(x), Leaf((x, 1))},
    "dict with a constructor": lambda x: checked(x, x),
    "list with attributes": lambda x: made(Items, [x], more=1),
    "set with attributes": lambda x: made(Bag, [x], more=1),
    "frozenset with attributes": lambda x: made(Ice, [x], more=1),
    "tuple with attributes": lambda x: made(Row, [x], more=1),
    "keys of a dict": lambda x: {x: 1}.keys(),
    "values of a dict": lambda x: OrderedDict(a=x, b=[x]).values(),
    "items of a dict": lambda x: {"a": x}.items(),
    "proxy of a dict": lambda x: types.MappingProxyType({x: x}),
    "ChainMap": lambda x: ChainMap({"a": x}, {"b": 1}),
    "UserDict": lambda x: UserDict({x: [x]}),
    "UserList": lambda x: UserList([x]),
    "slice": lambda x: slice(x, None, [x]),
}


def state(x: Any) -> Any:
    """All that there is to a value, with the types and the names of attributes."""
    if isinstance(x, Future):
        return "future", x.key
    cls = type(x).__name__
    attributes = {k: state(v) for k, v in getattr(x, "__dict__", {}).items()}
    if dataclasses.is_dataclass(x):
        attributes |= {f.name: state(getattr(x, f.name, "unset")) for f in dataclasses.fields(x)}
    if isinstance(x, dict):
        factory = getattr(x, "default_factory", None)
        return cls, [(state(k), state(v)) for k, v in x.items()], attributes, factory and factory()
    if isinstance(x, (set, frozenset)):
        return cls, sorted(map(repr, map(state, x))), attributes
    if isinstance(x, (list, tuple, deque)):
        return cls, [state(y) for y in x], attributes, getattr(x, "maxlen", None)
    if isinstance(x, (KeysView, ValuesView, ItemsView)):
        return cls, [state(y) for y in x]
    if isinstance(x, types.MappingProxyType):
        return cls, [(state(k), state(v)) for k, v in x.items()]
    if isinstance(x, slice):
        return cls, x.start, x.stop, state(x.step)
    return (cls, attributes) if attributes else (cls, x)


def same(x: Any) -> Any:
    return x


def fail(what: str) -> None:
    raise KeyError(what)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_container_keeps_its_type_and_all_else(client: Client, shape: str) -> None:
    build = SHAPES[shape]
    f = client.submit(same, 7)
    want, x = state(build(7)), build(f)
    before = state(x)
    for sent in (client.submit(state, x), client.submit(state, x=x), *client.map(state, [x])):
        assert sent.result(PATIENCE) == want
    assert state(client.gather([x])[0]) == want and state(x) == before
    with client.get_executor(max_workers=1) as ex:
        assert ex.submit(state, x).result(PATIENCE) == want and list(ex.map(state, [x], timeout=PATIENCE)) == [want]
        assert list(ex.map(state, [x, x], chunksize=2, timeout=PATIENCE)) == [want, want]


@pytest.mark.parametrize("get", [mobula.dask.get, mobula.dask.get_sync])
@pytest.mark.parametrize("shape", SHAPES)
def test_futures_and_references_in_tasks_of_a_graph(client: Client, shape: str, get: Any) -> None:
    build = SHAPES[shape]
    f = client.submit(same, 7)
    for x in (build(f), build(f.ref)):
        assert get({"a": Task("a", state, x)}, "a") == state(build(7))


def test_a_task_beside_what_cannot_be_pickled(client: Client) -> None:
    lock = threading.Lock()
    ref = client.submit(same, 7).ref

    def look(x: Any, y: Any) -> Any:
        return x, y[0], y[1] is lock

    assert mobula.dask.get_sync({"a": Task("a", look, [ref], (ref, lock))}, "a") == ([7], 7, True)


def test_gather_of_coroutines(binary: str, client: Client) -> None:
    async def main() -> None:
        async with Client(asynchronous=True) as c:
            assert await c.gather(Point(c.submit(same, 1), deque([c.submit(same, 2)], 1))) == Point(1, deque([2]))

    asyncio.run(main())


def test_gather_and_cancel_of_iterators(client: Client) -> None:
    fs = client.map(same, [1, 2])
    named = dict(zip("ab", fs))
    for many in (named.values(), iter(fs), (f for f in fs), map(same, fs)):
        assert client.gather(many) == [1, 2]
    assert client.gather(named.items()) == [("a", 1), ("b", 2)]
    client.cancel(f for f in fs)
    assert [f.status for f in fs] == ["cancelled"] * 2


def test_what_is_no_container_keeps_its_future(client: Client) -> None:
    f = client.submit(same, 7)
    for x in (Box(f), types.SimpleNamespace(x=f)):
        assert client.gather(x) is x
        assert client.submit(lambda box: (type(box.x).__name__, box.x.result()), x).result(PATIENCE) == ("Future", 7)
    partial = functools.partial(same, f)
    assert client.submit(lambda p: p.args[0].result(), partial).result(PATIENCE) == 7


def test_a_container_without_futures_is_not_copied(client: Client) -> None:
    for build in SHAPES.values():
        x = build(7)
        assert _containers.replace(x, same, Future) is x
    left, f = [1, [2]], client.submit(same, 7)
    got = client.gather((left, [f]))
    assert got == ([1, [2]], [7]) and got[0] is left


def test_circles_and_containers_that_are_shared(client: Client) -> None:
    f = client.submit(same, 7)
    a: list[Any] = []
    b: dict[str, Any] = {"a": a, "t": (a,)}
    a += [b, f, Record(b)]
    for x in (a, b, (b, f), Record(a)):
        got = client.gather([x])[0]
        a2 = got if x is a else got["a"] if x is b else got[0]["a"] if type(x) is tuple else got.x
        assert a2 is not a and a2[1] == 7 and a2[0]["a"] is a2 and a2[0]["t"][0] is a2 and a2[2].x is a2[0] and a[1] is f
    assert client.submit(lambda a: (a[0]["a"] is a, a[1], a[2].x is a[0]), a).result(PATIENCE) == (True, 7, True)
    alone: list[Any] = []
    alone.append(alone)
    assert client.gather(alone) is alone
    shared = [f]
    one, two = client.gather([shared, shared])
    assert one is two and one == [7]
    deep: Any = f
    for _ in range(50):
        deep = [deep, deep]  # 2**50 leaves, if each were looked at
    assert client.submit(lambda x: x[0] is x[1], deep).result(PATIENCE)


def test_errors_and_cancelled_futures(client: Client) -> None:
    bad = client.submit(fail, "this one")
    for x in (Point(bad), {bad: 1}, Frozen(bad), deque([bad])):
        sent = client.submit(same, x)
        with pytest.raises(KeyError, match="this one"):
            sent.result(PATIENCE)
        assert sent.status == "error"
        with pytest.raises(KeyError, match="this one"):
            client.gather(x)
        with client.get_executor(max_workers=1) as ex, pytest.raises(KeyError, match="this one"):
            ex.submit(same, x).result(PATIENCE)
    good = client.submit(same, 1)
    assert client.gather([bad, Point(bad, good), deque([bad, good]), {bad: 1, good: 2, 3: bad}, Frozen(bad)], errors="skip") == \
        [Point(None, 1), deque([1]), {1: 2}, Frozen(None)]
    gone = client.submit(same, 2)
    assert gone.result(PATIENCE) == 2
    gone.cancel()
    sent = client.submit(same, Point(gone))
    assert sent.status == "cancelled"
    with pytest.raises(CancelledError):
        sent.result(PATIENCE)
    with pytest.raises(CancelledError):
        client.gather(Point(gone))
    with client.get_executor(max_workers=1) as ex, pytest.raises(CancelledError):
        ex.submit(same, Point(gone)).result(PATIENCE)
    unhashable = client.submit(same, [])
    with pytest.raises(TypeError, match="unhashable"):
        client.submit(same, {unhashable: 1}).result(PATIENCE)


def test_a_call_is_cancelled_with_one_that_it_waits_for(client: Client) -> None:
    slow = client.submit(forever)
    sent = client.submit(same, Frozen(slow))
    slow.cancel()
    with pytest.raises(CancelledError):
        sent.result(PATIENCE)
    assert sent.status == "cancelled"


def forever() -> None:
    threading.Event().wait()
