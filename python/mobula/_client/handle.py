"""What this process holds of an object: a handle, and for each reader a share of its pin."""

from __future__ import annotations

from typing import Callable, Optional

from .._value import task_failure
from .._wire.hot import Answer
from ..exceptions import MobulaError
from .interfaces import Releases
from .pin import Pin
from .waiter import Waiter

# The answer for an object, and a share of its pin if it is stored. None: the client is dead.
Found = Optional[tuple[Answer, Optional["Reading"]]]


ELSEWHERE = -2  # the cost of a stored object whose bytes are on other nodes: a wait that brings it here asks for them
EVICTED = -1  # the cost of a value that was dropped from the cache: it is ready, and can be requested again


class Handle:
    """This process' entry for one object. All its references to the object share it. Its lists are replaced, never changed: who goes through one
    may be interrupted."""

    __slots__ = ("id", "refs", "res", "waiters", "asked", "fetching", "gone", "cost", "callbacks", "watchers", "failed")

    def __init__(self, id: bytes) -> None:
        self.id = id
        self.refs = 1
        self.res: Optional[Answer] = None
        self.failed: Optional[Answer] = None  # the error of the last attempt to fetch the bytes of a stored object
        self.waiters: Optional[list[Waiter]] = None
        self.asked = False
        self.fetching = False
        self.gone = False
        self.cost = 0  # bytes of its value in the cache; or EVICTED or ELSEWHERE
        self.callbacks: Optional[list[Callable[[Found], None]]] = None  # called with its value (Getter.when)
        self.watchers: Optional[list[Callable[[], None]]] = None  # called once it is resolved (Getter.when_known)

    def here(self) -> bool:
        """Tells whether it is resolved, and nothing of it is on other nodes alone."""
        return self.cost == EVICTED or (self.res is not None and (self.cost != ELSEWHERE or self.failed is not None))

    def answer(self, pinned: bool) -> Optional[Answer]:
        """The answer for a reader that has requested the bytes and has (pinned) or has not got them."""
        return self.res if pinned or self.failed is None else self.failed


class Reading:
    """One reader's share of a pin (Objects.share). It is given back when this object is deleted."""

    __slots__ = ("client", "pin")

    def __init__(self, client: Releases) -> None:
        self.client = client
        self.pin: Optional[Pin] = None

    def __del__(self) -> None:
        try:
            c, pin = self.client, self.pin
        except AttributeError:
            return  # __init__ did not run
        if pin is None:
            return
        c.unpins.append(pin)
        if c.reader.quiet:
            c.reader.arm()


def answer_error(res: Answer) -> MobulaError:
    """The exception that an object was resolved with."""
    return task_failure(res.err)
