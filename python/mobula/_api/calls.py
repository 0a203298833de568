"""Encodes a call and submits it."""

from __future__ import annotations

from typing import Any, Callable, Iterable, Mapping, Optional, Sequence

from .. import _ids, _trace, _value
from .._client import Client, Handle, TaskContext
from .._functions import Exported
from .._refs import ObjectRef, ObjectRefGenerator, made
from .._wire import hot
from .._wire import messages as m
from ..exceptions import InvalidError

_ZERO = bytes(4)


Encoder = Callable[[Any, int], _value.Encoded]


def encode_args(c: Client, tc: TaskContext, args: Sequence[Any], kwargs: Mapping[str, Any],
                encode: Encoder = _value.encode) -> tuple[bytes, int, list[Any]]:
    """Returns the encoded arguments, their cost in bytes of credit, and what has to live until the submit: references to large arguments, and those
    in values."""
    out: list[bytes] = []
    cost = 512
    keep: list[Any] = []
    values: Iterable[Any] = args
    if kwargs:
        values = [*args, *kwargs.values()]
    inline, space = c.inline, m.MESSAGE_VALUES
    for x in values:
        if type(x) is ObjectRef:
            if x._c is not c:
                raise InvalidError(f"{x!r} is of another connection")
            out.append(hot.arg_ref(x._h.id))
            cost += 64
            continue
        e = encode(x, inline)
        if e.held:  # one that __reduce__ has made is held by nothing else
            keep.extend(e.held)
        if e.data is None:
            task, id = tc.task if tc is not c.root else b"", tc.next_put()
            ref: ObjectRef[Any] = ObjectRef(c, Handle(id))
            c.putter.put_large(id, tc.attempt, task, e.meta, e.size, e.parts, e.refs, ref, tc)
            keep.append(ref)
            out.append(hot.arg_ref(id))
            cost += 64
        else:
            out.append(hot.arg_value(e.meta, e.data, e.refs))
            cost += 64 + len(e.meta) + e.size
            space -= e.size
            if space < inline:
                inline = max(space, 0)
    if kwargs:
        names = "".join(k + "\0" for k in kwargs).encode("utf-8", "surrogatepass")
        if names.count(0) > len(kwargs):
            raise InvalidError(f"the name of a keyword argument has a NUL: {list(kwargs)!r}")
        out.append(hot.arg_value(_value.META_KWARGS, names))
        cost += 80 + len(names)
    return b"".join(out), cost, keep


def with_stored(c: Client, stored: Iterable[Exported], packed: tuple[bytes, int, list[Any]]) -> tuple[bytes, int, list[Any]]:
    """Adds what a call needs out of the store to its encoded arguments."""
    out, cost, keep = packed
    for e in stored:
        ref = e.argument(c)
        keep.append(ref)
        out, cost = out + hot.arg_ref(ref._h.id), cost + 64
    return out, cost, keep


def pack(c: Client, tc: TaskContext, args: Sequence[Any], kwargs: Mapping[str, Any], encode: Encoder = _value.encode,
         stored: Iterable[Exported] = ()) -> tuple[bytes, list[Any]]:
    """Encodes the arguments of a call and waits for credit. Returns them, and what has to live until the submit. stored: the types in
    retry_exceptions and the function, each if it is in the store."""
    if c.dead is not None:
        raise c.over()
    packed, cost, keep = encode_args(c, tc, args, kwargs, encode)
    if stored:
        packed, cost, keep = with_stored(c, stored, (packed, cost, keep))
    if c.credit.left is not None:
        c.credit.admit(cost, tc)
    tc.called = True
    return packed, keep


def results(c: Client, task: bytes, returns: int) -> Any:
    """What remote() returns for num_returns: a reference, a generator (-1), None (0) or a list of references."""
    if returns == 1:
        return made(c, task + _ZERO)
    if returns < 0:
        return ObjectRefGenerator(c, task)
    if returns == 0:
        return None
    return [made(c, _ids.return_id(task, i)) for i in range(returns)]


def submit(c: Client, tc: TaskContext, task: bytes, options: bytes, args: Sequence[Any], kwargs: Mapping[str, Any], returns: int,
           tail: bytes, encode: Encoder = _value.encode, callsite: bytes = b"", stored: Iterable[Exported] = ()) -> Any:
    """Queues a task and returns the references to its results. stored: as of pack."""
    packed, keep = pack(c, tc, args, kwargs, encode, stored)
    result = results(c, task, returns)
    c.out.append(hot.submit(task, tc.parent_field, options, packed, tail + _trace.field(tc, task, callsite)))
    c.maybe_flush()
    del keep  # not before the submit
    return result


def deadline(c: Client, timeout: Optional[float]) -> int:
    """The time, by the node's clock in nanoseconds, at which a call's timeout ends; 0 if it has none."""
    return 0 if timeout is None else c.now() + int(timeout * 1e9)
