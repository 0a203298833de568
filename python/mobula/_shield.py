"""Defers KeyboardInterrupt while the main thread writes a message, handles one, or changes who reads the connection.

An interrupt after half a frame was written, or in the middle of handling a message, would break the connection, and the node ends the
job of a program whose connection ends. So in a deferred section Ctrl-C raises KeyboardInterrupt only where the code sleeps, else at the
section's end. This concerns the main thread alone, in which Python runs signal handlers. If the program has a SIGINT handler of its own,
nothing is deferred.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # module signal converts arguments to enums, which takes longer than all the rest
import threading
from signal import SIGINT, default_int_handler
from types import CodeType, FrameType
from typing import Any, Callable, Optional, TypeVar

_F = TypeVar("_F", bound=Callable[..., Any])


class Shield:
    """The state of the process. late: an interrupt is pending; the main thread raises it before it sleeps, by rouse()."""

    def __init__(self) -> None:
        self.late = False
        self._up = False
        self._sleeps: set[CodeType] = set()

    def sleeps(self, f: _F) -> _F:
        """Marks a function that an interrupt may cut off anywhere in its code. It calls rouse() before it sleeps if one is pending."""
        self._sleeps.add(f.__code__)
        return f

    def up(self) -> bool:
        """Begins a section that defers interrupts. True: the caller has to call down(). False: there is nothing to do, outside the main
        thread or inside another section."""
        if self._up or _signal.getsignal(SIGINT) is not default_int_handler or threading.get_ident() != threading.main_thread().ident:
            return False
        _signal.signal(SIGINT, self._arrived)
        self.late, self._up = False, True
        return True

    def down(self) -> None:
        """Ends the section. Raises KeyboardInterrupt if one is pending."""
        self._up = False
        _signal.signal(SIGINT, default_int_handler)
        if self.late:
            self.late = False
            raise KeyboardInterrupt

    def rouse(self) -> None:
        """Raises a pending interrupt, in the main thread only."""
        if threading.get_ident() == threading.main_thread().ident:
            self.late = False
            raise KeyboardInterrupt

    def _arrived(self, number: int, frame: Optional[FrameType]) -> None:
        if frame is not None and frame.f_code in self._sleeps:
            default_int_handler(number, frame)
        self.late = True


shield = Shield()
