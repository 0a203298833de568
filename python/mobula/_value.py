"""Values as bytes: a short Meta, which says how, and Data (package codec in the Go code).

    None, bool, int, float      CBOR, as Go writes them
    str                         its UTF-8 bytes
    bytes                       raw bytes; Go's []byte
    numpy arrays of numbers     raw, little endian, dense; Go's slices, and arrays in slices
    Arrow batches and tables    an IPC stream (_arrow)
    anything else               pickle 5, its buffers behind it, aligned; for Python only, its Meta names the class

What crosses to another language is laid out by encode_plain, which knows no pickle: lists, dicts and all that CBOR has a tag for
(dates, decimals, sets) are CBOR. What is read from Go and is none of these is CBOR.

Buffers are read in place and are read-only: an array that came out of the store is the store's own memory, pinned as long as
anything views it.

A pickled value's data is the pickle stream, then, from the next multiple of 8, offset and size of each buffer as two
uint64, little endian, then the buffers, each at a multiple of 64, or of a page where it is large. Its Meta has codec 5 and, where
there are buffers, two dimensions: the length of the stream and the number of buffers.
"""

from __future__ import annotations

import base64
import io
import pickle
import struct
import threading
from typing import Any, Callable, Optional, Sequence, Union

import cbor2
import cloudpickle

from . import _arrow, _exception_parts
from ._wire import codec
from ._wire.codec import from_wire, read_varint, to_wire, varint
from ._wire.messages import Error
from .exceptions import MobulaError, NotDecodableError, NotEncodableError, PythonError, TaskError, set_field_reader, task_error

ARRAY, TEXT, CBOR, PROTO, PICKLE, ARROW = 1, 2, 3, 4, 5, 6
TAG_REF, TAG_ACTOR = 28015, 28016

_ELEMS = {1: "bool", 2: "int8", 3: "int16", 4: "int32", 5: "int64", 6: "uint8", 7: "uint16", 8: "uint32", 9: "uint64",
          10: "float32", 11: "float64", 12: "complex64", 13: "complex128"}
_ELEM_OF = {v: k for k, v in _ELEMS.items()}
_FORMATS: dict[int, Any] = {1: "?", 2: "b", 3: "h", 4: "i", 5: "q", 6: "B", 7: "H", 8: "I", 9: "Q", 10: "f", 11: "d"}
_SIZES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 2, 8: 4, 9: 8, 10: 4, 11: 8, 12: 8, 13: 16}

PAGE_FROM = 1 << 20  # bytes of a buffer that begins on a page of its own
_INDEX = struct.Struct("<QQ")


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


_NO_PARTS: list[tuple[int, Any]] = []
_NO_REFS: list[bytes] = []


class _Local(threading.local):
    refs: Optional[list[Any]] = None  # where references found while pickling go


local = _Local()


def found(ref: Any) -> None:
    """A reference is being pickled."""
    if local.refs is not None:
        local.refs.append(ref)


# ---- encoding


def _none(x: Any, inline: int) -> Encoded:
    return Encoded(META_NIL, b"\xf6", 1, _NO_PARTS, _NO_REFS)


def _bool(x: Any, inline: int) -> Encoded:
    return Encoded(META_BOOL, b"\xf5" if x else b"\xf4", 1, _NO_PARTS, _NO_REFS)


_F64 = struct.Struct(">Bd")
_U64 = struct.Struct(">BQ")


def _int(x: int, inline: int) -> Encoded:
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
        return _flat(META_BIG, data, inline)
    return Encoded(META_INT, data, len(data), _NO_PARTS, _NO_REFS)


def _float(x: float, inline: int) -> Encoded:
    return Encoded(META_FLOAT, _F64.pack(0xFB, x), 9, _NO_PARTS, _NO_REFS)


def _flat(meta: bytes, data: Any, inline: int) -> Encoded:
    n = len(data)
    if n <= inline:
        return Encoded(meta, data, n, _NO_PARTS, _NO_REFS)
    return Encoded(meta, None, n, [(0, data)], _NO_REFS)


def _str(x: str, inline: int) -> Encoded:
    try:
        return _flat(META_STR, x.encode(), inline)
    except UnicodeEncodeError:
        return _pickled(x, inline)  # lone surrogates are no UTF-8


def _bytes(x: bytes, inline: int) -> Encoded:
    return _flat(META_BYTES, x, inline)


def array_meta(dt: Any, shape: tuple[int, ...]) -> Optional[bytes]:
    """The Meta of a dense array, laid out as it is in memory; None of one that is not."""
    elem = _ELEM_OF.get(dt.name, 0)
    if not elem or not dt.isnative or dt.metadata or not 0 < len(shape) <= 8 or (len(shape) > 1 and 0 in shape):
        return None
    return _dense_meta(elem, shape)


def _dense_meta(elem: int, shape: tuple[int, ...]) -> bytes:
    if len(shape) > 1:
        return header(ARRAY, elem, shape)
    return header(ARRAY, elem, (), "ndarray" if elem == 6 else "")


def _ndarray(x: Any, inline: int) -> Encoded:
    meta = array_meta(x.dtype, x.shape) if x.flags.c_contiguous else None
    if meta is None:
        return _pickled(x, inline)
    return _dense(x, meta, inline)


def _dense(x: Any, meta: bytes, inline: int) -> Encoded:
    if x.nbytes <= inline:
        return Encoded(meta, x.tobytes(), x.nbytes, _NO_PARTS, _NO_REFS)
    return Encoded(meta, None, x.nbytes, [(0, x.reshape(-1).view("u1"))], _NO_REFS)


def _arrow_value(x: Any, inline: int) -> Encoded:
    if _arrow.of_python(x):
        return _pickled(x, inline)
    return _stream(x, inline)


def _stream(x: Any, inline: int) -> Encoded:
    size, parts = _arrow.parts(x)
    meta = header(ARROW, name=_arrow.kind(type(x)))
    if size <= inline:
        return Encoded(meta, b"".join(p for _, p in parts), size, _NO_PARTS, _NO_REFS)
    return Encoded(meta, None, size, parts, _NO_REFS)


_pickle_metas: dict[type[Any], bytes] = {}
_MAX_METAS = 1000  # remembered; a program may make classes without end


def _pickle_meta(cls: type[Any]) -> bytes:
    meta = _pickle_metas.get(cls)
    if meta is None:
        if len(_pickle_metas) >= _MAX_METAS:
            _pickle_metas.clear()
        meta = _pickle_metas[cls] = header(PICKLE, name=_class_name(cls))
    return meta


def _class_name(cls: type[Any]) -> str:
    return cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"


def _pickled(x: Any, inline: int) -> Encoded:
    before = local.refs
    held: list[Any] = []
    buffers: list[pickle.PickleBuffer] = []
    local.refs = held
    try:
        data = _dumps(x, buffers, held)
    finally:
        local.refs = before
    e = _laid_out(x, data, buffers, inline)
    if held:
        e.refs, e.held = [r._h.id for r in held], held
    return e


def _laid_out(x: Any, data: bytes, buffers: list[pickle.PickleBuffer], inline: int) -> Encoded:
    """A pickle and its buffers."""
    refs = _NO_REFS
    if not buffers:
        n = len(data)
        meta = _pickle_meta(type(x))
        if n <= inline:
            return Encoded(meta, data, n, _NO_PARTS, refs)
        return Encoded(meta, None, n, [(0, data)], refs)
    raws = [b.raw() for b in buffers]
    meta = header(PICKLE, 0, (len(data), len(raws)), _class_name(type(x)))
    at = (len(data) + 7) & ~7
    index = at
    at += 16 * len(raws)
    parts: list[tuple[int, Any]] = [(0, data)]
    table = bytearray()
    total = sum(r.nbytes for r in raws)
    small = total + at + 64 * len(raws) <= inline
    for r in raws:
        n = r.nbytes
        align = 16 if small else 4096 if n >= PAGE_FROM else 64
        at = (at + align - 1) & -align
        table += _INDEX.pack(at, n)
        parts.append((at, r))
        at += n
    parts.append((index, bytes(table)))
    if at > inline:
        return Encoded(meta, None, at, parts, refs)
    out = bytearray(at)
    for off, part in parts:
        out[off:off + len(part)] = part
    return Encoded(meta, bytes(out), at, _NO_PARTS, refs)


def _dumps(x: Any, buffers: Optional[list[pickle.PickleBuffer]], refs: list[Any]) -> bytes:
    """Pickles with the fast pickler where that can, else with cloudpickle, by value where a name would mean nothing elsewhere.

    Without a list for buffers they are in the pickle.
    """
    aside = None if buffers is None else buffers.append
    try:
        data = pickle.dumps(x, 5, buffer_callback=aside)
        if by_name(data):
            return data
    except MobulaError:
        raise
    except Exception:
        pass  # cloudpickle knows more
    if buffers is not None:
        buffers.clear()
    refs.clear()
    try:
        raw: bytes = cloudpickle.dumps(x, 5, buffer_callback=aside)
        return raw
    except MobulaError:
        raise
    except Exception as why:
        path, culprit, why = _culprit(x, type(x).__name__, why, 0)
        raise NotEncodableError(f"{path}: {_name(culprit)} cannot be pickled: {why}") from why


_STACK_GLOBAL = pickle.STACK_GLOBAL  # is in every pickle that names a function or class


def by_name(data: bytes) -> bool:
    """Whether other processes find what a pickle names: nothing of it is of this program's file, or of a module that cloudpickle was told
    to take by value. Text that looks as if it were does no harm but for the time."""
    if _STACK_GLOBAL not in data:
        return True
    if b"__main__" in data:
        return False
    registered = cloudpickle.list_registry_pickle_by_value()
    return not registered or not any(module.encode() in data for module in registered)


def by_value(module: str) -> bool:
    """Whether cloudpickle was told to take a module, or a package that it is in, by value."""
    registered = cloudpickle.list_registry_pickle_by_value()
    return bool(registered) and any(module == m or module.startswith(m + ".") for m in registered)


def _name(x: Any) -> str:
    text = repr(x) if not isinstance(x, type) else x.__qualname__
    cls = type(x)
    return f"{text[:100]} of type {cls.__module__}.{cls.__qualname__}"


def _culprit(x: Any, path: str, why: Exception, depth: int) -> tuple[str, Any, Exception]:
    """The smallest part of x that cannot be pickled, and the way to it."""
    parts: list[tuple[str, Any]] = []
    if depth < 8:
        if isinstance(x, dict):
            parts = [(f"{path}[{k!r}]", v) for k, v in list(x.items())[:1000]]
        elif isinstance(x, (list, tuple, set, frozenset)):
            parts = [(f"{path}[{i}]", v) for i, v in enumerate(list(x)[:1000])]
        elif hasattr(x, "__closure__") and getattr(x, "__closure__", None):
            names = x.__code__.co_freevars
            for n, c in zip(names, x.__closure__):
                try:
                    parts.append((f"{path}.{n}", c.cell_contents))
                except ValueError:
                    pass  # an empty cell
        if hasattr(x, "__globals__") and hasattr(x, "__code__"):
            parts += [(f"{path}.{n}", x.__globals__[n]) for n in x.__code__.co_names if n in x.__globals__]
        elif hasattr(x, "__dict__") and not isinstance(x, type) and type(x).__module__ != "builtins":
            parts += [(f"{path}.{k}", v) for k, v in list(vars(x).items())]
    for where, part in parts:
        try:
            cloudpickle.dumps(part, 5, buffer_callback=lambda b: None)
        except RecursionError:
            continue
        except Exception as inner:
            return _culprit(part, where, inner, depth + 1)
    return path, x, why


_ENCODERS: dict[type[Any], Callable[[Any, int], Encoded]] = {
    type(None): _none, bool: _bool, int: _int, float: _float, str: _str, bytes: _bytes}


def encode(x: Any, inline: int) -> Encoded:
    """Lays a value out."""
    f = _ENCODERS.get(type(x))
    if f is None:
        f = _learn(type(x))
    return f(x, inline)


def _learn(cls: type[Any]) -> Callable[[Any, int], Encoded]:
    if cls.__module__ == "numpy" and cls.__qualname__ == "ndarray":
        _ENCODERS[cls] = _ndarray
        return _ndarray
    if _arrow.kind(cls):
        _ENCODERS[cls] = _arrow_value
        return _arrow_value
    return _pickled


def encode_plain(x: Any, inline: int) -> Encoded:
    """Lays plain data out as any language can read it, CBOR where there is no better way; refuses by name what is none."""
    f = _ENCODERS.get(type(x)) or _learn(type(x))
    if f is _ndarray:
        return _plain_array(x, inline)
    if f is _arrow_value:
        return _stream(x, inline)
    if f is _str:
        try:
            return _flat(META_STR, x.encode(), inline)
        except UnicodeEncodeError as why:
            raise NotEncodableError(f"{_name(x)}: {why}") from why
    if f is not _pickled:
        return f(x, inline)
    if type(x) in (bytearray, memoryview):
        return _flat(META_BYTES, bytes(x), inline)
    refs: list[bytes] = []

    def default(enc: Any, v: Any) -> None:
        id, tag = getattr(v, "_mobula_ref", (None, 0))
        if id is not None:
            refs.append(id)
            enc.encode(cbor2.CBORTag(tag, id))
        elif type(v).__module__ == "numpy" and hasattr(v, "tolist"):
            enc.encode(v.tolist())
        else:
            raise NotEncodableError(f"{_name(v)} {_NOT_PLAIN}")

    try:
        data = cbor2.dumps(x, default=default)
    except NotEncodableError:
        raise
    except Exception as why:
        raise NotEncodableError(f"{_name(x)}: {why}") from why
    e = _flat(META_PLAIN, data, inline)
    e.refs = refs
    return e


_NOT_PLAIN = ("is no plain data: only numbers, text, bytes, lists, dicts, references, arrays of numbers and Arrow record batches "
              "are the same in every language")


def _plain_array(x: Any, inline: int) -> Encoded:
    """An array of numbers, copied where it does not lie densely."""
    import numpy as np

    dt = x.dtype.newbyteorder("=")
    elem = _ELEM_OF.get(dt.name, 0)
    if not elem or len(x.shape) > 8:
        raise NotEncodableError(f"an array of {x.dtype} of {len(x.shape)} dimensions {_NOT_PLAIN}")
    if not x.shape:
        return encode_plain(x.item(), inline)
    return _dense(np.ascontiguousarray(x, dtype=dt), _dense_meta(elem, x.shape), inline)


# ---- decoding

Data = Union[bytes, memoryview]


def _read_nil(data: Data) -> Any:
    return None if data == b"\xf6" else _cbor(data)


def _read_bool(data: Data) -> Any:
    return data == b"\xf5" if data in (b"\xf4", b"\xf5") else _cbor(data)


def _read_int(data: Data) -> Any:
    n = len(data)
    head = data[0]
    if n == 1 and head < 24:
        return head
    if n == 9 and head == 0x1B or n == 5 and head == 0x1A or n == 3 and head == 0x19 or n == 2 and head == 0x18:
        return int.from_bytes(data[1:], "big")
    return _cbor(data)


def _read_float(data: Data) -> Any:
    if len(data) == 9 and data[0] == 0xFB:
        return _F64.unpack(data)[1]
    return _cbor(data)


def _read_str(data: Data) -> str:
    return str(data, "utf-8")


def _read_bytes(data: Data) -> bytes:
    return bytes(data)


def _cbor(data: Data) -> Any:
    return cbor2.loads(bytes(data), tag_hook=_tag)


_bind: Callable[[bytes, int], Any] = lambda id, tag: (_ for _ in ()).throw(NotDecodableError("a reference outside any cluster"))


def set_binder(f: Callable[[bytes, int], Any]) -> None:
    """Says how references in CBOR, and those of errors, become live."""
    global _bind
    _bind = f
    codec.live = _live


def _live(ids: Sequence[bytes]) -> tuple[Any, ...]:
    try:
        return tuple(_bind(id, TAG_REF) for id in ids)
    except MobulaError:
        return ()  # there is no cluster any more


def _tag(decoder: Any, tag: Any, *rest: Any) -> Any:
    if not isinstance(tag, cbor2.CBORTag):  # the decoder's place in the arguments differs by version
        decoder, tag = tag, decoder
    if tag.tag in (TAG_REF, TAG_ACTOR):
        return _bind(bytes(tag.value), tag.tag)
    return tag


set_field_reader(_cbor)

_DECODERS: dict[bytes, Callable[[Data], Any]] = {
    META_NIL: _read_nil, META_BOOL: _read_bool, META_INT: _read_int, META_FLOAT: _read_float, META_STR: _read_str,
    META_BYTES: _read_bytes, header(CBOR, name="int64"): _read_int,
}


def decode(meta: bytes, data: Data) -> Any:
    """Reads a value; buffers are views of data, read-only."""
    f = _DECODERS.get(meta)
    if f is not None:
        return f(data)
    return _decode(meta, data)


def decode_own(meta: bytes, data: Data) -> Any:
    """Reads a value whose memory is the caller's own: a copy, and so writable."""
    f = _DECODERS.get(meta)
    if f is not None:
        return f(data)
    return _decode(meta, bytearray(data), own=True)


def _decode(meta: bytes, data: Any, own: bool = False) -> Any:
    if not meta and not data:
        return None  # of a Go function without a result, or an actor's creation
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
        return _read_array(elem, dims, name, data, own)
    if codec == TEXT:
        return _read_str(data)
    if codec == CBOR:
        return _cbor(data)
    if codec == PICKLE:
        if not dims and len(_DECODERS) < _MAX_METAS:
            _DECODERS[meta] = pickle.loads
        return _read_pickle(dims, data, own)
    if codec == ARROW:
        return _arrow.read(name, data)
    raise NotDecodableError(f"value is {name or 'of codec ' + str(codec)}, which Python cannot read")


def _read_array(elem: int, dims: list[int], name: str, data: Any, own: bool = False) -> Any:
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


def _read_pickle(dims: list[int], data: Any, own: bool = False) -> Any:
    if not dims:
        return pickle.loads(data)
    if len(dims) != 2:
        raise NotDecodableError(f"a pickled value of {len(dims)} dimensions, want 0 or 2")
    length, n = dims
    view = memoryview(data) if own else memoryview(data).toreadonly()
    at = (length + 7) & ~7
    if at + 16 * n > len(view):
        raise NotDecodableError(f"a pickled value of {len(view)} bytes, its index ends at {at + 16 * n}")
    buffers = []
    for off, size in _INDEX.iter_unpack(view[at:at + 16 * n]):
        if off + size > len(view):
            raise NotDecodableError(f"a pickled value of {len(view)} bytes, a buffer ends at {off + size}")
        buffers.append(view[off:off + size])
    return pickle.loads(view[:length], buffers=buffers)


# ---- exceptions of tasks


def encode_exception(x: BaseException) -> tuple[bytes, list[Any]]:
    """A task's exception as text for the way back, nothing if it cannot travel, and the references in it."""
    before = local.refs
    try:
        for way in _WAYS:
            held = local.refs = []
            try:
                raw = way(x)
                if len(raw) < _MAX_EXCEPTION:
                    back = pickle.loads(raw)  # many a class of exception pickles and does not come back, or not as it was
                    if way is not _ordinary or str(back) == str(x):
                        return base64.b85encode(raw), held
            except Exception:
                continue
    finally:
        local.refs = before
    return b"", []


_MAX_EXCEPTION = 40_000  # bytes


def _ordinary(x: BaseException) -> bytes:
    return _dumps(x, None, [] if local.refs is None else local.refs)


def _by_parts(x: BaseException) -> bytes:
    """Of classes whose constructors cannot be called with the exception's arguments; what hangs on it too."""
    return _PartsPickler.dumps(x)


def _bare(x: BaseException) -> bytes:
    """Without the fields that do not travel."""
    return _PartsPickler.dumps(_Bare(x, x.args, _light(x)))


def _text(x: BaseException) -> bytes:
    """With its text in place of its arguments."""
    return _PartsPickler.dumps(_Bare(x, (str(x)[:8000],), _light(x)))


_WAYS = (_ordinary, _by_parts, _bare, _text)


class _Bare:
    """Is pickled as an exception of the class, with these arguments and fields."""

    def __init__(self, x: BaseException, args: tuple[Any, ...], fields: dict[str, Any]) -> None:
        self._parts = type(x), args, fields

    def __reduce__(self) -> Any:
        return _exception_parts.remade, self._parts


class _PartsPickler(cloudpickle.CloudPickler):  # type: ignore[misc]
    """Takes every exception in a value to its parts. A TaskError's own pickle does."""

    @classmethod
    def dumps(cls, x: Any) -> bytes:
        buf = io.BytesIO()
        cls(buf, 5).dump(x)
        return buf.getvalue()

    def reducer_override(self, x: Any) -> Any:
        if isinstance(x, BaseException) and not isinstance(x, TaskError):
            return _exception_parts.remade, (type(x), x.args, _exception_parts.fields(x))
        return super().reducer_override(x)


def _light(x: BaseException) -> dict[str, Any]:
    """The fields of an exception that travel, together with its text."""
    out: dict[str, Any] = {}
    left = _MAX_EXCEPTION // 2
    before, local.refs = local.refs, None  # a trial: what it finds is found again
    try:
        for k, v in _exception_parts.fields(x).items():
            try:
                raw = _PartsPickler.dumps(v)
                if len(raw) < left:
                    pickle.loads(raw)
                    left -= len(raw)
                    out[k] = v
            except Exception:
                continue
    finally:
        local.refs = before
    return out


def failure(name: str, task: str, x: BaseException, traceback: str, held: list[Any]) -> Error:
    """The error that a task is reported with when its function raised x. The references in it, which are added to held, the
    owner does not know of before the report.

    Its cause names the exception's classes, for programs of other languages, and has the exception itself, pickled, for a stack.
    """
    text = f"{type(x).__name__}: {x}" if str(x) else type(x).__name__
    e = Error(code=TaskError.code, name=name[:900], task=task, msg=f"{name}: {text}"[:8000])
    raw = traceback.encode("utf-8", "replace")
    if len(raw) > _MAX_TRACEBACK:
        traceback = "...\n" + raw[-_MAX_TRACEBACK:].decode("utf-8", "ignore")
    e.stack = traceback
    raised = Error(code=PythonError.code, name=",".join(_classes(type(x)))[:900], msg=text[:8000])
    text_of, refs = encode_exception(x)
    raised.stack, raised.refs = text_of.decode(), [ref._h.id for ref in refs]
    held += refs
    if isinstance(x, MobulaError):
        raised.cause = [to_wire(x)]
        held += refs_of(x)
    e.cause = [raised]
    return e


def refs_of(x: MobulaError) -> list[Any]:
    """The references that keep an error of the runtime, and what it wraps, as they are."""
    out = list(x._mobula_refs)
    for c in x.causes:
        out += refs_of(c)
    return out


_MAX_TRACEBACK = 60 << 10


def _classes(cls: type[BaseException]) -> list[str]:
    """A class of exception and those it derives from, nearest first; the built-in ones without their module."""
    return [_class_name(c) for c in cls.__mro__ if c not in (object, BaseException)]


def task_failure(e: Optional[Error]) -> MobulaError:
    """The exception that a failed object's error stands for. Those that it wraps are what tasks raised, too."""
    if e is None or e.code != TaskError.code:
        x = from_wire(e)
        if e is not None and e.code != PythonError.code:
            x.causes = tuple(map(task_failure, e.cause))
        return x
    return task_error(_origin(e), e.stack, e.msg, e.name, e.task, tuple(task_failure(c) for c in e.cause))


def _origin(e: Error) -> Optional[BaseException]:
    """What a task failed of: the first error below it that says more than that a task failed."""
    for c in e.cause:
        if c.code == PythonError.code:
            return _exception(c)
        found = from_wire(c) if c.code not in (0, TaskError.code) else _origin(c)
        if found is not None:
            return found
    return None


def _exception(e: Error) -> BaseException:
    """The exception that a Python function raised, or what is known of it where it cannot be read here."""
    why = "it did not travel"
    if e.stack:
        try:
            x = pickle.loads(base64.b85decode(e.stack))
            if isinstance(x, BaseException):
                return x
        except Exception as x:
            why = f"it cannot be read here: {type(x).__name__}: {x}"
    causes = tuple(from_wire(c) for c in e.cause)
    return PythonError(f"{e.msg} (the exception itself is not here: {why})", name=e.name, causes=causes)


def pickler_for_functions(x: Any) -> bytes:
    """A function or class by value, for the worker."""
    buf = io.BytesIO()
    try:
        cloudpickle.CloudPickler(buf, 5).dump(x)
    except Exception as why:
        path, culprit, why = _culprit(x, getattr(x, "__qualname__", type(x).__name__), why, 0)
        raise NotEncodableError(f"{path}: {_name(culprit)} cannot be pickled: {why}") from why
    return buf.getvalue()


__all__ = ["Encoded", "META_KWARGS", "decode", "encode", "encode_plain", "failure", "found", "local", "refs_of", "set_binder",
           "task_failure"]
