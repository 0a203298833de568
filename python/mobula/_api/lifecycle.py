"""The lifecycle of actors: watch, graceful stop, and an actor's own timers."""

from __future__ import annotations

import sys
import threading
import time
import traceback
from dataclasses import dataclass
from functools import partial
from typing import Any, Callable, Iterator, Literal, Mapping, Optional, Sequence

from .. import _ids, _runtime, _value
from .._client import TaskContext
from .._client.watching import DEAD, Watch
from .._refs import bound
from ..exceptions import ActorDiedError, DeadlineError, GetTimeoutError, InvalidError, MobulaError, TaskError
from .actors import ActorHandle
from .objects import get

_STATES: tuple[Literal["starting", "alive", "restarting", "dead"], ...] = ("starting", "alive", "restarting", "dead")


@dataclass(frozen=True)
class ActorEvent:
    """A state of an actor, as watch yields it."""

    state: Literal["starting", "alive", "restarting", "dead"]
    restarts: int  # so far
    error: Optional[MobulaError]  # why it restarts, or an ActorDiedError


def watch(actor: ActorHandle[Any], *, timeout: Optional[float] = None) -> Iterator[ActorEvent]:
    """Yields the state of an actor: first the present one, then each change. It ends after the state "dead".

        for event in mobula.watch(actor):
            print(event.state, event.restarts, event.error)

    It goes on over restarts of the node, and does not keep the actor alive. GetTimeoutError if no event comes for timeout seconds.
    """
    _actor("watch", actor)
    c, id = actor._ref._c, actor._id()
    del actor
    c.check()
    w = Watch(id)
    try:
        c.watches.begin(w)
        while True:
            news = c.watches.next(w, _until(timeout), _runtime.context(c))
            if not news:
                raise GetTimeoutError(f"watch: nothing happened to actor {id.hex()} in {timeout} s")
            for n in news:
                yield ActorEvent(_STATES[n.state - 1], n.restarts, _why(n.err, n.state) if n.err is not None else None)
                if n.state == DEAD:
                    return
    finally:
        c.watches.end(w)


def _why(err: Any, state: int) -> MobulaError:
    x = _value.task_failure(err)
    if state == DEAD and not isinstance(x, ActorDiedError):
        return ActorDiedError(str(x), causes=(x,))
    return x


def stop(actor: ActorHandle[Any], *, timeout: Optional[float] = None) -> None:
    """Ends an actor gracefully, and waits for its end. Calls that were made before still run, then the actor's close() is called, if it has
    one. Later calls fail with ActorDiedError.

    Raises the error of close(). GetTimeoutError after timeout seconds; the actor ends nevertheless. When an actor stops itself, stop returns
    at once, and the actor ends after the running call.
    """
    _actor("stop", actor)
    c, id, until = actor._ref._c, actor._id(), _until(timeout)
    tc = _runtime.context(c)
    if tc.actor == id:
        c.watches.stop(id)
        return
    c.check()
    w = Watch(id)
    try:
        c.watches.begin(w)
        c.watches.stop(id)
        while True:
            news = c.watches.next(w, until, tc)
            if not news:
                raise GetTimeoutError(f"stop: actor {id.hex()} had not ended after {timeout} s")
            for n in news:
                if n.state == DEAD:
                    failed = _value.task_failure(n.err).causes if n.err is not None else ()
                    if len(failed) == 1 and isinstance(failed[0], (TaskError, DeadlineError)):
                        raise failed[0]
                    return
    finally:
        c.watches.end(w)


def _actor(what: str, actor: object) -> None:
    if not isinstance(actor, ActorHandle):
        raise TypeError(f"{what}: want an actor, got {type(actor).__name__}")


def _until(timeout: Optional[float]) -> Optional[float]:
    return None if timeout is None else time.monotonic() + timeout


class Timer:
    """A timer of an actor, made by after or every."""

    def __init__(self) -> None:
        self._ended = threading.Event()

    def stop(self) -> None:
        """Stops the timer. A call that it has already made still runs."""
        self._ended.set()


def after(seconds: float, method: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Timer:
    """Calls a method of the running actor once, after so many seconds. Use it inside an actor; see every."""
    return _timer("after", seconds, False, method, args, kwargs)


def every(seconds: float, method: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Timer:
    """Calls a method of the running actor every so many seconds. Use it inside an actor.

        def __init__(self):
            mobula.every(60, self.sweep)

    Each call waits its turn among the actor's other calls. A tick is left out while the call before it still waits or runs. The timer ends
    when the actor ends or its process dies, and does not keep the actor alive; after a restart __init__ has to start it again. An error of the
    method is written to stderr. InvalidError outside an actor, for something that is no method, and if seconds is not above 0.
    """
    return _timer("every", seconds, True, method, args, kwargs)


def _timer(what: str, seconds: float, again: bool, method: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Timer:
    c = _runtime.client()
    tc = _runtime.context(c)
    actor = tc.host()
    if actor is None:
        raise InvalidError(f"{what}: this code runs in no actor")
    while isinstance(method, partial):  # that is what a partialmethod gives, too
        args, kwargs, method = (*method.args, *args), {**method.keywords, **kwargs}, method.func
    name = getattr(method, "__name__", "")
    if not name or getattr(method, "__self__", None) is None:
        raise InvalidError(f"{what}: want a method of the actor, as self.tick, got {method!r}")
    if seconds < 0 or (again and seconds == 0):
        raise InvalidError(f"{what}: {seconds} seconds, want more than 0")
    t = Timer()
    actor.timers.add(t)
    id, made = actor.id, (actor.name, actor.sha)
    # The ids of its calls include the attempt: after a restart the same code makes new calls, not those of before.
    own = TaskContext(c, _ids.derive(tc.next_task(), 1 + tc.attempt))

    def run() -> None:
        _runtime.current.set(own)
        try:
            tick()
        finally:
            actor.timers.discard(t)

    def tick() -> None:
        due = time.monotonic() + seconds
        while not t._ended.wait(max(0.0, due - time.monotonic())):
            try:
                get(ActorHandle(bound(c, _ids.return_id(id, 0)), *made, {})._method(name, 1, "").remote(*args, **kwargs))
            except ActorDiedError:
                return
            except Exception:
                if c.dead is not None or t._ended.is_set():
                    return
                print(f"mobula: the call of a timer of actor {made[0]} ({id.hex()}) failed", file=sys.stderr)
                traceback.print_exc()
            if not again:
                return
            due = max(due + seconds, time.monotonic())

    threading.Thread(target=run, name=f"mobula timer {name}", daemon=True).start()
    return t
