"""A thread for users' callbacks: the thread that reads the connection must not wait for their code.

Signal handlers and finalisers may queue and start it in the midst of either: the queue is re-entrant, and there is no lock.
"""

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
        self._thread: Optional[threading.Thread] = None  # one that was started, or is being started
        self._runs: Optional[threading.Thread] = None  # the one that takes from the queue

    def start(self) -> None:
        """Starts the thread, unless it runs."""
        if self._runs is not None or self._thread is not None:
            return
        new = threading.Thread(target=_run, args=(self, self._queue), name=self._name, daemon=True)
        if self._thread is not None:
            return
        else:  # whole, with the look at it
            self._thread = new
        try:
            new.start()
        except BaseException:  # perhaps of a signal handler, and the thread has started nevertheless
            self._thread = None
            raise

    def put(self, f: Callable[[], object]) -> None:
        """Queues f."""
        self.start()
        self._queue.put(f)

    def end(self) -> None:
        """Ends the thread after all that is queued."""
        self._queue.put(None)

    def join(self) -> None:
        """Waits until the thread has ended. In the thread itself it returns at once."""
        t = self._runs or self._thread
        if t is not None and t is not threading.current_thread():
            t.join()


def _run(of: CallbackThread, q: queue.SimpleQueue[Optional[Callable[[], object]]]) -> None:
    me = threading.current_thread()
    if of._runs is None:  # whole: one thread alone takes from the queue
        of._runs = me
    else:
        return
    del of
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
