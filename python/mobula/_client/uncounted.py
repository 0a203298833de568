"""Drops counters of calls. A counter cannot go with the last handle of its actor: one that is found again by its name is called on from the
number where it was. It goes when the owner has no number of this caller to go on from, since it does not know the actor, or the actor has ended.
The owner is asked when a task has FEW_ORDERS counters, and then twice what was left."""

from __future__ import annotations

from itertools import islice
from typing import Any, Iterator

import cbor2

from .. import _ids
from .._wire import codec
from .._wire import messages as m
from .context import FEW_ORDERS, CallOrder, TaskContext
from .spans import Asks
from .waiter import Waiter

_METHOD = "actor.uncounted"
_BATCH = 4096  # most actors in one request


class _Asked(Waiter):
    """A request that is under way."""

    __slots__ = ("look", "counters")

    def __init__(self, look: Look, counters: list[tuple[bytes, CallOrder, int]]) -> None:
        super().__init__(1)
        self.look = look
        self.counters = counters

    def done(self, n: int = 1) -> None:
        super().done(n)
        self.look.answered(self)


class Look:
    """A look at all of a task's counters, one request after another."""

    def __init__(self, client: Asks, tc: TaskContext) -> None:
        self._client = client
        self._tc = tc
        self._actors: Iterator[bytes] = iter(list(tc.orders))

    def ask(self) -> None:
        """Asks about the next actors, if there are any left."""
        orders, counters = self._tc.orders, []
        for actor in islice(self._actors, _BATCH):
            order = orders.get(actor)
            if order is not None:
                counters.append((actor, order, order.seq))
        if counters:
            body = cbor2.dumps({"job": _ids.job_of(self._tc.base), "actors": [actor for actor, _, _ in counters]})
            self._client.requests.ask(lambda req: codec.message(m.Request(req, _METHOD, body)), _Asked(self, counters))

    def answered(self, asked: _Asked) -> None:
        """Drops the counters that the answer names, except those of actors that were called since: it may be older than the call. Who has got
        one already, and calls after this, begins at 1 like whoever gets the next one."""
        r: m.Reply = asked.slot
        if r.err is not None:  # a busy node: the next look is at twice as many
            return
        orders = self._tc.orders
        said: dict[str, Any] = cbor2.loads(r.body)
        for i in said["actors"] or ():
            actor, order, seq = asked.counters[i]
            if actor in orders and orders[actor] is order and order.seq == seq:  # whole
                order.seq = 0
                del orders[actor]
        self._tc.few_orders = max(FEW_ORDERS, 2 * len(orders))
        self.ask()
