"""Arrays that are written in place in the object store."""

from __future__ import annotations

import math
from typing import Any, Sequence, Union

from .. import _runtime, _value
from .._client import Handle
from .._refs import ObjectRef
from ..exceptions import InvalidError, NotEncodableError


class Buffer:
    """Memory in the object store for one array. Fill the attribute array, then call put, which copies nothing.

    The contents of array are undefined at first. If put is not called, the memory is given back by abort, at the end of a with
    statement, or when the buffer is deleted. After put, array is read-only, and pins the object as long as array or a view of
    it exists. A write after put through a view that was made before kills the process with a signal. After abort, array must
    not be used.
    """

    array: Any

    def __init__(self, shape: tuple[int, ...], dtype: Any) -> None:
        import numpy as np

        self._done = True  # no memory to give back yet
        kind = np.dtype(dtype)
        meta = _value.array_meta(kind, shape)
        if meta is None or min(shape) <= 0:
            raise NotEncodableError(f"create of {kind} in shape {shape}: want numbers in 1 to 8 dimensions, each 1 or more")
        c = self._client = _runtime.client()
        tc = _runtime.context(c)
        self._id, self._attempt, self._meta, self._size = tc.next_put(), tc.attempt, meta, math.prod(shape) * kind.itemsize
        self._grant, self._mapping = c.putter.create(self._id, self._attempt, self._size, tc.task if tc is not c.root else b"", tc)
        self._done = False
        self.array = np.frombuffer(self._mapping.view(self._size), kind).reshape(shape)

    def put(self) -> ObjectRef[Any]:
        """Makes the written array an object and returns its reference. InvalidError after put or abort."""
        c = self._client
        if self._done:
            raise InvalidError("Buffer.put: it was put or aborted already")
        self._done = True
        ref: ObjectRef[Any] = ObjectRef(c, Handle(self._id))
        try:
            c.putter.seal(self._grant, ref, self._attempt, self._size, self._meta)
            _, reading = c.getter.fetch_one(ref._h, None, _runtime.context(c))
            self.array.flags.writeable = False
            self._mapping.freeze(reading)
        except BaseException:  # the array must not be a view of memory that is not pinned
            self._mapping.detach()
            raise
        return ref

    def abort(self) -> None:
        """Gives the memory back. It does nothing after put."""
        if not self._done:
            self._done = True
            self._mapping.freeze(None)
            self._grant.give_back()

    def __enter__(self) -> Buffer:
        return self

    def __exit__(self, *exc: object) -> None:
        self.abort()

    def __del__(self) -> None:
        try:
            self.abort()
        except Exception:
            pass  # the connection is closed, and its memory was given back


def create(shape: Union[int, Sequence[int]], dtype: Any = "float64") -> Buffer:
    """Allocates memory in the object store for a NumPy array, to be filled in place. It waits while the store is full.

        with mobula.create((1000, 1000), "float32") as b:
            b.array[:] = 1.0
            ref = b.put()

    shape: 1 to 8 dimensions, each 1 or more. dtype: bool, int8 to int64, uint8 to uint64, float32, float64, complex64 or complex128, in
    native byte order. NotEncodableError for another shape or dtype; ObjectTooLargeError if the array is larger than the store.
    """
    return Buffer((shape,) if isinstance(shape, int) else tuple(shape), dtype)
