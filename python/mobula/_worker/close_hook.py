"""The close hook of an actor: the method close(), which contextlib.closing calls too. Unlike __exit__ it needs no __enter__ before it, and
unlike __del__ it runs at a known time and place: once, after the actor's last call, in the main thread or in the actor's event loop."""

from __future__ import annotations

import asyncio
import inspect
import sys
import traceback
from typing import Any, Callable, Optional

from .. import _value
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
