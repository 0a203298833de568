"""The task on whose behalf code runs."""

from __future__ import annotations

import threading
from functools import cached_property
from itertools import count
from typing import Any, Callable, Generic, Optional, Protocol, TypeVar

from .. import _ids, _sampling
from .._wire import hot

T = TypeVar("T")


class Connection(Protocol):
    """What a task needs to know of the connection that its code uses."""

    @property
    def sampler(self) -> _sampling.Sampler: ...

    def now(self) -> int: ...


class Hosted(Protocol):
    """The actor that this process is."""

    id: bytes
    name: str
    sha: str  # of its class
    methods: dict[str, tuple[int, str]]
    timers: list[Any]


class Once(Generic[T]):
    """An attribute that is made when it is first asked for; threads that ask at the same time get the same one,
    which cached_property does not promise."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, of: Any, owner: Any = None) -> T:
        made: T = of.__dict__.setdefault(self._name, self._make())
        return made


class TaskContext:
    """The task on whose behalf code runs: ids of what it submits and puts follow from it. What only a task needs that submits
    others is made with its first."""

    called = False  # it has submitted a task
    seceded = False  # it has given its place up
    parent = b""  # the task that has submitted it; a driver's own has none
    waits = False  # it is told when it begins to wait, and when it goes on: a worker's, outside of a loop

    calls = Once(lambda: count(1))
    puts = Once(lambda: count(1))
    orders: Once[dict[bytes, CallOrder]] = Once(dict)

    def __init__(self, client: Connection, task: bytes, attempt: int = 0, trace: bytes = b"") -> None:
        self.client = client
        self.task = task
        self.attempt = attempt
        self.raw_trace = trace

    @cached_property
    def base(self) -> bytes:
        """The task as the owner of what it makes knows it, and what ids follow from."""
        return self.task

    @cached_property
    def parent_field(self) -> bytes:
        return hot.spec_head(self.base)

    @cached_property
    def place(self) -> Optional[_sampling.Place]:
        """The span that it runs in; None: it is in no trace."""
        return _sampling.of_task(self.task, self.attempt, self.raw_trace)

    @cached_property
    def sampled(self) -> bool:
        """Whether what it submits is traced."""
        return self.place is not None and self.client.sampler.decide(self.place).sampled

    @cached_property
    def trace(self) -> Optional[bytes]:
        """Its trace as a field of what it submits; None: each call begins a trace."""
        p = self.place
        return None if p is None else self.client.sampler.decide(p).field()

    @cached_property
    def derive(self) -> Callable[[int], bytes]:
        return _ids.deriver(self.base)

    @property
    def actor(self) -> bytes:
        """The actor that it creates or is a call of; empty for another."""
        return b""

    def host(self) -> Optional[Hosted]:
        """That actor, as this process has it."""
        return None

    def block(self) -> None:
        """It begins to wait."""

    def needs(self, ids: list[bytes]) -> None:
        """It goes on when it has all of these objects, and not before."""

    def unblock(self) -> None:
        """It goes on."""

    def check(self) -> None:
        """Raises where it waits, once it is cancelled."""

    def next_task(self) -> bytes:
        return self.derive(next(self.calls))

    def next_put(self) -> bytes:
        return _ids.put_id(self.base, next(self.puts))

    def order(self, actor: bytes) -> CallOrder:
        o = self.orders.get(actor)
        return o if o is not None else self.orders.setdefault(actor, CallOrder())


class CallOrder:
    """Numbers the calls of one caller to one actor; the lock is held while a call is queued."""

    __slots__ = ("lock", "seq")

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.seq = 0
