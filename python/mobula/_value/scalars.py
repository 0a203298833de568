"""None, booleans and numbers as CBOR, as Go writes them; text and bytes."""

from __future__ import annotations

import struct
from typing import Any

import cbor2

from .cbor import read as read_cbor
from .meta import META_BIG, META_BOOL, META_BYTES, META_FLOAT, META_INT, META_NIL, META_STR, NO_PARTS, NO_REFS, Data, Encoded, flat
from .pickled import pickled


def none_(x: Any, inline: int) -> Encoded:
    return Encoded(META_NIL, b"\xf6", 1, NO_PARTS, NO_REFS)


def bool_(x: Any, inline: int) -> Encoded:
    return Encoded(META_BOOL, b"\xf5" if x else b"\xf4", 1, NO_PARTS, NO_REFS)


_F64 = struct.Struct(">Bd")
_U64 = struct.Struct(">BQ")


def int_(x: int, inline: int) -> Encoded:
    n = x if x >= 0 else ~x
    major = 0 if x >= 0 else 0x20
    if n < 24:
        data = bytes((major | n,))
    elif n < 256:
        data = bytes((major | 24, n))
    elif n < 65536:
        data = bytes((major | 25, n >> 8, n & 255))
    elif n < 1 << 32:
        data = bytes((major | 26,)) + n.to_bytes(4, "big")
    elif n < 1 << 63:
        data = _U64.pack(major | 27, n)
    else:
        data = cbor2.dumps(x)
        return flat(META_BIG, data, inline)
    return Encoded(META_INT, data, len(data), NO_PARTS, NO_REFS)


def float_(x: float, inline: int) -> Encoded:
    return Encoded(META_FLOAT, _F64.pack(0xFB, x), 9, NO_PARTS, NO_REFS)


def str_(x: str, inline: int) -> Encoded:
    try:
        return flat(META_STR, x.encode(), inline)
    except UnicodeEncodeError:
        return pickled(x, inline)  # UTF-8 has no lone surrogates


def bytes_(x: bytes, inline: int) -> Encoded:
    return flat(META_BYTES, x, inline)


def read_nil(data: Data) -> Any:
    return None if data == b"\xf6" else read_cbor(data)


def read_bool(data: Data) -> Any:
    return data == b"\xf5" if data in (b"\xf4", b"\xf5") else read_cbor(data)


def read_int(data: Data) -> Any:
    n = len(data)
    head = data[0]
    if n == 1 and head < 24:
        return head
    if (n == 9 and head == 0x1B) or (n == 5 and head == 0x1A) or (n == 3 and head == 0x19) or (n == 2 and head == 0x18):
        return int.from_bytes(data[1:], "big")
    return read_cbor(data)


def read_float(data: Data) -> Any:
    if len(data) == 9 and data[0] == 0xFB:
        return _F64.unpack(data)[1]
    return read_cbor(data)


def read_str(data: Data) -> str:
    return str(data, "utf-8")


def read_bytes(data: Data) -> bytes:
    return bytes(data)
