"""The actor that this process hosts."""

from __future__ import annotations

from collections import deque
from typing import Any, Callable, Optional

from .. import _functions
from .._wire import messages as m
from .._wire.hot import Work
from ..exceptions import ActorDiedError, MobulaError, UnknownFunctionError
from .loop import Loop, Streams, no_group
from .pool import Pool


class Actor:
    """Exists from the moment its creation arrives. Its calls run in the lane, in the thread pools of its concurrency groups, or in a loop."""

    def __init__(self, executor: Streams, creation: Work) -> None:
        self._executor = executor
        self.id = creation.id
        self.name, sha = _functions.split_name(creation.options.func)
        self.sha = sha or "0"  # of an actor called by name; handles need some value
        self.methods: dict[str, tuple[int, str]] = {}
        self.loop: Optional[Loop] = None
        self.stopped = False
        self.instance: Any = None
        self.timers: set[Any] = set()  # those that go on; each leaves it in its own thread
        self.instance_closed = False  # its close hook has begun, or must not run
        self.closed_with: list[Any] = []  # references in the close hook's error; the owner does not know of them yet
        self._functions: dict[str, Callable[..., Any]] = {}
        self._held: Optional[list[Work]] = []  # calls that came before the constructor ended; None afterwards
        self._pools: dict[str, Pool] = {}

    def made(self, instance: Any, o: m.TaskOptions) -> None:
        """Sets the instance that the constructor made. Its calls may start."""
        if self.stopped:
            raise ActorDiedError(f"actor {self.id.hex()} was stopped while it was created")
        cls = type(instance)
        self.instance = instance
        self.methods = _functions.method_table(cls)
        limits = {"": max(1, o.max_concurrency), **{g.name: max(1, g.max) for g in o.groups}}
        if _functions.is_async(cls):
            self.loop = Loop(self._executor, self.name, limits)
        elif o.max_concurrency > 1 or o.groups:
            self._pools = {group: Pool(self._executor, n) for group, n in limits.items()}
        with self._executor.client.lock:
            held, self._held = self._held or [], None
            for w in held:
                self.dispatch(w)

    def alive(self) -> bool:
        """Whether its calls may start."""
        return self._held is None and not self.stopped

    def method(self, func: str) -> Callable[..., Any]:
        """The method that a call's function name means."""
        f = self._functions.get(func)
        if f is None:
            called, own = _functions.split_name(func)[0], self.name + "."
            name = called[len(own):] if called.startswith(own) else called.rpartition(".")[2]
            if name == _functions.METHODS:
                methods = self.methods
                return lambda: methods
            try:
                f = self._functions[func] = getattr(self.instance, name)
            except AttributeError:
                known = ", ".join(self.methods) or "none"
                raise UnknownFunctionError(f"actor {self.name} has no method {name!r}; it has {known}") from None
        return f

    # ---- the client's lock is held

    def dispatch(self, w: Work) -> None:
        """Queues a call where it will run."""
        if self.stopped:
            self._executor.refuse(w, ActorDiedError(f"actor {self.id.hex()} was stopped, or could not be created"))
        elif self._held is not None:
            self._held.append(w)
        elif self.loop is not None:
            self.loop.put(w)
        elif self._pools:
            pool = self._pools.get(w.options.group)
            if pool is None:
                self._executor.refuse(w, no_group(self.name, w.options.group))
            else:
                pool.put(w)
        else:
            self._executor.lane.queue.append(w)

    def queues(self) -> list[deque[Work]]:
        """The queues of its calls, besides the lane's."""
        return [p.queue for p in self._pools.values()]

    def waiting(self) -> list[Work]:
        """The calls that have not started, besides those in the lane."""
        return [*(self._held or ()), *(w for q in self.queues() for w in q)]

    def fail(self, why: MobulaError) -> None:
        """Stops the actor. Refuses its waiting calls, and all later ones."""
        self.stopped = True
        self._end_timers()
        works = list(self._held or ())
        self._held = []
        for q in [self._executor.lane.queue, *self.queues()]:
            works += [w for w in q if w.kind == m.ACTOR_CALL]
            keep = [w for w in q if w.kind != m.ACTOR_CALL]
            q.clear()
            q.extend(keep)
        for w in works:
            self._executor.refuse(w, why)

    def let_go(self) -> None:
        """Releases the instance, its threads and its loop. The process may host another actor next."""
        self._end_timers()
        self.instance = None
        self._functions.clear()
        for p in self._pools.values():
            p.close()
        if self.loop is not None:
            self.loop.close()

    def _end_timers(self) -> None:
        for t in list(self.timers):
            t.stop()
