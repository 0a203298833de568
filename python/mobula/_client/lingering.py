"""Keeps the user's arrays valid after the client was closed or its node has ended.

Arrays may view the object store as long as they live. A closed client says goodbye but keeps the connection, as SO_LINGER does: on it
the node gets the remaining pins back, and its end tells the node that nothing is read any more. If the node ends first, the
next node in its directory may reuse the memory. Then the memory that is still viewed is copied in place, page by page.
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

_GOING = 2.0  # seconds in which a node that ends for good removes its files; a node that restarts waits longer for clients with pins

_kept: list[Conn] = []  # connections that stay open until the process ends


class ClosedClient(Sends, Releases, Protocol):
    """A closed or dead client."""

    lingering: Optional[Conn]

    @property
    def objects(self) -> Objects: ...

    @property
    def segments(self) -> Sequence[Segment]: ...

    def lasting_memory(self) -> bool: ...

    def give_up_memory(self) -> None: ...


def linger(c: ClosedClient, conn: Optional[Conn]) -> None:
    """Keeps a client's arrays valid, in a thread. From now on it alone uses the connection, if there is one."""
    try:
        threading.Thread(target=_Lingering(c, conn).run, name="mobula-arrays", daemon=True).start()
    except RuntimeError:  # the interpreter is shutting down: the pins end with the process
        if conn is not None:
            _kept.append(conn)


class _Lingering:
    def __init__(self, c: ClosedClient, conn: Optional[Conn]) -> None:
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
        """Gives pins back as arrays are deleted, until none is left. False if the node ends before."""
        c = self._client
        c.lingering = conn
        poll = select.poll()
        poll.register(conn.sock, select.POLLIN)
        poll.register(conn.wake, select.POLLIN)
        while True:
            c.reader.quiet = True  # a finaliser of an array then wakes this thread
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
                elif not conn.sock.recv(64 << 10):  # drops messages for the closed client
                    return False

    def _copy(self) -> None:
        """Copies the viewed memory in place, unless no other process can ever reuse it."""
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
