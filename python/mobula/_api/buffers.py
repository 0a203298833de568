"""Arrays written where they will lie: in the object store."""

from __future__ import annotations

import math
from typing import Any, Sequence, Union

from .. import _runtime, _value
from .._refs import ObjectRef, bound
from ..exceptions import InvalidError, NotEncodableError


class Buffer:
    """Memory in the object store for an array, to be written in place: fill array, then put it, and nothing is copied.

    What array holds at first is undefined. A buffer that is not put is given back: by abort, at the end of a with statement, or
    when nothing refers to it. After put, array is read-only and pins the object as long as anything views it; after abort it must
    not be used. To write to a view that was made of it before ends the process by a signal.
    """

    array: Any

    def __init__(self, shape: tuple[int, ...], dtype: Any) -> None:
        import numpy as np

        self._done = True  # there is nothing to give back yet
        kind = np.dtype(dtype)
        meta = _value.array_meta(kind, shape)
        if meta is None or min(shape) <= 0:
            raise NotEncodableError(f"create of {kind} in shape {shape}: want numbers in 1 to 8 dimensions, each 1 or more")
        c = self._client = _runtime.client()
        tc = _runtime.context(c)
        self._id, self._attempt, self._meta, self._size = tc.next_put(), tc.attempt, meta, math.prod(shape) * kind.itemsize
        extent = c.putter.room(self._id, self._attempt, self._size, tc.task if tc is not c.root else b"", tc)
        self._made = extent is None  # by an earlier attempt of this task: this one writes for nothing
        if extent is None:
            self.array = np.empty(shape, kind)
            return
        self._done, self._room = False, None
        assert c.segment is not None
        self._room = c.segment.room(extent)  # if it fails, the room is given back as this buffer goes
        self.array = np.frombuffer(self._room.view(self._size), kind).reshape(shape)

    def put(self) -> ObjectRef[Any]:
        """Makes an object of what was written."""
        c = self._client
        if self._made:
            return bound(c, self._id)
        if self._done:
            raise InvalidError("Buffer.put: it was put or aborted already")
        assert self._room is not None
        self._done = True
        h = c.putter.seal(self._id, self._attempt, self._size, self._meta)
        ref: ObjectRef[Any] = ObjectRef(c, h)
        _, reading = c.getter.fetch_one(h, None, _runtime.context(c))
        self.array.flags.writeable = False
        self._room.freeze(reading)
        return ref

    def abort(self) -> None:
        """Gives the memory back. After put it does nothing."""
        if not self._done:
            self._done = True
            if self._room is not None:
                self._room.freeze(None)
            self._client.putter.give_back(self._id, self._attempt)

    def __enter__(self) -> Buffer:
        return self

    def __exit__(self, *exc: object) -> None:
        self.abort()

    def __del__(self) -> None:
        try:
            self.abort()
        except Exception:
            pass  # the connection is over, and the room with it


def create(shape: Union[int, Sequence[int]], dtype: Any = "float64") -> Buffer:
    """Gets memory in the object store for an array of numbers, and waits for it as long as the store is full.

        with mobula.create(1 << 27) as b:
            b.array.fill(1.0)
            ref = b.put()

    NotEncodableError for what is not laid out in place; ObjectTooLargeError for what the store can never hold.
    """
    return Buffer((shape,) if isinstance(shape, int) else tuple(shape), dtype)
