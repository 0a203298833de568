"""One attempt at a task while it runs."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Optional, Protocol, Sequence

from .. import _ids
from .._client import Client, Hosted, TaskContext
from .._wire import messages as m
from .._wire.hot import Work
from ..exceptions import MobulaError
from .arguments import arguments


class TaskInterrupt(KeyboardInterrupt):
    """Raised in a task that was cancelled, where it runs; like KeyboardInterrupt, no `except Exception` holds it up."""


class Blocks(Protocol):
    """Is told of calls that wait."""

    def block(self, call: Call) -> None: ...

    def needs(self, call: Call, ids: list[bytes]) -> None: ...

    def unblock(self, call: Call) -> None: ...


class Executes(Protocol):
    """The executor, as a call needs it."""

    @property
    def client(self) -> Client: ...

    @property
    def blocking(self) -> Blocks: ...

    @property
    def actor(self) -> Optional[Hosted]: ...


class Call(TaskContext):
    """One attempt at a task while it runs."""

    client: Client
    waits = True
    error: Optional[MobulaError] = None  # why it was cancelled
    final = False  # it failed, and no retry is wanted for that
    abandoned = False  # it was reported, though it still runs
    in_user = False
    spared = 0.0  # until when it is not interrupted, by time.monotonic
    waiting = 0  # threads of it that wait
    items = 0  # of a stream, that were sent
    future: Any = None  # of a coroutine
    started = 0
    held: Sequence[Any] = ()  # the references in what it gave that pickling has found, or made
    keep: Any = None  # what it gave, with the references in it, until its report is queued: not before does the owner know of them

    def __init__(self, executor: Executes, work: Work) -> None:
        super().__init__(executor.client, work.id, work.attempt, work.trace)
        self.executor = executor
        self.work = work
        self.parent = work.parent

    @cached_property
    def base(self) -> bytes:
        """A call that comes from another job makes what it makes for the actor's job: its id says that, and it stays when the caller's job
        has ended."""
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

    def taken(self) -> list[Any]:
        """Its arguments by place once more, while it runs: copies that nothing else has."""
        return arguments(self.client, self.work, None)[0]
