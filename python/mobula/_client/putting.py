"""Makes objects: small ones go in a message, large ones are written in place into the segment."""

from __future__ import annotations

import logging
import time
from typing import Any, Callable, Optional, Protocol, Sequence, TypeVar

from .. import _ids
from .._segment import Segment, WritableExtent
from .._wire import codec, hot
from .._wire import messages as m
from .._wire.hot import Answer
from ..exceptions import ProtocolError
from .context import TaskContext
from .credit import Credit
from .handle import Handle
from .interfaces import Waits
from .objects import Objects
from .pending import Pending
from .waiter import Waiter

log = logging.getLogger("mobula")
Made = TypeVar("Made")

WARN_AFTER = 60.0


class Stores(Waits, Protocol):
    """Has the node's shared memory. It is another segment once the node has restarted."""

    closing: bool

    @property
    def segment(self) -> Optional[Segment]: ...

    def over(self) -> BaseException: ...


class Putter:
    def __init__(self, client: Stores, objects: Objects, credit: Credit, creates: Pending) -> None:
        self._client = client
        self._objects = objects
        self._credit = credit
        self._creates = creates

    def put_small(self, id: bytes, meta: bytes, data: bytes, refs: Sequence[bytes]) -> Handle:
        """Makes an object whose value goes in a message."""
        c = self._client
        c.check()
        if self._credit.left is not None:
            self._credit.admit(64 + len(meta) + len(data) + _ids.OBJECT * len(refs))
        h = self._objects.adopt(id, Answer(m.INLINE, meta, data, tuple(refs), len(data)))
        c.out.append(hot.put_value(id, meta, data, refs))
        c.maybe_flush()
        return h

    def put_large(self, id: bytes, attempt: int, task: bytes, meta: bytes, size: int, parts: list[tuple[int, Any]],
                  refs: Sequence[bytes], own: bool = True, tc: Optional[TaskContext] = None) -> Optional[Handle]:
        """Creates, writes and seals an object in the segment. own: returns a handle; otherwise None."""
        codec.check_meta(meta)
        extent = self._allocate(id, attempt, size, task, tc)
        self._write(id, attempt, lambda segment: segment.write(extent, parts))
        h = self._objects.adopt(id, Answer(m.STORED, meta, b"", tuple(refs), size)) if own else None
        self._seal(id, attempt, size, meta, refs)
        return h

    def create(self, id: bytes, attempt: int, size: int, task: bytes, tc: Optional[TaskContext]) -> WritableExtent:
        """Allocates an extent in the segment for an object, and maps it to be written in place. It is to be sealed or given back."""
        extent = self._allocate(id, attempt, size, task, tc)
        mapping = self._write(id, attempt, lambda segment: segment.map_writable(extent))
        if self._client.closing:  # which has given up what was mapped before
            mapping.detach()
        return mapping

    def _write(self, id: bytes, attempt: int, write: Callable[[Segment], Made]) -> Made:
        """Has an extent written that was allocated, or mapped for that. If this fails, the extent is given back."""
        c = self._client
        try:
            assert c.segment is not None
            done = write(c.segment)
            c.check()
            return done
        except BaseException as x:
            self.give_back(id, attempt)
            if isinstance(x, Exception) and (c.closing or c.dead is not None):  # another thread closes the client, and the segment with it
                raise c.over() from None
            raise

    def seal(self, id: bytes, attempt: int, size: int, meta: bytes) -> Handle:
        """Seals an extent that was written, and returns the object's handle."""
        h = self._objects.adopt(id, Answer(m.STORED, meta, b"", (), size))
        self._seal(id, attempt, size, meta, ())
        return h

    def _seal(self, id: bytes, attempt: int, size: int, meta: bytes, refs: Sequence[bytes]) -> None:
        self._client.out.append(codec.message(m.Seal(id, attempt, size, m.Value(meta, b"", list(refs)))))
        self._client.maybe_flush()

    def _allocate(self, id: bytes, attempt: int, size: int, task: bytes, tc: Optional[TaskContext]) -> m.Extent:
        """Allocates an extent in the segment for an object, to be sealed or given back."""
        self._client.check()
        a = self._create(id, attempt, size, task, tc)
        if a.err is not None:
            raise codec.from_wire(a.err)
        extent = a.extent or m.Extent()
        if extent.size < size:
            self.give_back(id, attempt)
            raise ProtocolError(f"object {_ids.show_object(id)}: asked for {size} bytes, the extent has {extent.size}")
        return extent

    def give_back(self, id: bytes, attempt: int) -> None:
        """Gives back an extent that was not sealed."""
        self._client.send(codec.message(m.Abort(id, attempt)))

    def _create(self, id: bytes, attempt: int, size: int, task: bytes, tc: Optional[TaskContext]) -> m.Created:
        """Sends a Create and waits for its answer."""
        self._objects.release()  # releases make room, so send them first
        req, w = self._creates.ask(lambda req: codec.message(m.Create(req, id, attempt, size, task)))
        try:
            self._patient(w, id, size, tc)
        except BaseException:
            if self._creates.withdraw(req) or (w.slot is not None and w.slot.err is None):
                self._client.send(codec.message(m.Abort(id, attempt)))
            raise
        created: m.Created = w.slot
        return created

    def _patient(self, w: Waiter, id: bytes, size: int, tc: Optional[TaskContext]) -> None:
        """Waits, and logs a warning every minute. The task keeps its CPU meanwhile: memory is short, and another task would need even
        more of it."""
        begun = time.monotonic()
        self._client.flush()
        while not self._client.reader.wait(w, time.monotonic() + WARN_AFTER, tc):
            log.warning("a create waits long for room in the object store: %.0f s, object %s, %d bytes",
                        time.monotonic() - begun, _ids.show_object(id), size)
