"""What is left of a client that is over while arrays of the user's lie in the object store.

An array stays what it is as long as it lives. A client that leaves its node says goodbye and keeps the connection: the node hears
on it which pins are given back, and at its end that nothing is read any more. Where the node ends first, its next life may use
the memory again: what is still viewed is copied then, page by page, to where it lies.
"""

from __future__ import annotations

import logging
import os
import select
import threading
import time
from typing import Optional, Protocol, Sequence

from .._segment import Segment
from .._wire.conn import Conn
from ..exceptions import MobulaError
from .interfaces import Releases, Sends
from .objects import Objects

log = logging.getLogger("mobula")

_GOING = 2.0  # seconds in which a node that ends for good has removed its segment; one that comes back waits longer for who had pins

_kept: list[Conn] = []  # of a process that ends: it ends them


class Left(Sends, Releases, Protocol):
    """A client that is over."""

    lingering: Optional[Conn]

    @property
    def objects(self) -> Objects: ...

    @property
    def segments(self) -> Sequence[Segment]: ...

    def lasting_memory(self) -> bool: ...

    def give_up_memory(self) -> None: ...


def linger(c: Left, conn: Optional[Conn]) -> None:
    """Keeps a client's arrays as they are. It has the connection from now on, if there is one, and is its only reader."""
    try:
        threading.Thread(target=_Lingering(c, conn).run, name="mobula-arrays", daemon=True).start()
    except RuntimeError:  # the interpreter is ending: the pins fall with the process
        if conn is not None:
            _kept.append(conn)


class _Lingering:
    def __init__(self, c: Left, conn: Optional[Conn]) -> None:
        self._client = c
        self._conn = conn

    def run(self) -> None:
        c, conn = self._client, self._conn
        try:
            if conn is None or not self._give_back(conn):
                self._copy()
        except Exception:
            log.exception("arrays of a node that is gone could not be copied: their contents may change")
        finally:
            c.lingering = None
            if conn is not None:
                conn.close()
            c.give_up_memory()

    def _give_back(self, conn: Conn) -> bool:
        """Gives pins back as what they are of goes, until the last; false: the node has ended before."""
        c = self._client
        c.lingering = conn
        poll = select.poll()
        poll.register(conn.sock, select.POLLIN)
        poll.register(conn.wake, select.POLLIN)
        while True:
            c.reader.quiet = True  # whoever lets go of an array wakes us
            left = c.objects.viewed()
            gone = [c.out.popleft() for _ in range(len(c.out))]
            try:
                if gone:
                    with conn.writing:
                        conn.write(gone)
            except MobulaError:
                return False
            if not left:
                return True
            if c.unpins:
                continue
            for fd, _ in poll.poll():
                if fd == conn.wake:
                    os.eventfd_read(conn.wake)
                elif not conn.sock.recv(64 << 10):  # what was under way to a client that is over
                    return False

    def _copy(self) -> None:
        """Copies what is viewed, unless nobody else can ever use the memory."""
        c = self._client
        until = time.monotonic() + _GOING
        while c.lasting_memory():
            if time.monotonic() > until:
                break
            time.sleep(0.02)
        else:
            return
        for extent in c.objects.viewed():
            for segment in c.segments:
                segment.detach(extent)
