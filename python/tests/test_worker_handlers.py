"""The node's messages to a worker, when they cross the worker's own messages."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace
from typing import Any, cast

import pytest

from mobula import exceptions as x
from mobula._client import Client
from mobula._wire import codec, hot
from mobula._wire import messages as m
from mobula._worker.call import Call
from mobula._worker.executor import Executor
from mobula._worker.handlers import Handlers
from mobula._worker.lane import LONG

TASK = bytes(range(20))


class Worker:
    """A worker's executor that the test speaks to instead of a node."""

    def __init__(self) -> None:
        self.client: Any = SimpleNamespace(now=time.monotonic_ns, lock=threading.RLock(), send=lambda chunk: None, reader=SimpleNamespace(quiet=False, wake=lambda: None),
                                           welcome=SimpleNamespace(job_dir=""), root=SimpleNamespace(task=TASK), spans=SimpleNamespace(waiting=False),
                                           objects=SimpleNamespace(handles={}, pins={}))
        self.executor = Executor(cast(Any, self.client))
        self.executor._functions["f"] = len
        Handlers(self.executor)

    def hear(self, message: Any) -> None:
        body = codec.encode(message)
        if isinstance(message, m.Exec):
            self.client.worker.tasks(body, 0, len(body))
        else:
            self.client.worker.handlers[m.KIND_OF[type(message)]](body, 0, len(body))

    def sent(self, kind: type[Any]) -> list[Any]:
        """The messages of a kind that the worker sends from now on."""
        out: list[Any] = []
        self.client.send = lambda chunk: out.extend(codec.decode(kind, chunk, i, j) for k, i, j in codec.split(chunk, 0, len(chunk)) if k == m.KIND_OF[kind])
        return out

    def begin(self) -> None:
        """Begins the next task, up to its function's call."""
        self.executor.begin(Call(self.executor, self.executor.lane.queue.popleft()), [])


def run(attempt: int) -> m.Exec:
    spec = m.TaskSpec(id=TASK, parent=bytes(20), opts=m.TaskOptions(func="f", num_returns=1))
    return m.Exec(1, [m.ExecTask(spec, attempt)])


def test_a_task_that_is_about_to_start_is_cancelled() -> None:
    w = Worker()
    w.hear(run(1))
    call = w.executor._next()  # by the main thread, a moment before
    assert call is not None
    w.hear(m.CancelTask(TASK))
    with pytest.raises(x.TaskCancelledError):
        w.executor.begin(call, [])


def test_a_cancel_that_came_too_late_is_none_of_the_next_run() -> None:
    w = Worker()
    w.hear(m.CancelTask(TASK))  # it has just ended
    w.hear(run(2))
    w.begin()


def test_a_node_that_asks_while_a_task_ends_is_told_of_it() -> None:
    w = Worker()
    w.hear(run(1))
    call = w.executor._next()
    assert call is not None
    held = m.Holdings(m.OWNER, 1)

    def asks(report: bytes) -> None:
        """It asks just before the report is queued."""
        w.client.worker.declare(held)

    w.client.out = SimpleNamespace(append=asks)
    w.executor.report(call, b"", None, [])
    assert [t.task for t in held.tasks] == [TASK] and not w.executor.calls


def test_what_goes_back_is_told_by_the_lease_that_it_came_on() -> None:
    """The report of a lease's last task is on its way, and the node has the worker on the next lease already."""
    w = Worker()
    sent = w.sent(m.Blocked)
    w.hear(run(1))
    call = w.executor._next()
    assert call is not None
    spec = m.TaskSpec(id=bytes(20), parent=bytes(20), opts=m.TaskOptions(func="f", num_returns=1))
    w.hear(m.Exec(2, [m.ExecTask(spec, 1)]))
    w.executor.lane._began -= LONG
    w.executor.tick()
    assert [(b.task, b.lease, b.returned) for b in sent] == [(b"", 2, [bytes(20)])]


def test_what_comes_after_a_report_does_not_go_back_as_behind_the_task_that_has_ended() -> None:
    w = Worker()
    w.hear(run(1))
    call = w.executor._next()
    assert call is not None
    w.executor.lane._began -= LONG
    spec = m.TaskSpec(id=bytes(20), parent=bytes(20), opts=m.TaskOptions(func="f", num_returns=1))

    def next_lease(report: bytes) -> None:
        """The report is sent, the next lease's task comes and the keeper looks, while the main thread does nothing."""
        w.hear(m.Exec(2, [m.ExecTask(spec, 1)]))
        w.executor._stats = w.client.now()  # which are not due
        w.client.send = lambda chunk: pytest.fail("it goes back")
        w.executor.tick()

    w.client.out = SimpleNamespace(append=next_lease)
    w.executor.report(call, b"", None, [])
    assert [q.lease for q in w.executor.lane.queue] == [2]


def test_tasks_are_decoded_without_the_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads that report a call need it, and many tasks come at once."""
    w, owned = Worker(), []
    decode = hot.exec_tasks
    monkeypatch.setattr(hot, "exec_tasks", lambda *a: owned.append(w.client.lock._is_owned()) or decode(*a))
    c = Client.__new__(Client)
    c.lock, c.worker = w.client.lock, w.client.worker
    body = codec.encode(run(0))
    c.handle(m.KIND_OF[m.Exec], body, 0, len(body), None)
    assert owned == [False] and [x.id for x in w.executor.lane.queue] == [TASK]


def test_an_abandoned_task_is_reported_again_when_it_returns() -> None:
    """Until then it may read its arguments."""
    w = Worker()
    sent = w.sent(m.Done)
    w.hear(run(1))
    call = w.executor._next()
    assert call is not None
    w.executor.interrupts = cast(Any, SimpleNamespace(interrupt=lambda call: None))
    w.hear(m.CancelTask(TASK, abandon=True))
    held = m.Holdings(m.OWNER, 1)
    w.client.worker.declare(held)
    assert [d.still_runs for d in sent] == [True] and [t.task for t in held.tasks] == [TASK]
    w.executor.report(call, b"", None, [])
    assert [(d.task, d.attempt, d.lease, d.still_runs) for d in sent] == [(TASK, 1, 1, True), (TASK, 1, 1, False)] and not w.executor.calls
    assert all(d.err and d.err.code == 15 for d in sent)
