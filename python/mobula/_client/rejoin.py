"""Finding the node again after its process ended, under the same job."""

from __future__ import annotations

import os
import time
from typing import Callable, NamedTuple, Optional

from .._wire import messages as m
from .._wire.conn import Conn, dial
from ..exceptions import DisconnectedError, MobulaError, NoNodeError, OwnerDiedError, ShutdownError

PATIENCE = 30.0  # seconds that a node may take to come back


class Reached(NamedTuple):
    """What a node says and sends when a client comes."""

    conn: Conn
    welcome: m.Welcome
    segment: Optional[int]  # its descriptor
    early: list[tuple[int, bytes]]  # messages that came with the welcome


def ahead(w: m.Welcome) -> int:
    """What the node's clock is ahead of CLOCK_MONOTONIC, which nobody can set; a node before 0.4 has the wall clock."""
    return w.clock or time.time_ns() - time.monotonic_ns()


def look(address: str, hello: m.Hello, given_up: Callable[[], bool]) -> Optional[Reached]:
    """Connects anew; None once it is given up. What it raises says that the node does not come back in time, or refuses."""
    until, pause = time.monotonic() + PATIENCE, 0.02
    while not given_up():
        try:
            return Reached(*dial(address, hello))
        except (NoNodeError, DisconnectedError, ShutdownError, OSError) as x:  # the last: this process has no descriptor left, say
            gone = not os.path.exists(os.path.dirname(address) or ".")  # and what it knew of the job
            if gone or time.monotonic() > until:
                causes = (x.again(),) if isinstance(x, MobulaError) else ()
                why = "its directory is gone" if gone else f"not back after {PATIENCE:.0f} s"
                raise OwnerDiedError(f"node at {address}: {why}: {x}", causes=causes) from None
            time.sleep(pause)
            pause = min(2 * pause, 1.0)
    return None
