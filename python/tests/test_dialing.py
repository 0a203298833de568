"""Connecting to a node, the handshake, and reading frames."""

from __future__ import annotations

import gc
import socket
import subprocess
import sys
import threading
from typing import Any

import pytest
from helpers_of_client import segments
from mininode import MiniNode
from waiting import PATIENCE, until

import mobula
from mobula import exceptions as x
from mobula._version import RELEASE
from mobula._wire import codec
from mobula._wire import messages as m
from mobula._wire.conn import dial


def test_refusals(tmp_path: Any) -> None:
    with pytest.raises(x.NoNodeError, match="mobula start"):
        dial(str(tmp_path / "none"), m.Hello())
    with pytest.raises(x.InvalidError, match="has 200 bytes, Linux takes 82"):
        dial("/tmp/" + "x" * 200, m.Hello())
    with pytest.raises(x.NoNodeError, match="mobula start"):  # the directory may be as long as it will
        dial("/tmp/" + "y/" * 200 + "none", m.Hello())
    for n, (said, error) in enumerate([(codec.frame(m.Bye(m.Error(28, "you are not welcome"))), x.PermissionDeniedError), (b"HTTP/1.1 400", x.ProtocolError),
                        (b"", x.DisconnectedError), (codec.frame(m.Welcome(version=9)), x.VersionError), (codec.frame(m.Drain()), x.ProtocolError)]):
        path = str(tmp_path / f"s{n}")
        server = socket.socket(socket.AF_UNIX)
        server.bind(path)
        server.listen(1)

        def answer(said: bytes = said, server: Any = server) -> None:
            c, _ = server.accept()
            if said:
                c.recv(10_000)
            c.sendall(said)
            c.close()

        t = threading.Thread(target=answer)
        t.start()
        with pytest.raises(error):
            dial(path, m.Hello(role=m.DRIVER))
        t.join()
        server.close()


@pytest.mark.parametrize("release, said", [("9.9.0", "Mobula 9.9.0"), ("", "Mobula before 0.2")])
def test_a_node_of_another_release_is_refused(release: str, said: str) -> None:
    gc.collect()  # clients of tests before
    other = MiniNode(release=release)
    before = segments()
    try:
        with pytest.raises(x.VersionError, match=f"{other.path} is {said}, this package is mobula {RELEASE}: use a package and"):
            mobula.init(other.path)
        assert not mobula.is_initialized()
        until(lambda: segments() == before)
    finally:
        other.close()
    node = MiniNode()  # the process can go on with another
    try:
        with mobula.init(node.path):
            assert mobula.get(mobula.put(1)) == 1
    finally:
        node.close()


def test_large_frames_in_pieces(tmp_path: Any) -> None:
    """A frame larger than the reader's buffer, cut anywhere."""
    path = str(tmp_path / "s")
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    server.listen(1)
    data = codec.frame(m.Welcome(version=m.VERSION, client=1, job=1, root=bytes(20), release=RELEASE))
    stream = codec.frame(m.Reply(1, bytes(600_000))) + codec.frame(m.Reply(2, b"x"), m.Reply(3, bytes(300_000))) + codec.frame(m.Reply(4, b"y"))
    done = threading.Event()

    def serve() -> None:
        c, _ = server.accept()
        c.sendall(data)
        at, size = 0, 1
        while at < len(stream):
            c.sendall(stream[at:at + size])
            at, size = at + size, size * 3 % 70_001 + 1
        assert done.wait(PATIENCE)
        c.close()

    t = threading.Thread(target=serve)
    t.start()
    conn, _, _, early = dial(path, m.Hello())
    got = [codec.decode(m.KINDS[k], b) for k, b in early]
    while len(got) < 4:
        conn.pump(5, lambda k, b, i, j, fd: got.append(codec.decode(m.KINDS[k], b, i, j)))
    assert [(r.req, len(r.body)) for r in got] == [(1, 600_000), (2, 1), (3, 300_000), (4, 1)]
    done.set()
    t.join()
    conn.close()
    server.close()


def test_a_program_with_many_files_open(binary: str) -> None:
    program = """
import os, resource
resource.setrlimit(resource.RLIMIT_NOFILE, (2048, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
files = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
import mobula
mobula.init(num_cpus=1, object_store_memory=64 << 20)
f = mobula.remote(lambda: 3)
print(mobula.get(f.remote()))
mobula.shutdown()
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE)
    assert (ran.stdout, ran.returncode) == ("3\n", 0), ran.stderr
