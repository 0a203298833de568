"""The main thread's running task and queue, and which tasks go back to the node.

It sends nothing, reads no clock and takes no lock: the caller holds the client's. One lease follows another, and the first tasks of
the next lease may come before the worker has reported the last task of the one before. So tasks go back under the lease that they
came on, and not under that of the running task.
"""

from __future__ import annotations

from collections import deque
from typing import Iterable, Optional

from .._wire import messages as m
from .._wire.hot import Work

Back = dict[int, list[bytes]]  # ids of tasks that go back, by the lease that they came on

LONG = 10_000_000  # nanoseconds after which a task is long-running; the node pushes about a millisecond of work ahead


class Lane:
    def __init__(self) -> None:
        self.queue: deque[Work] = deque()
        self.running: Optional[Work] = None
        self.blocked = False  # the running task waits and has given its CPU back
        self._began = 0

    def push(self, works: Iterable[Work]) -> Back:
        """Queues the tasks among works, but not actors' calls, which are queued where they run. While the running task waits, new tasks go
        back: it may wait for one of them."""
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
        """Takes the next task from the queue, as the running one."""
        if not self.queue:
            return None
        self.running, self.blocked, self._began = self.queue.popleft(), False, now
        return self.running

    def end(self, work: Work) -> None:
        """The task has ended. A call that ran in another thread is ignored."""
        if self.running is work:
            self.running, self.blocked = None, False

    def block(self, work: Work) -> Back:
        """The running task begins to wait. The tasks behind it go back: it may wait for one of them."""
        if self.running is not work:
            return {}
        self.blocked = True
        return self._give_back() if work.kind == m.TASK else {}

    def go_on(self, work: Work) -> None:
        """The running task has its CPU again."""
        if self.running is work:
            self.blocked = False

    def late(self, now: int) -> Back:
        """The tasks behind a long-running task, which go back: they may run elsewhere."""
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
