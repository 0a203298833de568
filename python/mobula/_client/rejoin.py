"""Finds the node again after its process has ended, and continues the same job."""

from __future__ import annotations

import os
import time
from typing import Callable, NamedTuple, Optional

from .._wire import messages as m
from .._wire.conn import Conn, dial
from ..exceptions import DisconnectedError, MobulaError, NoNodeError, OwnerDiedError, ShutdownError

PATIENCE = 30.0  # seconds that a node may take to come back


class Reached(NamedTuple):
    """A node that was found again."""

    conn: Conn
    welcome: m.Welcome
    segment: Optional[int]  # its descriptor
    early: list[tuple[int, bytes]]  # messages that came with the welcome


def ahead(w: m.Welcome) -> int:
    """Nanoseconds by which the node's clock is ahead of CLOCK_MONOTONIC. A node before release 0.4 uses the wall clock."""
    return w.clock or time.time_ns() - time.monotonic_ns()


def look(address: str, hello: m.Hello, given_up: Callable[[], bool]) -> Optional[Reached]:
    """Tries to connect for PATIENCE seconds. None once given_up is true. OwnerDiedError if the node does not come back; its own error if
    it refuses."""
    until, pause = time.monotonic() + PATIENCE, 0.02
    while not given_up():
        try:
            return Reached(*dial(address, hello))
        except (NoNodeError, DisconnectedError, ShutdownError, OSError) as x:  # OSError: for instance no descriptor is left
            gone = not os.path.exists(os.path.dirname(address) or ".")  # with the directory the job is gone
            if gone or time.monotonic() > until:
                causes = (x.again(),) if isinstance(x, MobulaError) else ()
                why = "its directory is gone" if gone else f"not back after {PATIENCE:.0f} s"
                raise OwnerDiedError(f"node at {address}: {why}: {x}", causes=causes) from None
            time.sleep(pause)
            pause = min(2 * pause, 1.0)
    return None
