"""A cluster of several nodes on this machine, each a process of its own."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import tempfile
from contextlib import contextmanager
from typing import Any, Iterator

from waiting import PATIENCE

import mobula

STORE = 64 << 20


def port(nodes: int) -> int:
    """A port of the loopback such that those of so many local nodes are free, which follow it by tens."""
    while True:
        with socket.socket() as first:
            first.bind(("127.0.0.1", 0))
            base: int = first.getsockname()[1]
        tried: list[socket.socket] = []
        try:
            for p in (10 * i + j for i in range(nodes) for j in range(4)):
                tried.append(socket.socket())
                tried[-1].bind(("127.0.0.1", base + p))
            return base
        except (OSError, OverflowError):
            pass
        finally:
            for s in tried:
                s.close()


@contextmanager
def local_nodes(binary: str, n: int) -> Iterator[list[dict[str, Any]]]:
    """So many nodes with a CPU each; this process is a driver of the first."""
    dir = tempfile.mkdtemp(prefix="mobula-nodes-")  # short: a socket's path has 108 bytes
    command = [binary, "cluster", "local", "-n", str(n), "--detach", "--json", "--dir", dir, "--port", str(port(n)), "--store-size", str(STORE)]
    try:
        up = json.loads(subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE).stdout)["nodes"]
        with mobula.init(up[0]["address"]):
            yield up
    finally:
        subprocess.run([binary, "cluster", "stop", "--dir", dir], check=False, capture_output=True, timeout=PATIENCE)
        shutil.rmtree(dir)
