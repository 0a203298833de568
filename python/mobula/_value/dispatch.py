"""Chooses a value's encoding, by its class, and its decoding, by its Meta."""

from __future__ import annotations

import pickle
from typing import Any, Callable

from .._wire.codec import read_varint
from ..exceptions import NotDecodableError, NotEncodableError
from . import arrays, arrow, cbor, pickled, scalars
from .meta import (
    ARRAY,
    ARROW,
    CBOR,
    MAX_CACHED,
    META_BOOL,
    META_BYTES,
    META_FLOAT,
    META_INT,
    META_NIL,
    META_STR,
    PICKLE,
    TEXT,
    Data,
    Encoded,
    flat,
    header,
)

_ENCODERS: dict[type[Any], Callable[[Any, int], Encoded]] = {
    type(None): scalars.none_, bool: scalars.bool_, int: scalars.int_, float: scalars.float_, str: scalars.str_, bytes: scalars.bytes_}


def encode(x: Any, inline: int) -> Encoded:
    """Encodes a value. Up to inline bytes it is in Encoded.data, otherwise in Encoded.parts."""
    f = _ENCODERS.get(type(x))
    if f is None:
        f = _learn(type(x))
    return f(x, inline)


def _learn(cls: type[Any]) -> Callable[[Any, int], Encoded]:
    if cls.__module__ == "numpy" and cls.__qualname__ == "ndarray":
        _ENCODERS[cls] = arrays.array
        return arrays.array
    if arrow.kind(cls):
        _ENCODERS[cls] = arrow.arrow
        return arrow.arrow
    return pickled.pickled


def encode_plain(x: Any, inline: int) -> Encoded:
    """Encodes plain data for any language, as CBOR where there is no better encoding. NotEncodableError, which names the value, if it is
    no plain data."""
    f = _ENCODERS.get(type(x)) or _learn(type(x))
    if f is arrays.array:
        return arrays.plain_array(x, inline) if x.shape else encode_plain(x.item(), inline)
    if f is arrow.arrow:
        return arrow.stream(x, inline)
    if f is scalars.str_:
        try:
            return flat(META_STR, x.encode(), inline)
        except UnicodeEncodeError as why:
            raise NotEncodableError(f"{pickled.name_of(x)}: {why}") from why
    if f is not pickled.pickled:
        return f(x, inline)
    if type(x) in (bytearray, memoryview):
        return flat(META_BYTES, bytes(x), inline)
    return cbor.plain(x, inline)


_DECODERS: dict[bytes, Callable[[Data], Any]] = {
    META_NIL: scalars.read_nil, META_BOOL: scalars.read_bool, META_INT: scalars.read_int, META_FLOAT: scalars.read_float,
    META_STR: scalars.read_str, META_BYTES: scalars.read_bytes, header(CBOR, name="int64"): scalars.read_int,
}


def decode(meta: bytes, data: Data) -> Any:
    """Decodes a value. Its buffers are read-only views of data."""
    f = _DECODERS.get(meta)
    if f is not None:
        return f(data)
    return _decode(meta, data)


def decode_own(meta: bytes, data: Data) -> Any:
    """Decodes a value so that its buffers are writable copies of what is in data."""
    f = _DECODERS.get(meta)
    if f is not None:
        return f(data)
    return _decode(meta, data, own=True)


def has_views(meta: bytes) -> bool:
    """Whether a value with this Meta is decoded to one with read-only views of its data."""
    return len(meta) > 3 and meta != META_BYTES and (meta[1] in (ARRAY, ARROW) or (meta[1] == PICKLE and meta[3] > 0))


def _decode(meta: bytes, data: Any, own: bool = False) -> Any:
    if not meta and not data:
        return None  # the result of a Go function without one, or of an actor's creation
    if len(meta) < 4:
        raise NotDecodableError(f"value header of {len(meta)} bytes, want at least 4")
    if meta[0] != 1:
        raise NotDecodableError(f"value header version {meta[0]}, this build reads 1")
    codec, elem, ndims = meta[1], meta[2], meta[3]
    dims: list[int] = []
    i = 4
    try:
        for _ in range(ndims):
            d, i = read_varint(meta, i)
            dims.append(d)
    except IndexError:
        raise NotDecodableError("value header ends inside its dimensions") from None
    name = meta[i:].decode("utf-8", "replace")
    if codec == ARRAY:
        return arrays.read(elem, dims, bytearray(data) if own else data, own)
    if codec == TEXT:
        return scalars.read_str(data)
    if codec == CBOR:
        return cbor.read(data)
    if codec == PICKLE:
        if not dims and len(_DECODERS) < MAX_CACHED:
            _DECODERS[meta] = pickle.loads
        return pickled.read(dims, data, own)
    if codec == ARROW:
        return arrow.read(name, bytearray(data) if own else data)
    raise NotDecodableError(f"value is {name or 'of codec ' + str(codec)}, which Python cannot read")
