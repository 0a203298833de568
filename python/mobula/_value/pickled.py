"""Values of any class: pickle protocol 5 with out-of-band buffers.

The data is the pickle stream; then, at the next multiple of 8, an index with the offset and size of each buffer as two little-endian
uint64; then the buffers. A buffer begins at a multiple of 64, a large one at a page, and all of them at multiples of 16 if the whole value
is small. If there are buffers, the Meta has two dimensions: the length of the stream and the number of buffers.
"""

from __future__ import annotations

import io
import pickle
import struct
import threading
from functools import partial
from typing import Any, Optional, Sequence

import cloudpickle

from ..exceptions import MobulaError, NotDecodableError, NotEncodableError
from . import by_value, views
from .meta import MAX_CACHED, NO_PARTS, NO_REFS, PICKLE, Encoded, flat, header

PAGE_FROM = 1 << 20  # buffers of at least so many bytes begin at a page
_INDEX = struct.Struct("<QQ")


class _Local(threading.local):
    refs: Optional[list[Any]] = None  # collects the references that are pickled


local = _Local()


def found(ref: Any) -> bool:
    """References call it when they are pickled. False if that is not for a value: the program itself pickles them."""
    if local.refs is None:
        return False
    local.refs.append(ref)
    return True


_pickle_metas: dict[type[Any], bytes] = {}


def _pickle_meta(cls: type[Any]) -> bytes:
    meta = _pickle_metas.get(cls)
    if meta is None:
        if len(_pickle_metas) >= MAX_CACHED:
            _pickle_metas.clear()
        meta = _pickle_metas[cls] = header(PICKLE, name=class_name(cls))
    return meta


def class_name(cls: type[Any]) -> str:
    return cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"


def pickled(x: Any, inline: int) -> Encoded:
    """Pickles a value. The result holds the references in it."""
    if views.obviously_plain(x):
        return flat(_pickle_meta(type(x)), pickle.dumps(x, 5), inline)
    before = local.refs
    held: list[Any] = []
    buffers: list[pickle.PickleBuffer] = []
    local.refs = held
    try:
        data = dumps(x, buffers, held)
    finally:
        local.refs = before
    e = _laid_out(x, data, buffers, inline)
    if held:
        e.refs, e.held = [r._h.id for r in held], held
    return e


def _laid_out(x: Any, data: bytes, buffers: list[pickle.PickleBuffer], inline: int) -> Encoded:
    """Encodes a pickle and its buffers."""
    refs = NO_REFS
    if not buffers:
        n = len(data)
        meta = _pickle_meta(type(x))
        if n <= inline:
            return Encoded(meta, data, n, NO_PARTS, refs)
        return Encoded(meta, None, n, [(0, data)], refs)
    raws = [b.raw() for b in buffers]
    meta = header(PICKLE, 0, (len(data), len(raws)), class_name(type(x)))
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
    return Encoded(meta, bytes(out), at, NO_PARTS, refs)


def dumps(x: Any, buffers: Optional[list[pickle.PickleBuffer]], refs: list[Any]) -> bytes:
    """Pickles with pickle if that works, else with cloudpickle, which pickles functions and classes by value if other processes cannot
    import them.

    buffers collects the out-of-band buffers; None leaves them in the pickle.
    """
    aside = None if buffers is None else buffers.append
    try:
        data = views.dumps(x, aside)
        if by_name(data):
            return data
    except MobulaError:
        raise
    except Exception:
        pass  # cloudpickle can pickle more
    if buffers is not None:
        buffers.clear()
    refs.clear()
    try:
        return by_value.dumps(x, aside)
    except MobulaError:
        raise
    except Exception as why:
        path, culprit, why = _culprit(x, type(x).__name__, why, 0)
        raise NotEncodableError(f"{path}: {name_of(culprit)} cannot be pickled: {why}") from why


_STACK_GLOBAL = pickle.STACK_GLOBAL  # the opcode in every pickle that names a function or class


def by_name(data: bytes) -> bool:
    """Whether other processes can import all that a pickle names: nothing is from __main__, or from a module that is registered with
    cloudpickle to be pickled by value. Plain text with such a name gives a false negative, which costs only time."""
    if _STACK_GLOBAL not in data:
        return True
    if b"__main__" in data:
        return False
    registered = cloudpickle.list_registry_pickle_by_value()
    return not registered or not any(module.encode() in data for module in registered)


def name_of(x: Any) -> str:
    """A value's repr and type, for error messages."""
    text = repr(x) if not isinstance(x, type) else x.__qualname__
    cls = type(x)
    return f"{text[:100]} of type {cls.__module__}.{cls.__qualname__}"


def _culprit(x: Any, path: str, why: Exception, depth: int) -> tuple[str, Any, Exception]:
    """Finds the smallest part of x that cannot be pickled. Returns the path to it, the part, and its error."""
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
            by_value.dumps(part, lambda b: None)
        except RecursionError:
            continue
        except Exception as inner:
            return _culprit(part, where, inner, depth + 1)
    return path, x, why


def read(dims: list[int], data: Any, own: bool = False) -> Any:
    if not dims:
        return pickle.loads(data)
    if len(dims) != 2:
        raise NotDecodableError(f"a pickled value of {len(dims)} dimensions, want 0 or 2")
    length, n = dims
    view = memoryview(data).toreadonly()
    at = (length + 7) & ~7
    if at + 16 * n > len(view):
        raise NotDecodableError(f"a pickled value of {len(view)} bytes, its index ends at {at + 16 * n}")
    buffers = []
    for off, size in _INDEX.iter_unpack(view[at:at + 16 * n]):
        if off + size > len(view):
            raise NotDecodableError(f"a pickled value of {len(view)} bytes, a buffer ends at {off + size}")
        part = view[off:off + size]
        buffers.append(bytearray(part) if own else part)
    return load_own(view[:length], buffers) if own else pickle.loads(view[:length], buffers=buffers)


class _Owner(pickle.Unpickler):
    """Makes NumPy arrays writable where their buffer is the caller's own, also those that were read-only when they were pickled, such as what came out of
    the store."""

    def find_class(self, module: str, name: str) -> Any:
        f = super().find_class(module, name)
        if (module, name) in views.OWN:
            return partial(f, own=True)
        return partial(_own_array, f) if name == "_frombuffer" and module.partition(".")[0] == "numpy" else f


def _own_array(make: Any, buffer: Any, *args: Any) -> Any:
    if type(buffer) is bytes:  # it was in the pickle
        buffer = bytearray(buffer)
    elif type(buffer) is memoryview and buffer.readonly:  # pickle has made it so
        whole = memoryview(buffer.obj)
        if not whole.readonly and whole.nbytes == buffer.nbytes:
            buffer = whole
    return make(buffer, *args)


def load_own(data: Any, buffers: Sequence[Any]) -> Any:
    """Unpickles a value that is its caller's own, like those of buffers that are writable."""
    return _Owner(io.BytesIO(data), buffers=buffers).load()


def pickler_for_functions(x: Any, refs: list[Any]) -> bytes:
    """Pickles a function or class for workers: by value, unless they can import it. The references in it are appended to refs."""
    before, local.refs = local.refs, refs
    try:
        return by_value.dumps(x)
    except Exception as why:
        path, culprit, why = _culprit(x, getattr(x, "__qualname__", type(x).__name__), why, 0)
        raise NotEncodableError(f"{path}: {name_of(culprit)} cannot be pickled: {why}") from why
    finally:
        local.refs = before
