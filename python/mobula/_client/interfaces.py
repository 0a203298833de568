"""What the parts of a client ask of it, and of each other, where one that they are made before is meant."""

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
    """Whoever reads the connection, to those who leave it something to do."""

    quiet: bool  # it sleeps until it is woken: who leaves it something arms it
    later: list[Callable[[], None]]  # to call when the client's lock is free

    def arm(self) -> None: ...

    def offer(self) -> None: ...

    def wait(self, w: Waiter, until: Optional[float], tc: Optional[TaskContext]) -> bool: ...


class Releases(Protocol):
    """Takes back what finalisers give up: they only append."""

    @property
    def unpins(self) -> deque[Pin]: ...

    @property
    def reader(self) -> Keeper: ...


class Sends(Protocol):
    """The lock that guards the tables, and what leaves under it."""

    lock: threading.RLock
    out: deque[bytes]
    dead: Optional[MobulaError]

    def check(self) -> None: ...

    def send(self, chunk: bytes) -> None: ...

    def flush(self) -> None: ...

    def maybe_flush(self) -> None: ...


class Waits(Sends, Releases, Protocol):
    """A thread waits here for its answer."""

    def wait(self, w: Waiter, until: Optional[float], tc: Optional[TaskContext] = None) -> bool: ...


class Worker(Protocol):
    """What a worker adds to its client. All but tasks and tick are called with the client's lock held."""

    @property
    def orders(self) -> Mapping[int, Callable[[bytes, int, int], None]]:
        """What it does with messages, by their kind."""

    def tasks(self, b: bytes, i: int, j: int) -> None:
        """Takes tasks: it takes the lock when they are decoded, as threads that report calls need it meanwhile."""

    def declare(self, h: m.Holdings) -> None:
        """Says what it has, to a node that comes back."""

    def tick(self) -> None:
        """Is called by the keeper while that is awake, and each second."""
