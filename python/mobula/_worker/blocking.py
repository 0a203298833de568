"""A task that waits gives its CPU, and what is queued behind it, back to the node."""

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
        self._resuming: dict[bytes, tuple[Call, list[Waiter]]] = {}  # who asked for the CPU: the call, and its threads that go on then

    def block(self, call: Call) -> None:
        """The task begins to wait."""
        with self._client.lock:
            call.waiting += 1
            if call.waiting > 1 or call.work.id in self._resuming or self._is_over(call):
                return  # another thread of it waits already, or for the CPU; or it has left this one behind
            self._release(call)
        self._client.flush()

    def needs(self, call: Call, ids: list[bytes]) -> None:
        """An actor's call waits for all of these objects, and nothing but their coming ends that: the node looks for a circle."""
        if not call.actor:
            return
        with self._client.lock:
            if call.waiting > 1 or call.work.id in self._resuming or self._is_over(call):
                return  # what another thread of it does may end the wait
            self._client.send(codec.message(m.Blocked(call.work.id, call.work.lease, [], ids)))
        self._client.flush()

    def _release(self, call: Call) -> None:
        """Gives the CPU back. The client's lock is held."""
        self._executor.send_back(self._lane.block(call.work), call.work)

    def unblock(self, call: Call) -> None:
        """It goes on as soon as the node has a CPU for it."""
        w = Waiter(1)
        with self._client.lock:
            call.waiting -= 1
            if call.waiting > 0 or self._is_over(call):
                return
            asked = self._resuming.get(call.work.id)
            if asked is not None:
                asked[1].append(w)  # another thread of it has asked
            else:
                self._resuming[call.work.id] = call, [w]
                self._client.send(codec.message(m.Unblocked(call.work.id, call.work.lease)))
        try:
            self._client.flush()
            self._client.reader.wait(w, None, call)
        except TaskInterrupt:
            pass  # it is cancelled: who waited sees that too
        finally:
            if w.left > 0:
                with self._client.lock:
                    if call.waiting == 0:
                        self._lane.go_on(call.work)

    def ended(self, call: Call) -> None:
        """The call is over and no longer listed; a thread that it left behind may wait still, and holds nothing up."""
        if self._resuming:
            with self._client.lock:
                self.resumed(call.work.id)

    def _is_over(self, call: Call) -> bool:
        return self._executor.calls.get(call.work.id) is not call

    def resumed(self, task: bytes) -> None:
        """The node has a CPU. The client's lock is held."""
        asked = self._resuming.pop(task, None)
        if asked is None:
            return
        call, waiters = asked
        self._lane.go_on(call.work)
        for w in waiters:
            w.done()
        if call.waiting > 0 and not self._is_over(call):
            self._release(call)  # another thread of it has begun to wait meanwhile
