"""What this process is connected to, and the task that code runs for."""

from __future__ import annotations

import contextvars
import os
from typing import Any, Callable, Optional

from ._client import Client, TaskContext
from .exceptions import ShutdownError


class _State:
    """The one connection of the process."""

    client: Optional[Client] = None
    node: Any = None  # the node's process, if this one started it
    worker: Any = None  # the executor, in a worker
    begin: Optional[Callable[[], None]] = None  # init, for the first call without one


state = _State()

# The task that code runs for; None: the process' own.
current: contextvars.ContextVar[Optional[TaskContext]] = contextvars.ContextVar("mobula_task", default=None)


def client() -> Client:
    """The connection; a driver without one gets one."""
    c = state.client
    if c is None:
        if state.begin is None:
            raise ShutdownError("there is no connection to a node: call mobula.init()")
        state.begin()
        c = state.client
        assert c is not None
    return c


def context(c: Client) -> TaskContext:
    tc = current.get()
    return tc if tc is not None and tc.client is c else c.fallback


def _forked() -> None:
    # A child that is no worker of ours has not its parent's connection.
    state.client = None
    state.node = None


os.register_at_fork(after_in_child=_forked)
