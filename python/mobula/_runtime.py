"""The connection of this process, and the task on whose behalf code runs."""

from __future__ import annotations

import contextvars
import os
import threading
from typing import Callable, Optional

from ._client import Client, TaskContext
from ._node import Node
from .exceptions import ShutdownError


class _State:
    """The process' one connection and what belongs to it."""

    client: Optional[Client] = None
    node: Optional[Node] = None  # the node's process, if init started it
    worker: object = None  # in a worker: its executor
    auto_init: Optional[Callable[[], None]] = None  # calls init() when a program uses the API without a connection
    exiting = False  # the interpreter is shutting down


state = _State()

# The task on whose behalf code runs; None: the process' root task.
current: contextvars.ContextVar[Optional[TaskContext]] = contextvars.ContextVar("mobula_task", default=None)


def client() -> Client:
    """The connection. A driver that has none gets one by init()."""
    c = state.client
    if c is None:
        if state.exiting:
            if threading.current_thread().daemon:
                raise SystemExit
            raise ShutdownError("the interpreter ends, and the connection to the node with it")
        if state.auto_init is None:
            raise ShutdownError("there is no connection to a node: call mobula.init()")
        state.auto_init()
        c = state.client
        assert c is not None
    return c


def context(c: Client) -> TaskContext:
    tc = current.get()
    return tc if tc is not None and tc.client is c else c.fallback


_forking: list[Client] = []


def _before_fork() -> None:
    # With the lock held no other thread is in the middle of a change: the child has a copy of the tables, and no such thread.
    c = state.client
    if c is not None:
        c.lock.acquire()
        _forking.append(c)


def _after_in_parent() -> None:
    if _forking:
        _forking.pop().lock.release()


def _after_in_child() -> None:
    # A forked child does not share its parent's connection. Its next call of the API makes a new one.
    state.client = None
    if state.node is not None:
        state.node.forked()
        state.node = None
    if _forking:
        c = _forking.pop()
        c.forked()
        c.lock.release()


os.register_at_fork(before=_before_fork, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
