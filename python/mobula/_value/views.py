"""Pickles views as what they show: an Arrow slice without the rest of its buffers, an array that repeats itself without the repetitions, a selection of a
structured array's fields without the others. By themselves such values pickle all of it.

It adds to the tables of reducers that picklers have, once numpy and pyarrow are there; to the program's own pickling it adds nothing.
"""

from __future__ import annotations

import copyreg
import ctypes
import io
import operator
import pickle
import sys
from collections import ChainMap
from typing import Any, Callable, ClassVar, Optional

import cloudpickle

_SMALL = 4096  # bytes that nothing is done about
Reducer = Callable[[Any], Any]
_reducers: dict[type[Any], Reducer] = {}
_PLAIN = frozenset((int, float, complex, bool, type(None), str, bytes))
_FEW = 32


def dumps(x: Any, aside: Optional[Callable[[pickle.PickleBuffer], Any]]) -> bytes:
    """What pickle.dumps gives, but for views. aside takes the out-of-band buffers."""
    refresh()
    if not _reducers:
        return pickle.dumps(x, 5, buffer_callback=aside)
    out = io.BytesIO()
    Pickler(out, 5, buffer_callback=aside).dump(x)
    return out.getvalue()


def obviously_plain(x: Any, depth: int = 2) -> bool:
    """Whether x is a small container of numbers and texts: no array, no class, no reference."""
    cls = type(x)
    if cls is dict:
        if len(x) > _FEW or not _PLAIN.issuperset(map(type, x)):
            return False
        x = x.values()
    elif cls is not list and cls is not tuple:
        return False
    if len(x) > _FEW:
        return False
    if _PLAIN.issuperset(map(type, x)):
        return True
    return depth > 0 and all([type(y) in _PLAIN or obviously_plain(y, depth - 1) for y in x])


class Pickler(pickle.Pickler):
    """A pickler with the reducers for views. Call refresh before one is made."""

    dispatch_table: Any = {}  # noqa: RUF012


class CloudPickler(cloudpickle.CloudPickler):  # type: ignore[misc]
    """The same of cloudpickle."""

    dispatch_table: ClassVar[Any] = ChainMap({}, cloudpickle.CloudPickler.dispatch_table, _reducers)

    def reducer_override(self, x: Any) -> Any:
        if type(x) is _ArrayType and x is not ctypes.Array and x._type_ * x._length_ is x:
            return operator.mul, (x._type_, x._length_)  # cloudpickle's own pickle of such a class cannot be read
        return super().reducer_override(x)


_ArrayType: Any = type(ctypes.Array)


def refresh() -> None:
    """Adds the reducers of libraries that were imported meanwhile, and those that the program has registered."""
    global _imported, _registered
    n = len(sys.modules)
    if n != _imported and _waits:
        _imported = n
        for name, add in list(_waits.items()):
            m = sys.modules.get(name)
            if m is not None:
                if add(m):
                    _waits.pop(name, None)
                else:
                    _imported = 0  # another thread is just importing it
                _registered = {}
    if _reducers and _registered != copyreg.dispatch_table:
        _registered = copyreg.dispatch_table.copy()
        Pickler.dispatch_table = {**_reducers, **_registered}


_imported = 0  # modules when it last looked
_registered: dict[Any, Any] = {}


# ---- NumPy


def _learn_numpy(np: Any) -> bool:
    cls = getattr(np, "ndarray", None)
    if cls is None or not hasattr(np, "broadcast_to"):
        return False
    _reducers[cls] = _array
    return True


def _array(a: Any) -> Any:
    if a.nbytes > _SMALL:
        if 0 in a.strides and not a.dtype.hasobject:
            once = a[tuple([slice(0, 1) if step == 0 else slice(None) for step in a.strides])]
            if 2 * once.nbytes <= a.nbytes:
                return repeated, (_raw(once), a.shape, a.dtype)
        if a.dtype.names is not None and _hides(a):
            return spread, (_raw(a.astype(_without_gaps(a.dtype))), a.dtype)
    return a.__reduce_ex__(5)


def _raw(a: Any) -> Any:
    """The elements of an array as bytes of no type, C-contiguous, for these are pickled out of band with any dtype."""
    if not a.flags.c_contiguous:
        a = a.copy()
    return a.view(f"V{a.dtype.itemsize}")


def repeated(once: Any, shape: tuple[int, ...], dtype: Any, own: bool = False) -> Any:
    """An array of a shape that repeats what is in a smaller one. Pickles name this function."""
    np = sys.modules["numpy"]
    a = np.broadcast_to(once.view(dtype), shape)
    return a.copy() if own else a


def _hides(a: Any) -> bool:
    """Whether an array is of some of the fields of another."""
    base, d = a.base, a.dtype
    return (type(base) is type(a) and base.dtype.names is not None and len(base.dtype.names) > len(d.names) and not d.hasobject
            and d.itemsize > sum(d[name].itemsize for name in d.names))


def _without_gaps(dtype: Any) -> Any:
    np = sys.modules["numpy"]
    return np.dtype([(name, dtype[name]) for name in dtype.names])


def spread(packed: Any, dtype: Any, own: bool = False) -> Any:
    """An array of dtype, with gaps between its fields, from one without. Pickles name this function."""
    np = sys.modules["numpy"]
    packed = packed.view(_without_gaps(dtype))
    a = np.zeros(packed.shape, dtype)
    for name in dtype.names:
        a[name] = packed[name]
    a.flags.writeable = own
    return a


OWN = {(f.__module__, f.__name__) for f in (repeated, spread)}  # functions with the argument own: the array is to be writable


# ---- Arrow


def _learn_arrow(lib: Any) -> bool:
    if not hasattr(lib, "concat_arrays"):
        return False
    todo: list[type[Any]] = [lib.Array]
    while todo:
        cls = todo.pop()
        _reducers[cls] = _arrow_array
        todo += cls.__subclasses__()
    _reducers[lib.ChunkedArray] = _reducers[lib.RecordBatch] = _arrow_arrays
    return True


def _arrow_array(a: Any) -> Any:
    return _shown(a).__reduce__()


def _arrow_arrays(x: Any) -> Any:
    make, (arrays, *rest) = x.__reduce__()
    return make, (type(arrays)([_shown(a) for a in arrays]), *rest)


def _shown(a: Any) -> Any:
    """An Arrow array without what its buffers have besides; itself if that is little."""
    lib, size = sys.modules["pyarrow.lib"], a.get_total_buffer_size()
    if size <= _SMALL:
        return a
    kind = str(a.type).partition("<")[0]
    views = kind.endswith("_view")  # their nbytes has all that they could show
    if not views and size <= _SMALL + 1.1 * a.nbytes:
        return a
    copies: tuple[Callable[[], Any], ...] = ((lambda: _recast(lib, a)),) if kind in _PLAIN_KIND_OF else (
        lambda: lib.concat_arrays([a]), lambda: a.take(lib.array(range(len(a)))))  # the second is for dense unions
    best, least = a, size - size // 8
    for copy in copies:
        try:
            b = copy()
        except (lib.ArrowException, NotImplementedError, TypeError, ValueError):
            continue  # not for such arrays
        n = b.get_total_buffer_size()
        if b.type == a.type and n < least:
            best, least = b, n
        if views or least <= _SMALL + 1.1 * b.nbytes:
            break
    return best


_PLAIN_KIND_OF = {"string_view": "large_string", "binary_view": "large_binary"}


def _recast(lib: Any, a: Any) -> Any:
    """A copy of an array of string views, whose long strings are in buffers of their own."""
    return a.cast(getattr(lib, _PLAIN_KIND_OF[str(a.type)])()).cast(a.type)


_waits: dict[str, Callable[[Any], bool]] = {"numpy": _learn_numpy, "pyarrow.lib": _learn_arrow}
