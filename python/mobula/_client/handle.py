"""What this process holds of an object: its handle, and each reader's share of its pin."""

from __future__ import annotations

from typing import Callable, Optional

from .._value import task_failure
from .._wire.hot import Answer
from ..exceptions import MobulaError
from .interfaces import Releases
from .pin import Pin
from .waiter import Waiter

# What is known of an object, for whoever has asked for its value, and a share of its pin if it is stored. None: the client is dead.
Found = Optional[tuple[Answer, Optional["Reading"]]]


FORGOTTEN = -1  # the cost of a value that is known to be there, was here, and can be asked for again


class Handle:
    """This process' hold on one object."""

    __slots__ = ("id", "refs", "res", "waiters", "asked", "fetching", "gone", "cost", "callbacks", "watchers", "failed")

    def __init__(self, id: bytes) -> None:
        self.id = id
        self.refs = 1
        self.res: Optional[Answer] = None
        self.failed: Optional[Answer] = None  # why the bytes of a stored object could not be had when they were last asked for
        self.waiters: Optional[list[Waiter]] = None
        self.asked = False
        self.fetching = False
        self.gone = False
        self.cost = 0  # what its value counts among those that came in messages; or FORGOTTEN
        self.callbacks: Optional[list[Callable[[Found], None]]] = None  # for its value
        self.watchers: Optional[list[Callable[[], None]]] = None  # for what is known of it

    def answer(self, pinned: bool) -> Optional[Answer]:
        """What is known of it, for who has asked for its bytes and has them pinned or not."""
        return self.res if pinned or self.failed is None else self.failed


class Reading:
    """One reader's share of a pin. When it goes, the share is given back."""

    __slots__ = ("client", "pin")

    def __init__(self, client: Releases, pin: Pin) -> None:
        self.client = client
        self.pin = pin

    def __del__(self) -> None:
        c = self.client
        c.unpins.append(self.pin)
        if c.reader.quiet:
            c.reader.arm()


def answer_error(res: Answer) -> MobulaError:
    """The exception that an object was resolved with."""
    return task_failure(res.err)
