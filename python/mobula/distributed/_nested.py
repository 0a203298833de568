"""Futures in the arguments of calls, also inside containers (_containers): the worker gets their results."""

from __future__ import annotations

from typing import Any, Callable, Mapping, Sequence

from .. import _executor
from .._containers import replace
from .._functions import calls_user_code
from ..exceptions import TaskCancelledError
from ._future import Future


class Slot:
    """Takes the place of a future inside an argument."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number

    def __reduce__(self) -> Any:
        return Slot, (self.number,)


def take_out(x: Any, futures: list[Future]) -> Any:
    """x with slots in place of its futures, which are appended to futures."""
    numbers: dict[Future, int] = {f: n for n, f in enumerate(futures)}

    def slot(f: Future) -> Slot:
        n = numbers.setdefault(f, len(futures))
        if n == len(futures):
            futures.append(f)
        return Slot(n)

    return replace(x, slot, Future)


def put_in(x: Any, values: Sequence[Any]) -> Any:
    """x with values in place of its slots."""
    return replace(x, lambda slot: values[slot.number], Slot)


@calls_user_code
def call_with(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any], *values: Any) -> Any:
    """Calls a function with the results of the futures in its arguments."""
    args, kwargs = put_in((args, kwargs), values)
    return fn(*args, **kwargs)


def resolved(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> _executor.Plain:
    """The call of an executor that calls fn with the results of futures in its arguments. TaskCancelledError if one was cancelled."""
    futures: list[Future] = []
    args, kwargs = take_out((args, kwargs), futures)
    if not futures:
        return fn, args, kwargs
    for f in futures:
        if f.cancelled():
            raise TaskCancelledError(f.key)
    return call_with, (fn, args, kwargs, *[f.ref for f in futures]), {}


_executor.resolvers.append(resolved)

__all__ = ["Slot", "call_with", "put_in", "take_out"]
