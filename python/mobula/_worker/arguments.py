"""Decodes a task's arguments."""

from __future__ import annotations

import weakref
from typing import Any, Optional

from .. import _value
from .._client import Client, log
from .._functions import STORED, load
from .._refs import bound
from .._wire import messages as m
from .._wire.hot import Answer, Argument, Work
from ..exceptions import MobulaError, ProtocolError


class Hold:
    """The owner of the views of one argument. The node pins the argument while the task runs; a view that outlives the task needs a pin
    of this process (keep)."""

    __slots__ = ("reading", "ref", "__weakref__")

    def __init__(self) -> None:
        self.reading: Any = None
        self.ref: Any = None


# The arguments of one call that are views of the segment.
Holds = list[tuple[Argument, Hold]]


def arguments(client: Client, work: Work, holds: Optional[Holds]) -> tuple[list[Any], dict[str, Any]]:
    """The values of a task's positional and keyword arguments. If holds is None they are copies and no views of the store."""
    args = _given(work)
    if not args:
        return [], {}
    names: list[str] = []
    if args[-1].answer.meta == _value.META_KWARGS and not args[-1].ref:
        names = args[-1].answer.data.decode("utf-8", "surrogatepass").split("\0")[:-1]
        args = args[:-1]
    values = [_argument(client, a, holds) for a in args]
    if not names:
        return values, {}
    k = len(values) - len(names)
    return values[:k], dict(zip(names, values[k:]))


def shared(work: Work) -> int:
    """The number of bytes of a task's arguments that are read-only views, or have such views in them."""
    return sum(max(a.answer.size, len(a.answer.data)) for a in _given(work) if _value.has_views(a.answer.meta))


def _given(work: Work) -> list[Argument]:
    """A task's arguments without its function and the types in retry_exceptions, which may be the last ones."""
    args, o = work.args, work.options
    if o.func[-1:] == STORED:
        args = args[:-1]
    return args[:-1] if o.retry_only[-1:] == STORED else args


def function_of(client: Client, work: Work, holds: Holds) -> Any:
    """The function of a task, which is its last argument."""
    if not work.args:
        raise ProtocolError(f"{work.options.func}: a call without its function")
    return _argument(client, work.args[-1], holds)


def retried_types(client: Client, work: Work) -> Any:
    """The types in the retry_exceptions of a task, which are an argument, or a file."""
    sha = work.options.retry_only
    if sha[-1:] != STORED:
        return load(client, sha)
    return _argument(client, work.args[len(_given(work))], None)


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
    """Pins the arguments whose views outlive the task. It must run before the task's report, with which the node's pins end. It empties
    holds first: a Hold that survives this has a view, whatever its reference count is."""
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
