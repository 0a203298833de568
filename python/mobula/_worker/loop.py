"""Runs an actor's calls as coroutines, in an event loop in a thread of its own."""

from __future__ import annotations

import asyncio
import inspect
import threading
from typing import Any, Coroutine, Mapping, Protocol

from .. import _runtime, _trace
from .._wire.hot import Work
from ..exceptions import InvalidError
from . import results
from .arguments import Holds
from .call import Call
from .interfaces import Runs
from .streaming import Streaming

_GRACE = 1.0  # seconds in which cancelled calls can report before the loop ends


def no_group(actor: str, group: str) -> InvalidError:
    return InvalidError(f"actor {actor} has no concurrency group {group!r}: name it when the actor is created")


class Streams(Runs, Protocol):
    """An executor that also runs streams."""

    @property
    def streaming(self) -> Streaming: ...


class Loop:
    def __init__(self, executor: Streams, actor: str, limits: Mapping[str, int]) -> None:
        self._executor = executor
        self._actor = actor
        self._limits = {group: asyncio.Semaphore(n) for group, n in limits.items()}
        self._flush_soon = False
        self._ended = False
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._run, name="mobula-loop", daemon=True).start()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        while not self._ended:  # a call may stop the loop, which is not its own: the others would never end
            self._loop.run_forever()

    def put(self, work: Work) -> None:
        call = self._executor.begun(work)
        call.waits = False
        self._loop.call_soon_threadsafe(self._begin, call)

    def cancel(self, call: Call) -> None:
        self._loop.call_soon_threadsafe(call.future.cancel)

    def run(self, coroutine: Coroutine[Any, Any, None], grace: float) -> None:
        """Runs a coroutine in the loop, and waits for it."""
        asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(grace + 1)

    def close(self) -> None:
        """Ends the loop after _GRACE seconds, in which cancelled calls report."""
        self._loop.call_soon_threadsafe(self._loop.call_later, _GRACE, self._end)

    # ---- in the loop

    def _end(self) -> None:
        self._ended = True
        self._loop.stop()

    def _begin(self, call: Call) -> None:
        call.future = asyncio.ensure_future(self._call(call))

    async def _call(self, call: Call) -> None:
        executor, group = self._executor, call.work.options.group
        holds: Holds = []
        done, err = b"", None
        try:
            limit = self._limits.get(group)
            if limit is None:
                raise no_group(self._actor, group)
            async with limit:
                call.started = self._executor.client.now()
                _runtime.current.set(call)
                _trace.enter(call)  # no leave: the coroutine has a context of its own
                done = await self._perform(call, holds)
        except BaseException as x:
            err = results.failure(call, x)
            del x
        executor.report(call, done, err, holds)
        if not self._flush_soon:  # calls that end in the same turn of the loop are reported together
            self._flush_soon = True
            self._loop.call_soon(self._flush)

    async def _perform(self, call: Call, holds: Holds) -> bytes:
        f, args, kwargs = self._executor.begin(call, holds)
        value = f(*args, **kwargs)
        del args, kwargs
        if inspect.isawaitable(value):
            value = await value
        n = call.work.options.num_returns
        if n < 0:
            await self._executor.streaming.produce_async(call, value)
            return b""
        return results.results(call, value, n)

    def _flush(self) -> None:
        self._flush_soon = False
        self._executor.client.flush()
        if self._executor.ends():
            self._executor.idle.done()
