"""Encodes and decodes the messages on a task's path by hand, with the same bytes as codec.py.

Encoders return a whole message, with its kind before it. Decoders read from bytes, so a slice is a copy.
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple, Optional, Sequence

from .codec import decode, read_two, read_varint, varint
from .messages import Error, Extent, Result, TaskOptions, TraceContext, Value

_TIMES = struct.Struct("<BBBqBqBq")
_TASK_ID = b"\x0a\x14"  # the tag and length of a spec's first field, the id
_DEADLINE = struct.Struct("<Bq")


def value_fields(meta: bytes, data: bytes, refs: Sequence[bytes] = ()) -> bytes:
    """Encodes the fields of a Value."""
    out = b"\x0a" + varint(len(meta)) + meta if meta else b""
    if data:
        out += b"\x12" + varint(len(data)) + data
    for r in refs:
        out += b"\x1a\x18" + r
    return out


def arg_value(meta: bytes, data: bytes, refs: Sequence[bytes] = ()) -> bytes:
    """Encodes an argument of a TaskSpec that is a value."""
    v = value_fields(meta, data, refs)
    n = varint(len(v))
    return b"\x2a" + varint(len(v) + 1 + len(n)) + b"\x12" + n + v


def arg_ref(obj: bytes) -> bytes:
    """Encodes an argument of a TaskSpec that is a reference."""
    return b"\x2a\x1a\x0a\x18" + obj


def spec_head(parent: bytes) -> bytes:
    """Encodes the parent of a TaskSpec. It is the same for all calls of one task."""
    return b"\x12\x14" + parent


def spec_options(kind: int, options: bytes) -> bytes:
    """Encodes kind and options of a TaskSpec. They are the same for all calls of one handle."""
    head = b"\x18" + varint(kind) if kind else b""
    return head + b"\x22" + varint(len(options)) + options


def submit(task: bytes, parent_field: bytes, options_field: bytes, args: bytes, tail: bytes = b"") -> bytes:
    """Encodes a Submit. parent_field is from spec_head, options_field from spec_options, tail from spec_tail."""
    n = 22 + len(parent_field) + len(options_field) + len(args) + len(tail)
    ln = varint(n)
    return b"".join((b"\x22", varint(n + 1 + len(ln)), b"\x0a", ln, b"\x0a\x14", task, parent_field, options_field, args, tail))


def spec_tail(actor: bytes = b"", seq: int = 0, deadline: int = 0, traced: bytes = b"") -> bytes:
    """Encodes the fields behind the arguments. traced is from _trace.field: the trace, the call site, the time of the call."""
    out = b"\x32\x14" + actor if actor else b""
    if seq:
        out += b"\x38" + varint(seq)
    if deadline:
        out += _DEADLINE.pack(0x41, deadline)
    return out + traced


def callsite_field(callsite: str) -> bytes:
    """Encodes a call site."""
    raw = callsite.encode("utf-8", "replace")
    return b"\x52" + varint(len(raw)) + raw


def promises(numbers: Sequence[int]) -> bytes:
    """Encodes the numbers of the tasks that a graph's task promises to submit."""
    if not numbers:
        return b""
    packed = b"".join(map(varint, numbers))
    return b"\x62" + varint(len(packed)) + packed


def get(obj: bytes, fetch: bool) -> bytes:
    return b"\x3a\x1c\x0a\x18" + obj + b"\x10\x01" if fetch else b"\x3a\x1a\x0a\x18" + obj


def unget(obj: bytes) -> bytes:
    return b"\x42\x1a\x0a\x18" + obj


def add_ref(obj: bytes) -> bytes:
    return b"\x4a\x1a\x0a\x18" + obj


def release(objs: Sequence[bytes]) -> bytes:
    return b"\x52" + varint(26 * len(objs)) + b"\x0a\x18" + b"\x0a\x18".join(objs)


def put_value(obj: bytes, meta: bytes, data: bytes, refs: Sequence[bytes] = ()) -> bytes:
    v = value_fields(meta, data, refs)
    n = varint(len(v))
    return b"\x2a" + varint(27 + len(n) + len(v)) + b"\x0a\x18" + obj + b"\x12" + n + v


def unpin(obj: bytes, n: int) -> bytes:
    c = varint(n)
    return b"\x8a\x01" + varint(27 + len(c)) + b"\x0a\x18" + obj + b"\x10" + c


def result_inline(meta: bytes, data: bytes, refs: Sequence[bytes] = ()) -> bytes:
    """Encodes an inline Result as a field of Done."""
    v = value_fields(meta, data, refs)
    body = b"\x08\x01\x12" + varint(len(v)) + v if v else b"\x08\x01"
    if data:
        body += b"\x18" + varint(len(data))
    return b"\x22" + varint(len(body)) + body


def result_stored(meta: bytes, size: int, refs: Sequence[bytes] = ()) -> bytes:
    """Encodes a stored Result as a field of Done."""
    v = value_fields(meta, b"", refs)
    body = b"\x08\x02\x12" + varint(len(v)) + v + b"\x18" + varint(size)
    return b"\x22" + varint(len(body)) + body


def done(task: bytes, attempt: int, lease: int, results: bytes, received: int, started: int, ended: int,
         items: int = 0, err: bytes = b"", final: bool = False, still_runs: bool = False) -> bytes:
    """Encodes a Done. results are from result_inline and result_stored, err is an encoded Error; final: the error is not retried;
    still_runs: it was given up, and another Done follows when it returns."""
    body = b"\x0a\x14" + task
    if attempt:
        body += b"\x10" + varint(attempt)
    if lease:
        body += b"\x18" + varint(lease)
    body += results
    if items:
        body += b"\x28" + varint(items)
    if err:
        body += b"\x32" + varint(len(err)) + err
    body += _TIMES.pack(0x3A, 27, 0x09, received, 0x11, started, 0x19, ended)
    if final:
        body += b"\x40\x01"
    if still_runs:
        body += b"\x48\x01"
    return b"\xba\x01" + varint(len(body)) + body


class Answer(NamedTuple):
    """A decoded Result."""

    kind: int = 0
    meta: bytes = b""
    data: bytes = b""
    refs: tuple[bytes, ...] = ()
    size: int = 0
    err: Optional[Error] = None


_NONE = Answer()
_make: Any = tuple.__new__  # makes a named tuple without its Python code


def _value(b: bytes, i: int, end: int) -> tuple[bytes, bytes, tuple[bytes, ...]]:
    """Decodes a Value: meta, data, references."""
    meta = data = b""
    refs: tuple[bytes, ...] = ()
    while i < end:
        t = b[i]
        n = b[i + 1]
        i += 2
        if n > 127:
            n, i = read_varint(b, i - 1)
        if t == 0x0A:
            meta = b[i:i + n]
        elif t == 0x12:
            data = b[i:i + n]
        elif t == 0x1A:
            refs += (b[i:i + n],)
        i += n
    return meta, data, refs


def _answer(b: bytes, i: int, end: int) -> Answer:
    kind = size = 0
    meta = data = b""
    refs: tuple[bytes, ...] = ()
    err = None
    while i < end:
        tag = b[i]
        i += 1
        if tag == 0x12 or tag == 0x22:
            n = b[i]
            i += 1
            if n > 127:
                n, i = read_varint(b, i - 1)
            j = i + n
            if tag == 0x12:
                meta, data, refs = _value(b, i, j)
            else:
                err = decode(Error, b, i, j)
            i = j
        elif tag == 0x08:
            kind = b[i]
            i += 1
        elif tag == 0x18:
            size, i = read_varint(b, i)
        else:
            r: Result = decode(Result, b, i - 1, end)  # a field of a later version
            v = r.value or Value(meta, data, list(refs))
            return Answer(r.kind or kind, v.meta, v.data, tuple(v.refs), r.size or size, r.err or err)
    answer: Answer = _make(Answer, (kind, meta, data, refs, size, err))
    return answer


def resolved(b: bytes, i: int, end: int) -> tuple[bytes, bool, Answer, Optional[Extent], bool]:
    """Decodes a Resolved: id, fetch, result, extent, elsewhere."""
    obj = b""
    fetch = elsewhere = False
    answer = _NONE
    extent: Optional[Extent] = None
    while i < end:
        tag = b[i]
        i += 1
        if tag == 0x10:
            fetch = b[i] != 0
            i += 1
            continue
        n = b[i]
        i += 1
        if n > 127:
            n, i = read_varint(b, i - 1)
        if tag == 0x0A:
            obj = b[i:i + n]
        elif tag == 0x1A:
            answer = _answer(b, i, i + n)
        elif tag == 0x22:
            extent = decode(Extent, b, i, i + n)
        elif tag == 0x28:
            elsewhere = n != 0
            continue
        i += n
    return obj, fetch, answer, extent, elsewhere


class Argument(NamedTuple):
    """An argument of a task in its worker. extent is set if the value is in the segment."""

    answer: Answer
    extent: Optional[Extent] = None
    ref: bytes = b""


class Work(NamedTuple):
    """One attempt of a task, from an Exec."""

    id: bytes
    attempt: int
    lease: int
    parent: bytes
    kind: int
    options: TaskOptions
    args: list[Argument]
    actor: bytes
    seq: int
    deadline: int
    trace: bytes  # an encoded TraceContext, or empty
    received: int = 0


_options: dict[bytes, TaskOptions] = {}
_MOST_OPTIONS = 512
_LONG = 1 << 10  # bytes; longer ones are not kept


def options_of(raw: bytes) -> TaskOptions:
    """Decodes options. Equal encodings give the same object, unless they are long."""
    o = _options.get(raw)
    if o is None:
        o = decode(TaskOptions, raw)
        if len(raw) <= _LONG:
            if len(_options) >= _MOST_OPTIONS:
                _options.clear()
            _options[raw] = o
    return o


def exec_tasks(b: bytes, i: int, end: int, received: int) -> list[Work]:
    """Decodes an Exec."""
    lease = 0
    out: list[Work] = []
    while i < end:
        tag, n, i = read_two(b, i)
        if tag == 0x12:
            out.append(_task(b, i, i + n, lease, received))
            i += n
        elif tag == 0x08:
            lease = n
        elif tag & 7 == 2:
            i += n
    return out


# The last spec's part from behind its id to its options: encoded, and its parent, kind and options. It is the same for all calls of one handle.
_head: tuple[bytes, bytes, int, Optional[TaskOptions]] = (b"", b"", 0, None)


def _task(b: bytes, i: int, end: int, lease: int, received: int) -> Work:
    global _head
    attempt = 0
    task = parent = actor = trace = b""
    kind = seq = deadline = 0
    options: Optional[TaskOptions] = None
    args: list[Argument] = []
    while i < end:
        tag = b[i]
        i += 1
        if tag == 0x10:
            attempt, i = read_varint(b, i)
            continue
        n = b[i]
        i += 1
        if n > 127:
            n, i = read_varint(b, i - 1)
        j = i + n
        if tag == 0x0A:
            start = i + 22
            head = _head
            if head[0] and b.startswith(head[0], start) and b.startswith(_TASK_ID, i):
                task = b[i + 2:start]
                encoded, parent, kind, options = head
                i = min(start + len(encoded), j)
            while i < j:
                t = b[i]
                i += 1
                w = t & 7
                if w == 2:
                    n = b[i]
                    i += 1
                    if n > 127:
                        n, i = read_varint(b, i - 1)
                    if t == 0x2A:
                        args.append(_arg(b, i, i + n))
                    elif t == 0x0A:
                        task = b[i:i + n]
                    elif t == 0x12:
                        parent = b[i:i + n]
                    elif t == 0x22:
                        options = options_of(b[i:i + n])
                        if task and not (args or actor or trace or seq or deadline) and b.startswith(_TASK_ID, start - 22):
                            _head = b[start:i + n], parent, kind, options
                    elif t == 0x32:
                        actor = b[i:i + n]
                    elif t == 0x4A:
                        trace = b[i:i + n]
                    i += n
                elif w == 0:
                    v = b[i]
                    i += 1
                    if v > 127:
                        v, i = read_varint(b, i - 1)
                    if t == 0x18:
                        kind = v
                    elif t == 0x38:
                        seq = v
                else:
                    if t == 0x41:
                        deadline = int.from_bytes(b[i:i + 8], "little", signed=True)
                    i += 8
        elif tag == 0x1A:
            _resolved_arg(b, i, j, args)
        i = j
    work: Work = _make(Work, (task, attempt, lease, parent, kind, options or TaskOptions(), args, actor, seq, deadline, trace, received))
    return work


def _arg(b: bytes, i: int, end: int) -> Argument:
    meta = data = ref = b""
    refs: tuple[bytes, ...] = ()
    while i < end:
        tag = b[i]
        n = b[i + 1]
        i += 2
        if n > 127:
            n, i = read_varint(b, i - 1)
        j = i + n
        if tag == 0x0A:
            ref = b[i:j]
        elif tag == 0x12:
            meta, data, refs = _value(b, i, j)
        i = j
    if ref:
        return Argument(_NONE, None, ref)
    argument: Argument = _make(Argument, (_make(Answer, (1, meta, data, refs, len(data), None)), None, b""))
    return argument


def _resolved_arg(b: bytes, i: int, end: int, args: list[Argument]) -> None:
    index = 0
    answer = _NONE
    extent: Optional[Extent] = None
    while i < end:
        tag = b[i]
        i += 1
        if tag == 0x08:
            index, i = read_varint(b, i)
            continue
        n, i = read_varint(b, i)
        if tag == 0x12:
            answer = _answer(b, i, i + n)
        elif tag == 0x1A:
            extent = decode(Extent, b, i, i + n)
        i += n
    if index < len(args):
        args[index] = Argument(answer, extent, args[index].ref)


__all__ = ["Answer", "Argument", "TraceContext", "Work", "add_ref", "arg_ref", "arg_value", "callsite_field", "done", "exec_tasks", "get",
           "options_of", "put_value", "release", "resolved", "result_inline", "result_stored", "spec_head", "spec_options", "spec_tail",
           "submit", "unget", "unpin", "value_fields"]
