"""The task on whose behalf code runs."""

from __future__ import annotations

from functools import cached_property
from itertools import count
from typing import Any, Callable, Generic, Optional, Protocol, TypeVar

from .. import _ids, _sampling
from .._wire import hot

T = TypeVar("T")

FEW_ORDERS = 4096  # so many counters a task has before it asks which of them its owner needs no more


class Connection(Protocol):
    """What a task context needs of the connection."""

    @property
    def sampler(self) -> _sampling.Sampler: ...

    def now(self) -> int: ...

    def drop_orders(self, tc: TaskContext) -> None: ...


class Hosted(Protocol):
    """The actor that this process hosts."""

    id: bytes
    name: str
    sha: str  # hash of its class
    methods: dict[str, tuple[int, str]]
    timers: set[Any]


class Once(Generic[T]):
    """An attribute that is computed on first use. Threads that use it at the same time get the same value, which cached_property does not
    promise."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, of: Any, owner: Any = None) -> T:
        made: T = of.__dict__.setdefault(self._name, self._make())
        return made


class TaskContext:
    """The task on whose behalf code runs. The ids of its calls and puts follow from its own. Attributes that only a task with calls needs
    are computed on its first call."""

    called = False  # it has submitted a task
    seceded = False  # see mobula.distributed.secede
    parent = b""  # the task that has submitted it; empty for a driver's root task
    few_orders = FEW_ORDERS  # so many counters need no look (uncounted)
    waits = False  # block() and unblock() have an effect: a worker's task that is no coroutine

    calls = Once(lambda: count(1))
    puts = Once(lambda: count(1))
    orders: Once[dict[bytes, CallOrder]] = Once(dict)
    functions: Once[dict[str, Any]] = Once(dict)  # references to the functions that it has put, by hash (_functions)

    def __init__(self, client: Connection, task: bytes, attempt: int = 0, trace: bytes = b"") -> None:
        self.client = client
        self.task = task
        self.attempt = attempt
        self.raw_trace = trace

    @cached_property
    def base(self) -> bytes:
        """The id from which the ids of calls and puts follow, and by which their owner knows this task."""
        return self.task

    @cached_property
    def parent_field(self) -> bytes:
        return hot.spec_head(self.base)

    @cached_property
    def span_context(self) -> Optional[_sampling.SpanContext]:
        """The span that the task runs in; None: it is in no trace."""
        return _sampling.of_task(self.task, self.attempt, self.raw_trace)

    @cached_property
    def sampled(self) -> bool:
        """Whether the calls it makes are sampled."""
        return self.span_context is not None and self.client.sampler.decide(self.span_context).sampled

    @cached_property
    def trace(self) -> Optional[bytes]:
        """Its trace, encoded for the specs of its calls; None: each call begins a trace."""
        p = self.span_context
        return None if p is None else self.client.sampler.decide(p).field()

    @cached_property
    def derive(self) -> Callable[[int], bytes]:
        return _ids.deriver(self.base)

    @property
    def actor(self) -> bytes:
        """The actor that it creates, or whose method it runs; empty for a plain task."""
        return b""

    def host(self) -> Optional[Hosted]:
        """The actor that this process hosts, if the task belongs to it."""
        return None

    def block(self) -> None:
        """The task begins to wait."""

    def needs(self, ids: list[bytes]) -> None:
        """The task waits until it has all of these objects, however long it takes."""

    def unblock(self) -> None:
        """The task's wait is over."""

    def check(self) -> None:
        """Raises TaskInterrupt if the task was cancelled; waits call it."""

    def next_task(self) -> bytes:
        return self.derive(next(self.calls))

    def next_put(self) -> bytes:
        return _ids.put_id(self.base, next(self.puts))

    def order(self, actor: bytes) -> CallOrder:
        o = self.orders.get(actor)
        if o is None:
            o = self.orders.setdefault(actor, CallOrder())
            if len(self.orders) > self.few_orders:
                self.few_orders = 2 * len(self.orders)  # until the answer is here
                self.client.drop_orders(self)
        return o


class CallOrder:
    """Numbers the calls of one caller to one actor. seq is the number of the last call that was queued; it changes in one step with the queue."""

    __slots__ = ("seq",)

    def __init__(self) -> None:
        self.seq = 0
