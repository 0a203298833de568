"""Defers the program's signal handlers while the main thread writes messages, handles one, or changes who reads the connection.

A handler may raise, or call this package. In a deferred section it runs only where the code sleeps, else at the section's end. This concerns the main
thread alone, in which Python runs signal handlers. For the time of a section each handler of the program is replaced by one that notes its signal. Whatever
cuts the replacement off, that one does what the program's does, unless the section lasts.

Handlers of other libraries' C code, and those of this package, are left alone. Code outside sections needs no deferral: it changes what it shares in steps
that nothing cuts (docs/decisions/0031).
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # module signal converts arguments to enums, which takes longer than all the rest
import os
import signal
import sys
import threading
from types import CodeType, FrameType
from typing import Any, Callable, Optional, TypeVar

_F = TypeVar("_F", bound=Callable[..., Any])
_Handler = Callable[[int, Optional[FrameType]], Any]

_get_ident = threading.get_ident
_SIGINT, _INTERRUPTS = int(signal.SIGINT), signal.default_int_handler

# All but those that Python code cannot handle, and real-time signals: to look at a handler takes time in each section.
_NUMBERS = [int(n) for n in signal.valid_signals() if n < signal.SIGRTMIN
            and n not in (signal.SIGKILL, signal.SIGSTOP, signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL)]


class DeferredInterrupts:
    """The state of the process. pending: signals that came in a section; the main thread handles them before it sleeps, by run_pending()."""

    def __init__(self) -> None:
        self.pending: list[int] = []
        self._section: Optional[FrameType] = None  # the function that has begun the section
        self._depth = 0  # handlers that run inside sections
        self._allowed: set[CodeType] = set()
        self._numbers = list(_NUMBERS)
        self._usual: list[Any] = []  # the handlers of the last section in which the program had none but Python's own of SIGINT
        self._interrupts = False  # it had that one
        self._main = threading.main_thread().ident
        os.register_at_fork(after_in_child=self._forked)
        self._replaced: dict[int, _Handler] = {}  # the program's handlers where _note is
        self._note: _Handler = self._arrived
        self._own: list[_Handler] = [self._note]

    def allowed(self, f: _F) -> _F:
        """Marks a function that a handler may cut off anywhere in its code. It calls run_pending() before it sleeps if one is pending."""
        self._allowed.add(f.__code__)
        return f

    def never(self, number: int) -> None:
        """Defers a signal no more: its handler does no harm anywhere."""
        self._numbers = [n for n in self._numbers if n != number]
        self._usual = []

    def harmless(self, handler: _Handler) -> None:
        """Leaves a handler of this package alone, which may run anywhere."""
        self._own.append(handler)

    def _forked(self) -> None:
        self._main = threading.main_thread().ident

    def defer(self) -> bool:
        """Begins a section. True: the caller has to call deliver(). False: there is nothing to do, outside the main thread or inside
        another section."""
        if _get_ident() != self._main:
            return False
        caller = sys._getframe(1)
        if self._section is not None and self._lasts(caller):
            return False
        handlers = list(map(_signal.getsignal, self._numbers))
        self._section = caller
        try:
            if handlers != self._usual:
                self._replace(handlers)
            elif self._interrupts:
                self._replaced[_SIGINT] = _INTERRUPTS
                _signal.signal(_SIGINT, self._note)
        except BaseException:  # of a handler that was not replaced yet
            self.deliver()
            raise
        return True

    def _replace(self, handlers: list[Any]) -> None:
        found = [(n, h) for n, h in zip(self._numbers, handlers) if callable(h) and not any(h is own for own in self._own)]
        for n, h in found:
            self._replaced[n] = h
            _signal.signal(n, self._note)
        if all(n == _SIGINT and h is _INTERRUPTS for n, h in found):  # a handler of the program may keep much alive
            self._usual, self._interrupts = handlers, bool(found)

    def deliver(self) -> None:
        """Ends the section. Runs the handlers of pending signals."""
        self._section = None
        try:
            self._restore()
        finally:
            if self.pending:
                self._run_all()

    def run_pending(self) -> None:
        """Runs the handlers of pending signals, in the main thread only. The section goes on, if they raise nothing."""
        if _get_ident() == self._main:
            self._run_all()

    def _run_all(self) -> None:
        try:
            while self.pending:
                n = self.pending[0]
                del self.pending[0]  # whole
                self._run(n, sys._getframe())
        finally:
            if self.pending:  # a handler has raised: the others run too
                self._run_all()

    def _run(self, number: int, frame: Optional[FrameType]) -> None:
        """Runs the program's handler, which may use the package as any code of the program does."""
        handler = _signal.getsignal(number)
        if handler is self._note:  # the program may have read it in a section, and set it after that
            handler = self._replaced.get(number, signal.default_int_handler if number == signal.SIGINT else None)
        if not callable(handler):
            return
        before = self._section
        self._section = None
        self._depth += 1
        try:
            handler(number, frame)
        finally:
            self._depth -= 1
            self._section = before

    def _lasts(self, frame: Optional[FrameType]) -> bool:
        """Whether the code that runs is in a section. An exception that another thread has raised here may have kept it from ending."""
        section = self._section
        while frame is not None and section is not None:
            if frame is section:
                return True
            frame = frame.f_back
        return False

    def _restore(self) -> None:
        if self._depth:  # the section around it goes on
            return
        replaced = self._replaced
        for n in list(replaced):
            h = replaced.get(n)
            if h is not None and _signal.getsignal(n) is self._note:  # else the program has set another one meanwhile
                _signal.signal(n, h)
            if n in replaced:  # whole; the program's handlers may keep much alive
                del replaced[n]

    def _arrived(self, number: int, frame: Optional[FrameType]) -> None:
        if (frame is not None and frame.f_code in self._allowed) or not self._lasts(frame):
            self._run(number, frame)
        elif number not in self.pending:
            self.pending.append(number)


interrupts = DeferredInterrupts()
