"""Watches of actors: the present state, and each change."""

from __future__ import annotations

from typing import Optional

from .._wire import codec
from .._wire import messages as m
from .context import TaskContext
from .interfaces import Waits
from .waiter import Waiter

DEAD = 4  # enum ActorState


class Watch:
    """One watch of an actor. It gets the present state first, then each change. It does not keep the actor alive."""

    __slots__ = ("actor", "news", "waiter")

    def __init__(self, actor: bytes) -> None:
        self.actor = actor
        self.news: list[m.ActorNews] = []
        self.waiter: Optional[Waiter] = None


class _Watched:
    """A watched actor."""

    __slots__ = ("last", "watches", "stop")

    def __init__(self) -> None:
        self.last: Optional[m.ActorNews] = None
        self.watches: list[Watch] = []
        self.stop = False  # it was asked to stop, and a caller waits for its end

    def over(self) -> bool:
        return self.last is not None and self.last.state == DEAD


class Watches:
    """The watches of a client by actor. The node is told of an actor's first watch, and when the last has ended."""

    def __init__(self, client: Waits) -> None:
        self._client = client
        self._of: dict[bytes, _Watched] = {}

    def begin(self, w: Watch) -> None:
        c, of = self._client, self._of
        out = c.out
        with c.lock:
            new, told = _Watched(), iter((codec.message(m.WatchActor(w.actor)),))
            if w.actor not in of:  # whole
                of[w.actor] = new
                out += told
            a = of[w.actor]
            if a.last is not None:
                w.news.append(a.last)
            a.watches.append(w)
        if c.reader.quiet:
            c.reader.arm()

    def end(self, w: Watch) -> None:
        """Ends a watch, if it has begun."""
        c, of = self._client, self._of
        out = c.out
        with c.lock:
            a = of.get(w.actor)
            if a is None:
                return
            if w in a.watches:
                a.watches.remove(w)
            told = iter(() if c.dead is not None or a.over() else (codec.message(m.WatchActor(w.actor, True)),))
            if not a.watches and w.actor in of and of[w.actor] is a:  # whole
                del of[w.actor]
                out += told
        if c.reader.quiet:
            c.reader.arm()

    def next(self, w: Watch, until: Optional[float], tc: TaskContext) -> list[m.ActorNews]:
        """Waits for news and returns them; empty if the time runs out. until is by time.monotonic."""
        c = self._client
        with c.lock:
            if not w.news:
                w.waiter = Waiter(1)
        try:
            if w.waiter is not None:
                c.wait(w.waiter, until, tc)
        finally:
            with c.lock:
                w.waiter = None
                news, w.news = w.news, []
        return news

    def stop(self, actor: bytes) -> None:
        """Asks the node to stop an actor gracefully."""
        c = self._client
        c.check()
        with c.lock:
            a = self._of.get(actor)
            c.send(codec.message(m.KillActor(actor, stop=True)))
            if a is not None:
                a.stop = True
        c.flush()

    def arrived(self, news: m.ActorNews) -> None:
        """Handles an ActorNews. A restarted node repeats itself: known news are dropped. The lock is held."""
        a = self._of.get(news.actor)
        if a is None or a.over():
            return
        if a.last is not None and (a.last.state, a.last.restarts) == (news.state, news.restarts):
            return
        a.last = news
        for w in a.watches:
            w.news.append(news)
            if w.waiter is not None:
                w.waiter.done()

    def declare(self) -> list[bytes]:
        """The messages for a restarted node: all watches, and stop requests that may have been lost."""
        out: list[bytes] = []
        for actor, a in self._of.items():
            if not a.over():
                out.append(codec.message(m.WatchActor(actor)))
                if a.stop:
                    out.append(codec.message(m.KillActor(actor, stop=True)))
        return out

    def abandon(self) -> None:
        """The client is dead: wakes all waiting threads."""
        for a in self._of.values():
            for w in a.watches:
                if w.waiter is not None:
                    w.waiter.wake()
