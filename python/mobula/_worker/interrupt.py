"""Making a running call notice that it was cancelled.

One that waits is woken and looks; one that is a coroutine is cancelled. One that runs in the main thread is interrupted by a
signal, which raises only in the user's code: ours must not be cut off.
"""

from __future__ import annotations

import signal
import threading
import time
from types import FrameType
from typing import Optional, Protocol

from .._client import Client
from .actor import Actor
from .call import Call, TaskInterrupt
from .streaming import Streaming
from .user import is_users

SIGNAL = signal.SIGUSR2
_EVERY = 0.05
_AGAIN = 2.0  # seconds from one interrupt of a call to the next: what it does to tidy up is not cut off, what swallowed it is told again


class Interrupted(Protocol):
    """The executor, of which calls are interrupted."""

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
        """In the main thread."""
        signal.signal(SIGNAL, self._arrived)

    def interrupt(self, call: Call) -> None:
        """Makes a call, whose error is set, end soon."""
        e = self._executor
        e.client.reader.wake()
        e.streaming.wake()
        a = e.actor
        if call.future is not None and a is not None and a.loop is not None:
            a.loop.cancel(call)
        elif call is e.main:
            threading.Thread(target=self._insist, args=(call,), daemon=True, name="mobula-cancel").start()

    def _insist(self, call: Call) -> None:
        """Signals the main thread until the call has ended: it may be in code of ours at first."""
        while self._executor.main is call:
            signal.pthread_kill(threading.main_thread().ident or 0, SIGNAL)
            time.sleep(_EVERY)

    def _arrived(self, number: int, frame: Optional[FrameType]) -> None:
        call = self._executor.main
        if call is None or call.error is None or not call.in_user or time.monotonic() < call.spared or not is_users(frame):
            return
        call.spared = time.monotonic() + _AGAIN
        raise TaskInterrupt()
