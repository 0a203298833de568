"""Has the owner know of what this process made before the program sends a reference to it elsewhere by a way of its own, for instance in a file.

Messages wait a little for others, and take their way; another process that unpickles a reference asks the owner by another one. Were it the faster, the owner
would not know the object yet, and answer that it was freed.
"""

from __future__ import annotations

from collections import deque
from itertools import count
from typing import Protocol

from .. import _ids
from ..exceptions import MobulaError
from .context import TaskContext
from .getting import Getter
from .handle import Handle
from .interfaces import Waits
from .objects import Objects
from .outbox import Outbox

PATIENCE = 10.0  # seconds that a pickle waits for the owner at most


class Announces(Waits, Protocol):
    root: TaskContext
    dropped: deque[Handle]

    @property
    def outbox(self) -> Outbox: ...


class _Nothing:
    """A reference to an object that nobody makes."""

    __slots__ = ("_client", "_h")

    def __init__(self, client: Announces, id: bytes) -> None:
        self._client = client
        self._h = Handle(id)

    def __del__(self) -> None:
        self._client.dropped.append(self._h)


class Announcer:
    def __init__(self, client: Announces, objects: Objects, getter: Getter) -> None:
        self._client = client
        self._objects = objects
        self._getter = getter
        self._unmade = count(_ids.PUT_BIT - 1, -1)  # numbers of puts from the end: no program comes so far
        self._said = -1  # frames that had been written when the owner had heard all

    def announce(self) -> None:
        """Waits until the owner has heard what this process has said. It answers in order, so it is asked for an object that is not: that is answered at once.
        A closed client, or one whose node does not answer, is not waited for."""
        c = self._client
        if c.outbox.frames == self._said and not c.out:
            return
        try:
            nothing = _Nothing(c, _ids.put_id(c.root.base, next(self._unmade)))
            self._objects.adopt(nothing)
            self._getter.ready([nothing._h], 1, PATIENCE, None)
            if nothing._h.res is not None:
                self._said = c.outbox.frames
        except MobulaError:
            pass
