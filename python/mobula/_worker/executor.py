"""The executor: begins tasks and calls, runs them and reports them."""

from __future__ import annotations

import sys
import threading
from typing import Any, Callable, Optional

from .. import _functions, _resolve, _runtime, _stored, _trace
from .._client import Client, Waiter
from .._client.spin import Spin
from .._wire import codec, hot
from .._wire import messages as m
from .._wire.hot import Work
from ..exceptions import ActorDiedError, DeadlineError, MobulaError, TaskCancelledError
from . import forked, results
from .actor import Actor
from .arguments import Holds, arguments, function_of, keep
from .blocking import Blocking
from .call import Call
from .close_hook import close
from .garbage import IdleGarbage
from .interrupt import Interrupts
from .lane import Back, Lane
from .memory import MemoryGrowth, resident
from .streaming import Streaming
from .user_code import run

_current = _runtime.current
_STATS_EVERY = 1_000_000_000  # nanoseconds


class Executor:
    def __init__(self, client: Client) -> None:
        self.client = client
        self.lane = Lane()
        self.calls: dict[bytes, Call] = {}  # running; the client's lock guards it, like lane and pending
        self.main: Optional[Call] = None  # the call that runs in the main thread
        self._like: Optional[m.TaskOptions] = None  # options of the main thread's last task: one object for all tasks of a class
        self.actor: Optional[Actor] = None
        self.cancels: set[bytes] = set()  # cancelled tasks that are neither queued nor running
        self.pending = 0  # tasks and calls that are not reported yet
        self.drain = False  # the worker ends when none is pending
        self.closing = False  # the actor is closed when none is pending
        self.idle = Waiter(1)
        self.blocking = Blocking(self)
        self.streaming = Streaming(client, self.blocking)
        self.interrupts = Interrupts(self)
        self._functions: dict[str, Callable[..., Any]] = {}
        self._stats = 0  # time of the last Stats
        self._between = 0  # time of the last Stats between two tasks, which say whether the worker has leaked memory
        self._said = 0  # number of running calls in the last Stats
        self._memory = MemoryGrowth()
        self._garbage = IdleGarbage()

    def run(self) -> None:
        """Runs tasks until the node drains the worker."""
        queue, client, idle = self.lane.queue, self.client, self.idle
        lull, row = Spin(), 0
        while True:
            call = self._next() if queue else None
            if call is None:
                idle.left = 1
                if queue:
                    continue
                if self.closing and self.pending == 0:
                    self._close_actor()
                    continue
                if self.drain and self.pending == 0:
                    client.flush()
                    return
                if row > 1:  # tasks come in batches: no caller waits for one answer before it sends the next
                    lull.missed()
                row = 0
                now = client.now()
                if self._memory.due(now):
                    client.flush()
                    self._memory.idle(now)
                client.wait(idle, None, None, lull)
                continue
            row += 1
            if queue and client.reader.quiet:
                client.reader.arm()  # the keeper's ticks notice if it takes long
            self.execute(call, True)

    def _next(self) -> Optional[Call]:
        """Begins the lane's next task."""
        client = self.client
        now = client.now()
        with client.lock:
            work = self.lane.begin(now)
            if work is None:
                return None
            call = self.begun(work)
        call.started = now
        return call

    def begun(self, work: Work) -> Call:
        """Lists a task as running. It is called with the client's lock held, in the step that takes the task from its queue, so that the
        task is always in one of the two."""
        call = self.calls[work.id] = Call(self, work)
        return call

    def execute(self, call: Call, main: bool = False) -> None:
        """Runs one task and queues its report."""
        client, work = self.client, call.work
        if main:
            if work.options is not self._like:  # it may hold the GIL for long: send the reports first, or their tasks would count as running
                self._like = work.options
                client.flush()
            self.main = client.fallback = call
        token = _current.set(call)
        inside = _trace.enter(call)
        holds: Holds = []
        done, err = b"", None
        try:
            done = self._perform(call, holds)
        except BaseException as x:
            call.in_user = False
            err = results.failure(call, x)
            if work.kind == m.ACTOR_CREATE:
                self._not_created(work, err)
            del x
        call.in_user = False
        if inside is not None:
            _trace.opentelemetry.leave(inside)
        now = self.report(call, done, err, holds)
        self.blocking.ended(call)
        if main:
            self.main = None
            client.fallback = client.root
        _current.reset(token)
        if now - self._between > _STATS_EVERY:
            self._between = now
            del done, holds
            client.out.append(self._report_stats(main and work.kind == m.TASK and not self.calls and self._memory.leaked()))
        client.maybe_flush()
        if self.ends():
            self.idle.done()

    def ends(self) -> bool:
        """Whether the main thread waits for the end of the last call."""
        return self.drain or self.closing

    def _close_actor(self) -> None:
        """Closes the actor, whose calls have all ended."""
        self.closing = False
        a = self.actor
        assert a is not None
        err = close(a)
        self.actor = None
        self.client.send(codec.message(m.ActorStopped(a.id, err)))
        a.let_go()

    def leave(self) -> None:
        """Closes the actor after the node's goodbye, unless one of its calls still runs."""
        a = self.actor
        if a is not None and a.instance is not None and not self.calls:
            close(a)

    def _report_stats(self, worn: bool = False) -> bytes:
        self._stats = self.client.now()
        self._said = len(self.calls)
        return codec.message(m.Stats(resident(), threading.active_count(), self._said, worn))

    def tick(self) -> None:
        """Gives the tasks behind a long-running task back to the node, since they may run elsewhere. Sends Stats each second while calls
        run, and once more after that."""
        if (self.calls or self._said) and self.client.now() - self._stats > _STATS_EVERY:
            self.client.send(self._report_stats())
        _stored.kept.look(self.client)
        self._garbage.look(bool(self.calls), self.client.objects.handles, self.client.objects.pins)
        if self.lane.queue:
            with self.client.lock:
                self.send_back(self.lane.late(self.client.now()))

    def send_back(self, back: Back, waits: Optional[Work] = None) -> None:
        """Gives tasks back to the node, and the CPU of the task that waits. The client's lock is held."""
        if waits is not None:
            back.setdefault(waits.lease, [])
        for lease, tasks in back.items():
            self.pending -= len(tasks)
            task = waits.id if waits is not None and waits.lease == lease else b""
            self.client.send(codec.message(m.Blocked(task, lease, tasks)))

    def _perform(self, call: Call, holds: Holds) -> bytes:
        """Runs the user's function and returns the encoded results."""
        f, args, kwargs = self.begin(call, holds)
        value = run(call, f, args, kwargs)
        del args, kwargs
        work = call.work
        if work.kind == m.ACTOR_CREATE:
            a = self.actor
            if a is None or a.id != work.id:
                raise ActorDiedError(f"actor {work.id.hex()} was stopped while it was created")
            a.made(value, work.options)
            return results.NONE
        n = work.options.num_returns
        if n < 0:
            self.streaming.produce(call, value)
            return b""
        return results.results(call, value, n)

    def begin(self, call: Call, holds: Holds) -> tuple[Any, list[Any], dict[str, Any]]:
        """The function and the arguments of a task. Raises if it was cancelled or its deadline has passed."""
        work = call.work
        if self.cancels and work.id in self.cancels:
            self.cancels.discard(work.id)
            call.error = TaskCancelledError("", task=work.id.hex())
        if call.error is not None:
            raise call.error.again()
        if work.deadline and call.started >= work.deadline:
            raise DeadlineError("the task's deadline passed before it started")
        f = self._function(work, holds)
        args, kwargs = arguments(self.client, work, holds)
        return f, args, kwargs

    def _function(self, work: Work, holds: Holds) -> Callable[..., Any]:
        func = work.options.func
        if work.kind == m.ACTOR_CALL:
            assert self.actor is not None
            return self.actor.method(func)
        f = self._functions.get(func)
        if f is None:
            if func.endswith(_functions.STORED):
                f = function_of(self.client, work, holds)
                return f  # type: ignore[no-any-return]
            name, sha = _functions.split_name(func)
            f = self._functions[func] = _functions.load(self.client, sha) if sha else _resolve.resolve_name(name)
        return f

    def _not_created(self, work: Work, err: m.Error) -> None:
        a = self.actor
        if a is not None and a.id == work.id:
            with self.client.lock:
                a.fail(ActorDiedError(f"actor {work.id.hex()} could not be created", causes=(codec.from_wire(err),)))

    # ---- reports

    def report(self, call: Call, done: bytes, err: Optional[m.Error], holds: Holds) -> int:
        """Queues the report of a call that has ended, and returns the time of its end. done: the encoded results."""
        forked.end()
        client, work = self.client, call.work
        if holds:
            keep(client, holds)
        if client.spans.waiting:
            client.spans.push()  # before the report: once the node has that, it may end this process
        message, now = b"", client.now()
        if not call.abandoned:
            error = codec.encode(err) if err is not None else b""
            if err is not None and work.kind == m.ACTOR_CALL and work.options.num_returns == 0:
                print(f"mobula: a call that nobody waits for failed: {err.msg}", file=sys.stderr, flush=True)
            message = hot.done(work.id, work.attempt, work.lease, done, work.received, call.started or now, now, call.items, error, call.final)
        with client.lock:
            self.lane.end(work)  # before the report: once that is sent, the node may use the worker for another lease
            if call.abandoned:
                self._send_refusal(work, call.started, call.abandoned)
            else:
                client.out.append(message)
            self.calls.pop(work.id, None)  # under the lock: a restarted node gets either the report or the task in the Holdings
            self.pending -= 1
        call.keep = None
        if call.held:
            call.held = ()
        return now

    def abandon(self, call: Call, why: MobulaError) -> None:
        """Reports a call that still runs as failed. It counts as pending until it ends, which is reported too."""
        call.abandoned = why
        self._send_refusal(call.work, call.started, why, still_runs=True)

    def refuse(self, w: Work, why: MobulaError) -> None:
        """Reports a task that will not run as failed. The client's lock is held."""
        self._send_refusal(w, 0, why)
        self.pending -= 1
        self.idle.done()

    def _send_refusal(self, w: Work, started: int, why: MobulaError, still_runs: bool = False) -> None:
        error = codec.encode(codec.to_wire(why))
        self.client.send(hot.done(w.id, w.attempt, w.lease, b"", w.received, started, self.client.now(), err=error, still_runs=still_runs))
