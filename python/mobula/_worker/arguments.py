"""What a task is called with."""

from __future__ import annotations

import weakref
from typing import Any, Optional

from .. import _value
from .._client import Client, log
from .._refs import bound
from .._wire import messages as m
from .._wire.hot import Answer, Argument, Work
from ..exceptions import MobulaError, ProtocolError


class Hold:
    """An argument's bytes: the node has them pinned while the task runs. What outlives it takes a pin of its own."""

    __slots__ = ("reading", "ref", "__weakref__")

    def __init__(self) -> None:
        self.reading: Any = None
        self.ref: Any = None


# The arguments of one call that lie in the segment.
Holds = list[tuple[Argument, Hold]]


def arguments(client: Client, work: Work, holds: Optional[Holds]) -> tuple[list[Any], dict[str, Any]]:
    """The values of a task's arguments, by place and by name. Without holds they are copies: nothing of them is the store's memory."""
    args = work.args
    if not args:
        return [], {}
    names: list[str] = []
    if args[-1].answer.meta == _value.META_KWARGS and not args[-1].ref:
        names = args[-1].answer.data.decode().split("\0")[:-1]
        args = args[:-1]
    values = [_argument(client, a, holds) for a in args]
    if not names:
        return values, {}
    k = len(values) - len(names)
    return values[:k], dict(zip(names, values[k:]))


def _argument(client: Client, a: Argument, holds: Optional[Holds]) -> Any:
    r: Answer = a.answer
    decode = _value.decode_own if holds is None else _value.decode
    if r.kind == m.INLINE:
        return decode(r.meta, r.data)
    if r.kind == m.ERROR:
        raise _value.task_failure(r.err)
    if r.kind != m.STORED or a.extent is None or client.segment is None:
        raise ProtocolError(f"argument {a.ref.hex()} came without a result")
    hold = Hold()
    if holds is not None:
        holds.append((a, hold))
    return decode(r.meta, client.segment.view(a.extent, r.size, hold))


def keep(client: Client, holds: Holds) -> None:
    """Takes pins for what outlives its task, before the task's report gives the node's up. holds is empty then: what is still
    there without it outlives the task, whatever an interpreter counts."""
    while holds:
        a, held = holds.pop()
        seen = weakref.ref(held)
        del held
        hold = seen()
        if hold is not None:
            ref = bound(client, a.ref)
            try:
                _, hold.reading = client.getter.fetch_one(ref._h, None, None)
                hold.ref = ref
            except MobulaError:
                log.warning("an argument that outlives its task could not be pinned: %r", ref)
