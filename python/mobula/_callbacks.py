"""A thread for users' callbacks: the thread that reads the connection must not wait for their code."""

from __future__ import annotations

import logging
import os
import queue
import threading
from typing import Callable, Optional

log = logging.getLogger("mobula")


class CallbackThread:
    """Calls functions one after the other, in a thread that starts with the first."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._queue: queue.SimpleQueue[Optional[Callable[[], object]]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._thread: Optional[threading.Thread] = None

    def start(self) -> None:
        """Starts the thread, unless it runs."""
        if self._thread is None:
            with self._lock:
                if self._thread is None:
                    self._thread = threading.Thread(target=_run, args=(self._queue,), name=self._name, daemon=True)
                    self._thread.start()

    def put(self, f: Callable[[], object]) -> None:
        """Queues f."""
        self.start()
        self._queue.put(f)

    def end(self) -> None:
        """Ends the thread after all that is queued."""
        self._queue.put(None)

    def join(self) -> None:
        """Waits until the thread has ended. In the thread itself it returns at once."""
        t = self._thread
        if t is not None and t is not threading.current_thread():
            t.join()


def _run(q: queue.SimpleQueue[Optional[Callable[[], object]]]) -> None:
    while True:
        f = q.get()
        if f is None:
            return
        try:
            f()
        except Exception:
            log.exception("a callback failed")
        del f  # and the objects that it holds


# For the futures of single references. It is never ended.
shared = CallbackThread("mobula-callbacks")


def _forked() -> None:
    # A forked child does not have its parent's threads.
    global shared
    shared = CallbackThread("mobula-callbacks")


os.register_at_fork(after_in_child=_forked)
