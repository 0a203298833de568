"""What the node says to a worker, in orders that cross what the worker says."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any, cast

import pytest

from mobula import exceptions as x
from mobula._wire import codec
from mobula._wire import messages as m
from mobula._worker.call import Call
from mobula._worker.executor import Executor
from mobula._worker.orders import Orders

TASK = bytes(range(16))


class Worker:
    """A worker's executor that the test speaks to instead of a node."""

    def __init__(self) -> None:
        self.client: Any = SimpleNamespace(lock=threading.RLock(), send=lambda chunk: None, reader=SimpleNamespace(quiet=False),
                                           welcome=SimpleNamespace(job_dir=""))
        self.executor = Executor(cast(Any, self.client))
        self.executor._functions["f"] = len
        Orders(self.executor)

    def hear(self, message: Any) -> None:
        body = codec.encode(message)
        self.client.extra[m.KIND_OF[type(message)]](body, 0, len(body))

    def begin(self) -> None:
        """Begins the next task, up to its function's call."""
        self.executor.begin(Call(self.executor, self.executor.queue.popleft()), [])


def run(attempt: int) -> m.Exec:
    spec = m.TaskSpec(id=TASK, parent=bytes(16), opts=m.TaskOptions(func="f", num_returns=1))
    return m.Exec(1, [m.ExecTask(spec, attempt)])


def test_a_task_that_is_about_to_start_is_cancelled() -> None:
    w = Worker()
    w.hear(run(1))
    work = w.executor.queue.popleft()  # by the main thread, a moment before
    w.hear(m.CancelTask(TASK))
    w.executor.queue.append(work)
    with pytest.raises(x.TaskCancelledError):
        w.begin()


def test_a_cancel_that_came_too_late_is_none_of_the_next_run() -> None:
    w = Worker()
    w.hear(m.CancelTask(TASK))  # it has just ended
    w.hear(run(2))
    w.begin()


def test_a_node_that_asks_while_a_task_ends_is_told_of_it() -> None:
    w = Worker()
    w.hear(run(1))
    call = Call(w.executor, w.executor.queue.popleft())
    w.executor.calls[TASK] = call
    held = m.Holdings(m.OWNER, 1)

    def asks(report: bytes) -> None:
        """It asks just before the report is queued."""
        w.client.holdings(held)

    w.client.out = SimpleNamespace(append=asks)
    w.executor.report(call, b"", None, [])
    assert [t.task for t in held.tasks] == [TASK] and not w.executor.calls
