"""What tests of the client against the stub node ask and look at."""

from __future__ import annotations

import os
import queue
import threading
from typing import Any, Callable

from mininode import MiniNode

from mobula import _api, _refs, _runtime, _value

_asides: queue.SimpleQueue[tuple[Callable[[], None], queue.SimpleQueue[None]]] = queue.SimpleQueue()


def _do_asides() -> None:
    while True:
        f, done = _asides.get()
        try:
            f()
        finally:
            del f
            done.put(None)


threading.Thread(target=_do_asides, daemon=True).start()


def aside(f: Callable[[], None]) -> None:
    """Runs f in another thread, where no signal's handler comes: one may come meanwhile here, and do the same."""
    done: queue.SimpleQueue[None] = queue.SimpleQueue()
    _asides.put((f, done))
    done.get()


def segments() -> int:
    """How many descriptors of a stub's segment are open."""
    n = 0
    for fd in os.listdir("/proc/self/fd"):
        try:
            n += os.readlink(f"/proc/self/fd/{fd}").startswith("/memfd:mini")
        except FileNotFoundError:
            pass  # it was closed meanwhile
    return n


def kinds(node: MiniNode, *which: type[Any]) -> list[Any]:
    """The messages of some kinds that the driver has sent."""
    with node.lock:
        return [g for g in node.driver().got if isinstance(g, which)]


def settled() -> None:
    """Returns when the stub has heard of all that this process has let go of."""
    _runtime.client().flush()
    _api.request("echo", None)


def unknown() -> Any:
    """A reference to an object that nobody has made yet."""
    c = _runtime.client()
    return _refs.bound(c, os.urandom(20) + bytes(4))


def flat(v: Any) -> tuple[bytes, bytes]:
    """A small value as it travels: its Meta and its data."""
    e = _value.encode(v, 1000)
    assert e.data is not None
    return e.meta, e.data
