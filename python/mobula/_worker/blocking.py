"""Gives the CPU of a waiting task, and the tasks queued behind it, back to the node."""

from __future__ import annotations

from .._client import Waiter
from .._wire import codec
from .._wire import messages as m
from .call import Call, TaskInterrupt
from .interfaces import Runs


class Blocking:
    def __init__(self, executor: Runs) -> None:
        self._executor = executor
        self._client = executor.client
        self._lane = executor.lane
        self._resuming: dict[bytes, tuple[Call, list[Waiter]]] = {}  # by task: the call that has asked for a CPU, and its threads that wait for it

    def block(self, call: Call) -> None:
        """A thread of the call begins to wait."""
        with self._client.lock:
            call.waiting += 1
            if call.waiting > 1 or call.work.id in self._resuming or self._is_over(call):
                return  # another thread of the call waits already, or waits for the CPU; or the call has ended without this thread
            self._release(call)
        self._client.flush()

    def needs(self, call: Call, ids: list[bytes]) -> None:
        """Reports that an actor's call waits for all of these objects, without a timeout. The node looks for a deadlock."""
        if not call.actor:
            return
        with self._client.lock:
            if call.waiting > 1 or call.work.id in self._resuming or self._is_over(call):
                return  # another thread of the call may end the wait
            self._client.send(codec.message(m.Blocked(call.work.id, call.work.lease, [], ids)))
        self._client.flush()

    def _release(self, call: Call) -> None:
        """Gives the CPU back. The client's lock is held."""
        self._executor.send_back(self._lane.block(call.work), call.work)

    def unblock(self, call: Call) -> None:
        """A thread of the call stops waiting. If it is the last, it waits until the node has a CPU for the call."""
        w = Waiter(1)
        with self._client.lock:
            call.waiting -= 1
            if call.waiting > 0 or self._is_over(call):
                return
            asked = self._resuming.get(call.work.id)
            if asked is not None:
                asked[1].append(w)  # another thread of the call has asked already
            else:
                self._resuming[call.work.id] = call, [w]
                self._client.send(codec.message(m.Unblocked(call.work.id, call.work.lease)))
        try:
            self._client.flush()
            self._client.reader.wait(w, None, call)
        except TaskInterrupt:
            pass  # cancelled: the caller's own check raises
        finally:
            if w.left > 0:
                with self._client.lock:
                    if call.waiting == 0:
                        self._lane.go_on(call.work)

    def ended(self, call: Call) -> None:
        """The call has ended. A thread that it has started may still wait; its requests for a CPU are dropped."""
        if self._resuming:
            with self._client.lock:
                self.resumed(call.work.id)

    def told(self, call: Call) -> tuple[bool, bool]:
        """Whether the node was told that the call has given its CPU back, and whether it was asked for it again. The client's lock is held."""
        asks = call.work.id in self._resuming
        return asks or call.waiting > 0, asks

    def _is_over(self, call: Call) -> bool:
        return self._executor.calls.get(call.work.id) is not call

    def resumed(self, task: bytes) -> None:
        """The node has a CPU for the task again. The client's lock is held."""
        asked = self._resuming.pop(task, None)
        if asked is None:
            return
        call, waiters = asked
        self._lane.go_on(call.work)
        for w in waiters:
            w.done()
        if call.waiting > 0 and not self._is_over(call):
            self._release(call)  # another thread of the call has begun to wait meanwhile
