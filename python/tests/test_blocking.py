"""A task that waits in several threads gives its CPU back once, and gets it again once."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any, Callable

from mobula._wire import codec
from mobula._wire import messages as m
from mobula._worker.blocking import Blocking
from mobula._worker.lane import Lane

TASK = bytes(20)


class Node:
    """What Blocking talks to: it notes what is sent, and while a thread waits for the CPU what the test says happens."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.meanwhile: list[Callable[[], None]] = []
        work = SimpleNamespace(id=TASK, lease=1, kind=m.TASK)
        self.call: Any = SimpleNamespace(work=work, waiting=0)
        client = SimpleNamespace(lock=threading.RLock(), send=self.send, flush=lambda: None, reader=SimpleNamespace(wait=self.wait))
        self.lane = Lane()
        self.lane.push([work])  # type: ignore[list-item]
        self.lane.begin(0)
        self.blocking = Blocking(SimpleNamespace(client=client, lane=self.lane, calls={TASK: self.call}, send_back=self.send_back))  # type: ignore[arg-type]

    def send_back(self, back: Any, waits: Any) -> None:
        self.sent.append("Blocked")

    def send(self, chunk: bytes) -> None:
        assert chunk.startswith(codec.varint(m.KIND_OF[m.Unblocked] << 3 | 2))
        self.sent.append("Unblocked")

    def wait(self, w: Any, until: Any, call: Any) -> bool:
        self.meanwhile.pop(0)()
        assert w.left <= 0, "a thread waits for a CPU that nobody will tell it of"
        return True

    def resume(self) -> None:
        self.blocking.resumed(TASK)


def test_two_threads_go_on_with_one_cpu() -> None:
    node = Node()
    b, call = node.blocking, node.call

    def another_waits_and_goes_on() -> None:
        b.block(call)
        b.unblock(call)

    node.meanwhile = [another_waits_and_goes_on, node.resume]
    b.block(call)
    b.unblock(call)
    assert node.sent == ["Blocked", "Unblocked"] and not node.lane.blocked


def test_a_thread_that_waits_when_the_cpu_comes_gives_it_back() -> None:
    node = Node()
    b, call = node.blocking, node.call

    def another_waits() -> None:
        b.block(call)
        node.resume()

    node.meanwhile = [another_waits, node.resume]
    b.block(call)
    b.unblock(call)
    assert node.sent == ["Blocked", "Unblocked", "Blocked"] and node.lane.blocked
    b.unblock(call)
    assert node.sent == ["Blocked", "Unblocked", "Blocked", "Unblocked"] and not node.lane.blocked
