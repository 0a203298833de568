"""What an initializer has set is seen by the calls after it, also where their functions came by value.

Functions of a program's main module come to a worker by value, each with a dict of globals of its own: a variable that the initializer sets
would be in its own dict alone, and concurrent.futures promises that the calls of a process find it.
"""

from __future__ import annotations

import sys
from types import FunctionType, ModuleType
from typing import Any, Callable, Iterator

from ._callables import functions_of

_DEEP = 100  # wrappers that are looked through
_CODE = (FunctionType, ModuleType, type)  # what a function uses of these is its own, unless the initializer has set it


class Globals:
    """The variables of an initializer's modules that came by value."""

    def __init__(self, initializer: Callable[..., Any]) -> None:
        self._of: dict[str, dict[str, Any]] = {}  # by the module's name
        self._before: dict[str, dict[str, Any]] = {}
        for own in _by_value(initializer):
            name = own.get("__name__", "")
            self._of[name], self._before[name] = own, dict(own)

    def ran(self) -> None:
        """Notes what is there after the initializer has run: what it has set, and the data that it may have changed."""
        for name, own in self._of.items():
            before = self._before[name]
            self._of[name] = {k: v for k, v in own.items() if not k.startswith("__")
                              and (k not in before or before[k] is not v or not isinstance(v, _CODE))}
        self._before.clear()

    def share(self, f: Any) -> None:
        """Gives the variables to a function that is about to be called."""
        if self._of:
            for theirs in _by_value(f):
                theirs.update(self._of.get(theirs.get("__name__", ""), {}))


def _by_value(f: Any) -> Iterator[dict[str, Any]]:
    """The globals of the functions that a call of f runs, if they are not a module's."""
    for g in functions_of(f):
        for _ in range(_DEEP):
            own = getattr(g, "__globals__", None)
            if isinstance(own, dict) and own is not getattr(sys.modules.get(own.get("__name__", "")), "__dict__", None):
                yield own
            g = getattr(g, "__wrapped__", None)
            if g is None:
                break


__all__ = ["Globals"]
