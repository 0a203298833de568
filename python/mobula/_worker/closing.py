"""The close hook of an actor: what contextlib.closing calls, close(), as files, sockets and connections have it. It needs no __enter__ to
have been called, as __exit__ does, and unlike __del__ it has a time and a place: it is called once, by the thread or in the loop that the
calls run in, when the last of them has ended."""

from __future__ import annotations

import asyncio
import inspect
import sys
import traceback
from typing import Any, Callable, Optional

from .. import _value
from .._wire import messages as m
from .actor import Actor

GRACE = 5.0  # seconds that a coroutine has


def hook(instance: Any) -> Optional[Callable[[], Any]]:
    """The method close of an instance that can be called without arguments, or None."""
    f = getattr(instance, "close", None)
    if not callable(f) or isinstance(instance, type):
        return None
    try:
        inspect.signature(f).bind()
    except TypeError:
        return None
    except ValueError:
        pass  # a C function does not tell
    return f  # type: ignore[no-any-return]


def close(actor: Actor) -> Optional[m.Error]:
    """Calls an actor's close hook, if it has one, and gives what it failed with, which it writes to stderr too."""
    f, actor.instance_closed = (None if actor.instance_closed else hook(actor.instance)), True
    if f is None:
        return None

    async def call() -> None:
        value = f()
        if inspect.isawaitable(value):
            await asyncio.wait_for(value, GRACE)

    try:
        if actor.loop is not None:
            actor.loop.run(call(), GRACE)
        else:
            value = f()
            if inspect.isawaitable(value):
                asyncio.run(asyncio.wait_for(value, GRACE))
    except BaseException as x:
        text = "".join(traceback.format_exception(type(x), x, x.__traceback__))
        print(f"mobula: the close of actor {actor.name} ({actor.id.hex()}) failed\n{text}", file=sys.stderr, flush=True)
        return _value.failure(actor.name + ".close", actor.id.hex(), x, text, actor.closed_with)
    return None
