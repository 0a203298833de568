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


class DeferredInterrupts:
    """The state of the process. pending: an interrupt has come; the main thread raises it before it sleeps, by raise_pending()."""

    def __init__(self) -> None:
        self.pending = False
        self._deferring = False
        self._allowed: set[CodeType] = set()

    def allowed(self, f: _F) -> _F:
        """Marks a function that an interrupt may cut off anywhere in its code. It calls raise_pending() before it sleeps if one is pending."""
        self._allowed.add(f.__code__)
        return f

    def defer(self) -> bool:
        """Begins a section that defers interrupts. True: the caller has to call deliver(). False: there is nothing to do, outside the main
        thread or inside another section."""
        if self._deferring or _signal.getsignal(SIGINT) is not default_int_handler or threading.get_ident() != threading.main_thread().ident:
            return False
        self.pending = False  # before the handler is there: an interrupt that comes with it counts
        _signal.signal(SIGINT, self._arrived)
        self._deferring = True
        return True

    def deliver(self) -> None:
        """Ends the section. Raises KeyboardInterrupt if one is pending."""
        self._deferring = False
        _signal.signal(SIGINT, default_int_handler)
        if self.pending:
            self.pending = False
            raise KeyboardInterrupt

    def raise_pending(self) -> None:
        """Raises a pending interrupt, in the main thread only."""
        if threading.get_ident() == threading.main_thread().ident:
            self.pending = False
            raise KeyboardInterrupt

    def _arrived(self, number: int, frame: Optional[FrameType]) -> None:
        if frame is not None and frame.f_code in self._allowed:
            default_int_handler(number, frame)
        self.pending = True


interrupts = DeferredInterrupts()
