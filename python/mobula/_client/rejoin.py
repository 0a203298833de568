"""Finding the node again after its process ended, under the same job."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Optional

from .._segment import open_segment
from .._wire import messages as m
from .._wire.conn import Conn, dial
from ..exceptions import DisconnectedError, MobulaError, NoNodeError, OwnerDiedError, ShutdownError

if TYPE_CHECKING:
    from .client import Client

PATIENCE = 30.0  # seconds that a node may take to come back

# What a node says and sends when a client comes: its welcome, the segment's descriptor, and messages that came with it.
_Found = tuple[Conn, m.Welcome, Optional[int], list[tuple[int, bytes]]]


def ahead(w: m.Welcome) -> int:
    """What the node's clock is ahead of CLOCK_MONOTONIC, which nobody can set; a node before 0.4 has the wall clock."""
    return w.clock or time.time_ns() - time.monotonic_ns()


def rejoin(c: "Client") -> None:
    """Connects a client anew; if the node does not come back in time, the client dies."""
    found = _look(c)
    if found is None:
        return
    conn, welcome, fd, early = found
    try:
        segment = open_segment(fd, welcome.segment_size)
    except BaseException:
        conn.close()
        raise
    try:
        with conn.writing:  # nothing else goes before what the node has to hear first
            with c.lock:
                if segment is not None:
                    c.segment = segment
                    c.segments = [*(c.segments if c.objects.viewed() else ()), segment]
                c.ahead = ahead(welcome)
                chunks = c.outbox.renew([*c.declare(m.OWNER, 0), *c.declare(m.STORE, 0)], c.requests.again())
                c.conn = conn
            conn.write(chunks)
    except MobulaError as x:
        c.broken(conn, x)
        return
    for kind, body in early:
        c.handle(kind, body, 0, len(body), None)
    c.reader.wake()


def _look(c: "Client") -> Optional[_Found]:
    until, pause = time.monotonic() + PATIENCE, 0.02
    while not c.closing:
        try:
            return dial(c.address, c.hello)
        except (NoNodeError, DisconnectedError, ShutdownError, OSError) as x:  # the last: this process has no descriptor left, say
            gone = not os.path.exists(os.path.dirname(c.address) or ".")  # and what it knew of the job
            if gone or time.monotonic() > until:
                causes = (x.again(),) if isinstance(x, MobulaError) else ()
                why = "its directory is gone" if gone else f"not back after {PATIENCE:.0f} s"
                c.die(OwnerDiedError(f"node at {c.address}: {why}: {x}", causes=causes))
                return None
            time.sleep(pause)
            pause = min(2 * pause, 1.0)
        except MobulaError as x:
            c.die(x.again())
            return None
    return None
