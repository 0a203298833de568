"""The main thread's tasks: the one that runs and those that wait behind it, and which of them go back to the node.

It sends nothing, knows no clock and takes no lock: whoever calls holds the client's. A worker's leases follow one another, and the
next one's first tasks may come before the worker has said that it is done with the last: so what goes back is told by the lease
that it came on, never by the one of the task that runs.
"""

from __future__ import annotations

from collections import deque
from typing import Iterable, Optional

from .._wire import messages as m
from .._wire.hot import Work

Back = dict[int, list[bytes]]  # tasks that go back, by the lease that they came on

LONG = 10_000_000  # nanoseconds; tasks are pushed ahead for a millisecond's work


class Lane:
    def __init__(self) -> None:
        self.queue: deque[Work] = deque()
        self.running: Optional[Work] = None
        self.blocked = False  # what runs waits, and has given its CPU back
        self._began = 0

    def push(self, works: Iterable[Work]) -> Back:
        """Queues the tasks among works; an actor's calls are queued where they run. What was on its way when the CPU was given back goes back
        too: it may be what is waited for."""
        back: Back = {}
        for w in works:
            if w.kind == m.ACTOR_CALL:
                continue
            if self.blocked and w.kind == m.TASK:
                back.setdefault(w.lease, []).append(w.id)
            else:
                self.queue.append(w)
        return back

    def begin(self, now: int) -> Optional[Work]:
        """The next task, which runs from now on."""
        if not self.queue:
            return None
        self.running, self.blocked, self._began = self.queue.popleft(), False, now
        return self.running

    def end(self, work: Work) -> None:
        """A task no longer runs. One that never ran here, but in a thread of its own, is none of the lane's."""
        if self.running is work:
            self.running, self.blocked = None, False

    def block(self, work: Work) -> Back:
        """What runs begins to wait: what is behind it may be what it waits for."""
        if self.running is not work:
            return {}
        self.blocked = True
        return self._give_back() if work.kind == m.TASK else {}

    def go_on(self, work: Work) -> None:
        """What runs has its CPU again."""
        if self.running is work:
            self.blocked = False

    def late(self, now: int) -> Back:
        """Of a task that takes long, what is queued behind it: it may run elsewhere meanwhile."""
        w = self.running
        if w is None or not self.queue or w.kind != m.TASK or now - self._began < LONG:
            return {}
        return self._give_back()

    def _give_back(self) -> Back:
        back: Back = {}
        for w in self.queue:
            if w.kind == m.TASK:
                back.setdefault(w.lease, []).append(w.id)
        if back:
            stay = [w for w in self.queue if w.kind != m.TASK]
            self.queue.clear()
            self.queue.extend(stay)
        return back
