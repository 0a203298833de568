"""Encodes and decodes messages and frames by the table in messages.py.

It serves all messages that are not on a task's path. Those are encoded by hand in hot.py, and tests compare the two.
"""

from __future__ import annotations

import struct
from typing import Any, Callable, Iterable, Iterator, Optional, Sequence

from .._said import named
from ..exceptions import BY_CODE, MobulaError, NotEncodableError, ProtocolError, UserError
from .messages import ERROR, FIELDS, KIND_OF, KINDS, MAX_FRAME, Arg, Error, Result, TraceContext, Times, Extent, Value

HEADER = struct.Struct("<2sBBI")
HEADER_SIZE = 8
_PLAIN = struct.Struct("<4sI")  # reads the header of a frame without flags
FRAME_TARGET = (64 << 10) - HEADER_SIZE
FLAG_FILE = 1

_F64 = struct.Struct("<q")
_X64 = struct.Struct("<Q")

_small = [bytes([i]) for i in range(128)]


def varint(n: int) -> bytes:
    """An unsigned varint."""
    if n < 128:
        return _small[n]
    if n < 16384:
        return bytes((n & 127 | 128, n >> 7))
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def zigzag(n: int) -> int:
    return (n << 1) ^ (n >> 63) if n >= 0 else ((-n) << 1) - 1


def read_varint(b: bytes, i: int) -> tuple[int, int]:
    """Reads a varint at i. Returns it and the index behind it."""
    n = b[i]
    if n < 128:
        return n, i + 1
    c = b[i + 1]
    if c < 128:
        return n & 127 | c << 7, i + 2
    n = n & 127 | (c & 127) << 7
    shift = 14
    i += 2
    while True:
        c = b[i]
        i += 1
        n |= (c & 127) << shift
        if c < 128:
            return n & 0xFFFFFFFFFFFFFFFF, i
        shift += 7
        if shift > 63:
            raise ProtocolError(f"a varint of more than 10 bytes before byte {i}")


# Nested messages that are left out if all their fields are zero. Any other nested message that is not None is written.
_OMIT_EMPTY = (Value, Extent, TraceContext, Times)


def encode(m: Any) -> bytes:
    """Encodes a message's body."""
    cls = type(m)
    out: list[bytes] = []
    for f in FIELDS[cls]:
        v = getattr(m, f.name)
        if f.repeated and f.kind == "u":
            if v:
                body = b"".join(map(varint, v))
                out += (varint(f.number << 3 | 2), varint(len(body)), body)
        elif f.repeated:
            for e in v:
                _field(out, f.number, f.kind, e, True)
        elif cls is Arg and f.kind is Value:
            if not m.ref or (v is not None and (v.meta or v.data or v.refs)):
                _field(out, f.number, f.kind, v if v is not None else Value(), True)
        elif f.kind is Result:
            _field(out, f.number, f.kind, v if v is not None else Result(), True)
        elif v is not None:
            _field(out, f.number, f.kind, v, False)
    return b"".join(out)


def _field(out: list[bytes], number: int, kind: Any, v: Any, always: bool) -> None:
    if isinstance(kind, type):
        body = encode(v)
        if body or always or kind not in _OMIT_EMPTY:
            out += (varint(number << 3 | 2), varint(len(body)), body)
    elif kind in "ty":
        body = v.encode("utf-8", "replace") if kind == "t" else v
        if body or always:
            out += (varint(number << 3 | 2), varint(len(body)), body)
    elif not v:
        return
    elif kind == "u" or kind == "b":
        out += (varint(number << 3), varint(int(v)))
    elif kind == "s":
        out += (varint(number << 3), varint(zigzag(v)))
    else:
        out += (varint(number << 3 | 1), (_F64 if kind == "f" else _X64).pack(v))


def decode(cls: type[Any], b: bytes, i: int = 0, end: Optional[int] = None) -> Any:
    """Decodes a message's body. Fields that are unknown, or of another wire type than theirs, are skipped. ProtocolError if it is malformed."""
    if end is None:
        end = len(b)
    m = cls()
    fields = FIELDS[cls]
    try:
        while i < end:
            tag, i = read_varint(b, i)
            number, wire = tag >> 3, tag & 7
            f = fields[number - 1] if 0 < number <= len(fields) else None
            v: Any
            if wire == 2:
                n, i = read_varint(b, i)
                j = i + n
                if j > end:
                    raise ProtocolError(f"{cls.__name__}: a field of {n} bytes where {end - i} are left")
                if f is not None:
                    if isinstance(f.kind, type):
                        v = decode(f.kind, b, i, j)
                    elif f.kind == "u" and f.repeated:  # packed
                        while i < j:
                            n, i = read_varint(b, i)
                            getattr(m, f.name).append(n)
                        continue
                    elif f.kind == "t":
                        v = b[i:j].decode("utf-8", "replace")
                    elif f.kind == "y":
                        v = bytes(b[i:j])
                    else:
                        i = j
                        continue
                    if f.repeated:
                        getattr(m, f.name).append(v)
                    else:
                        setattr(m, f.name, v)
                i = j
            elif wire == 0:
                n, i = read_varint(b, i)
                if f is None or f.kind not in ("s", "b", "u"):
                    continue
                if f.repeated:
                    getattr(m, f.name).append(n)
                    continue
                if f.kind == "s":
                    v = (n >> 1) ^ -(n & 1)
                elif f.kind == "b":
                    v = n != 0
                else:
                    v = n
                setattr(m, f.name, v)
            elif wire == 1:
                if f is not None and f.kind in ("f", "x"):
                    setattr(m, f.name, (_F64 if f.kind == "f" else _X64).unpack_from(b, i)[0])
                i += 8
            elif wire == 5:
                i += 4
            else:
                raise ProtocolError(f"{cls.__name__}: wire type {wire} at byte {i}")
    except (IndexError, struct.error):
        raise ProtocolError(f"{cls.__name__}: it ends inside a field") from None
    if i != end:
        raise ProtocolError(f"{cls.__name__}: it ends inside a field")
    return m


def message(m: Any) -> bytes:
    """Encodes a message with its kind before it, as frames hold it."""
    body = encode(m)
    return varint(KIND_OF[type(m)] << 3 | 2) + varint(len(body)) + body


def frame(*messages: Any) -> bytes:
    """Encodes messages as one frame, for the handshake and for tests."""
    body = b"".join(map(message, messages))
    return HEADER.pack(b"Mb", 1, 0, len(body)) + body


def frames(chunks: Iterable[bytes]) -> list[bytes]:
    """Groups encoded messages into frames of at most FRAME_TARGET bytes. A larger message gets a frame of its own."""
    out: list[bytes] = []
    run: list[bytes] = []
    size = 0
    for c in chunks:
        n = len(c)
        if run and size + n > FRAME_TARGET:
            out.append(HEADER.pack(b"Mb", 1, 0, size))
            out += run
            run, size = [], 0
        run.append(c)
        size += n
    if run:
        out.append(HEADER.pack(b"Mb", 1, 0, size))
        out += run
    return out


def read_two(b: bytes, i: int) -> tuple[int, int, int]:
    """Reads two varints at i, mostly of one byte each: a field's tag, and its length or number. Returns them and the index behind them."""
    tag, n = b[i], b[i + 1]
    if tag < 128:
        if n < 128:
            return tag, n, i + 2
        c = b[i + 2]
        if c < 128:
            return tag, n & 127 | c << 7, i + 3
    tag, i = read_varint(b, i)
    n, i = read_varint(b, i)
    return tag, n, i


def split(b: bytes, i: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yields kind, begin and end of each message in a frame's payload."""
    while i < end:
        tag, n, i = read_two(b, i)
        if tag & 7 != 2 or i + n > end:
            raise ProtocolError(f"a frame's message is cut off at byte {i}")
        yield tag >> 3, i, i + n
        i += n


def header(b: bytes, i: int) -> tuple[int, int]:
    """Reads a frame's header. Returns its flags and the length of its payload. ProtocolError if it is malformed."""
    begin, size = _PLAIN.unpack_from(b, i)
    if begin == b"Mb\x01\x00" and size <= MAX_FRAME:
        return 0, size
    magic, version, flags, size = HEADER.unpack_from(b, i)
    if magic != b"Mb":
        raise ProtocolError(f"a frame starts with {magic!r}, not with b'Mb': the other side does not speak this protocol")
    if version != 1:
        raise ProtocolError(f"framing version {version}, this build understands 1")
    if flags & ~FLAG_FILE:
        raise ProtocolError(f"unknown frame flags {flags:#x}")
    if size > MAX_FRAME:
        raise ProtocolError(f"a frame announces {size} bytes, the limit is {MAX_FRAME}")
    return flags, size


# Limits of an error on the wire.
_MAX_LINE, _MAX_STACK, _MAX_NAME, _MAX_DEPTH = 16 << 10, 64 << 10, 1 << 10, 16


def from_wire(e: Optional[Error]) -> MobulaError:
    """The exception for an error on the wire."""
    if e is None:
        return MobulaError("it failed, and the node did not say why")
    cls = BY_CODE.get(e.code, MobulaError)
    out = cls(e.msg, name=e.name, task=e.task, stack=e.stack, causes=tuple(from_wire(c) for c in e.cause))
    if isinstance(out, UserError):
        out.data = e.data
    if e.refs:
        out._mobula_refs = live(e.refs)
    return out


def _none_live(ids: Sequence[bytes]) -> tuple[Any, ...]:
    return ()


live: Callable[[Sequence[bytes]], tuple[Any, ...]] = _none_live  # makes references of ids; _value.cbor sets it


def all_refs(e: Optional[Error]) -> list[bytes]:
    """The ids of the objects that an error and its causes refer to."""
    if e is None:
        return []
    out = list(e.refs)
    for c in e.cause:
        out += all_refs(c)
    return out


def to_wire(x: BaseException, depth: int = 0) -> Error:
    """The error on the wire for an exception."""
    if isinstance(x, MobulaError):
        message, name = x._said()
        e = Error(code=type(x).code, msg=_cut(message, _MAX_LINE), name=_cut(name, _MAX_NAME), task=x.task,
                  stack=_cut(x.stack or getattr(x, "remote_traceback", ""), _MAX_STACK), data=x.data if isinstance(x, UserError) else b"",
                  refs=[ref._h.id for ref in x._mobula_refs])
        if depth < _MAX_DEPTH:
            e.cause = [to_wire(c, depth + 1) for c in x.causes[:8]]
        return e
    return Error(msg=_cut(named(x), _MAX_LINE))


def _cut(s: str, most: int) -> str:
    """Shortens a text to most bytes, with a note of its full length."""
    raw = s.encode("utf-8", "replace")
    if len(raw) <= most:
        return s
    note = f" ... ({len(raw)} bytes in all)"
    return raw[: most - len(note)].decode("utf-8", "ignore") + note


def check_meta(meta: bytes) -> None:
    if len(meta) > 4 << 10:
        raise NotEncodableError(
            f"the layout of the value takes {len(meta)} bytes, at most {4 << 10} are possible: use a simpler type")


__all__ = ["ERROR", "FRAME_TARGET", "HEADER_SIZE", "KINDS", "all_refs", "check_meta", "decode", "encode", "frame", "frames", "from_wire",
           "header", "message", "read_varint", "split", "to_wire", "varint", "zigzag"]
