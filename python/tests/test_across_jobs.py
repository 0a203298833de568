"""Objects that an actor makes in a call from another job live as long as the caller has them, and the other way round."""

from __future__ import annotations

import gc
import sys
from typing import Any, Iterator

import cloudpickle
import pytest
from cluster import get, objects, until
from test_refs_in_exceptions import Missing, check, error_of, settled, value
from waiting import PATIENCE

import mobula
from mobula import _ids

cloudpickle.register_pickle_by_value(sys.modules[__name__])
cloudpickle.register_pickle_by_value(sys.modules["test_refs_in_exceptions"])

SIZES = [0, 1 << 20]


@mobula.remote
def read(refs: Any) -> Any:
    first, second = mobula.get(refs)
    return first[0], len(first[1]), second


@mobula.remote
class Giver:
    """Gives what it makes, and keeps what it is given."""

    def __init__(self) -> None:
        self.has: Any = None

    def ready(self) -> None: ...

    def give(self, x: Any, size: int) -> Any:
        return [mobula.put([x, bytes(size)]), value.remote(x)]

    def fails(self, x: Any, size: int) -> Any:
        raise Missing("gone", ref=mobula.put([x, bytes(size)]), more={"task": value.remote(x)})

    def items(self, x: Any, size: int) -> Iterator[Any]:
        yield [mobula.put([x, bytes(size)]), value.remote(x)]

    def keep(self, refs: Any) -> Any:
        self.has = refs
        return self.read()

    def read(self) -> Any:
        first, second = mobula.get(self.has)
        return first[0], len(first[1]), second

    def back(self) -> Any:
        has, self.has = self.has, None
        return has


@pytest.fixture
def far(kept: Any) -> Iterator[Any]:
    """A detached actor whose driver has left, in the job of another driver."""
    with mobula.init(kept.address, namespace="n"):
        get(Giver.options(name="giver", lifetime="detached", max_restarts=-1).remote().ready.remote())
    with mobula.init(kept.address, namespace="n"):
        a = mobula.get_actor("giver")
        yield a
        until(lambda: gc.collect() is not None and set(objects()) <= {_ids.show_object(a._h.id)})
        mobula.kill(a)
        del a
        until(lambda: gc.collect() is not None and not objects())


def look(refs: Any, x: Any, size: int) -> None:
    for _ in range(2):
        settled()
        first, second = get(refs)
        assert (first[0], len(first[1]), second) == (x, size, x)


@pytest.mark.parametrize("size", SIZES)
def test_what_a_call_gives(far: Any, size: int) -> None:
    refs = get(far.give.remote("x", size))
    look(refs, "x", size)
    assert get(read.remote(refs)) == ("x", size, "x")
    assert get(value.remote(refs[0]))[0] == "x"
    box, passed = mobula.put(refs), value.remote(refs)
    mobula.wait([passed], timeout=PATIENCE)
    del refs
    settled()
    look(get(box), "x", size)
    look(get(passed), "x", size)
    del box, passed
    unread = far.give.remote("y", size)
    mobula.wait([unread], timeout=PATIENCE)
    settled()
    look(get(unread), "y", size)
    del unread


@pytest.mark.parametrize("size", SIZES)
def test_an_error(far: Any, size: int) -> None:
    check(error_of(lambda: get(far.fails.remote("x", size))), "x", size)


@pytest.mark.parametrize("size", SIZES)
def test_items_of_a_stream(far: Any, size: int) -> None:
    stream = far.items.options(num_returns="streaming").remote("x", size)
    refs = get(next(stream))
    del stream
    look(refs, "x", size)
    del refs


@pytest.mark.parametrize("size", SIZES)
def test_what_the_actor_keeps(far: Any, size: int) -> None:
    refs = [mobula.put(["x", bytes(size)]), value.remote("x")]
    for _ in range(3):  # again and again: it lets go of what it has as it gets the same
        assert get(far.keep.remote(refs)) == ("x", size, "x")
    del refs
    settled()
    assert get(far.read.remote()) == ("x", size, "x")
    refs = get(far.back.remote())
    look(refs, "x", size)
    del refs


@pytest.mark.parametrize("size", SIZES)
def test_over_a_kill_of_the_node(kept: Any, far: Any, size: int) -> None:
    refs, unread = get(far.give.remote("x", size)), far.give.remote("y", size)
    mobula.wait([unread], timeout=PATIENCE)
    settled()
    kept.kill()
    kept.start()
    look(refs, "x", size)
    look(get(unread), "y", size)
    del refs, unread
