"""Encodes a task's results, or its error, for its report."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

from .. import _functions, _ids, _value
from .._api import put
from .._wire import codec, hot
from .._wire import messages as m
from ..exceptions import MobulaError, NotEncodableError, ReturnMismatchError
from . import forked
from .arguments import retried_types
from .call import Call, TaskInterrupt
from .user_code import traceback_of

NONE = hot.result_inline(_value.META_NIL, b"\xf6")


def result(call: Call, value: Any, i: int, space: int = m.MESSAGE_VALUES) -> bytes:
    """Encodes the i-th result of a task. A large result, or one that does not fit into the rest of the message (space bytes), is written to
    the object store."""
    client, work = call.client, call.work
    func, inline = work.options.func, min(client.inline, space)
    try:
        e = _plain(func, value, i, inline) if _functions.by_name(func) else _value.encode(value, inline)
    except NotEncodableError as why:
        raise _explained(value, why) from why.__cause__
    if e.held:
        call.held = [*call.held, *e.held]
    if e.data is not None:
        return hot.result_inline(e.meta, e.data, e.refs)
    # A coroutine that has returned is not cancelled while it waits for room in the store.
    tc = None if call.future is not None and work.options.num_returns >= 0 else call
    client.putter.put_large(_ids.return_id(work.id, i), work.attempt, work.id, e.meta, e.size, e.parts, e.refs, tc=tc)
    return hot.result_stored(e.meta, e.size, e.refs)


def _explained(value: Any, why: NotEncodableError) -> NotEncodableError:
    """The error for a value that cannot be encoded. A coroutine or a generator comes of a wrapper, which does not show what it wraps."""
    if inspect.iscoroutine(value):
        value.close()  # or Python says that it was never awaited
        return NotEncodableError(f"{why.message}; a method that gives a coroutine has to be one itself: make its wrapper an async def")
    if inspect.isgenerator(value) or inspect.isasyncgen(value):
        return NotEncodableError(f'{why.message}; for a stream of its items say num_returns="streaming"')
    return why


def _plain(func: str, value: Any, i: int, inline: int) -> _value.Encoded:
    """Encodes a result for a program in another language."""
    try:
        return _value.encode_plain(value, inline)
    except NotEncodableError as why:
        raise NotEncodableError(f"{func}: result {i}: {why.message}") from None


def results(call: Call, value: Any, n: int) -> bytes:
    """Encodes all n results of a task that is no stream."""
    call.keep = value
    if n == 1:
        return NONE if value is None else result(call, value, 0)
    if n == 0:
        return b""
    try:
        values = list(value)
    except TypeError:
        values = [value]
    call.keep = values
    if len(values) != n:
        raise ReturnMismatchError(f"{call.work.options.func}: gave {len(values)} results, num_returns is {n}")
    out, space = [], m.MESSAGE_VALUES
    for i, v in enumerate(values):
        out.append(result(call, v, i, space))
        space = max(space - len(out[-1]), 0)
    return b"".join(out)


def failure(call: Call, x: BaseException) -> m.Error:
    """The error that is reported for a task that raised x. It raises nothing, whatever the code of x's class does."""
    forked.end(x)
    try:
        return _failure(call, x)
    except BaseException:
        return _value.undescribed(_name(call), call.work.id.hex())


def _name(call: Call) -> str:
    return _functions.shown(call.work.options.func)


def _failure(call: Call, x: BaseException) -> m.Error:
    work = call.work
    held: list[Any] = []
    call.final = work.options.retry_only != "" and _final(call, x)
    if call.error is not None and isinstance(x, (TaskInterrupt, asyncio.CancelledError)):
        e = codec.to_wire(call.error)
    elif isinstance(x, MobulaError) and x.__traceback__ is not None and traceback_of(x) is None:
        e = codec.to_wire(x)
        held += _value.refs_of(x)
    else:
        e = _value.failure(_name(call), work.id.hex(), x, traceback_of(x), put, held)
    if held:
        call.held = [*call.held, *held]
    e.task = work.id.hex()
    return e


def _final(call: Call, x: BaseException) -> bool:
    """Whether an exception is of none of the types in retry_exceptions."""
    try:
        return not isinstance(x, retried_types(call.client, call.work))
    except BaseException:  # the types cannot be loaded here, or a check of theirs raises: report the task's own error, without a retry
        return True
