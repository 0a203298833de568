"""What the parts of a client need of it, and of parts that are made after them."""

from __future__ import annotations

import threading
from collections import deque
from typing import Callable, Mapping, Optional, Protocol

from .._wire import messages as m
from ..exceptions import MobulaError
from .context import TaskContext
from .pin import Pin
from .waiter import Waiter


class Keeper(Protocol):
    """The reader, for code that leaves it something to do."""

    quiet: bool  # the background thread sleeps until arm() wakes it
    later: list[Callable[[], None]]  # functions to call once the client's lock is free

    def arm(self) -> None: ...

    def offer(self) -> None: ...

    def wait(self, w: Waiter, until: Optional[float], tc: Optional[TaskContext]) -> bool: ...


class Releases(Protocol):
    """Takes back pins from finalisers, which only append."""

    @property
    def unpins(self) -> deque[Pin]: ...

    @property
    def reader(self) -> Keeper: ...


class Sends(Protocol):
    """The lock that guards the tables, and the queue of messages."""

    lock: threading.RLock
    out: deque[bytes]
    dead: Optional[MobulaError]

    def check(self) -> None: ...

    def send(self, chunk: bytes) -> None: ...

    def flush(self, deferred: bool = False) -> None: ...

    def maybe_flush(self) -> None: ...


class Waits(Sends, Releases, Protocol):
    """Lets a thread wait for its answers."""

    def wait(self, w: Waiter, until: Optional[float], tc: Optional[TaskContext] = None) -> bool: ...


class Worker(Protocol):
    """What a worker adds to its client. All methods but tasks and tick are called with the client's lock held."""

    @property
    def handlers(self) -> Mapping[int, Callable[[bytes, int, int], None]]:
        """The handlers of messages, by kind."""

    def tasks(self, b: bytes, i: int, j: int) -> None:
        """Handles an Exec. It decodes the tasks before it takes the lock, which threads that report calls need meanwhile."""

    def declare(self, h: m.Holdings) -> None:
        """Adds what this worker has, for a node that has restarted."""

    def tick(self) -> None:
        """The keeper calls it on every tick while it is awake, and each second otherwise."""
