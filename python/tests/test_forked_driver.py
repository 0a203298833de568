"""A driver is killed while a child that it has forked lives on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import Any, Iterator

import pytest
from cluster import objects
from waiting import until

import mobula

# The driver says its child's process and its own node's address, and stays. Forked by C code, the child closes nothing.
DRIVER = """
import ctypes, os, signal, sys, time
import mobula
how, address = sys.argv[1:]
c = mobula.init(address) if address else mobula.init(num_cpus=1)
ref = mobula.put(bytes(1000))
child = os.fork() if how == "python" else ctypes.PyDLL(None).fork()
if child == 0:
    time.sleep(600)
    os._exit(0)
print(child, c.address, flush=True)
time.sleep(600)
"""


class Driver:
    def __init__(self, how: str, address: str = "") -> None:
        args = [sys.executable, "-c", DRIVER, how, address]
        self.process = subprocess.Popen(args, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=dict(os.environ))
        assert self.process.stdout is not None
        said = self.process.stdout.readline().split()
        self.child, self.address = int(said[0]), said[1]

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def sockets(self) -> int:
        """How many sockets and pipes the child has open."""
        fds = f"/proc/{self.child}/fd"
        known = [os.readlink(f"{fds}/{fd}") for fd in os.listdir(fds) if int(fd) > 2]
        return sum(what.startswith(("socket:", "pipe:", "anon_inode:[eventfd]")) for what in known)

    def close(self) -> None:
        self.kill()
        os.kill(self.child, signal.SIGKILL)
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.fixture(params=["python", "C"])
def how(request: Any) -> Iterator[str]:
    yield request.param


def test_its_job_ends(kept: Any, how: str) -> None:
    mobula.init(kept.address)
    d = Driver(how, kept.address)
    try:
        until(lambda: len(objects()) == 1)
        d.kill()
        until(lambda: not objects())
        os.kill(d.child, 0)  # which is still there
    finally:
        d.close()


def test_its_own_node_ends(binary: str, how: str) -> None:
    d = Driver(how)
    try:
        d.kill()
        until(lambda: not os.path.exists(d.address))
        os.kill(d.child, 0)
    finally:
        d.close()


@pytest.mark.parametrize("own", [True, False])
def test_a_child_has_nothing_of_the_connection(kept: Any, own: bool) -> None:
    d = Driver("python", "" if own else kept.address)
    try:
        until(lambda: d.sockets() == 0)
    finally:
        d.close()
