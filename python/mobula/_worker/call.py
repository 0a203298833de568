"""One running attempt of a task."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Optional, Protocol, Sequence

from .. import _ids
from .._client import Client, Hosted, TaskContext
from .._wire import messages as m
from .._wire.hot import Work
from ..exceptions import MobulaError
from .arguments import arguments, shared


class TaskInterrupt(KeyboardInterrupt):
    """Raised inside a running task that is cancelled. Like KeyboardInterrupt it is no Exception, so `except Exception` does not stop it."""


class Blocks(Protocol):
    """Takes reports of calls that wait."""

    def block(self, call: Call) -> None: ...

    def needs(self, call: Call, ids: list[bytes]) -> None: ...

    def unblock(self, call: Call) -> None: ...


class Executes(Protocol):
    """What a call needs of the executor."""

    @property
    def client(self) -> Client: ...

    @property
    def blocking(self) -> Blocks: ...

    @property
    def actor(self) -> Optional[Hosted]: ...


class Call(TaskContext):
    """One running attempt of a task."""

    client: Client
    waits = True
    error: Optional[MobulaError] = None  # why it was cancelled
    final = False  # it failed with an error that is not to be retried
    abandoned: Optional[MobulaError] = None  # what it was reported with, though it still runs
    in_user = False  # the user's code runs
    spared = 0.0  # it is not interrupted before this time, by time.monotonic
    waiting = 0  # number of its threads that wait
    items = 0  # number of a stream's items that were sent
    future: Any = None  # if it is a coroutine
    started = 0
    held: Sequence[Any] = ()  # the references in its results that pickling has found or made
    keep: Any = None  # its results, kept until the report is queued: before that the owner does not know of the references in them

    def __init__(self, executor: Executes, work: Work) -> None:
        super().__init__(executor.client, work.id, work.attempt, work.trace)
        self.executor = executor
        self.work = work
        self.parent = work.parent

    @cached_property
    def base(self) -> bytes:
        """The ids of calls and puts belong to the actor's job even if the caller is of another job, so that they outlive the caller's job."""
        return _ids.in_job(self.work.id, self.client.root.task)

    @property
    def actor(self) -> bytes:
        return self.work.actor or (self.work.id if self.work.kind == m.ACTOR_CREATE else b"")

    def host(self) -> Optional[Hosted]:
        return self.executor.actor if self.actor else None

    def check(self) -> None:
        if self.error is not None:
            raise TaskInterrupt()

    def block(self) -> None:
        self.executor.blocking.block(self)

    def needs(self, ids: list[bytes]) -> None:
        self.executor.blocking.needs(self, ids)

    def unblock(self) -> None:
        self.executor.blocking.unblock(self)

    def shared(self) -> int:
        """The number of bytes of its positional arguments that are read-only views."""
        return shared(self.work)

    def taken(self) -> list[Any]:
        """Decodes its positional arguments once more, as private copies."""
        return arguments(self.client, self.work, None)[0]
