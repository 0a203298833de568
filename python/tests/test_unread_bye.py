"""The node's Bye is the reason for the end of a connection, even if a write fails before the Bye is read."""

from __future__ import annotations

import os
import socket

import pytest

from mobula import exceptions as x
from mobula._wire import codec
from mobula._wire import messages as m
from mobula._wire.conn import Conn


@pytest.mark.parametrize("said, want", [
    ([m.Credit(bytes=1), m.Bye(err=codec.to_wire(x.ShutdownError("stopping")))], x.ShutdownError),
    ([m.Credit(bytes=1)], x.DisconnectedError),
    ([], x.DisconnectedError),
    ([m.Bye()], x.DisconnectedError),
])
def test_a_goodbye_that_nobody_has_read_is_why_a_write_fails(said: list[object], want: type[Exception]) -> None:
    ours, theirs = socket.socketpair()
    conn = Conn(ours, os.getpid())
    try:
        with theirs:
            for message in said:
                theirs.sendall(codec.frame(message))
        with pytest.raises(want), conn.writing:
            conn.write([codec.message(m.Stats())])
        assert isinstance(conn.failed, want)
    finally:
        conn.close()
