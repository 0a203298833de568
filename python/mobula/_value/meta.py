"""The Meta of a value, which says how its data is laid out, and a value that was laid out."""

from __future__ import annotations

from typing import Any, Optional, Sequence, Union

from .._wire.codec import varint

ARRAY, TEXT, CBOR, PROTO, PICKLE, ARROW = 1, 2, 3, 4, 5, 6
MOST = 1000  # Metas that are remembered; a program may make classes without end

Data = Union[bytes, memoryview]


def header(codec: int, elem: int = 0, dims: tuple[int, ...] = (), name: str = "") -> bytes:
    """An encoded Meta."""
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
    """A value ready to be sent or written: data if it is small, else the parts and where they go."""

    __slots__ = ("meta", "data", "size", "parts", "refs", "held")

    def __init__(self, meta: bytes, data: Optional[bytes], size: int, parts: list[tuple[int, Any]], refs: list[bytes]) -> None:
        self.meta = meta
        self.data = data
        self.size = size
        self.parts = parts
        self.refs = refs
        self.held: Sequence[Any] = ()  # the references: until the owner has been told of the value nothing else may hold one


NO_PARTS: list[tuple[int, Any]] = []
NO_REFS: list[bytes] = []


def flat(meta: bytes, data: Any, inline: int) -> Encoded:
    """A value whose data is in one piece."""
    n = len(data)
    if n <= inline:
        return Encoded(meta, data, n, NO_PARTS, NO_REFS)
    return Encoded(meta, None, n, [(0, data)], NO_REFS)
