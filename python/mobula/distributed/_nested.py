"""Futures inside lists, tuples, sets and dicts."""

from __future__ import annotations

from typing import Any, Callable, Mapping, Sequence

from .._functions import calls_user_code
from ._future import Future

_SEQUENCES = (list, tuple, set, frozenset)


class Slot:
    """Takes the place of a future inside an argument."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number

    def __reduce__(self) -> Any:
        return Slot, (self.number,)


def replace(x: Any, f: Callable[[Any], Any], kind: type[Any]) -> Any:
    """A copy of x in which each y of type kind is replaced by f(y)."""
    cls = type(x)
    if isinstance(x, kind):
        return f(x)
    if cls in _SEQUENCES:
        return cls([replace(y, f, kind) for y in x])
    if cls is dict:
        return {k: replace(v, f, kind) for k, v in x.items()}
    return x


def take_out(x: Any, futures: list[Future]) -> Any:
    """A copy of x with slots in place of its futures, which are appended to futures."""

    def slot(future: Future) -> Slot:
        futures.append(future)
        return Slot(len(futures) - 1)

    return replace(x, slot, Future)


def put_in(x: Any, values: Sequence[Any]) -> Any:
    """A copy of x with values in place of its slots."""
    return replace(x, lambda slot: values[slot.number], Slot)


@calls_user_code
def call_with(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any], *values: Any) -> Any:
    """Calls a function with the results of the futures in its arguments."""
    return fn(*put_in(args, values), **put_in(dict(kwargs), values))
