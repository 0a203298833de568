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
from .interfaces import Waits
from .objects import Holder, Objects
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


class Grant:
    """An extent that was requested for an object. If it is deleted before the object is sealed, the extent is given back: whatever cuts the
    caller off."""

    __slots__ = ("_client", "_creates", "_out", "_abort", "w", "open")

    def __init__(self, client: Stores, creates: Pending, id: bytes, attempt: int) -> None:
        self.open = False
        self._client = client
        self._creates = creates
        self._out = client.out
        self._abort = iter((codec.message(m.Abort(id, attempt)),))
        self.w = Waiter(1)
        self.open = True  # neither refused nor sealed

    def give_back(self) -> None:
        """Gives the extent back, unless it was sealed. It takes no lock."""
        if self.open:  # whole
            self.open = False
            if self.w.req:
                self._out += self._abort
        self._creates.withdraw(self.w)
        if self._client.reader.quiet:
            self._client.reader.arm()

    def __del__(self) -> None:
        try:
            lost = self.open
            if lost:  # whole
                self.open = False
                if self.w.req:
                    self._out += self._abort
            if lost:
                self._creates.withdraw(self.w)
                self._client.reader.arm()
        except AttributeError:
            pass  # __init__ did not run


class Putter:
    def __init__(self, client: Stores, objects: Objects, credit: Credit, creates: Pending) -> None:
        self._client = client
        self._objects = objects
        self._credit = credit
        self._creates = creates

    def put_small(self, ref: Holder, meta: bytes, data: bytes, refs: Sequence[bytes]) -> None:
        """Makes the object of a new reference, whose value goes in a message."""
        c, id = self._client, ref._h.id
        c.check()
        if self._credit.left is not None:
            self._credit.admit(64 + len(meta) + len(data) + _ids.OBJECT * len(refs))
        self._objects.adopt(ref, Answer(m.INLINE, meta, data, tuple(refs), len(data)))
        c.out.append(hot.put_value(id, meta, data, refs))
        c.maybe_flush()

    def put_large(self, id: bytes, attempt: int, task: bytes, meta: bytes, size: int, parts: list[tuple[int, Any]],
                  refs: Sequence[bytes], ref: Optional[Holder] = None, tc: Optional[TaskContext] = None) -> None:
        """Creates, writes and seals an object in the segment. ref: its new reference, if this process is to have one."""
        codec.check_meta(meta)
        grant, extent = self._allocate(id, attempt, size, task, tc)
        self._write(grant, lambda segment: segment.write(extent, parts))
        self._seal(grant, id, attempt, size, meta, refs, ref)

    def create(self, id: bytes, attempt: int, size: int, task: bytes, tc: Optional[TaskContext]) -> tuple[Grant, WritableExtent]:
        """Allocates an extent in the segment for an object, and maps it to be written in place. It is to be sealed or given back."""
        grant, extent = self._allocate(id, attempt, size, task, tc)
        mapping = self._write(grant, lambda segment: segment.map_writable(extent))
        if self._client.closing:  # which has given up what was mapped before
            mapping.detach()
        return grant, mapping

    def _write(self, grant: Grant, write: Callable[[Segment], Made]) -> Made:
        """Has an extent written that was allocated, or mapped for that. If this fails, the extent is given back."""
        c = self._client
        try:
            assert c.segment is not None
            done = write(c.segment)
            c.check()
            return done
        except BaseException as x:
            grant.give_back()
            if isinstance(x, Exception) and (c.closing or c.dead is not None):  # another thread closes the client, and the segment with it
                raise c.over() from None
            raise

    def seal(self, grant: Grant, ref: Holder, attempt: int, size: int, meta: bytes) -> None:
        """Seals an extent that was written, as the object of a new reference."""
        self._seal(grant, ref._h.id, attempt, size, meta, (), ref)

    def _seal(self, grant: Grant, id: bytes, attempt: int, size: int, meta: bytes, refs: Sequence[bytes], ref: Optional[Holder]) -> None:
        out, one = self._client.out, iter((codec.message(m.Seal(id, attempt, size, m.Value(meta, b"", list(refs)))),))
        if ref is not None:
            self._objects.adopt(ref, Answer(m.STORED, meta, b"", tuple(refs), size))
        if grant.open:  # whole
            grant.open = False
            out += one
        self._client.maybe_flush()

    def _allocate(self, id: bytes, attempt: int, size: int, task: bytes, tc: Optional[TaskContext]) -> tuple[Grant, m.Extent]:
        """Allocates an extent in the segment for an object."""
        self._client.check()
        self._objects.release()  # releases make room, so send them first
        grant = Grant(self._client, self._creates, id, attempt)
        self._creates.ask(lambda req: codec.message(m.Create(req, id, attempt, size, task)), grant.w)
        try:
            self._patient(grant.w, id, size, tc)
            a: m.Created = grant.w.slot
            if a.err is not None:
                grant.open = False
                raise codec.from_wire(a.err)
            extent = a.extent or m.Extent()
            if extent.size < size:
                raise ProtocolError(f"object {_ids.show_object(id)}: asked for {size} bytes, the extent has {extent.size}")
        except BaseException:  # its traceback keeps the grant
            grant.give_back()
            raise
        return grant, extent

    def _patient(self, w: Waiter, id: bytes, size: int, tc: Optional[TaskContext]) -> None:
        """Waits, and logs a warning every minute. The task keeps its CPU meanwhile: memory is short, and another task would need even
        more of it."""
        begun = time.monotonic()
        self._client.flush()
        while not self._client.reader.wait(w, time.monotonic() + WARN_AFTER, tc):
            log.warning("a create waits long for room in the object store: %.0f s, object %s, %d bytes",
                        time.monotonic() - begun, _ids.show_object(id), size)
