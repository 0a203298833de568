"""The close hook of an actor: the method close(), which contextlib.closing calls too. Unlike __exit__ it needs no __enter__ before it, and
unlike __del__ it runs at a known time and place: once, after the actor's last call, in the main thread or in the actor's event loop."""

from __future__ import annotations

import asyncio
import inspect
import sys
from typing import Any, Callable, Optional

from .. import _value
from .._api import put
from .._wire import messages as m
from .actor import Actor

GRACE = 5.0  # seconds that a coroutine close() may take


def hook(instance: Any) -> Optional[Callable[[], Any]]:
    """The method close of an instance, if it can be called without arguments, else None."""
    f = getattr(instance, "close", None)
    if not callable(f) or isinstance(instance, type):
        return None
    try:
        inspect.signature(f).bind()
    except TypeError:
        return None
    except ValueError:
        pass  # a C function has no signature
    return f  # type: ignore[no-any-return]


def close(actor: Actor) -> Optional[m.Error]:
    """Calls an actor's close hook, if it has one. Returns its error, if it fails, and writes it to stderr."""
    closed, actor.instance_closed = actor.instance_closed, True
    if closed:
        return None

    async def call(f: Callable[[], Any]) -> None:
        value = f()
        if inspect.isawaitable(value):
            await asyncio.wait_for(value, GRACE)

    try:
        f = hook(actor.instance)
        if f is None:
            return None
        if actor.loop is not None:
            actor.loop.run(call(f), GRACE)
        else:
            value = f()
            if inspect.isawaitable(value):
                asyncio.run(asyncio.wait_for(value, GRACE))
    except BaseException as x:
        name, id = actor.name + ".close", actor.id.hex()
        try:
            e = _value.failure(name, id, x, x.__traceback__, put, actor.closed_with)
        except BaseException:
            e = _value.undescribed(name, id)
        print(f"mobula: the close of actor {actor.name} ({id}) failed\n{e.stack or e.msg}", file=sys.stderr, flush=True)
        return e
    return None
