"""The node's shared memory in this process.

Each file is mapped twice: read-only for views, where a write faults, and writable for extents that this process was granted and
has not sealed. The read-only mapping of the segment stays until the process ends: the user's arrays may be views of it.
"""

from __future__ import annotations

import concurrent.futures
import ctypes
import errno
import mmap
import os
import pickle
import threading
import time
import weakref
from typing import Any, Optional

from ._wire.messages import Extent
from .exceptions import ProtocolError, SegmentUnavailableError

PAGE = mmap.PAGESIZE
_COLD_FROM = 8 << 20  # smaller extents are granted with memory behind them
_APART = 1 << 20  # bytes between the pages that are looked at: memory is brought in pieces of this size or larger

_PIECE = 64 << 20  # bytes to write at a time
_LONGEST_PIECE = 10.0  # seconds that the write of a piece may take
_POLL = 0.001  # seconds between two looks whether writes have ended

_HUGE = 2 << 20  # bytes of a huge page
_MADV_HUGEPAGE, _MADV_POPULATE_WRITE = 14, 23
_MREMAP_MAYMOVE, _MREMAP_FIXED = 1, 2
_FAILED = ctypes.c_void_p(-1).value
_DETACH = 64 << 20  # bytes to copy at a time

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
_libc.mremap.restype = ctypes.c_void_p
_libc.mremap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p]


def _own(lo: int, size: int, prot: int) -> None:
    """Replaces the pages from lo on by private copies, in place."""
    for at in range(lo, lo + size, _DETACH):
        n = min(_DETACH, -(-(lo + size - at) // PAGE) * PAGE)
        own = _libc.mmap(None, n, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
        if own is None or own == _FAILED:
            raise SegmentUnavailableError(f"copy {n} bytes of the object store: {os.strerror(ctypes.get_errno())}")
        ctypes.memmove(own, at, n)
        _libc.mprotect(own, n, prot)
        if _libc.mremap(own, n, n, _MREMAP_MAYMOVE | _MREMAP_FIXED, at) == _FAILED:
            code = ctypes.get_errno()
            _libc.munmap(own, n)
            raise SegmentUnavailableError(f"copy {n} bytes of the object store: {os.strerror(code)}")


class _Area:
    __slots__ = ("fd", "size", "read", "write", "address", "detached")

    def __init__(self, fd: int, size: int) -> None:
        self.fd = -1
        have = os.fstat(fd).st_size
        if size <= 0 or size > have:  # reading a page beyond the file's end would raise SIGBUS
            raise ProtocolError(f"mapping of {size} bytes of a file of {have}")
        self.fd = os.dup(fd)
        self.size = size
        self.detached = False  # the read-only mapping has private copies that views may still use
        at = _libc.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, self.fd, 0)
        if at is None or at == _FAILED:
            code = ctypes.get_errno()
            raise SegmentUnavailableError(f"map {size} bytes read-only: {os.strerror(code)}")
        self.read: int = at
        self.write = mmap.mmap(self.fd, size, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.write))

    def detach(self, off: int, size: int) -> None:
        """Replaces pages of the read-only mapping by private copies. Threads that read them meanwhile see the same bytes."""
        self.detached = True
        lo = (self.read + off) & ~(PAGE - 1)
        _own(lo, self.read + off + size - lo, mmap.PROT_READ)

    def close(self) -> None:
        """Closes the file and the writable mapping. The read-only one stays."""
        self.write.close()
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)

    def unmap(self) -> None:
        """Unmaps the read-only mapping, unless it has private copies."""
        if not self.detached:
            _libc.munmap(self.read, self.size)

    def __del__(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)


class Segment:
    """The job's segment, and further files that the node has announced (MapFile)."""

    def __init__(self, fd: int, size: int) -> None:
        self._lock = threading.RLock()  # code that a finaliser runs may close the segment while this thread has it
        self._areas: dict[int, _Area] = {}  # 0 is the segment
        self._writable: weakref.WeakSet[WritableExtent] = weakref.WeakSet()
        self._writing: list[int] = []  # threads that write
        self._given_back = False  # what was granted to this process is the node's again
        self.add(0, fd, size)

    def add(self, file: int, fd: int, size: int) -> None:
        """Maps a file, unless its number is mapped already."""
        with self._lock:
            if file not in self._areas:
                self._areas[file] = _Area(fd, size)

    def drop(self, file: int) -> None:
        """Unmaps a file that the node has removed. Number 0, the segment, stays."""
        with self._lock:
            a = self._areas.pop(file, None) if file else None
            if a is not None:
                a.close()
                a.unmap()

    def _find(self, e: Extent) -> _Area:
        a = self._areas.get(e.file)
        if a is None:
            raise ProtocolError(f"extent in file {e.file}, which was not announced")
        if e.off + e.size > a.size:
            raise ProtocolError(f"extent [{e.off}, +{e.size}) outside the {a.size} bytes of file {e.file}")
        return a

    def view(self, e: Extent, size: int, owner: Any) -> memoryview:
        """A read-only view of the first bytes of an extent. The view, and any object made of it, keeps owner alive."""
        a = self._find(e)
        if size > e.size:
            raise ProtocolError(f"the extent has {e.size} bytes, the object {size}")
        if size == 0:
            return memoryview(b"")
        # An object made of a memoryview keeps the exporter alive, and the exporter keeps the owner.
        exporter: Any = (ctypes.c_char * size).from_address(a.read + e.off)
        exporter.owner = owner
        return pickle.PickleBuffer(memoryview(exporter).toreadonly()).raw()

    def write(self, e: Extent, parts: list[tuple[int, Any]]) -> None:
        """Writes buffers at offsets of an extent that was granted to this process."""
        me = threading.get_ident()
        self._writing.append(me)  # before the look at _given_back: give_back sets that first
        try:
            self._write(e, parts)
        finally:
            self._writing.remove(me)

    def _write(self, e: Extent, parts: list[tuple[int, Any]]) -> None:
        self._check()
        a = self._find(e)
        if e.size >= _COLD_FROM and not self._resident(a, e):
            # No memory is behind the extent yet. pwrite allocates it faster than page faults do, and if memory is short it
            # returns an error where a fault would raise SIGBUS.
            for off, part in parts:
                view = memoryview(part).cast("B") if memoryview(part).nbytes else memoryview(b"")
                at = e.off + off
                while view:
                    try:
                        n = os.pwrite(a.fd, view[:_PIECE], at)
                    except OSError as x:
                        _not_of_a_handler(x)
                        raise SegmentUnavailableError(f"write {len(view)} bytes: {x}") from None
                    at += n
                    view = view[n:]
                    self._check()  # other threads run during the write of a piece
            return
        with memoryview(a.write) as whole:
            for off, part in parts:
                at = e.off + off
                view = memoryview(part)
                if view.nbytes:
                    whole[at:at + view.nbytes] = view.cast("B")

    def _check(self) -> None:
        if self._given_back:
            raise SegmentUnavailableError("the extent is the node's again")

    def map_writable(self, e: Extent) -> WritableExtent:
        """Maps an extent that was granted to this process by itself, to be written in place."""
        a = self._find(e)
        try:
            mapping = WritableExtent(a.fd, e)
            self._writable.add(mapping)
            if e.size < _COLD_FROM or self._resident(a, e) or not mapping.populate():
                os.posix_fallocate(a.fd, e.off, e.size)  # raises an error if memory is short; a page fault would raise SIGBUS
            return mapping
        except OSError as x:
            _not_of_a_handler(x)
            raise SegmentUnavailableError(f"map {e.size} bytes to write: {x}") from None

    def lasting(self) -> bool:
        """Whether a node that starts later may use the memory: at least one file still has a name."""
        with self._lock:
            return any(a.fd >= 0 and os.fstat(a.fd).st_nlink > 0 for a in self._areas.values())

    def detach(self, e: Extent) -> None:
        """Copies an extent in place for the views of it, so that a later use of the file does not change them."""
        with self._lock:
            a = self._areas.get(e.file)
            if a is not None and e.off + e.size <= a.size:
                a.detach(e.off, e.size)
        for mapping in list(self._writable):
            if mapping.extent == e:
                mapping.detach()

    def give_back(self) -> None:
        """Has nothing written any more to extents that are not sealed, as their memory will be the node's again: ends the writes under way at
        their next piece, and waits for that; copies the extents that are being written in place."""
        self._given_back = True
        me, until = threading.get_ident(), time.monotonic() + _LONGEST_PIECE
        while any(t != me for t in list(self._writing)) and time.monotonic() < until:  # this thread's own write goes on after a signal's handler
            time.sleep(_POLL)
        for mapping in list(self._writable):
            if mapping.open:
                mapping.detach()

    def close(self) -> None:
        """Closes everything but the read-only mappings, so that the user's views stay valid."""
        with self._lock:
            for a in self._areas.values():
                a.close()
            self._areas = {}

    def _resident(self, a: _Area, e: Extent) -> bool:
        """Whether every part of the extent has memory behind it. The node reserves memory ahead, so a part may have it and another not."""
        vec = ctypes.create_string_buffer(1)
        at, end = a.address + e.off, a.address + e.off + e.size
        for p in (*range(at, end, _APART), end - 1):
            if _libc.mincore(p & ~(PAGE - 1), PAGE, vec) == 0 and not vec.raw[0] & 1:
                return False
        return True


class WritableExtent(mmap.mmap):
    """The mapping of one extent, writable until it is frozen. It stays mapped while a view of it exists."""

    pin: Any = None  # the pin of the sealed object: it keeps the extent in place
    extent: Extent
    open = True
    _start: int  # offset of the extent in the mapping

    def __new__(cls, fd: int, e: Extent) -> WritableExtent:
        start = e.off % PAGE
        made = super().__new__(cls, fd, start + e.size, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE, offset=e.off - start)
        made._start, made.extent = start, e
        return made

    def populate(self) -> bool:
        """Allocates the extent's memory from two threads, in huge pages where the segment has them. False if the kernel lacks
        MADV_POPULATE_WRITE. OSError if memory is short."""
        at = self._address()
        lo, hi = -(-at // _HUGE) * _HUGE, (at + len(self)) // _HUGE * _HUGE
        if lo < hi:
            _libc.madvise(lo, hi - lo, _MADV_HUGEPAGE)  # without huge pages it is only slower
        half = (at + len(self) // 2) // _HUGE * _HUGE
        parts = (at, half), (half - at, at + len(self) - half)
        try:
            with concurrent.futures.ThreadPoolExecutor(2) as two:
                codes = set(two.map(_populate, *parts))
        except RuntimeError:  # no thread can be started
            codes = set(map(_populate, *parts))
        for code in codes - {0, errno.EINVAL}:
            raise OSError(code, os.strerror(code))
        return errno.EINVAL not in codes

    def detach(self) -> None:
        """Replaces the mapped pages by a private copy."""
        _own(self._address(), len(self), mmap.PROT_READ | mmap.PROT_WRITE if self.open else mmap.PROT_READ)

    def _address(self) -> int:
        return ctypes.addressof(ctypes.c_char.from_buffer(self))

    def view(self, size: int) -> memoryview:
        """The first bytes of the extent."""
        return memoryview(self)[self._start:self._start + size]

    def freeze(self, pin: Any) -> None:
        """Makes the mapping read-only: a later write faults."""
        self.pin, self.open = pin, False
        if _libc.mprotect(self._address(), len(self), mmap.PROT_READ) != 0:
            raise SegmentUnavailableError(f"protect {len(self)} bytes: {os.strerror(ctypes.get_errno())}")


def _not_of_a_handler(x: OSError) -> None:
    """Raises an error that no system call has returned: a signal's handler may raise TimeoutError, which is an OSError, anywhere."""
    if x.errno is None:
        raise x


def _populate(at: int, size: int) -> int:
    """Populates pages for writing. Returns 0 or errno."""
    while _libc.madvise(at, size, _MADV_POPULATE_WRITE) != 0:
        code = ctypes.get_errno()
        if code not in (errno.EINTR, errno.EAGAIN):
            return code
    return 0


def open_segment(fd: Optional[int], size: int) -> Optional[Segment]:
    """Maps the segment that came with a Welcome and closes the descriptor."""
    if fd is None:
        return None
    try:
        return Segment(fd, size)
    finally:
        os.close(fd)
