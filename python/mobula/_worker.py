"""A worker process: one lane, which runs what the node pushes, one task after the other, in the main thread.

The main thread reads the connection itself while it has nothing to run. While it runs a task, the client's keeper reads. An actor with
concurrency runs its calls in threads, one with coroutines in an event loop; the main thread then only reads.

Reports go in batches: when the queue is empty, and at the latest with the keeper's next tick.
"""

from __future__ import annotations

import asyncio
import binascii
import inspect
import os
import signal
import sys
import threading
import time
import traceback
from collections import deque
from types import FrameType
from typing import Any, Callable, Mapping, Optional

from . import _functions, _ids, _runtime, _value
from ._client import Client, TaskContext, Waiter, log
from ._refs import ObjectRef
from ._wire import codec, hot
from ._wire import messages as m
from ._wire.hot import Answer, Argument, Work
from .exceptions import (ActorDiedError, DeadlineError, InvalidError, MobulaError, OwnerDiedError, ProtocolError,
                         ReturnMismatchError, RuntimeSetupError, ShutdownError, TaskCancelledError)

_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_current = _runtime.current
_RESULT_NONE = hot.result_inline(_value.META_NIL, b"\xf6")
CANCEL_SIGNAL = signal.SIGUSR2
CANCEL_EVERY = 0.05
_K = m.KIND_OF


class TaskInterrupt(KeyboardInterrupt):
    """Raised in a task that was cancelled, where it runs; like KeyboardInterrupt, no `except Exception` holds it up."""


class Hold:
    """An argument's bytes: the node has them pinned while the task runs. What outlives it takes a pin of its own."""

    __slots__ = ("reading", "ref")

    def __init__(self) -> None:
        self.reading: Any = None
        self.ref: Any = None


class Call(TaskContext):
    """One attempt at a task while it runs."""

    def __init__(self, executor: "Executor", work: Work) -> None:
        super().__init__(executor.client, work.id, work.attempt, work.trace)
        self.executor = executor
        self.work = work
        self.actor = work.actor or (work.id if work.kind == m.ACTOR_CREATE else b"")
        self.error: Optional[MobulaError] = None  # why it was cancelled
        self.abandoned = False
        self.in_user = False
        self.waiting = 0  # threads of it that wait
        self.future: Any = None  # of a coroutine
        self.started = 0
        self.cancelled = self._cancelled
        self.block = self._block
        self.unblock = self._unblock

    def _cancelled(self) -> Optional[BaseException]:
        return TaskInterrupt() if self.error is not None else None

    def _block(self) -> None:
        self.executor.blocked(self)

    def _unblock(self) -> None:
        self.executor.unblocked(self)

    def actor_handle(self) -> Any:
        from ._api import ActorHandle

        a = self.executor.actor
        if a is None or not self.actor:
            return None
        return ActorHandle(self.client.bind(_ids.return_id(self.actor, 0)), a.name, a.sha, a.methods)


class Actor:
    """The instance that this process hosts."""

    def __init__(self, id: bytes, name: str, sha: str, options: m.TaskOptions) -> None:
        self.id = id
        self.name = name
        self.sha = sha
        self.options = options
        self.instance: Any = None
        self.methods: dict[str, tuple[int, str]] = {}
        self.functions: dict[str, Callable[..., Any]] = {}
        self.held: Optional[list[Work]] = []  # calls that came before it was made; None afterwards
        self.loop: Optional[asyncio.AbstractEventLoop] = None
        self.limits: dict[str, asyncio.Semaphore] = {}
        self.pools: dict[str, "Pool"] = {}
        self.stopped = False


class Pool:
    """The threads of one concurrency group, made as they are needed."""

    def __init__(self, executor: "Executor", size: int) -> None:
        self.executor = executor
        self.size = size
        self.queue: deque[Work] = deque()
        self.ready = threading.Semaphore(0)
        self.threads = 0
        self.idle = 0
        self.lock = threading.Lock()
        self.closed = False

    def put(self, work: Work) -> None:
        with self.lock:
            self.queue.append(work)
            if self.idle == 0 and self.threads < self.size:
                self.threads += 1
                threading.Thread(target=self._run, name="mobula-call", daemon=True).start()
            elif self.idle:
                self.idle -= 1
        self.ready.release()

    def close(self) -> None:
        """Lets the threads end when their calls have."""
        self.closed = True
        for _ in range(self.threads):
            self.ready.release()

    def _run(self) -> None:
        while True:
            self.ready.acquire()
            if self.closed:
                return
            try:
                work = self.queue.popleft()
            except IndexError:
                continue  # it was cancelled
            self.executor.execute(work)
            if not self.queue:
                self.executor.client.flush()
            with self.lock:
                if not self.queue:
                    self.idle += 1


class Executor:
    def __init__(self, client: Client, job_dir: str) -> None:
        self.client = client
        self.job_dir = job_dir
        self.queue: deque[Work] = deque()
        self.calls: dict[bytes, Call] = {}  # under way
        self.main: Optional[Call] = None  # the one in the main thread
        self.blocked_main = False
        self.resuming: dict[bytes, Waiter] = {}
        self.consumed: dict[bytes, int] = {}
        self.acks: dict[bytes, Waiter] = {}
        self.actor: Optional[Actor] = None
        self.functions: dict[str, Callable[..., Any]] = {}
        self.cancels: set[bytes] = set()  # of tasks that are neither queued nor under way
        self.drain = False
        self.pending = 0
        self.idle = Waiter(1)
        self.stats = 0
        self.flush_soon = False
        client.extra = {_K[m.Exec]: self._exec, _K[m.CancelTask]: self._cancel, _K[m.StopActor]: self._stop, _K[m.Drain]: self._drain,
                        _K[m.Resume]: self._resume, _K[m.StreamAck]: self._ack}
        client.holdings = self._holdings

    # ---- what the node says; the client's lock is held

    def _exec(self, b: bytes, i: int, j: int) -> None:
        works = hot.exec_tasks(b, i, j, time.time_ns())
        self.pending += len(works)
        returned: list[bytes] = []
        for w in works:
            if w.kind == m.ACTOR_CALL:
                self._dispatch(w)
            elif self.blocked_main and w.kind == m.TASK:
                returned.append(w.id)  # it was on its way when the lease gave its CPU back
            else:
                if w.kind == m.ACTOR_CREATE:
                    name, sha = _split(w.options.func)
                    self.actor = Actor(w.id, name, sha, w.options)
                self.queue.append(w)
        if returned:
            self.pending -= len(returned)
            self.client.send(codec.message(m.Blocked(b"", works[0].lease, returned)))
        self.idle.done()

    def _dispatch(self, w: Work) -> None:
        """Puts an actor's call where it is run."""
        a = self.actor
        if a is None or a.id != w.actor or a.stopped:
            self._refuse(w, ActorDiedError(f"actor {w.actor.hex()} is not in this worker: it was stopped or its creation failed"))
        elif a.held is not None:
            a.held.append(w)
        elif a.loop is not None:
            a.loop.call_soon_threadsafe(self._begin_async, w)
        elif a.pools:
            pool = a.pools.get(w.options.group)
            if pool is None:
                self._refuse(w, InvalidError(f"actor {a.name} has no concurrency group {w.options.group!r}: name it when the actor is created"))
            else:
                pool.put(w)
        else:
            self.queue.append(w)

    def _refuse(self, w: Work, why: MobulaError) -> None:
        """Reports a task that is not run."""
        now = time.time_ns()
        self.client.send(hot.done(w.id, w.attempt, w.lease, b"", w.received, 0, now, err=codec.encode(codec.to_wire(why))))
        self.pending -= 1
        self.idle.done()

    def _cancel(self, b: bytes, i: int, j: int) -> None:
        c: m.CancelTask = codec.decode(m.CancelTask, b, i, j)
        why: MobulaError = TaskCancelledError("", task=c.task.hex())
        queues = [self.queue]
        if self.actor is not None:
            queues += [p.queue for p in self.actor.pools.values()]
        for q in queues:
            for w in list(q):
                if w.id == c.task:
                    q.remove(w)
                    self._refuse(w, why)
                    return
        call = self.calls.get(c.task)
        if call is None:  # it is about to start, or has ended
            if len(self.cancels) > 1000:
                self.cancels.clear()
            self.cancels.add(c.task)
            return
        if call.work.deadline and time.time_ns() >= call.work.deadline:
            why = DeadlineError("the task's deadline passed while it ran", task=c.task.hex())
        call.error = why
        if c.abandon and not call.abandoned:
            call.abandoned = True
            w = call.work
            self.client.send(hot.done(w.id, w.attempt, w.lease, b"", w.received, call.started, time.time_ns(), err=codec.encode(codec.to_wire(why))))
        self._interrupt(call)

    def _interrupt(self, call: Call) -> None:
        """Makes a running call notice that it was cancelled."""
        self.client.reader.wake()
        for w in list(self.acks.values()):
            w.wake()
        a = self.actor
        if call.future is not None and a is not None and a.loop is not None:
            a.loop.call_soon_threadsafe(call.future.cancel)
        elif call is self.main:
            threading.Thread(target=self._signal, args=(call,), daemon=True, name="mobula-cancel").start()

    def _signal(self, call: Call) -> None:
        """Signals the main thread until the call has ended: it may be in code of ours, which must not be cut off."""
        while self.main is call:
            signal.pthread_kill(threading.main_thread().ident or 0, CANCEL_SIGNAL)
            time.sleep(CANCEL_EVERY)

    def on_signal(self, number: int, frame: Optional[FrameType]) -> None:
        call = self.main
        if call is None or call.error is None or not call.in_user:
            return
        while frame is not None and frame.f_code is not _RUN:
            if frame.f_code.co_filename.startswith(_HERE):
                return  # code of ours: it looks itself, or the next signal comes
            frame = frame.f_back
        if frame is not None:
            raise TaskInterrupt()

    def _stop(self, b: bytes, i: int, j: int) -> None:
        s: m.StopActor = codec.decode(m.StopActor, b, i, j)
        a = self.actor
        if a is None or a.id != s.actor:
            return
        why = ActorDiedError(f"actor {s.actor.hex()} was stopped")
        self._end_actor(a, why)
        for call in list(self.calls.values()):
            if call.work.kind == m.ACTOR_CALL:
                call.error = why
                self._interrupt(call)
        # The process may be another's next.
        a.instance = None
        a.functions.clear()
        for p in a.pools.values():
            p.close()
        if a.loop is not None:
            a.loop.call_soon_threadsafe(a.loop.call_later, 1.0, a.loop.stop)  # those that were cancelled report before

    def _end_actor(self, a: Actor, why: MobulaError) -> None:
        """Fails what waits for an actor."""
        a.stopped = True
        works = list(a.held or ())
        a.held = []
        for q in [self.queue, *(p.queue for p in a.pools.values())]:
            works += [w for w in q if w.kind == m.ACTOR_CALL]
            keep = [w for w in q if w.kind != m.ACTOR_CALL]
            q.clear()
            q.extend(keep)
        for w in works:
            self._refuse(w, why)

    def _drain(self, b: bytes, i: int, j: int) -> None:
        self.drain = True
        self.idle.done()

    def _resume(self, b: bytes, i: int, j: int) -> None:
        r: m.Resume = codec.decode(m.Resume, b, i, j)
        w = self.resuming.pop(r.task, None)
        if w is not None:
            w.done()

    def _ack(self, b: bytes, i: int, j: int) -> None:
        a: m.StreamAck = codec.decode(m.StreamAck, b, i, j)
        if a.task in self.consumed:
            self.consumed[a.task] = max(self.consumed[a.task], a.consumed)
            w = self.acks.get(a.task)
            if w is not None:
                w.done()

    def _holdings(self, h: m.Holdings) -> None:
        for c in list(self.calls.values()):
            h.tasks.append(m.Attempt(c.work.id, c.work.attempt, c.work.lease))
        a = self.actor
        waiting = list(self.queue)
        if a is not None:
            waiting += list(a.held or ())
            for p in a.pools.values():
                waiting += list(p.queue)
            if a.held is None and not a.stopped:
                h.actors.append(a.id)
        for w in waiting:
            h.tasks.append(m.Attempt(w.id, w.attempt, w.lease))

    # ---- running

    def run(self) -> None:
        """Runs tasks until the node lets the worker go."""
        queue, client, idle = self.queue, self.client, self.idle
        while True:
            try:
                work = queue.popleft()
            except IndexError:
                idle.left = 1
                if queue:
                    continue
                if self.drain and self.pending == 0:
                    client.flush()
                    return
                client.wait(idle, None)
                continue
            self.execute(work, True)

    def execute(self, work: Work, main: bool = False) -> None:
        """Runs one task and queues its report."""
        call = Call(self, work)
        self.calls[work.id] = call
        if main:
            self.main = self.client.fallback = call
        token = _current.set(call)
        call.started = time.time_ns()
        holds: list[tuple[Argument, Hold]] = []
        results, items, err = b"", 0, b""
        try:
            results, items = self._perform(call, work, holds)
        except BaseException as x:
            results, items = b"", getattr(call, "items", 0)
            call.in_user = False
            err = codec.encode(self._failure(call, x))
            del x
        call.in_user = False
        if main:
            self.main = None
            self.client.fallback = self.client.root
        if holds:
            self._keep(holds)
        _current.reset(token)
        self._ended(call, work, results, items, err)

    def _ended(self, call: Call, work: Work, results: bytes, items: int, err: bytes) -> None:
        client = self.client
        now = time.time_ns()
        del self.calls[work.id]
        if not call.abandoned:
            client.out.append(hot.done(work.id, work.attempt, work.lease, results, work.received, call.started, now, items, err))
        self.pending -= 1
        if now - self.stats > 1_000_000_000:
            self.stats = now
            client.out.append(codec.message(m.Stats(_rss(), threading.active_count(), len(self.calls))))
        client.maybe_flush()
        if self.drain:
            self.idle.done()

    def _begin(self, call: Call, work: Work, holds: list[tuple[Argument, Hold]]) -> tuple[Any, list[Any], dict[str, Any]]:
        """The function of a task that may still begin, and its arguments."""
        if self.cancels and work.id in self.cancels:
            self.cancels.discard(work.id)
            call.error = TaskCancelledError("", task=work.id.hex())
        if call.error is not None:
            raise call.error
        if work.deadline and call.started >= work.deadline:
            raise DeadlineError("the task's deadline passed before it started")
        f = self._function(work)
        args, kwargs = self._arguments(work, holds)
        return f, args, kwargs

    def _perform(self, call: Call, work: Work, holds: list[tuple[Argument, Hold]]) -> tuple[bytes, int]:
        f, args, kwargs = self._begin(call, work, holds)
        n = work.options.num_returns
        value = _run(call, f, args, kwargs)
        del args, kwargs
        if work.kind == m.ACTOR_CREATE:
            return self._made(call, work, value), 0
        if n == 1:
            if value is None:
                return _RESULT_NONE, 0
            return self._result(call, work, value, 0), 0
        if n < 0:
            return b"", self._stream(call, work, value)
        return self._several(call, work, value, n), 0

    def _several(self, call: Call, work: Work, value: Any, n: int) -> bytes:
        if n == 0:
            return b""
        try:
            values = list(value)
        except TypeError:
            values = [value]
        if len(values) != n:
            raise ReturnMismatchError(f"{work.options.func}: gave {len(values)} results, num_returns is {n}")
        return b"".join([self._result(call, work, v, i) for i, v in enumerate(values)])

    def _function(self, work: Work) -> Callable[..., Any]:
        func = work.options.func
        if work.kind == m.ACTOR_CALL:
            a = self.actor
            assert a is not None
            f = a.functions.get(func)
            if f is None:
                name = _split(func)[0].rpartition(".")[2]
                if name == _functions.METHODS:
                    methods = a.methods
                    return lambda: methods
                try:
                    f = a.functions[func] = getattr(a.instance, name)
                except AttributeError:
                    raise InvalidError(f"actor {a.name} has no method {name!r}") from None
            return f
        f = self.functions.get(func)
        if f is None:
            _, sha = _split(func)
            f = self.functions[func] = _functions.load(self.job_dir, sha)
        return f

    def _arguments(self, work: Work, holds: list[tuple[Argument, Hold]]) -> tuple[list[Any], dict[str, Any]]:
        values: list[Any] = []
        args = work.args
        names: list[str] = []
        if args and args[-1].answer.meta == _value.META_KWARGS and not args[-1].ref:
            names = args[-1].answer.data.decode().split("\0")[:-1]
            args = args[:-1]
        for a in args:
            values.append(self._argument(a, holds))
        if not names:
            return values, {}
        k = len(values) - len(names)
        return values[:k], dict(zip(names, values[k:]))

    def _argument(self, a: Argument, holds: list[tuple[Argument, Hold]]) -> Any:
        r: Answer = a.answer
        if r.kind == m.INLINE:
            return _value.decode(r.meta, r.data)
        if r.kind == m.ERROR:
            raise _value.task_failure(r.err)
        if r.kind != m.STORED or a.extent is None or self.client.segment is None:
            raise ProtocolError(f"argument {a.ref.hex()} came without a result")
        hold = Hold()
        holds.append((a, hold))
        return _value.decode(r.meta, self.client.segment.view(a.extent, r.size, hold))

    def _keep(self, holds: list[tuple[Argument, Hold]]) -> None:
        """Takes pins for what outlives its task, before the task's report gives the node's up."""
        for a, hold in holds:
            if sys.getrefcount(hold) > 3:  # more than the list, this name and the call
                client = self.client
                ref: ObjectRef[Any] = ObjectRef(client.bind(a.ref))
                try:
                    _, hold.reading = client.fetch_one(ref._h, None, None)
                    hold.ref = ref
                except MobulaError:
                    log.warning("an argument that outlives its task could not be pinned: %r", ref)

    def _result(self, call: Call, work: Work, value: Any, i: int) -> bytes:
        e = _value.encode(value, self.client.inline)
        if e.data is not None:
            return hot.result_inline(e.meta, e.data, e.refs)
        self.client.put_large(_ids.return_id(work.id, i), work.attempt, work.id, e.meta, e.size, e.parts, e.refs, own=False, tc=call)
        return hot.result_stored(e.meta, e.size, e.refs)

    def _failure(self, call: Call, x: BaseException) -> m.Error:
        """The error that a task is reported with."""
        work = call.work
        name = work.options.func.split(":")[1] if ":" in work.options.func else work.options.func
        if call.error is not None and (isinstance(x, (TaskInterrupt, asyncio.CancelledError)) or x is call.error):
            e = codec.to_wire(call.error)
        elif isinstance(x, MobulaError) and x.__traceback__ is not None and _only_ours(x):
            e = codec.to_wire(x)
        else:
            lines = traceback.format_exception(type(x), x, _users(x), chain=True)
            e = _value.failure(name, work.id.hex(), x, "".join(lines))
        e.task = work.id.hex()
        a = self.actor
        if work.kind == m.ACTOR_CREATE and a is not None and a.id == work.id:
            with self.client.lock:
                self._end_actor(a, ActorDiedError(f"actor {work.id.hex()} could not be created", causes=(codec.from_wire(e),)))
        return e

    # ---- waiting

    def blocked(self, call: Call) -> None:
        """The task begins to wait: its CPU, and what is queued behind it, is given back."""
        with self.client.lock:
            call.waiting += 1
            if call.waiting > 1:
                return  # another thread of it waits already
            back: list[bytes] = []
            if call is self.main:
                self.blocked_main = True
                if call.work.kind == m.TASK:
                    back = [w.id for w in self.queue]
                    self.queue.clear()
                    self.pending -= len(back)
            self.client.send(codec.message(m.Blocked(call.work.id, call.work.lease, back)))
        self.client.flush()

    def unblocked(self, call: Call) -> None:
        """It goes on as soon as the node has a CPU for it."""
        w = Waiter(1)
        with self.client.lock:
            call.waiting -= 1
            if call.waiting > 0:
                return
            self.resuming[call.work.id] = w
            self.client.send(codec.message(m.Unblocked(call.work.id, call.work.lease)))
        try:
            self.client.flush()
            self.client.reader.wait(w, None, call)
        except TaskInterrupt:
            pass  # it is cancelled: who waited sees that too
        finally:
            with self.client.lock:
                self.resuming.pop(call.work.id, None)
                if call is self.main:
                    self.blocked_main = False

    # ---- streams

    def _stream(self, call: Call, work: Work, value: Any) -> int:
        limit = work.options.backpressure
        self.consumed[work.id] = 0
        count = 0
        call.items = 0  # type: ignore[attr-defined]
        try:
            if not hasattr(value, "__next__"):
                value = iter(value)
            while True:
                if limit:
                    self._room(call, work, count, limit)
                item = _advance(call, value)
                if item is _END:
                    return count
                self._item(call, work, item, count)
                count += 1
                call.items = count  # type: ignore[attr-defined]
        finally:
            self.consumed.pop(work.id, None)
            self.acks.pop(work.id, None)
            close = getattr(value, "close", None)
            if close is not None:
                close()

    def _item(self, call: Call, work: Work, item: Any, i: int) -> None:
        result = self._result(call, work, item, i)
        body = b"\x0a\x10" + work.id
        if work.attempt:
            body += b"\x10" + codec.varint(work.attempt)
        if i:
            body += b"\x18" + codec.varint(i)
        body += result
        self.client.out.append(b"\xc2\x01" + codec.varint(len(body)) + body)
        self.client.maybe_flush()

    def _room(self, call: Call, work: Work, items: int, limit: int) -> None:
        """Waits until the consumer is near enough."""
        if items < self.consumed[work.id] + limit:
            return
        self.blocked(call)
        try:
            while items >= self.consumed[work.id] + limit:
                w = Waiter(1)
                with self.client.lock:
                    if items < self.consumed[work.id] + limit:
                        break
                    self.acks[work.id] = w
                self.client.reader.wait(w, None, call)
        finally:
            self.unblocked(call)

    # ---- actors

    def _made(self, call: Call, work: Work, instance: Any) -> bytes:
        """An actor was constructed: its calls may start."""
        a = self.actor
        if a is None or a.id != work.id or a.stopped:
            raise ActorDiedError(f"actor {work.id.hex()} was stopped while it was created")
        cls = type(instance)
        a.instance = instance
        a.methods = _functions.method_table(cls)
        o = work.options
        groups = {g.name: g.max for g in o.groups}
        if _functions.is_async(cls):
            self._start_loop(a, o, groups)
        elif o.max_concurrency > 1 or groups:
            a.pools = {"": Pool(self, max(1, o.max_concurrency)), **{k: Pool(self, max(1, n)) for k, n in groups.items()}}
        with self.client.lock:
            held, a.held = a.held or [], None
            for w in held:
                self._dispatch(w)
        return _RESULT_NONE

    def _start_loop(self, a: Actor, o: m.TaskOptions, groups: Mapping[str, int]) -> None:
        loop = asyncio.new_event_loop()
        a.loop = loop
        a.limits = {"": asyncio.Semaphore(max(1, o.max_concurrency)), **{k: asyncio.Semaphore(max(1, n)) for k, n in groups.items()}}

        def run() -> None:
            asyncio.set_event_loop(loop)
            loop.run_forever()

        threading.Thread(target=run, name="mobula-loop", daemon=True).start()

    def _begin_async(self, work: Work) -> None:
        """In the loop: starts a call."""
        call = Call(self, work)
        call.block = call.unblock = None
        self.calls[work.id] = call
        call.future = asyncio.ensure_future(self._call_async(call, work))

    async def _call_async(self, call: Call, work: Work) -> None:
        a = self.actor
        assert a is not None
        holds: list[tuple[Argument, Hold]] = []
        results, items, err = b"", 0, b""
        try:
            limit = a.limits.get(work.options.group)
            if limit is None:
                raise InvalidError(f"actor {a.name} has no concurrency group {work.options.group!r}: name it when the actor is created")
            async with limit:
                call.started = time.time_ns()
                _current.set(call)
                results, items = await self._perform_async(call, work, holds)
        except BaseException as x:
            results, items = b"", getattr(call, "items", 0)
            err = codec.encode(self._failure(call, x))
            del x
        if holds:
            self._keep(holds)
        client = self.client
        now = time.time_ns()
        self.calls.pop(work.id, None)
        if not call.abandoned:
            client.out.append(hot.done(work.id, work.attempt, work.lease, results, work.received, call.started or now, now, items, err))
        self.pending -= 1
        if not self.flush_soon:  # all calls that end in this turn of the loop are reported together
            self.flush_soon = True
            asyncio.get_running_loop().call_soon(self._flush_async)

    def _flush_async(self) -> None:
        self.flush_soon = False
        self.client.flush()
        if self.drain:
            self.idle.done()

    async def _perform_async(self, call: Call, work: Work, holds: list[tuple[Argument, Hold]]) -> tuple[bytes, int]:
        f, args, kwargs = self._begin(call, work, holds)
        value = f(*args, **kwargs)
        del args, kwargs
        if inspect.isawaitable(value):
            value = await value
        n = work.options.num_returns
        if n < 0:
            return b"", await self._stream_async(call, work, value)
        if n == 1:
            return (_RESULT_NONE if value is None else self._result(call, work, value, 0)), 0
        return self._several(call, work, value, n), 0

    async def _stream_async(self, call: Call, work: Work, value: Any) -> int:
        limit = work.options.backpressure
        self.consumed[work.id] = 0
        count = 0
        try:
            if hasattr(value, "__aiter__"):
                async for item in value:
                    while limit and count >= self.consumed[work.id] + limit:
                        await asyncio.sleep(0.002)
                    self._item(call, work, item, count)
                    count += 1
                    call.items = count  # type: ignore[attr-defined]
            else:
                for item in value:
                    while limit and count >= self.consumed[work.id] + limit:
                        await asyncio.sleep(0.002)
                    self._item(call, work, item, count)
                    count += 1
                    call.items = count  # type: ignore[attr-defined]
            return count
        finally:
            self.consumed.pop(work.id, None)


_END = object()


def _run(call: Call, f: Callable[..., Any], args: list[Any], kwargs: dict[str, Any]) -> Any:
    call.in_user = True
    value = f(*args, **kwargs)
    call.in_user = False
    return value


_RUN = _run.__code__


def _advance(call: Call, value: Any) -> Any:
    return _run(call, next, [value, _END], {})


def _split(func: str) -> tuple[str, str]:
    return _functions.split_name(func)


def _users(x: BaseException) -> Any:
    """The traceback from the user's function on."""
    tb = x.__traceback__
    while tb is not None and tb.tb_frame.f_code.co_filename.startswith(_HERE):
        tb = tb.tb_next
    return tb


def _only_ours(x: BaseException) -> bool:
    """Whether an error came about without any of the user's code."""
    return _users(x) is None


def _rss() -> int:
    try:
        with open("/proc/self/statm") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGESIZE")
    except OSError:
        return 0


def check_version(config: Mapping[str, Any]) -> None:
    """A worker of another Python cannot read what the driver pickled."""
    want, have = config.get("version"), "%d.%d" % sys.version_info[:2]
    if want and want != have:
        raise RuntimeSetupError(f"the driver runs Python {want}, this worker {have} ({sys.executable}): both must be the same")


def connect() -> Executor:
    """Registers with the node as the environment says."""
    env = {k: os.environ.pop("MOBULA_WORKER_" + k, "") for k in ("SOCKET", "TOKEN", "ID", "JOB", "KIND", "FUNC", "MEMORY", "VERSION")}
    check_version({"version": env["VERSION"]})
    try:
        token = binascii.unhexlify(env["TOKEN"])
        job = int(env["JOB"])
    except ValueError:
        raise InvalidError(f"this is no worker's environment: MOBULA_WORKER_JOB={env['JOB']!r}") from None
    hello = m.Hello(role=m.WORKER, pid=os.getpid(), job=job, token=token, program=m.Program("python", "%d.%d" % sys.version_info[:2]))
    client = Client(env["SOCKET"], hello, False)
    return Executor(client, client.welcome.job_dir)


def serve() -> int:
    """Is a worker until the node lets it go; gives the exit code."""
    try:
        executor = connect()
    except MobulaError as x:
        print(f"mobula worker: {x}", file=sys.stderr, flush=True)
        return 1
    _runtime.state.client = executor.client
    _runtime.state.worker = executor
    for out in (sys.stdout, sys.stderr):
        if hasattr(out, "reconfigure"):
            out.reconfigure(line_buffering=True)
    signal.signal(CANCEL_SIGNAL, executor.on_signal)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    executor.client.start()
    try:
        executor.run()
    except MobulaError as x:
        # With the node gone, or going, its log says why.
        if executor.client.dead is None or not isinstance(x, (OwnerDiedError, ShutdownError)):
            traceback.print_exc()
    try:
        executor.client.close()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 0


def main(config: Optional[Mapping[str, Any]] = None) -> None:
    """A worker process of its own interpreter."""
    config = config or {}
    try:
        check_version(config)
    except MobulaError as x:
        print(f"mobula worker: {x}", file=sys.stderr, flush=True)
        os._exit(1)
    if config.get("cwd"):
        try:
            os.chdir(config["cwd"])
        except OSError:
            pass  # it is gone
    os._exit(serve())


__all__ = ["Executor", "TaskInterrupt", "check_version", "connect", "main", "serve"]

if __name__ == "__main__":
    from mobula import _worker

    _worker.main()
