"""References in garbage. Python's collector runs after so many allocations, which an idle worker does not make: an object that a call has left in a cycle
would stay with its owner until the worker's next work."""

from __future__ import annotations

import gc
import time
from typing import Any, Collection, Optional

_CALM = 1.0  # seconds for which a worker has run nothing and got no reference
_SHARE = 100  # a collection takes at most one hundredth of the time until the next
_Mark = tuple[tuple[int, Any], ...]


class IdleGarbage:
    """Collects the garbage of an idle worker that holds references which it did not hold after the collection before."""

    def __init__(self) -> None:
        self._held: Optional[_Mark] = None  # at the last look
        self._kept: Optional[_Mark] = None  # after the last collection
        self._since = 0.0  # time of the first look that saw _held
        self._next = 0.0  # time from which a collection is allowed

    def look(self, busy: bool, *tables: dict[Any, Any]) -> None:
        """The keeper calls it on each tick. tables: the process' handles and pins, the newest at their ends."""
        held = None if busy or not any(tables) else _mark(tables)
        now = time.monotonic()
        if held is None or held != self._held:
            self._held, self._since = held, now
        elif held != self._kept and now >= max(self._since + _CALM, self._next) and gc.isenabled():
            gc.collect()
            end = time.monotonic()
            self._next = end + _SHARE * (end - now)
            self._held = self._kept = _mark(tables)


def _mark(tables: Collection[dict[Any, Any]]) -> Optional[_Mark]:
    """What says whether the tables have changed. None if they do right now."""
    try:
        return tuple((len(t), next(reversed(t), None)) for t in tables)
    except RuntimeError:
        return None
