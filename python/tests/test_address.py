"""How a program finds its node: addresses, MOBULA_ADDRESS, MOBULA_DIR."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any, Callable

import pytest
from waiting import PATIENCE

import mobula
from mobula import _node
from mobula.exceptions import DisconnectedError, InvalidError, NoNodeError, ProtocolError


def test_auto_is_the_node_that_the_environment_names(monkeypatch: pytest.MonkeyPatch, tmp_path: os.PathLike[str]) -> None:
    monkeypatch.delenv("MOBULA_ADDRESS", raising=False)
    monkeypatch.delenv("MOBULA_DIR", raising=False)
    assert _node.socket_of("auto") == _node.default_address()
    monkeypatch.setenv("MOBULA_DIR", "/d")
    assert _node.socket_of("auto") == "/d/node.sock"
    monkeypatch.setenv("MOBULA_ADDRESS", str(tmp_path))
    assert _node.socket_of("auto") == os.path.join(str(tmp_path), "node.sock")
    assert _node.socket_of("/s.sock") == "/s.sock"


def _serve_once(path: str, what: Callable[[socket.socket], Any]) -> threading.Thread:
    s = socket.socket(socket.AF_UNIX)
    s.bind(path)
    s.listen(1)

    def run() -> None:
        with s:
            c, _ = s.accept()
            with c:
                what(c)

    t = threading.Thread(target=run)
    t.start()
    return t


def test_wrong_addresses_say_what_they_are(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    os.mkfifo(tmp_path / "fifo")
    stale = socket.socket(socket.AF_UNIX)
    stale.bind(str(tmp_path / "stale"))
    stale.close()
    at = str(tmp_path)
    for address, error, said in (
            ("localhost:6379", InvalidError, "host and port"), ("tcp://10.0.0.1:1", InvalidError, "host and port"), ("[::1]:80", InvalidError, "host and port"),
            ("10.0.0.1", NoNodeError, "10.0.0.1:7710 as a rule"), ("head.example.org", NoNodeError, "head.example.org:7710 as a rule"),
            (f"{at}/a:1", NoNodeError, "there is no socket"), ("/no/such/x.sock", NoNodeError, "no directory /no/such"),
            (at, NoNodeError, f"no node runs in {at}"), (f"{at}/node.sock", NoNodeError, f"no node runs in {at}"), (f"{at}/x.sock", NoNodeError, f"no socket {at}/x.sock"),
            (f"{at}/file", InvalidError, f"{at}/file is no socket"), (f"{at}/fifo", InvalidError, f"{at}/fifo is no socket"), (f"{at}/file/x", NoNodeError, "no socket"),
            (f"{at}/stale", NoNodeError, "is gone")):
        with pytest.raises(error, match=re.escape(said)) as x:
            mobula.init(address)
        assert address in str(x.value) and ("mobula start" in str(x.value) or "MOBULA_ADDRESS" in str(x.value))


def test_what_is_no_node_is_named(tmp_path: Path) -> None:
    for name, what, error, said in (("hangs-up", lambda c: None, DisconnectedError, "without a word"),
                                    ("babbles", lambda c: (c.recv(10), c.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n" * 10)), ProtocolError, "as a node of Mobula")):
        path = str(tmp_path / name)
        t = _serve_once(path, what)
        with pytest.raises(error, match=said) as x:
            mobula.init(path)
        t.join()
        assert path in str(x.value) and str(os.getpid()) in str(x.value)


_STRANGER = """
import os, sys
sys.path[:0] = [sys.argv[2]]
import mobula
os.setuid(65534)
try:
    mobula.init(sys.argv[1])
except mobula.exceptions.PermissionDeniedError as x:
    print(x)
"""


def test_another_users_node_is_named() -> None:
    if os.geteuid() != 0:
        return  # the kernel lets no other become a second user
    with tempfile.TemporaryDirectory() as d:  # 0700, root's
        path = os.path.join(d, "node.sock")
        p = subprocess.run([sys.executable, "-c", _STRANGER, path, os.path.dirname(os.path.dirname(mobula.__file__))], capture_output=True, text=True, timeout=PATIENCE)
    assert f"{d} is user 0's, this process is user 65534's" in p.stdout and p.stderr == "", p
