"""A connection to the node: frames over a Unix socket.

One thread at a time writes, with the lock writing held, and one thread at a time reads, by pump. pump waits in poll, where an exception
from a signal handler does no harm. If one comes while read bytes are being handled, the connection fails, since its state is unknown.
KeyboardInterrupt is deferred there (_interrupts).
"""

from __future__ import annotations

import array
import errno
import os
import select
import socket
import stat
import struct
import threading
import time
import weakref
from collections import deque
from typing import Callable, Optional

from .._interrupts import interrupts
from .._version import RELEASE
from ..exceptions import (DisconnectedError, InvalidError, MobulaError, NoNodeError, PermissionDeniedError, ProtocolError, VersionError)
from . import codec
from .unreachable import denied, no_socket
from .messages import KIND_OF, MIN_VERSION, VERSION, Bye, Hello, Welcome

HANDSHAKE_TIMEOUT = 5.0
WRITE_TIMEOUT = 60
_READ = 256 << 10
_FDS = socket.CMSG_SPACE(16 * 4)

# Handles a message: kind, the frame's bytes, begin and end of the body in them, and a file descriptor if one came with it.
Handler = Callable[[int, bytes, int, int, Optional[int]], None]

_all: dict[int, weakref.ref["Conn"]] = {}  # by id(); a forked child closes all of them


class Conn:
    def __init__(self, sock: socket.socket, pid: int) -> None:
        self.sock = sock
        self.pid = pid
        self.writing = threading.Lock()
        self.failed: Optional[MobulaError] = None
        self._buf = bytearray(_READ)
        self._view = memoryview(self._buf)
        self._rest = b""
        self._fds: deque[int] = deque()
        self._busy = False
        self.wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._waking = threading.RLock()  # held to write to wake or to close it, by finalisers too
        self._poll = select.poll()
        self._poll.register(sock, select.POLLIN)
        self._poll2 = select.poll()
        self._poll2.register(sock, select.POLLIN)
        self._poll2.register(self.wake, select.POLLIN)
        self._woken = select.poll()
        self._woken.register(self.wake, select.POLLIN)
        _all[id(self)] = weakref.ref(self)

    def fail(self, why: MobulaError) -> None:
        """Ends the connection. Only the first reason is kept."""
        if self.failed is None:
            self.failed = why
            try:
                self.sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # the socket is closed already

    def rouse(self) -> None:
        """Ends the wait of the thread in a wakeable pump or in nap. It may be called by any thread at any time: a closed connection has no
        such thread."""
        with self._waking:
            if self.wake >= 0:
                try:
                    os.eventfd_write(self.wake, 1)
                except OSError:
                    pass  # the counter is full: the thread has not slept since

    def close(self) -> None:
        """Closes the descriptors. Afterwards a thread may call rouse, fail and write alone, and write raises."""
        self.fail(DisconnectedError("the connection was closed"))
        self.sock.close()
        self._close_others()

    def _forked(self) -> None:
        """In a forked child: closes its copy of the socket without a shutdown. The connection is the parent's."""
        self.failed = DisconnectedError("this process was forked: the connection is its parent's")
        self._waking = threading.RLock()  # another thread of the parent may have held it
        fd = self.sock.detach()
        if fd >= 0:
            os.close(fd)
        self._close_others()

    def _close_others(self) -> None:
        _all.pop(id(self), None)
        with self._waking:
            wake, self.wake = self.wake, -1
            if wake >= 0:
                os.close(wake)
        while self._fds:
            os.close(self._fds.popleft())

    def __del__(self) -> None:
        # The socket closes itself. It is not shut down: in a forked child the connection is the parent's.
        try:
            self._close_others()
        except AttributeError:
            pass  # __init__ did not finish

    def write(self, chunks: list[bytes]) -> None:
        """Writes encoded messages. The caller holds the lock writing."""
        size = sum(map(len, chunks))
        if size <= codec.FRAME_TARGET:
            data = codec.HEADER.pack(b"Mb", 1, 0, size) + b"".join(chunks)
        else:
            data = b"".join(codec.frames(chunks))
        if self.failed is not None:
            raise self.failed.again()
        try:
            self.sock.sendall(data)
        except (BrokenPipeError, ConnectionError) as x:
            if (why := self._unread_bye()) is not None:
                self.fail(why)
            self._gone("write", x)
        except OSError as x:
            if x.errno in (errno.EAGAIN, errno.EWOULDBLOCK):
                self.fail(DisconnectedError(f"process {self.pid} has read nothing for {WRITE_TIMEOUT} s"))
            self._gone("write", x)

    def _gone(self, op: str, x: BaseException) -> None:
        self.fail(DisconnectedError(f"process {self.pid} closed the connection or died ({op}: {x})"))
        assert self.failed is not None
        raise self.failed.again() from None

    def _unread_bye(self) -> Optional[MobulaError]:
        """Called when a write fails: the error of a Bye that the node sent before it closed its end, if that is still unread. It only peeks,
        since another thread may be about to read."""
        try:
            data = self._rest + self.sock.recv(_READ, socket.MSG_PEEK | socket.MSG_DONTWAIT)
            i = 0
            while len(data) - i >= codec.HEADER_SIZE:
                _, size = codec.header(data, i)
                i += codec.HEADER_SIZE
                for kind, j, k in codec.split(data, i, min(i + size, len(data))):
                    if kind == KIND_OF[Bye]:
                        bye: Bye = codec.decode(Bye, data, j, k)
                        return codec.from_wire(bye.err) if bye.err is not None else None
                i += size
        except (OSError, IndexError, struct.error, ProtocolError):
            pass  # the Bye is not there, or only a part of it
        return None

    def _spin(self, until: float) -> bool:
        """Polls until bytes come; False at the time until, by time.monotonic. It yields the CPU between polls, but does not sleep."""
        poll, now, give_way = self._poll.poll, time.monotonic, os.sched_yield
        while not poll(0):
            if now() >= until:
                return False
            give_way()
        return True

    def pump(self, timeout: Optional[float], handle: Handler, wakeable: bool = False, spin: float = 0.0) -> bool:
        """Waits for bytes, and passes the messages in them to handle. False if there were none. wakeable: writing to wake ends the wait. Until
        the time spin, by time.monotonic, it polls instead of sleeping."""
        if self.failed is not None:
            raise self.failed.again()
        if self._busy:
            self.fail(DisconnectedError("an exception cut off the handling of a message"))
            raise DisconnectedError("an exception cut off the handling of a message")
        if not (spin and self._spin(spin)) and not self._sleep(timeout, wakeable):
            return False
        self._busy = True
        self._receive(handle)
        self._busy = False
        return True

    def nap(self, timeout: Optional[float]) -> None:
        """Waits for wake only, while another thread reads."""
        if self._woken.poll(None if timeout is None else timeout * 1000):
            try:
                os.eventfd_read(self.wake)
            except OSError:
                pass

    @interrupts.allowed
    def _sleep(self, timeout: Optional[float], wakeable: bool) -> bool:
        """Sleeps until there are bytes, and with wakeable until a wake, which it consumes. Whether there are bytes."""
        if interrupts.pending:
            interrupts.raise_pending()
        events = (self._poll2 if wakeable else self._poll).poll(None if timeout is None else max(0, timeout * 1000))
        if not wakeable:
            return bool(events)
        if any(fd == self.wake for fd, _ in events):
            try:
                os.eventfd_read(self.wake)
            except OSError:
                pass
        return any(fd != self.wake for fd, _ in events)

    def _receive(self, handle: Handler) -> None:
        try:
            n, anc, flags, _ = self.sock.recvmsg_into([self._buf], _FDS, socket.MSG_CMSG_CLOEXEC)
        except OSError as x:
            self._gone("read", x)
            return
        if anc:
            for level, kind, data in anc:
                if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                    fds = array.array("i")
                    fds.frombytes(data[: len(data) - len(data) % fds.itemsize])
                    self._fds.extend(fds)
        if n == 0:
            self._gone("read", EOFError("end of stream"))
        data = self._rest + self._view[:n] if self._rest else bytes(self._view[:n])
        self._rest = b""
        try:
            i, end = 0, len(data)
            while end - i >= codec.HEADER_SIZE:
                fl, size = codec.header(data, i)
                if end - i - codec.HEADER_SIZE < size:
                    if size > _READ:
                        data, i, end = self._large(data[i:], size), 0, size + codec.HEADER_SIZE
                        continue
                    break
                i += codec.HEADER_SIZE
                fd = None
                if fl & codec.FLAG_FILE:
                    if not self._fds:
                        raise ProtocolError("a frame announces a descriptor that did not come")
                    fd = self._fds.popleft()
                for kind, j, k in codec.split(data, i, i + size):
                    handle(kind, data, j, k, fd)
                    fd = None
                i += size
            self._rest = data[i:]
        except (IndexError, struct.error) as x:
            bad = ProtocolError(f"a malformed message: {x!r}")
            self.fail(bad)
            raise bad.again() from None
        except ProtocolError as x:
            self.fail(x.again())
            raise

    def _large(self, head: bytes, size: int) -> bytes:
        """Reads the rest of a frame that is larger than the buffer."""
        whole = bytearray(size + codec.HEADER_SIZE)
        whole[: len(head)] = head
        view, at = memoryview(whole), len(head)
        while at < len(whole):
            try:
                n = self.sock.recv_into(view[at:])
            except OSError as x:
                self._gone("read", x)
            if n == 0:
                self._gone("read", EOFError("end of stream"))
            at += n
        return bytes(whole)


def _forked() -> None:
    for known in list(_all.values()):
        c = known()
        if c is not None:
            c._forked()
    _all.clear()


os.register_at_fork(after_in_child=_forked)


def dial(path: str, hello: Hello,
         timeout: float = HANDSHAKE_TIMEOUT) -> tuple[Conn, Welcome, Optional[int], list[tuple[int, bytes]]]:
    """Connects and does the handshake. Returns the connection, the Welcome, the segment's descriptor, and messages that came with it."""
    sock = _connect(path, timeout)
    try:
        pid, uid, _ = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        if uid != os.geteuid():
            raise PermissionDeniedError(f"the node at {path} is user {uid}'s, this process is user {os.geteuid()}'s")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", WRITE_TIMEOUT, 0))
        conn = Conn(sock, pid)
    except BaseException:
        sock.close()
        raise
    try:
        if not hello.version:
            hello.version, hello.min_version = VERSION, MIN_VERSION
        try:
            sock.sendall(codec.frame(hello))
        except (BrokenPipeError, ConnectionResetError):
            pass  # the node has refused before it read anything; its Bye can still be read
        first: list[tuple[int, bytes, Optional[int]]] = []

        def take(kind: int, b: bytes, i: int, j: int, fd: Optional[int]) -> None:
            first.append((kind, b[i:j], fd))

        until = time.monotonic() + timeout
        try:
            while not first:
                left = until - time.monotonic()
                if left <= 0 or (not conn.pump(left, take) and time.monotonic() >= until):
                    raise ProtocolError(f"process {pid} said nothing for {timeout} s")
        except DisconnectedError:
            raise DisconnectedError(f"process {pid} at {path} closed the connection without a word: it is no node of Mobula, or it has just died") from None
        except ProtocolError as x:
            raise ProtocolError(f"process {pid} at {path} does not answer as a node of Mobula does: {x.message}") from None
        kind, body, fd = first[0]
        try:
            w = _welcomed(kind, body, path, hello)
        except BaseException:
            if fd is not None:
                os.close(fd)
            raise
        return conn, w, fd, [(k, b) for k, b, _ in first[1:]]
    except BaseException:
        conn.close()
        raise


def _welcomed(kind: int, body: bytes, path: str, hello: Hello) -> Welcome:
    """Decodes the node's Welcome. Raises the error of a Bye, and VersionError if the node does not match this package."""
    if kind == KIND_OF[Bye]:
        bye: Bye = codec.decode(Bye, body)
        if bye.err is None:
            raise ProtocolError(f"the node at {path} refused without a reason")
        raise codec.from_wire(bye.err)
    if kind != KIND_OF[Welcome]:
        raise ProtocolError(f"the node at {path} answered Hello with a message of kind {kind}")
    w: Welcome = codec.decode(Welcome, body)
    if not MIN_VERSION <= w.version <= hello.version:
        raise VersionError(f"the node at {path} chose version {w.version}, this build speaks {MIN_VERSION} to {VERSION}")
    if w.release != RELEASE:  # requests to a node and the encoding of graphs have no version of their own
        raise VersionError(f"the node at {path} is Mobula {w.release or 'before 0.2'}, this package is mobula {RELEASE}: "
                           "use a package and a mobula executable of the same release")
    return w


_MAX_PATH = 107  # the longest socket path that Linux takes, in bytes
_MAX_NAME = _MAX_PATH - len("/proc/self/fd/2147483647/")  # the longest name of a socket in a directory whose path is too long


def _connect_to(sock: socket.socket, path: str) -> None:
    """Connects to a path of any length. If it is too long for a socket address, it goes through a descriptor of the directory."""
    if len(os.fsencode(path)) <= _MAX_PATH:
        return sock.connect(path)
    directory, name = os.path.split(path)
    if (size := len(os.fsencode(name))) > _MAX_NAME:
        raise InvalidError(f"socket name {name!r} has {size} bytes, Linux takes {_MAX_NAME}: choose a shorter one")
    fd = os.open(directory or ".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        sock.connect(f"/proc/self/fd/{fd}/{name}")
    finally:
        os.close(fd)


def _connect(path: str, timeout: float) -> socket.socket:
    until, pause = time.monotonic() + timeout, 0.001
    while True:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        try:
            _connect_to(sock, path)
            return sock
        except InvalidError:
            sock.close()
            raise
        except OSError as x:
            sock.close()
            if x.errno == errno.EAGAIN and time.monotonic() < until:  # the node's listen queue is full: many clients connect at once
                time.sleep(pause)
                pause = min(2 * pause, 0.1)
                continue
            if x.errno in (errno.ENOENT, errno.ENOTDIR):
                raise no_socket(path) from None
            if x.errno == errno.ECONNREFUSED:
                if os.path.exists(path) and not stat.S_ISSOCK(os.stat(path).st_mode):
                    raise InvalidError(f"{path} is no socket: an address is a node's socket or its directory (address, MOBULA_ADDRESS)") from None
                raise NoNodeError(f"the node that made {path} is gone: start one with mobula start") from None
            if x.errno in (errno.EACCES, errno.EPERM):
                raise denied(path, x) from None
            raise DisconnectedError(f"socket {path}: {x}") from None


__all__ = ["Conn", "dial"]
