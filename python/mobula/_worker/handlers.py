"""Handles the node's messages to a worker, in the thread that reads. The client's lock is held, except while tasks are decoded."""

from __future__ import annotations

from typing import Optional

from .._wire import codec, hot
from .._wire import messages as m
from .._wire.hot import Work
from ..exceptions import ActorDiedError, ActorUnavailableError, DeadlineError, MobulaError, TaskCancelledError
from .actor import Actor
from .executor import Executor

_K = m.KIND_OF
_CANCELS_KEPT = 1000


class Handlers:
    """The message handlers that a worker adds to its client (_client.interfaces.Worker)."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._client = executor.client
        self.handlers = {_K[m.CancelTask]: self._cancel, _K[m.StopActor]: self._stop, _K[m.Drain]: self._drain,
                       _K[m.Resume]: self._resume, _K[m.StreamAck]: self._ack}
        self._client.worker = self

    def tasks(self, b: bytes, i: int, j: int) -> None:
        """Handles an Exec: tasks and calls."""
        e = self._executor
        works = hot.exec_tasks(b, i, j, self._client.now())
        with self._client.lock:
            e.pending += len(works)
            if e.cancels:  # a cancel that came before was for an earlier attempt
                e.cancels.difference_update(w.id for w in works)
            for w in works:
                if w.kind == m.ACTOR_CALL:
                    self._dispatch(w)
                elif w.kind == m.ACTOR_CREATE:
                    e.actor = Actor(e, w)
            if back := e.lane.push(works):
                e.send_back(back)
            if e.lane.running is not None and self._client.reader.quiet:
                self._client.reader.arm()  # the keeper's ticks notice if the running task takes long
            e.idle.done()

    def _dispatch(self, w: Work) -> None:
        a = self._executor.actor
        if a is None or a.id != w.actor:
            self._executor.refuse(w, ActorUnavailableError(f"actor {w.actor.hex()} is not in this worker any more"))
        else:
            a.dispatch(w)

    def _cancel(self, b: bytes, i: int, j: int) -> None:
        c: m.CancelTask = codec.decode(m.CancelTask, b, i, j)
        e = self._executor
        why: MobulaError = TaskCancelledError("", task=c.task.hex())
        queued = self._take(c.task)
        if queued is not None:
            e.refuse(queued, why)
            return
        call = e.calls.get(c.task)
        if call is None:  # the task is about to start, or has ended
            if len(e.cancels) > _CANCELS_KEPT:
                e.cancels.clear()
            e.cancels.add(c.task)
            return
        if call.work.deadline and self._client.now() >= call.work.deadline:
            why = DeadlineError("the task's deadline passed while it ran", task=c.task.hex())
        call.error = why
        if c.abandon and not call.abandoned:
            e.abandon(call, why)
        e.interrupts.interrupt(call)

    def _take(self, task: bytes) -> Optional[Work]:
        """Removes a task from its queue and returns it; None if it is in none."""
        e = self._executor
        queues = [e.lane.queue]
        if e.actor is not None:
            queues += e.actor.queues()
        for q in queues:
            for w in list(q):
                if w.id == task:
                    q.remove(w)
                    return w
        return None

    def _stop(self, b: bytes, i: int, j: int) -> None:
        """Handles a StopActor: a kill, or a graceful stop that ends with the close hook."""
        s: m.StopActor = codec.decode(m.StopActor, b, i, j)
        e = self._executor
        a = e.actor
        if a is None or a.id != s.actor:
            if s.close:  # it is closed already
                self._client.send(codec.message(m.ActorStopped(s.actor)))
            return
        if s.close and (e.closing or a.alive()):
            a.stopped = True  # later calls are refused
            if not s.drain:
                self._end_calls(a, ActorDiedError(f"actor {s.actor.hex()} was stopped"))
            e.closing = True
            e.idle.done()
            return
        why: MobulaError = ActorDiedError(f"actor {s.actor.hex()} was stopped")
        if s.restarts:
            why = ActorUnavailableError(f"actor {s.actor.hex()} was stopped, to restart")
        e.closing = False
        a.instance_closed = True  # a kill: the close hook does not run
        self._end_calls(a, why)
        a.let_go()
        if s.close:
            self._client.send(codec.message(m.ActorStopped(s.actor)))

    def _end_calls(self, a: Actor, why: MobulaError) -> None:
        """Refuses an actor's waiting calls and interrupts the running ones."""
        e = self._executor
        a.fail(why)
        for call in list(e.calls.values()):
            if call.work.kind == m.ACTOR_CALL:
                call.error = why
                e.interrupts.interrupt(call)

    def _drain(self, b: bytes, i: int, j: int) -> None:
        self._executor.drain = True
        self._executor.idle.done()

    def _resume(self, b: bytes, i: int, j: int) -> None:
        r: m.Resume = codec.decode(m.Resume, b, i, j)
        self._executor.blocking.resumed(r.task)

    def _ack(self, b: bytes, i: int, j: int) -> None:
        self._executor.streaming.acked(codec.decode(m.StreamAck, b, i, j))

    def declare(self, h: m.Holdings) -> None:
        """Adds this worker's tasks and actor to the Holdings for a restarted node."""
        e = self._executor
        a = e.actor
        for c in list(e.calls.values()):
            blocked, asks = e.blocking.told(c)
            h.tasks.append(m.Attempt(c.work.id, c.work.attempt, c.work.lease, blocked, asks))
        works = list(e.lane.queue)
        if a is not None:
            works += a.waiting()
            if a.alive() or e.closing:
                h.actors.append(a.id)
        h.tasks += [m.Attempt(w.id, w.attempt, w.lease) for w in works]

    def tick(self) -> None:
        self._executor.tick()
