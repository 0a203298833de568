"""A connection to the node: frames over a Unix socket.

One thread at a time writes, with the lock writing held, and one thread at a time reads, by pump. Both may be cut off anywhere by an exception
of a signal handler, and called again anywhere by code that the garbage collector runs. So what was sent, and what was read, is recorded in
the step that sends or reads it: a call within C (list += map(f, ...)), in which the interpreter runs nothing else. Whoever comes next goes on
from there: a frame that was begun is written to its end, and a message whose handling was cut off is handled again.
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
from typing import Any, Callable, Iterator, Optional

from .._interrupts import interrupts
from .._version import RELEASE
from ..exceptions import (DisconnectedError, InvalidError, MobulaError, NoNodeError, PermissionDeniedError, ProtocolError, VersionError)
from . import codec
from .unreachable import denied, no_socket
from .messages import KIND_OF, MIN_VERSION, VERSION, Bye, Hello, Welcome

HANDSHAKE_TIMEOUT = 5.0
WRITE_TIMEOUT = 60
_READ = 256 << 10
_HEADER = codec.HEADER_SIZE
_FDS = socket.CMSG_SPACE(16 * 4)
_TRIES = 100  # how often the handling of one message may be cut off

# Arguments for map.
_SEND_NOW = (socket.MSG_DONTWAIT,)
_READ_NOW = (socket.MSG_DONTWAIT | socket.MSG_CMSG_CLOEXEC,)
_SPACE = (_FDS,)

# Handles a message: kind, the frame's bytes, begin and end of the body in them, and a file descriptor if one came with it.
Handler = Callable[[int, bytes, int, int, Optional[int]], None]
Message = tuple[int, bytes, int, int, Optional[int]]

_all: dict[int, weakref.ref["Conn"]] = {}  # by id(); a forked child closes all of them


class Conn:
    def __init__(self, sock: socket.socket, pid: int) -> None:
        self.sock = sock
        self.pid = pid
        self.writing = threading.RLock()
        self.failed: Optional[MobulaError] = None
        self.frame: Optional[bytes] = None  # what is being written
        self.sent: list[int] = []  # bytes of it that were sent, by step; empty while there is none
        self._turn = 0  # counts the steps of writing
        self.receiving = False  # the thread that reads is in the step that takes bytes from the socket
        self._buf = bytearray(_READ)
        self._view = memoryview(self._buf)
        self._into = ([self._buf],)
        self._reads = 0  # counts the steps of reading
        self._got: list[Any] = []  # what recvmsg_into returned, until its bytes are in _data
        self._data = b""  # bytes that were read; their messages before _at have been begun
        self._at = 0
        self._end = 0  # where the frame at _at ends; _at itself: a frame begins there
        self._more = False  # there may be a whole message at _at
        self._large: Optional[bytearray] = None  # a frame that is larger than the buffer, while its end was not read yet
        self._filled: list[int] = []  # bytes of it that were read, by step
        self._fds: list[int] = []  # descriptors that came before their frame
        self._current: Optional[Message] = None  # the message that is being handled
        self._tries = 0  # how often its handling was begun
        self.wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._over = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._waking = threading.RLock()  # held to write to wake or to close it, by finalisers too
        self._poll = select.poll()
        self._poll.register(sock, select.POLLIN)
        self._poll_over = select.poll()
        self._poll_over.register(sock, select.POLLIN)
        self._poll_over.register(self._over, select.POLLIN)
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
                except BlockingIOError:
                    pass  # the counter is full: the thread has not slept since

    def nested_over(self) -> None:
        """Ends the sleep of this thread that a handler or a finaliser has come into: what that has read meanwhile may be what is slept for."""
        with self._waking:
            if self._over >= 0:
                os.eventfd_write(self._over, 1)

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
            over, self._over = self._over, -1
            for fd in (wake, over):
                if fd >= 0:
                    os.close(fd)
        fds, self._fds = self._fds, []
        for fd in fds:
            os.close(fd)

    def __del__(self) -> None:
        # The socket closes itself. It is not shut down: in a forked child the connection is the parent's.
        try:
            self._close_others()
        except AttributeError:
            pass  # __init__ did not finish

    def write(self, chunks: list[bytes]) -> None:
        """Writes encoded messages. The caller holds the lock writing."""
        data = framed(chunks)
        while True:
            self.push()
            if self.frame is None:  # whole
                self.frame = data
                break
        self.push()

    def first(self, data: bytes) -> Iterator[int]:
        """Sends what the socket takes of a new frame, once it is iterated over."""
        return map(self.sock.send, (data,), _SEND_NOW)

    def push(self) -> None:
        """Writes what is left of the frame. The caller holds the lock writing. The frame may have been begun by a call that was cut off."""
        if self.failed is not None:
            raise self.failed.again()
        while (frame := self.frame) is not None:
            turn = self._turn + 1
            self._turn = turn
            sent = self.sent
            left = memoryview(frame)[sum(sent):] if sent else frame
            step = map(self.sock.send, (left,), _SEND_NOW)
            fresh: list[int] = []
            full = False
            try:  # around no call: what a signal's handler raises there may be an OSError, too
                if left and self._turn == turn:  # whole: code that ran meanwhile has not written
                    sent += step
            except BlockingIOError:
                full = True
            except OSError as x:
                if isinstance(x, ConnectionError) and (why := self._unread_bye()) is not None:
                    self.fail(why)
                self._gone("write", x)
            if full:
                self._wait_for_room()
                continue
            done = sum(sent) == len(frame)
            if done and self._turn == turn:  # whole
                self.frame = None
                self.sent = fresh

    @interrupts.allowed
    def _wait_for_room(self) -> None:
        """Waits until the socket takes more bytes. It gives up the lock meanwhile: another thread that writes may have to end for a signal."""
        if interrupts.pending:
            interrupts.run_pending()
        fd = self.sock.fileno()
        if fd < 0:
            return  # it was closed: the next send says so
        lock: Any = self.writing
        held = lock._release_save()
        try:
            poll = select.poll()  # for one thread, and not for code in its midst
            poll.register(fd, select.POLLOUT)
            room = poll.poll(WRITE_TIMEOUT * 1000)
        finally:
            lock._acquire_restore(held)
        if not room:
            self.fail(DisconnectedError(f"process {self.pid} has read nothing for {WRITE_TIMEOUT} s"))
            assert self.failed is not None
            raise self.failed.again()

    def _gone(self, op: str, x: BaseException) -> None:
        self.fail(DisconnectedError(f"process {self.pid} closed the connection or died ({op}: {x})"))
        assert self.failed is not None
        raise self.failed.again() from None

    def _unread_bye(self) -> Optional[MobulaError]:
        """Called when a write fails: the error of a Bye that the node sent before it closed its end, if that is still unread. It only peeks,
        since another thread may be about to read."""
        try:
            data = self._data[max(self._at, self._end):] + self.sock.recv(_READ, socket.MSG_PEEK | socket.MSG_DONTWAIT)
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

    def pump(self, timeout: Optional[float], handle: Handler, wakeable: bool = False, spin: float = 0.0, nested: bool = False) -> bool:
        """Waits for bytes, and passes the messages in them to handle. False if there were none. wakeable: writing to wake ends the wait. Until
        the time spin, by time.monotonic, it polls instead of sleeping. nested: this thread is in pump already."""
        if self.failed is not None:
            raise self.failed.again()
        cut = self._current is not None and not nested
        if not (cut or self._more or self._got or (self._large is not None and sum(self._filled) == len(self._large))):
            if not (spin and not nested and self._spin(spin)) and not self._sleep(timeout, wakeable, nested):
                return False
            self._receive()
        if self._got or self._large is not None:
            self._take_in()
        self._hand_out(handle, nested)
        return True

    def nap(self, timeout: Optional[float]) -> None:
        """Waits for wake only, while another thread reads."""
        if self._woken.poll(None if timeout is None else timeout * 1000):
            try:
                os.eventfd_read(self.wake)
            except OSError:
                pass

    @interrupts.allowed
    def _sleep(self, timeout: Optional[float], wakeable: bool, nested: bool) -> bool:
        """Sleeps until there are bytes, and with wakeable until a wake, which it consumes. Whether there are bytes."""
        if interrupts.pending:
            interrupts.run_pending()
        poll, mark = (self._poll2, self.wake) if wakeable else (self._poll_over, self._over)
        if nested:  # a handler that runs inside poll cannot use the same one
            poll = select.poll()
            poll.register(self.sock, select.POLLIN)
            poll.register(mark, select.POLLIN)
        events = poll.poll(None if timeout is None else max(0, timeout * 1000))
        if any(fd == mark for fd, _ in events):
            try:
                os.eventfd_read(mark)
            except OSError:
                pass
        return any(fd != mark for fd, _ in events)

    def _receive(self) -> None:
        """Reads the bytes that are there."""
        turn = self._reads + 1
        self._reads = turn
        got, large, filled = self._got, self._large, self._filled
        step: Any
        if large is None:
            step, into = map(self.sock.recvmsg_into, self._into, _SPACE, _READ_NOW), got
        else:
            step, into = map(self.sock.recv_into, (memoryview(large)[sum(filled):],), (0,), _READ_NOW), filled
        self.receiving = True
        try:
            if self._reads == turn and not got:  # whole: code that ran meanwhile has not read
                into += step
        except BlockingIOError:
            pass
        except OSError as x:
            self._gone("read", x)
        finally:
            self.receiving = False
        if large is not None and not filled[-1]:
            self._gone("read", EOFError(f"end of stream after {sum(filled)} of {len(large)} bytes"))

    def _take_in(self) -> None:
        """Adds the bytes that were read to _data."""
        got, large, fds = self._got, self._large, self._fds
        if large is not None:
            if sum(self._filled) < len(large):
                return
            data, end = bytes(large), 0
        elif got:
            n, anc, _, _ = got[0]
            if n == 0:
                self._gone("read", EOFError("end of stream"))
            data, at, end = self._data, self._at, self._end - self._at
            data = data[at:] + self._view[:n] if at < len(data) else bytes(self._view[:n])
            if anc:
                fds = [*fds, *_descriptors(anc)]
        else:
            return
        fresh: list[Any] = []
        if self._got is got and self._large is large:  # whole
            self._got = fresh
            self._large = None
            self._data = data
            self._at = 0
            self._end = end
            self._more = True
            self._fds = fds

    def _next(self) -> bool:
        """Makes the next message the current one. False if none is whole. It raises if what comes is malformed."""
        while True:
            data, at, end, fd, fds = self._data, self._at, self._end, None, self._fds
            i, there = at, len(data)
            if at == end:  # a frame begins
                i += _HEADER
                if i > there:
                    return self._wait_for_rest(data, at, 0)
                flags, size = codec.header(data, at)
                end = i + size
                if end > there:
                    return self._wait_for_rest(data, at, size)
                if flags & codec.FLAG_FILE:
                    if not fds:
                        raise ProtocolError("a frame announces a descriptor that did not come")
                    fd, fds = fds[0], fds[1:]
            if i == end:  # an empty frame
                if self._data is data and self._at == at:  # whole
                    self._at = self._end = i
                continue
            tag, n, i = codec.read_two(data, i)
            j = i + n
            if tag & 7 != 2 or j > end:
                raise ProtocolError(f"a frame's message is cut off at byte {i}")
            message, last = (tag >> 3, data, i, j, fd), j == there
            if self._data is data and self._at == at:  # whole
                self._current = message
                self._tries = 0
                self._at = j
                self._end = end
                self._fds = fds
                if last:
                    self._data = b""
                    self._at = self._end = 0
                    self._more = False
                return True

    def _wait_for_rest(self, data: bytes, at: int, size: int) -> bool:
        """Notes that no whole message is at _at. size: of the frame that begins there, if its header is whole. It returns False."""
        head = None
        filled = [len(data) - at]
        if size > _READ:
            head = bytearray(size + _HEADER)
            head[: len(data) - at] = data[at:]
        taken = head is not None or at == len(data)
        if self._data is data and self._at == at:  # whole
            self._more = False
            if taken:
                self._data = b""
                self._at = self._end = 0
            if head is not None:
                self._large = head
                self._filled = filled
        return False

    def _hand_out(self, handle: Handler, nested: bool) -> None:
        """Has the messages that were read handled, before them one whose handling was cut off."""
        outer = self._current if nested else None
        while True:
            try:
                message = self._current
                if message is None or message is outer:
                    if not self._more or not self._next():
                        return
                    message = self._current
                    assert message is not None
                else:
                    self._tries += 1
                    if self._tries > _TRIES:
                        self.fail(DisconnectedError("an exception cut off the handling of a message"))
                        raise DisconnectedError("an exception cut off the handling of a message")
                handle(*message)
            except (IndexError, struct.error) as x:
                self.fail(ProtocolError(f"a malformed message: {x!r}"))
                raise ProtocolError(f"a malformed message: {x!r}") from None
            except ProtocolError as x:
                self.fail(x.again())
                raise
            if self._current is message:  # else it is one of a nested call that was cut off
                self._current = outer
            if message[4] is not None:
                os.close(message[4])


def _descriptors(anc: list[tuple[int, int, bytes]]) -> list[int]:
    """The descriptors that came with bytes."""
    fds = array.array("i")
    for level, kind, data in anc:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds.frombytes(data[: len(data) - len(data) % fds.itemsize])
    return list(fds)


def framed(chunks: list[bytes]) -> bytes:
    """Encoded messages as frames."""
    size = sum(map(len, chunks))
    if size <= codec.FRAME_TARGET:
        return codec.HEADER.pack(b"Mb", 1, 0, size) + b"".join(chunks)
    return b"".join(codec.frames(chunks))


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
            first.append((kind, b[i:j], None if fd is None or first else os.dup(fd)))

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
