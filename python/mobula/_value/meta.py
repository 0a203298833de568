"""Meta, which names a value's encoding, and Encoded, an encoded value."""

from __future__ import annotations

from typing import Any, Optional, Sequence, Union

from .._wire.codec import varint

ARRAY, TEXT, CBOR, PROTO, PICKLE, ARROW = 1, 2, 3, 4, 5, 6
MAX_CACHED = 1000  # entries of a cache by class or Meta; a program may make classes without end

Data = Union[bytes, memoryview]


def header(codec: int, elem: int = 0, dims: tuple[int, ...] = (), name: str = "") -> bytes:
    """Encodes a Meta."""
    return bytes((1, codec, elem, len(dims))) + b"".join(map(varint, dims)) + name.encode()[:512]


META_NIL = header(CBOR, name="nil")
META_BOOL = header(CBOR, name="bool")
META_INT = header(CBOR, name="int")
META_BIG = header(CBOR, name="*big.Int")
META_FLOAT = header(CBOR, name="float64")
META_STR = header(TEXT, name="string")
META_BYTES = header(ARRAY, 6)
META_PLAIN = header(CBOR, name="plain")
META_KWARGS = header(TEXT, name="kwargs")


class Encoded:
    """An encoded value: data if it is small, else parts, buffers with their offsets."""

    __slots__ = ("meta", "data", "size", "parts", "refs", "held")

    def __init__(self, meta: bytes, data: Optional[bytes], size: int, parts: list[tuple[int, Any]], refs: list[bytes]) -> None:
        self.meta = meta
        self.data = data
        self.size = size
        self.parts = parts
        self.refs = refs
        self.held: Sequence[Any] = ()  # the references in the value: nothing else may hold them until the owner knows of the value


NO_PARTS: list[tuple[int, Any]] = []
NO_REFS: list[bytes] = []


def flat(meta: bytes, data: Any, inline: int) -> Encoded:
    """An encoded value whose data is one buffer."""
    n = len(data)
    if n <= inline:
        return Encoded(meta, data, n, NO_PARTS, NO_REFS)
    return Encoded(meta, None, n, [(0, data)], NO_REFS)
