"""What this process is connected to, and the task that code runs for."""

from __future__ import annotations

import contextvars
import os
import threading
from typing import Callable, Optional

from ._client import Client, TaskContext
from ._node import Node
from .exceptions import ShutdownError


class _State:
    """The one connection of the process."""

    client: Optional[Client] = None
    node: Optional[Node] = None  # the node's process, if this one started it
    worker: object = None  # the executor, in a worker
    begin: Optional[Callable[[], None]] = None  # init, for the first call without one
    exiting = False  # the interpreter ends


state = _State()

# The task that code runs for; None: the process' own.
current: contextvars.ContextVar[Optional[TaskContext]] = contextvars.ContextVar("mobula_task", default=None)


def client() -> Client:
    """The connection; a driver without one gets one."""
    c = state.client
    if c is None:
        if state.exiting:
            if threading.current_thread().daemon:
                raise SystemExit
            raise ShutdownError("the interpreter ends, and the connection to the node with it")
        if state.begin is None:
            raise ShutdownError("there is no connection to a node: call mobula.init()")
        state.begin()
        c = state.client
        assert c is not None
    return c


def context(c: Client) -> TaskContext:
    tc = current.get()
    return tc if tc is not None and tc.client is c else c.fallback


_forking: list[Client] = []


def _before_fork() -> None:
    # No other thread, which the child will not have, is in the middle of a change.
    c = state.client
    if c is not None:
        c.lock.acquire()
        _forking.append(c)


def _after_in_parent() -> None:
    if _forking:
        _forking.pop().lock.release()


def _after_in_child() -> None:
    # A child that is no worker of ours has not its parent's connection. Its next call makes one.
    state.client = None
    if state.node is not None:
        state.node.forked()
        state.node = None
    if _forking:
        c = _forking.pop()
        c.forked()
        c.lock.release()


os.register_at_fork(before=_before_fork, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
