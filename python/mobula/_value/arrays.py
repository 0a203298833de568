"""Arrays of numbers: raw, little endian, C-contiguous, as Go's slices, and slices of arrays."""

from __future__ import annotations

from typing import Any, Optional

from ..exceptions import NotDecodableError, NotEncodableError
from .cbor import NOT_PLAIN
from .meta import ARRAY, NO_PARTS, NO_REFS, Encoded, header
from .pickled import pickled

_ELEMS = {1: "bool", 2: "int8", 3: "int16", 4: "int32", 5: "int64", 6: "uint8", 7: "uint16", 8: "uint32", 9: "uint64",
          10: "float32", 11: "float64", 12: "complex64", 13: "complex128"}
_ELEM_OF = {v: k for k, v in _ELEMS.items()}
_FORMATS: dict[int, Any] = {1: "?", 2: "b", 3: "h", 4: "i", 5: "q", 6: "B", 7: "H", 8: "I", 9: "Q", 10: "f", 11: "d"}
_SIZES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 2, 8: 4, 9: 8, 10: 4, 11: 8, 12: 8, 13: 16}


def array_meta(dt: Any, shape: tuple[int, ...]) -> Optional[bytes]:
    """The Meta of a C-contiguous array with this dtype and shape; None if it cannot be encoded as its memory."""
    elem = _ELEM_OF.get(dt.name, 0)
    if not elem or not dt.isnative or dt.metadata or not 0 < len(shape) <= 8 or (len(shape) > 1 and 0 in shape):
        return None
    return _dense_meta(elem, shape)


def _dense_meta(elem: int, shape: tuple[int, ...]) -> bytes:
    if len(shape) > 1:
        return header(ARRAY, elem, shape)
    return header(ARRAY, elem, (), "ndarray" if elem == 6 else "")


def array(x: Any, inline: int) -> Encoded:
    meta = array_meta(x.dtype, x.shape) if x.flags.c_contiguous else None
    if meta is None:
        return pickled(x, inline)
    return _dense(x, meta, inline)


def _dense(x: Any, meta: bytes, inline: int) -> Encoded:
    if x.nbytes <= inline:
        return Encoded(meta, x.tobytes(), x.nbytes, NO_PARTS, NO_REFS)
    return Encoded(meta, None, x.nbytes, [(0, x.reshape(-1).view("u1"))], NO_REFS)


def plain_array(x: Any, inline: int) -> Encoded:
    """Encodes an array of numbers of at least one dimension. It is copied unless it is C-contiguous. NotEncodableError for other dtypes."""
    import numpy as np

    dt = x.dtype.newbyteorder("=")
    elem = _ELEM_OF.get(dt.name, 0)
    if not elem or len(x.shape) > 8:
        raise NotEncodableError(f"an array of {x.dtype} of {len(x.shape)} dimensions {NOT_PLAIN}")
    return _dense(np.ascontiguousarray(x, dtype=dt), _dense_meta(elem, x.shape), inline)


def read(elem: int, dims: list[int], data: Any, own: bool = False) -> Any:
    kind = _ELEMS.get(elem)
    if kind is None:
        raise NotDecodableError(f"an array of unknown element type {elem}")
    if len(data) % _SIZES[elem]:
        raise NotDecodableError(f"{len(data)} bytes are no whole number of {kind}")
    try:
        import numpy as np
    except ImportError:
        if elem not in _FORMATS:
            raise NotDecodableError(f"an array of {kind} needs numpy, which is not installed") from None
        flat = memoryview(data).toreadonly()
        n = len(data) // _SIZES[elem]
        view = flat.cast("B").cast(_FORMATS[elem]) if n else memoryview(b"").cast(_FORMATS[elem])
        if len(dims) > 1 and n:
            shape = [d or n // _product(dims[1:]) for d in dims]
            return flat.cast("B").cast(_FORMATS[elem], shape)
        return view
    a = np.frombuffer(data, dtype=kind) if len(data) else np.empty(0, dtype=kind)
    if len(dims) > 1:
        inner = _product(dims[1:])
        shape = [dims[0] or (a.size // inner if inner else 0)] + dims[1:]
        try:
            a = a.reshape(shape)
        except ValueError:
            raise NotDecodableError(f"shape {shape} and {len(data)} bytes of {kind} disagree") from None
    a.flags.writeable = own
    return a


def _product(dims: list[int]) -> int:
    n = 1
    for d in dims:
        n *= d
    return n
