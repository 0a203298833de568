from __future__ import annotations

import os
import threading
import time

from mobula._client.spin import SOON, Spin
from mobula._wire.conn import Conn


def after(waits: list[float]) -> bool:
    s = Spin()
    for took in waits:
        s.ended(took)
    return s.until(7.0) == 7.0 + SOON


def test_who_is_answered_soon_looks_and_who_is_not_sleeps() -> None:
    short, long = SOON / 2, SOON * 2
    assert not after([]) and Spin().until(7.0) == 0
    assert not after([short] * 7) and after([short] * 8)
    assert after([short] * 100 + [long] * 2), "two of many do not count"
    assert not after([short] * 100 + [long] * 3)
    assert not after([short] * 100 + [long] * 1000 + [short] * 7), "it is not held against it for longer than that"
    assert after([short] * 100 + [long] * 1000 + [short] * 8)
    assert not after([short, short, long] * 100), "where a third is long it does not pay"


def test_who_is_sent_many_at_once_sleeps() -> None:
    s = Spin()
    for _ in range(100):
        s.ended(SOON / 2)
        s.missed()
    assert s.until(7.0) == 0


def test_looking_ends_with_bytes_or_in_time() -> None:
    import socket

    a, b = socket.socketpair()
    conn = Conn(a, os.getpid())
    try:
        begun = time.monotonic()
        assert not conn.pump(0.0, lambda *_: None, False, begun + 0.01)
        assert time.monotonic() - begun >= 0.01
        t = threading.Timer(0.05, lambda: b.send(b"Mb\x01\x00\x00\x00\x00\x00"))
        t.start()
        assert conn.pump(0.0, lambda *_: None, False, float("inf"))
        t.join()
    finally:
        conn.close()
        b.close()
