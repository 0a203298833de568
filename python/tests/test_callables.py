"""Actor classes and remote functions of all that Python calls: attributes, descriptors, partials, dispatch, caches and instances."""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import enum
import functools
import pickle
import sys
from typing import Any, Generic, Iterator, NamedTuple, TypeVar

import cloudpickle
import joblib
import pytest
from waiting import PATIENCE, until

import mobula
from mobula.util.joblib import register_mobula

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # the workers have no tests directory on their path


@pytest.fixture(scope="module", autouse=True)
def node(binary: str) -> Iterator[Any]:
    with mobula.init(num_cpus=2, object_store_memory=64 << 20) as c:
        yield c


def got(ref: Any) -> Any:
    return mobula.get(ref, timeout=PATIENCE)


# Names that the package's own functions have, or had, for their parameters.
NAMES = ("self", "name", "timeout", "args", "kwargs", "callsite", "method", "cls", "fn", "func", "f", "options", "target", "known", "call", "x")


class Adds:
    """A callable instance."""

    def __init__(self, by: int) -> None:
        self.by = by

    def __call__(self, x: int) -> int:
        return x + self.by


class Yields:
    def __call__(self, n: int) -> Iterator[int]:
        yield from range(n)


class Awaits:
    async def __call__(self, x: Any) -> Any:
        await asyncio.sleep(0)
        return x


class Bound:
    """A descriptor that shows the class itself, and instances something to call."""

    def __get__(self, x: Any, owner: Any = None) -> Any:
        return self if x is None else lambda y: (type(x).__name__, y)


@mobula.remote(num_cpus=0.1)
class Many:
    """Has members of many kinds."""

    N = 3
    _options = "own"
    inside = Adds(4)
    marked = mobula.method()(Bound())

    class Kind(enum.Enum):
        A = 1

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.args, self.kwargs = args, kwargs

    def made_with(self) -> Any:
        return self.args, self.kwargs

    @staticmethod
    def twice(x: int) -> int:
        return 2 * x

    @classmethod
    def who(cls, x: int) -> Any:
        return cls.__name__, x, cls.N

    @property
    def prop(self) -> int:
        return 1

    def echo(self, /, *args: Any, **kwargs: Any) -> Any:
        return args, kwargs

    with_five = functools.partialmethod(echo, 5, five=5)

    @mobula.method(num_returns=2)
    def pair(self, a: int, b: int) -> Any:
        return a, b

    pair_of_one = functools.partialmethod(pair, 1)
    three = mobula.method(num_returns=3)(functools.partialmethod(echo))

    def count(self, n: int) -> Iterator[int]:
        yield from range(n)

    count_two = functools.partialmethod(count, 2)

    @functools.singledispatchmethod
    def told(self, x: Any) -> str:
        return "object"

    @told.register
    def _(self, x: int) -> str:
        return f"int {x}"

    @told.register
    def _(self, x: list) -> Any:
        return [self.told(y) for y in x]

    @mobula.method(num_returns=2)
    @functools.singledispatchmethod
    def two_told(self, x: Any) -> Any:
        return x, x

    @functools.lru_cache(maxsize=3)  # noqa: B019  # programs have such methods
    def cached(self, x: int) -> Any:
        return object() if x < 0 else x

    @functools.cached_property
    def once(self) -> list[int]:
        return [1]

    def read(self) -> Any:
        self.once.append(2)
        return self.once, type(self).cached.cache_parameters()["maxsize"], Many.N, Many.twice(4), isinstance(self, Many)

    def kind(self, k: Any) -> Any:
        return k is Many.Kind.A, k


class Derived(Many.__wrapped__):  # type: ignore[misc,name-defined]
    with_six = functools.partialmethod(Many.__wrapped__.echo, 6)  # type: ignore[attr-defined]


def test_attributes_of_an_actor_class_are_those_of_the_class() -> None:
    cls = Many.__wrapped__
    assert Many.N == 3 and Many.twice(2) == 4 and Many.who(1) == ("Many", 1, 3) and Many.Kind.A.value == 1 and Many.prop is cls.prop
    assert Many.__doc__ == cls.__doc__ and Many.__module__ == __name__ and Many.__qualname__ == Many.__name__ == "Many"
    assert Many.inside(1) == 5 and Many._options == "own" and {"N", "twice", "options"} <= set(dir(Many))
    assert Many.options(name="x").N == 3
    with pytest.raises(AttributeError, match=r"echo is a method of Many: make an actor with Many.remote\(\)"):
        Many.echo
    with pytest.raises(AttributeError, match="actor class Many has no attribute 'nope'"):
        Many.nope
    with pytest.raises(AttributeError, match="_repr_html_"):
        Many._repr_html_
    assert isinstance(cls(), Many) and not isinstance(3, Many) and issubclass(Derived, Many) and issubclass(Many, Many)
    assert pickle.loads(pickle.dumps(Many.Kind.A)) is Many.Kind.A  # pickle looks under the name Many.Kind
    for same in (copy.copy(Many), copy.deepcopy(Many), got(mobula.put(Many))):
        assert same.N == 3 and same.__name__ == "Many"
    Many.N = 4
    try:
        assert Many.who(1) == ("Many", 1, 4) and cls.N == 4
        Many.extra = 1
        del Many.extra
        assert not hasattr(cls, "extra")
    finally:
        Many.N = 3


def test_a_dataclass_is_an_actor() -> None:
    @mobula.remote
    @dataclasses.dataclass(frozen=True, slots=True)
    class Point:
        x: int
        name: str = "origin"

        def shown(self) -> Any:
            return self.x, self.name, isinstance(self, Point)

    assert [f.name for f in dataclasses.fields(Point)] == ["x", "name"] and Point.__match_args__ == ("x", "name")
    assert got(Point.remote(1, name="self").shown.remote()) == (1, "self", True)


class Meta(type):
    def called(cls) -> str:
        return cls.__name__


T = TypeVar("T")


@mobula.remote
class Stack(Generic[T], metaclass=Meta):
    def __init__(self, x: Any = None) -> None:
        self.x = x

    def get(self) -> Any:
        return self.x


def test_an_actor_class_in_annotations_and_of_a_metaclass() -> None:
    assert Stack.called() == "Stack"
    assert got(Stack[int].remote(3).get.remote()) == 3
    for kinds in (Stack | None, None | Stack, Stack | int, int | Stack):
        assert Stack in kinds.__args__
    assert isinstance(3, (Stack, int)) and not isinstance("", (Stack, int))
    with pytest.raises(TypeError, match="not subscriptable"):
        Many[int]
    with pytest.raises(TypeError, match="not iterable"):
        iter(Stack)


def passed_on(f: Any) -> Any:
    @functools.wraps(f)
    def inside(*args: Any, **kwargs: Any) -> Any:
        return f(*args, **kwargs)

    return inside


@passed_on
def yields(n: int) -> Iterator[int]:
    yield from range(n)


def test_what_a_wrapper_hides_is_named() -> None:
    class Hides:
        @passed_on
        async def wait(self) -> None:
            pass

    with pytest.raises(mobula.exceptions.NotEncodableError, match="make its wrapper an async def"):
        got(mobula.remote(Hides).remote().wait.remote())
    with pytest.raises(mobula.exceptions.NotEncodableError, match='say num_returns="streaming"'):
        got(mobula.remote(yields).remote(2))
    assert [got(r) for r in mobula.remote(yields).options(num_returns="streaming").remote(2)] == [0, 1]


def test_methods_of_descriptors() -> None:
    a = Many.remote()
    assert got(a.with_five.remote(6)) == ((5, 6), {"five": 5})
    assert got(a.with_five.options(name="other").remote(five=6)) == ((5,), {"five": 6})
    assert got(a.pair_of_one.remote(2)) == [1, 2] and got(a.two_told.remote(3)) == [3, 3]
    assert len(a.three.remote()) == 3
    assert [got(r) for r in a.count_two.remote()] == [0, 1]
    assert got([a.told.remote(1), a.told.remote("1"), a.told.remote([1, None])]) == ["int 1", "object", ["int 1", "object"]]
    assert got(a.cached.remote(1)) == 1 and got(a.inside.remote(1)) == 5 and got(a.marked.remote(1)) == ("Many", 1)
    assert got(a.twice.remote(4)) == 8 and got(a.who.remote(4)) == ("Many", 4, 3)
    assert got(a.read.remote()) == ([1, 2], 3, 3, 8, True)
    assert got(a.kind.remote(Many.Kind.A)) == (True, Many.Kind.A)
    for name in ("prop", "once", "N", "nope"):
        with pytest.raises(AttributeError, match=f"has no method '{name}'"):
            getattr(a, name)
    d = mobula.remote(Derived).remote()
    assert got(d.with_five.remote(6)) == ((5, 6), {"five": 5}) and got(d.with_six.remote()) == ((6,), {}) and got(d.told.remote(2)) == "int 2"


def test_coroutines_behind_partials_and_dispatch() -> None:
    class Both:
        """Its calls end only if they run at the same time."""

        def __init__(self) -> None:
            self.met = 0

        async def together(self) -> bool:
            self.met += 1
            while self.met < 2:
                await asyncio.sleep(0)
            return True

        async def one(self, x: int) -> int:
            await self.together()
            return x

        of_one = functools.partialmethod(one, 1)

        @functools.singledispatchmethod
        def told(self, x: Any) -> str:
            return "object"

        @told.register
        async def _(self, x: int) -> str:
            await self.together()
            return "int"

    a = mobula.remote(Both).remote()
    assert got([a.of_one.remote(), a.told.remote(1)]) == [1, "int"] and got(a.told.remote("")) == "object"

    class Only:
        """Nothing but a descriptor shows that it has coroutines."""

        async def _one(self, x: int) -> int:
            await asyncio.sleep(0)
            return x

    for member in (functools.partialmethod(Only._one, 1), Awaits()):
        cls = type("Hidden", (), {"call": member})
        ref = mobula.remote(cls).remote().call.remote(*(() if isinstance(member, functools.partialmethod) else (1,)))
        assert got(ref) == 1


@mobula.remote
def named(**kwargs: Any) -> Any:
    return kwargs


@pytest.mark.parametrize("name", NAMES)
def test_a_keyword_of_any_name_arrives(name: str) -> None:
    want = {name: 1}
    assert got(named.remote(**want)) == want and got(named.options(num_cpus=1).remote(**want)) == want

    @mobula.remote
    class Takes:
        def __init__(self, /, **kwargs: Any) -> None:
            self.had = kwargs

        def take(self, /, **kwargs: Any) -> Any:
            return self.had, kwargs

    for cls in (Takes, Takes.options(num_cpus=0.5)):
        a = cls.remote(**want)
        assert got(a.take.remote(**want)) == got(a.take.options(name="other").remote(**want)) == (want, want)


@pytest.mark.parametrize("name", NAMES)
def test_a_keyword_of_any_name_arrives_by_executors(name: str) -> None:
    want = {name: 1}
    with mobula.Executor(max_workers=1) as ex:
        assert ex.submit(dict, **want).result(PATIENCE) == want
    register_mobula()
    with joblib.parallel_config("mobula", n_jobs=2):
        assert joblib.Parallel()([(dict, (), want)] * 2) == [want, want]  # as joblib.delayed gives it, which takes most names


@functools.singledispatch
def deep(x: Any) -> Any:
    return x


@deep.register
def _(x: list) -> Any:
    return [deep(y) for y in x]  # by its global name


@deep.register
def _(x: int) -> Any:
    return -x


@functools.lru_cache(maxsize=100, typed=True)
def fib(n: int) -> int:
    return n if n < 2 else fib(n - 1) + fib(n - 2)


fib.note = "kept"  # type: ignore[attr-defined]


def about_fib() -> Any:
    return fib.cache_parameters(), fib.note, fib.__name__, deep.__name__, deep([1])  # type: ignore[attr-defined]


def doubled(f: Any) -> Any:
    @functools.wraps(f)
    def inside(*args: Any, **kwargs: Any) -> Any:
        return 2 * f(*args, **kwargs)

    return inside


@doubled
def plus(a: int, b: int = 1) -> int:
    return a + b


def test_remote_functions_of_all_kinds() -> None:
    assert got(mobula.remote(Adds(2)).remote(1)) == 3 and got(mobula.remote(Adds(2).__call__).remote(1)) == 3
    assert [got(r) for r in mobula.remote(Yields()).remote(2)] == [0, 1]
    assert [got(r) for r in mobula.remote(functools.partial(Yields(), 2)).remote()] == [0, 1]
    assert got(mobula.remote(fib).remote(50)) == fib(50) and got(mobula.remote(fib.__wrapped__).remote(20)) == fib(20)
    assert got(mobula.remote(about_fib).remote()) == ({"maxsize": 100, "typed": True}, "kept", "fib", "deep", [-1])
    assert got(mobula.remote(functools.cache(lambda x: x + 1)).remote(1)) == 2
    assert got(mobula.remote(functools.lru_cache(functools.partial(pow, 2))).remote(3)) == 8
    assert got(mobula.remote(deep).remote([1, ["a", 2]])) == [-1, ["a", -2]]
    assert got(mobula.remote(plus).remote(1, b=2)) == 6
    for coroutine in (Awaits(), functools.partial(Awaits(), 1)):
        with pytest.raises(mobula.exceptions.InvalidError, match="only methods of actors"):
            mobula.remote(coroutine)


def test_cached_functions_are_values() -> None:
    f, g, o = got(mobula.put((fib, deep, functools.cached_property(len))))
    assert f(10) == 55 and g([3]) == [-3] and o.func is len
    with mobula.Executor(max_workers=1) as ex:
        assert ex.submit(fib, 30).result(PATIENCE) == fib(30) and list(ex.map(deep, [[1], 2])) == [[-1], -2]


@dataclasses.dataclass(slots=True)
class Slotted:
    a: int
    b: Any = None


class Mangled:
    __slots__ = ("__hidden", "__weakref__")

    def __init__(self) -> None:
        self.__hidden = 1

    def hidden(self) -> int:
        return self.__hidden


class NoSlot:
    __slots__ = ()


class OneSlot(NoSlot, Generic[T]):
    __slots__ = "one"

    def __init__(self) -> None:
        self.one = 1


class Row(NamedTuple, Generic[T]):
    a: T


def test_classes_with_slots() -> None:
    @mobula.remote
    def looks(xs: list[Any]) -> Any:
        for x in xs:
            with pytest.raises(AttributeError):
                x.other = 1
        return xs

    x, y, z, r = got(looks.remote([Slotted(1, [2]), Mangled(), OneSlot(), Row(3)]))
    assert x == Slotted(1, [2]) and y.hidden() == 1 and isinstance(z, NoSlot) and hasattr(z, "one") and r == Row(3)
    assert not any(hasattr(v, "__dict__") for v in (x, y, z, r)) and type(x) is Slotted and type(r) is Row
    a = mobula.remote(Slotted.__class__("Acts", (Slotted,), {"__slots__": (), "of_a": lambda self: self.a})).remote(5)
    assert got(a.of_a.remote()) == 5


@mobula.remote
class Ticks:
    def __init__(self) -> None:
        self.seen: list[Any] = []
        mobula.after(0, self.tock, seconds=1, method=2)

    def tick(self, *args: Any, **kwargs: Any) -> None:
        self.seen.append((args, kwargs))

    tock = functools.partialmethod(tick, "tock")

    def read(self) -> Any:
        return self.seen


def test_a_timer_calls_a_partial_method_with_any_keywords() -> None:
    a = Ticks.remote()
    assert until(lambda: got(a.read.remote())) == [(("tock",), {"seconds": 1, "method": 2})]
