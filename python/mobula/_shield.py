"""What an interrupt at the terminal must not cut off: a message that is handled or written, and whose turn it is to read.

The node ends the job of a program whose connection ends. So where half a frame was written, or half of what came in was handled, an
interrupt would cost all that the program has. In the main thread, where Python's signal handlers run, it is raised where our code sleeps,
or else at the end of what it would have cut off. A program's own handler is left as it is.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # signal's own functions look their arguments up in enums, which takes longer than the rest
import threading
from signal import SIGINT, default_int_handler
from types import CodeType, FrameType
from typing import Any, Callable, Optional, TypeVar

_F = TypeVar("_F", bound=Callable[..., Any])


class Shield:
    """The one of the process. late: there was an interrupt, which is to be raised before the main thread sleeps, by rouse."""

    def __init__(self) -> None:
        self.late = False
        self._up = False
        self._sleeps: set[CodeType] = set()

    def sleeps(self, f: _F) -> _F:
        """Marks a function that an interrupt may cut off anywhere in its own code. It rouses just before it sleeps, if one is late."""
        self._sleeps.add(f.__code__)
        return f

    def up(self) -> bool:
        """Begins what must not be cut off; whether it is the caller's to call down. Elsewhere than in the main thread, and inside of
        another such part, there is nothing to do."""
        if self._up or _signal.getsignal(SIGINT) is not default_int_handler or threading.get_ident() != threading.main_thread().ident:
            return False
        _signal.signal(SIGINT, self._arrived)
        self.late, self._up = False, True
        return True

    def down(self) -> None:
        """Raises the interrupt that came meanwhile."""
        self._up = False
        _signal.signal(SIGINT, default_int_handler)
        if self.late:
            self.late = False
            raise KeyboardInterrupt

    def rouse(self) -> None:
        """Raises a late interrupt, in the main thread."""
        if threading.get_ident() == threading.main_thread().ident:
            self.late = False
            raise KeyboardInterrupt

    def _arrived(self, number: int, frame: Optional[FrameType]) -> None:
        if frame is not None and frame.f_code in self._sleeps:
            default_int_handler(number, frame)
        self.late = True


shield = Shield()
