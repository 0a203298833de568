"""Gets of several references, waits and awaits, against the stub node: what they give back, and when they end."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

import mobula
from mininode import MiniNode
from mobula import _runtime
from mobula import exceptions as x
from mobula._wire import messages as m


def unknown() -> Any:
    """A reference to an object that nobody has made yet."""
    return mobula.ObjectRef(_runtime.client().bind(os.urandom(16) + bytes(4)))


def fail(mini: MiniNode, ref: Any) -> None:
    with mini.lock:
        mini._resolve(ref._h.id, m.Result(m.ERROR, err=m.Error(x.ObjectLostError.code, "it is lost")))


def stored(n: int) -> list[Any]:
    """References to objects too large for a message."""
    return [mobula.put(np.full(50_000, float(i))) for i in range(n)]


def nothing_is_pinned(mini: MiniNode, refs: list[Any]) -> bool:
    d = mini.driver()
    return all(d.pins.get(r._h.id) == 0 for r in refs) and not _runtime.client().objects.pins


class Unreadable:
    """A value that can be put and not read."""

    def __init__(self) -> None:
        self.array = np.ones(50_000)

    def __reduce__(self) -> Any:
        return _refuse, (self.array,)


def _refuse(array: Any) -> Any:
    raise ValueError("not to be read")


def test_a_get_that_fails_gives_all_pins_back(mini: MiniNode) -> None:
    refs = [mobula.put(Unreadable()), *stored(4)]
    with pytest.raises(ValueError, match="not to be read"):
        mobula.get(refs)
    mini.until(lambda: nothing_is_pinned(mini, refs))
    assert [a[0] for a in mobula.get(refs[1:])] == [0, 1, 2, 3]


def test_who_takes_only_the_first_of_several_gives_all_pins_back(mini: MiniNode) -> None:
    c, refs = _runtime.client(), stored(4)
    found = c.fetch([r._h for r in refs], None, None)
    res, reading = next(found)
    assert res.kind == m.STORED and reading is not None
    found.close()
    mini.until(lambda: [mini.driver().pins[r._h.id] for r in refs] == [1, 0, 0, 0])
    del reading
    mini.until(lambda: nothing_is_pinned(mini, refs))
