"""Interrupts a running call that was cancelled.

A waiting call is woken and checks. A coroutine is cancelled. A call in the main thread gets a signal, whose handler raises
TaskInterrupt only in the user's code: this package's own code must not be cut off.
"""

from __future__ import annotations

import signal
import threading
import time
from types import FrameType
from typing import Optional, Protocol

from .._client import Client
from .._interrupts import interrupts
from .actor import Actor
from .call import Call, TaskInterrupt
from .streaming import Streaming
from .user_code import is_user_code

SIGNAL = signal.SIGUSR2
_EVERY = 0.05
_AGAIN = 2.0  # seconds between two interrupts of a call: time to clean up, and a second chance if the first was swallowed


class Interrupted(Protocol):
    """What Interrupts needs of the executor."""

    @property
    def client(self) -> Client: ...

    @property
    def streaming(self) -> Streaming: ...

    @property
    def actor(self) -> Optional[Actor]: ...

    @property
    def main(self) -> Optional[Call]:
        """The call in the main thread."""


class Interrupts:
    def __init__(self, executor: Interrupted) -> None:
        self._executor = executor

    def install(self) -> None:
        """Sets the signal handler. Call it in the main thread."""
        interrupts.never(SIGNAL)  # the handler raises in the user's code alone
        signal.signal(SIGNAL, self._arrived)

    def interrupt(self, call: Call) -> None:
        """Interrupts a call. Its error must be set."""
        e = self._executor
        e.client.reader.wake()
        e.streaming.wake()
        a = e.actor
        if call.future is not None and a is not None and a.loop is not None:
            a.loop.cancel(call)
        elif call is e.main:
            threading.Thread(target=self._insist, args=(call,), daemon=True, name="mobula-cancel").start()

    def _insist(self, call: Call) -> None:
        """Signals the main thread until the call has ended: at first it may run code of this package, which is not interrupted."""
        while self._executor.main is call:
            signal.pthread_kill(threading.main_thread().ident or 0, SIGNAL)
            time.sleep(_EVERY)

    def _arrived(self, number: int, frame: Optional[FrameType]) -> None:
        call = self._executor.main
        if call is None or call.error is None or not call.in_user or time.monotonic() < call.spared or not is_user_code(frame):
            return
        call.spared = time.monotonic() + _AGAIN
        raise TaskInterrupt()
